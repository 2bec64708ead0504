// SPDX-License-Identifier: MIT OR Apache-2.0

//! Headers, and packets that do nothing (GPU-33 to GPU-35).

use super::run;
use crate::tests::engine::machine::{Machine, DATA};
use crate::tests::engine::program;
use crate::tests::engine::program::{packet, Program};

#[test]
fn gpu_33_examples_of_headers() {
    assert_eq!(program::header(0x50, 6), 0xc005_5000);

    let mut machine = Machine::new();

    // COUNT 0x3fff of a NOP: the header only.
    machine.done(&[0xffff_1000, 0xffff_1000]);
    // Bit 1, the shader type, is ignored.
    machine.done(&[program::header(0x10, 1) | 2, 0]);
}

#[test]
fn gpu_34_type_2_is_a_filler() {
    run(Program::new().dwords(&[0x8000_0000; 5]));
}

#[test]
fn gpu_35_nop_skips_its_dwords() {
    for dwords in [1, 2, 7, 100, 0x3fff] {
        // What it skips would be illegal.
        let machine = run(Program::new()
            .dwords(&packet(0x10, &vec![0; dwords]))
            .write(DATA, &[5]));

        assert_eq!(machine.word(DATA), 5, "{dwords} dwords");
    }
}
