// SPDX-License-Identifier: MIT OR Apache-2.0

//! Doorbells of the software adapter, with the part of the OS and of the processor played by the
//! test: a page that is shown by a fault and taken away again.

use std::sync::atomic::{fence, AtomicBool, Ordering::SeqCst};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use super::{started, word, Commands, Ear, Scene, CODE, DATA, LIMIT, PAGE};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::doorbell::{CreateDoorbellArgs, Disconnect, DoorbellCallbacks};
use crate::ddi::object::{Context, Doorbell, HwQueue};
use crate::ddi::port::Port;
use crate::ddi::queue::QueueCallbacks;
use crate::ddi::types::{CreateHwQueueArgs, DoorbellId, HwQueueId, KmdError, Scheduling};
use crate::kmd::soft::{Config, DoorbellConfig};
use crate::logic::doorbell::DoorbellStatus;
use crate::platform::Shared;

/// Where rings and control pages are.
const RING: u64 = DATA + 0x100_0000;
const CONTROL: u64 = DATA + 0x200_0000;

/// What a processor finds at the address of a doorbell.
#[derive(Default)]
struct Shown {
    /// Connected, to a doorbell that traps.
    doorbell: Option<(Shared<Doorbell>, bool)>,
    /// The page of the physical doorbell is there, so that a store does not trap.
    present: bool,
    traps: u32,
}

/// The OS part's side of a doorbell.
struct Views {
    shown: Mutex<Shown>,
    status: Mutex<DoorbellStatus>,
}

impl Views {
    fn new() -> Shared<Self> {
        Shared::new(Self {
            shown: Mutex::default(),
            status: Mutex::new(DoorbellStatus::Retry),
        })
    }

    /// A store of the process to the doorbell.
    fn store(&self) {
        let mut shown = self.shown.lock().unwrap();

        if let (Some((doorbell, true)), false) = (&shown.doorbell, shown.present) {
            Dispatch::below(&mut Passive::here(), |class| doorbell.rung(class));
            shown.present = true;
            shown.traps += 1;
        }
    }

    fn status(&self) -> DoorbellStatus {
        *self.status.lock().unwrap()
    }

    fn connect(&self, doorbell: &Shared<Doorbell>) {
        let connected = doorbell.connect(&Passive::here()).unwrap();

        {
            let mut shown = self.shown.lock().unwrap();

            shown.doorbell = Some((doorbell.clone(), connected.traps));
            shown.present = false;
            *self.status.lock().unwrap() = match connected.notify {
                true => DoorbellStatus::ConnectedNotify,
                false => DoorbellStatus::Connected,
            };
        }
        doorbell.look(&mut Passive::here());
    }
}

impl DoorbellCallbacks for Views {
    fn disconnect(&self, _: &Passive, why: Disconnect) {
        let before = {
            let mut shown = self.shown.lock().unwrap();

            shown.present = false;
            *self.status.lock().unwrap() = match why {
                Disconnect::Retry => DoorbellStatus::Retry,
                Disconnect::Abort => DoorbellStatus::Abort,
            };
            shown.doorbell.take()
        };

        drop(before);
    }

    fn trap(&self, _: &Passive) {
        self.shown.lock().unwrap().present = false;
    }
}

/// A queue with a ring of one page and a doorbell.
struct User<'a> {
    scene: &'a Scene,
    number: u64,
    ring: crate::physical::Frame,
    control: crate::physical::Frame,
    views: Shared<Views>,
    doorbell: Option<Shared<Doorbell>>,
    queue: Option<Shared<HwQueue>>,
    written: u64,
}

fn user_queue(context: &Shared<Context>, id: u64, ear: &Shared<Ear>) -> Shared<HwQueue> {
    let callbacks: Shared<dyn QueueCallbacks> = ear.clone();
    let args = CreateHwQueueArgs {
        id: HwQueueId(id),
        disable_gpu_timeout: false,
        user_mode_submission: true,
        progress_fence: 0,
        native_progress_fence: false,
        private_data: &[],
        callbacks: &callbacks,
    };

    HwQueue::create(context, &Passive::here(), &args).unwrap()
}

fn args(
    number: u64,
    ring_size: u64,
    callbacks: &Shared<dyn DoorbellCallbacks>,
) -> CreateDoorbellArgs<'_> {
    CreateDoorbellArgs {
        id: DoorbellId(number),
        ring: RING + number * PAGE,
        ring_size,
        control: CONTROL + number * PAGE,
        control_size: PAGE,
        resizes_ring: false,
        wants_secondary: false,
        private_data: &[],
        callbacks,
    }
}

