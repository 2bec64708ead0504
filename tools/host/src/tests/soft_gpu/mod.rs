// SPDX-License-Identifier: MIT OR Apache-2.0

//! The software adapter's driver with its threads: what it is told through `ddi`, and what its
//! engines then do to memory. Frames, page tables and address spaces are the test's, as in the
//! module they are the OS part's.

mod aperture;
mod cpu_events;
mod doorbells;
mod ends;
mod memory;
mod power;
mod profiles;
mod recovery;
mod slab;
mod submissions;
mod system_process;
mod table_writes;
mod turns;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::ddi::verifier::verified;
use crate::ddi::caps::{Luid, StartInfo};
use crate::ddi::class::{DeviceInterrupt, Dispatch, Passive};
use crate::ddi::object::{Context, Device, HwQueue, Process, TableUpdate};
use crate::ddi::paging::{
    Entries, PageEntry, PageSize, PageTableEntry, RootPageTable, TableAddress,
};
use crate::ddi::port::Port;
use crate::ddi::power::EngineState;
use crate::ddi::queue::{Fault, QueueCallbacks, Submission};
use crate::ddi::reserve::NoAddresses;
use crate::ddi::types::{
    ContextId, CreateContextArgs, CreateHwQueueArgs, DeviceId, HwQueueId, KmdResult, ProcessId,
    Scheduling,
};
use crate::ddi::Kmd;
use crate::kmd::soft::{Config, SoftKmd};
use crate::physical::Frame;
use crate::platform::Shared;

/// No wait takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a test looks for what must not happen.
const WHILE: Duration = Duration::from_millis(200);

const PAGE: u64 = 4096;

/// What a queue has told.
#[derive(Clone, Default)]
struct Told {
    fetched: u64,
    completed: u64,
    signaled: u32,
    faults: Vec<Fault>,
    suspended: Vec<u64>,
    f1: u32,
    invalidated: u32,
    waited_ns: u64,
    polled_ns: u64,
    ran_ns: u64,
    /// Slices, and how many of them came after another queue's.
    slices: u64,
    switches: u64,
}

/// Callbacks that a test waits for.
#[derive(Default)]
struct Ear {
    told: Mutex<Told>,
    changed: Condvar,
}

impl Ear {
    fn hear(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told());
        self.changed.notify_all();
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    /// Waits until it was told this.
    #[track_caller]
    fn wait(&self, what: impl Fn(&Told) -> bool) -> Told {
        let end = Instant::now() + LIMIT;
        let mut told = self.told();

        while !what(&told) {
            let left = end.saturating_duration_since(Instant::now());

            assert!(!left.is_zero(), "nothing is told");
            told = self.changed.wait_timeout(told, left).unwrap().0;
        }
        told.clone()
    }

    #[track_caller]
    fn completed(&self, number: u64) {
        self.wait(|told| told.completed >= number);
    }
}

impl QueueCallbacks for Ear {
    fn ran(&self, ns: u64, switched: bool) {
        self.hear(|told| {
            told.ran_ns += ns;
            told.slices += 1;
            told.switches += u64::from(switched);
        });
    }

    fn fetched(&self, number: u64) {
        self.hear(|told| {
            assert!(
                told.fetched < number && told.completed < number,
                "told once"
            );
            told.fetched = number;
        });
    }

    fn completed(&self, _: &DeviceInterrupt, number: u64) {
        self.hear(|told| {
            assert!(told.completed < number, "numbers go up");
            told.completed = number;
        });
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {
        self.hear(|told| told.signaled += 1);
    }

    fn faulted(&self, _: &DeviceInterrupt, fault: &Fault) {
        self.hear(|told| told.faults.push(*fault));
    }

    fn engine_state_changed(&self, _: &DeviceInterrupt, state: EngineState) {
        assert_eq!(state, EngineState::TransitionToF1);
        self.hear(|told| told.f1 += 1);
    }

    fn waited(&self, ns: u64) {
        self.hear(|told| told.waited_ns += ns);
    }

    fn polled(&self, ns: u64) {
        self.hear(|told| told.polled_ns += ns);
    }

    fn invalidated(&self) {
        self.hear(|told| told.invalidated += 1);
    }

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        self.hear(|told| told.suspended.push(id));
    }
}

/// A process on an adapter, with page tables of its own.
pub(super) struct Space {
    process: Shared<Process>,
    device: Shared<Device>,
    /// By level and the index of what they cover.
    tables: Mutex<BTreeMap<(u32, u64), Frame>>,
}

const LEVELS: u32 = 4;

impl Space {
    pub(super) fn new(port: &Shared<Port>, id: u64) -> Self {
        let class = Passive::here();
        let process = Process::create(port, &class, ProcessId(id), &mut NoAddresses).unwrap();

        Self::of(process, id)
    }

    /// The paging process.
    fn system(port: &Shared<Port>, id: u64) -> Self {
        let class = Passive::here();
        let process = Process::create_system(port, &class, ProcessId(id), &mut NoAddresses);

        Self::of(process.unwrap(), id)
    }

