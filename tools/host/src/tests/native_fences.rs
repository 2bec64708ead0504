// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of a store to CurrentValue and of a queue that begins to wait for it (GPU-53,
//! M19, M20).

use loom::{sync::Arc, thread::spawn};

use super::interleavings::explore_within;
use crate::ddi::native_fence::{
    CreateNativeFenceArgs, CurrentValueUpdate, FenceUpdate, NativeFenceCallbacks,
};
use crate::ddi::types::{NativeFenceCookie, NativeFenceId};
use crate::engine::fences::{FenceIndex, Fences};
use crate::engine::run_list::List;
use crate::kmd::soft::cmp::ENGINES;
use crate::kmd::soft::native_fences::{Bell, NativeFences};
use crate::platform::{full_fence, load_acquire, store_release, word64, Shared, Word64};

struct Nobody;

impl NativeFenceCallbacks for Nobody {
    fn signaled(&self) {}
}

/// A fence, and the engine with a queue that waits for 1.
struct Scene {
    fences: NativeFences,
    bell: Shared<Bell>,
    fence: NativeFenceCookie,
    current: Word64,
}

impl Scene {
    fn new() -> Arc<Self> {
        let bell = Bell::new().unwrap();
        let mut bells = [const { None }; ENGINES];

        bells[0] = Some(bell.clone());

        let fences = NativeFences::new(bells).unwrap();
        let callbacks: Shared<dyn NativeFenceCallbacks> = Shared::new(Nobody);
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(1),
            callbacks: &callbacks,
        };
        let fence = fences.create(&args).unwrap();

        Arc::new(Self {
            fences,
            bell,
            fence,
            current: word64(0),
        })
    }

    fn index(&self) -> FenceIndex {
        FenceIndex(self.fence.0 as u32)
    }

    /// The engine puts the queue into the list and looks again; whether it goes on. `barrier` is
    /// that of `Engine::is_reached`.
    fn block(&self, barrier: bool) -> bool {
        let queues = List::from_word((1 << 32) | 1);

        self.fences.set_waiting(self.index(), 0, queues);
        if barrier {
            full_fence();
        }
        load_acquire(&self.current) >= 1
    }

    fn update(&self, how: CurrentValueUpdate) {
        let update = FenceUpdate {
            fence: self.fence,
            value: 1,
            word: &self.current,
        };

        self.fences.update_current_values(&[update], how);
    }
}

/// Who signals, and then: the queue goes on, or its engine has to look.
fn explore(barrier: bool, signal: fn(&Scene)) {
    explore_within(Some(3), move || {
        let scene = Scene::new();
        let signaller = {
            let scene = scene.clone();

            spawn(move || signal(&scene))
        };
        let goes_on = scene.block(barrier);

        signaller.join().unwrap();
        assert!(goes_on || scene.bell.pop().is_some(), "it sleeps");
    });
}

#[test]
fn gpu_53_a_cpu_signal_against_a_queue_that_begins_to_wait() {
    explore(true, |scene| scene.update(CurrentValueUpdate::Store));
}

#[test]
fn gpu_53_a_notification_against_a_queue_that_begins_to_wait() {
    explore(true, |scene| {
        store_release(&scene.current, 1);
        scene.update(CurrentValueUpdate::NotificationOnly);
    });
}

#[test]
fn gpu_53_another_engine_against_a_queue_that_begins_to_wait() {
    explore(true, |scene| {
        store_release(&scene.current, 1);
        full_fence();
        scene.fences.stored(scene.index());
    });
}

/// Without the barrier of who signals.
#[test]
#[should_panic(expected = "it sleeps")]
fn mutant_gpu_53_the_other_engine_has_no_barrier() {
    explore(true, |scene| {
        store_release(&scene.current, 1);
        scene.fences.stored(scene.index());
    });
}

/// Without the one of the engine that waits.
#[test]
#[should_panic(expected = "it sleeps")]
fn mutant_gpu_53_the_second_look_has_no_barrier() {
    explore(false, |scene| scene.update(CurrentValueUpdate::Store));
}
