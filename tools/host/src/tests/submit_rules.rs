// SPDX-License-Identifier: MIT OR Apache-2.0

//! What submissions refuse, and priorities.

use crate::logic::submit_rules::{
    check_history, check_in_process_priority, check_submit, may_progress, priority, Commands,
    ABSOLUTE,
};

const GOOD: Commands = Commands {
    address: 0x1000,
    length: 4096,
    private_data: 0,
    primaries: 0,
};

#[test]
fn gpu_6_the_buffer_is_whole_dwords_of_4_bytes_to_16_mib() {
    for (address, length, good) in [
        (0x1000, 4, true),
        (0x1004, 16 << 20, true),
        (0, 4, true),
        (0x1000, 0, false),
        (0x1000, 3, false),
        (0x1000, 5, false),
        (0x1002, 4, false),
        (0x1000, (16 << 20) + 4, false),
        (u64::MAX - 3, 4, false),
        (u64::MAX - 7, 4, true),
    ] {
        let commands = Commands {
            address,
            length,
            ..GOOD
        };

        assert_eq!(commands.check().is_ok(), good, "{address:#x} {length}");
    }
}

#[test]
fn gpu_6_private_data_are_opaque_up_to_64_kib() {
    for (private_data, good) in [
        (0, true),
        (72, true),
        (64 << 10, true),
        ((64 << 10) + 1, false),
        (u32::MAX, false),
    ] {
        let commands = Commands {
            private_data,
            ..GOOD
        };

        assert_eq!(commands.check().is_ok(), good, "{private_data:?}");
    }
}

#[test]
fn mem_92_at_most_16_primaries() {
    for (primaries, good) in [(0, true), (16, true), (17, false), (u32::MAX, false)] {
        let commands = Commands { primaries, ..GOOD };

        assert_eq!(commands.check().is_ok(), good, "{primaries}");
    }
}

#[test]
fn gpu_6_one_to_64_contexts() {
    for (flags, contexts, good) in [
        (0, 1, true),
        (0, 64, true),
        (0, 0, false),
        (0, 65, false),
        (7, 1, true),
        (8, 1, false),
        (1 << 31, 1, false),
    ] {
        assert_eq!(
            check_submit(flags, contexts).is_ok(),
            good,
            "{flags:#x} {contexts}"
        );
    }
}

#[test]
fn fen_126_progress_only_rises() {
    assert!(may_progress(0, 1));
    assert!(may_progress(5, u64::MAX));
    assert!(!may_progress(0, 0));
    assert!(!may_progress(5, 5));
    assert!(!may_progress(u64::MAX, 1));
}

#[test]
fn gpu_50_priorities_are_relative_or_absolute() {
    for (asked, expected) in [
        (0, Some(0)),
        (-7, Some(-7)),
        (7, Some(7)),
        (8, None),
        (-8, None),
        (ABSOLUTE, Some(0)),
        (ABSOLUTE | 31, Some(31)),
        (ABSOLUTE | 32, None),
        (i32::MIN, None),
        (i32::MAX, None),
    ] {
        assert_eq!(priority(asked).ok(), expected, "{asked:#x}");
    }
    for asked in -9..=9 {
        assert_eq!(
            check_in_process_priority(asked).is_ok(),
            (-7..=7).contains(&asked)
        );
    }
}

#[test]
fn mem_94_history_buffers_are_counted_and_listed() {
    for (count, list, good) in [
        (0, 0, true),
        (0, 8, true),
        (1, 8, true),
        (64, 8, true),
        (1, 0, false),
        (65, 8, false),
        (u32::MAX, 8, false),
    ] {
        assert_eq!(check_history(count, list).is_ok(), good, "{count}");
    }
}
