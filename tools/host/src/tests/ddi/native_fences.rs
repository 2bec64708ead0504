// SPDX-License-Identifier: MIT OR Apache-2.0

//! Native fences with a double below: what is called in which order, and what is undone
//! (FEN-115 to FEN-118, FEN-122, FEN-123, FEN-102, FEN-103).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{device_of, info, start};
use crate::ddi::class::{DeviceInterrupt, Dispatch, Passive};
use crate::ddi::native_fence::{
    CreateNativeFenceArgs, CurrentValueUpdate,
    CurrentValueUpdate::{NotificationOnly, Store},
    NativeFenceCallbacks, NativeFenceType, OpenNativeFenceArgs, SystemWords, PRIVATE_DATA_SIZE,
};
use crate::ddi::object::{NativeFence, NotUpdated, OpenNativeFence};
use crate::ddi::port::Port;
use crate::ddi::types::{KmdError, NativeFenceId};
use crate::kmd::fake::journal::Entry;
use crate::kmd::fake::native_fences::NativeFences;
use crate::kmd::fake::Behaviour;
use crate::kmd::soft::{Config, MonitoredValues, SoftKmd};
use crate::platform::{load_acquire, store_release, word64, Shared, Word64};

/// Counts interrupts; and the ends of the fence.
#[derive(Default)]
struct Told(AtomicU32, AtomicU32);

impl Told {
    fn ends(&self) -> u32 {
        self.1.load(Ordering::SeqCst)
    }
}

impl NativeFenceCallbacks for Told {
    fn signaled(&self, _: &DeviceInterrupt) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn destroyed(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

const SEEN: OpenNativeFenceArgs = OpenNativeFenceArgs {
    current_value: 0x1_0040,
    monitored_value: 0x2_0040,
};

fn behaviour(fences: &Shared<NativeFences>) -> Behaviour {
    Behaviour {
        native_fences: Some(fences.clone()),
        ..Behaviour::default()
    }
}

/// A fence whose interrupts these callbacks hear of; nobody waits for it.
fn native_fence(
    port: &Shared<Port>,
    callbacks: &Shared<dyn NativeFenceCallbacks>,
) -> Shared<NativeFence> {
    let args = CreateNativeFenceArgs {
        id: NativeFenceId(7),
        callbacks,
        monitored_value: u64::MAX,
        ty: NativeFenceType::Default,
        system: SystemWords::default(),
    };
    let mut data = [0; PRIVATE_DATA_SIZE];

    NativeFence::create(port, &Passive::here(), &args, &mut data).unwrap()
}

#[test]
fn fen_122_fen_123_fen_96_open_comes_after_create_and_close_before_destroy() {
    let fences = Shared::new(NativeFences::new().unwrap());
    let (journal, port) = start(behaviour(&fences));
    let port = port.unwrap();
    let device = device_of(&port, 3).unwrap();
    let told = Arc::new(Told::default());
    let callbacks: Shared<dyn NativeFenceCallbacks> = told.clone();
    let args = CreateNativeFenceArgs {
        id: NativeFenceId(7),
        callbacks: &callbacks,
        monitored_value: 0,
        ty: NativeFenceType::Default,
        system: SystemWords::default(),
    };
    let class = Passive::here();
    // FEN-123: the client's data go there and back.
    let mut data = [0x5a; PRIVATE_DATA_SIZE];
    let fence = NativeFence::create(&port, &class, &args, &mut data).unwrap();

    assert_eq!(data, [0xa5; PRIVATE_DATA_SIZE]);

    let open = || {
        let mut data = [0; PRIVATE_DATA_SIZE];

        OpenNativeFence::open(&fence, &device, &class, &SEEN, &mut data)
    };
    let opens = [open().unwrap(), open().unwrap()];
    let word = word64(1);

    Dispatch::below(&mut Passive::here(), |class| {
        fence.update_monitored_value(4, &word, &word).unwrap();
        assert_eq!((load_acquire(&word), fences.monitored_updates()), (4, 1));
        for (how, value) in [
            (CurrentValueUpdate::Store, 9),
            (CurrentValueUpdate::NotificationOnly, 9),
            (CurrentValueUpdate::AlwaysSignaled, u64::MAX),
        ] {
            fence
                .update_current_value(class, value, &word, how)
                .unwrap();
            assert_eq!(load_acquire(&word), value);
        }
    });
    assert_eq!((fences.current_updates(), fences.notifications()), (2, 1));
    assert!(fences.signal(0));
    assert_eq!(told.0.load(Ordering::SeqCst), 1);

    // The fence goes with the last one that has it.
    drop(fence);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 0);

    let [first, second] = opens;

    drop(first);
    assert_eq!(journal.count(Entry::CloseNativeFence), 1);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 0);
    // FEN-96: until here the driver may name it.
    assert_eq!(told.ends(), 0);
    drop(second);
    assert_eq!(journal.count(Entry::CloseNativeFence), 2);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 1);
    assert_eq!(told.ends(), 1);
    assert!(!fences.signal(0));
    drop((callbacks, device, port));
    assert_eq!(Shared::strong_count(&told), 1);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// FEN-118: what was done is undone.
