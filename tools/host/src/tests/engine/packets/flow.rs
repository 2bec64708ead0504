// SPDX-License-Identifier: MIT OR Apache-2.0

//! Packets that decide what is executed, and when: INDIRECT_BUFFER, COND_EXEC, ODX_DELAY.

use super::run;
use crate::engine::command_processor::Outcome;
use crate::engine::memory::PAGE_SIZE;
use crate::tests::engine::machine::{Machine, DATA};
use crate::tests::engine::program::{Program, CHAIN};

#[test]
fn indirect_buffer_comes_back() {
    let mut machine = Machine::new();
    let inner = DATA + PAGE_SIZE;
    let program = Program::new().write(DATA + 16, &[1, 2, 3]).0;

    machine.load(inner, &program);
    machine.done(
        &Program::new()
            .indirect(inner, program.len() as u32, 0)
            .write(DATA + 32, &[4])
            .0,
    );
    assert_eq!(machine.word(DATA + 16), 0x2_0000_0001);
    assert_eq!(machine.word(DATA + 24), 3);
    assert_eq!(machine.word(DATA + 32), 4);
}

#[test]
fn a_chained_buffer_does_not_come_back() {
    let mut machine = Machine::new();
    let inner = DATA + PAGE_SIZE;
    let program = Program::new().write(DATA + 16, &[1]).0;

    machine.load(inner, &program);
    // What follows the packet would be illegal.
    machine.done(
        &Program::new()
            .indirect(inner, program.len() as u32, CHAIN)
            .dwords(&[0, 0])
            .0,
    );
    assert_eq!(machine.word(DATA + 16), 1);
}

#[test]
fn a_buffer_chained_from_an_indirect_one_ends_at_its_caller() {
    let mut machine = Machine::new();
    let (inner, last) = (DATA + PAGE_SIZE, DATA + 2 * PAGE_SIZE);
    let chained = Program::new().write(DATA, &[1]).0;

    machine.load(last, &chained);
    machine.load(
        inner,
        &Program::new().indirect(last, chained.len() as u32, CHAIN).0,
    );
    machine.done(&Program::new().indirect(inner, 4, 0).write(DATA + 8, &[2]).0);
    assert_eq!((machine.word(DATA), machine.word(DATA + 8)), (1, 2));
}

#[test]
fn gpu_40_a_buffer_of_size_0_is_legal_wherever_it_is() {
    run(Program::new()
        .indirect(0xffff_ffff_ffff_fffc, 0, 0)
        .write(DATA, &[1]));
    run(Program::new().indirect(0, 0, CHAIN));
}

#[test]
fn cond_exec_skips_if_the_word_is_0() {
    for (word, expected) in [(0, 0), (1, 5), (0x1_0000_0000, 0)] {
        let mut machine = Machine::new();
        let skipped = Program::new().write(DATA + 8, &[5]).0;

        machine.set_word(DATA, word);
        machine.done(
            &Program::new()
                .cond_exec(DATA, skipped.len() as u32)
                .dwords(&skipped)
                .write(DATA + 16, &[6])
                .0,
        );
        assert_eq!(machine.word(DATA + 8), expected, "word {word:#x}");
        assert_eq!(machine.word(DATA + 16), 6);
    }
}

#[test]
fn a_delay_uses_up_that_many_steps() {
    for steps in [0, 1, 2, 17] {
        let mut machine = Machine::new();

        machine.submit(&Program::new().delay(steps).0);
        for step in 0..steps {
            assert_eq!(machine.step(1000), Outcome::Ran, "step {step} of {steps}");
        }
        assert!(matches!(machine.step(1000), Outcome::Done(_)));
    }
}
