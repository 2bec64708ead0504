// SPDX-License-Identifier: MIT OR Apache-2.0

//! The operation log of the memory manager (MEM-103, MEM-104, MEM-107).

use crate::logic::{
    paging_log::{Action, Event, Kind, Operation, Record, INITIAL_UPDATE, REPEAT},
    paging_ring::{Command, Ring, Serving},
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
    let serving = Serving {
        device: 7,
        queue: 8,
        value: 9,
    };
    let write = |ring: &mut Ring<_>, thread, action| {
        let action = ring.complete(thread, action);
        ring.write(0, thread, action);
    };
    ring.serve(100, serving);
    write(&mut ring, 100, Action::default());
    write(&mut ring, 101, Action::default());
    write(&mut ring, 100, named);
    ring.end_serving();
    write(&mut ring, 100, Action::default());
    let queues: Vec<_> = (0..4)
        .map(|number| ring.after(number).unwrap().action)
        .map(|action| (action.device, action.queue, action.value))
        .collect();
    assert_eq!(queues, [(7, 8, 9), (0, 0, 0), (0, 3, 4), (0, 0, 0)]);
}

/// Records of the paging process are for who the batch is made for, and for nobody without one.
#[test]
fn mem_104_a_batch_of_the_paging_process_is_for_one_process() {
    let mut ring = ring(0);
    let of_batch = |batch, process| Action {
        batch,
        process,
        ..Action::default()
    };
    let reader = |ring: &Ring<_>, action| ring.complete(1, action).reader();
    assert_eq!(reader(&ring, of_batch(5, 0)), 0);
    ring.begin_batch(5, 7);
    assert_eq!(reader(&ring, of_batch(5, 0)), 7);
    assert_eq!(reader(&ring, of_batch(5, 8)), 8);
    for (action, expected) in [(of_batch(4, 0), 0), (of_batch(0, 0), 0)] {
        assert_eq!(reader(&ring, action), expected);
    }
    // What is about an allocation is for who has made that.
    let about = Action {
        made_for: 9,
        ..of_batch(5, 0)
    };
    assert_eq!(reader(&ring, about), 9);
    // Memory of a context is for root.
    ring.begin_batch(6, 0);
    assert_eq!(reader(&ring, of_batch(6, 0)), 0);
    ring.begin_batch(5, 7);
    ring.end_batch();
    assert_eq!(reader(&ring, of_batch(5, 0)), 0);
}

#[test]
fn mem_104_a_process_reads_no_physical_addresses() {
    let at = |segment| Action {
        segment,
        offset: 0x9000,
        ..Action::default()
    };
    let offsets = [0, 1].map(|segment| at(segment).without_physical().offset);
    assert_eq!(offsets, [0, 0x9000]);
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
            device: 11,
            queue: 2,
            value: 3,
            process: 4,
            made_for: 40,
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
        "12 time_ns=34 thread=56 type=BUILD op=UpdatePageTable batch=1 device=11 queue=2 value=3 \
         process=4 object=41 level=5 start=6 count=7 segment=8 offset=0x9000 source=0x9100 from=0x9200 \
         va=0xa000 size=0xb000 pattern=0xc flags=0x5 status=0x103\n"
    );
}

/// What the tracer shows: operations of tables and others are different events, and records that
/// only root reads are none.
#[test]
fn mem_105_events_of_records() {
    let event = |kind, operation| {
        Action {
            kind,
            operation,
            ..Action::default()
        }
        .event()
    };
    let none = Operation::None;
    for (kind, operation, expected) in [
        (
            Kind::Return,
            Operation::MakeResident,
            Some(Event::MakeResident),
        ),
        (Kind::Return, Operation::Evict, Some(Event::Evict)),
        (Kind::Return, none, None),
        (
            Kind::Build,
            Operation::UpdatePageTable,
            Some(Event::PtUpdate),
        ),
        (Kind::Build, Operation::FlushTlb, Some(Event::TlbFlush)),
        (
            Kind::Build,
            Operation::FillVirtual,
            Some(Event::PageOpBuild),
        ),
        (
            Kind::Build,
            Operation::MapApertureSegment,
            Some(Event::PageOpBuild),
        ),
        (Kind::Submit, none, Some(Event::PageOpSubmit)),
        (Kind::Complete, none, Some(Event::PageOpDone)),
        (Kind::Discard, none, Some(Event::Discard)),
        (Kind::Fault, none, Some(Event::PageFault)),
        // The tracer is told of every move, and not only of those of the processor.
        (Kind::Move, none, None),
        (Kind::Commit, none, None),
    ] {
        assert_eq!(event(kind, operation), expected, "{kind:?} {operation:?}");
    }
}

#[test]
fn mem_107_commands_are_words() {
    let words: [(&[u8], _); 30] = [
        (b"start\n", Some(Command::Start)),
        (b"stop", Some(Command::Stop)),
        (b"clear\n", Some(Command::Clear)),
        (b"hold", Some(Command::Hold)),
        (b"release\n", Some(Command::Release)),
        (b"fault", Some(Command::Fault)),
        (b"scratch 256\n", Some(Command::Scratch(256))),
        (b"buffer 4294967295", Some(Command::Buffer(u32::MAX))),
        (b"fail 2\n", Some(Command::Fail(2))),
        (b"busy 1", Some(Command::Busy(1))),
        (b"segment 64\n", Some(Command::Segment(64))),
        (b"move 5\n", Some(Command::Move(5))),
        (b"stay", Some(Command::Stay)),
        (b"random", Some(Command::Random)),
        (b"ordered\n", Some(Command::Ordered)),
        (b"fail", None),
        (b"move 0", None),
        (b"stay 1", None),
        (b"random 1", None),
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
    assert_eq!(b"segment 4294967295\n".len(), Command::MAX);
}
