// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calls that come one after the other, and what may sleep (GPU-100, GPU-101).

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::{allocation_of, context_args, context_of, device_of, info, start, NOBODY, TWO_PAGES};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::gate::Gate;
use crate::ddi::object::{Context, OpenAllocation, Process};
use crate::ddi::port::Port;
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{KmdError, ProcessId, Scheduling};
use crate::kmd::fake::journal::{Entry, Journal};
use crate::kmd::fake::{Behaviour, FakeKmd, Pause};
use crate::platform::Shared;

/// Threads use a KMD that takes its time, on two devices, while it is stopped.
#[test]
fn gpu_101_calls_for_one_device_come_one_after_the_other() {
    for round in 0..20 {
        let (journal, port) = start(Behaviour {
            rounds: 2000,
            ..Behaviour::default()
        });
        let port = port.unwrap();
        let class = Passive::here();
        let devices = [1, 2].map(|id| device_of(&port, id).unwrap());

        thread::scope(|scope| {
            for device in devices.iter().chain(&devices) {
                let port = &port;

                scope.spawn(move || {
                    for _ in 0..5 {
                        let class = Passive::here();
                        let _context = Context::create(device, &class, &context_args());
                        let allocation = allocation_of(port, &TWO_PAGES);
                        let _open = allocation
                            .as_ref()
                            .map(|allocation| OpenAllocation::open(device, &class, allocation));
                    }
                });
            }
            if round % 2 == 0 {
                port.stop(&class);
            }
        });
        drop((devices, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
    }
}

/// StopDevice waits for the call that is inside, and refuses others meanwhile.
#[test]
fn gpu_101_stop_device_waits_for_the_call_inside() {
    let pause = Shared::new(Pause::new(Entry::CreateContext).unwrap());
    let (journal, port) = start(Behaviour {
        pause: Some(pause.clone()),
        ..Behaviour::default()
    });
    let port = port.unwrap();
    let device = device_of(&port, 1).unwrap();

    thread::scope(|scope| {
        let creation =
            scope.spawn(|| Context::create(&device, &Passive::here(), &context_args()).map(drop));

        pause.wait_for_call();
        scope.spawn(|| port.stop(&Passive::here()));
        while port.is_started() {
            thread::yield_now();
        }

        let refused = device_of(&port, 2).map(drop);
        let stops = journal.count(Entry::StopDevice);

        pause.release();
        assert_eq!(refused, Err(KmdError::DeviceRemoved));
        assert_eq!(stops, 0);
        assert_eq!(creation.join().unwrap(), Ok(()));
    });
    assert_eq!(journal.count(Entry::StopDevice), 1);
    drop((device, port));
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// MEM-58, GPU-96: until StopDevice has returned engines may run. Who takes memory away meanwhile
/// learns only then that nobody uses it.
#[test]
fn mem_58_a_flush_beside_stop_device_returns_after_it() {
    let pause = Shared::new(Pause::new(Entry::StopDevice).unwrap());
    let (journal, port) = start(Behaviour {
        pause: Some(pause.clone()),
        ..Behaviour::default()
    });
    let port = port.unwrap();
    let process = Process::create(&port, &Passive::here(), ProcessId(1), &mut NoAddresses).unwrap();
    let flushed = AtomicBool::new(false);

    thread::scope(|scope| {
        scope.spawn(|| port.stop(&Passive::here()));
        pause.wait_for_call();
        scope.spawn(|| {
            process.flush_tlb(&Passive::here(), 0, 0);
            flushed.store(true, SeqCst);
        });
        // What is refused returns long before this.
        thread::sleep(Duration::from_millis(20));
        assert!(!flushed.load(SeqCst), "engines may still run");
        pause.release();
    });
    assert!(flushed.load(SeqCst));
    assert_eq!(journal.count(Entry::FlushTlb), 0);
    drop((process, port));
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// Two threads submit to one queue, and to two: the interface sees to it that each gets one call
/// at a time.
#[test]
fn gpu_101_calls_for_one_queue_come_one_after_the_other() {
    let journal = Shared::new(Journal::new());
    let behaviour = Behaviour {
        rounds: 2000,
        ..Behaviour::default()
    };
    let kmd = FakeKmd::add_device(journal.clone(), behaviour);
    let port = Port::start(Box::new(kmd), &Passive::here(), &info()).unwrap();
    let device = device_of(&port, 1).unwrap();
    let contexts = [1, 2].map(|_| {
        let args = context_of(Scheduling::Packets, &NOBODY);

        Context::create(&device, &Passive::here(), &args).unwrap()
    });

    thread::scope(|scope| {
        for context in contexts.iter().chain(&contexts) {
            scope.spawn(|| {
                for _ in 0..20 {
                    context.suspend(&mut Passive::here(), 1).unwrap();
                    context.resume(&mut Passive::here()).unwrap();
                }
            });
        }
    });
    drop((contexts, device, port));
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// GPU-100: where nothing sleeps, nobody gets to say that it may.
#[test]
#[should_panic(expected = "sleeps where it must not")]
fn gpu_100_class_d_does_not_sleep() {
    Dispatch::below(&mut Passive::here(), |_| Passive::here());
}

/// GPU-101: a call that is inside cannot stop its KMD, because StopDevice waits for it.
#[test]
#[should_panic(expected = "a thread waits for itself")]
fn gpu_101_a_call_inside_does_not_stop() {
    let (_, port) = start(Behaviour::default());
    let port = port.unwrap();
    let _calls = port.enter().unwrap();

    port.stop(&Passive::here());
}

/// GPU-101: StopDevice cannot destroy, because a destroy waits for its end.
#[test]
#[should_panic(expected = "a thread waits for itself")]
fn gpu_101_stop_device_does_not_destroy() {
    let gate = Gate::new().unwrap();
    let _closed = gate.close().unwrap();

    gate.enter_to_destroy();
}
