// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends a program that gets nowhere.

use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Rises while the demo gets on.
static STEPS: AtomicU64 = AtomicU64::new(0);

/// Says that something happened.
pub fn step() {
    STEPS.fetch_add(1, Relaxed);
}

/// From now on ends the program when nothing happens for 20 seconds.
pub fn watch(program: &'static str) {
    std::thread::spawn(move || {
        let mut seen = 0;
        loop {
            std::thread::sleep(Duration::from_secs(20));
            let now = STEPS.load(Relaxed);
            if now == seen {
                eprintln!("\n{program}: nothing happened for 20 seconds");
                exit(1);
            }
            seen = now;
        }
    });
}