    fn of(process: Shared<Process>, id: u64) -> Self {
        let device = Device::create(&process, &Passive::here(), DeviceId(id)).unwrap();
        let space = Self {
            process,
            device,
            tables: Mutex::default(),
        };

        space
            .tables
            .lock()
            .unwrap()
            .insert((LEVELS - 1, 0), Frame::new());
        space
    }

    /// Its device.
    pub(super) fn device(&self) -> &Shared<Device> {
        &self.device
    }

    fn root(&self) -> RootPageTable {
        RootPageTable {
            segment: 0,
            address: self.tables.lock().unwrap()[&(LEVELS - 1, 0)].address(),
            entries: 512,
        }
    }

    /// Writes an entry of the table of a level that an address has.
    fn write(&self, tables: &BTreeMap<(u32, u64), Frame>, level: u32, va: u64, to: PageTableEntry) {
        let number = (va / PAGE) >> (9 * level);
        let table = &tables[&(level, number >> 9)];
        let update = TableUpdate {
            level,
            table: TableAddress::CpuVirtual(table.words()),
            page_size: PageSize::Kib4,
            start: (number & 511) as u32,
            entries: Entries::Repeat(to, 1),
            initial_update: false,
            notify_eviction: false,
            driver_protection: 0,
            address: va,
        };

        self.process.update_page_table(&Passive::here(), &update);
    }

    fn set(&self, va: u64, to: PageTableEntry) {
        let mut tables = self.tables.lock().unwrap();

        for level in (0..LEVELS - 1).rev() {
            let number = (va / PAGE) >> (9 * (level + 1));

            if !tables.contains_key(&(level, number)) {
                let table = Frame::new();
                let entry = page(0, table.address());

                self.write(&tables, level + 1, va, entry);
                tables.insert((level, number), table);
            }
        }
        self.write(&tables, 0, va, to);
    }

    fn map(&self, va: u64, frame: &Frame) {
        self.set(va, page(0, frame.address()));
    }

    /// The page of an address, which is only read from now on.
    fn protect(&self, va: u64, frame: &Frame) {
        let PageTableEntry::Page(entry) = page(0, frame.address()) else {
            return;
        };

        self.set(
            va,
            PageTableEntry::Page(PageEntry {
                read_only: true,
                ..entry
            }),
        );
        self.process.flush_tlb(&Passive::here(), va, va + PAGE);
    }

    /// As the OS part does it: the entry, the flush, and then the frame may go.
    fn unmap(&self, va: u64) {
        self.set(va, PageTableEntry::Invalid);
        self.process.flush_tlb(&Passive::here(), va, va + PAGE);
    }

    fn packets(&self, node: u32, id: u64, ear: &Shared<Ear>) -> Shared<Context> {
        let context = self.context(node, id, Scheduling::Packets, ear).unwrap();

        context
            .set_root_page_table(&Passive::here(), &self.root())
            .unwrap();
        context
    }

    fn context(
        &self,
        node: u32,
        id: u64,
        scheduling: Scheduling,
        ear: &Shared<Ear>,
    ) -> KmdResult<Shared<Context>> {
        self.context_of(node, id, scheduling, false, ear)
    }

    fn context_of(
        &self,
        node: u32,
        id: u64,
        scheduling: Scheduling,
        is_system: bool,
        ear: &Shared<Ear>,
    ) -> KmdResult<Shared<Context>> {
        let callbacks: Shared<dyn QueueCallbacks> = ear.clone();
        let args = CreateContextArgs {
            id: ContextId(id),
            scheduling,
            node,
            engines: 0,
            is_system,
            private_data: &[],
            callbacks: &callbacks,
        };

        Context::create(&self.device, &Passive::here(), &args)
    }
}

fn page(segment: u32, address: u64) -> PageTableEntry {
    PageTableEntry::Page(PageEntry {
        segment,
        address,
        page_size: PageSize::Kib4,
        read_only: false,
        no_execute: false,
        system_use_only: false,
        cache_coherent: true,
    })
}

fn hw_queue(context: &Shared<Context>, id: u64, fence: u64, ear: &Shared<Ear>) -> Shared<HwQueue> {
    let callbacks: Shared<dyn QueueCallbacks> = ear.clone();
    let args = CreateHwQueueArgs {
        id: HwQueueId(id),
        disable_gpu_timeout: false,
        user_mode_submission: false,
        progress_fence: fence,
        native_progress_fence: false,
        private_data: &[],
        callbacks: &callbacks,
    };

    HwQueue::create(context, &Passive::here(), &args).unwrap()
}

/// A software adapter that is used as the rules are, which is verified.
pub(super) fn started(config: Config) -> Shared<Port> {
    let kmd = verified(Box::new(SoftKmd::add_device(config)));

    start(Box::new(kmd)).unwrap()
}

