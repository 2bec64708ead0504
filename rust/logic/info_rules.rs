// SPDX-License-Identifier: GPL-2.0

//! Rules of the information store of one object (RES-56 to RES-64): which arguments a call takes,
//! which entry a reader gets, and whether a change is allowed.
//!
//! Arguments come first, then the handle and its right to write, then the store. SET_INFO copies in
//! between: the items, then the bytes and the file of one after the other.
//!
//! A store is a list of [`Entry`]s, ordered by key and schema. The rules do not look at what the
//! entries hold.

use super::{
    check_address,
    invalid_if,
    Invalid, //
};

/// A GUID in memory order: whose convention the bytes of an entry follow.
pub type Key = [u8; 16];

/// The five parts of a key as GUIDs are written; the first three are little-endian in memory.
pub fn guid_parts(key: Key) -> (u32, u16, u16, u16, u64) {
    let [a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, e0, e1, e2, e3, e4, e5] = key;

    (
        u32::from_le_bytes([a0, a1, a2, a3]),
        u16::from_le_bytes([b0, b1]),
        u16::from_le_bytes([c0, c1]),
        u16::from_be_bytes([d0, d1]),
        u64::from_be_bytes([0, 0, e0, e1, e2, e3, e4, e5]),
    )
}

/// Fail if the entry exists.
pub const CREATE_ONLY: u32 = 1 << 0;
/// No later change of the entry.
pub const SEALED: u32 = 1 << 1;
/// Detach the file.
pub const REMOVE_FD: u32 = 1 << 2;
/// Attach a file.
pub const ATTACH_FD: u32 = 1 << 3;

/// An entry has a file.
pub const HAS_FD: u32 = 1 << 4;

/// Make a descriptor of the attached file.
pub const GET_FD: u32 = 1 << 0;

/// Most items of one change.
pub const MAX_ITEMS: usize = 8;

/// What names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Whose convention the bytes follow.
    pub key: Key,
    /// Layout of the bytes within that convention.
    pub schema: u32,
}

/// Private runtime data (RES-67).
pub const BLOB: Id = Id {
    key: [0; 16],
    schema: 0,
};

/// The part of an entry that the rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub id: Id,
    /// Generation of the object when it was set.
    pub generation: u64,
    /// Bytes of its value.
    pub size: usize,
    /// No change is allowed any more.
    pub sealed: bool,
    /// A file is attached.
    pub has_file: bool,
}

impl Entry {
    /// The flags that readers see.
    pub fn flags(&self) -> u32 {
        let sealed = if self.sealed { SEALED } else { 0 };
        let file = if self.has_file { HAS_FD } else { 0 };

        sealed | file
    }
}

/// An item as SET_INFO is given it.
#[derive(Clone, Copy, Debug)]
pub struct GivenItem {
    /// The entry.
    pub id: Id,
    /// What to do with it.
    pub flags: u32,
    /// The descriptor of the file to attach.
    pub fd: i32,
    /// Where the bytes are.
    pub data: u64,
    /// How many bytes.
    pub size: u32,
}

/// One wanted change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoItem {
    /// The entry.
    pub id: Id,
    /// Known flags in a sensible combination, see [`are_flags_valid`].
    pub flags: u32,
    /// 0, or the generation that the entry must have.
    pub expected: u64,
    /// Bytes of the new value.
    pub size: usize,
}

/// How much one object may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many entries.
    pub entries: usize,
    /// Bytes of all entries.
    pub bytes: usize,
    /// The most bytes of a single entry.
    pub entry_bytes: usize,
    /// Attached files.
    pub files: usize,
}

impl Limits {
    /// Whether any entry may have so many bytes. Checked before they are copied, and again with the
    /// other limits.
    pub fn check_entry(&self, size: usize) -> Result<(), Refused> {
        if size > self.entry_bytes {
            return Err(Refused::Full);
        }
        Ok(())
    }
}

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The entry exists and was to be created.
    Exists,
    /// The entry is sealed.
    Sealed,
    /// The entry has another generation, which is this; 0 if it does not exist.
    Generation(u64),
    /// The entry does not exist.
    Absent,
    /// A limit of the object.
    Full,
}

/// What a reader gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The entry at this place.
    Found(usize),
    /// The key has only schemas that the reader does not know; the lowest is this.
    TooNew(u32),
    /// The key has no entry.
    Absent,
}

/// Why a reader gets no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// The key has no entry.
    Absent,
    /// The key has only schemas that the reader does not know; the lowest is this.
    TooNew(u32),
    /// The entry has so many bytes, more than the reader has room for.
    TooLarge(usize),
}

/// Checks where the items of a SET_INFO are, and returns how many.
pub fn check_array(count: u32, items: u64) -> Result<usize, Invalid> {
    // CAST: 32 bits fit a usize.
    let count = count as usize;

    invalid_if(count == 0 || count > MAX_ITEMS || items == 0)?;
    Ok(count)
}

/// Checks the items of a SET_INFO by themselves.
pub fn check_items<T>(items: &[T], given: impl Fn(&T) -> GivenItem) -> Result<(), Invalid> {
    for item in items {
        let item = given(item);

        invalid_if(!are_flags_valid(item.flags, item.fd))?;
        check_address(item.data, item.size)?;
    }
    invalid_if(!are_distinct(items, |item| given(item).id))
}

/// Checks the arguments of a GET_INFO by themselves.
pub fn check_get(flags: u32, data: u64, size: u32) -> Result<(), Invalid> {
    invalid_if(flags & !GET_FD != 0)?;
    check_address(data, size)
}

