// SPDX-License-Identifier: MIT OR Apache-2.0

//! The software adapter's driver with its threads: what it is told through `ddi`, and what its
//! engines then do to memory. Frames, page tables and address spaces are the test's, as in the
//! module they are the OS part's.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::Ordering::{Acquire, Release},
        Condvar, Mutex, MutexGuard,
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    ddi::{
        caps::{AdapterQuery, DriverCaps, Luid, StartInfo},
        class::{Dispatch, Passive},
        object::{Context, Device, HwQueue, Process, TableUpdate},
        paging::{PageEntry, PageTableEntry, RootPageTable},
        port::Port,
        queue::{Fault, FaultKind, QueueCallbacks, Submission, Suspend},
        segments::{SegmentKind, Segments},
        types::{
            AllocationId, ContextId, CreateAllocationArgs, CreateContextArgs, CreateHwQueueArgs,
            DeviceId, HwQueueId, KmdError, KmdResult, ProcessId, Scheduling,
        },
    },
    kmd::soft::{
        slab::{Chunk, Slab},
        Config, SoftKmd,
    },
    physical::Frame,
    platform::Shared,
};

mod aperture;

/// No wait takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a test looks for what must not happen.
const WHILE: Duration = Duration::from_millis(200);

const PAGE: u64 = 4096;

/// What a queue has told.
#[derive(Clone, Default)]
struct Told {
    completed: u64,
    signaled: u32,
    faults: Vec<Fault>,
    suspended: Vec<u64>,
    ran_ns: u64,
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
    fn ran(&self, ns: u64) {
        self.hear(|told| told.ran_ns += ns);
    }

    fn completed(&self, number: u64) {
        self.hear(|told| {
            assert!(told.completed < number, "numbers go up");
            told.completed = number;
        });
    }

    fn monitored_fence_signaled(&self) {
        self.hear(|told| told.signaled += 1);
    }

    fn faulted(&self, fault: &Fault) {
        self.hear(|told| told.faults.push(*fault));
    }

    fn suspended(&self, id: u64) {
        self.hear(|told| told.suspended.push(id));
    }
}

/// A process on an adapter, with page tables of its own.
struct Space {
    process: Shared<Process>,
    device: Shared<Device>,
    /// By level and the index of what they cover.
    tables: Mutex<BTreeMap<(u32, u64), Frame>>,
}

const LEVELS: u32 = 4;

