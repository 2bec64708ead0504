// SPDX-License-Identifier: MIT OR Apache-2.0

//! The information store's rules against a store that is an ordered map.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::logic::info_rules::{
    are_distinct, are_flags_valid, check_array, check_delete, check_get, check_items, check_set,
    choose, find, guid_parts, has_file_after, read, Choice, Entry, GivenItem, Id, InfoItem, Key,
    Limits, NotRead, Refused, ATTACH_FD, BLOB, CREATE_ONLY, GET_FD, HAS_FD, REMOVE_FD, SEALED,
};
use crate::logic::{check_address, Invalid};

const LIMITS: Limits = Limits {
    entries: 6,
    bytes: 100,
    entry_bytes: 40,
    files: 2,
};

fn key(first: u8) -> Key {
    let mut key = [0; 16];

    key[0] = first;
    key
}

fn id(first: u8, schema: u32) -> Id {
    Id {
        key: key(first),
        schema,
    }
}

fn entry(id: Id, generation: u64) -> Entry {
    Entry {
        id,
        generation,
        size: 10,
        sealed: false,
        has_file: false,
    }
}

fn item(id: Id, flags: u32, expected: u64, size: usize) -> InfoItem {
    InfoItem {
        id,
        flags,
        expected,
        size,
    }
}

fn set(entries: &[Entry], items: &[InfoItem]) -> Result<(), Refused> {
    check_set(entries, items.iter().copied(), &LIMITS, |entry| *entry)
}

fn chosen(entries: &[Entry], first: u8, max_schema: u32) -> Choice {
    choose(entries, key(first), max_schema, |entry| *entry)
}

/// Reserved keys, as the specification writes them and as they are in memory.
#[test]
fn res_61_keys_are_written_as_guids() {
    let image_layout = [
        0xb7, 0xfd, 0xd4, 0x1a, 0x6c, 0x7c, 0x4f, 0x4b, 0xae, 0x9d, 0xf6, 0xa3, 0x9a, 0xb9, 0x32,
        0xdd,
    ];

    // 1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd
    assert_eq!(
        guid_parts(image_layout),
        (0x1ad4_fdb7, 0x7c6c, 0x4b4f, 0xae9d, 0xf6a3_9ab9_32dd)
    );
    assert_eq!(guid_parts(BLOB.key), (0, 0, 0, 0, 0));
}

#[test]
fn a_size_needs_an_address() {
    for (address, size, result) in [
        (0, 0, Ok(())),
        (1, 0, Ok(())),
        (1, u32::MAX, Ok(())),
        (0, 1, Err(Invalid)),
        (0, u32::MAX, Err(Invalid)),
    ] {
        assert_eq!(check_address(address, size), result, "{address} {size}");
    }
}

#[test]
fn res_56_one_to_eight_items() {
    for (count, items, result) in [
        (1, 1, Ok(1)),
        (8, 1, Ok(8)),
        (0, 1, Err(Invalid)),
        (9, 1, Err(Invalid)),
        (u32::MAX, 1, Err(Invalid)),
        (1, 0, Err(Invalid)),
    ] {
        assert_eq!(check_array(count, items), result, "{count} {items}");
    }
}

/// An item that is good by itself.
fn good(first: u8) -> GivenItem {
    GivenItem {
        id: id(first, 0),
        flags: 0,
        fd: 0,
        data: 0x1000,
        size: 7,
    }
}

fn items_are_good(items: &[GivenItem]) -> bool {
    check_items(items, |item| *item).is_ok()
}

#[test]
fn res_56_every_item_is_checked() {
    let empty = GivenItem {
        data: 0,
        size: 0,
        ..good(2)
    };
    let attached = GivenItem {
        flags: ATTACH_FD,
        fd: 7,
        ..good(3)
    };

    assert!(items_are_good(&[good(1), empty, attached]));
    for bad in [
        GivenItem { data: 0, ..good(4) },
        GivenItem { fd: 7, ..good(4) },
        GivenItem {
            flags: 1 << 4,
            ..good(4)
        },
        good(1),
    ] {
        assert!(!items_are_good(&[good(1), bad]), "{bad:?}");
        assert!(!items_are_good(&[bad, good(1)]), "{bad:?}");
    }
}

#[test]
fn res_57_arguments_of_a_get() {
    for (flags, data, size, good) in [
        (0, 0, 0, true),
        (GET_FD, 0, 0, true),
        (GET_FD, 0x1000, 9, true),
        (0, 0x1000, 0, true),
        (0, 0, 9, false),
        (GET_FD << 1, 0x1000, 9, false),
        ((1 << 31) | GET_FD, 0x1000, 9, false),
    ] {
        assert_eq!(
            check_get(flags, data, size).is_ok(),
            good,
            "{flags} {data} {size}"
        );
    }
}

