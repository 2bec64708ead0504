// SPDX-License-Identifier: MIT OR Apache-2.0

//! Engines that hang, and resets.

use std::thread;
use std::time::{Duration, Instant};

use super::{
    endless, hw_queue, in_dispatch, runs, stands, started, submit, word, Commands, Ear, Scene,
    CODE, DATA, LIMIT, PAGE,
};
use crate::ddi::class::Passive;
use crate::ddi::object::EngineRecovery;
use crate::ddi::port::Port;
use crate::ddi::recovery::{DebugInfo, EngineStatus};
use crate::ddi::types::{Escape, KmdError, Scheduling};
use crate::kmd::soft::Config;
use crate::physical::Frame;
use crate::platform::Shared;

/// A private command of the software GPU.
fn command(port: &Port, command: u32, node: u32, argument: u64) {
    let words = [u32::from_le_bytes(*b"ODXC"), 1, command, node];
    let mut data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let escape = Escape {
        flags: 0,
        device: None,
        is_privileged: true,
        handles: None,
    };

    data.extend(argument.to_le_bytes());
    port.enter()
        .unwrap()
        .escape(&Passive::here(), &escape, &mut data)
        .unwrap();
}

const HANG_ENGINE: u32 = 1;
const HANG_QUEUE: u32 = 2;
const REFUSE: u32 = 3;
const DROP: u32 = 4;
const STOP: u32 = 6;
const LOSE: u32 = 7;
const FAIL: u32 = 8;

fn status(port: &Port, node: u32) -> EngineStatus {
    let kmd = port.enter_to_query().unwrap();

    kmd.query_engine_status(&Passive::here(), node)
}

/// Asks the engine to yield, and says whether it does so in this time.
fn yields(port: &Port, node: u32, id: u64, time: Duration) -> bool {
    let end = Instant::now() + time;

    in_dispatch(|class| port.enter().unwrap().preempt_command(class, node, id));
    while status(port, node).preempted < id {
        if Instant::now() > end {
            return false;
        }
        thread::yield_now();
    }
    true
}

const SHORT: Duration = Duration::from_millis(100);

#[test]
fn gpu_92_an_engine_yields_whatever_it_does() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    assert!(yields(&port, 0, 1, LIMIT), "idle");
    assert!(status(&port, 0).is_idle);
    submit(&context, 1, CODE, endless(&scene));
    runs(&scene);
    assert!(yields(&port, 0, 2, LIMIT), "busy");
    runs(&scene);
    assert!(!status(&port, 0).is_idle);
}

#[test]
fn gpu_93_a_wait_counts_and_waiting_for_a_turn_does_not() {
    let port = started(Config::default());
    let (scene, other) = (Scene::new(&port, 1), Scene::new(&port, 2));
    let (ear, other_ear) = (Shared::new(Ear::default()), Shared::new(Ear::default()));
    let waiting = scene.space.packets(0, 7, &ear);
    let working = other.space.packets(0, 8, &other_ear);

    submit(&working, 1, CODE, endless(&other));
    runs(&other);

    let begin = Instant::now();
    let dwords = Commands::default().wait(DATA, 1).into(&scene.code);

    submit(&waiting, 1, CODE, dwords);

    let told = ear.wait(|told| told.waited_ns > 5_000_000 && told.polled_ns != 0);

    assert!(u128::from(told.waited_ns) <= begin.elapsed().as_nanos());
    assert!(told.polled_ns <= told.ran_ns);
    assert_eq!(other_ear.told().waited_ns, 0);
}

