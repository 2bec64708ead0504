// SPDX-License-Identifier: GPL-2.0

//! The information store of an object at one moment (RES-55 to RES-60): a list of entries that
//! never changes. A change makes a new list, which shares what stays the same with the old one.
//!
//! So a reader keeps one complete state, even if the store changes meanwhile, and no lock is held
//! while bytes are copied. [`super::attachments`] has the current list.

use crate::dxgk::{
    quota::account::{
        Accounts,
        Charge,
        Limit, //
    },
    stats::{
        Counted,
        CountedOn,
        OwnStats,
        VALUES, //
    }, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        handle,
        info_rules::{
            self,
            guid_parts,
            Id,
            InfoItem,
            Key,
            Limits,
            NotRead,
            Refused, //
        }, //
    },
    sys::{
        file::object_file::PendingFd,
        params,
        task::credentials::Credentials, //
    }, //
};
use kernel::{
    alloc::AllocError,
    fs::File,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

/// The bytes of an entry, charged to a user.
pub(crate) struct Value {
    bytes: KVVec<u8>,
    _charge: Charge,
    _counted: Counted<OwnStats, VALUES>,
}

impl Value {
    /// A value for an object that is counted `on` the same adapter, charged to the calling user;
    /// QUOTA_EXCEEDED over the limit.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        accounts: &Arc<Accounts>,
        on: &impl CountedOn,
        bytes: KVVec<u8>,
    ) -> DxgResult<Arc<Self>> {
        let size = u32::try_from(bytes.len()).map_err(|_| Status::QUOTA_EXCEEDED)?;
        let value = Self {
            bytes,
            _charge: charge(accounts, Limit::Store, size)?,
            _counted: Counted::new(OwnStats::of(on)),
        };

        Ok(Arc::new(value, GFP_KERNEL_ACCOUNT)?)
    }

    /// What the entry holds; never changes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// An attached file, charged to a user.
pub(crate) struct Attachment {
    file: ARef<File>,
    _charge: Charge,
}

impl Attachment {
    /// A file, charged to the calling user; QUOTA_EXCEEDED over the limit.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(accounts: &Arc<Accounts>, file: ARef<File>) -> DxgResult<Arc<Self>> {
        let attachment = Self {
            file,
            _charge: charge(accounts, Limit::Files, 1)?,
        };

        Ok(Arc::new(attachment, GFP_KERNEL_ACCOUNT)?)
    }
}

/// Charges the calling user. A refusal is QUOTA_EXCEEDED, as in all calls of sections 8 and 10
/// (RES-105).
pub(crate) fn charge(accounts: &Arc<Accounts>, limit: Limit, amount: u32) -> DxgResult<Charge> {
    let charge = accounts.of_caller()?.charge(limit, amount);

    charge.map_err(|_| Status::QUOTA_EXCEEDED.into())
}

/// One entry. All of it comes from one change, except that a file stays attached until it is
/// replaced.
#[derive(Clone)]
pub(crate) struct StoreEntry {
    id: Id,
    sealed: bool,
    /// Generation of the object when it was set.
    pub(crate) generation: u64,
    /// Who set it.
    pub(crate) writer: Credentials,
    /// Its bytes.
    pub(crate) value: Arc<Value>,
    /// The attached file.
    pub(crate) file: Option<Arc<Attachment>>,
}

impl StoreEntry {
    /// A new descriptor of the attached file, which the caller does not have yet (RES-62); `None`
    /// without a file.
    pub(crate) fn new_descriptor(&self) -> DxgResult<Option<PendingFd>> {
        match &self.file {
            Some(attached) => Ok(Some(PendingFd::of_file(
                attached.file.clone(),
                handle::LAST_FD,
                true,
            )?)),
            None => Ok(None),
        }
    }

    /// The part that the rules need.
    pub(crate) fn rule(&self) -> info_rules::Entry {
        info_rules::Entry {
            id: self.id,
            generation: self.generation,
            size: self.value.bytes().len(),
            sealed: self.sealed,
            has_file: self.file.is_some(),
        }
    }
}

/// A wanted entry.
pub(crate) struct Change {
    /// The rules' part.
    pub(crate) item: InfoItem,
    /// Its bytes.
    pub(crate) value: Arc<Value>,
    /// The file to attach, if the flags say so.
    pub(crate) file: Option<Arc<Attachment>>,
}

impl Change {
    /// The entry after the change. `old` is the one it replaces.
    fn entry(&self, old: Option<&StoreEntry>, writer: Credentials, generation: u64) -> StoreEntry {
        let file = if self.item.flags & info_rules::ATTACH_FD != 0 {
            self.file.clone()
        } else if self.item.flags & info_rules::REMOVE_FD != 0 {
            None
        } else {
            old.and_then(|old| old.file.clone())
        };

        StoreEntry {
            id: self.item.id,
            sealed: self.item.flags & info_rules::SEALED != 0,
            generation,
            writer,
            value: self.value.clone(),
            file,
        }
    }
}

