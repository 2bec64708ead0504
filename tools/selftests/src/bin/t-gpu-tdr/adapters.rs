// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resets of whole adapters, and adapters that do not recover.

use opendxg::pm4::Pm4;
use opendxg::{ExecutionState, Status};
use selftests::gpu::{is_in, reaches, Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

use super::faulty::{Command, Faulty, ADAPTER, ENGINE, RESTART};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-96 GPU-99 the reset of an engine fails: the adapter is reset",
            engine_reset_fails,
        )
        .test(
            "GPU-96 the reset of the adapter fails: it is stopped",
            adapter_reset_fails,
        )
        .test("GPU-96 it does not run again: it is stopped", restart_fails)
        .test("GPU-96 GPU-98 the device is lost", lost)
        .test(
            "GPU-96 GPU-98 root resets the adapter, and too often",
            too_often,
        )
        .test(
            "GPU-101 calls of all kinds while an adapter is reset",
            calls_during_resets,
        )
}

/// Another adapter does not notice.
fn undisturbed() -> TestResult {
    Gpu::on(&fixture::device()?, 0)?.run(&Pm4::new().nop(0))
}

fn hang(faulty: &Faulty) -> TestResult<Gpu> {
    let gpu = faulty.gpu(0)?;
    faulty.command(Command::HangEngine, 0, 0)?;
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;
    Ok(gpu)
}

fn engine_reset_fails() -> TestResult {
    let faulty = Faulty::new("engine-fails")?;
    let (other, idle) = (faulty.gpu(1)?, faulty.device()?);
    faulty.command(Command::FailResets, 0, ENGINE)?;
    let gpu = hang(&faulty)?;
    for device in [gpu.device(), other.device(), &idle] {
        is_in(device, ExecutionState::Reset)?;
        fails_with(device.create_context(0), Status::DEVICE_REMOVED)?;
    }
    reaches(other.done(), u64::MAX)?;
    faulty.command(Command::FailResets, 0, 0)?;
    for node in 0..3 {
        faulty.gpu(node)?.run(&Pm4::new().nop(0))?;
    }
    undisturbed()
}

fn is_stopped(faulty: &Faulty, gpu: &Gpu) -> TestResult {
    is_in(gpu.device(), ExecutionState::Stopped)?;
    fails_with(faulty.adapter.create_device(), Status::DEVICE_REMOVED)?;
    fails_with(gpu.device().create_context(0), Status::DEVICE_REMOVED)?;
    undisturbed()?;
    // The administrator makes it run again.
    faulty.soft.disable()?;
    faulty.soft.set("enabled", "1")?;
    Gpu::on(&faulty.soft.device()?, 0)?.run(&Pm4::new().nop(0))
}

fn adapter_reset_fails() -> TestResult {
    let faulty = Faulty::new("adapter-fails")?;
    faulty.command(Command::FailResets, 0, ENGINE | ADAPTER)?;
    let gpu = hang(&faulty)?;
    is_stopped(&faulty, &gpu)
}

fn restart_fails() -> TestResult {
    let faulty = Faulty::new("restart-fails")?;
    faulty.command(Command::FailResets, 0, ENGINE | RESTART)?;
    let gpu = hang(&faulty)?;
    is_stopped(&faulty, &gpu)
}

fn lost() -> TestResult {
    let faulty = Faulty::new("lost")?;
    let gpu = faulty.gpu(0)?;
    faulty.command(Command::LoseDevice, 0, 0)?;
    ensure_eq!(
        faulty.adapter.clock_calibration(0)?.gpu_clock_counter,
        u64::MAX
    );
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;
    is_stopped(&faulty, &gpu)
}

fn too_often() -> TestResult {
    let faulty = Faulty::new("often")?;
    for _ in 0..5 {
        let gpu = faulty.gpu(0)?;
        gpu.run(&Pm4::new().nop(0))?;
        faulty.adapter.reset(None)?;
        reaches(gpu.done(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::Reset)?;
    }
    let gpu = faulty.gpu(0)?;
    gpu.run(&Pm4::new().nop(0))?;
    faulty.adapter.reset(None)?;
    reaches(gpu.done(), u64::MAX)?;
    is_stopped(&faulty, &gpu)
}

/// Threads make and use everything while the adapter is reset five times; whatever is refused is
/// DEVICE_REMOVED.
fn calls_during_resets() -> TestResult {
    let faulty = Faulty::new("during")?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let use_it = |node: u32| -> TestResult {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let tried = faulty.gpu(node).and_then(|gpu| {
                let buffer = gpu.local_buffer(4 * PAGE)?;
                gpu.run(&Pm4::new().set32(buffer.at(0), 1))
            });
            if let Err(error) = tried {
                let text = error.to_string();
                // A device that was reset in the middle.
                selftests::ensure!(
                    text.contains("DEVICE_REMOVED") || text.contains("Reset"),
                    "{text}"
                );
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|node| scope.spawn(move || use_it(node)))
            .collect();
        let reset = (0..5).try_for_each(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            faulty.adapter.reset(None)
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread has panicked")??;
        }
        Ok::<_, selftests::Failure>(reset?)
    })?;
    eventually("it works again", || {
        faulty
            .gpu(0)
            .and_then(|gpu| gpu.run(&Pm4::new().nop(0)))
            .is_ok()
    })
}