/// A key or a schema that is not there comes before the room.
#[test]
fn res_57_a_reader_needs_room() {
    let entries = [entry(id(1, 3), 1), entry(id(1, 5), 2)];

    for (first, max, room, expected) in [
        (1, 3, 10, Ok(0)),
        (1, 4, usize::MAX, Ok(0)),
        (1, 9, 10, Ok(1)),
        (1, 9, 9, Err(NotRead::TooLarge(10))),
        (1, 3, 0, Err(NotRead::TooLarge(10))),
        (1, 2, 0, Err(NotRead::TooNew(3))),
        (2, 9, 0, Err(NotRead::Absent)),
    ] {
        assert_eq!(
            read(&entries, key(first), max, room, |entry| *entry),
            expected,
            "{first} {max} {room}"
        );
    }
}

#[test]
fn res_58_flags_of_an_entry() {
    for (sealed, has_file, flags) in [
        (false, false, 0),
        (true, false, SEALED),
        (false, true, HAS_FD),
        (true, true, SEALED | HAS_FD),
    ] {
        let entry = Entry {
            sealed,
            has_file,
            ..entry(BLOB, 1)
        };

        assert_eq!(entry.flags(), flags, "{sealed} {has_file}");
    }
}

#[test]
fn res_64_the_bytes_of_one_entry() {
    for (size, result) in [
        (0, Ok(())),
        (40, Ok(())),
        (41, Err(Refused::Full)),
        (usize::MAX, Err(Refused::Full)),
    ] {
        assert_eq!(LIMITS.check_entry(size), result, "{size}");
    }
}

#[test]
fn res_56_flags_of_an_item() {
    for (flags, fd, valid) in [
        (0, 0, true),
        (CREATE_ONLY | SEALED | REMOVE_FD, 0, true),
        (ATTACH_FD | CREATE_ONLY | SEALED, 7, true),
        (ATTACH_FD, 0, true),
        (ATTACH_FD, -1, true),
        (0, 7, false),
        (REMOVE_FD, 7, false),
        (0, -1, false),
        (ATTACH_FD | REMOVE_FD, 7, false),
        (1 << 4, 0, false),
        (1 << 31, 0, false),
    ] {
        assert_eq!(are_flags_valid(flags, fd), valid, "{flags:#x} {fd}");
    }
}

#[test]
fn res_56_an_attached_file_stays_unless_told_otherwise() {
    for (had, flags, has) in [
        (false, 0, false),
        (true, 0, true),
        (true, REMOVE_FD, false),
        (false, REMOVE_FD, false),
        (false, ATTACH_FD, true),
        (true, ATTACH_FD, true),
    ] {
        assert_eq!(has_file_after(had, flags), has, "{had} {flags:#x}");
    }
}

/// The example of the specification.
#[test]
fn res_57_a_reader_gets_the_highest_schema_it_knows() {
    let entries = [
        entry(id(1, 0), 1),
        entry(id(2, 1), 2),
        entry(id(2, 3), 3),
        entry(id(3, 7), 4),
    ];

    for (first, max, expected) in [
        (2, 0, Choice::TooNew(1)),
        (2, 1, Choice::Found(1)),
        (2, 2, Choice::Found(1)),
        (2, 3, Choice::Found(2)),
        (2, 9, Choice::Found(2)),
        (2, u32::MAX, Choice::Found(2)),
        (1, 0, Choice::Found(0)),
        (3, 6, Choice::TooNew(7)),
        (3, 7, Choice::Found(3)),
        (0, u32::MAX, Choice::Absent),
        (4, u32::MAX, Choice::Absent),
        (4, 0, Choice::Absent),
    ] {
        assert_eq!(chosen(&entries, first, max), expected, "{first} {max}");
    }
    assert_eq!(chosen(&[], 1, u32::MAX), Choice::Absent);
}

#[test]
fn res_56_what_refuses_an_item() {
    let mut sealed = entry(id(2, 0), 5);

    sealed.sealed = true;

    let entries = [entry(id(1, 0), 4), sealed];

    for (refused, item) in [
        (Ok(()), item(id(1, 0), 0, 0, 1)),
        (Ok(()), item(id(1, 0), 0, 4, 1)),
        (Ok(()), item(id(1, 1), CREATE_ONLY, 0, 1)),
        (Err(Refused::Exists), item(id(1, 0), CREATE_ONLY, 0, 1)),
        (Err(Refused::Exists), item(id(2, 0), CREATE_ONLY, 0, 1)),
        (Err(Refused::Sealed), item(id(2, 0), 0, 0, 1)),
        (Err(Refused::Sealed), item(id(2, 0), 0, 5, 1)),
        (Err(Refused::Sealed), item(id(2, 0), REMOVE_FD, 9, 1)),
        (Err(Refused::Generation(4)), item(id(1, 0), 0, 5, 1)),
        (Err(Refused::Generation(4)), item(id(1, 0), 0, 3, 99)),
        (Err(Refused::Generation(0)), item(id(3, 0), 0, 4, 1)),
    ] {
        assert_eq!(set(&entries, &[item]), refused, "{item:?}");
    }
}