impl Space {
    fn new(port: &Shared<Port>, id: u64) -> Self {
        let class = Passive::here();
        let process = Process::create(port, &class, ProcessId(id)).unwrap();
        let device = Device::create(&process, &class, DeviceId(id)).unwrap();
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
            table: table.words(),
            start: (number & 511) as u32,
            entries: &[to],
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

    /// As the OS part does it: the entry, the flush, and then the frame may go.
    fn unmap(&self, va: u64) {
        self.set(va, PageTableEntry::Invalid);
        self.process
            .flush_tlb(&Passive::here(), va, va + PAGE);
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
        let callbacks: Shared<dyn QueueCallbacks> = ear.clone();
        let args = CreateContextArgs {
            id: ContextId(id),
            scheduling,
            node,
            engines: 0,
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
        read_only: false,
        no_execute: false,
        system_use_only: false,
    })
}

fn hw_queue(context: &Shared<Context>, id: u64, fence: u64, ear: &Shared<Ear>) -> HwQueue {
    let callbacks: Shared<dyn QueueCallbacks> = ear.clone();
    let args = CreateHwQueueArgs {
        id: HwQueueId(id),
        disable_gpu_timeout: false,
        progress_fence: fence,
        private_data: &[],
        callbacks: &callbacks,
    };

    HwQueue::create(context, &Passive::here(), &args).unwrap()
}

fn started(config: Config) -> Shared<Port> {
    let info = StartInfo {
        luid: Luid::default(),
    };

    Port::start(
        Box::new(SoftKmd::add_device(config)),
        &Passive::here(),
        &info,
    )
    .unwrap()
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
fn runs(scene: &Scene) -> bool {
    scene.data.words()[0].store(0, Release);
    is_written(&scene.data)
}

/// Waits until somebody writes the first word of a frame.
fn is_written(frame: &Frame) -> bool {
    let end = Instant::now() + WHILE;

    while word(frame, 0) == 0 {
        if Instant::now() > end {
            return false;
        }
        thread::yield_now();
    }
    true
}

#[test]
fn gpu_6_what_is_submitted_runs_in_order_on_every_node() {
    let port = started(Config::default());

    for node in 0..4 {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(node, 7, &ear);
        let dwords = Commands::default()
            .write(DATA + 8, 0x1234_5678_9abc_def0)
            .release(DATA + 16, 5)
            .into(&scene.code);

        for number in 1..=100 {
            // As many at a time as it takes.
            ear.wait(|told| told.completed + 4 >= number);
            submit(&context, number, CODE, dwords);
        }
        ear.completed(100);
        assert_eq!(word(&scene.data, 1), 0x1234_5678_9abc_def0);
        assert_eq!(word(&scene.data, 2), 5);

        let told = ear.told().clone();

        assert_eq!(told.signaled, 100);
        assert!(told.faults.is_empty() && told.ran_ns > 0);

        let status = port
            .enter()
            .unwrap()
            .query_node_status(&Passive::here(), node);

        assert_eq!(
            (status.submissions, status.ready, status.blocked),
            (100, 0, 0)
        );
        assert!(status.running.is_none() && status.busy_ns >= told.ran_ns);
    }
}

#[test]
fn gpu_8_a_hw_queue_stores_its_progress_value() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene
        .space
        .context(1, 7, Scheduling::HwQueues, &ear)
        .unwrap();
    let first = hw_queue(&context, 8, DATA + 64, &ear);

    context
        .set_root_page_table(&Passive::here(), &scene.space.root())
        .unwrap();

    let other_ear = Shared::new(Ear::default());
    let second = hw_queue(&context, 9, DATA + 72, &other_ear);
    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    for (queue, ear, index, values) in [
        (&first, &ear, 8, [10, 11]),
        (&second, &other_ear, 9, [1, 1 << 40]),
    ] {
        for (number, value) in (1..).zip(values) {
            let submission = Submission {
                number,
                commands: CODE,
                length: dwords * 4,
                progress: Some(value),
            };

            in_dispatch(|class| queue.submit(class, &submission)).unwrap();
        }
        ear.completed(2);
        assert_eq!(word(&scene.data, index), values[1]);
    }
}

#[test]
fn gpu_43_a_queue_that_waits_gives_the_engine_to_others() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let other = Scene::new(&port, 2);
    let (ear, other_ear) = (Shared::new(Ear::default()), Shared::new(Ear::default()));
    let waiting = scene.space.packets(0, 7, &ear);
    let working = other.space.packets(0, 8, &other_ear);
    let dwords = Commands::default()
        .wait(DATA, 3)
        .write(DATA + 8, 9)
        .into(&scene.code);

    submit(&waiting, 1, CODE, dwords);

    let more = Commands::default().write(DATA, 1).into(&other.code);

    for number in 1..=20 {
        submit(&working, number, CODE, more);
        other_ear.completed(number);
    }

    let status = port.enter().unwrap().query_node_status(&Passive::here(), 0);

    assert_eq!(ear.told().completed, 0);
    assert_eq!((status.blocked + status.ready, status.running), (1, None));
    scene.data.words()[0].store(3, Release);
    ear.completed(1);
    assert_eq!(word(&scene.data, 1), 9);
}

/// GPU-43: a wait costs little, and GPU-114: without one the threads sleep.
#[test]
fn gpu_43_a_wait_is_polled_now_and_then() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(2, 7, &ear);
    let dwords = Commands::default().wait(DATA, 1).into(&scene.code);

    submit(&context, 1, CODE, dwords);

    let begin = Instant::now();

    thread::sleep(WHILE);

    // Each look is a step that tells that it ran.
    let looks = ear.wait(|told| told.ran_ns > 0).ran_ns;
    let elapsed = begin.elapsed();

    assert!(
        u128::from(looks) < elapsed.as_nanos(),
        "it waits, it does not spin"
    );
    scene.data.words()[0].store(1, Release);
    ear.completed(1);
}

#[test]
fn gpu_50_queues_of_one_engine_share_it_by_priority() {
    let port = started(Config::default());
    let scenes = [1, 2, 3].map(|id| Scene::new(&port, id));
    let ears = [(); 3].map(|()| Shared::new(Ear::default()));
    let contexts: Vec<_> = scenes
        .iter()
        .zip(&ears)
        .map(|(scene, ear)| scene.space.packets(0, 7, ear))
        .collect();

    for (scene, context) in scenes.iter().zip(&contexts) {
        submit(context, 1, CODE, endless(scene));
    }
    for scene in &scenes {
        assert!(runs(scene), "each gets the engine");
    }
    contexts[1].set_priority(&Passive::here(), 7).unwrap();
    contexts[2].set_priority(&Passive::here(), -7).unwrap();

    let before: Vec<_> = ears.iter().map(|ear| ear.told().ran_ns).collect();

    thread::sleep(WHILE);

    let ran: Vec<_> = ears
        .iter()
        .zip(before)
        .map(|(ear, before)| ear.told().ran_ns - before)
        .collect();

    assert!(
        ran[1] > 2 * (ran[0] + ran[2]),
        "the highest has most: {ran:?}"
    );
    assert!(ran[0] > 0 && ran[2] > 0, "nobody starves: {ran:?}");

    let status = port.enter().unwrap().query_node_status(&Passive::here(), 0);

    assert!(status.switches > 3 && status.running == Some(7));
}

