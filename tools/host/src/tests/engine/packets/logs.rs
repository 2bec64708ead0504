// SPDX-License-Identifier: MIT OR Apache-2.0

//! What engines write into the logs of native fences (gpu.md section 7).

use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::fault::{FaultKind, Illegal};
use crate::engine::fences::{FenceIndex, NativeFence};
use crate::engine::log::{Log, LogType};
use crate::engine::memory::Memory;
use crate::tests::engine::machine::{Event, FenceEvent, Machine, DATA, PROCESS};
use crate::tests::engine::program::{Program, DATA_QWORD, GREATER_OR_EQUAL};
use proptest::prelude::*;

const FENCE: FenceIndex = FenceIndex(3);
const CURRENT: u64 = DATA;
const MONITORED: u64 = DATA + 0x800;
/// The logs, of four entries each.
const SIGNALS: u64 = DATA + 0x1000;
const WAITS: u64 = DATA + 0x2000;
const ENTRIES: u32 = 4;

const HANDLE: u32 = 0x4000_0040;
const APPEND: u32 = !0;
/// Type and operation of ODX_WRITE_LOG.
const SELECT_WAIT: u32 = 1 | (1 << 8);
const SELECT_SIGNAL: u32 = 2;

/// A machine whose process has a fence open, and whose queue has logs.
fn machine() -> Machine {
    let mut machine = without_logs();

    for (ty, va) in [(LogType::Waits, WAITS), (LogType::Signals, SIGNALS)] {
        let log = Log {
            va,
            entries: ENTRIES,
        };

        machine.queue.set_log(ty, Some(log));
    }
    machine
}

fn without_logs() -> Machine {
    let mut machine = Machine::new();
    let fence = NativeFence {
        index: FENCE,
        monitored_value: MONITORED,
        handle: (),
    };

    machine.fences.open.push((PROCESS, CURRENT, fence));
    machine.set_word(MONITORED, u64::MAX);
    machine
}

/// Index of the first free entry, and how often the log has begun anew.
fn header(machine: &Machine, log: u64) -> (u32, u32) {
    let word = machine.word(log);

    (word as u32, (word >> 32) as u32)
}

/// An entry: value, handle, operation, and the two times.
fn entry(machine: &Machine, log: u64, index: u64) -> (u64, u32, u32, [u64; 2]) {
    let word = |place: u64| machine.word(log + 40 + 48 * index + 8 * place);

    assert_eq!([word(2), word(4)], [0, 0], "reserved");
    (
        word(0),
        word(1) as u32,
        (word(1) >> 32) as u32,
        [word(3), word(5)],
    )
}

fn refusal(outcome: &Outcome) -> Option<Illegal> {
    match outcome {
        Outcome::Faulted(record) => match record.kind {
            FaultKind::Packet(illegal) => Some(illegal),
            FaultKind::Page(_) => None,
        },
        _ => None,
    }
}

#[test]
fn gpu_72_gpu_73_gpu_74_entries_fill_the_log_and_begin_anew() {
    let mut machine = machine();

    for turn in 0..10_u64 {
        machine.clock.0.set(100 + turn);
        machine.done(
            &Program::new()
                .logged_signal(CURRENT, turn + 1, [HANDLE, APPEND])
                .0,
        );

        let written = turn as u32 + 1;

        assert_eq!(
            header(&machine, SIGNALS),
            (written % ENTRIES, written / ENTRIES)
        );
        assert_eq!(
            entry(&machine, SIGNALS, turn % 4),
            (turn + 1, HANDLE, 0, [0, 100 + turn])
        );
    }
    assert_eq!(header(&machine, WAITS), (0, 0));
}

/// GPU-76: value, entry, header, and only then MonitoredValue. GPU-62: what was logged is there
/// before the interrupt.
#[test]
fn gpu_76_the_order_of_a_signal() {
    let mut machine = machine();

    machine.set_word(MONITORED, 0);
    machine.submit(&Program::new().logged_signal(CURRENT, 7, [HANDLE, APPEND]).0);
    machine.ram.take_trace();
    machine.run();

    let at = |va| machine.find(va).unwrap();
    let first = at(SIGNALS + 40);
    let last = at(SIGNALS + 40 + 40);
    let header = at(SIGNALS);
    let stores: Vec<_> = machine
        .ram
        .take_trace()
        .into_iter()
        .filter_map(|event| match event {
            Event::Store64(to, _) => Some(("store", to)),
            Event::Load64(from) if from == at(MONITORED) => Some(("load", from)),
            _ => None,
        })
        .collect();
    let place = |what| stores.iter().position(|seen| *seen == what).unwrap();
    let order = [
        place(("store", at(CURRENT))),
        place(("store", first)),
        place(("store", last)),
        place(("store", header)),
        place(("load", at(MONITORED))),
    ];

    assert!(order.is_sorted(), "{stores:?}");
    // GPU-74: one store.
    assert_eq!(stores.iter().filter(|seen| seen.1 == header).count(), 1);
    assert_eq!(
        machine.fences.events.take(),
        [FenceEvent::Stored(FENCE), FenceEvent::Signaled(FENCE)]
    );
}

