// SPDX-License-Identifier: MIT OR Apache-2.0

//! The verifier around a KMD: it lets pass what is right, and reports each rule that is broken, by
//! the OS part or by the KMD (MEM-95).

use std::sync::Mutex;

use super::{
    context_args, context_of, info, listener, process_args, queue_of, scene, submission, NOBODY,
    TWO_PAGES,
};
use crate::ddi::caps::NodeMetadata;
use crate::ddi::class::{DeviceInterrupt, Dispatch, Passive};
use crate::ddi::paging::{Entries, PageSize, PageTableEntry, PagingOperation, RootPageTable};
use crate::ddi::paging::{
    FillVirtual, NotifyResidency, PagesOf, PagingBuffer, TableAddress, UnmapApertureSegment,
    UpdatePageTable,
};
use crate::ddi::port::Port;
use crate::ddi::power::PowerState;
use crate::ddi::queue::{Fault, FaultKind, QueueCallbacks, Submission};
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{
    AllocationCookie, AllocationEndCookie, AllocationId, ContextCookie, CreateAllocationArgs,
    CreateDeviceArgs, DeviceCookie, DeviceId, HwQueueCookie, KmdError, OpenAllocationArgs,
    ProcessCookie, Scheduling,
};
use crate::ddi::verifier::entry::Entry;
use crate::ddi::verifier::rule::{Log, Rule};
use crate::ddi::verifier::Verifier;
use crate::ddi::{Destroy, Kmd};
use crate::kmd::fake::cpu_events::CpuEvents;
use crate::kmd::fake::journal::Journal;
use crate::kmd::fake::queues::Queues;
use crate::kmd::fake::{Behaviour, FakeKmd};
use crate::platform::{self, Shared};

/// What was called, and what was broken.
#[derive(Default)]
struct Record {
    called: Mutex<Vec<(Entry, u64)>>,
    broken: Mutex<Vec<(Rule, Entry)>>,
}

impl Log for Record {
    fn called(&self, entry: Entry, object: u64) {
        self.called.lock().unwrap().push((entry, object));
    }

    fn broken(&self, rule: Rule, entry: Entry, _: u64) {
        self.broken.lock().unwrap().push((rule, entry));
    }
}

impl Record {
    fn first(&self) -> Option<(Rule, Entry)> {
        self.broken.lock().unwrap().first().copied()
    }
}

/// A log that ends a test at the first broken rule.
struct Strict;

impl Log for Strict {
    fn called(&self, _: Entry, _: u64) {}

    fn broken(&self, rule: Rule, entry: Entry, object: u64) {
        // A drop may be where it shows.
        assert!(std::thread::panicking(), "{entry:?} of {object}: {rule:?}");
    }
}

/// A KMD of whose calls and callbacks none may break a rule.
pub(in crate::tests) fn verified(kmd: Box<dyn Kmd>) -> Verifier {
    Verifier::around(kmd, Shared::new(Strict)).unwrap()
}

/// What a case works with: everything was made once.
struct Made {
    kmd: Verifier,
    process: ProcessCookie,
    device: DeviceCookie,
    packets: ContextCookie,
    hardware: ContextCookie,
    queue: HwQueueCookie,
    allocation: AllocationCookie,
    end: Option<AllocationEndCookie>,
    queues: Shared<Queues>,
}

fn of_two(node: &mut NodeMetadata) {
    node.max_in_flight_hw_queue_buffers = 2;
}

/// A double behind a verifier. Its queues have the ids 7 (packets), 8 (a HW queue) and 9.
fn around(log: &Shared<Record>) -> (Verifier, Shared<Queues>) {
    let journal = Shared::new(Journal::new());
    let queues = Shared::new(Queues::new(journal.clone()).unwrap());
    let behaviour = Behaviour {
        notify_end: true,
        queues: Some(queues.clone()),
        change_node: Some(of_two),
        ..Behaviour::default()
    };
    let kmd = Box::new(FakeKmd::add_device(journal, behaviour));

    (Verifier::around(kmd, log.clone()).unwrap(), queues)
}