/// Why a store does not change.
pub(crate) enum Failed {
    /// A rule forbids it.
    Refused(Refused),
    /// Out of memory.
    NoMemory,
    /// The object has retired.
    Dead,
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<AllocError> for Failed {
    fn from(_: AllocError) -> Self {
        Self::NoMemory
    }
}

impl From<NotRead> for DxgError {
    fn from(reason: NotRead) -> Self {
        match reason {
            NotRead::Absent => Status::NOT_FOUND,
            NotRead::TooNew(_) => Status::REVISION_MISMATCH,
            NotRead::TooLarge(_) => Status::BUFFER_TOO_SMALL,
        }
        .into()
    }
}

impl From<Failed> for DxgError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(Refused::Exists) => Status::OBJECT_NAME_COLLISION,
            Failed::Refused(Refused::Sealed) => Status::ACCESS_DENIED,
            Failed::Refused(Refused::Generation(_)) => Status::REVISION_MISMATCH,
            Failed::Refused(Refused::Absent) => Status::NOT_FOUND,
            Failed::Refused(Refused::Full) => Status::QUOTA_EXCEEDED,
            Failed::NoMemory => Status::NO_MEMORY,
            Failed::Dead => Status::INVALID_PARAMETER,
        }
        .into()
    }
}

/// A store at one moment.
pub(crate) struct Store {
    generation: u64,
    /// In the order of their ids.
    entries: KVVec<StoreEntry>,
}

/// The store of an object without entries.
pub(crate) static EMPTY: Store = Store {
    generation: 0,
    entries: KVVec::new(),
};

impl Store {
    /// The generation: how many changes were made.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether any file is attached.
    pub(crate) fn has_files(&self) -> bool {
        self.entries.iter().any(|entry| entry.file.is_some())
    }

    /// All entries, in the order of key and schema.
    pub(crate) fn entries(&self) -> &[StoreEntry] {
        &self.entries
    }

    /// Prints a line for each entry. It is the store of the object with this id.
    pub(in crate::dxgk) fn show(&self, m: &SeqFile, object: u64) {
        for entry in self.entries() {
            let rule = entry.rule();
            let (a, b, c, d, e) = guid_parts(rule.id.key);

            seq_print!(
                m,
                "dxg-info:\t{object} {a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}"
            );
            seq_print!(m, " {} {} {}\n", rule.id.schema, rule.size, rule.generation);
        }
    }

    /// The entry with this name.
    pub(crate) fn entry(&self, id: Id) -> Option<&StoreEntry> {
        let place = info_rules::find(&self.entries, id, StoreEntry::rule).ok()?;

        self.entries.get(place)
    }

    /// The entry that a reader gets who knows schemas up to `max_schema` and has `room` for this
    /// many bytes.
    pub(crate) fn read(
        &self,
        key: Key,
        max_schema: u32,
        room: usize,
    ) -> core::result::Result<&StoreEntry, NotRead> {
        let place = info_rules::read(&self.entries, key, max_schema, room, StoreEntry::rule)?;

        self.entries.get(place).ok_or(NotRead::Absent)
    }

    /// The store with all these changes, which name different entries.
    pub(crate) fn with(
        &self,
        changes: &[Change],
        writer: Credentials,
    ) -> core::result::Result<Self, Failed> {
        let items = changes.iter().map(|change| change.item);

        info_rules::check_set(&self.entries, items, &limits(), StoreEntry::rule)?;

        // OVERFLOW: 2^64 changes take longer than any machine runs.
        let generation = self.generation + 1;
        let mut entries = self.copy(changes.len())?;

        for change in changes {
            let place = info_rules::find(&entries, change.item.id, StoreEntry::rule);
            let old = place.ok().and_then(|place| entries.get_mut(place));
            let new = change.entry(old.as_deref(), writer, generation);

            match (old, place) {
                (Some(old), _) => *old = new,
                (None, Ok(place) | Err(place)) => entries
                    .insert_within_capacity(place, new)
                    .map_err(|_| Failed::NoMemory)?,
            }
        }
        Ok(Self {
            generation,
            entries,
        })
    }

    /// The store without one entry; `expected` is 0 or the generation it must have.
    pub(crate) fn without(&self, id: Id, expected: u64) -> core::result::Result<Self, Failed> {
        let place = info_rules::check_delete(&self.entries, id, expected, StoreEntry::rule)?;
        let mut entries = self.copy(0)?;

        drop(entries.remove(place));
        Ok(Self {
            generation: self.generation + 1,
            entries,
        })
    }

    /// The entries, and room for more.
    fn copy(&self, more: usize) -> core::result::Result<KVVec<StoreEntry>, AllocError> {
        let room = self.entries.len().saturating_add(more);
        let mut entries = KVVec::with_capacity(room, GFP_KERNEL_ACCOUNT)?;

        entries.extend_from_slice(&self.entries, GFP_KERNEL_ACCOUNT)?;
        Ok(entries)
    }
}

/// How much one object may hold: module parameters.
pub(crate) fn limits() -> Limits {
    // CAST: 32 bits fit a usize.
    Limits {
        entries: params::max_info_entries() as usize,
        bytes: params::max_info_bytes() as usize,
        entry_bytes: params::max_info_entry_bytes() as usize,
        files: params::max_info_files() as usize,
    }
}