impl<'a> User<'a> {
    fn new(scene: &'a Scene, context: &Shared<Context>, number: u64, ear: &Shared<Ear>) -> Self {
        let (ring, control) = (crate::physical::Frame::new(), crate::physical::Frame::new());
        let views = Views::new();
        let callbacks: Shared<dyn DoorbellCallbacks> = views.clone();
        let queue = user_queue(context, 100 + number, ear);

        scene.space.map(RING + number * PAGE, &ring);
        scene.space.map(CONTROL + number * PAGE, &control);

        let doorbell =
            Doorbell::create(&queue, &Passive::here(), &args(number, PAGE, &callbacks)).unwrap();

        Self {
            scene,
            number,
            ring,
            control,
            views,
            doorbell: Some(doorbell),
            queue: Some(queue),
            written: 0,
        }
    }

    /// A store of the next number to this queue's word, in the ring.
    fn write(&mut self) -> u64 {
        let value = word(&self.control, 8) + 1_000_000 + self.written;
        let dwords = Commands::default().write(DATA + self.number * 8, value).0;

        for dword in dwords {
            let at = self.written % (PAGE / 4);
            let (index, shift) = ((at / 2) as usize, at % 2 * 32);
            let words = self.ring.words();
            let before = words[index].load(SeqCst) & !(0xffff_ffff << shift);

            words[index].store(before | (u64::from(dword) << shift), SeqCst);
            self.written += 1;
        }
        self.control.words()[0].store(self.written, SeqCst);
        value
    }

    /// What a process does after it has written (GPU-23).
    fn submit(&mut self) {
        loop {
            self.views.store();
            fence(SeqCst);
            match self.views.status() {
                DoorbellStatus::Connected => return,
                DoorbellStatus::ConnectedNotify => {
                    let doorbell = self.doorbell.as_ref().unwrap();

                    return doorbell.notify(&Passive::here()).unwrap();
                }
                DoorbellStatus::Retry => self.views.connect(self.doorbell.as_ref().unwrap()),
                DoorbellStatus::Abort => panic!("aborted"),
            }
        }
    }

    /// One ring, and then silence.
    fn run(&mut self, ear: &Ear) {
        let value = self.write();

        self.submit();
        ear.wait(|_| word(&self.scene.data, self.number as usize) == value);
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        if let Some(doorbell) = self.doorbell.take() {
            self.views.disconnect(&Passive::here(), Disconnect::Abort);
            doorbell.disconnect(&Passive::here());
            drop(doorbell);
        }
        drop(self.queue.take());
    }
}

fn with_doorbells(doorbells: DoorbellConfig) -> Shared<Port> {
    started(Config {
        doorbells,
        ..Config::default()
    })
}

fn context(scene: &Scene, ear: &Shared<Ear>) -> Shared<Context> {
    let context = scene
        .space
        .context(1, 50, Scheduling::HwQueues, ear)
        .unwrap();

    context
        .set_root_page_table(&Passive::here(), &scene.space.root())
        .unwrap();
    context
}

#[test]
fn gpu_32_one_ring_then_silence() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let mut user = User::new(&scene, &context, 0, &ear);

    for round in 0..2000 {
        user.run(&ear);
        if round % 3 == 0 {
            std::thread::sleep(std::time::Duration::from_micros(round % 100));
        }
    }

    // Not each ring was a fault, and not all of them went without one.
    let traps = user.views.shown.lock().unwrap().traps;

    assert!((2..2000).contains(&traps), "{traps} faults");
    assert!(ear.told().faults.is_empty());
}

#[test]
fn gpu_24_queues_take_turns_on_one_doorbell() {
    let port = with_doorbells(DoorbellConfig {
        count: 1,
        ..DoorbellConfig::default()
    });
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let mut users: Vec<_> = (0..3)
        .map(|number| User::new(&scene, &context, number, &ear))
        .collect();

    for _ in 0..100 {
        for user in 0..3 {
            users[user].run(&ear);

            let connected = users
                .iter()
                .filter(|user| user.views.status().is_connected())
                .count();

            assert_eq!(connected, 1);
            assert!(users[user].views.status().is_connected());
        }
    }
}

#[test]
fn gpu_24_the_doorbell_goes_that_was_used_least_recently() {
    let port = with_doorbells(DoorbellConfig {
        count: 2,
        ..DoorbellConfig::default()
    });
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let mut users: Vec<_> = (0..3)
        .map(|number| User::new(&scene, &context, number, &ear))
        .collect();

    users[0].run(&ear);
    users[1].run(&ear);
    users[2].run(&ear);
    assert_eq!(users[0].views.status(), DoorbellStatus::Retry);
    assert!(users[1].views.status().is_connected());
    users[0].run(&ear);
    assert_eq!(users[1].views.status(), DoorbellStatus::Retry);
    assert!(users[2].views.status().is_connected());
}

#[test]
fn gpu_23_no_last_ring_is_lost_while_the_doorbell_is_taken_away() {
    let port = with_doorbells(DoorbellConfig {
        count: 1,
        ..DoorbellConfig::default()
    });
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let mut user = User::new(&scene, &context, 0, &ear);
    let taker = User::new(&scene, &context, 1, &ear);
    let (ends, doorbell) = (AtomicBool::new(false), taker.doorbell.as_ref().unwrap());

    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(SeqCst) {
                if taker.views.status() == DoorbellStatus::Retry {
                    taker.views.connect(doorbell);
                }
                std::thread::yield_now();
            }
        });
        for _ in 0..2000 {
            user.run(&ear);
        }
        ends.store(true, SeqCst);
    });
}

