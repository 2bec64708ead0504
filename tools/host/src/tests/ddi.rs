// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver interface, with a double below it and the software adapter below it (GPU-100 to
//! GPU-106).

use std::{
    sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        LazyLock, Mutex,
    },
    thread,
    time::Duration,
};

use crate::{
    ddi::{
        caps::{Luid, NodeMetadata, StartInfo},
        class::{Dispatch, Passive},
        gate::Gate,
        object::{Allocation, Context, Device, HwQueue, OpenAllocation, Process, TableUpdate},
        paging::{PageEntry, PageTableEntry, PagingOperation, RootPageTable, UpdatePageTable},
        port::Port,
        queue::{Fault, FaultKind, QueueCallbacks, Submission, Suspend},
        types::{
            AllocationId, ContextCookie, ContextId, CreateAllocationArgs, CreateContextArgs,
            CreateDeviceArgs, CreateHwQueueArgs, DeviceCookie, DeviceId, HwQueueId, KmdError,
            KmdResult, ProcessCookie, ProcessId, Scheduling,
        },
        Destroy, Kmd,
    },
    kmd::{
        fake::{
            journal::{Broken, Entry, Journal},
            queues::Queues,
            Behaviour, FakeKmd, Pause,
        },
        soft::{Config, SoftKmd},
    },
    platform::{self, Shared},
};

const INFO: StartInfo = StartInfo {
    luid: Luid { low: 1, high: 2 },
};

/// What a KMD has told about a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Completed(u64),
    Signaled,
    Faulted(Fault),
    Suspended(u64),
}

/// Callbacks that remember what they were told.
#[derive(Default)]
struct Listener(Mutex<Vec<Told>>);

impl Listener {
    fn told(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }

    fn tell(&self, what: Told) {
        self.0.lock().unwrap().push(what);
    }
}

impl QueueCallbacks for Listener {
    fn completed(&self, number: u64) {
        self.tell(Told::Completed(number));
    }

    fn monitored_fence_signaled(&self) {
        self.tell(Told::Signaled);
    }

    fn faulted(&self, fault: &Fault) {
        self.tell(Told::Faulted(*fault));
    }

    fn suspended(&self, id: u64) {
        self.tell(Told::Suspended(id));
    }
}

/// Callbacks that nobody asks.
static NOBODY: LazyLock<Shared<dyn QueueCallbacks>> =
    LazyLock::new(|| Shared::new(Listener::default()));

fn context_of(
    scheduling: Scheduling,
    callbacks: &Shared<dyn QueueCallbacks>,
) -> CreateContextArgs<'_> {
    CreateContextArgs {
        id: ContextId(7),
        scheduling,
        node: 0,
        engines: 1,
        private_data: &[],
        callbacks,
    }
}

fn context_args() -> CreateContextArgs<'static> {
    context_of(Scheduling::HwQueues, &NOBODY)
}

fn queue_of(callbacks: &Shared<dyn QueueCallbacks>) -> CreateHwQueueArgs<'_> {
    CreateHwQueueArgs {
        id: HwQueueId(8),
        disable_gpu_timeout: false,
        progress_fence: 0x1000,
        private_data: &[],
        callbacks,
    }
}

/// A device of a process of its own.
fn device_of(port: &Shared<Port>, id: u64) -> KmdResult<Shared<Device>> {
    let class = Passive::here();
    let process = Process::create(port, &class, ProcessId(id))?;

    Device::create(&process, &class, DeviceId(id))
}

fn allocation_of(port: &Shared<Port>, data: &[u8]) -> KmdResult<Allocation> {
    let args = CreateAllocationArgs {
        id: AllocationId(9),
        private_data: data,
        existing: false,
    };

    Allocation::create(port, &Passive::here(), &args)
}

/// Four bytes of commands.
fn submission(number: u64, progress: Option<u64>) -> Submission {
    Submission {
        number,
        commands: 0x1_0000,
        length: 4,
        progress,
    }
}

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
    let device = device_of(port, 1)?;
    let first = Context::create(&device, &class, &context_args())?;
    let allocation = allocation_of(port, data)?;
    let _second = Context::create(&device, &class, &context_args())?;
    let _open = OpenAllocation::open(&device, &class, &allocation)?;
    let _queue = HwQueue::create(&first, &class, &queue_of(&NOBODY))?;

    assert_eq!(allocation.info.size, 0x2000);
    assert_ne!(allocation.info.supported_segments, 0);
    assert!(allocation.info.alignment.is_power_of_two());
    Ok(())
}

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
    let process = Process::create(&port, &Passive::here(), ProcessId(1)).unwrap();
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