impl Made {
    fn new(log: &Shared<Record>) -> Self {
        let class = &Passive::here();
        let (mut kmd, queues) = around(log);

        kmd.start_device(class, &info()).unwrap();

        let process = kmd
            .create_process(class, &process_args(1), &mut NoAddresses)
            .unwrap();
        let id = DeviceId(2);
        let device = kmd
            .create_device(
                class,
                &CreateDeviceArgs {
                    id,
                    process,
                    is_system: false,
                },
            )
            .unwrap();
        let packets = context_of(Scheduling::Packets, &NOBODY);
        let packets = kmd.create_context(class, device, &packets).unwrap();
        let mut hardware = context_args();

        hardware.id.0 = 9;

        let hardware = kmd.create_context(class, device, &hardware).unwrap();
        let queue = kmd
            .create_hw_queue(class, hardware, &queue_of(&NOBODY))
            .unwrap();
        let (allocation, info) = kmd
            .create_allocation(
                class,
                &CreateAllocationArgs {
                    id: AllocationId(3),
                    private_data: &TWO_PAGES,
                    existing: false,
                },
            )
            .unwrap();

        Self {
            kmd,
            process,
            device,
            packets,
            hardware,
            queue,
            allocation,
            end: info.notify_end,
            queues,
        }
    }

    fn submit(&self, submission: Submission) {
        Dispatch::below(&mut Passive::here(), |class| {
            self.kmd.submit_command(class, self.packets, &submission);
        });
    }

    fn fill(&self) {
        let mut buffer = PagingBuffer::new();
        let fill = FillVirtual {
            allocation: self.allocation,
            offset: 0,
            size: 0x1000,
            pattern: 0,
            destination: 0x1000,
        };

        buffer.begin(usize::MAX);
        buffer.context = self.packets;

        let operation = PagingOperation::FillVirtual(fill, &mut buffer);
        let _built = self.kmd.build_paging_buffer(&Passive::here(), operation);
    }

    fn update(&self, update: UpdatePageTable<'_>) {
        let operation = PagingOperation::UpdatePageTable(update, None);
        let _built = self.kmd.build_paging_buffer(&Passive::here(), operation);
    }

    /// An update that is right.
    fn good_update(&self) -> UpdatePageTable<'static> {
        UpdatePageTable {
            process: self.process,
            level: 0,
            table: TableAddress::CpuVirtual(&[]),
            page_size: PageSize::Kib4,
            start: 0,
            entries: Entries::Each(&[]),
            initial_update: false,
            notify_eviction: false,
            driver_protection: 0,
            address: 0,
        }
    }

    /// The end of everything, in order.
    fn end(self) {
        let class = &Passive::here();
        let kmd = &self.kmd;

        kmd.notify_allocation_end(class, self.end.unwrap(), AllocationId(3));
        kmd.destroy_allocation(class, self.allocation);
        kmd.destroy_hw_queue(class, self.queue);
        kmd.destroy_context(class, self.hardware);
        kmd.stop_device(class);
        kmd.destroy_context(class, self.packets);
        kmd.destroy_device(class, self.device);
        kmd.destroy_process(class, self.process);
    }
}

/// What is right passes: in every order in which a creation can fail, and after the stop.
#[test]
fn mem_95_a_verifier_lets_pass_what_is_right() {
    for fail in 1..=9 {
        let log = Shared::new(Record::default());
        let journal = Shared::new(Journal::new());
        let behaviour = Behaviour {
            fail: Some((fail, KmdError::NoMemory)),
            ..Behaviour::default()
        };
        let kmd = FakeKmd::add_device(journal.clone(), behaviour);
        let kmd = Verifier::around(Box::new(kmd), log.clone()).unwrap();
        let port = Port::start(Box::new(kmd), &Passive::here(), &info());
        let made = port.map(|port| scene(&port, &TWO_PAGES));

        // StartDevice and eight creations.
        assert_eq!(made == Ok(Ok(())), fail == 9, "{fail}");
        assert_eq!(log.first(), None, "{fail}");
        assert!(journal.is_good_end());
    }

    let log = Shared::new(Record::default());
    let made = Made::new(&log);

    for number in 1..=4 {
        made.submit(submission(number, None));
        assert!(number < 2 || made.queues.complete(7, number - 1));
    }
    made.end();
    assert_eq!(log.first(), None);
}

/// Every entry and every callback is logged, with what the OS part calls the object.
#[test]
fn mem_95_every_entry_and_callback_is_logged() {
    let log = Shared::new(Record::default());
    let made = Made::new(&log);

    made.submit(submission(1, None));
    assert!(made.queues.complete(7, 1) && made.queues.signal(7));
    made.end();

    let called = log.called.lock().unwrap();
    let at = |wanted: (Entry, u64)| called.iter().position(|call| *call == wanted).unwrap();
    let order = [
        (Entry::StartDevice, 0),
        (Entry::CreateProcess, 1),
        (Entry::CreateDevice, 2),
        (Entry::CreateContext, 7),
        (Entry::CreateContext, 9),
        (Entry::CreateHwQueue, 8),
        (Entry::CreateAllocation, 3),
        (Entry::SubmitCommand, 7),
        (Entry::Completed, 7),
        (Entry::Signaled, 7),
        (Entry::NotifyAllocationEnd, 3),
        (Entry::DestroyAllocation, 3),
        (Entry::DestroyHwQueue, 8),
        (Entry::DestroyContext, 9),
        (Entry::StopDevice, 0),
        (Entry::DestroyContext, 7),
        (Entry::DestroyDevice, 2),
        (Entry::DestroyProcess, 1),
        (Entry::RemoveDevice, 0),
    ];

    assert!(order.map(at).is_sorted());
    assert_eq!(called.len(), order.len());
    assert_eq!(Entry::CreateHwQueue.name(), c"CreateHwQueue");
}