#[test]
fn res_56_the_first_refused_item_decides() {
    let entries = [entry(id(1, 0), 4)];
    let good = item(id(9, 0), 0, 0, 1);
    let exists = item(id(1, 0), CREATE_ONLY, 0, 1);
    let absent = item(id(2, 0), 0, 7, 1);

    assert_eq!(set(&entries, &[good, exists, absent]), Err(Refused::Exists));
    assert_eq!(
        set(&entries, &[absent, good, exists]),
        Err(Refused::Generation(0))
    );
}

#[test]
fn res_56_one_call_names_an_entry_once() {
    let one = item(id(1, 0), 0, 0, 1);
    let other_schema = item(id(1, 1), 0, 0, 1);
    let again = item(id(1, 0), REMOVE_FD, 7, 9);

    for (distinct, items) in [
        (true, &[][..]),
        (true, &[one, other_schema]),
        (false, &[one, other_schema, again]),
        (false, &[other_schema, one, again]),
    ] {
        assert_eq!(are_distinct(items, |item| item.id), distinct, "{items:?}");
    }
}

/// Each limit, reached and passed by one.
#[test]
fn res_64_limits_of_an_object() {
    let mut entries: Vec<_> = (0..5).map(|n| entry(id(n, 0), 1)).collect();

    entries[0].has_file = true;
    for (refused, items) in [
        (Ok(()), vec![item(id(8, 0), 0, 0, 40)]),
        (Err(Refused::Full), vec![item(id(8, 0), 0, 0, 41)]),
        // 50 bytes are there.
        (Err(Refused::Full), vec![item(id(0, 0), 0, 0, 41)]),
        (
            Ok(()),
            vec![item(id(0, 0), 0, 0, 40), item(id(1, 0), 0, 0, 30)],
        ),
        (
            Err(Refused::Full),
            vec![item(id(0, 0), 0, 0, 40), item(id(1, 0), 0, 0, 31)],
        ),
        // A sixth entry fits, a seventh does not.
        (
            Err(Refused::Full),
            vec![item(id(8, 0), 0, 0, 0), item(id(9, 0), 0, 0, 0)],
        ),
        (Ok(()), vec![item(id(1, 0), ATTACH_FD, 0, 0)]),
        (
            Err(Refused::Full),
            vec![
                item(id(1, 0), ATTACH_FD, 0, 0),
                item(id(2, 0), ATTACH_FD, 0, 0),
            ],
        ),
        // The file of the first entry is replaced, or makes room.
        (
            Ok(()),
            vec![
                item(id(0, 0), ATTACH_FD, 0, 0),
                item(id(2, 0), ATTACH_FD, 0, 0),
            ],
        ),
        (
            Ok(()),
            vec![
                item(id(1, 0), ATTACH_FD, 0, 0),
                item(id(2, 0), ATTACH_FD, 0, 0),
                item(id(0, 0), REMOVE_FD, 0, 0),
            ],
        ),
    ] {
        assert_eq!(set(&entries, &items), refused, "{items:?}");
    }
}

#[test]
fn res_58_delete() {
    let mut sealed = entry(id(2, 0), 5);

    sealed.sealed = true;

    let entries = [entry(BLOB, 3), entry(id(1, 7), 4), sealed];

    for (id, expected, result) in [
        (BLOB, 0, Ok(0)),
        (BLOB, 3, Ok(0)),
        (id(1, 7), 4, Ok(1)),
        (id(1, 7), 5, Err(Refused::Generation(4))),
        (id(1, 6), 0, Err(Refused::Absent)),
        (id(1, 6), 4, Err(Refused::Generation(0))),
        (id(2, 0), 0, Err(Refused::Sealed)),
        (id(2, 0), 5, Err(Refused::Sealed)),
    ] {
        assert_eq!(
            check_delete(&entries, id, expected, |entry| *entry),
            result,
            "{id:?} {expected}"
        );
    }
}

fn ids() -> impl Strategy<Value = Id> {
    (0u8..3, 0u32..4).prop_map(|(first, schema)| id(first, schema))
}