/// Whether the flags of an item are known and do not contradict each other or the descriptor.
pub fn are_flags_valid(flags: u32, fd: i32) -> bool {
    let known = CREATE_ONLY | SEALED | REMOVE_FD | ATTACH_FD;
    let attach = flags & ATTACH_FD != 0;

    flags & !known == 0 && (attach || fd == 0) && !(attach && flags & REMOVE_FD != 0)
}

/// Whether no two items name the same entry.
pub fn are_distinct<T>(items: &[T], id: impl Fn(&T) -> Id) -> bool {
    let mut rest = items;

    while let Some((item, others)) = rest.split_first() {
        if others.iter().any(|other| id(other) == id(item)) {
            return false;
        }
        rest = others;
    }
    true
}

/// The place of an entry, or the place where it would be.
pub fn find<T>(entries: &[T], id: Id, entry: impl Fn(&T) -> Entry) -> Result<usize, usize> {
    entries.binary_search_by(|other| entry(other).id.cmp(&id))
}

/// The entry of `key` with the highest schema that is not above `max_schema` (RES-57).
pub fn choose<T>(entries: &[T], key: Key, max_schema: u32, entry: impl Fn(&T) -> Entry) -> Choice {
    let best = Id {
        key,
        schema: max_schema,
    };
    let above = entries.partition_point(|other| entry(other).id <= best);
    let of_key = |place: Option<usize>| {
        let id = entry(entries.get(place?)?).id;

        (id.key == key).then_some(id.schema)
    };

    match above.checked_sub(1) {
        Some(place) if of_key(Some(place)).is_some() => Choice::Found(place),
        _ => of_key(Some(above)).map_or(Choice::Absent, Choice::TooNew),
    }
}

/// The place of the entry that [`choose`] finds, if a reader with this much room can have it.
pub fn read<T>(
    entries: &[T],
    key: Key,
    max_schema: u32,
    room: usize,
    entry: impl Fn(&T) -> Entry,
) -> Result<usize, NotRead> {
    let place = match choose(entries, key, max_schema, &entry) {
        Choice::Found(place) => place,
        Choice::TooNew(lowest) => return Err(NotRead::TooNew(lowest)),
        Choice::Absent => return Err(NotRead::Absent),
    };
    let size = entry(entries.get(place).ok_or(NotRead::Absent)?).size;

    if size > room {
        return Err(NotRead::TooLarge(size));
    }
    Ok(place)
}

/// Whether a present entry may be changed by a caller that expects this generation (0: any).
fn check_change(present: &Entry, expected: u64) -> Result<(), Refused> {
    if present.sealed {
        return Err(Refused::Sealed);
    }
    if expected != 0 && expected != present.generation {
        return Err(Refused::Generation(present.generation));
    }
    Ok(())
}

/// Whether the items, which are distinct, may all be applied (RES-56, RES-64).
///
/// The first item that may not decides; limits come last.
pub fn check_set<T>(
    entries: &[T],
    items: impl Iterator<Item = InfoItem>,
    limits: &Limits,
    entry: impl Fn(&T) -> Entry,
) -> Result<(), Refused> {
    let mut total = Total::of(entries.iter().map(&entry));
    let mut fits = true;

    for item in items {
        let present = find(entries, item.id, &entry)
            .ok()
            .and_then(|place| entries.get(place))
            .map(&entry);

        match &present {
            Some(_) if item.flags & CREATE_ONLY != 0 => return Err(Refused::Exists),
            Some(present) => check_change(present, item.expected)?,
            None if item.expected != 0 => return Err(Refused::Generation(0)),
            None => {}
        }
        total.replace(present, &item);
        fits &= limits.check_entry(item.size).is_ok();
    }

    if fits && total.fits(limits) {
        Ok(())
    } else {
        Err(Refused::Full)
    }
}

/// The place of an entry that a caller that expects this generation (0: any) may remove.
pub fn check_delete<T>(
    entries: &[T],
    id: Id,
    expected: u64,
    entry: impl Fn(&T) -> Entry,
) -> Result<usize, Refused> {
    let absent = if expected == 0 {
        Refused::Absent
    } else {
        Refused::Generation(0)
    };
    let place = find(entries, id, &entry).map_err(|_| absent)?;
    let present = entries.get(place).ok_or(absent)?;

    check_change(&entry(present), expected)?;
    Ok(place)
}

/// How much a store holds.
struct Total {
    entries: usize,
    bytes: usize,
    files: usize,
}

impl Total {
    fn of(entries: impl Iterator<Item = Entry>) -> Self {
        let mut total = Self {
            entries: 0,
            bytes: 0,
            files: 0,
        };

        for entry in entries {
            total.add(entry.size, entry.has_file);
        }
        total
    }

    // OVERFLOW: all are bounded by memory; saturating costs nothing.
    fn add(&mut self, size: usize, has_file: bool) {
        self.entries = self.entries.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
        self.files = self.files.saturating_add(usize::from(has_file));
    }

    /// Counts `item` instead of `present`, which was counted.
    fn replace(&mut self, present: Option<Entry>, item: &InfoItem) {
        let had_file = present.is_some_and(|present| present.has_file);

        if let Some(present) = present {
            self.entries = self.entries.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(present.size);
            self.files = self.files.saturating_sub(usize::from(had_file));
        }
        self.add(item.size, has_file_after(had_file, item.flags));
    }

    fn fits(&self, limits: &Limits) -> bool {
        self.entries <= limits.entries && self.bytes <= limits.bytes && self.files <= limits.files
    }
}

/// Whether an entry has a file after a change with these flags.
pub fn has_file_after(had_file: bool, flags: u32) -> bool {
    flags & ATTACH_FD != 0 || (had_file && flags & REMOVE_FD == 0)
}