type Case = (Rule, Entry, fn(&Made));

/// What the OS part can do wrong.
const WRONG: &[Case] = &[
    (Rule::NotStarted, Entry::Query, |made| {
        made.kmd.stop_device(&Passive::here());
        made.kmd.query_feature_support(&Passive::here(), 1, true);
    }),
    (Rule::BadCookie, Entry::CreateDevice, |made| {
        let device = CreateDeviceArgs {
            id: DeviceId(5),
            // The cookie of something else.
            process: ProcessCookie(made.device.0),
            is_system: false,
        };
        let made = made.kmd.create_device(&Passive::here(), &device);

        assert_eq!(made, Err(KmdError::InvalidParameter));
    }),
    (Rule::BadCookie, Entry::DestroyHwQueue, |made| {
        made.kmd.destroy_hw_queue(&Passive::here(), made.queue);
        made.kmd.destroy_hw_queue(&Passive::here(), made.queue);
    }),
    (Rule::BadCookie, Entry::DestroyHwQueue, |made| {
        let class = &Passive::here();

        made.kmd.destroy_hw_queue(class, made.queue);
        // It has the place of the one before.
        made.kmd
            .create_hw_queue(class, made.hardware, &queue_of(&NOBODY))
            .unwrap();
        made.kmd.destroy_hw_queue(class, made.queue);
    }),
    (Rule::BadCookie, Entry::SubmitCommand, |made| {
        Dispatch::below(&mut Passive::here(), |class| {
            made.kmd
                .submit_command(class, made.hardware, &submission(1, None));
        });
    }),
    (Rule::BadCookie, Entry::CreateHwQueue, |made| {
        let queue = queue_of(&NOBODY);
        let _made = made
            .kmd
            .create_hw_queue(&Passive::here(), made.packets, &queue);
    }),
    (Rule::ChildrenLeft, Entry::DestroyDevice, |made| {
        made.kmd.destroy_device(&Passive::here(), made.device);
    }),
    (Rule::ChildrenLeft, Entry::DestroyAllocation, |made| {
        let what = OpenAllocationArgs {
            device: made.device,
            allocation: made.allocation,
        };

        made.kmd.open_allocation(&Passive::here(), &what).unwrap();
        made.kmd
            .destroy_allocation(&Passive::here(), made.allocation);
    }),
    (Rule::WrongClass, Entry::Query, |made| {
        let class = Passive::here();

        Dispatch::below(&mut Passive::here(), |_| {
            made.kmd.query_feature_support(&class, 1, true);
        });
    }),
    (Rule::SpinLockHeld, Entry::SuspendContext, |made| {
        let lock = platform::short_lock!((), "a lock").unwrap();

        Dispatch::below(&mut Passive::here(), |class| {
            let _held = lock.lock();

            made.kmd.suspend_context(class, made.packets, 1);
        });
    }),
    (Rule::OutOfOrder, Entry::SubmitCommand, |made| {
        made.submit(submission(1, None));
        made.submit(submission(1, None));
    }),
    (Rule::InFlight, Entry::SubmitCommand, |made| {
        (1..=3).for_each(|number| made.submit(submission(number, None)));
    }),
    (Rule::BadValue, Entry::SubmitCommand, |made| {
        made.submit(Submission {
            length: 6,
            ..submission(1, None)
        });
    }),
    (Rule::BadValue, Entry::SubmitCommand, |made| {
        made.submit(submission(1, Some(1)));
    }),
    (Rule::BadValue, Entry::UpdatePageTable, |made| {
        made.update(UpdatePageTable {
            entries: Entries::Repeat(PageTableEntry::Zero, 1),
            ..made.good_update()
        });
    }),
    (Rule::BadValue, Entry::UpdatePageTable, |made| {
        made.update(UpdatePageTable {
            address: 0x10,
            ..made.good_update()
        });
    }),
    (Rule::BadValue, Entry::FlushTlb, |made| {
        let flush = PagingOperation::FlushTlb {
            process: made.process,
            first: 2,
            last: 1,
            buffer: None,
        };

        let _built = made.kmd.build_paging_buffer(&Passive::here(), flush);
    }),
    (Rule::BadValue, Entry::UnmapApertureSegment, |made| {
        let unmap = PagingOperation::UnmapApertureSegment(UnmapApertureSegment {
            pages_of: PagesOf::Allocation(made.allocation),
            segment: 0,
            first: 0,
            count: 1,
            dummy: 0,
        });

        let _built = made.kmd.build_paging_buffer(&Passive::here(), unmap);
    }),
    (Rule::BadValue, Entry::NotifyResidency, |made| {
        let notify = PagingOperation::NotifyResidency(NotifyResidency {
            allocation: made.allocation,
            at: Some((1, 0x800)),
        });

        let _built = made.kmd.build_paging_buffer(&Passive::here(), notify);
    }),
    // The double has no paging node.
    (Rule::BadValue, Entry::FillVirtual, |made| {
        made.fill();
    }),
    (Rule::BadValue, Entry::SetRootPageTable, |made| {
        let root = RootPageTable {
            segment: 0,
            address: 0x1001,
            entries: 1,
        };

        made.kmd
            .set_root_page_table(&Passive::here(), made.packets, &root);
    }),
    (Rule::BadValue, Entry::SetContextPriority, |made| {
        made.kmd
            .set_context_priority(&Passive::here(), made.packets, -8);
    }),
    (Rule::BadValue, Entry::CalibrateGpuClock, |made| {
        Dispatch::below(&mut Passive::here(), |class| {
            made.kmd.calibrate_gpu_clock(class, 99, 0);
        });
    }),
    (Rule::BadPower, Entry::SetPowerState, |made| {
        made.kmd.set_power_state(&Passive::here(), PowerState::D0);
    }),
    (Rule::BadPower, Entry::SetPowerState, |made| {
        for context in [made.packets, made.hardware] {
            Dispatch::below(&mut Passive::here(), |class| {
                made.kmd.suspend_context(class, context, 1)
            });
        }
        for _ in 0..2 {
            made.kmd.set_power_state(&Passive::here(), PowerState::D3);
        }
    }),
    (Rule::BadNotice, Entry::NotifyAllocationEnd, |made| {
        for _ in 0..2 {
            made.kmd
                .notify_allocation_end(&Passive::here(), made.end.unwrap(), AllocationId(3));
        }
    }),
    (Rule::BadNotice, Entry::NotifyAllocationEnd, |made| {
        made.kmd
            .notify_allocation_end(&Passive::here(), made.end.unwrap(), AllocationId(4));
    }),
];

