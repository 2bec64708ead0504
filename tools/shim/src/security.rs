// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a Windows security descriptor means as the mode of a name.
//!
//! | descriptor | mode |
//! |---|---|
//! | none | none: the kernel uses 0600 |
//! | an access list that is present and NULL | 0666 |
//! | entries that allow Everyone (S-1-1-0) something, until one denies it | 0600 and that |
//! | anything else, also what cannot be read | 0600 |
//!
//! Everyone includes the owner's group, so the group gets the same bits as others.

/// Revision of a descriptor; the kernel refuses others.
const REVISION: u8 = 1;
/// The access list is present.
const DACL_PRESENT: u16 = 0x0004;
/// The members are offsets from the start of the descriptor.
const SELF_RELATIVE: u16 = 0x8000;
/// An entry that only objects made later inherit.
const INHERIT_ONLY: u8 = 0x08;
/// Kinds of entries.
const ALLOW: u8 = 0;
const DENY: u8 = 1;
/// Bytes of the header of a list, and of an entry with its mask.
const LIST_HEADER: usize = 8;
const ENTRY_HEADER: usize = 8;
/// S-1-1-0.
const EVERYONE: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];

/// What only the owner may do.
const PRIVATE: u32 = 0o600;
/// What everyone may do.
const PUBLIC: u32 = 0o666;

/// Bits of an access mask that ask for writing or signalling.
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const SIGNAL: u32 = 0x2;
/// All rights to a resource, whose write bit is the wait bit of a synchronisation object.
const RESOURCE_ALL: u32 = 0x000f_0001;

/// The mode for a descriptor at `address`; `None` without one. `wide` is the form of 64-bit
/// programs, whose absolute descriptors have members of eight bytes.
///
/// # Safety
///
/// `address` is 0 or that of a readable descriptor, whose access list is readable as far as it
/// says.
pub(crate) unsafe fn mode(address: u64, wide: bool) -> Option<u32> {
    if address == 0 {
        return None;
    }
    // SAFETY: a readable descriptor.
    let list = unsafe { access_list(address as usize as *const u8, wide) };
    Some(match list {
        List::None => PRIVATE,
        List::Open => PUBLIC,
        // SAFETY: a readable list.
        List::At(start) => PRIVATE | mode_of_list(unsafe { bytes_of_list(start) }),
    })
}

/// Where the access list is.
enum List {
    /// None is present.
    None,
    /// Present and NULL: everybody may do everything.
    Open,
    /// Here.
    At(*const u8),
}

/// # Safety
///
/// `start` is that of a readable descriptor.
unsafe fn access_list(start: *const u8, wide: bool) -> List {
    // SAFETY: every descriptor has four bytes of header.
    let [revision, _, low, high] = unsafe { start.cast::<[u8; 4]>().read_unaligned() };
    let control = u16::from_le_bytes([low, high]);
    if revision != REVISION || control & DACL_PRESENT == 0 {
        return List::None;
    }
    if control & SELF_RELATIVE != 0 {
        // SAFETY: four offsets follow the header, the list's is the last one.
        return match unsafe { start.add(16).cast::<u32>().read_unaligned() } {
            0 => List::Open,
            // SAFETY: inside the readable descriptor.
            offset => List::At(unsafe { start.add(offset as usize) }),
        };
    }
    let address = if wide {
        // SAFETY: four addresses follow the padded header, the list's is the last one.
        unsafe { start.add(32).cast::<u64>().read_unaligned() as usize }
    } else {
        // SAFETY: as above, with shorter addresses.
        unsafe { start.add(16).cast::<u32>().read_unaligned() as usize }
    };
    match address {
        0 => List::Open,
        address => List::At(address as *const u8),
    }
}

/// The list with its header, as long as it says.
///
/// # Safety
///
/// `start` is that of a readable list, which nobody changes.
unsafe fn bytes_of_list<'a>(start: *const u8) -> &'a [u8] {
    // SAFETY: every list has its header.
    let [_, _, low, high] = unsafe { start.cast::<[u8; 4]>().read_unaligned() };
    let size = usize::from(u16::from_le_bytes([low, high]));
    // SAFETY: readable as far as it says.
    unsafe { core::slice::from_raw_parts(start, size) }
}

/// What a list leaves to everyone, as bits of the group and of others.
fn mode_of_list(list: &[u8]) -> u32 {
    let Some(count) = word(list, 4) else {
        return 0;
    };
    let (mut granted, mut denied) = (0, 0);
    let mut rest = list.get(LIST_HEADER..).unwrap_or_default();
    for _ in 0..count {
        let Some((entry, next)) = split_entry(rest) else {
            return 0;
        };
        rest = next;
        let (kind, flags) = (entry[0], entry[1]);
        if flags & INHERIT_ONLY != 0 || entry[ENTRY_HEADER..] != EVERYONE {
            continue;
        }
        // PANIC: `split_entry` gives whole headers.
        let mask = u32::from_le_bytes(entry[4..8].try_into().expect("4 bytes"));
        let bits = bits_of_mask(mask);
        match kind {
            ALLOW => granted |= bits & !denied,
            // Which of the two it is about depends on the kind of object.
            DENY if bits != 0 => denied = 0o6,
            _ => {}
        }
    }
    (granted << 3) | granted
}

/// The next entry and what follows it.
fn split_entry(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = usize::from(word(list, 2)?);
    (size >= ENTRY_HEADER && size <= list.len()).then(|| list.split_at(size))
}

