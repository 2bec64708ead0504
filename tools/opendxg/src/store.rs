// SPDX-License-Identifier: MIT OR Apache-2.0
//! The information store of an object: entries by key and schema.
//!
//! Every object has one. Every holder of a handle can read it; writing needs a handle with write
//! (signal) access. Methods are those of [`Object`](crate::Object).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bitflags::bitflags;

use crate::calls;
use crate::calls::object::call_about;
use crate::handle::slot;
use crate::object::Target;
use crate::raw::Argument;
use crate::uapi::*;
use crate::{Error, Guid, Result, Status};

bitflags! {
    /// Properties of an entry, or how to store it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InfoFlags: u32 {
        /// Only if there is no such entry.
        const CREATE_ONLY = OPENDXG_INFO_CREATE_ONLY;
        /// Nobody changes or deletes the entry any more.
        const SEALED = OPENDXG_INFO_SEALED;
        /// Detach the file.
        const REMOVE_FD = OPENDXG_INFO_REMOVE_FD;
        /// Attach a file.
        const ATTACH_FD = OPENDXG_INFO_ATTACH_FD;
        /// A file is attached.
        const HAS_FD = OPENDXG_INFO_HAS_FD;
        const _ = !0;
    }
}

/// One entry to store.
#[derive(Clone, Copy, Debug)]
pub struct InfoItem<'a> {
    key: Guid,
    schema: u32,
    flags: InfoFlags,
    expected_generation: u64,
    bytes: &'a [u8],
    file: Option<BorrowedFd<'a>>,
}

impl<'a> InfoItem<'a> {
    /// Bytes under a key and a schema.
    pub fn new(key: Guid, schema: u32, bytes: &'a [u8]) -> Self {
        Self {
            key,
            schema,
            flags: InfoFlags::empty(),
            expected_generation: 0,
            bytes,
            file: None,
        }
    }

    /// Adds flags.
    pub fn flags(mut self, flags: InfoFlags) -> Self {
        self.flags |= flags;
        self
    }

    /// OBJECT_NAME_COLLISION if the entry exists.
    pub fn create_only(self) -> Self {
        self.flags(InfoFlags::CREATE_ONLY)
    }

    /// Nobody changes or deletes the entry after this.
    pub fn sealed(self) -> Self {
        self.flags(InfoFlags::SEALED)
    }

    /// REVISION_MISMATCH unless the entry has this generation.
    pub fn expecting(mut self, generation: u64) -> Self {
        self.expected_generation = generation;
        self
    }

    /// Attaches a dma-buf, a memfd, a sync file, an eventfd or a drm_syncobj, and what the
    /// administrator allows besides. The module takes its own reference.
    pub fn with_file(mut self, file: &'a impl AsFd) -> Self {
        self.file = Some(file.as_fd());
        self.flags(InfoFlags::ATTACH_FD)
    }

    /// Detaches the file of the entry.
    pub fn without_file(self) -> Self {
        self.flags(InfoFlags::REMOVE_FD)
    }

    /// The entry as the driver reads it.
    pub(crate) fn raw(&self) -> Result<opendxg_info_item> {
        let size = u32::try_from(self.bytes.len());
        Ok(opendxg_info_item {
            key: self.key.0,
            schema: self.schema,
            flags: self.flags.bits(),
            expected_generation: self.expected_generation,
            data: if self.bytes.is_empty() {
                0
            } else {
                self.bytes.as_ptr() as u64
            },
            size: size.map_err(|_| Error::Status(Status::INVALID_PARAMETER))?,
            fd: self.file.map_or(0, |file| slot(file) as i32),
        })
    }
}

/// How storing with an expected generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Stored; the new generation.
    Done(u64),
    /// Nothing was stored: an entry has another generation, this one. 0 if it does not exist.
    Conflict(u64),
}

/// An entry that was read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Info {
    /// Layout of the bytes.
    pub schema: u32,
    /// What was stored.
    pub bytes: Vec<u8>,
    /// Generation of the object when the entry was stored.
    pub generation: u64,
    /// User id of the writer, as this process sees it.
    pub writer_uid: u32,
    /// [`InfoFlags::SEALED`] and [`InfoFlags::HAS_FD`].
    pub flags: InfoFlags,
    /// The attached file, if it was asked for.
    pub file: Option<OwnedFd>,
}

