// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver interface, with a double below it and the software adapter below it (GPU-100 to
//! GPU-106).

mod adapters;
mod context_memory;
mod cpu_events;
mod double;
mod ends;
mod native_fences;
mod power;
mod queues;
mod turns;
pub(super) mod verifier;

use std::sync::{LazyLock, Mutex};

use crate::ddi::caps::{Luid, NodeMetadata, StartInfo};
use crate::ddi::class::{DeviceInterrupt, Dispatch, Passive};
use crate::ddi::object::{Allocation, Context, Device, HwQueue, OpenAllocation, Process};
use crate::ddi::port::Port;
use crate::ddi::process::{local_process, CreateProcessArgs, ProcessCallbacks};
use crate::ddi::queue::{Fault, QueueCallbacks, Submission};
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{
    AllocationId, ContextId, CreateAllocationArgs, CreateContextArgs, CreateHwQueueArgs, DeviceId,
    HwQueueId, KmdResult, ProcessId, Scheduling,
};
use crate::kmd::fake::journal::Journal;
use crate::kmd::fake::queues::Queues;
use crate::kmd::fake::{Behaviour, FakeKmd};
use crate::platform::Shared;

pub(super) fn info() -> StartInfo {
    StartInfo::of(Luid { low: 1, high: 2 }).unwrap()
}

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
    fn completed(&self, _: &DeviceInterrupt, number: u64) {
        self.tell(Told::Completed(number));
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {
        self.tell(Told::Signaled);
    }

    fn faulted(&self, _: &DeviceInterrupt, fault: &Fault) {
        self.tell(Told::Faulted(*fault));
    }

    fn invalidated(&self) {}

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        self.tell(Told::Suspended(id));
    }
}

/// Callbacks that nobody asks.
static NOBODY: LazyLock<Shared<dyn QueueCallbacks>> =
    LazyLock::new(|| Shared::new(Listener::default()));

static NOBODY_OF_PROCESS: LazyLock<Shared<dyn ProcessCallbacks>> =
    LazyLock::new(|| local_process().unwrap());

fn process_args(id: u64) -> CreateProcessArgs<'static> {
    CreateProcessArgs {
        id: ProcessId(id),
        is_of_virtual_machine: false,
        is_system: false,
        callbacks: &NOBODY_OF_PROCESS,
    }
}

fn context_of(
    scheduling: Scheduling,
    callbacks: &Shared<dyn QueueCallbacks>,
) -> CreateContextArgs<'_> {
    CreateContextArgs {
        id: ContextId(7),
        scheduling,
        node: 0,
        engines: 1,
        is_system: false,
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
        user_mode_submission: false,
        progress_fence: 0x1000,
        native_progress_fence: false,
        private_data: &[],
        callbacks,
    }
}

/// A device of a process of its own.
fn device_of(port: &Shared<Port>, id: u64) -> KmdResult<Shared<Device>> {
    let class = Passive::here();
    let process = Process::create(port, &class, ProcessId(id), &mut NoAddresses)?;

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

pub(super) fn start(behaviour: Behaviour) -> (Shared<Journal>, KmdResult<Shared<Port>>) {
    let journal = Shared::new(Journal::new());
    let kmd = FakeKmd::add_device(journal.clone(), behaviour);

    (
        journal,
        Port::start(Box::new(kmd), &Passive::here(), &info()),
    )
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
    let port = Port::start(Box::new(kmd), &Passive::here(), &info()).unwrap();
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
