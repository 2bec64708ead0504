// SPDX-License-Identifier: MIT OR Apache-2.0

//! The double finds what it is there to find (GPU-105, GPU-106).

use std::thread;

use super::{
    context_args, context_of, in_dispatch, info, process_args, queue_of, submission, worked, NOBODY,
};
use crate::ddi::caps::NodeMetadata;
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::object::{Context, HwQueue};
use crate::ddi::paging::{
    Entries, PageSize, PageTableEntry, PagingOperation, TableAddress, UpdatePageTable,
};
use crate::ddi::queue::Submission;
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{
    ContextCookie, CreateDeviceArgs, DeviceCookie, DeviceId, KmdResult, ProcessCookie, Scheduling,
};
use crate::ddi::{Destroy, Kmd};
use crate::kmd::fake::journal::{Broken, Journal};
use crate::kmd::fake::{Behaviour, FakeKmd};
use crate::platform::{self, Shared};

/// A device of a process of its own, without an owner.
fn device_on(kmd: &FakeKmd, class: &Passive) -> KmdResult<DeviceCookie> {
    let process = kmd.create_process(class, &process_args(1), &mut NoAddresses)?;
    let device = CreateDeviceArgs {
        id: DeviceId(1),
        process,
        is_system: false,
    };

    kmd.create_device(class, &device)
}