#[test]
fn gpu_82_the_times_of_a_wait() {
    let mut machine = machine();
    let wait = Program::new().logged_wait(CURRENT, 5, [HANDLE, APPEND]);

    // Met at once.
    machine.set_word(CURRENT, 5);
    machine.clock.0.set(10);
    machine.done(&wait.0);
    assert_eq!(entry(&machine, WAITS, 0), (5, HANDLE, 1, [10, 10]));

    // Met at the third look.
    machine.set_word(CURRENT, 4);
    machine.submit(&wait.0);
    for now in [20, 30] {
        machine.clock.0.set(now);
        assert_eq!(machine.step(SLICE), Outcome::BlockedOnFence(FENCE));
    }
    machine.set_word(CURRENT, 5);
    machine.clock.0.set(40);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(entry(&machine, WAITS, 1), (5, HANDLE, 1, [20, 40]));
    assert_eq!(header(&machine, WAITS), (2, 0));
    assert_eq!(header(&machine, SIGNALS), (0, 0));
}

/// GPU-75: its process decides which entry is written.
#[test]
fn gpu_75_an_entry_with_a_place() {
    let mut machine = machine();

    machine.done(&Program::new().logged_signal(CURRENT, 1, [HANDLE, 2]).0);
    assert_eq!(header(&machine, SIGNALS), (3, 0));
    assert_eq!(entry(&machine, SIGNALS, 2).0, 1);
    machine.done(&Program::new().logged_signal(CURRENT, 2, [HANDLE, 3]).0);
    assert_eq!(header(&machine, SIGNALS), (0, 1));
}

/// GPU-84: what the header says is not believed.
#[test]
fn gpu_84_the_header_is_no_bound() {
    for index in [ENTRIES, 84, 1 << 31, u32::MAX - 1] {
        let mut machine = machine();

        machine.submit(&Program::new().logged_signal(CURRENT, 1, [HANDLE, index]).0);
        assert_eq!(refusal(&machine.run()), Some(Illegal::Log));
        // Nothing was done.
        assert_eq!(machine.word(CURRENT), 0);
        assert_eq!(machine.fences.events.take(), []);
    }
    for first_free in [ENTRIES, ENTRIES + 1, u32::MAX] {
        let mut machine = machine();

        machine.set_word(SIGNALS, first_free.into());
        machine.set_word(SIGNALS + 16, u64::MAX);
        machine.done(&Program::new().logged_signal(CURRENT, 1, [HANDLE, APPEND]).0);
        assert_eq!(
            entry(&machine, SIGNALS, u64::from(first_free % ENTRIES)).0,
            1
        );
    }
}

/// GPU-71: a queue without logs writes none.
#[test]
fn gpu_71_without_a_log_the_packet_is_illegal() {
    let programs = [
        Program::new().logged_signal(CURRENT, 1, [HANDLE, APPEND]),
        Program::new().logged_wait(CURRENT, 0, [HANDLE, APPEND]),
        Program::new().write_log(SELECT_SIGNAL, HANDLE, 1, APPEND, false),
    ];

    for program in programs {
        let mut machine = without_logs();

        machine.submit(&program.0);
        assert_eq!(refusal(&machine.run()), Some(Illegal::Log));
        assert_eq!(machine.word(CURRENT), 0);
    }
}

/// A log stays whatever becomes of the queue.
#[test]
fn gpu_71_a_reset_and_a_ring_keep_the_logs() {
    let mut machine = machine();

    machine.queue.set_ring(None);
    machine.queue.reset();
    machine.done(&Program::new().logged_signal(CURRENT, 1, [HANDLE, APPEND]).0);
    assert_eq!(header(&machine, SIGNALS), (1, 0));
}

/// Somebody may wait for the value although the log is not there any more.
#[test]
fn fen_92_a_fault_of_the_log_comes_after_the_interrupt() {
    let mut machine = machine();
    let log = Log {
        va: 0x5555_0000,
        entries: ENTRIES,
    };

    machine.queue.set_log(LogType::Signals, Some(log));
    machine.set_word(MONITORED, 0);
    machine.submit(&Program::new().logged_signal(CURRENT, 1, [HANDLE, APPEND]).0);

    let Outcome::Faulted(record) = machine.run() else {
        panic!("no fault");
    };

    assert!(matches!(record.kind, FaultKind::Page(fault) if fault.va == log.va));
    assert_eq!(machine.word(CURRENT), 1);
    assert_eq!(
        machine.fences.events.take(),
        [FenceEvent::Stored(FENCE), FenceEvent::Signaled(FENCE)]
    );
}