/// How looking for an entry ended.
#[derive(Debug)]
pub enum Lookup {
    /// It is there.
    Found(Info),
    /// Only with higher schemas, of which this is the lowest.
    Newer(u32),
    /// No entry has the key.
    Absent,
}

/// One line of the list of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InfoEntry {
    /// Whose convention the bytes follow.
    pub key: Guid,
    /// Layout of the bytes.
    pub schema: u32,
    /// Number of bytes.
    pub size: u32,
    /// Generation of the object when the entry was stored.
    pub generation: u64,
    /// [`InfoFlags::SEALED`] and [`InfoFlags::HAS_FD`].
    pub flags: InfoFlags,
    /// User id of the writer, as this process sees it.
    pub writer_uid: u32,
}

/// The result, and the generation that a mismatch reports.
pub(crate) fn set(target: Target<'_>, items: &[InfoItem<'_>]) -> (Result<u64>, u64) {
    let (result, generation) = calls::info::set(target.0, items);
    (result.map(|_| generation), generation)
}

pub(crate) fn update(target: Target<'_>, items: &[InfoItem<'_>]) -> Result<Update> {
    match set(target, items) {
        (Err(Error::Status(Status::REVISION_MISMATCH)), present) => Ok(Update::Conflict(present)),
        (result, _) => result.map(Update::Done),
    }
}

/// Asks until the buffer is large enough: the entry may grow in between.
fn read(target: Target<'_>, arg: &mut opendxg_get_info) -> Result<Info> {
    let mut bytes = vec![0; 256];
    loop {
        match calls::info::get(target.0, arg, &mut bytes) {
            (Err(Error::Status(Status::BUFFER_TOO_SMALL)), _)
                if arg.size as usize > bytes.len() =>
            {
                bytes.resize(arg.size as usize, 0);
            }
            (Err(error), _) => return Err(error),
            (Ok(_), file) => {
                bytes.truncate(arg.size as usize);
                return Ok(Info {
                    schema: arg.schema,
                    bytes,
                    generation: arg.generation,
                    writer_uid: arg.writer_uid,
                    flags: InfoFlags::from_bits_retain(arg.entry_flags),
                    file,
                });
            }
        }
    }
}

fn request(key: Guid, max_schema: u32, file: bool) -> opendxg_get_info {
    opendxg_get_info {
        key: key.0,
        max_schema,
        flags: if file { OPENDXG_GET_FD } else { 0 },
        ..opendxg_get_info::zeroed()
    }
}

pub(crate) fn get(target: Target<'_>, key: Guid, max_schema: u32, file: bool) -> Result<Info> {
    read(target, &mut request(key, max_schema, file))
}

pub(crate) fn look_up(target: Target<'_>, key: Guid, max_schema: u32) -> Result<Lookup> {
    let mut arg = request(key, max_schema, false);
    match read(target, &mut arg) {
        Err(Error::Status(Status::REVISION_MISMATCH)) => Ok(Lookup::Newer(arg.schema)),
        Err(Error::Status(Status::NOT_FOUND)) => Ok(Lookup::Absent),
        result => result.map(Lookup::Found),
    }
}

pub(crate) fn enumerate(target: Target<'_>) -> Result<(Vec<InfoEntry>, u64)> {
    let mut raw = vec![opendxg_info_entry::default(); 16];
    loop {
        let (status, count, generation) = calls::info::enumerate(target.0, &mut raw)?;
        if !status.is_success() {
            raw.resize(count, opendxg_info_entry::default());
            continue;
        }
        let entries = raw.iter().take(count).map(|entry| InfoEntry {
            key: Guid(entry.key),
            schema: entry.schema,
            size: entry.size,
            generation: entry.generation,
            flags: InfoFlags::from_bits_retain(entry.flags),
            writer_uid: entry.writer_uid,
        });
        return Ok((entries.collect(), generation));
    }
}

pub(crate) fn delete(target: Target<'_>, key: Guid, schema: u32) -> Result<u64> {
    let mut arg = opendxg_delete_info::zeroed();
    arg.key = key.0;
    arg.schema = schema;
    call_about(target.0, &mut arg)?;
    Ok(arg.generation)
}