#[test]
fn gpu_95_the_context_that_hangs_is_lost_and_no_other_one() {
    let port = started(Config::default());
    let (scene, other) = (Scene::new(&port, 1), Scene::new(&port, 2));
    let (ear, other_ear) = (Shared::new(Ear::default()), Shared::new(Ear::default()));
    let hangs = scene.space.packets(0, 7, &ear);
    let works = other.space.packets(0, 8, &other_ear);
    let class = Passive::here();

    submit(&hangs, 1, CODE, endless(&scene));
    runs(&scene);

    let recovery = EngineRecovery::begin(&port, 0, Some(&hangs)).unwrap();
    let mut info = DebugInfo::default();

    recovery.collect_dbg_info(&class, &mut info);
    assert_eq!(info.queue, Some(7));
    assert!((CODE..CODE + PAGE).contains(&info.packet) && !info.is_stale);
    // What is there may be the rest of the page.
    assert!(info.count > 3 && info.dwords[0] >> 30 == 3);
    recovery.reset(&class).unwrap();
    assert_eq!(ear.told().invalidated, 1);
    stands(&scene);

    let more = Commands::default().write(DATA, 1).into(&other.code);

    submit(&works, 1, CODE, more);
    thread::sleep(SHORT);
    assert_eq!(other_ear.told().completed, 0, "before ResumeHwEngine");
    recovery.resume(&class);
    other_ear.completed(1);
    stands(&scene);
    assert_eq!((ear.told().completed, other_ear.told().invalidated), (0, 0));
}

/// GPU-97: on return the engine holds no translation, and uses no frame.
#[test]
fn gpu_97_nothing_is_used_after_the_reset() {
    let port = started(Config::default());

    for (hang, first) in [(false, 1), (true, 11)] {
        let scene = Scene::new(&port, 1);
        let ear = Shared::new(Ear::default());
        let context = scene.space.packets(1, 7, &ear);
        let class = Passive::here();

        submit(&context, 1, CODE, endless(&scene));
        runs(&scene);
        if hang {
            command(&port, HANG_ENGINE, 1, 0);
            // The slice that runs now may still end.
            assert!((first..first + 3).any(|id| !yields(&port, 1, id, SHORT)));
        }

        let hung = (!hang).then_some(&*context);
        let recovery = EngineRecovery::begin(&port, 1, hung).unwrap();
        let mut info = DebugInfo::default();

        recovery.collect_dbg_info(&class, &mut info);
        assert_eq!((info.queue, info.is_stale), (Some(7), hang));
        recovery.reset(&class).unwrap();
        assert_eq!(ear.told().invalidated, 1);

        // Frames that a test drops are poisoned, and an access to them is found.
        let Scene { data, code, space } = scene;

        drop((data, code));
        recovery.resume(&class);
        assert!(yields(&port, 1, first + 9, LIMIT));
        drop((recovery, context, space));
    }
}

#[test]
fn gpu_98_an_engine_that_hangs_keeps_who_waits_for_it_until_the_reset() {
    let port = started(Config::default());
    let (scene, other) = (Scene::new(&port, 1), Scene::new(&port, 2));
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);
    let class = Passive::here();

    command(&port, HANG_ENGINE, 0, 0);

    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    submit(&context, 1, CODE, dwords);
    assert!(!yields(&port, 0, 1, SHORT));
    thread::scope(|scope| {
        let flush = scope.spawn(|| {
            let frame = Frame::new();

            other.space.map(0x40_0000, &frame);
            other.space.unmap(0x40_0000);
        });

        thread::sleep(SHORT);
        assert!(!flush.is_finished());

        let recovery = EngineRecovery::begin(&port, 0, None).unwrap();

        recovery.reset(&class).unwrap();
        recovery.resume(&class);
        flush.join().unwrap();
    });
    assert_eq!(ear.told().invalidated, 1);
    assert!(yields(&port, 0, 2, LIMIT));
    assert_eq!(word(&scene.data, 0), 0);
}

#[test]
fn gpu_98_an_engine_refuses_to_yield_until_it_is_reset() {
    let port = started(Config::default());
    let class = Passive::here();

    command(&port, REFUSE, 2, 1);
    assert!(!yields(&port, 2, 1, SHORT));
    assert!(yields(&port, 1, 2, LIMIT), "the others do");

    let recovery = EngineRecovery::begin(&port, 2, None).unwrap();

    recovery.reset(&class).unwrap();
    recovery.resume(&class);
    assert!(yields(&port, 2, 3, LIMIT));
}