/// An allocation that crosses adapters is unknown to the KMD of the other adapter.
#[test]
fn gpu_103_no_kmd_gets_the_cookie_of_another() {
    let (journal, port) = start(Behaviour::default());
    let (other_journal, other_port) = start(Behaviour::default());
    let (port, other_port) = (port.unwrap(), other_port.unwrap());
    let class = Passive::here();
    let allocation = allocation_of(&port, &TWO_PAGES).unwrap();
    let device = device_of(&other_port, 1).unwrap();

    assert!(OpenAllocation::open(&device, &class, &allocation)
        .unwrap()
        .is_none());
    drop((allocation, device, port, other_port));
    assert_eq!(other_journal.count(Entry::OpenAllocation), 0);
    assert!(journal.is_good_end() && other_journal.is_good_end());
}

/// A device of a process of its own, without an owner.
fn device_on(kmd: &FakeKmd, class: &Passive) -> KmdResult<DeviceCookie> {
    let process = kmd.create_process(class, ProcessId(1))?;
    let device = CreateDeviceArgs {
        id: DeviceId(1),
        process,
    };

    kmd.create_device(class, &device)
}

/// The double finds what it is there to find.
#[test]
fn gpu_105_a_double_finds_what_breaks_the_rules() {
    type Wrong = fn(&mut FakeKmd, &Passive);
    let cases: [(Broken, Wrong); 7] = [
        (Broken::NotStarted, |kmd, class| {
            let _device = device_on(kmd, class);
        }),
        (Broken::NotStarted, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            kmd.stop_device(class);
            let _device = device_on(kmd, class);
        }),
        (Broken::BadCookie, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            let device = device_on(kmd, class).unwrap();
            kmd.destroy_device(class, device);
            kmd.destroy_device(class, device);
        }),
        (Broken::ChildrenLeft, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            let device = device_on(kmd, class).unwrap();
            kmd.create_context(class, device, &context_args()).unwrap();
            kmd.destroy_device(class, device);
        }),
        (Broken::NotEmpty, |kmd, class| {
            kmd.start_device(class, &INFO).unwrap();
            device_on(kmd, class).unwrap();
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

/// A started double whose queues the test works, and a device on it.
fn worked(change_node: Option<fn(&mut NodeMetadata)>) -> (Shared<Queues>, Worked) {
    let journal = Shared::new(Journal::new());
    let queues = Shared::new(Queues::new(journal.clone()).unwrap());
    let behaviour = Behaviour {
        queues: Some(queues.clone()),
        change_node,
        ..Behaviour::default()
    };
    let kmd = FakeKmd::add_device(journal.clone(), behaviour);
    let port = Port::start(Box::new(kmd), &Passive::here(), &INFO).unwrap();
    let device = device_of(&port, 1).unwrap();

    (
        queues,
        Worked {
            device,
            port,
            journal,
        },
    )
}

struct Worked {
    device: Shared<Device>,
    port: Shared<Port>,
    journal: Shared<Journal>,
}

impl Worked {
    fn end(self) {
        let Self {
            device,
            port,
            journal,
        } = self;

        drop((device, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
    }
}

fn listener() -> (Shared<Listener>, Shared<dyn QueueCallbacks>) {
    let listener = Shared::new(Listener::default());

    (listener.clone(), listener)
}

fn in_dispatch<T>(run: impl FnOnce(&Dispatch) -> T) -> T {
    Dispatch::below(&mut Passive::here(), run)
}

#[test]
fn gpu_6_a_context_of_packets_takes_submissions_and_tells_of_their_end() {
    let (queues, worked) = worked(None);
    let (listener, callbacks) = listener();
    let args = context_of(Scheduling::Packets, &callbacks);
    let context = Context::create(&worked.device, &Passive::here(), &args).unwrap();

    for number in 1..=3 {
        let submitted = in_dispatch(|class| context.submit(class, &submission(number, None)));

        assert_eq!(submitted, Ok(()));
        assert_eq!(queues.submission(7, number), Some(submission(number, None)));
    }
    assert_eq!(queues.submitted(7), 3);
    assert_eq!(listener.told(), []);

    let fault = Fault {
        kind: FaultKind::IllegalPacket { header: 1 },
        packet: 0x1_0000,
        number: 3,
        flags: 0,
    };

    assert!(queues.complete(7, 2));
    assert!(!queues.complete(7, 2), "once");
    assert!(!queues.complete(7, 4), "not what was not submitted");
    assert!(!queues.complete(6, 3), "nobody has this id");
    assert!(queues.signal(7) && queues.fault(7, &fault));
    assert_eq!(
        listener.told(),
        [Told::Completed(2), Told::Signaled, Told::Faulted(fault)]
    );
    drop(context);
    assert!(!queues.complete(7, 3), "nothing after the destroy");
    worked.end();
}

#[test]
fn gpu_8_a_hw_queue_takes_submissions_with_their_progress_value() {
    let (queues, worked) = worked(None);
    let (listener, callbacks) = listener();
    let class = Passive::here();
    let context = Context::create(&worked.device, &class, &context_args()).unwrap();
    let queue = HwQueue::create(&context, &class, &queue_of(&callbacks)).unwrap();
    let submission = submission(1, Some(0));

    assert_eq!(
        in_dispatch(|class| queue.submit(class, &submission)),
        Ok(())
    );
    assert_eq!(queues.submission(8, 1), Some(submission));
    assert!(queues.complete(8, 1));
    assert_eq!(listener.told(), [Told::Completed(1)]);

    worked.port.stop(&class);
    assert_eq!(
        in_dispatch(|class| queue.submit(class, &submission)),
        Err(KmdError::DeviceRemoved)
    );
    drop((queue, context));
    worked.end();
}

#[test]
fn gpu_51_a_suspension_is_pending_until_it_is_told() {
    let (queues, worked) = worked(None);
    let (listener, callbacks) = listener();
    let args = context_of(Scheduling::HwQueues, &callbacks);
    let context = Context::create(&worked.device, &Passive::here(), &args).unwrap();

    assert_eq!(
        in_dispatch(|class| context.suspend(class, 5)),
        Ok(Suspend::Pending)
    );
    assert!(queues.suspended(7, 5));
    assert_eq!(listener.told(), [Told::Suspended(5)]);
    assert_eq!(in_dispatch(|class| context.resume(class)), Ok(()));
    drop(context);
    worked.end();
}

#[test]
fn mem_52_the_kmd_writes_the_entries_of_page_tables() {
    let (_, worked) = worked(None);
    let class = Passive::here();
    let process = Process::create(&worked.port, &class, ProcessId(2)).unwrap();
    let table: Vec<platform::Word64> = (0..8).map(|_| platform::word64(7)).collect();
    let page = PageTableEntry::Page(PageEntry {
        segment: 0,
        address: 0x5000,
        read_only: false,
        no_execute: false,
        system_use_only: false,
    });
    let update = TableUpdate {
        level: 0,
        table: &table,
        start: 2,
        entries: &[PageTableEntry::Invalid, page, PageTableEntry::Zero],
        address: 0x2000,
    };

    process.update_page_table(&class, &update);
    process.flush_tlb(&class, 0x2000, 0x5000);

    let words: Vec<_> = table.iter().map(platform::load_acquire).collect();

    assert_eq!(words, [7, 7, 0, 0xfa00_0000_0000_5000, 1, 7, 7, 7]);

    let context = Context::create(&worked.device, &class, &context_args()).unwrap();
    let root = RootPageTable {
        segment: 0,
        address: 0x1000,
        entries: 8,
    };

    assert_eq!(context.set_root_page_table(&class, &root), Ok(()));
    assert_eq!(context.set_priority(&class, -7), Ok(()));
    drop((process, context));
    worked.end();
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
    let port = Port::start(Box::new(kmd), &Passive::here(), &INFO).unwrap();
    let device = device_of(&port, 1).unwrap();
    let contexts = [1, 2].map(|_| {
        let args = context_of(Scheduling::Packets, &NOBODY);

        Context::create(&device, &Passive::here(), &args).unwrap()
    });

    thread::scope(|scope| {
        for context in contexts.iter().chain(&contexts) {
            scope.spawn(|| {
                for _ in 0..20 {
                    in_dispatch(|class| context.suspend(class, 1).unwrap());
                    in_dispatch(|class| context.resume(class).unwrap());
                }
            });
        }
    });
    drop((contexts, device, port));
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// GPU-105: what is destroyed is not used any more, and children go before their parents.
#[test]
fn gpu_105_a_double_finds_uses_of_what_is_gone() {
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
            };

            kmd.build_paging_buffer(class, flush);
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
            kmd.build_paging_buffer(
                class,
                PagingOperation::UpdatePageTable(UpdatePageTable {
                    process,
                    level: 0,
                    table: &[],
                    start: 0,
                    entries: &[PageTableEntry::Zero],
                    address: 0,
                }),
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

        kmd.start_device(&class, &INFO).unwrap();

        let process = kmd.create_process(&class, ProcessId(1)).unwrap();
        let id = DeviceId(1);
        let device = kmd
            .create_device(&class, &CreateDeviceArgs { id, process })
            .unwrap();
        let context = kmd.create_context(&class, device, &context_args()).unwrap();

        wrong(&kmd, &class, process, context);
        assert_eq!(journal.broken(), rule as u32, "{rule:?}");
    }
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
