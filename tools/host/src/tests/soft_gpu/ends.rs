// SPDX-License-Identifier: MIT OR Apache-2.0

//! What ends while engines work: queues, processes, the adapter, translations.

use std::sync::atomic::Ordering::Release;
use std::thread;

use super::{
    endless, is_written, runs, stands, started, submit, word, Commands, Ear, Scene, CODE, DATA,
    LIMIT, PAGE,
};
use crate::ddi::class::Passive;
use crate::ddi::types::KmdError;
use crate::kmd::soft::Config;
use crate::physical::Frame;
use crate::platform::Shared;

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
            assert!(is_written(&fresh, LIMIT), "the new frame is not used");
            assert_eq!(word(&scene.data, 0), 0, "the old frame is written to");
            scene.space.map(DATA, &scene.data);
            scene.space.process.flush_tlb(&Passive::here(), 0, 0);
            drop(fresh);
        }
    }
    for (scene, ear) in scenes.iter().zip(&ears) {
        assert_eq!(ear.told().faults, []);
        runs(scene);
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
            runs(&scene);
        }
        drop(context);
        // The driver has let go of the callbacks.
        assert_eq!(Shared::strong_count(&ear), 1);
        scene.data.words()[0].store(0, Release);
        thread::yield_now();
        assert_eq!(word(&scene.data, 0), 0);
    }
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
        stands(&scene);
        assert_eq!(
            contexts[0].suspend(&mut Passive::here(), 1),
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