#[test]
fn gpu_47_write_log_logs_what_earlier_packets_did() {
    let mut machine = machine();

    machine.clock.0.set(50);
    machine.submit(
        &Program::new()
            .wait64(CURRENT, GREATER_OR_EQUAL, 5, !0, 0)
            .write_log(SELECT_WAIT, HANDLE, 5, APPEND, true)
            .write_log(SELECT_WAIT, HANDLE, 6, APPEND, false)
            .write_log(SELECT_SIGNAL, HANDLE, 7, 1, false)
            .0,
    );
    assert_eq!(machine.step(SLICE), Outcome::BlockedOnFence(FENCE));
    machine.set_word(CURRENT, 5);
    machine.clock.0.set(60);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(entry(&machine, WAITS, 0), (5, HANDLE, 1, [50, 60]));
    assert_eq!(entry(&machine, WAITS, 1), (6, HANDLE, 1, [60, 60]));
    assert_eq!(entry(&machine, SIGNALS, 1), (7, HANDLE, 0, [0, 60]));
    assert_eq!(header(&machine, SIGNALS), (2, 0));
    // It raises nothing, and touches no fence.
    assert_eq!(machine.fences.events.take(), []);
}

/// A consumer that does not ask for entries reads what was there before.
#[test]
fn gpu_78_entries_of_a_lazy_engine_come_when_they_are_asked_for() {
    let mut machine = machine();

    machine.ram.is_lazy.set(true);
    machine.set_word(CURRENT, 5);
    machine.clock.0.set(50);
    machine.done(
        &Program::new()
            .logged_wait(CURRENT, 4, [HANDLE, APPEND])
            .write_log(SELECT_SIGNAL, HANDLE, 5, APPEND, false)
            .0,
    );
    assert_eq!(
        (header(&machine, WAITS).0, header(&machine, SIGNALS).0),
        (1, 1)
    );
    for log in [WAITS, SIGNALS] {
        assert_eq!(entry(&machine, log, 0), (0, 0, 0, [0, 0]), "not asked for");
    }

    machine.ram.drain();
    assert_eq!(entry(&machine, WAITS, 0), (4, HANDLE, 1, [50, 50]));
    assert_eq!(entry(&machine, SIGNALS, 0), (5, HANDLE, 0, [0, 50]));
}

/// Step 4 of GPU-76: whoever hears of a signal finds its entry, and all before it.
#[test]
fn gpu_78_gpu_76_a_lazy_engine_sends_entries_ahead_of_an_interrupt() {
    let mut machine = machine();

    machine.ram.is_lazy.set(true);
    machine.set_word(MONITORED, 0);
    machine.submit(
        &Program::new()
            .write_log(SELECT_WAIT, HANDLE, 3, APPEND, false)
            .logged_signal(CURRENT, 7, [HANDLE, APPEND])
            .0,
    );
    machine.ram.take_trace();
    machine.run();

    let trace = machine.ram.take_trace();
    let at = |event| trace.iter().position(|seen| *seen == event).unwrap();
    let [monitored, waited, signalled] =
        [MONITORED, WAITS + 40, SIGNALS + 40].map(|va| machine.find(va).unwrap());
    let look = at(Event::Load64(monitored));

    assert!(at(Event::Store64(waited, 3)) < look);
    assert!(at(Event::Store64(signalled, 7)) < look);
}

#[test]
fn gpu_86_write_log_tells_when_the_value_was_stored() {
    let mut machine = machine();

    machine.clock.0.set(50);
    machine.submit(
        &Program::new()
            .release(DATA_QWORD, 0, DATA + 0x100, 9)
            .wait64(CURRENT, GREATER_OR_EQUAL, 5, !0, 0)
            // The value was stored at 50.
            .write_log(SELECT_SIGNAL, HANDLE, 9, APPEND, false)
            // Nothing was stored since.
            .write_log(SELECT_SIGNAL, HANDLE, 9, APPEND, false)
            .release(DATA_QWORD, 0, DATA + 0x100, 10)
            .wait64(CURRENT, GREATER_OR_EQUAL, 6, !0, 0)
            // GPU-82: this entry is younger than the value, and so is the next one.
            .logged_signal(CURRENT, 11, [HANDLE, APPEND])
            .write_log(SELECT_SIGNAL, HANDLE, 10, APPEND, false)
            .0,
    );
    for (value, time) in [(5, 60), (6, 70)] {
        assert_eq!(machine.step(SLICE), Outcome::BlockedOnFence(FENCE));
        machine.set_word(CURRENT, value);
        machine.clock.0.set(time);
    }
    assert!(matches!(machine.run(), Outcome::Done(_)));

    let ends = [0, 1, 2, 3].map(|number| entry(&machine, SIGNALS, number).3[1]);

    assert_eq!(ends, [50, 60, 70, 70]);
}

