// SPDX-License-Identifier: MIT OR Apache-2.0
//! No wake-up is lost: rounds that each end with one signal and then silence (FEN-83, M1 to M6,
//! M14, M16, M19).

use std::thread;
use std::time::{Duration, Instant};

use opendxg::pm4::Pm4;
use opendxg::{Device, EventFd, NativeFence};
use selftests::gpu::Gpu;
use selftests::rounds::{is_brief, rounds, Dice};
use selftests::stress::Figure;
use selftests::time::soon;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::{logged_signal, monitored_value, signal, wait, Counts};

/// Rounds of `make test`, and of `make nightly`.
const ROUNDS: Figure = Figure::new(100_000, 10_000_000);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .stress(
            "FEN-83 FEN-80 one last signal of an engine, then silence",
            Duration::from_secs(300),
            ROUNDS,
            |figure| {
                // Brief runs come this way for the code, not for the luck.
                let part = if is_brief() { 10 } else { 1 };
                last_signal(figure.rounds() / part)
            },
        )
        .test(
            "FEN-83 FEN-85 waits that are given up beside signals",
            cancelled,
        )
        .test(
            "GPU-53 CPU signals beside queues that begin to wait",
            queues,
        )
}

/// A wait that blocks is over.
fn is_released(event: &EventFd, fence: &NativeFence, value: u64) -> TestResult {
    match event.wait(Some(soon()))? {
        Some(1) => Ok(()),
        other => Err(format!("wait for {value}: {other:?} at {}", fence.value()).into()),
    }
}

fn last_signal(rounds: u32) -> TestResult {
    let gpu = Gpu::new()?;
    let before = Counts::of(&gpu)?;
    let began = Instant::now();
    last_signals(&gpu, rounds)?;
    let (took, after) = (began.elapsed(), Counts::of(&gpu)?);
    let since = |name| after.get(name) - before.get(name);
    println!(
        "# {rounds} rounds in {took:.1?}: {} waits were queued, {} interrupts, {} spurious",
        since("waits-added"),
        since("interrupts"),
        since("spurious")
    );
    // A look at all fences would have mended what a signal has lost.
    ensure_eq!(since("scans"), 0);
    // What was queued was released by a signal, and not in another way.
    ensure_eq!(since("waits-released"), since("waits-added"));
    ensure_eq!(since("wakes"), since("waits-added"));
    Ok(())
}

/// The same on a device of another adapter, which may interrupt in another way.
pub(crate) fn last_signal_on(device: &Device) -> TestResult {
    last_signals(&Gpu::on(device, 0)?, rounds(2000))
}

/// Two engines signal, two threads wait. A round is one fence with its last value, and silence:
/// nothing is signalled before all who wait for those of the same submission were woken.
fn last_signals(gpu: &Gpu, rounds: u32) -> TestResult {
    let contexts = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let queues = [user_queue(&contexts[0])?, user_queue(&contexts[1])?];
    let sides = [Side::new(gpu, &queues[0])?, Side::new(gpu, &queues[1])?];
    let batches = u64::from(rounds).div_ceil(2 * Side::FENCES);
    thread::scope(|scope| {
        let other = scope.spawn(|| sides[1].batches(1, batches));
        let own = sides[0].batches(0, batches);
        let other = other.join().map_err(|_| "the thread has panicked")?;
        own.and(other)
    })?;
    sides.iter().try_for_each(|side| side.is_quiet(gpu))
}

/// One engine and the thread that waits for it.
struct Side<'a> {
    user: UserQueue<'a>,
    fences: Vec<NativeFence>,
    /// Of all waits, so that their number is counted.
    event: EventFd,
}

impl<'a> Side<'a> {
    /// The fences of both sides together have a place each in the record of interrupts.
    const FENCES: u64 = 16;

    fn new(gpu: &Gpu, queue: &'a opendxg::HwQueue<'a>) -> TestResult<Self> {
        let fences = (0..Self::FENCES).map(|_| gpu.device().create_native_fence(0));
        Ok(Self {
            user: UserQueue::connected(gpu, queue)?,
            fences: fences.collect::<Result<_, _>>()?,
            event: EventFd::new()?,
        })
    }

