// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is made is destroyed, once and in order (GPU-105), also when a call fails (GPU-106).

use super::{allocation_of, context_args, device_of, scene, start, TWO_PAGES};
use crate::ddi::class::Passive;
use crate::ddi::object::{Context, OpenAllocation};
use crate::ddi::types::KmdError;
use crate::kmd::fake::journal::Entry;
use crate::kmd::fake::Behaviour;

#[test]
fn gpu_105_every_create_has_its_destroy_in_order() {
    let (journal, port) = start(Behaviour::default());

    scene(&port.unwrap(), &TWO_PAGES).unwrap();
    assert!(journal.is_good_end(), "broken: {}", journal.broken());

    let expected = [
        Entry::StartDevice,
        Entry::CreateProcess,
        Entry::CreateDevice,
        Entry::CreateContext,
        Entry::CreateAllocation,
        Entry::CreateContext,
        Entry::OpenAllocation,
        Entry::CreateHwQueue,
        Entry::DestroyHwQueue,
        Entry::CloseAllocation,
        Entry::DestroyContext,
        Entry::DestroyAllocation,
        Entry::DestroyContext,
        Entry::DestroyDevice,
        Entry::DestroyProcess,
        Entry::StopDevice,
        Entry::RemoveDevice,
    ];

    assert!(journal.entries().eq(expected.map(|entry| entry as u32)));
}

/// RES-75: once, while the allocation is there; also if its owner never says that it ends.
#[test]
fn res_75_a_kmd_that_asks_is_told_of_the_end_once() {
    let ends = |asks, tell: usize| {
        let (journal, port) = start(Behaviour {
            notify_end: asks,
            ..Behaviour::default()
        });
        let port = port.unwrap();
        let class = Passive::here();
        let allocation = allocation_of(&port, &TWO_PAGES).unwrap();

        if tell > 1 {
            port.stop(&class);
        }
        for _ in 0..tell {
            allocation.notify_end(&class);
            assert_eq!(journal.count(Entry::NotifyAllocationEnd), asks.into());
        }
        assert_eq!(journal.count(Entry::DestroyAllocation), 0);
        drop((allocation, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
        journal.count(Entry::NotifyAllocationEnd)
    };

    for tell in 0..3 {
        assert_eq!(ends(true, tell), 1);
        assert_eq!(ends(false, tell), 0);
    }
}

/// Each call that may fail does once, with each error: the error comes out, and what was made
/// before is destroyed.
#[test]
fn gpu_106_when_the_nth_call_fails_nothing_is_left() {
    let errors = [
        KmdError::NoMemory,
        KmdError::InvalidParameter,
        KmdError::NotSupported,
        KmdError::DeviceRemoved,
    ];
    // StartDevice and seven creates.
    for (number, error) in (1..=8).flat_map(|number| errors.map(|error| (number, error))) {
        let (journal, port) = start(Behaviour {
            fail: Some((number, error)),
            ..Behaviour::default()
        });
        let result = port.and_then(|port| scene(&port, &TWO_PAGES));

        assert_eq!(result, Err(error), "call {number}");
        assert_eq!(journal.alive(), 0, "call {number}");
        assert!(journal.is_good_end(), "call {number}: {}", journal.broken());
    }

    let (journal, port) = start(Behaviour {
        fail: Some((9, KmdError::NoMemory)),
        ..Behaviour::default()
    });

    assert_eq!(scene(&port.unwrap(), &TWO_PAGES), Ok(()), "there are eight");
    assert!(journal.is_good_end());
}

#[test]
fn gpu_105_after_stop_device_there_are_only_destroys() {
    let (journal, port) = start(Behaviour::default());
    let port = port.unwrap();
    let class = Passive::here();
    let device = device_of(&port, 1).unwrap();
    let context = Context::create(&device, &class, &context_args()).unwrap();
    let allocation = allocation_of(&port, &TWO_PAGES).unwrap();
    let removed = Err(KmdError::DeviceRemoved);

    port.stop(&class);
    port.stop(&class);
    assert!(!port.is_started());
    assert_eq!(port.enter().map(drop), removed);
    assert_eq!(device_of(&port, 2).map(drop), removed);
    assert_eq!(
        Context::create(&device, &class, &context_args()).map(drop),
        removed
    );
    assert_eq!(allocation_of(&port, &TWO_PAGES).map(drop), removed);
    assert_eq!(
        OpenAllocation::open(&device, &class, &allocation).map(drop),
        removed
    );
    assert_eq!(journal.alive(), 4);

    // The KMD is not removed as long as something of it is left.
    drop((port, device, allocation));
    assert_eq!(
        (journal.alive(), journal.count(Entry::RemoveDevice)),
        (3, 0)
    );
    drop(context);
    assert_eq!(journal.count(Entry::StopDevice), 1);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}