/// The double finds what it is there to find.
#[test]
fn gpu_105_mem_95_a_double_finds_what_breaks_the_rules() {
    type Wrong = fn(&mut FakeKmd, &Passive);
    let cases: [(Broken, Wrong); 7] = [
        (Broken::NotStarted, |kmd, class| {
            let _device = device_on(kmd, class);
        }),
        (Broken::NotStarted, |kmd, class| {
            kmd.start_device(class, &info()).unwrap();
            kmd.stop_device(class);
            let _device = device_on(kmd, class);
        }),
        (Broken::BadCookie, |kmd, class| {
            kmd.start_device(class, &info()).unwrap();
            let device = device_on(kmd, class).unwrap();
            kmd.destroy_device(class, device);
            kmd.destroy_device(class, device);
        }),
        (Broken::ChildrenLeft, |kmd, class| {
            kmd.start_device(class, &info()).unwrap();
            let device = device_on(kmd, class).unwrap();
            kmd.create_context(class, device, &context_args()).unwrap();
            kmd.destroy_device(class, device);
        }),
        (Broken::NotEmpty, |kmd, class| {
            kmd.start_device(class, &info()).unwrap();
            device_on(kmd, class).unwrap();
            kmd.stop_device(class);
        }),
        (Broken::NotEmpty, |kmd, class| {
            kmd.start_device(class, &info()).unwrap();
        }),
        (Broken::WrongClass, |kmd, class| {
            kmd.start_device(class, &info()).unwrap();
            Dispatch::below(&mut Passive::here(), |_| {
                kmd.query_feature_support(class, 1, true)
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

/// MEM-96: no lock is held over an entry under which nothing sleeps, also if the entry does not.
#[test]
fn mem_96_a_double_finds_a_spinlock_that_is_held() {
    let journal = Shared::new(Journal::new());
    let mut kmd = FakeKmd::add_device(journal.clone(), Behaviour::default());
    let lock = platform::short_lock!((), "a lock").unwrap();

    kmd.start_device(&Passive::here(), &info()).unwrap();
    in_dispatch(|class| kmd.calibrate_gpu_clock(class, 0, 0));
    assert_eq!(journal.broken(), 0);
    in_dispatch(|class| {
        let _held = lock.lock();

        kmd.calibrate_gpu_clock(class, 0, 0);
    });
    assert_eq!(journal.broken(), Broken::SpinLockHeld as u32);
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

    kmd.start_device(&class, &info()).unwrap();

    let device = device_on(&kmd, &class).unwrap();

    for _ in 0..20 {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| kmd.create_context(&Passive::here(), device, &context_args()));
            }
        });
    }
    assert_eq!(journal.broken(), Broken::Together as u32);
}

/// A submission that breaks a rule, to a context of packets or to a HW queue.
#[test]
fn gpu_101_a_double_finds_submissions_that_break_the_rules() {
    let of_four = |node: &mut NodeMetadata| node.max_in_flight_hw_queue_buffers = 4;
    let cases: [(Broken, bool, &[Submission]); 8] = [
        (Broken::OutOfOrder, false, &[submission(2, None)]),
        (
            Broken::OutOfOrder,
            false,
            &[submission(1, None), submission(1, None)],
        ),
        (
            Broken::InFlight,
            false,
            &[1, 2, 3, 4, 5].map(|number| submission(number, None)),
        ),
        (Broken::BadValue, false, &[submission(1, Some(1))]),
        (Broken::BadValue, true, &[submission(1, None)]),
        (
            Broken::BadValue,
            false,
            &[Submission {
                length: 0,
                ..submission(1, None)
            }],
        ),
        (
            Broken::BadValue,
            false,
            &[Submission {
                length: 6,
                ..submission(1, None)
            }],
        ),
        (
            Broken::BadValue,
            false,
            &[Submission {
                commands: 2,
                ..submission(1, None)
            }],
        ),
    ];

    for (rule, to_hw_queue, submissions) in cases {
        let (_, worked) = worked(Some(of_four));
        let class = Passive::here();
        let context = Context::create(&worked.device, &class, &context_args()).unwrap();
        let queue = HwQueue::create(&context, &class, &queue_of(&NOBODY)).unwrap();

        for submission in submissions {
            let submitted = in_dispatch(|class| match to_hw_queue {
                true => queue.submit(class, submission),
                false => context.submit(class, submission),
            });

            assert_eq!(submitted, Ok(()));
        }
        assert_eq!(worked.journal.broken(), rule as u32, "{rule:?}");
    }
}

/// What was completed leaves room for more.
#[test]
fn gpu_101_submissions_in_flight_are_those_that_have_not_completed() {
    let (queues, worked) = worked(Some(|node| node.max_in_flight_hw_queue_buffers = 2));
    let context = Context::create(
        &worked.device,
        &Passive::here(),
        &context_of(Scheduling::Packets, &NOBODY),
    )
    .unwrap();

    for number in 1..=20 {
        let submitted = in_dispatch(|class| context.submit(class, &submission(number, None)));

        assert_eq!(submitted, Ok(()));
        assert_eq!(queues.complete(7, number - 1), number > 1);
    }
    drop(context);
    worked.end();
}

/// GPU-105: what is destroyed is not used any more, and children go before their parents.
#[test]
fn gpu_105_mem_95_a_double_finds_uses_of_what_is_gone() {
    type Wrong = fn(&FakeKmd, &Passive, ProcessCookie, ContextCookie);
    let cases: [(Broken, Wrong); 6] = [
        (Broken::BadCookie, |kmd, class, _, context| {
            kmd.destroy_context(class, context);
            in_dispatch(|class| kmd.submit_command(class, context, &submission(1, None)));
        }),
        (Broken::BadCookie, |kmd, class, process, _| {
            let flush = PagingOperation::FlushTlb {
                process: ProcessCookie(process.0 + 20),
                first: 0,
                last: 0,
                buffer: None,
            };

            let _built = kmd.build_paging_buffer(class, flush);
        }),
        (Broken::ChildrenLeft, |kmd, class, _, context| {
            kmd.create_hw_queue(class, context, &queue_of(&NOBODY))
                .unwrap();
            kmd.destroy_context(class, context);
        }),
        (Broken::ChildrenLeft, |kmd, class, process, _| {
            kmd.destroy_process(class, process);
        }),
        (Broken::BadValue, |kmd, class, process, _| {
            let _built = kmd.build_paging_buffer(
                class,
                PagingOperation::UpdatePageTable(
                    UpdatePageTable {
                        process,
                        level: 0,
                        table: TableAddress::CpuVirtual(&[]),
                        page_size: PageSize::Kib4,
                        start: 0,
                        entries: Entries::Repeat(PageTableEntry::Zero, 1),
                        initial_update: false,
                        notify_eviction: false,
                        driver_protection: 0,
                        address: 0,
                    },
                    None,
                ),
            );
        }),
        (Broken::BadValue, |kmd, class, _, context| {
            kmd.set_context_priority(class, context, 32);
        }),
    ];

    for (rule, wrong) in cases {
        let journal = Shared::new(Journal::new());
        let mut kmd = FakeKmd::add_device(journal.clone(), Behaviour::default());
        let class = Passive::here();

        kmd.start_device(&class, &info()).unwrap();

        let process = kmd
            .create_process(&class, &process_args(1), &mut NoAddresses)
            .unwrap();
        let id = DeviceId(1);
        let device = kmd
            .create_device(
                &class,
                &CreateDeviceArgs {
                    id,
                    process,
                    is_system: false,
                },
            )
            .unwrap();
        let context = kmd.create_context(&class, device, &context_args()).unwrap();

        wrong(&kmd, &class, process, context);
        assert_eq!(journal.broken(), rule as u32, "{rule:?}");
    }
}