/// Two that connect in turns would keep each other from ringing otherwise.
#[test]
fn gpu_23_gpu_24_who_has_connected_has_time_to_ring() {
    let port = with_doorbells(DoorbellConfig {
        count: 1,
        ..DoorbellConfig::default()
    });
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let [first, second] = [0, 1].map(|number| User::new(&scene, &context, number, &ear));
    let begin = Instant::now();

    first.views.connect(first.doorbell.as_ref().unwrap());
    second.views.connect(second.doorbell.as_ref().unwrap());
    // The other one has gone at the end of its time, although it has never rung.
    assert!(begin.elapsed() >= std::time::Duration::from_millis(1));
    assert_eq!(first.views.status(), DoorbellStatus::Retry);
    assert!(second.views.status().is_connected());
}

#[test]
fn gpu_25_a_driver_that_wants_to_be_told() {
    let port = with_doorbells(DoorbellConfig {
        notify: true,
        ..DoorbellConfig::default()
    });
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let mut user = User::new(&scene, &context, 0, &ear);

    for _ in 0..100 {
        user.run(&ear);
    }
    assert_eq!(user.views.status(), DoorbellStatus::ConnectedNotify);
    assert_eq!(user.views.shown.lock().unwrap().traps, 0);
}

#[test]
fn gpu_14_gpu_31_doorbells_that_are_refused() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let callbacks: Shared<dyn DoorbellCallbacks> = Views::new();
    let queue = user_queue(&context, 7, &ear);

    for pages in [3, 5, 6, 8192] {
        let made = Doorbell::create(&queue, &Passive::here(), &args(0, pages * PAGE, &callbacks));

        assert!(matches!(made, Err(KmdError::InvalidParameter)), "{pages}");
    }
    // What is made has an end.
    drop(Doorbell::create(&queue, &Passive::here(), &args(0, PAGE, &callbacks)).unwrap());
    assert_eq!(CODE % PAGE, 0);
}

/// An engine that goes to F1 tells so once after each connection, when it has nothing to do.
#[test]
fn gpu_28_an_engine_without_work_goes_to_f1() {
    for f1 in [false, true] {
        let port = with_doorbells(DoorbellConfig {
            f1,
            ..DoorbellConfig::default()
        });
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = context(&scene, &ear);
        let mut user = User::new(&scene, &context, 0, &ear);

        for round in 1..=5 {
            user.run(&ear);
            if !f1 {
                continue;
            }
            // The part of the OS: it disconnects the doorbell, and the queue looks once more.
            ear.wait(|told| told.f1 == round);
            user.views.disconnect(&Passive::here(), Disconnect::Retry);
            user.doorbell.as_ref().unwrap().disconnect(&Passive::here());
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert_eq!(ear.told().f1, round);
        }
        assert_eq!(ear.told().f1, if f1 { 5 } else { 0 });
    }
}

/// What is in a ring is work, whether somebody has rung or not.
#[test]
fn gpu_28_a_ring_with_something_in_it_is_work() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = context(&scene, &ear);
    let mut user = User::new(&scene, &context, 0, &ear);
    let is_idle = || port.enter().unwrap().is_idle(&Passive::here());
    // Not while the ear is held: the engine tells something while it is held itself.
    let becomes_idle = || {
        let end = Instant::now() + LIMIT;

        while !is_idle() {
            assert!(Instant::now() < end, "it is never idle");
            thread::yield_now();
        }
    };

    assert!(is_idle());
    user.run(&ear);
    // The value may be there a moment before the end of its packet.
    becomes_idle();
    context.suspend(&mut Passive::here(), 1).unwrap();
    ear.wait(|told| told.suspended == [1]);
    assert!(is_idle());

    let value = user.write();

    assert!(!is_idle());
    user.submit();
    assert!(!is_idle());
    context.resume(&mut Passive::here()).unwrap();
    ear.wait(|_| word(&scene.data, 0) == value);
    becomes_idle();
    // A control page that is not there any more is for the next step to find.
    context.suspend(&mut Passive::here(), 2).unwrap();
    ear.wait(|told| told.suspended == [1, 2]);
    scene.space.unmap(CONTROL);
    assert!(!is_idle());
}

#[test]
fn gpu_18_how_many_doorbells_there_can_be() {
    let with = |count| DoorbellConfig {
        count,
        ..DoorbellConfig::default()
    };

    for count in [1, 2, 256] {
        assert!(with(count).is_valid(), "{count}");
    }
    for count in [0, 257, u32::MAX] {
        assert!(!with(count).is_valid(), "{count}");
    }
}
