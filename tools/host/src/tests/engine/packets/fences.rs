// SPDX-License-Identifier: MIT OR Apache-2.0

//! ODX_SIGNAL_FENCE, ODX_WAIT_FENCE, and the plain packets that do the same.

use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::fault::{FaultKind, Illegal};
use crate::engine::fences::{FenceIndex, NativeFence};
use crate::tests::engine::machine::{Event, FenceEvent, Machine, DATA, PROCESS};
use crate::tests::engine::program::{Program, DATA_QWORD, GREATER_OR_EQUAL};

const FENCE: FenceIndex = FenceIndex(3);
/// Where CurrentValue and MonitoredValue are.
const CURRENT: u64 = DATA;
const MONITORED: u64 = DATA + 0x800;

/// Flag NO_INTERRUPT.
const NO_INTERRUPT: u32 = 2;
/// INT_SEL 6.
const CONDITIONAL: u32 = 6;

/// A machine whose process has a fence open.
fn machine(current: u64, monitored: u64) -> Machine {
    let mut machine = Machine::new();
    let fence = NativeFence {
        index: FENCE,
        monitored_value: MONITORED,
        handle: (),
    };

    machine.fences.open.push((PROCESS, CURRENT, fence));
    machine.set_word(CURRENT, current);
    machine.set_word(MONITORED, monitored);
    machine
}

/// What was done with the fence.
fn events(machine: &Machine) -> Vec<FenceEvent> {
    machine.fences.events.take()
}

/// What a fault says is wrong with a packet.
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
fn fen_67_a_signal_interrupts_only_above_monitored_value() {
    const STORED: FenceEvent = FenceEvent::Stored(FENCE);
    const SIGNALED: FenceEvent = FenceEvent::Signaled(FENCE);

    for (monitored, value, interrupts) in [
        (41, 41, false),
        (41, 42, true),
        (41, u64::MAX, true),
        (0, 0, false),
        (0, 1, true),
        (u64::MAX - 1, u64::MAX - 1, false),
        (u64::MAX - 1, u64::MAX, true),
        // FEN-56: nobody waits.
        (u64::MAX, u64::MAX, false),
        (u64::MAX, 0, false),
    ] {
        let expected: &[_] = if interrupts {
            &[STORED, SIGNALED]
        } else {
            &[STORED]
        };
        let ones = Program::new().signal_fence(0, CURRENT, value);
        // GPU-45, GPU-47: value, then the conditional interrupt.
        let plain = Program::new()
            .release(DATA_QWORD, 0, CURRENT, value)
            .release(0, CONDITIONAL, MONITORED, value);

        for program in [ones, plain] {
            let mut machine = machine(41, monitored);

            machine.done(&program.0);
            assert_eq!(machine.word(CURRENT), value);
            assert_eq!(machine.word(MONITORED), monitored);
            assert_eq!(events(&machine), expected, "{value} above {monitored}");
        }

        let mut machine = machine(41, monitored);

        machine.done(&Program::new().signal_fence(NO_INTERRUPT, CURRENT, value).0);
        assert_eq!(events(&machine), [STORED]);
    }
}

/// GPU-62, and the order of G1 and G4.
#[test]
fn fen_58_one_store_and_then_one_load() {
    let mut machine = machine(1, 1);

    machine.submit(&Program::new().signal_fence(0, CURRENT, 2).0);
    machine.ram.take_trace();
    machine.run();

    let current = machine.find(CURRENT).unwrap();
    let monitored = machine.find(MONITORED).unwrap();
    let trace = machine.ram.take_trace();
    let is_one = |event: &&Event| {
        [
            Event::Store64(current, 2),
            Event::Load64(current),
            Event::Load64(monitored),
        ]
        .contains(event)
    };
    let seen: Vec<Event> = trace.iter().filter(is_one).copied().collect();

    assert_eq!(seen, [Event::Store64(current, 2), Event::Load64(monitored)]);
}