fn items() -> impl Strategy<Value = InfoItem> {
    (ids(), 0u32..16, 0u64..6, 0usize..45)
        .prop_filter("flags", |(_, flags, ..)| are_flags_valid(*flags, 0))
        .prop_map(|(id, flags, expected, size)| item(id, flags, expected, size))
}

/// The specification in other words: a map, and the change made on a copy of it.
fn model(
    map: &BTreeMap<Id, Entry>,
    items: &[InfoItem],
    generation: u64,
) -> Result<BTreeMap<Id, Entry>, Refused> {
    let mut after = map.clone();

    for item in items {
        let old = map.get(&item.id);

        if old.is_some() && item.flags & CREATE_ONLY != 0 {
            return Err(Refused::Exists);
        }
        if old.is_some_and(|old| old.sealed) {
            return Err(Refused::Sealed);
        }

        let present = old.map_or(0, |old| old.generation);

        if ![0, present].contains(&item.expected) {
            return Err(Refused::Generation(present));
        }

        let file = match item.flags & (ATTACH_FD | REMOVE_FD) {
            0 => old.is_some_and(|old| old.has_file),
            change => change == ATTACH_FD,
        };

        after.insert(
            item.id,
            Entry {
                id: item.id,
                generation,
                size: item.size,
                sealed: item.flags & SEALED != 0,
                has_file: file,
            },
        );
    }

    let over = after.len() > LIMITS.entries
        || after.values().map(|entry| entry.size).sum::<usize>() > LIMITS.bytes
        || after.values().any(|entry| entry.size > LIMITS.entry_bytes)
        || after.values().filter(|entry| entry.has_file).count() > LIMITS.files;

    if over {
        Err(Refused::Full)
    } else {
        Ok(after)
    }
}

proptest! {
    /// Random histories of sets and deletes: the rules and the map always agree, and every reader
    /// gets what a search of the whole map finds.
    #[test]
    fn res_56_res_57_random_histories(
        steps in prop::collection::vec(
            (prop::collection::vec(items(), 0..4), ids(), 0u64..6), 1..24),
    ) {
        let mut map = BTreeMap::new();
        let mut generation = 0;

        for (items, victim, expected) in steps {
            let list: Vec<Entry> = map.values().copied().collect();
            let names: BTreeSet<_> = items.iter().map(|item| item.id).collect();

            prop_assert_eq!(are_distinct(&items, |item| item.id), names.len() == items.len());
            if names.len() == items.len() {
                let after = model(&map, &items, generation + 1);

                prop_assert_eq!(set(&list, &items), after.as_ref().map(drop).map_err(|e| *e));
                if let Ok(after) = after {
                    map = after;
                    generation += 1;
                }
            }

            let list: Vec<Entry> = map.values().copied().collect();

            match check_delete(&list, victim, expected, |entry| *entry) {
                Ok(place) => {
                    prop_assert_eq!(list[place].id, victim);
                    prop_assert!([0, list[place].generation].contains(&expected));
                    map.remove(&victim);
                    generation += 1;
                }
                Err(Refused::Absent) => {
                    prop_assert!(expected == 0 && !map.contains_key(&victim));
                }
                Err(Refused::Sealed) => prop_assert!(map[&victim].sealed),
                Err(Refused::Generation(present)) => {
                    prop_assert_ne!(expected, 0);
                    prop_assert_ne!(expected, present);
                    prop_assert_eq!(present, map.get(&victim).map_or(0, |entry| entry.generation));
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }

            let list: Vec<Entry> = map.values().copied().collect();

            for first in 0..4 {
                for max in 0..5 {
                    let schemas: Vec<u32> = map
                        .keys()
                        .filter(|id| id.key == key(first))
                        .map(|id| id.schema)
                        .collect();

                    match (chosen(&list, first, max), schemas.iter().rfind(|&&s| s <= max)) {
                        (Choice::Found(place), Some(&best)) => {
                            prop_assert_eq!(list[place].id, id(first, best));
                        }
                        (Choice::TooNew(lowest), None) => {
                            prop_assert_eq!(Some(&lowest), schemas.first());
                        }
                        (Choice::Absent, None) => prop_assert!(schemas.is_empty()),
                        (choice, best) => prop_assert!(false, "{:?} {:?}", choice, best),
                    }
                }
            }
        }
    }

    /// A binary search finds exactly the entries that are there.
    #[test]
    fn every_entry_is_found(names in prop::collection::btree_set(ids(), 0..9), wanted in ids()) {
        let list: Vec<_> = names.iter().map(|id| entry(*id, 1)).collect();

        match find(&list, wanted, |entry| *entry) {
            Ok(place) => prop_assert_eq!(list[place].id, wanted),
            Err(_) => prop_assert!(!names.contains(&wanted)),
        }
    }
}
