// SPDX-License-Identifier: MIT OR Apache-2.0
//! The information store.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Error, Result, Status};

use super::{Client, Target};

/// Whose convention an entry follows.
pub type Key = [u8; 16];

/// A key of the tests.
pub fn key(number: u8) -> Key {
    let mut key = *b"opendxg-selftest";
    key[15] = number;
    key
}

/// One entry to store.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Key.
    pub key: Key,
    /// Schema.
    pub schema: u32,
    /// `OPENDXG_INFO_*` bits; ATTACH_FD is added for a file.
    pub flags: u32,
    /// Expected generation.
    pub expected: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// A file to attach.
    pub file: Option<BorrowedFd<'a>>,
}

impl<'a> Item<'a> {
    /// These bytes under this key and schema.
    pub fn new(key: Key, schema: u32, bytes: &'a [u8]) -> Self {
        let (flags, expected, file) = (0, 0, None);
        Self {
            key,
            schema,
            flags,
            expected,
            bytes,
            file,
        }
    }

    /// With flags.
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// With an expected generation.
    pub fn expecting(self, expected: u64) -> Self {
        Self { expected, ..self }
    }

    /// With a file.
    pub fn file(self, file: BorrowedFd<'a>) -> Self {
        let file = Some(file);
        Self { file, ..self }
    }

    /// The struct of the call.
    pub fn raw(&self) -> opendxg_info_item {
        let attach = self.file.map_or(0, |_| OPENDXG_INFO_ATTACH_FD);
        opendxg_info_item {
            key: self.key,
            schema: self.schema,
            flags: self.flags | attach,
            expected_generation: self.expected,
            data: match self.bytes.is_empty() {
                true => 0,
                false => self.bytes.as_ptr() as u64,
            },
            size: self.bytes.len() as u32,
            fd: self.file.map_or(0, |file| file.as_raw_fd()),
        }
    }
}

/// An entry as it was read.
#[derive(Debug)]
pub struct Entry {
    /// Its schema.
    pub schema: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Generation when it was set.
    pub generation: u64,
    /// Who wrote it.
    pub writer: u32,
    /// `OPENDXG_INFO_*` bits.
    pub flags: u32,
    /// The attached file, if it was asked for and there is one.
    pub file: Option<OwnedFd>,
}

/// Room for the largest entry.
const LARGEST: usize = 65536;

impl Client {
    /// SET_INFO; the new generation.
    pub fn set_info(&self, target: Target<'_>, items: &[Item<'_>]) -> Result<u64> {
        self.try_set_info(target, items).0
    }

    /// SET_INFO; also what the call left in its output.
    pub fn try_set_info(&self, target: Target<'_>, items: &[Item<'_>]) -> (Result<u64>, u64) {
        let items: Vec<_> = items.iter().map(Item::raw).collect();
        let mut arg = opendxg_set_info::zeroed();
        arg.item_count = items.len() as u32;
        arg.items = items.as_ptr() as u64;
        let answer = self.call_at(target, &mut arg);
        (answer.map(|_| arg.generation), arg.generation)
    }

    /// Sets one entry without flags.
    pub fn set(&self, target: Target<'_>, key: Key, schema: u32, bytes: &[u8]) -> Result<u64> {
        self.set_info(target, &[Item::new(key, schema, bytes)])
    }

    /// GET_INFO with room for every entry, without the file.
    pub fn get(&self, target: Target<'_>, key: Key, max_schema: u32) -> Result<Entry> {
        self.get_into(target, key, max_schema, LARGEST, 0).0
    }

    /// GET_INFO with the file.
    pub fn get_file(&self, target: Target<'_>, key: Key, max_schema: u32) -> Result<Entry> {
        self.get_into(target, key, max_schema, LARGEST, OPENDXG_GET_FD)
            .0
    }

    /// GET_INFO with a buffer of this size and flags; also the argument after the call.
    pub fn get_into(
        &self,
        target: Target<'_>,
        key: Key,
        max_schema: u32,
        size: usize,
        flags: u32,
    ) -> (Result<Entry>, opendxg_get_info) {
        const UNTOUCHED: u8 = 0xa5;
        let mut bytes = vec![UNTOUCHED; size];
        let mut arg = opendxg_get_info::zeroed();
        (arg.key, arg.max_schema, arg.flags) = (key, max_schema, flags);
        arg.data = if size == 0 {
            0
        } else {
            bytes.as_mut_ptr() as u64
        };
        arg.size = size as u32;
        let answer = self.call_at(target, &mut arg);
        let result = match answer {
            Ok(Status::SUCCESS) if arg.size as usize <= size => {
                // SAFETY: the call made the descriptor for us.
                let adopt = || unsafe { OwnedFd::from_raw_fd(arg.fd) };
                bytes.truncate(arg.size as usize);
                Ok(Entry {
                    schema: arg.schema,
                    bytes,
                    generation: arg.generation,
                    writer: arg.writer_uid,
                    flags: arg.entry_flags,
                    file: (arg.fd >= 0).then(adopt),
                })
            }
            Ok(_) => Err(Error::Protocol("an entry larger than its buffer")),
            Err(_) if bytes.iter().any(|&byte| byte != UNTOUCHED) => {
                Err(Error::Protocol("a refused get wrote into the buffer"))
            }
            Err(error) => Err(error),
        };
        (result, arg)
    }

    /// ENUM_INFO with room for `room` entries; also the count after the call.
    pub fn enum_info(
        &self,
        target: Target<'_>,
        room: usize,
    ) -> (Result<Vec<opendxg_info_entry>>, u32) {
        let mut entries = vec![opendxg_info_entry::default(); room];
        let mut arg = opendxg_enum_info::zeroed();
        arg.count = room as u32;
        arg.entries = if room == 0 {
            0
        } else {
            entries.as_mut_ptr() as u64
        };
        let answer = self.call_at(target, &mut arg);
        entries.truncate(arg.count as usize);
        (answer.map(|_| entries), arg.count)
    }

    /// All entries.
    pub fn entries(&self, target: Target<'_>) -> Result<Vec<opendxg_info_entry>> {
        self.enum_info(target, 64).0
    }

    /// DELETE_INFO; the new generation.
    pub fn delete_info(
        &self,
        target: Target<'_>,
        key: Key,
        schema: u32,
        expected: u64,
    ) -> (Result<u64>, u64) {
        let mut arg = opendxg_delete_info::zeroed();
        (arg.key, arg.schema, arg.expected_generation) = (key, schema, expected);
        let answer = self.call_at(target, &mut arg);
        (answer.map(|_| arg.generation), arg.generation)
    }
}
