// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of a store to CurrentValue and of a queue that begins to wait for it (GPU-53,
//! M19, M20), also on another adapter (FEN-138, M21, M28), which may have a doorbell (FEN-159).

use loom::{
    sync::{
        atomic::{
            fence,
            Ordering::{Relaxed, SeqCst},
        },
        Arc, Mutex,
    },
    thread::spawn,
};

use super::interleavings::explore_within;
use crate::ddi::class::DeviceInterrupt;
use crate::ddi::interrupt_lock::InterruptLock;
use crate::ddi::native_fence::{
    CreateNativeFenceArgs, CurrentValueUpdate, FenceDoorbell, FenceUpdate, NativeFenceCallbacks,
    NativeFenceType, SystemWords,
};
use crate::ddi::types::{FenceDoorbellCookie, NativeFenceCookie, NativeFenceId};
use crate::engine::fences::{FenceIndex, Fences};
use crate::engine::run_list::List;
use crate::kmd::soft::cmp::ENGINES;
use crate::kmd::soft::native_fences::{Bell, NativeFences};
use crate::kmd::soft::own_doorbell;
use crate::kmd::soft::MonitoredValues;
use crate::platform::{
    cmpxchg, fetch_add, full_fence, load32_acquire, load_acquire, store_release, word32, word64,
    Shared, Word32, Word64,
};

/// Counts interrupts.
pub(super) struct Interrupts(pub(super) Word32);

impl NativeFenceCallbacks for Interrupts {
    fn signaled(&self, _: &DeviceInterrupt) {
        fetch_add(&self.0, 1);
    }

    fn destroyed(&self) {}
}

/// A fence, and the engine with a queue that waits for 1.
pub(super) struct Scene {
    pub(super) fences: Shared<NativeFences>,
    pub(super) bell: Shared<Bell>,
    pub(super) fence: NativeFenceCookie,
    pub(super) current: Word64,
    pub(super) monitored: Word64,
    pub(super) interrupts: Shared<Interrupts>,
    pub(super) lock: InterruptLock,
}

impl Scene {
    fn new() -> Arc<Self> {
        Self::with(MonitoredValues::Direct)
    }

    pub(super) fn with(monitored_values: MonitoredValues) -> Arc<Self> {
        let bell = Bell::new().unwrap();
        let mut bells = [const { None }; ENGINES];

        bells[0] = Some(bell.clone());

        let fences = NativeFences::new(bells, monitored_values, None).unwrap();
        let interrupts = Shared::new(Interrupts(word32(0)));
        let callbacks: Shared<dyn NativeFenceCallbacks> = interrupts.clone();
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(1),
            callbacks: &callbacks,
            monitored_value: u64::MAX,
            ty: NativeFenceType::Default,
            system: SystemWords::default(),
        };
        let fence = fences.create(&args).unwrap();