#[test]
fn gpu_36_gpu_85_fields_of_write_log() {
    // A type with the operation of the other, one that does not exist, bits that are reserved, an
    // observed time of a signal.
    for (select, takes_observed) in [
        (1, false),
        (2 | (1 << 8), false),
        (3, false),
        (0, false),
        (SELECT_SIGNAL | (1 << 16), false),
        (SELECT_SIGNAL, true),
    ] {
        let mut machine = machine();

        machine.submit(
            &Program::new()
                .write_log(select, HANDLE, 1, APPEND, takes_observed)
                .0,
        );
        assert_eq!(refusal(&machine.run()), Some(Illegal::Field));
    }
    for (dword, bits) in [(6, 2), (7, 1)] {
        let mut program = Program::new()
            .write_log(SELECT_WAIT, HANDLE, 1, APPEND, true)
            .0;

        program[dword] |= bits;

        let mut machine = machine();

        machine.submit(&program);
        assert_eq!(refusal(&machine.run()), Some(Illegal::Field));
    }
}

/// What a program does with a fence.
#[derive(Clone, Copy, Debug)]
enum Action {
    Signal(u64),
    Wait(u64),
}

/// The packets of native fences.
fn own(actions: &[Action]) -> Program {
    actions
        .iter()
        .fold(Program::new(), |program, action| match *action {
            Action::Signal(value) => program.logged_signal(CURRENT, value, [HANDLE, APPEND]),
            Action::Wait(value) => program.logged_wait(CURRENT, value, [HANDLE, APPEND]),
        })
}

/// The same by packets that other GPUs have: the value, the entry and its time, the header, the
/// interrupt. The process counts the entries.
fn plain(actions: &[Action]) -> Program {
    let mut written = [0_u64; 2];

    actions.iter().fold(Program::new(), |program, action| {
        let (log, operation, value) = match *action {
            Action::Signal(value) => (SIGNALS, 0, value),
            Action::Wait(value) => (WAITS, 1, value),
        };
        let count = &mut written[operation as usize];
        let to = log + 40 + 48 * (*count % u64::from(ENTRIES));

        *count += 1;

        let header = (*count % u64::from(ENTRIES)) | ((*count / u64::from(ENTRIES)) << 32);
        let program = match *action {
            Action::Signal(_) => program.release(DATA_QWORD, 0, CURRENT, value),
            Action::Wait(_) => program.wait64(CURRENT, GREATER_OR_EQUAL, value, !0, 0),
        };
        let program = program
            .write(to, &[value as u32, (value >> 32) as u32, HANDLE, operation])
            .write(to + 16, &[0; 6])
            .release(3, 0, to + 40, 0)
            .write(log, &[header as u32, (header >> 32) as u32]);

        match *action {
            Action::Signal(_) => program.release(0, 6, MONITORED, value),
            Action::Wait(_) => program,
        }
    })
}

proptest! {
    /// GPU-47: both leave the same fence, logs and interrupts, but for the times.
    #[test]
    fn gpu_47_plain_packets_do_the_same(
        actions in prop::collection::vec(
            prop_oneof![(0..9_u64).prop_map(Action::Signal), (0..9_u64).prop_map(Action::Wait)],
            1..20,
        ),
        monitored in 0..9_u64,
    ) {
        let results: Vec<_> = [own(&actions), plain(&actions)]
            .iter()
            .map(|program| {
                let mut machine = machine();
                let mut waits = 0;

                machine.set_word(MONITORED, monitored);
                machine.submit(&program.0);
                // Whoever else signals is the test.
                let end = loop {
                    match machine.run() {
                        Outcome::BlockedOnFence(_) => {
                            waits += 1;
                            machine.set_word(CURRENT, 8);
                        }
                        end => break end,
                    }
                };

                assert!(matches!(end, Outcome::Done(_)), "{end:x?}");

                let logs: Vec<_> = [SIGNALS, WAITS]
                    .iter()
                    .flat_map(|log| {
                        let entries = (0..ENTRIES.into()).map(|index| {
                            let (value, handle, operation, _) = entry(&machine, *log, index);

                            (value, handle, operation)
                        });

                        entries
                            .chain([(machine.word(*log), 0, 0)])
                            .collect::<Vec<_>>()
                    })
                    .collect();

                (
                    machine.word(CURRENT),
                    machine.fences.events.take(),
                    waits,
                    logs,
                )
            })
            .collect();

        prop_assert_eq!(&results[0].0, &results[1].0);
        prop_assert_eq!(&results[0].1, &results[1].1);
        prop_assert_eq!(&results[0].2, &results[1].2);
        prop_assert_eq!(&results[0].3, &results[1].3);
    }
}