    fn batches(&self, seed: u64, count: u64) -> TestResult {
        let mut dice = Dice::new(seed);
        for batch in 1..=count {
            self.batch(batch, &mut dice)?;
        }
        Ok(())
    }

    /// A round of each fence.
    fn batch(&self, batch: u64, dice: &mut Dice) -> TestResult {
        // The value before it is new as well.
        let last = 2 * batch;
        let kind = batch % 5;
        let one = |fence: &NativeFence| match kind {
            // The engine finds all waiters, or goes along with the thread, ...
            0 | 1 => logged_signal(fence, last, true),
            // ... or is behind it, ...
            2 => Pm4::new()
                .delay(1)
                .append(&logged_signal(fence, last, true)),
            // ... or meets it in the middle, or both values have waiters.
            _ => logged_signal(fence, last - 1, true).append(&logged_signal(fence, last, true)),
        };
        let packets = self
            .fences
            .iter()
            .fold(Pm4::new(), |packets, fence| packets.append(&one(fence)));
        let forward = || self.fences.iter();
        let mut count = Self::FENCES;
        if kind != 0 {
            self.user.submit(&packets)?;
        }
        match kind {
            3 => self.wait_for(last, forward().rev(), dice)?,
            _ => self.wait_for(last, forward(), dice)?,
        }
        match kind {
            0 => {
                self.user.submit(&packets)?;
            }
            // MonitoredValue falls.
            4 => {
                self.wait_for(last - 1, forward(), dice)?;
                count *= 2;
            }
            _ => {}
        }
        self.all_are_woken(count, last)
    }

    fn wait_for<'f>(
        &self,
        value: u64,
        fences: impl Iterator<Item = &'f NativeFence>,
        dice: &mut Dice,
    ) -> TestResult {
        for fence in fences {
            dice.dawdle();
            fence.wait_async(value, &self.event)?;
        }
        Ok(())
    }

    /// Each wait is told once.
    fn all_are_woken(&self, expected: u64, last: u64) -> TestResult {
        let mut woken = 0;
        while woken < expected {
            let Some(more) = self.event.wait(Some(soon()))? else {
                let values: Vec<_> = self.fences.iter().map(|fence| fence.value()).collect();
                return Err(format!("{woken} of {expected} at {last}: {values:?}").into());
            };
            woken += more;
        }
        ensure_eq!(woken, expected);
        Ok(())
    }

    /// Nobody waits, and engines know it.
    fn is_quiet(&self, gpu: &Gpu) -> TestResult {
        self.user.run(&Pm4::new())?;
        for fence in &self.fences {
            ensure_eq!(monitored_value(gpu, fence)?, u64::MAX);
        }
        ensure!(!matches!(self.event.take(), Ok(1..)), "woken twice");
        Ok(())
    }
}

/// Waits for values that do not come are given up while an engine signals.
fn cancelled() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.doorbell().connect()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = EventFd::new()?;
    for round in 1..=u64::from(rounds(300)) {
        user.submit(&signal(&fence, round))?;
        // Given up at once, or satisfied: the point closes its wait.
        let point = fence.point(round + 1)?;
        fence.wait_async(round, &event)?;
        drop(point);
        is_released(&event, &fence, round)?;
    }
    user.run(&Pm4::new())?;
    ensure_eq!(monitored_value(&gpu, &fence)?, u64::MAX);
    Ok(())
}

/// The CPU signals what a queue is just about to wait for.
fn queues() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.doorbell().connect()?;
    let fence = gpu.device().create_native_fence(0)?;
    for round in 1..=u64::from(rounds(1000)) {
        let value = user.submit(&wait(&fence, round))?;
        for _ in 0..round % 50 {
            core::hint::spin_loop();
        }
        fence.signal(round)?;
        user.until(value)?;
        ensure!(fence.value() == round);
    }
    Ok(())
}
