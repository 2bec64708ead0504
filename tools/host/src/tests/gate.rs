// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of calls, destroys and the stop of a KMD (GPU-101, GPU-105).

use loom::{
    sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    },
    thread::spawn,
};

use super::interleavings::explore_within;
use crate::ddi::gate::Gate;

/// A gate, whether StopDevice is running or has run, and how many are inside.
struct Scene {
    gate: Gate,
    stopping: AtomicU32,
    inside: AtomicU32,
}

const RUNNING: u32 = 1;
const DONE: u32 = 2;

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::new().unwrap(),
            stopping: AtomicU32::new(0),
            inside: AtomicU32::new(0),
        })
    }

    /// A call; whether the gate let it in.
    fn call(&self) -> bool {
        let Ok(inside) = self.gate.enter() else {
            return false;
        };

        self.inside.fetch_add(1, Ordering::SeqCst);
        assert_eq!(
            self.stopping.load(Ordering::SeqCst),
            0,
            "a call beside or after StopDevice"
        );
        self.inside.fetch_sub(1, Ordering::SeqCst);
        drop(inside);
        true
    }

    fn destroy(&self) {
        let inside = self.gate.enter_to_destroy();

        self.inside.fetch_add(1, Ordering::SeqCst);
        assert_ne!(
            self.stopping.load(Ordering::SeqCst),
            RUNNING,
            "a destroy beside StopDevice"
        );
        self.inside.fetch_sub(1, Ordering::SeqCst);
        drop(inside);
    }

    /// Paging: refused only when nothing runs any more.
    fn page(&self) {
        let Some(inside) = self.gate.enter_to_page() else {
            assert_eq!(
                self.stopping.load(Ordering::SeqCst),
                DONE,
                "refused while engines may run"
            );
            return;
        };

        self.inside.fetch_add(1, Ordering::SeqCst);
        assert_eq!(
            self.stopping.load(Ordering::SeqCst),
            0,
            "paging beside or after StopDevice"
        );
        self.inside.fetch_sub(1, Ordering::SeqCst);
        drop(inside);
    }

    fn stop(&self) -> bool {
        let Some(_closed) = self.gate.close() else {
            return false;
        };

        self.stopping.store(RUNNING, Ordering::SeqCst);
        assert_eq!(
            self.inside.load(Ordering::SeqCst),
            0,
            "StopDevice beside a call"
        );
        self.stopping.store(DONE, Ordering::SeqCst);
        true
    }
}

#[test]
fn gpu_101_nothing_is_inside_while_a_kmd_is_stopped() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let caller = spawn({
            let scene = scene.clone();
            move || scene.call()
        });
        let destroyer = spawn({
            let scene = scene.clone();
            move || scene.destroy()
        });

        assert!(scene.stop());
        caller.join().unwrap();
        destroyer.join().unwrap();
        assert!(!scene.call(), "nothing after StopDevice");
        scene.destroy();
    });
}

/// MEM-58: who frees memory after a flush that was refused finds no engine running.
#[test]
fn mem_58_paging_is_refused_when_the_kmd_is_stopped_and_not_before() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let caller = spawn({
            let scene = scene.clone();
            move || scene.call()
        });
        let pager = spawn({
            let scene = scene.clone();
            move || scene.page()
        });

        assert!(scene.stop());
        caller.join().unwrap();
        pager.join().unwrap();
        scene.page();
    });
}

/// Paging of a call that is inside already, as of one that keeps contexts suspended.
#[test]
fn mem_58_paging_inside_a_call_does_not_wait_for_the_stop() {
    explore_within(None, || {
        let scene = Scene::new();
        let caller = spawn({
            let scene = scene.clone();
            move || {
                let inside = scene.gate.enter();

                if inside.is_ok() {
                    scene.page();
                }
            }
        });

        assert!(scene.stop());
        caller.join().unwrap();
    });
}

/// A call that fails destroys what it has made before it leaves.
#[test]
fn gpu_105_a_destroy_inside_a_call_does_not_wait_for_the_stop() {
    explore_within(None, || {
        let scene = Scene::new();
        let caller = spawn({
            let scene = scene.clone();
            move || {
                let inside = scene.gate.enter();

                if inside.is_ok() {
                    scene.destroy();
                }
            }
        });

        assert!(scene.stop());
        caller.join().unwrap();
    });
}

#[test]
fn gpu_101_one_of_two_stops() {
    explore_within(None, || {
        let scene = Scene::new();
        let other = spawn({
            let scene = scene.clone();
            move || scene.stop()
        });
        let mine = scene.stop();

        assert_ne!(mine, other.join().unwrap());
        assert!(!scene.gate.is_open());
    });
}

/// A reset: who is inside meanwhile is a query.
fn reset(scene: &Scene) -> bool {
    let Some(_resetting) = scene.gate.begin_reset() else {
        return false;
    };

    scene.stopping.store(RUNNING, Ordering::SeqCst);
    assert_eq!(
        scene.inside.load(Ordering::SeqCst),
        0,
        "a reset beside a call"
    );
    scene.stopping.store(0, Ordering::SeqCst);
    true
}

#[test]
fn gpu_101_nothing_is_inside_while_an_adapter_is_reset() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let caller = spawn({
            let scene = scene.clone();
            move || scene.call()
        });
        let destroyer = spawn({
            let scene = scene.clone();
            move || {
                scene.destroy();
                scene.page();
            }
        });

        assert!(reset(&scene));
        caller.join().unwrap();
        destroyer.join().unwrap();
        assert!(scene.call(), "the adapter runs again");
    });
}

#[test]
fn gpu_101_what_is_inside_a_call_does_not_wait_for_the_reset() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let caller = spawn({
            let scene = scene.clone();
            move || {
                let inside = scene.gate.enter();

                if inside.is_ok() {
                    scene.destroy();
                    scene.page();
                }
            }
        });

        assert!(reset(&scene));
        caller.join().unwrap();
    });
}

#[test]
fn gpu_101_queries_pass_a_reset() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let asker = spawn({
            let scene = scene.clone();
            move || assert!(scene.gate.enter_to_query().is_ok())
        });

        assert!(reset(&scene));
        asker.join().unwrap();
        assert!(scene.stop());
        assert!(scene.gate.enter_to_query().is_err());
    });
}

#[test]
fn gpu_101_a_stop_waits_for_a_reset() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let stopper = spawn({
            let scene = scene.clone();
            move || scene.stop()
        });

        reset(&scene);
        assert!(stopper.join().unwrap());
        assert!(!reset(&scene), "no reset of what is stopped");
        scene.destroy();
    });
}