        Arc::new(Self {
            fences: Shared::new(fences),
            bell,
            fence,
            current: word64(0),
            monitored: word64(u64::MAX),
            interrupts,
            lock: InterruptLock::new().unwrap(),
        })
    }

    /// UpdateMonitoredValues.
    pub(super) fn monitor(&self, update: &FenceUpdate<'_>) {
        self.lock
            .hold(|class| self.fences.update_monitored_values(class, &[*update]))
            .unwrap();
    }

    pub(super) fn index(&self) -> FenceIndex {
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

    pub(super) fn update(&self, value: u64, how: CurrentValueUpdate) {
        let update = FenceUpdate {
            fence: self.fence,
            value,
            word: &self.current,
            current_value: &self.current,
        };

        self.fences.update_current_values(&[update], how).unwrap();
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
    explore(true, |scene| scene.update(1, CurrentValueUpdate::Store));
}

#[test]
fn gpu_53_a_notification_against_a_queue_that_begins_to_wait() {
    explore(true, |scene| {
        store_release(&scene.current, 1);
        scene.update(1, CurrentValueUpdate::NotificationOnly);
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
    explore(false, |scene| scene.update(1, CurrentValueUpdate::Store));
}

/// An engine signals 1 while the first one begins to wait for that on the CPU, and the CMP has a
/// copy of MonitoredValue: one of the two interrupts. `barrier` is that of the engine.
fn shadow(barrier: bool) {
    explore_within(Some(3), move || {
        let scene = Scene::with(MonitoredValues::Shadow);
        let engine = {
            let scene = scene.clone();

            spawn(move || {
                store_release(&scene.current, 1);
                if barrier {
                    full_fence();
                }
                let fence = scene.fences.seen(scene.index(), 0).unwrap();

                if scene.fences.monitored_value(&fence).unwrap() < 1 {
                    scene.lock.hold(|class| scene.interrupts.signaled(class));
                }
            })
        };
        let update = FenceUpdate {
            fence: scene.fence,
            value: 0,
            word: &scene.monitored,
            current_value: &scene.current,
        };

        scene.monitor(&update);
        engine.join().unwrap();
        assert!(
            load32_acquire(&scene.interrupts.0) != 0,
            "nobody interrupts"
        );
    });
}

#[test]
fn fen_75_gpu_57_a_copy_of_monitored_value_against_an_engine() {
    shadow(true);
}

/// Without the barrier of the engine.
#[test]
#[should_panic(expected = "nobody interrupts")]
fn mutant_fen_75_the_engine_has_no_barrier() {
    shadow(false);
}

/// A process plays the GPU, with relaxed accesses and a full fence of its own: it signals 1 while
/// the kernel runs UpdateMonitoredValues, because somebody begins to wait for that. One of the two
/// sees the other. `fenced`: it has the fence.
fn process(fenced: bool) {
    explore_within(Some(3), move || {
        let scene = Scene::new();
        let gpu = {
            let scene = scene.clone();

            spawn(move || {
                scene.current.store(1, Relaxed);
                if fenced {
                    fence(SeqCst);
                }
                scene.monitored.load(Relaxed)
            })
        };
        let update = FenceUpdate {
            fence: scene.fence,
            value: 0,
            word: &scene.monitored,
            current_value: &scene.current,
        };

        scene.monitor(&update);

        let sample = scene.current.load(Relaxed);
        let monitored_value = gpu.join().unwrap();

        assert!(sample >= 1 || monitored_value < 1, "nobody knows");
    });
}

#[test]
fn fen_78_a_process_plays_the_gpu() {
    process(true);
}

/// FEN-78: without the fence of the process.
#[test]
#[should_panic(expected = "nobody knows")]
fn mutant_fen_78_the_process_has_no_fence() {
    process(false);
}

/// Two adapters that have one fence, whose CurrentValue is one word. Each has a queue that waits
/// for 1.
struct Pair {
    adapters: [Arc<Scene>; 2],
    current: Word64,
}

impl Pair {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            adapters: [Scene::new(), Scene::new()],
            current: word64(0),
        })
    }

    fn note(&self, adapter: usize) {
        let scene = &self.adapters[adapter];
        let update = FenceUpdate {
            fence: scene.fence,
            value: 1,
            word: &self.current,
            current_value: &self.current,
        };
        let how = CurrentValueUpdate::NotificationOnly;

        scene.fences.update_current_values(&[update], how);
    }

    /// An engine of this adapter stores a value: its own queues meet it by themselves (FEN-139).
    fn store(&self, adapter: usize, value: u64) {
        let scene = &self.adapters[adapter];

        store_release(&self.current, value);
        full_fence();
        scene.fences.stored(scene.index());
    }

    /// The queue of this adapter begins to wait; whether it goes on.
    fn block(&self, adapter: usize) -> bool {
        let scene = &self.adapters[adapter];
        let queues = List::from_word((1 << 32) | 1);

        scene.fences.set_waiting(scene.index(), 0, queues);
        full_fence();
        load_acquire(&self.current) >= 1
    }

    fn has_bell(&self, adapter: usize) -> bool {
        self.adapters[adapter].bell.pop().is_some()
    }
}