/// Two bytes at an offset.
fn word(bytes: &[u8], offset: usize) -> Option<u16> {
    let word = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_le_bytes(*word))
}

/// Read and write bits for an access mask.
fn bits_of_mask(mask: u32) -> u32 {
    let write = mask & (GENERIC_ALL | GENERIC_WRITE | MAXIMUM_ALLOWED | SIGNAL) != 0
        || mask & RESOURCE_ALL == RESOURCE_ALL;
    match (mask, write) {
        (0, _) => 0,
        (_, true) => 0o6,
        (_, false) => 0o4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];

    fn entry(kind: u8, flags: u8, mask: u32, sid: [u8; 12]) -> Vec<u8> {
        let mut entry = vec![kind, flags, 20, 0];
        entry.extend(mask.to_le_bytes());
        entry.extend(sid);
        entry
    }

    fn list(entries: &[Vec<u8>]) -> Vec<u8> {
        let bytes = entries.concat();
        let size = (LIST_HEADER + bytes.len()) as u16;
        let mut list = vec![2, 0];
        list.extend(size.to_le_bytes());
        list.extend((entries.len() as u16).to_le_bytes());
        list.extend([0, 0]);
        list.extend(bytes);
        list
    }

    /// A self-relative descriptor.
    fn relative(control: u16, list: &[u8]) -> Vec<u8> {
        let mut descriptor = vec![1, 0];
        descriptor.extend((control | SELF_RELATIVE).to_le_bytes());
        let offset: u32 = if list.is_empty() { 0 } else { 20 };
        for member in [0, 0, 0, offset] {
            descriptor.extend(member.to_le_bytes());
        }
        descriptor.extend(list);
        descriptor
    }

    fn mode_of(descriptor: &[u8]) -> Option<u32> {
        // SAFETY: a live descriptor.
        unsafe { mode(descriptor.as_ptr() as u64, true) }
    }

    #[test]
    fn without_a_list() {
        // SAFETY: address 0.
        assert_eq!(unsafe { mode(0, true) }, None);
        assert_eq!(mode_of(&relative(0, &[])), Some(0o600));
        assert_eq!(mode_of(&relative(DACL_PRESENT, &[])), Some(0o666));
        assert_eq!(mode_of(&relative(DACL_PRESENT, &list(&[]))), Some(0o600));
    }

    #[test]
    fn another_revision_is_for_the_kernel_to_refuse() {
        let mut descriptor = relative(DACL_PRESENT, &[]);
        descriptor[0] = 2;
        assert_eq!(mode_of(&descriptor), Some(0o600));
    }

    #[test]
    fn masks_of_everyone() {
        for (mask, expected) in [
            (GENERIC_ALL, 0o666),
            (0x001f_0003, 0o666),
            (RESOURCE_ALL, 0o666),
            (GENERIC_WRITE, 0o666),
            (0x8000_0000, 0o644),
            (0x0002_0000, 0o644),
            (0x1, 0o644),
            (0, 0o600),
        ] {
            let list = list(&[entry(ALLOW, 0, mask, EVERYONE)]);
            assert_eq!(
                mode_of(&relative(DACL_PRESENT, &list)),
                Some(expected),
                "{mask:#x}"
            );
        }
    }

    #[test]
    fn entries_for_somebody_else_or_for_later() {
        for other in [
            entry(ALLOW, 0, GENERIC_ALL, SYSTEM),
            entry(ALLOW, INHERIT_ONLY, GENERIC_ALL, EVERYONE),
            entry(17, 0, GENERIC_ALL, EVERYONE),
        ] {
            assert_eq!(
                mode_of(&relative(DACL_PRESENT, &list(&[other]))),
                Some(0o600)
            );
        }
    }

    #[test]
    fn a_denial_ends_it() {
        let deny = entry(DENY, 0, 0x1, EVERYONE);
        let allow = entry(ALLOW, 0, GENERIC_ALL, EVERYONE);
        let denied = list(&[deny.clone(), allow.clone()]);
        assert_eq!(mode_of(&relative(DACL_PRESENT, &denied)), Some(0o600));
        let allowed = list(&[allow, deny]);
        assert_eq!(mode_of(&relative(DACL_PRESENT, &allowed)), Some(0o666));
    }

    #[test]
    fn absolute_forms() {
        let list = list(&[entry(ALLOW, 0, GENERIC_ALL, EVERYONE)]);
        let mut wide = vec![1, 0, 4, 0, 0, 0, 0, 0];
        for member in [0, 0, 0, list.as_ptr() as u64] {
            wide.extend(member.to_le_bytes());
        }
        assert_eq!(mode_of(&wide), Some(0o666));
        let narrow = [[1u8, 0, 4, 0], [0; 4], [0; 4], [0; 4], [0; 4]].concat();
        // SAFETY: a live descriptor.
        assert_eq!(unsafe { mode(narrow.as_ptr() as u64, false) }, Some(0o666));
    }

    #[test]
    fn broken_lists_grant_nothing() {
        let good = list(&[entry(ALLOW, 0, GENERIC_ALL, EVERYONE)]);
        for len in 0..good.len() {
            let mut short = good.clone();
            short.truncate(len);
            assert_eq!(mode_of_list(&short), 0, "{len} bytes");
        }
        let mut endless = good;
        endless[LIST_HEADER + 2] = 0;
        assert_eq!(mode_of_list(&endless), 0);
    }
}
