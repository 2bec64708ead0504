// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver interface, with a double below it and the software adapter below it (GPU-100 to
//! GPU-106).

use std::thread;

use crate::{
    ddi::{
        caps::{Luid, StartInfo},
        class::{Dispatch, Passive},
        gate::Gate,
        object::{Allocation, Context, Device, OpenAllocation},
        port::Port,
        types::{
            AllocationId, ContextId, CreateContextArgs, DeviceId, KmdError, KmdResult, Place,
            Scheduling,
        },
        Kmd,
    },
    kmd::{
        fake::{
            journal::{Broken, Entry, Journal},
            Behaviour, FakeKmd, Pause,
        },
        soft::{Config, SoftKmd},
    },
    platform::Shared,
};

const INFO: StartInfo = StartInfo {
    luid: Luid { low: 1, high: 2 },
};

const CONTEXT: CreateContextArgs<'static> = CreateContextArgs {
    id: ContextId(7),
    scheduling: Scheduling::HwQueues,
    node: 0,
    engines: 1,
    private_data: &[],
};

/// Private data that the double understands: two pages.
const TWO_PAGES: [u8; 8] = 0x2000u64.to_le_bytes();

fn start(behaviour: Behaviour) -> (Shared<Journal>, KmdResult<Shared<Port>>) {
    let journal = Shared::new(Journal::new());
    let kmd = FakeKmd::add_device(journal.clone(), behaviour);

    (journal, Port::start(Box::new(kmd), &Passive::here(), &INFO))
}

/// Everything that there is, made once and used.
fn scene(port: &Shared<Port>, data: &[u8]) -> KmdResult {
    let class = Passive::here();
    let device = Device::create(port, &class, DeviceId(1))?;
    let _first = Context::create(&device, &class, &CONTEXT)?;
    let allocation = Allocation::create(port, &class, AllocationId(9), data)?;
    let _second = Context::create(&device, &class, &CONTEXT)?;
    let _open = OpenAllocation::open(&device, &class, &allocation)?;

    assert_eq!(allocation.info.size, 0x2000);
    assert_eq!(allocation.info.place, Place::SystemMemory);
    Ok(())
}

#[test]
fn gpu_105_every_create_has_its_destroy_in_order() {
    let (journal, port) = start(Behaviour::default());

    scene(&port.unwrap(), &TWO_PAGES).unwrap();
    assert!(journal.is_good_end(), "broken: {}", journal.broken());

    let expected = [
        Entry::StartDevice,
        Entry::CreateDevice,
        Entry::CreateContext,
        Entry::CreateAllocation,
        Entry::CreateContext,
        Entry::OpenAllocation,
        Entry::CloseAllocation,
        Entry::DestroyContext,
        Entry::DestroyAllocation,
        Entry::DestroyContext,
        Entry::DestroyDevice,
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
        let allocation = Allocation::create(&port, &class, AllocationId(9), &TWO_PAGES).unwrap();

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
    // StartDevice and five creates.
    for (number, error) in (1..=6).flat_map(|number| errors.map(|error| (number, error))) {
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
        fail: Some((7, KmdError::NoMemory)),
        ..Behaviour::default()
    });

    assert_eq!(scene(&port.unwrap(), &TWO_PAGES), Ok(()), "there are six");
    assert!(journal.is_good_end());
}