#[test]
fn fen_118_a_refusal_of_the_driver_is_returned_as_it_is() {
    for (step, destroys) in [(4, 0), (5, 1)] {
        let fences = Shared::new(NativeFences::new().unwrap());
        // After StartDevice, CreateProcess and CreateDevice.
        let (journal, port) = start(Behaviour {
            fail: Some((step, KmdError::NoMemory)),
            ..behaviour(&fences)
        });
        let port = port.unwrap();
        let device = device_of(&port, 3).unwrap();
        let callbacks: Shared<dyn NativeFenceCallbacks> = Arc::new(Told::default());
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(7),
            callbacks: &callbacks,
            monitored_value: 0,
            ty: NativeFenceType::Default,
            system: SystemWords::default(),
        };
        let class = Passive::here();
        let mut data = [0; PRIVATE_DATA_SIZE];
        let made = NativeFence::create(&port, &class, &args, &mut data);
        let open =
            made.and_then(|fence| OpenNativeFence::open(&fence, &device, &class, &SEEN, &mut data));

        assert_eq!(open.err(), Some(KmdError::NoMemory));
        assert_eq!(journal.count(Entry::DestroyNativeFence), destroys);
        assert_eq!(journal.count(Entry::CloseNativeFence), 0);
        drop((device, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
        assert_eq!(Shared::strong_count(&callbacks), 1);
    }
}

/// Once the adapter is stopped the OS part stores by itself.
#[test]
fn fen_115_a_stopped_driver_is_not_called() {
    let fences = Shared::new(NativeFences::new().unwrap());
    let (journal, port) = start(behaviour(&fences));
    let port = port.unwrap();
    let callbacks: Shared<dyn NativeFenceCallbacks> = Arc::new(Told::default());
    let args = CreateNativeFenceArgs {
        id: NativeFenceId(7),
        callbacks: &callbacks,
        monitored_value: 0,
        ty: NativeFenceType::Default,
        system: SystemWords::default(),
    };
    let class = Passive::here();
    let mut data = [0; PRIVATE_DATA_SIZE];
    let fence = NativeFence::create(&port, &class, &args, &mut data).unwrap();
    let word = word64(1);

    port.stop(&class);

    let class = Dispatch::under_lock();
    let how = CurrentValueUpdate::Store;

    assert_eq!(
        fence.update_monitored_value(4, &word, &word),
        Err(NotUpdated::NotEntered)
    );
    assert_eq!(
        fence.update_current_value(&class, 4, &word, how),
        Err(NotUpdated::NotEntered)
    );
    assert_eq!(load_acquire(&word), 1);
    assert_eq!(
        (fences.monitored_updates(), fences.current_updates()),
        (0, 0)
    );
    drop(fence);
    assert_eq!(journal.count(Entry::DestroyNativeFence), 1);
    drop(port);
    assert!(journal.is_good_end(), "broken: {}", journal.broken());
}

/// FEN-121, FEN-138, FEN-103: a fence of two adapters is two fences to their drivers, with one
/// CurrentValue. The one that is told stores nothing, and is not held up by one that is gone.
#[test]
fn fen_103_fen_138_the_driver_of_another_adapter_is_told_and_stores_nothing() {
    let sides = [(); 2].map(|()| {
        let fences = Shared::new(NativeFences::new().unwrap());
        let (journal, port) = start(behaviour(&fences));

        (fences, journal, port.unwrap())
    });
    let class = Passive::here();
    let made = sides.each_ref().map(|(_, _, port)| {
        let callbacks: Shared<dyn NativeFenceCallbacks> = Arc::new(Told::default());
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(7),
            callbacks: &callbacks,
            monitored_value: 0,
            ty: NativeFenceType::Default,
            system: SystemWords::default(),
        };

        NativeFence::create(port, &class, &args, &mut [0; PRIVATE_DATA_SIZE]).unwrap()
    });
    let word = word64(0);
    let signal = |from: usize, value| {
        Dispatch::below(&mut Passive::here(), |class| {
            let stored = made[from].update_current_value(class, value, &word, Store);
            let told = made[1 - from].update_current_value(class, 0, &word, NotificationOnly);

            (stored, told)
        })
    };

    assert_eq!(signal(0, 5), (Ok(()), Ok(())));
    assert_eq!(load_acquire(&word), 5);

    let counts = || {
        sides
            .each_ref()
            .map(|(fences, ..)| (fences.current_updates(), fences.notifications()))
    };

    assert_eq!(counts(), [(1, 0), (0, 1)]);
    sides[1].2.stop(&class);
    assert_eq!(signal(0, 6), (Ok(()), Err(NotUpdated::NotEntered)));
    assert_eq!(load_acquire(&word), 6);
    assert_eq!(counts(), [(2, 0), (0, 1)]);
    drop(made);
    for (_, journal, port) in sides {
        assert_eq!(journal.count(Entry::CreateNativeFence), 1);
        assert_eq!(journal.count(Entry::DestroyNativeFence), 1);
        drop(port);
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
    }
}

