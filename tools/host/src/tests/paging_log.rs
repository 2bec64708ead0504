// SPDX-License-Identifier: MIT OR Apache-2.0

//! The operation log of the memory manager (MEM-103, MEM-104, MEM-107).

use crate::logic::{
    paging_log::{Action, Kind, Operation, Record, INITIAL_UPDATE, REPEAT},
    paging_ring::{Command, Ring},
};
use proptest::collection::vec;
use proptest::prelude::*;

fn ring(places: usize) -> Ring<Vec<Record>> {
    Ring::new(vec![Record::default(); places])
}

fn numbers(ring: &Ring<Vec<Record>>) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(record) = ring.after(numbers.last().copied().unwrap_or(0)) {
        numbers.push(record.number);
    }
    numbers
}

fn about(start: u64) -> Action {
    Action {
        start,
        ..Action::default()
    }
}

#[test]
fn mem_104_without_places_nothing_is_kept_and_nothing_is_lost() {
    let mut ring = ring(0);
    ring.write(1, 2, about(3));
    assert_eq!((ring.after(0), ring.lost()), (None, 0));
    assert!(!ring.has_places());
    assert!(ring.give(vec![Record::default(); 2]).is_empty());
    // Who comes later gets his places back.
    assert_eq!(ring.give(vec![Record::default(); 3]).len(), 3);
    ring.write(1, 2, about(3));
    assert_eq!(numbers(&ring), [1]);
}

proptest! {
    /// Against a list of everything.
    #[test]
    fn mem_104_the_last_records_are_kept_and_the_others_counted(
        places in 1_usize..9,
        steps in vec(prop_oneof![8 => Just(true), 1 => Just(false)], 0..64),
    ) {
        let mut ring = ring(places);
        let mut all = Vec::new();
        let mut number = 0;
        for is_record in steps {
            if is_record {
                number += 1;
                ring.write(number * 10, 7, about(number));
                all.push(number);
            } else {
                ring.clear();
                all.clear();
            }
            let lost = all.len().saturating_sub(places);
            prop_assert_eq!(numbers(&ring), all.split_at(lost).1);
            prop_assert_eq!(ring.lost(), lost as u64);
            for kept in all.split_at(lost).1 {
                let record = ring.after(kept - 1).unwrap();
                prop_assert_eq!(record.action.start, *kept);
                prop_assert_eq!(record.at_ns, kept * 10);
            }
        }
    }
}

#[test]
fn mem_103_records_of_the_worker_name_the_operation_that_it_does() {
    let mut ring = ring(8);
    let named = Action {
        queue: 3,
        value: 4,
        ..Action::default()
    };
    ring.serve(100, 8, 9);
    ring.write(0, 100, Action::default());
    ring.write(0, 101, Action::default());
    ring.write(0, 100, named);
    ring.end_serving();
    ring.write(0, 100, Action::default());
    let queues: Vec<_> = (0..4)
        .map(|number| ring.after(number).unwrap().action)
        .map(|action| (action.queue, action.value))
        .collect();
    assert_eq!(queues, [(8, 9), (0, 0), (3, 4), (0, 0)]);
}

#[test]
fn mem_104_a_record_is_one_line() {
    let record = Record {
        number: 12,
        at_ns: 34,
        thread: 56,
        action: Action {
            kind: Kind::Build,
            operation: Operation::UpdatePageTable,
            batch: 1,
            queue: 2,
            value: 3,
            process: 4,
            object: 41,
            level: 5,
            start: 6,
            count: 7,
            segment: 8,
            offset: 0x9000,
            source: 0x9100,
            from: 0x9200,
            address: 0xa000,
            size: 0xb000,
            pattern: 0xc,
            flags: INITIAL_UPDATE | REPEAT,
            status: 0x103,
        },
    };
    let mut line = String::new();
    record.show(&mut line).unwrap();
    assert_eq!(
        line,
        "12 time_ns=34 thread=56 type=BUILD op=UpdatePageTable batch=1 queue=2 value=3 process=4 \
         object=41 level=5 start=6 count=7 segment=8 offset=0x9000 source=0x9100 from=0x9200 \
         va=0xa000 size=0xb000 pattern=0xc flags=0x5 status=0x103\n"
    );
}

#[test]
fn mem_107_commands_are_words() {
    let words: [(&[u8], _); 19] = [
        (b"start\n", Some(Command::Start)),
        (b"stop", Some(Command::Stop)),
        (b"clear\n", Some(Command::Clear)),
        (b"hold", Some(Command::Hold)),
        (b"release\n", Some(Command::Release)),
        (b"fault", Some(Command::Fault)),
        (b"scratch 256\n", Some(Command::Scratch(256))),
        (b"buffer 4294967295", Some(Command::Buffer(u32::MAX))),
        (b"buffer 4294967296", None),
        (b"buffer 0", None),
        (b"buffer +1", None),
        (b"buffer -1", None),
        (b"buffer 1 ", None),
        (b"buffer  1", None),
        (b"buffer", None),
        (b"fault 1", None),
        (b"release\n\n", None),
        (b"", None),
        (b"Start", None),
    ];
    for (word, command) in words {
        assert_eq!(Command::parse(word), command);
    }
    assert!(b"scratch 4096\n".len() <= Command::MAX);
}
