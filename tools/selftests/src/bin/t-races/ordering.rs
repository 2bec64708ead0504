// SPDX-License-Identifier: MIT OR Apache-2.0
//! What readers of a value may see while others store it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use opendxg::{Error, EventFd, Status};
use selftests::rounds::{crowd, rounds};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Two values whose halves have nothing in common.
const HALVES: [u64; 2] = [0x0000_0000_ffff_ffff, 0xffff_ffff_0000_0000];

fn whole_values() -> TestResult {
    let fence = fixture::device()?.create_fence(HALVES[0])?;
    let (writers, reads) = (AtomicU32::new(2), AtomicU64::new(0));
    crowd(3, |part| {
        if part < 2 {
            for _ in 0..rounds(15_000) {
                fence.signal_rewind(HALVES[part])?;
            }
            writers.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        while writers.load(Ordering::Relaxed) > 0 {
            let value = fence.value();
            ensure!(HALVES.contains(&value), "saw {value:#x}");
            reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    println!("# values read: {}", reads.load(Ordering::Relaxed));
    Ok(())
}

/// Two threads signal interleaved increasing values without leave to go down.
fn never_decreases() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let writers = AtomicU32::new(2);
    let last = u64::from(rounds(10_000)) * 2;
    crowd(3, |part| {
        if part < 2 {
            let mut stored = 0;
            for value in (part as u64..=last).step_by(2) {
                match fence.signal(value) {
                    Ok(()) => stored = value,
                    Err(Error::Status(Status::INVALID_PARAMETER)) => {
                        ensure!(fence.value() > value, "refused below {value}");
                    }
                    Err(error) => return Err(error.into()),
                }
                ensure!(fence.value() >= stored);
            }
            writers.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        let mut highest = 0;
        while writers.load(Ordering::Relaxed) > 0 {
            let value = fence.value();
            ensure!(value >= highest, "{highest} was followed by {value}");
            highest = value;
        }
        Ok(())
    })?;
    ensure_eq!(fence.value(), last);
    Ok(())
}

/// Who sees a value also sees what was written before its signal.
fn publishes() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let data = AtomicU64::new(0);
    let last = u64::from(rounds(5_000));
    crowd(2, |part| {
        if part == 0 {
            for value in 1..=last {
                data.store(value, Ordering::Relaxed);
                fence.signal(value)?;
            }
            return Ok(());
        }
        loop {
            let value = fence.value();
            let seen = data.load(Ordering::Relaxed);
            ensure!(seen >= value, "value {value} came before its data {seen}");
            if value == last {
                return Ok(());
            }
        }
    })
}

/// A value is reached and left again at once: all that were waiting by then are told.
fn pulses() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let events = [EventFd::new()?, EventFd::new()?];
    for round in 0..rounds(200) {
        for event in &events {
            fence.wait_async(10, event)?;
        }
        // Others come and go at the same time.
        let stop = AtomicBool::new(false);
        crowd(2, |part| {
            if part == 0 {
                fence.signal(10)?;
                fence.signal_rewind(3)?;
                stop.store(true, Ordering::Relaxed);
                return Ok(());
            }
            while !stop.load(Ordering::Relaxed) {
                drop(fence.point(11)?);
            }
            Ok(())
        })?;
        for event in &events {
            ensure_eq!(event.take()?, 1, "round {round}");
        }
        ensure_eq!(fence.value(), 3);
        fence.signal_rewind(0)?;
    }
    Ok(())
}

/// A signal releases thousands, while another thread goes back below the value and waits for it
/// anew: the old waits are told once each, the new ones not at all.
fn crowds_and_latecomers() -> TestResult {
    const WAITS: u64 = 1500;
    let fence = fixture::device()?.create_fence(0)?;
    let (early, late) = (EventFd::new()?, EventFd::new()?);
    for round in 0..rounds(10) {
        for number in 0..WAITS {
            fence.wait_async(1 + number % 10, &early)?;
        }
        let added = AtomicU64::new(0);
        crowd(2, |part| {
            if part == 0 {
                return Ok(fence.signal(10)?);
            }
            while fence.value() != 10 {
                core::hint::spin_loop();
            }
            fence.signal_rewind(0)?;
            for value in 1..=10 {
                fence.wait_async(value, &late)?;
                added.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
        ensure_eq!((early.take()?, late.take()?), (WAITS, 0), "round {round}");
        fence.signal(10)?;
        ensure_eq!(late.take()?, added.load(Ordering::Relaxed));
        fence.signal_rewind(0)?;
    }
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-9 M4 no reader sees halves of two values", whole_values)
        .test(
            "FEN-33 the value never goes down without leave",
            never_decreases,
        )
        .test(
            "FEN-10 a value is seen after what was written before it",
            publishes,
        )
        .test(
            "FEN-34 M6 a pulse releases everybody who was waiting",
            pulses,
        )
        .test(
            "FEN-24 FEN-30 FEN-34 thousands are released while others wait for the value anew",
            crowds_and_latecomers,
        )
}
