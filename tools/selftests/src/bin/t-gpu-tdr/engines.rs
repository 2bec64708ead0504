// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines that do not answer.

use opendxg::pm4::Pm4;
use opendxg::ExecutionState;
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, reaches, Commands, Gpu, PAGE};
use selftests::time::{eventually, A_WHILE};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::faulty::{bytes, Command, Faulty};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-92 GPU-95 GPU-98 an engine that hangs", hangs)
        .test(
            "GPU-95 calls that wait for such an engine go on",
            calls_go_on,
        )
        .test("GPU-92 GPU-98 an engine that does not yield", refuses)
        .test(
            "GPU-97 nothing touches memory after the reset",
            memory_after_reset,
        )
        .test("GPU-95 a process is killed while its engine hangs", killed)
        .test("GPU-98 an engine is reset because root says so", forced)
        .test("GPU-98 an engine that a debugger stops", stopped)
        .test("GPU-98 every slice takes longer", delayed)
        .test(
            "GPU-95 an adapter is removed while its engine hangs",
            removed,
        )
}

/// Commands that begin again at their end.
pub(crate) fn endless(gpu: &Gpu, body: Pm4) -> TestResult<Commands> {
    /// Bytes of the packet that leads back.
    const BACK: u64 = 16;
    let commands = gpu.commands(&body.chain(0, BACK))?;
    let (address, length) = (commands.address(), u64::from(commands.length()));
    let back = Pm4::new().chain(address, length);
    commands.buffer().write(length - BACK, back.words());
    Ok(commands)
}

fn hangs() -> TestResult {
    let faulty = Faulty::new("hangs")?;
    let others = [faulty.gpu(0)?, faulty.gpu(1)?];
    for _ in 0..3 {
        let gpu = faulty.gpu(0)?;
        let word = gpu.buffer(PAGE)?;
        faulty.command(Command::HangEngine, 0, 0)?;
        let write = gpu.commands(&Pm4::new().set32(word.at(0), 1))?;
        gpu.submit(&write)?;
        gpu.mark()?;
        reaches(gpu.done(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::Hung)?;
        // What did not run on that engine goes on, and what did not hang there does, too.
        for other in &others {
            other.run(&Pm4::new().nop(0))?;
        }
        ensure_eq!(word.get32(0), 0);
    }
    Ok(())
}

/// Another process changes its GPU addresses while an engine hangs, which waits for all engines.
fn calls_go_on() -> TestResult {
    let faulty = Faulty::new("calls")?;
    let gpu = faulty.gpu(0)?;
    let other = faulty.gpu(1)?;
    faulty.command(Command::HangEngine, 0, 0)?;
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    for _ in 0..4 {
        drop(other.buffer(PAGE)?);
    }
    other.run(&Pm4::new().nop(0))?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Hung)
}

/// Its work goes on, and so does not look at what the engine was asked.
fn refuses() -> TestResult {
    let faulty = Faulty::new("refuses")?;
    let (gpu, other) = (faulty.gpu(2)?, faulty.gpu(1)?);
    faulty.command(Command::RefusePreemption, 2, 1)?;
    let commands = endless(&gpu, Pm4::new())?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Hung)?;
    other.run(&Pm4::new().nop(0))?;
    // It obeys after the reset.
    faulty.gpu(2)?.run(&Pm4::new().nop(0))
}

/// Memory of the device that has hung is used by another one, and keeps what that has stored.
fn memory_after_reset() -> TestResult {
    let faulty = Faulty::new("memory")?;
    for turn in 0..4_u32 {
        let gpu = faulty.gpu(turn % 3)?;
        let target = gpu.local_buffer(64 * PAGE)?;
        let mut fill = Pm4::new();
        for offset in (0..target.bytes()).step_by(PAGE as usize) {
            fill = fill.write(target.at(offset), &[0xbad0_0000 | turn; 64]);
        }
        let commands = endless(&gpu, fill)?;
        if turn % 2 == 1 {
            faulty.command(Command::HangEngine, turn % 3, 0)?;
        }
        gpu.submit(&commands)?;
        gpu.mark()?;
        reaches(gpu.done(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::Hung)?;
        drop((target, commands, gpu));

        let next = faulty.gpu(0)?;
        let poisoned = next.local_buffer(64 * PAGE)?;
        poisoned.fill(0x5a5a_5a5a);
        next.run(&Pm4::new().delay(100))?;
        poisoned.holds(0..poisoned.bytes(), 0x5a5a_5a5a)?;
    }
    Ok(())
}

fn killed() -> TestResult {
    let faulty = Faulty::new("killed")?;
    for node in 0..3 {
        let running = Gate::new()?;
        let child = Child::spawn(|| {
            let adapter = faulty.soft.open()?;
            let gpu = Gpu::on(&adapter.create_device()?, node)?;
            adapter.private_escape(&mut bytes(Command::HangEngine as u32, node, 0))?;
            let commands = gpu.commands(&Pm4::new().nop(0))?;
            gpu.submit(&commands)?;
            running.open()?;
            loop {
                std::thread::park();
            }
        })?;
        running.wait()?;
        child.kill()?;
        faulty.gpu(node)?.run(&Pm4::new().nop(0))?;
    }
    Ok(())
}

fn forced() -> TestResult {
    let faulty = Faulty::with_delay("forced", "600000")?;
    let gpu = faulty.gpu(0)?;
    let other = faulty.gpu(1)?;
    let commands = endless(&gpu, Pm4::new())?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    eventually("the engine has run it", || {
        faulty.adapter.reset(Some(0)).is_ok() && gpu.done().is_reached(u64::MAX)
    })?;
    is_in(gpu.device(), ExecutionState::Hung)?;
    other.run(&Pm4::new().nop(0))
}

fn stopped() -> TestResult {
    let faulty = Faulty::with_delay("stopped", "50")?;
    let gpu = faulty.gpu(0)?;
    let word = gpu.buffer(PAGE)?;
    faulty.command(Command::Stop, 0, 1)?;
    let write = gpu.commands(&Pm4::new().set32(word.at(0), 1))?;
    gpu.submit(&write)?;
    let mark = gpu.mark()?;
    std::thread::sleep(A_WHILE * 5);
    ensure_eq!(word.get32(0), 0);
    gpu.works()?;
    // It is not watched for a moment before it has done so little.
    faulty.soft.set("tdr_delay_ms", "600000")?;
    faulty.command(Command::Stop, 0, 0)?;
    gpu.until(mark)?;
    ensure_eq!(word.get32(0), 1);
    Ok(())
}

fn delayed() -> TestResult {
    let faulty = Faulty::with_delay("delayed", "600000")?;
    let gpu = faulty.gpu(0)?;
    faulty.command(Command::Delay, 0, 20_000_000)?;
    let begin = std::time::Instant::now();
    gpu.run(&Pm4::new().nop(0))?;
    ensure!(begin.elapsed() >= std::time::Duration::from_millis(20));
    faulty.command(Command::Delay, 0, 0)?;
    gpu.run(&Pm4::new().nop(0))
}

fn removed() -> TestResult {
    let faulty = Faulty::with_delay("removed", "600000")?;
    let gpu = faulty.gpu(0)?;
    faulty.command(Command::HangEngine, 0, 0)?;
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    faulty.soft.disable()?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Stopped)
}
