// SPDX-License-Identifier: MIT OR Apache-2.0

//! What queued waits and signals refuse: the table of fences.md section 2.6, line by line.

use crate::logic::{
    queued_sync_rules::{
        check_broadcast, check_signal, check_wait,
        Call::{FromGpu, HwQueue, Legacy},
        Kind::{self, CpuNotification, Fence, MonitoredFence, Mutex, ProgressFence, Semaphore},
        ObjectCheck,
        Operation::{self, Signal, Wait},
        Values,
    },
    wait_rules::Refusal::{Denied, Mismatch},
    Invalid,
};

const KINDS: [Kind; 6] = [
    Mutex,
    Semaphore,
    Fence,
    CpuNotification,
    MonitoredFence,
    ProgressFence,
];

/// One good object of a kind.
fn check(call: crate::logic::queued_sync_rules::Call, operation: Operation, kind: Kind) -> bool {
    let mut check = ObjectCheck::new(call, operation);

    check.see(kind, true, true);
    check.result().is_ok()
}

/// Each line: which kinds may be waited for, and which may be signalled.
#[test]
fn fen_50_every_cell_of_the_table() {
    for (call, operation, allowed) in [
        (
            FromGpu,
            Wait,
            &[Mutex, Semaphore, Fence, MonitoredFence, ProgressFence][..],
        ),
        (
            FromGpu,
            Signal,
            &[Mutex, Semaphore, Fence, CpuNotification, MonitoredFence][..],
        ),
        (Legacy, Wait, &[Mutex, Semaphore, Fence][..]),
        (
            Legacy,
            Signal,
            &[Mutex, Semaphore, Fence, CpuNotification][..],
        ),
        (HwQueue, Wait, &[MonitoredFence, ProgressFence][..]),
        (HwQueue, Signal, &[MonitoredFence][..]),
    ] {
        for kind in KINDS {
            assert_eq!(
                check(call, operation, kind),
                allowed.contains(&kind),
                "{call:?} {operation:?} {kind:?}"
            );
        }
    }
}

#[test]
fn fen_51_kinds_do_not_mix_unless_each_has_a_value() {
    for first in KINDS {
        for second in KINDS {
            let mut check = ObjectCheck::new(FromGpu, Wait);

            check.see(first, true, true);
            check.see(second, true, true);

            let fits = first != CpuNotification && second != CpuNotification;
            let each = |kind| matches!(kind, MonitoredFence | ProgressFence);
            let expected = fits && (first == second || each(first) && each(second));

            assert_eq!(check.result().is_ok(), expected, "{first:?} {second:?}");
        }
    }
}

#[test]
fn fen_53_types_of_all_come_before_rights_of_any() {
    let mut both = ObjectCheck::new(FromGpu, Wait);

    both.see(MonitoredFence, true, false);
    assert_eq!(both.result(), Err(Denied));
    both.see(Mutex, true, true);
    assert_eq!(both.result(), Err(Mismatch));

    let mut other_adapter = ObjectCheck::new(FromGpu, Signal);

    other_adapter.see(MonitoredFence, false, true);
    assert_eq!(other_adapter.result(), Err(Mismatch));
}

#[test]
fn fen_50_where_the_values_are() {
    for (kind, values) in [
        (Mutex, Values::None),
        (Semaphore, Values::None),
        (Fence, Values::One),
        (MonitoredFence, Values::Each),
        (ProgressFence, Values::Each),
    ] {
        let mut check = ObjectCheck::new(FromGpu, Wait);

        check.see(kind, true, true);
        assert_eq!(check.result(), Ok(values));
    }
}

#[test]
fn fen_43_an_event_comes_without_objects() {
    const EVENT: u32 = 1 << 1;

    for (flags, count, good) in [
        (0, 1, true),
        (0, 32, true),
        (0, 33, false),
        (0, 0, false),
        (EVENT, 0, true),
        (EVENT, 1, false),
        (EVENT | 1, 0, true),
        (4, 1, true),
        (7, 0, true),
        (8, 1, false),
        (1 << 31, 1, false),
    ] {
        assert_eq!(
            check_signal(flags, count, 32).is_ok(),
            good,
            "{flags:#x} {count}"
        );
    }

    let flags = check_signal(1, 1, 32).unwrap();

    assert!(flags.at_submission && !flags.event);
}

#[test]
fn fen_43_one_to_64_queues_and_one_to_the_most_objects() {
    for (count, good) in [
        (0, false),
        (1, true),
        (64, true),
        (65, false),
        (u32::MAX, false),
    ] {
        assert_eq!(check_broadcast(count).is_ok(), good, "{count}");
        assert_eq!(
            check_wait(count, 64),
            if good { Ok(()) } else { Err(Invalid) }
        );
    }
}
