// SPDX-License-Identifier: MIT OR Apache-2.0

//! RELEASE_MEM, ACQUIRE_MEM and ODX_TRAP.

use super::run;
use crate::engine::shell::Record;
use crate::tests::engine::machine::{Machine, DATA};
use crate::tests::engine::program;
use crate::tests::engine::program::{packet, Program};

#[test]
fn gpu_44_release_mem_stores_and_reports() {
    const VALUE: u64 = 0x1122_3344_5566_7788;
    const TICKS: u64 = 0x12_3456_789a;

    for (data_sel, stored) in [(0, 0), (1, 0x5566_7788), (2, VALUE), (3, TICKS)] {
        for (int_sel, interrupts) in [(0, 0), (1, 1), (2, 1), (3, 0), (4, 1)] {
            let mut machine = Machine::new();

            machine.clock.0.set(TICKS);
            machine.done(&Program::new().release(data_sel, int_sel, DATA, VALUE).0);
            assert_eq!(machine.word(DATA), stored, "DATA_SEL {data_sel}");
            assert_eq!(
                machine.records.0,
                vec![Record::MonitoredFenceSignaled; interrupts],
                "INT_SEL {int_sel}"
            );
        }
    }
    // Without data the address is not looked at.
    run(Program::new().release(program::DATA_NONE, 1, 3, VALUE));
    // 32 bits may be at any dword.
    run(Program::new().release(program::DATA_LOW, 0, DATA + 4, VALUE));
}

#[test]
fn acquire_mem_has_two_sizes() {
    run(Program::new().acquire().dwords(&packet(0x58, &[!0; 7])));
}

#[test]
fn a_trap_is_reported() {
    let machine = run(Program::new().trap(0xabc, 0x1122_3344_5566_7788));

    assert_eq!(
        machine.records.0,
        [Record::Trap {
            class: 0xabc,
            argument: 0x1122_3344_5566_7788
        }]
    );
}