/// An interrupt that takes its time.
#[derive(Default)]
struct Slow {
    began: AtomicBool,
    /// Somebody is about to update.
    waited_for: AtomicBool,
    ended: AtomicBool,
}

impl Slow {
    fn wait(what: &AtomicBool) {
        while !what.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

impl NativeFenceCallbacks for Slow {
    fn signaled(&self, _: &DeviceInterrupt) {
        self.began.store(true, Ordering::SeqCst);
        Self::wait(&self.waited_for);
        // Whoever is not kept out is through by then.
        thread::sleep(Duration::from_millis(20));
        self.ended.store(true, Ordering::SeqCst);
    }

    fn destroyed(&self) {}
}

/// FEN-74: UpdateMonitoredValues waits for the end of an interrupt that is being reported.
/// UpdateCurrentValuesFromCpu is of class D and does not.
#[test]
fn fen_74_monitored_values_and_interrupts_exclude_each_other() {
    let fences = Shared::new(NativeFences::new().unwrap());
    let (_journal, port) = start(behaviour(&fences));
    let port = port.unwrap();
    let slow = Arc::new(Slow::default());
    let callbacks: Shared<dyn NativeFenceCallbacks> = slow.clone();
    let fence = native_fence(&port, &callbacks);
    let (current, monitored) = (word64(1), word64(u64::MAX));

    thread::scope(|scope| {
        scope.spawn(|| assert!(fences.signal(0)));
        Slow::wait(&slow.began);
        Dispatch::below(&mut Passive::here(), |class| {
            fence
                .update_current_value(class, 2, &current, Store)
                .unwrap();
            assert!(!slow.ended.load(Ordering::SeqCst));
            slow.waited_for.store(true, Ordering::SeqCst);
            fence
                .update_monitored_value(4, &monitored, &current)
                .unwrap();
        });
        assert!(
            slow.ended.load(Ordering::SeqCst),
            "in the middle of an interrupt"
        );
    });
    assert_eq!((load_acquire(&current), load_acquire(&monitored)), (2, 4));
}

/// FEN-107: the words are at another place in each call, and what is at the old one is neither read
/// nor stored to any more. That a driver keeps a reference, its type forbids.
#[test]
fn fen_107_the_words_are_elsewhere_in_each_call() {
    const POISON: u64 = u64::MAX;

    for monitored_values in [MonitoredValues::Direct, MonitoredValues::Shadow] {
        let config = Config {
            monitored_values,
            ..Config::default()
        };
        let class = Passive::here();
        let kmd = Box::new(SoftKmd::add_device(config));
        let port = Port::start(kmd, &class, &info()).unwrap();
        let told = Arc::new(Told::default());
        let callbacks: Shared<dyn NativeFenceCallbacks> = told.clone();
        let fence = native_fence(&port, &callbacks);
        let is_shadow = monitored_values == MonitoredValues::Shadow;
        let mut mapped: Vec<(Box<Word64>, Box<Word64>)> = Vec::new();
        let mut current = 0;
        let mut interrupts = 0;

        for (monitored, stores) in [(3, None), (9, Some(5)), (4, None), (POISON, Some(7))] {
            // Both pages are mapped for this call alone.
            let (word, current_word) = (Box::new(word64(0)), Box::new(word64(current)));

            Dispatch::below(&mut Passive::here(), |class| {
                fence
                    .update_monitored_value(monitored, &word, &current_word)
                    .unwrap();
                if let Some(value) = stores {
                    fence
                        .update_current_value(class, value, &current_word, Store)
                        .unwrap();
                }
            });
            // A CMP with copies looks whether an engine was faster (FEN-75).
            interrupts += u32::from(is_shadow && current > monitored);
            current = stores.unwrap_or(current);
            assert_eq!(load_acquire(&word), monitored);
            assert_eq!(load_acquire(&current_word), current);
            assert_eq!(told.0.load(Ordering::SeqCst), interrupts);
            for (word, current_word) in &mapped {
                assert_eq!(
                    [load_acquire(word), load_acquire(current_word)],
                    [POISON; 2]
                );
            }
            store_release(&word, POISON);
            store_release(&current_word, POISON);
            mapped.push((word, current_word));
        }
        drop((fence, port));
        assert!(interrupts == u32::from(is_shadow));
    }
}

/// FEN-108: who fails in an update is not taken for one that cannot be entered.
#[test]
fn fen_108_a_driver_that_fails_in_an_update() {
    for step in [3, 4] {
        let fences = Shared::new(NativeFences::new().unwrap());
        // After StartDevice and CreateNativeFence.
        let (journal, port) = start(Behaviour {
            fail: Some((step, KmdError::DeviceRemoved)),
            ..behaviour(&fences)
        });
        let port = port.unwrap();
        let callbacks: Shared<dyn NativeFenceCallbacks> = Arc::new(Told::default());
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(7),
            callbacks: &callbacks,
            monitored_value: 0,
            ty: NativeFenceType::Default,
            system: SystemWords::default(),
        };
        let class = Passive::here();
        let mut data = [0; PRIVATE_DATA_SIZE];
        let fence = NativeFence::create(&port, &class, &args, &mut data).unwrap();
        let words = [word64(1), word64(1)];
        let (monitored, current) = Dispatch::below(&mut Passive::here(), |class| {
            (
                fence.update_monitored_value(4, &words[0], &words[1]),
                fence.update_current_value(class, 5, &words[1], Store),
            )
        });

        assert_eq!(monitored.is_err(), step == 3);
        assert_eq!(current.is_err(), step == 4);
        assert_eq!(monitored.and(current), Err(NotUpdated::Failed));
        assert_eq!(load_acquire(&words[0]), if step == 3 { 1 } else { 4 });
        assert_eq!(load_acquire(&words[1]), if step == 4 { 1 } else { 5 });
        drop((fence, port));
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
    }
}
