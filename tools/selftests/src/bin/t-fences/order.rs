// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several threads at once: what each of them may see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use opendxg::{Error, EventFd, Status};
use selftests::rounds::{rounds, together, Part};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let limit = Duration::from_secs(60);
    suite
        .slow("FEN-9 no reader sees halves of two values", limit, torn)
        .slow(
            "FEN-33 values of racing signals without rewind never go down",
            limit,
            monotonic,
        )
        .slow(
            "FEN-10 what was written before a signal is seen after it",
            limit,
            message_passing,
        )
        .slow(
            "FEN-20 the last signal of a round is never lost",
            limit,
            last_signal,
        )
}

fn torn() -> TestResult {
    const LOW: u64 = 0x0000_0000_ffff_ffff;
    const HIGH: u64 = 0xffff_ffff_0000_0000;
    let fence = fixture::device()?.create_fence(LOW)?;
    let done = AtomicBool::new(false);
    let write = |value: u64| -> TestResult {
        for _ in 0..rounds(5000) {
            fence.signal_rewind(value)?;
        }
        done.store(true, Ordering::Relaxed);
        Ok(())
    };
    let read = || -> TestResult {
        let mut seen = [0u64; 2];
        while !done.load(Ordering::Relaxed) || seen.contains(&0) {
            match fence.value() {
                LOW => seen[0] += 1,
                HIGH => seen[1] += 1,
                mixed => return Err(format!("value {mixed:#x}").into()),
            }
            if done.load(Ordering::Relaxed) && seen.contains(&0) {
                // One of the writers may have finished before we looked: make both values appear.
                fence.signal_rewind(if seen[0] == 0 { LOW } else { HIGH })?;
            }
        }
        Ok(())
    };
    let parts: Vec<Part<'_>> = vec![
        Box::new(|| write(LOW)),
        Box::new(|| write(HIGH)),
        Box::new(read),
    ];
    together(parts)
}

fn monotonic() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let writers = AtomicU64::new(2);
    let last = 2 * u64::from(rounds(5000));
    let write = |first: u64| -> TestResult {
        let result = (first..=last)
            .step_by(2)
            .try_for_each(|value| match fence.signal(value) {
                Ok(()) | Err(Error::Status(Status::INVALID_PARAMETER)) => Ok(()),
                Err(error) => Err(error.into()),
            });
        writers.fetch_sub(1, Ordering::Relaxed);
        result
    };
    let read = || -> TestResult {
        let mut highest = 0;
        while writers.load(Ordering::Relaxed) > 0 {
            let value = fence.value();
            ensure!(value >= highest, "{highest} -> {value}");
            highest = value;
        }
        Ok(())
    };
    together(vec![
        Box::new(|| write(1)),
        Box::new(|| write(2)),
        Box::new(read),
    ])?;
    ensure_eq!(fence.value(), last);
    Ok(())
}

fn message_passing() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let back = fixture::device()?.create_fence(0)?;
    let message = AtomicU64::new(0);
    let last = u64::from(rounds(2000));
    let send = || -> TestResult {
        for value in 1..=last {
            message.store(value * 3, Ordering::Relaxed);
            fence.signal(value)?;
            back.wait(value)?;
        }
        Ok(())
    };
    let receive = || -> TestResult {
        for value in 1..=last {
            // Every other time by looking, else by sleeping.
            match value % 2 {
                0 => {
                    while !fence.is_reached(value) {
                        std::thread::yield_now();
                    }
                }
                _ => fence.wait(value)?,
            }
            ensure_eq!(
                message.load(Ordering::Relaxed),
                value * 3,
                "message {value}"
            );
            back.signal(value)?;
        }
        Ok(())
    };
    together(vec![Box::new(send), Box::new(receive)])
}

fn last_signal() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let event = EventFd::new()?;
    let last = u64::from(rounds(2000));
    // The waiter registers while the signaller signals, and nobody signals a second time.
    let turn = AtomicU64::new(0);
    let signal = || -> TestResult {
        for value in 1..=last {
            while turn.load(Ordering::Acquire) < value {
                std::hint::spin_loop();
            }
            fence.signal(value)?;
        }
        Ok(())
    };
    let wait = || -> TestResult {
        for value in 1..=last {
            turn.store(value, Ordering::Release);
            match value % 2 {
                0 => fence.wait(value)?,
                _ => {
                    fence.wait_async(value, &event)?;
                    let fired = event.wait(Some(selftests::time::soon()))?;
                    ensure_eq!(fired, Some(1), "wait {value}");
                }
            }
        }
        Ok(())
    };
    together(vec![Box::new(signal), Box::new(wait)])
}