/// M20: the worker of the first adapter tells the second one what an engine has stored.
#[test]
fn m20_fen_138_a_signal_of_another_adapter_against_a_queue_that_begins_to_wait() {
    explore_within(Some(3), || {
        let pair = Pair::new();
        let raised = Arc::new(word32(0));
        let engine = {
            let (pair, raised) = (pair.clone(), raised.clone());

            spawn(move || {
                pair.store(0, 1);
                cmpxchg(&raised, 0, 1);
            })
        };
        let worker = {
            let (pair, raised) = (pair.clone(), raised.clone());

            spawn(move || {
                let is_raised = load32_acquire(&raised) == 1;

                if is_raised {
                    pair.note(1);
                }
                is_raised
            })
        };
        let goes_on = pair.block(1);

        engine.join().unwrap();
        // The interrupt is there until somebody has looked.
        if !worker.join().unwrap() {
            pair.note(1);
        }
        assert!(goes_on || pair.has_bell(1), "it sleeps");
    });
}

/// FEN-139: nobody of the OS part does anything.
#[test]
fn fen_139_the_engines_of_one_adapter_meet_without_the_cpu() {
    explore_within(Some(3), || {
        let pair = Pair::new();
        let engine = {
            let pair = pair.clone();

            spawn(move || pair.store(0, 1))
        };
        let goes_on = pair.block(0);

        engine.join().unwrap();
        assert!(goes_on || pair.has_bell(0), "it sleeps");
        // The other adapter was not told.
        assert!(!pair.has_bell(1));
    });
}

/// M21: engines of both adapters signal at once, and both are propagated. No queue sleeps, and it
/// ends there: a notification stores nothing and interrupts nobody.
#[test]
fn m21_both_adapters_signal_at_once() {
    explore_within(Some(2), || {
        let pair = Pair::new();
        let signallers = [0, 1].map(|adapter| {
            let pair = pair.clone();

            spawn(move || {
                pair.store(adapter, adapter as u64 + 1);
                pair.note(1 - adapter);
            })
        });
        let goes_on = [pair.block(0), pair.block(1)];

        for signaller in signallers {
            signaller.join().unwrap();
        }
        for (adapter, goes_on) in goes_on.into_iter().enumerate() {
            assert!(goes_on || pair.has_bell(adapter), "it sleeps");
        }
        assert!([1, 2].contains(&load_acquire(&pair.current)));
    });
}

/// M28: a device of the second adapter opens the fence, and waits, while somebody signals, who
/// looks up under a lock where it is open.
fn explore_opening(signal: fn(&Pair, &Mutex<bool>)) {
    explore_within(Some(3), move || {
        let pair = Pair::new();
        let is_open = Arc::new(Mutex::new(false));
        let signaller = {
            let (pair, is_open) = (pair.clone(), is_open.clone());

            spawn(move || signal(&pair, &is_open))
        };

        *is_open.lock().unwrap() = true;

        let goes_on = pair.block(1);

        signaller.join().unwrap();
        assert!(goes_on || pair.has_bell(1), "it sleeps");
    });
}

#[test]
fn m28_it_is_opened_elsewhere_while_somebody_signals() {
    explore_opening(|pair, is_open| {
        store_release(&pair.current, 1);

        let is_open = *is_open.lock().unwrap();

        if is_open {
            pair.note(1);
        }
    });
}

/// Whoever signals looks before the store.
#[test]
#[should_panic(expected = "it sleeps")]
fn mutant_m28_the_adapters_are_looked_up_before_the_store() {
    explore_opening(|pair, is_open| {
        let is_open = *is_open.lock().unwrap();

        store_release(&pair.current, 1);
        if is_open {
            pair.note(1);
        }
    });
}

/// The other adapter is not told.
#[test]
#[should_panic(expected = "it sleeps")]
fn mutant_fen_138_a_signal_is_not_propagated() {
    explore_opening(|pair, _| pair.store(0, 1));
}