#[test]
fn gpu_67_a_page_fault_stops_its_queue_only() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let other = Scene::new(&port, 2);
    let (ear, other_ear) = (Shared::new(Ear::default()), Shared::new(Ear::default()));
    let faulty = scene.space.packets(0, 7, &ear);
    let good = other.space.packets(0, 8, &other_ear);
    let dwords = Commands::default()
        .write(DATA, 1)
        .write(DATA + PAGE, 2)
        .write(DATA + 8, 3)
        .into(&scene.code);

    submit(&faulty, 1, CODE, dwords);

    let told = ear.wait(|told| !told.faults.is_empty());
    let expected = Fault {
        kind: FaultKind::PageFault {
            address: DATA + PAGE,
            write: true,
            level: 0,
        },
        packet: CODE + 6 * 4,
        number: 1,
        flags: 1,
    };

    assert_eq!(told.faults, [expected]);
    assert_eq!((word(&scene.data, 0), word(&scene.data, 1)), (1, 0));

    // It takes more, and does nothing with it.
    submit(&faulty, 2, CODE, dwords);

    let more = Commands::default().write(DATA, 1).into(&other.code);

    submit(&good, 1, CODE, more);
    other_ear.completed(1);

    let told = ear.told();

    assert_eq!((told.completed, told.faults.len()), (0, 1));
}

#[test]
fn gpu_46_what_only_the_system_may_do_is_illegal_on_the_paging_node_too() {
    let port = started(Config::default());

    for (node, header, fields) in [
        (3, 0xc000_9800, vec![0]),
        (0, 0xc000_9800, vec![0]),
        (3, 0xc007_e500, vec![1, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(node, 7, &ear);
        let opcode = (header >> 8) & 0xff;
        let dwords = Commands::default()
            .packet(opcode, &fields)
            .into(&scene.code);

        submit(&context, 1, CODE, dwords);

        let told = ear.wait(|told| !told.faults.is_empty());

        assert_eq!(told.faults[0].kind, FaultKind::IllegalPacket { header });
        assert_eq!((told.faults[0].packet, told.faults[0].number), (CODE, 1));
    }
}

/// MEM-58: when FlushTlb returns, the frame may go. A stale access would fault, because the frame
/// is not there any more, or write to what has it next.
#[test]
fn mem_58_after_a_flush_no_engine_uses_an_old_translation() {
    let port = started(Config::default());
    let scenes = [0, 1].map(|id| Scene::new(&port, id));
    let ears = [(); 2].map(|()| Shared::new(Ear::default()));
    let contexts = [0usize, 1].map(|node| {
        let scene = &scenes[node];
        let context = scene.space.packets(node as u32, 7, &ears[node]);

        submit(&context, 1, CODE, endless(scene));
        context
    });

    for _ in 0..200 {
        for scene in &scenes {
            let fresh = Frame::new();

            // Never without an entry: the engines run all the time.
            scene.space.map(DATA, &fresh);
            scene
                .space
                .process
                .flush_tlb(&Passive::here(), DATA, DATA + PAGE);
            scene.data.words()[0].store(0, Release);
            assert!(is_written(&fresh), "the new frame is not used");
            assert_eq!(word(&scene.data, 0), 0, "the old frame is written to");
            scene.space.map(DATA, &scene.data);
            scene
                .space
                .process
                .flush_tlb(&Passive::here(), 0, 0);
            drop(fresh);
        }
    }
    for (scene, ear) in scenes.iter().zip(&ears) {
        assert_eq!(ear.told().faults, []);
        assert!(runs(scene));
        scene.space.unmap(DATA);
        ear.wait(|told| told.faults.len() == 1);
    }
    drop(contexts);
}

/// GPU-105: what runs is stopped by its destroy, and nothing is told any more.
#[test]
fn gpu_105_a_queue_that_runs_is_destroyed() {
    let port = started(Config::default());

    for round in 0..50 {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(0, 7, &ear);

        submit(&context, 1, CODE, endless(&scene));
        if round % 2 == 0 {
            assert!(runs(&scene));
        }
        drop(context);
        // The driver has let go of the callbacks.
        assert_eq!(Shared::strong_count(&ear), 1);
        scene.data.words()[0].store(0, Release);
        thread::yield_now();
        assert_eq!(word(&scene.data, 0), 0);
    }
}

#[test]
fn gpu_51_a_suspended_context_runs_after_it_is_resumed() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    submit(&context, 1, CODE, endless(&scene));
    assert!(runs(&scene));

    for id in 1..=20 {
        assert_eq!(
            in_dispatch(|class| context.suspend(class, id)),
            Ok(Suspend::Pending)
        );
        ear.wait(|told| told.suspended.last() == Some(&id));
        assert!(id > 1 || !runs(&scene), "it is suspended");
        assert_eq!(
            in_dispatch(|class| context.suspend(class, 100)),
            Ok(Suspend::Done)
        );
        in_dispatch(|class| context.resume(class)).unwrap();
        assert!(runs(&scene), "it is resumed");
    }
    assert_eq!(ear.told().suspended, (1..=20).collect::<Vec<_>>());
}

#[test]
fn gpu_11_a_suspended_context_takes_submissions() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);
    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    in_dispatch(|class| context.suspend(class, 1)).unwrap();
    for number in 1..=4 {
        submit(&context, number, CODE, dwords);
    }
    ear.wait(|told| told.suspended == [1]);
    thread::sleep(WHILE);
    assert_eq!((ear.told().completed, word(&scene.data, 0)), (0, 0));
    in_dispatch(|class| context.resume(class)).unwrap();
    ear.completed(4);
    assert_eq!(word(&scene.data, 0), 1);
}