/// Each rule that the OS part can break is reported, with the entry where it shows.
#[test]
fn mem_95_a_verifier_reports_what_the_os_part_does_wrong() {
    for (rule, entry, wrong) in WRONG {
        let log = Shared::new(Record::default());
        let made = Made::new(&log);

        assert_eq!(log.first(), None);
        wrong(&made);
        assert_eq!(log.first(), Some((*rule, *entry)));
    }
}

/// Two calls for one device at the same time, or one beside StopDevice.
#[test]
fn mem_95_a_verifier_reports_calls_that_exclude_each_other() {
    use crate::kmd::fake::Pause;

    for stop in [false, true] {
        let pause = Shared::new(Pause::new(Entry::SetContextPriority).unwrap());
        let log = Shared::new(Record::default());
        let journal = Shared::new(Journal::new());
        let behaviour = Behaviour {
            pause: Some(pause.clone()),
            ..Behaviour::default()
        };
        let kmd = Box::new(FakeKmd::add_device(journal, behaviour));
        let mut kmd = Verifier::around(kmd, log.clone()).unwrap();
        let class = &Passive::here();

        kmd.start_device(class, &info()).unwrap();

        let process = kmd
            .create_process(class, &process_args(1), &mut NoAddresses)
            .unwrap();
        let id = DeviceId(2);
        let device = kmd
            .create_device(
                class,
                &CreateDeviceArgs {
                    id,
                    process,
                    is_system: false,
                },
            )
            .unwrap();
        let context = kmd.create_context(class, device, &context_args()).unwrap();

        std::thread::scope(|scope| {
            scope.spawn(|| kmd.set_context_priority(&Passive::here(), context, 1));
            pause.wait_for_call();

            let expected = if stop {
                kmd.stop_device(class);
                Entry::StopDevice
            } else {
                let _made = kmd.create_context(class, device, &context_args());

                Entry::CreateContext
            };

            pause.release();
            assert_eq!(log.first(), Some((Rule::Together, expected)));
        });
    }
}

