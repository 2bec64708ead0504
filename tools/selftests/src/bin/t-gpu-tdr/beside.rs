// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who uses one engine while another one is reset. Each step of the reset takes as long as the test
//! wants, so that no time decides.

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::ResetSteps;
use opendxg::ExecutionState;
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, one, reaches, Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure, Suite, TestResult};

use super::engines::endless;
use super::faulty::Faulty;

/// The engine that is reset, and the other one.
const RESET: u32 = 1;
const OTHER: u32 = 0;
/// Submissions of the other process in one step.
const SUBMISSIONS: u64 = 200;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite.test(
        "GPU-94 GPU-95 another process goes on in each step of the reset of an engine",
        goes_on,
    )
}

/// Command buffers and signals of a context and of a HW queue, each waited for.
fn work(gpu: &Gpu) -> TestResult {
    let device = gpu.device();
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    let context = device.create_hw_context(OTHER)?;
    let queue = context.create_hw_queue()?;
    let fence = device.create_fence(0)?;
    for value in 1..=SUBMISSIONS {
        gpu.submit(&nop)?;
        gpu.finish()?;
        queue.submit(value, nop.address(), nop.length())?;
        queue.signal(&one(&fence, value))?;
        reaches(&fence, value)?;
    }
    Ok(())
}

/// Resets of the engine are held in one step, until this is dropped.
struct Held<'a> {
    faulty: &'a Faulty,
    step: ResetSteps,
}

impl Held<'_> {
    /// Whether a reset is held there.
    fn has_come(&self) -> TestResult<bool> {
        let held_in = self.faulty.adapter.hold_resets(RESET, self.step)?;
        Ok(held_in == self.step)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let released = self.faulty.adapter.hold_resets(RESET, ResetSteps::empty());
        if let Err(error) = released {
            println!("# the reset is not released: {error}");
        }
    }
}

fn goes_on() -> TestResult {
    let faulty = Faulty::with_delay("beside", "600000")?;
    let (ready, begins, ends) = (Gate::new()?, Gate::new()?, Gate::new()?);
    let steps = [ResetSteps::COLLECT, ResetSteps::RESET, ResetSteps::RESUME];
    let other = Child::spawn(|| {
        let gpu = Gpu::on(&faulty.soft.open()?.create_device()?, OTHER)?;
        work(&gpu)?;
        // A new device would wait for the end of the reset.
        ready.open()?;
        for _ in steps {
            begins.wait_for_parent()?;
            work(&gpu)?;
            ends.open()?;
        }
        // Nothing has hit it.
        gpu.works()
    })?;
    ready.wait_for_child(&other)?;
    for step in steps {
        let gpu = faulty.gpu(RESET)?;
        let word = gpu.buffer(PAGE)?;
        let commands = endless(&gpu, Pm4::new().set32(word.at(0), 1))?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        eventually("the work has begun", || word.get32(0) == 1)?;
        std::thread::scope(|scope| -> TestResult {
            let held = Held {
                faulty: &faulty,
                step,
            };
            ensure!(!held.has_come()?, "a reset is there already");
            // The call returns when the reset is over.
            let reset = scope.spawn(|| faulty.adapter.reset(Some(RESET)));
            eventually("the reset comes to that step", || {
                matches!(held.has_come(), Ok(true))
            })?;
            begins.open()?;
            ends.wait_for_child(&other)?;
            ensure!(held.has_come()?, "the reset did not wait");
            ensure!(
                step == ResetSteps::RESUME || !gpu.done().is_reached(1),
                "the work has ended before the reset"
            );
            drop(held);
            Ok(reset.join().map_err(|_| "a panic")??)
        })?;
        reaches(gpu.done(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::Hung)?;
    }
    other.join()?;
    faulty.gpu(RESET)?.run(&Pm4::new().nop(0))
}
