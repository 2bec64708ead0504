// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which queue has the engine.

use std::sync::{atomic::Ordering::Release, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use super::{
    endless, runs, stands, started, submit, word, Commands, Ear, Scene, CODE, DATA, LIMIT, WHILE,
};
use crate::ddi::class::{DeviceInterrupt, Passive};
use crate::ddi::object::Context;
use crate::ddi::queue::{Fault, QueueCallbacks, Suspend};
use crate::ddi::types::{ContextId, CreateContextArgs, Scheduling};
use crate::kmd::soft::Config;
use crate::platform::Shared;

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
        runs(scene);
    }
    contexts[1].set_priority(&Passive::here(), 7).unwrap();
    contexts[2].set_priority(&Passive::here(), -7).unwrap();

    let slices = || {
        let slices: Vec<_> = ears.iter().map(|ear| ear.told().slices).collect();

        slices
    };
    let before = slices();

    // Each of the lower ones has several turns more, however long that takes.
    for number in [0, 2] {
        ears[number].wait(|told| told.slices >= before[number] + 3);
    }

    let ran: Vec<_> = slices()
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect();

    assert!(
        ran[1] > 2 * (ran[0] + ran[2]),
        "the highest has most: {ran:?}"
    );

    let status = port.enter().unwrap().query_node_status(&Passive::here(), 0);

    assert!(status.switches > 3 && status.running == Some(7));
}

#[test]
fn gpu_51_a_suspended_context_runs_after_it_is_resumed() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    submit(&context, 1, CODE, endless(&scene));
    runs(&scene);

    for id in 1..=20 {
        assert_eq!(
            context.suspend(&mut Passive::here(), id),
            Ok(Suspend::Pending)
        );
        ear.wait(|told| told.suspended.last() == Some(&id));
        if id == 1 {
            stands(&scene);
        }
        assert_eq!(
            context.suspend(&mut Passive::here(), 100),
            Ok(Suspend::Done)
        );
        context.resume(&mut Passive::here()).unwrap();
        runs(&scene);
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

    context.suspend(&mut Passive::here(), 1).unwrap();
    for number in 1..=4 {
        submit(&context, number, CODE, dwords);
    }
    ear.wait(|told| told.suspended == [1]);
    thread::sleep(WHILE);
    assert_eq!((ear.told().completed, word(&scene.data, 0)), (0, 0));
    context.resume(&mut Passive::here()).unwrap();
    ear.completed(4);
    assert_eq!(word(&scene.data, 0), 1);
}

/// Holds the engine in a callback until it is opened.
#[derive(Default)]
struct Gate {
    /// Whether the engine is here, and whether it may go.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Gate {
    fn change(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&(bool, bool)) -> bool) {
        let state = self.state.lock().unwrap();
        let wait = self
            .changed
            .wait_timeout_while(state, LIMIT, |now| !until(now));

        assert!(!wait.unwrap().1.timed_out());
    }
}

impl QueueCallbacks for Gate {
    fn completed(&self, _: &DeviceInterrupt, _: u64) {
        self.change(|state| state.0 = true);
        self.wait(|state| state.1);
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

    fn faulted(&self, _: &DeviceInterrupt, _: &Fault) {}

    fn invalidated(&self) {}

    fn suspended(&self, _: &DeviceInterrupt, _: u64) {}
}

/// Writes down that something was told of its queue.
struct Order {
    id: u64,
    seen: Shared<Mutex<Vec<u64>>>,
}

impl QueueCallbacks for Order {
    fn completed(&self, _: &DeviceInterrupt, _: u64) {
        self.seen.lock().unwrap().push(self.id);
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

    fn faulted(&self, _: &DeviceInterrupt, _: &Fault) {}

    fn invalidated(&self) {}

    fn suspended(&self, _: &DeviceInterrupt, _: u64) {
        self.seen.lock().unwrap().push(self.id);
    }
}

/// Has something done to very many contexts while their engine is held, which tells of each of them
/// later, in the order in which that was.
fn many_at_once(act: impl Fn(&Context, u32)) {
    const COUNT: u64 = 200;

    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let gate = Shared::new(Gate::default());
    let seen = Shared::new(Mutex::new(Vec::new()));
    let dwords = Commands::default().write(DATA, 1).into(&scene.code);
    let create = |id, callbacks: Shared<dyn QueueCallbacks>| {
        let class = Passive::here();
        let args = CreateContextArgs {
            id: ContextId(id),
            scheduling: Scheduling::Packets,
            node: 0,
            engines: 0,
            is_system: false,
            private_data: &[],
            callbacks: &callbacks,
        };
        let context = Context::create(&scene.space.device, &class, &args).unwrap();

        context
            .set_root_page_table(&class, &scene.space.root())
            .unwrap();
        context
    };
    let first = create(1000, gate.clone());
    let contexts: Vec<_> = (0..COUNT)
        .map(|id| {
            let seen = seen.clone();

            create(id, Shared::new(Order { id, seen }))
        })
        .collect();

    submit(&first, 1, CODE, dwords);
    gate.wait(|state| state.0);
    for context in &contexts {
        act(context, dwords);
    }
    gate.change(|state| state.1 = true);

    let end = Instant::now() + LIMIT;

    while seen.lock().unwrap().len() < COUNT as usize {
        assert!(Instant::now() < end, "{:?}", seen.lock().unwrap());
        thread::yield_now();
    }
    assert!(seen.lock().unwrap().iter().copied().eq(0..COUNT));
}

/// An engine looks at a part of many queues before it goes on, and forgets none of them.
#[test]
fn gpu_41_many_queues_have_work_at_once() {
    many_at_once(|context, dwords| submit(context, 1, CODE, dwords));
}

/// The same where nothing of what it has looked at gives it something to run.
#[test]
fn gpu_51_many_contexts_are_suspended_at_once() {
    many_at_once(|context, _| {
        let suspend = context.suspend(&mut Passive::here(), 1).unwrap();

        assert_eq!(suspend, Suspend::Pending);
    });
}