/// GPU-114: StopDevice ends the threads, whatever they do; then there are only destroys.
#[test]
fn gpu_114_an_adapter_stops_while_its_engines_run() {
    for _ in 0..20 {
        let port = started(Config::default());
        let scene = Scene::new(&port, 1);
        let ears = [(); 4].map(|()| Shared::new(Ear::default()));
        let contexts = [0usize, 1, 2, 3].map(|node| {
            let context = scene.space.packets(node as u32, 7, &ears[node]);

            submit(&context, 1, CODE, endless(&scene));
            context
        });

        port.stop(&Passive::here());
        assert!(!runs(&scene));
        assert_eq!(
            in_dispatch(|class| contexts[0].suspend(class, 1)),
            Err(KmdError::DeviceRemoved)
        );
        drop(contexts);
    }
}

/// Everything at once, from many threads.
#[test]
fn gpu_101_clients_come_and_go_while_others_work() {
    let port = started(Config::default());

    thread::scope(|scope| {
        for client in 0..6u64 {
            let port = &port;

            scope.spawn(move || {
                for round in 0..20u64 {
                    let scene = Scene::new(port, client);
                    let ear = Shared::new(Ear::default());
                    let context = scene.space.packets((client % 4) as u32, client, &ear);
                    let value = (client << 32) | round;
                    let dwords = Commands::default()
                        .write(DATA, value)
                        .wait(DATA + 8, 1)
                        .release(DATA + 16, value)
                        .into(&scene.code);

                    submit(&context, 1, CODE, dwords);
                    if round % 5 == 4 {
                        continue;
                    }
                    scene.data.words()[1].store(1, Release);
                    ear.completed(1);
                    assert_eq!((word(&scene.data, 0), word(&scene.data, 2)), (value, value));
                    assert_eq!(ear.told().faults, []);
                }
            });
        }
    });
}

#[test]
fn mem_1_segments_are_local_memory_and_an_aperture() {
    let segments = |local_memory| {
        let port = started(Config {
            local_memory,
            ..Config::default()
        });
        let mut segments = Segments::new();
        let mut caps = DriverCaps::default();
        let class = Passive::here();
        let kmd = port.enter().unwrap();

        kmd.query_adapter_info(&class, AdapterQuery::Segments(&mut segments));
        kmd.query_adapter_info(&class, AdapterQuery::DriverCaps(&mut caps));
        assert_eq!(caps.local_memory, local_memory);
        assert_eq!(
            (caps.gpu_mmu.address_bits, caps.gpu_mmu.page_table_levels),
            (48, 4)
        );
        drop(kmd);
        segments
    };
    let kinds = |segments: &Segments| {
        segments
            .iter()
            .map(|(id, segment)| (id, segment.kind))
            .collect::<Vec<_>>()
    };

    let with = segments(1 << 20);

    assert_eq!(
        kinds(&with),
        [(1, SegmentKind::Memory), (2, SegmentKind::Aperture)]
    );
    assert_eq!(with.get(1).unwrap().size, 1 << 20);
    assert!(with.get(1).unwrap().memory.is_some() && with.get(0).is_none());
    assert_eq!(kinds(&segments(0)), [(1, SegmentKind::Aperture)]);
}