impl Pair {
    /// From now on engines of the first adapter ring the doorbell of the second one.
    fn connect(&self) -> FenceDoorbellCookie {
        let [from, to] = &self.adapters;
        let doorbell = own_doorbell::of(&to.fences, to.fence).unwrap();

        from.fences.connect(from.fence, &doorbell).unwrap()
    }

    /// An engine of the first adapter signals, as the core does: it rings by itself. `barrier` is
    /// that between the store and the doorbell.
    fn signal_and_ring(&self, barrier: bool) {
        let scene = &self.adapters[0];
        let fence = scene.fences.seen(scene.index(), 0).unwrap();

        store_release(&self.current, 1);
        if barrier {
            full_fence();
        }
        Fences::stored(&*scene.fences, &fence);
    }
}

/// An engine of one adapter signals while a queue of the other one begins to wait, and nobody of
/// the OS part does anything.
fn explore_doorbell(barrier: bool) {
    explore_within(Some(3), move || {
        let pair = Pair::new();

        pair.connect();

        let engine = {
            let pair = pair.clone();

            spawn(move || pair.signal_and_ring(barrier))
        };
        let goes_on = pair.block(1);

        engine.join().unwrap();
        assert!(goes_on || pair.has_bell(1), "it sleeps");
        assert_eq!(load32_acquire(&pair.adapters[0].interrupts.0), 0);
        assert_eq!(load32_acquire(&pair.adapters[1].interrupts.0), 0);
    });
}

#[test]
fn fen_159_a_doorbell_against_a_queue_that_begins_to_wait_on_another_adapter() {
    explore_doorbell(true);
}

/// Without the barrier of who signals.
#[test]
#[should_panic(expected = "it sleeps")]
fn mutant_fen_159_nothing_between_the_store_and_the_doorbell() {
    explore_doorbell(false);
}

/// M28 with doorbells: the other adapter opens the fence, by which its doorbell is connected, and
/// then its queue waits. `is_early`: the queue waits before that.
fn explore_connection(is_early: bool) {
    explore_within(Some(3), move || {
        let pair = Pair::new();
        let engine = {
            let pair = pair.clone();

            spawn(move || pair.signal_and_ring(true))
        };
        let goes_on = if is_early {
            let goes_on = pair.block(1);

            pair.connect();
            goes_on
        } else {
            pair.connect();
            pair.block(1)
        };

        engine.join().unwrap();
        assert!(goes_on || pair.has_bell(1), "it sleeps");
    });
}

#[test]
fn m28_fen_159_a_doorbell_is_connected_while_an_engine_signals() {
    explore_connection(false);
}

#[test]
#[should_panic(expected = "it sleeps")]
fn mutant_fen_159_a_queue_waits_before_its_doorbell_is_connected() {
    explore_connection(true);
}

/// A doorbell that somebody else rings is taken away: on return nobody is ringing it, and it is
/// not kept.
#[test]
fn fen_159_a_doorbell_is_taken_away_while_an_engine_signals() {
    struct Watched {
        is_gone: Shared<Word32>,
    }

    impl FenceDoorbell for Watched {
        fn ring(&self) {
            assert_eq!(load32_acquire(&self.is_gone), 0, "it is gone");
        }
    }

    explore_within(Some(3), || {
        let pair = Pair::new();
        let is_gone = Shared::new(word32(0));
        let watched = Shared::new(Watched {
            is_gone: is_gone.clone(),
        });
        let doorbell: Shared<dyn FenceDoorbell> = watched.clone();
        let scene = &pair.adapters[0];
        let connected = scene.fences.connect(scene.fence, &doorbell).unwrap();

        drop(doorbell);

        let engine = {
            let pair = pair.clone();

            spawn(move || pair.signal_and_ring(true))
        };

        scene.fences.disconnect(connected);
        cmpxchg(&is_gone, 0, 1);
        assert_eq!(Shared::strong_count(&watched), 1);
        engine.join().unwrap();
    });
}