/// SignalEvent by handle, for a process that is not one of a virtual machine.
#[test]
fn cpu_25_mem_95_a_verifier_reports_a_handle_of_a_process_that_is_here() {
    let log = Shared::new(Record::default());
    let events = Shared::new(CpuEvents::new().unwrap());
    let behaviour = Behaviour {
        cpu_events: Some(events.clone()),
        ..Behaviour::default()
    };
    let kmd = Box::new(FakeKmd::add_device(Shared::new(Journal::new()), behaviour));
    let mut kmd = Verifier::around(kmd, log.clone()).unwrap();
    let class = &Passive::here();

    kmd.start_device(class, &info()).unwrap();

    let process = kmd
        .create_process(class, &process_args(1), &mut NoAddresses)
        .unwrap();
    let (_, callbacks) = events.process(0).unwrap();

    assert_eq!(log.first(), None);
    Dispatch::below(&mut Passive::here(), |class| {
        assert_eq!(
            callbacks.signal_handle(class, 1),
            Err(KmdError::InvalidParameter)
        );
    });
    assert_eq!(log.first(), Some((Rule::BadCallback, Entry::SignalEvent)));
    drop(callbacks);
    kmd.destroy_process(class, process);
    kmd.stop_device(class);
}

/// What is left at RemoveDevice, and what was not stopped.
#[test]
fn mem_95_a_verifier_reports_what_is_left_at_the_end() {
    for stops in [false, true] {
        let log = Shared::new(Record::default());
        let (mut kmd, _) = around(&log);
        let class = &Passive::here();

        kmd.start_device(class, &info()).unwrap();
        if stops {
            kmd.create_process(class, &process_args(1), &mut NoAddresses)
                .unwrap();
            kmd.stop_device(class);
        }
        drop(kmd);
        assert_eq!(log.first(), Some((Rule::NotEmpty, Entry::RemoveDevice)));
    }
}

/// What a KMD can tell that cannot be. The OS part is told all the same.
#[test]
fn mem_95_a_verifier_reports_what_the_kmd_does_wrong() {
    let fault = Fault {
        kind: FaultKind::IllegalPacket { header: 1 },
        packet: 0x1_0000,
        number: 1,
        flags: 0,
    };
    type Told<'a> = (
        Rule,
        Entry,
        &'a dyn Fn(&DeviceInterrupt, &dyn QueueCallbacks),
    );
    let cases: &[Told<'_>] = &[
        (Rule::BadCallback, Entry::Completed, &|class, told| {
            told.completed(class, 3);
        }),
        (Rule::BadCallback, Entry::Completed, &|class, told| {
            told.completed(class, 2);
            told.completed(class, 1);
        }),
        (Rule::BadCallback, Entry::Fetched, &|_, told| {
            told.fetched(3)
        }),
        (Rule::BadCallback, Entry::Faulted, &|class, told| {
            told.faulted(class, &fault);
            told.faulted(class, &fault);
        }),
        (Rule::BadCallback, Entry::Suspended, &|class, told| {
            told.suspended(class, 1);
        }),
    ];

    for (rule, entry, wrong) in cases {
        let log = Shared::new(Record::default());
        let made = Made::new(&log);

        made.submit(submission(1, None));
        made.submit(submission(2, None));
        assert!(made.queues.with(7, *wrong));
        assert_eq!(log.first(), Some((*rule, *entry)));
    }
}

/// A KMD that keeps the callbacks of a queue that is destroyed, and uses them.
#[test]
fn mem_95_a_verifier_reports_callbacks_that_outlive_their_queue() {
    let log = Shared::new(Record::default());
    let (ear, callbacks) = listener();
    let made = Made::new(&log);
    let class = &Passive::here();
    let queue = made
        .kmd
        .create_hw_queue(class, made.hardware, &{
            let mut args = queue_of(&callbacks);

            args.id.0 = 10;
            args
        })
        .unwrap();
    let kept = made.queues.callbacks(10).unwrap();

    made.kmd.destroy_hw_queue(class, queue);
    assert_eq!(
        log.first(),
        Some((Rule::CallbacksKept, Entry::DestroyHwQueue))
    );
    made.queues
        .interrupts
        .raise(|class| kept.monitored_fence_signaled(class));
    assert_eq!(
        log.broken.lock().unwrap().last(),
        Some(&(Rule::CallbackAfterEnd, Entry::Signaled))
    );
    assert_eq!(ear.told().len(), 1);
}