#[test]
fn mem_110_engines_use_local_memory_whose_pages_are_taken_at_first_use() {
    let port = started(Config {
        local_memory: 4 * PAGE,
        ..Config::default()
    });
    let mut segments = Segments::new();

    port.enter()
        .unwrap()
        .query_adapter_info(&Passive::here(), AdapterQuery::Segments(&mut segments));

    let memory = segments.get(1).unwrap().memory.clone().unwrap();
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    scene.space.set(DATA + PAGE, page(1, 3 * PAGE));
    scene.space.set(DATA + 2 * PAGE, page(1, 4 * PAGE));
    assert_eq!(memory.taken(), 0);

    let dwords = Commands::default()
        .write(DATA + PAGE + 8, 5)
        .into(&scene.code);

    submit(&context, 1, CODE, dwords);
    ear.completed(1);
    assert_eq!(memory.taken(), 1);
    assert_eq!(memory.page(3).unwrap().words()[1].load(Acquire), 5);

    // Behind its end there is nothing.
    let dwords = Commands::default()
        .write(DATA + 2 * PAGE, 5)
        .into(&scene.code);

    submit(&context, 2, CODE, dwords);
    assert_eq!(ear.wait(|told| !told.faults.is_empty()).faults.len(), 1);
}

#[test]
fn res_23_sizes_and_places_of_allocations() {
    let port = started(Config::default());
    let bare = started(Config {
        local_memory: 0,
        ..Config::default()
    });
    let describe = |port: &Shared<Port>, words: [u32; 12], existing| {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let args = CreateAllocationArgs {
            id: AllocationId(1),
            private_data: &data,
            existing,
        };
        let kmd = port.enter().unwrap();

        kmd.create_allocation(&Passive::here(), &args)
            .map(|(_, info)| {
                (
                    info.size,
                    info.alignment,
                    info.supported_segments,
                    info.preferred_segment,
                )
            })
    };
    let system = [0x4147_5844, 1, 0x2000, 0, 0, 0, 0, 0, 0, 0x1_0000, 0, 0];
    let mut local = system;
    let mut other = system;

    local[10] = 1;
    other[0] = 7;

    let refused = Err(KmdError::InvalidParameter);

    assert_eq!(describe(&port, system, false), Ok((0x2000, 0x1_0000, 4, 2)));
    assert_eq!(describe(&port, system, true), Ok((0x2000, 0x1_0000, 4, 2)));
    assert_eq!(describe(&port, local, false), Ok((0x2000, 0x1_0000, 2, 1)));
    assert_eq!(describe(&port, local, true), refused);
    assert_eq!(describe(&bare, local, false), refused, "it has none");
    assert_eq!(describe(&port, other, false), refused);
    assert_eq!(describe(&port, other, true), Ok((0, 4096, 4, 2)));

    let mut bad = system;

    bad[11] = 1;
    assert_eq!(describe(&port, bad, true), refused, "ours, but wrong");
}

#[test]
fn gpu_2_there_are_as_many_engines_as_nodes() {
    let port = started(Config {
        nodes: 2,
        ..Config::default()
    });
    let space = Space::new(&port, 1);
    let ear = Shared::new(Ear::default());

    for (node, made) in [(0, true), (1, true), (2, false), (u32::MAX, false)] {
        let context = space.context(node, 7, Scheduling::Packets, &ear);

        assert_eq!(context.is_ok(), made, "node {node}");
    }
}

#[test]
fn numbers_of_a_slab_are_used_again() {
    let mut slab = Slab::new().unwrap();

    assert_eq!(slab.insert(0), Err(0), "there is no room yet");
    assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    for number in 0..256 {
        assert_eq!(slab.insert(number), Ok(number));
    }
    assert_eq!(slab.insert(256), Err(256));
    assert_eq!((slab.remove(7), slab.remove(7)), (Some(7), None));
    assert_eq!((slab.remove(3), slab.remove(999_999_999)), (Some(3), None));
    assert_eq!((slab.get(3), slab.get(4)), (None, Some(&4)));
    assert_eq!((slab.insert(30), slab.insert(70)), (Ok(3), Ok(7)));
    assert_eq!(slab.insert(256), Err(256));
    assert!(slab.grow(Chunk::new().unwrap()).is_ok());
    assert_eq!(slab.insert(256), Ok(256));
    *slab.get_mut(256).unwrap() = 1;
    assert_eq!(slab.iter().count(), 257);
    assert_eq!(slab.iter().last(), Some(&1));
}
