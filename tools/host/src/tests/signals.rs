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
use crate::ddi::cpu_event::Signals;
use crate::ddi::types::KmdError;

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