#[test]
fn gpu_105_after_stop_device_there_are_only_destroys() {
    let (journal, port) = start(Behaviour::default());
    let port = port.unwrap();
    let class = Passive::here();
    let device = Device::create(&port, &class, DeviceId(1)).unwrap();
    let context = Context::create(&device, &class, &CONTEXT).unwrap();
    let allocation = Allocation::create(&port, &class, AllocationId(9), &TWO_PAGES).unwrap();
    let removed = Err(KmdError::DeviceRemoved);

    port.stop(&class);
    port.stop(&class);
    assert!(!port.is_started());
    assert_eq!(port.enter().map(drop), removed);
    assert_eq!(
        Device::create(&port, &class, DeviceId(2)).map(drop),
        removed
    );
    assert_eq!(
        Context::create(&device, &class, &CONTEXT).map(drop),
        removed
    );
    assert_eq!(
        Allocation::create(&port, &class, AllocationId(9), &TWO_PAGES).map(drop),
        removed
    );
    assert_eq!(
        OpenAllocation::open(&device, &class, &allocation).map(drop),
        removed
    );
    assert_eq!(journal.alive(), 3);

    // The KMD is not removed as long as something of it is left.
    drop((port, device, allocation));
    assert_eq!(
        (journal.alive(), journal.count(Entry::RemoveDevice)),
        (2, 0)
    );
    drop(context);
    assert_eq!(journal.count(Entry::StopDevice), 1);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

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
        let devices = [1, 2].map(|id| Device::create(&port, &class, DeviceId(id)).unwrap());

        thread::scope(|scope| {
            for device in devices.iter().chain(&devices) {
                let port = &port;

                scope.spawn(move || {
                    for _ in 0..5 {
                        let class = Passive::here();
                        let _context = Context::create(device, &class, &CONTEXT);
                        let allocation =
                            Allocation::create(port, &class, AllocationId(9), &TWO_PAGES);
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
    let device = Device::create(&port, &Passive::here(), DeviceId(1)).unwrap();

    thread::scope(|scope| {
        let creation =
            scope.spawn(|| Context::create(&device, &Passive::here(), &CONTEXT).map(drop));

        pause.wait_for_call();
        scope.spawn(|| port.stop(&Passive::here()));
        while port.is_started() {
            thread::yield_now();
        }

        let refused = Device::create(&port, &Passive::here(), DeviceId(2)).map(drop);
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

/// An allocation that crosses adapters is unknown to the KMD of the other adapter.
#[test]
fn gpu_103_no_kmd_gets_the_cookie_of_another() {
    let (journal, port) = start(Behaviour::default());
    let (other_journal, other_port) = start(Behaviour::default());
    let (port, other_port) = (port.unwrap(), other_port.unwrap());
    let class = Passive::here();
    let allocation = Allocation::create(&port, &class, AllocationId(9), &TWO_PAGES).unwrap();
    let device = Device::create(&other_port, &class, DeviceId(1)).unwrap();

    assert!(OpenAllocation::open(&device, &class, &allocation)
        .unwrap()
        .is_none());
    drop((allocation, device, port, other_port));
    assert_eq!(other_journal.count(Entry::OpenAllocation), 0);
    assert!(journal.is_good_end() && other_journal.is_good_end());
}

/// The double finds what it is there to find.
#[test]
fn gpu_105_a_double_finds_what_breaks_the_rules() {
    type Wrong = fn(&mut FakeKmd, &Passive);
    let cases: [(Broken, Wrong); 7] = [
        (Broken::NotStarted, |kmd, class| {
            let _device = kmd.create_device(class, DeviceId(1));
        }),
        (Broken::NotStarted, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            kmd.stop_device(class);
            let _device = kmd.create_device(class, DeviceId(1));
        }),
        (Broken::BadCookie, |kmd, class| {
            use crate::ddi::Destroy;

            kmd.start_device(class, &INFO).unwrap();
            let device = kmd.create_device(class, DeviceId(1)).unwrap();
            kmd.destroy_device(class, device);
            kmd.destroy_device(class, device);
        }),
        (Broken::ChildrenLeft, |kmd, class| {
            use crate::ddi::Destroy;

            kmd.start_device(class, &INFO).unwrap();
            let device = kmd.create_device(class, DeviceId(1)).unwrap();
            kmd.create_context(class, device, &CONTEXT).unwrap();
            kmd.destroy_device(class, device);
        }),
        (Broken::NotEmpty, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            kmd.create_device(class, DeviceId(1)).unwrap();
            kmd.stop_device(class);
        }),
        (Broken::NotEmpty, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
        }),
        (Broken::WrongClass, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            Dispatch::below(&mut Passive::here(), |_| {
                kmd.query_feature_support(class, 1)
            });
        }),
    ];

    for (rule, wrong) in cases {
        let journal = Shared::new(Journal::new());
        let mut kmd = FakeKmd::add_device(journal.clone(), Behaviour::default());

        wrong(&mut kmd, &Passive::here());
        drop(kmd);
        assert_eq!(journal.broken(), rule as u32, "{rule:?}");
        assert!(!journal.is_good_end());
    }
}

/// Two adapters with calls at the same time for one device break the rule.
#[test]
fn gpu_101_a_double_finds_calls_at_the_same_time() {
    let journal = Shared::new(Journal::new());
    let mut kmd = FakeKmd::add_device(
        journal.clone(),
        Behaviour {
            rounds: 200_000,
            ..Behaviour::default()
        },
    );
    let class = Passive::here();

    kmd.start_device(&class, &INFO).unwrap();

    let device = kmd.create_device(&class, DeviceId(1)).unwrap();

    for _ in 0..20 {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| kmd.create_context(&Passive::here(), device, &CONTEXT));
            }
        });
    }
    assert_eq!(journal.broken(), Broken::Together as u32);
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

#[test]
fn the_software_adapter_goes_through_the_same_scene() {
    let class = Passive::here();
    let kmd = SoftKmd::add_device(Config::default());
    let port = Port::start(Box::new(kmd), &class, &INFO).unwrap();
    let mut data = [0; 48];

    port.enter()
        .unwrap()
        .get_standard_allocation_driver_data(&class, 0x2000, &mut data);
    assert_eq!(scene(&port, &data), Ok(()));
    assert_eq!(scene(&port, &data[1..]), Err(KmdError::InvalidParameter));
    port.stop(&class);
    assert_eq!(scene(&port, &data), Err(KmdError::DeviceRemoved));
}

#[test]
fn escapes_of_the_software_adapter() {
    let class = Passive::here();
    let kmd = SoftKmd::add_device(Config::default());

    for (flags, size, error) in [
        (0, 8, KmdError::InvalidParameter),
        (1 << 6, 7, KmdError::InvalidParameter),
        ((1 << 6) | 1, 8, KmdError::InvalidParameter),
        (1 << 6, 8, KmdError::NotSupported),
    ] {
        let mut data = vec![3; size];

        assert_eq!(kmd.escape(&class, flags, &mut data), Err(error));
        assert!(
            data.iter().all(|byte| *byte == 3),
            "a refusal changes nothing"
        );
    }
}

#[test]
fn clocks_of_the_software_adapter() {
    let kmd = SoftKmd::add_device(Config::default());
    let clock = || {
        Dispatch::below(&mut Passive::here(), |class| {
            kmd.calibrate_gpu_clock(class, 0, 0)
        })
    };
    let (first, second) = (clock(), clock());

    assert_eq!(first.gpu_frequency, 1_000_000_000);
    assert_eq!(first.gpu_counter, first.cpu_counter);
    assert!(first.is_cmp_clock && first.gpu_counter <= second.gpu_counter);
}
