// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of a KMD that signals a CPU event and of its end (CPU-31).

use loom::{
    sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    },
    thread::spawn,
};

use super::interleavings::explore_within;
use crate::ddi::border::guest::Guest;
use crate::ddi::border::mailbox::Mailbox;
use crate::ddi::border::message::{Answer, Bytes, Request};
use crate::ddi::border::receiver::Receiver;
use crate::ddi::border::{EventName, Transport};
use crate::ddi::class::{Dispatch, Passive};
use crate::ddi::cpu_event::{CpuEventCallbacks, Signals};
use crate::ddi::types::{KmdError, KmdResult};
use crate::platform::{self, mutation::without, Part, Shared};

/// A way that ends, and what came through.
struct Scene {
    signals: Signals,
    ended: AtomicU32,
    heard: AtomicU32,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            signals: Signals::new().unwrap(),
            ended: AtomicU32::new(0),
            heard: AtomicU32::new(0),
        })
    }

    /// SignalEvent; whether it was delivered.
    fn signal(&self) -> bool {
        let sent = self.signals.send(|| {
            assert_eq!(
                self.ended.load(Ordering::SeqCst),
                0,
                "signalled after the end"
            );
            self.heard.fetch_add(1, Ordering::SeqCst);
        });

        assert!(matches!(sent, Ok(()) | Err(KmdError::InvalidHandle)));
        sent.is_ok()
    }

    fn end(&self) {
        self.signals.end();
        self.ended.store(1, Ordering::SeqCst);
    }

    /// What was delivered was heard, and the rest counted.
    fn adds_up(&self, delivered: u32, tries: u32) {
        assert_eq!(self.heard.load(Ordering::SeqCst), delivered);
        assert_eq!(self.signals.sent(), delivered);
        assert_eq!(self.signals.late(), tries - delivered);
    }
}

#[test]
fn cpu_31_a_signal_comes_before_the_end_or_not_at_all() {
    explore_within(Some(3), || {
        let scene = Scene::new();
        let other = scene.clone();
        let kmd = spawn(move || u32::from(other.signal()) + u32::from(other.signal()));

        scene.end();

        let delivered = kmd.join().unwrap();

        scene.adds_up(delivered, 2);
    });
}

#[test]
fn cpu_31_two_signals_against_the_end() {
    explore_within(Some(2), || {
        let scene = Scene::new();
        let kmds = [scene.clone(), scene.clone()].map(|scene| spawn(move || scene.signal()));

        scene.end();

        let delivered = kmds.map(|kmd| u32::from(kmd.join().unwrap()));

        scene.adds_up(delivered[0] + delivered[1], 2);
        // An end that comes again changes nothing.
        scene.signals.end();
        assert!(!scene.signal());
    });
}

/// What a guest has heard of its two events.
struct Heard {
    mailbox: Mailbox,
    is_interrupted: AtomicU32,
    heard: [AtomicU32; 2],
}

impl Heard {
    fn signal(&self, place: u32) {
        let event = EventName {
            place,
            generation: 1,
        };

        if self.mailbox.signal(event) {
            self.is_interrupted.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn look(&self) {
        self.mailbox.take(|event| {
            assert_eq!(event.generation, 1);
            self.heard[event.place as usize].fetch_add(1, Ordering::SeqCst);
        });
    }

    /// Looks if that was asked for.
    fn serve(&self) {
        if self.is_interrupted.swap(0, Ordering::SeqCst) != 0 {
            self.look();
        }
    }
}

/// The host signals events, the second one last. The ring has room for two ids under loom, so that
/// a third one sticks.
fn last_signals(places: &'static [u32]) {
    explore_within(Some(4), move || {
        let heard = Arc::new(Heard {
            mailbox: Mailbox::new().unwrap(),
            is_interrupted: AtomicU32::new(0),
            heard: [AtomicU32::new(0), AtomicU32::new(0)],
        });
        let host = heard.clone();
        let host = spawn(move || places.iter().for_each(|place| host.signal(*place)));

        heard.serve();
        host.join().unwrap();
        // Nobody signals any more: what is there was announced.
        heard.serve();

        for (place, count) in (0..).zip(&heard.heard) {
            let signals = places.iter().filter(|own| **own == place).count();
            let count = count.load(Ordering::SeqCst) as usize;

            assert!(count != 0, "a signal is lost");
            assert!(count <= signals, "heard more than there was");
        }
    });
}

#[test]
fn cpu_50_the_last_signal_of_each_event_is_heard() {
    last_signals(&[0, 1]);
    last_signals(&[0, 0, 1]);
    last_signals(&[0, 1, 1]);
}

#[test]
#[should_panic(expected = "a signal is lost")]
fn mutant_cpu_50_without_barriers() {
    without(Part::FullFence, || last_signals(&[0, 1]));
}

/// A host that signals an event for the last time while it is asked to destroy it.
struct LastWord(Shared<Mailbox>);

impl Transport for LastWord {
    fn call(&self, _: &Passive, request: &Bytes) -> KmdResult<Answer> {
        Ok(match Request::decode(request)? {
            Request::Destroy { event } => {
                self.0.signal(event);
                Answer::Destroyed
            }
            _ => Answer::Created { client: 1 },
        })
    }
}

/// The process of the guest: how often it was told, and whether that is over.
#[derive(Default)]
struct Told {
    count: AtomicU32,
    is_over: AtomicU32,
}

impl CpuEventCallbacks for Told {
    fn queue_dpc(&self) {}

    fn signal_event(&self, _: &Dispatch) -> KmdResult {
        assert_eq!(self.is_over.load(Ordering::SeqCst), 0, "told after the end");
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// The interrupt comes before the destroy, in it, or after it.
#[test]
fn cpu_34_cpu_50_an_interrupt_against_the_end_of_an_event() {
    explore_within(Some(3), || {
        let mailbox = platform::shared(Mailbox::new().unwrap()).unwrap();
        let receiver = platform::shared(Receiver::new(mailbox.clone()).unwrap()).unwrap();
        let guest = Guest::new(
            platform::shared(LastWord(mailbox)).unwrap(),
            receiver.clone(),
            false,
        );
        let told = platform::shared(Told::default()).unwrap();
        let callbacks: Shared<dyn CpuEventCallbacks> = told.clone();
        let class = Passive::here();
        let (event, _) = guest.create(&class, 1, 1, &callbacks).unwrap();
        let other = receiver.clone();
        let interrupt = spawn(move || other.look());

        guest.destroy(&class, event);
        told.is_over.store(1, Ordering::SeqCst);
        interrupt.join().unwrap();
        assert_eq!(told.count.load(Ordering::SeqCst), 1, "the last signal");
        assert_eq!(receiver.dropped(), 0);
    });
}