/// One that is used otherwise.
fn started_unverified(config: Config) -> Shared<Port> {
    start(Box::new(SoftKmd::add_device(config))).unwrap()
}

fn start(kmd: Box<dyn Kmd>) -> KmdResult<Shared<Port>> {
    let luid = Luid::default();

    Port::start(kmd, &Passive::here(), &StartInfo::of(luid).unwrap())
}

fn in_dispatch<T>(run: impl FnOnce(&Dispatch) -> T) -> T {
    Dispatch::below(&mut Passive::here(), run)
}

fn submit(context: &Context, number: u64, commands: u64, dwords: u32) {
    let submission = Submission {
        number,
        commands,
        length: dwords * 4,
        progress: None,
    };

    in_dispatch(|class| context.submit(class, &submission)).unwrap();
}

/// Dwords for a buffer.
#[derive(Default)]
struct Commands(Vec<u32>);

impl Commands {
    fn packet(mut self, opcode: u32, fields: &[u32]) -> Self {
        let count = fields.len() as u32 - 1;

        self.0.push((3 << 30) | (count << 16) | (opcode << 8));
        self.0.extend(fields);
        self
    }

    /// WRITE_DATA of 64 bits.
    fn write(self, va: u64, value: u64) -> Self {
        self.packet(
            0x37,
            &[
                2 << 8,
                va as u32,
                (va >> 32) as u32,
                value as u32,
                (value >> 32) as u32,
            ],
        )
    }

    /// DMA_DATA from memory to memory.
    fn copy(self, from: u64, to: u64, bytes: u32) -> Self {
        self.packet(
            0x50,
            &[
                0,
                from as u32,
                (from >> 32) as u32,
                to as u32,
                (to >> 32) as u32,
                bytes,
            ],
        )
    }

    /// WAIT_REG_MEM64: until the word is at least this.
    fn wait(self, va: u64, value: u64) -> Self {
        self.packet(
            0x93,
            &[
                5 | (1 << 4),
                va as u32,
                (va >> 32) as u32,
                value as u32,
                (value >> 32) as u32,
                u32::MAX,
                u32::MAX,
                0,
            ],
        )
    }

    /// RELEASE_MEM with a 64-bit value and an interrupt.
    fn release(self, va: u64, value: u64) -> Self {
        self.packet(
            0x49,
            &[
                0,
                (2 << 29) | (2 << 24),
                va as u32,
                (va >> 32) as u32,
                value as u32,
                (value >> 32) as u32,
                0,
            ],
        )
    }

    /// INDIRECT_BUFFER with CHAIN: goes on there.
    fn chain(self, va: u64, dwords: u32) -> Self {
        self.packet(
            0x3f,
            &[va as u32, (va >> 32) as u32, dwords | (1 << 20) | (1 << 23)],
        )
    }

    /// Puts them into a frame, and says how many dwords they are.
    fn into(self, frame: &Frame) -> u32 {
        let dwords = self.0.len() as u32;

        for (word, pair) in frame.words().iter().zip(self.0.chunks(2)) {
            let high = pair.get(1).copied().unwrap_or(0x8000_0000);

            word.store((u64::from(high) << 32) | u64::from(pair[0]), Release);
        }
        dwords
    }
}

fn word(frame: &Frame, index: usize) -> u64 {
    frame.words()[index].load(Acquire)
}

/// Pages that a translation cache keeps apart, so that one does not make it forget the other.
const CODE: u64 = 0x10_7000;

const DATA: u64 = 0x7fff_0000_0000;

/// A space with a page of commands and one of data.
struct Scene {
    space: Space,
    code: Frame,
    data: Frame,
}

impl Scene {
    fn new(port: &Shared<Port>, id: u64) -> Self {
        let scene = Self {
            space: Space::new(port, id),
            code: Frame::new(),
            data: Frame::new(),
        };

        scene.space.map(CODE, &scene.code);
        scene.space.map(DATA, &scene.data);
        scene
    }
}

/// A buffer that never ends: it writes a word, and goes on with itself.
fn endless(scene: &Scene) -> u32 {
    let size = Commands::default().write(DATA, 1).chain(CODE, 0).0.len() as u32;

    Commands::default()
        .write(DATA, 1)
        .chain(CODE, size)
        .into(&scene.code)
}

/// Waits until the endless buffer has written its word since now.
#[track_caller]
fn runs(scene: &Scene) {
    scene.data.words()[0].store(0, Release);
    assert!(is_written(&scene.data, LIMIT), "it does not run");
}

/// Looks for a while whether the endless buffer writes its word.
#[track_caller]
fn stands(scene: &Scene) {
    scene.data.words()[0].store(0, Release);
    assert!(!is_written(&scene.data, WHILE), "it runs");
}

/// Whether somebody writes the first word of a frame in this time.
fn is_written(frame: &Frame, time: Duration) -> bool {
    let end = Instant::now() + time;

    while word(frame, 0) == 0 {
        if Instant::now() > end {
            return false;
        }
        thread::yield_now();
    }
    true
}
