// SPDX-License-Identifier: MIT OR Apache-2.0

//! A command buffer from its submission to its progress value.

use crate::engine::command_processor::{Outcome, SLICE};
use crate::engine::memory::PAGE_SIZE;
use crate::engine::queue::{Submission, SubmitError};
use crate::tests::engine::machine::{Event, Machine, BUFFER, DATA, PROGRESS};
use crate::tests::engine::program;
use crate::tests::engine::program::{Program, EQUAL, GREATER_OR_EQUAL};

#[test]
fn gpu_7_an_empty_buffer_is_done_at_once() {
    let mut machine = Machine::new();

    machine.done(&[]);
    assert_eq!(machine.step(SLICE), Outcome::Idle);
}

#[test]
fn gpu_8_the_progress_value_is_one_64_bit_store_after_all_others() {
    let mut machine = Machine::new();

    machine.submit(&Program::new().write(DATA, &[1]).0);
    machine.ram.take_trace();
    machine.run();

    let trace = machine.ram.take_trace();
    let at = machine.find(PROGRESS).unwrap();

    assert_eq!(trace.last(), Some(&Event::Store64(at, 1)));
}

#[test]
fn a_queue_takes_one_submission_at_a_time() {
    let mut machine = Machine::new();
    let submission = |va, length| Submission {
        va,
        length,
        progress: None,
    };

    for (va, length) in [(BUFFER + 1, 4), (BUFFER + 2, 4), (BUFFER, 3), (BUFFER, 6)] {
        assert_eq!(
            machine.queue.submit(submission(va, length)),
            Err(SubmitError::Alignment)
        );
    }
    machine.submit(&[0x8000_0000]);
    assert_eq!(
        machine.queue.submit(submission(BUFFER, 4)),
        Err(SubmitError::Busy)
    );
    assert_eq!(machine.queue.reset().map(|old| old.va), Some(BUFFER));
    assert_eq!(machine.step(SLICE), Outcome::Idle);
    machine.done(&[]);
}

#[test]
fn gpu_10_a_buffer_is_read_when_it_is_executed() {
    let mut machine = Machine::new();
    let wait = Program::new().wait(DATA, EQUAL, 1, !0, 0);
    let place = BUFFER + wait.0.len() as u64 * 4;

    machine.submit(&wait.write(DATA + 8, &[5]).0);
    assert!(matches!(machine.run(), Outcome::Blocked { .. }));
    // Changed between the wait and its signal.
    machine.load(place, &Program::new().write(DATA + 8, &[6]).0);
    machine.set_word(DATA, 1);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert_eq!(machine.word(DATA + 8), 6);
}

#[test]
fn gpu_16_every_dword_of_a_packet_is_read_once() {
    let mut machine = Machine::new();
    let program = Program::new()
        .write(DATA, &[1; 40])
        .write64(DATA, 5)
        .copy(DATA, DATA + 0x100, 0x40)
        .fill(DATA + 0x200, 1, 0x40)
        .move_word(DATA, DATA + 8, true)
        .wait(DATA + 0x10, GREATER_OR_EQUAL, 0, !0, 0)
        .wait64(DATA + 0x10, GREATER_OR_EQUAL, 0, !0, 0)
        .release(program::DATA_QWORD, 2, DATA, 7)
        .acquire()
        .atomic(0x2f, DATA, 1, 0)
        .cond_exec(DATA, 0)
        .trap(0, 0)
        .delay(1);

    machine.submit(&program.0);
    machine.ram.take_trace();

    // As soon as a dword has been read, others put something illegal there. Small steps, so that
    // most packets are resumed.
    let at = machine.find(BUFFER).unwrap();

    machine.ram.with_others(move |ram, event| {
        if let Event::Load32(from) = event {
            if from.address & !(PAGE_SIZE - 1) == at.address {
                ram.write(from, &[0; 4]).unwrap();
            }
        }
    });

    let mut outcome = Outcome::Ran;

    for _ in 0..1000 {
        outcome = machine.step(3);
        if outcome != Outcome::Ran {
            break;
        }
    }
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:x?}");

    let mut reads = vec![0; program.0.len()];

    for event in machine.ram.take_trace() {
        if let Event::Load32(from) = event {
            if from.address & !(PAGE_SIZE - 1) == at.address {
                reads[(from.address - at.address) as usize / 4] += 1;
            }
        }
    }
    assert_eq!(reads, vec![1; program.0.len()]);
    assert_eq!(machine.word(DATA), 8);
}

#[test]
fn fen_41_a_buffer_has_been_fetched_when_its_last_packet_has_been_read() {
    let mut machine = Machine::new();
    let wait = || Program::new().wait(DATA, EQUAL, 1, !0, 0);

    assert!(!machine.queue.is_fetched(), "there is none");

    // A wait is its last packet.
    machine.submit(&wait().0);
    assert!(!machine.queue.is_fetched());
    assert!(matches!(machine.run(), Outcome::Blocked { .. }));
    assert!(machine.queue.is_fetched());
    machine.set_word(DATA, 1);
    assert!(matches!(machine.run(), Outcome::Done(_)));
    assert!(!machine.queue.is_fetched());

    // Something is behind it, in the buffer itself or in the one that has called it.
    let inner = DATA + PAGE_SIZE;
    let call = Program::new().indirect(inner, wait().0.len() as u32, 0);

    machine.load(inner, &wait().0);
    for (program, is_fetched) in [
        (wait().dwords(&[0x8000_0000]), false),
        (call.clone(), true),
        (call.dwords(&[0x8000_0000]), false),
    ] {
        machine.set_word(DATA, 0);
        machine.submit(&program.0);
        assert!(matches!(machine.run(), Outcome::Blocked { .. }));
        assert_eq!(machine.queue.is_fetched(), is_fetched);
        machine.set_word(DATA, 1);
        assert!(matches!(machine.run(), Outcome::Done(_)));
    }

    // Of WRITE_DATA the rest is still in the buffer, of DMA_DATA nothing is.
    for (program, is_fetched) in [
        (Program::new().write(DATA, &[1; 64]), false),
        (Program::new().fill(DATA, 1, 4 * PAGE_SIZE as u32), true),
    ] {
        machine.submit(&program.0);
        assert_eq!(machine.step(16), Outcome::Ran);
        assert_eq!(machine.queue.is_fetched(), is_fetched);
        assert!(matches!(machine.run(), Outcome::Done(_)));
    }
}