#[test]
fn gpu_43_a_wait_is_not_polled() {
    let waits = [
        Program::new().wait_fence(CURRENT, 5),
        Program::new().wait64(CURRENT, GREATER_OR_EQUAL, 5, !0, 0),
    ];

    for wait in waits {
        let mut machine = machine(4, 4);

        machine.submit(&wait.write(DATA + 8, &[1]).0);
        for _ in 0..3 {
            assert_eq!(machine.step(SLICE), Outcome::BlockedOnFence(FENCE));
            assert!(!machine
                .engine
                .is_reached(&machine.queue, &machine.ram, &machine.fences));
        }
        assert_eq!(machine.word(DATA + 8), 0);
        machine.set_word(CURRENT, 5);
        assert!(machine
            .engine
            .is_reached(&machine.queue, &machine.ram, &machine.fences));
        assert!(matches!(machine.step(SLICE), Outcome::Done(_)));
        assert_eq!(machine.word(DATA + 8), 1);
        // A wait that is met at once is none.
        machine.done(&Program::new().wait_fence(CURRENT, 5).0);
        assert_eq!(events(&machine), []);
    }
}

#[test]
fn gpu_48_an_address_that_is_no_fence_is_illegal() {
    let elsewhere = [CURRENT + 8, MONITORED, DATA + 0x1000];

    for va in elsewhere {
        for program in [
            Program::new().signal_fence(0, va, 9),
            Program::new().wait_fence(va, 9),
        ] {
            let mut machine = machine(1, 0);

            machine.submit(&program.0);
            assert_eq!(refusal(&machine.run()), Some(Illegal::Fence));
            assert_eq!(machine.word(CURRENT), 1);
            assert_eq!(events(&machine), []);
        }
    }
    // GPU-45: MonitoredValue, and not CurrentValue.
    let mut machine = machine(1, 0);

    machine.submit(&Program::new().release(0, CONDITIONAL, CURRENT, 9).0);
    assert_eq!(refusal(&machine.run()), Some(Illegal::Fence));
    assert_eq!(events(&machine), []);
}

/// Another process has it open at the same address.
#[test]
fn gpu_58_a_fence_of_another_process_is_none() {
    let mut machine = machine(1, 0);

    machine.fences.open[0].0 = PROCESS + 1;
    machine.submit(&Program::new().signal_fence(0, CURRENT, 9).0);
    assert_eq!(refusal(&machine.run()), Some(Illegal::Fence));
}

/// A queue whose wait cannot be looked at has to run, to find its fault.
#[test]
fn gpu_53_a_wait_for_a_fence_that_is_gone_is_looked_at() {
    let mut machine = machine(1, 0);

    machine.submit(&Program::new().wait_fence(CURRENT, 5).0);
    assert_eq!(machine.step(SLICE), Outcome::BlockedOnFence(FENCE));
    machine.fences.open.clear();
    assert!(machine
        .engine
        .is_reached(&machine.queue, &machine.ram, &machine.fences));
    assert_eq!(refusal(&machine.step(SLICE)), Some(Illegal::Fence));
}

#[test]
fn gpu_56_of_a_fence_that_is_always_signaled_waits_pass_and_signals_store_nothing() {
    let mut machine = machine(7, 0);

    machine.fences.always_signaled.set(true);
    machine.done(
        &Program::new()
            .wait_fence(CURRENT, 8)
            .wait64(CURRENT, GREATER_OR_EQUAL, 8, !0, 0)
            .signal_fence(0, CURRENT, 9)
            .0,
    );
    assert_eq!(machine.word(CURRENT), 7);
    assert_eq!(events(&machine), []);
}

/// M23: whichever store comes last, it is the highest value.
#[test]
fn fen_104_a_signal_beside_always_signaled_leaves_the_highest_value() {
    let mut machine = machine(7, 0);

    machine.fences.becomes_always_signaled.set(true);
    machine.done(&Program::new().signal_fence(0, CURRENT, 9).0);
    assert_eq!(machine.word(CURRENT), u64::MAX);
}

#[test]
fn gpu_36_fields_of_fence_packets() {
    for (dword, bits) in [(1, 1), (1, 4), (8, 1), (9, 1 << 31), (2, 4)] {
        let mut program = Program::new().signal_fence(0, CURRENT, 9).0;

        program[dword] |= bits;

        let mut machine = machine(1, 0);

        machine.submit(&program);
        assert!(refusal(&machine.run()).is_some(), "dword {dword}");
        assert_eq!(machine.word(CURRENT), 1);
    }
}