#[test]
fn gpu_98_a_queue_hangs_and_its_engine_does_not() {
    let port = started(Config::default());
    let (scene, other) = (Scene::new(&port, 1), Scene::new(&port, 2));
    let (ear, other_ear) = (Shared::new(Ear::default()), Shared::new(Ear::default()));
    let hangs = scene.space.packets(0, 7, &ear);
    let works = other.space.packets(0, 8, &other_ear);

    command(&port, HANG_QUEUE, 0, 0);

    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    submit(&hangs, 1, CODE, dwords);
    ear.wait(|told| told.ran_ns > 1_000_000);

    let more = Commands::default().write(DATA, 1).into(&other.code);

    submit(&works, 1, CODE, more);
    other_ear.completed(1);
    assert!(yields(&port, 0, 1, LIMIT));
    assert_eq!((ear.told().completed, word(&scene.data, 0)), (0, 0));
}

#[test]
fn gpu_98_an_interrupt_is_dropped() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    command(&port, DROP, 0, 0);

    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    submit(&context, 1, CODE, dwords);

    let end = Instant::now() + LIMIT;

    while !status(&port, 0).is_idle {
        assert!(Instant::now() < end);
        thread::yield_now();
    }
    assert_eq!((ear.told().completed, word(&scene.data, 0)), (0, 1));
    // The next one tells of both.
    submit(&context, 2, CODE, dwords);
    ear.completed(2);
}

#[test]
fn gpu_98_a_debugger_stops_an_engine() {
    let port = started(Config::default());
    let scene = Scene::new(&port, 1);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 7, &ear);

    submit(&context, 1, CODE, endless(&scene));
    runs(&scene);
    command(&port, STOP, 0, 1);
    assert!(yields(&port, 0, 1, LIMIT));
    stands(&scene);
    assert!(status(&port, 0).is_stopped);
    command(&port, STOP, 0, 0);
    runs(&scene);
    assert!(!status(&port, 0).is_stopped);
}

#[test]
fn gpu_96_all_contexts_are_lost_when_the_adapter_is_reset() {
    let port = started(Config::default());
    let scenes: Vec<_> = (0..3).map(|id| Scene::new(&port, id)).collect();
    let ears: Vec<_> = (0..3).map(|_| Shared::new(Ear::default())).collect();
    let contexts: Vec<_> = (0..3)
        .map(|node| {
            let (scene, ear) = (&scenes[node as usize], &ears[node as usize]);
            let context = scene.space.packets(node, 10 + u64::from(node), ear);

            submit(&context, 1, CODE, endless(scene));
            runs(scene);
            context
        })
        .collect();
    let idle_ear = Shared::new(Ear::default());
    let of_queues = scenes[0]
        .space
        .context(0, 20, Scheduling::HwQueues, &idle_ear);
    let queue_ear = Shared::new(Ear::default());
    let queue = hw_queue(&of_queues.unwrap(), 21, DATA, &queue_ear);
    let class = Passive::here();

    port.begin_reset(&class).unwrap().reset(&class).unwrap();
    for (scene, ear) in scenes.iter().zip(&ears) {
        assert_eq!(ear.told().invalidated, 1);
        stands(scene);
    }
    assert_eq!(idle_ear.told().invalidated, 1, "named by its context");
    drop((contexts, queue));

    let scene = Scene::new(&port, 9);
    let ear = Shared::new(Ear::default());
    let context = scene.space.packets(0, 30, &ear);
    let dwords = Commands::default().write(DATA, 1).into(&scene.code);

    submit(&context, 1, CODE, dwords);
    ear.completed(1);
}

#[test]
fn gpu_96_resets_fail_as_they_are_told_to() {
    let port = started(Config::default());
    let class = Passive::here();
    let engine = || EngineRecovery::begin(&port, 0, None).unwrap().reset(&class);
    let adapter = || port.begin_reset(&class).unwrap().reset(&class);
    let removed = Err(KmdError::DeviceRemoved);

    command(&port, FAIL, 0, 1);
    assert_eq!(engine(), removed);
    assert!(!yields(&port, 0, 1, SHORT), "it is dead");
    assert_eq!(adapter(), Ok(()));
    assert!(yields(&port, 0, 2, LIMIT));
    for bits in [2, 4] {
        command(&port, FAIL, 0, bits);
        assert_eq!(adapter(), removed);
    }
    command(&port, FAIL, 0, 0);
    assert_eq!(adapter(), Ok(()));
    command(&port, LOSE, 0, 0);
    assert_eq!((engine(), adapter()), (removed, removed));
}
