// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that takes too long, on engines that answer.

use std::time::{Duration, Instant};

use opendxg::pm4::{Atomic, Compare, Pm4};
use opendxg::uapi::D3DDDI_CREATEHWQUEUEFLAGS_DisableGpuTimeout as DISABLE_GPU_TIMEOUT;
use opendxg::{DoorbellStatus, ExecutionState, Status};
use selftests::gpu::{is_in, one, reaches, Gpu, PAGE};
use selftests::time::{eventually, A_WHILE};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use super::faulty::{Command, Faulty};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-40 GPU-92 GPU-99 commands that never end", never_ends)
        .test(
            "GPU-93 FEN-163 a wait in the middle of commands that is not satisfied",
            waits_for_ever,
        )
        .test("GPU-93 many short waits are no hang", short_waits)
        .test("GPU-93 a queue of its own time is no hang", patient_queue)
        .test("GPU-93 a software wait is no hang", software_wait)
        .test("GPU-92 GPU-95 others of the same node go on", others_go_on)
        .test("GPU-98 a queue that hangs", hung_queue)
        .test("GPU-98 an interrupt that does not come", dropped_interrupt)
        .test(
            "GPU-94 GPU-26 a queue that its process fills, without progress",
            user_queue_hangs,
        )
        .test(
            "GPU-93 such a queue that waits is no hang",
            user_queue_waits,
        )
        .test("GPU-92 the default is two seconds", two_seconds)
        .test("GPU-95 many hang at the same time", many)
}

/// A buffer that runs itself again and again.
fn endless(gpu: &Gpu) -> TestResult<selftests::gpu::Commands> {
    let commands = gpu.commands(&Pm4::new().chain(0, 16))?;
    let address = commands.address();
    commands
        .buffer()
        .write(0, Pm4::new().chain(address, 16).words());
    Ok(commands)
}

/// The device hangs: its fences are signaled, and nothing more is taken.
fn has_hung(gpu: &Gpu) -> TestResult {
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Hung)?;
    fails_with(gpu.device().create_context(0), Status::DEVICE_REMOVED)
}

fn never_ends() -> TestResult {
    let faulty = Faulty::new("never")?;
    for node in 0..3 {
        let gpu = faulty.gpu(node)?;
        let commands = endless(&gpu)?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        has_hung(&gpu)?;
        // A new device works.
        faulty.gpu(node)?.run(&Pm4::new().nop(0))?;
    }
    Ok(())
}

fn waits_for_ever() -> TestResult {
    let faulty = Faulty::new("waits")?;
    let gpu = faulty.gpu(0)?;
    let word = gpu.buffer(PAGE)?;
    let wait = Pm4::new()
        .wait32(word.at(0), Compare::Equal, 1, u32::MAX)
        .set32(word.at(8), 1);
    let commands = gpu.commands(&wait)?;
    gpu.submit(&commands)?;
    gpu.mark()?;
    has_hung(&gpu)?;
    // What it has waited for comes too late.
    word.set32(0, 1);
    faulty.gpu(0)?.run(&Pm4::new().nop(0))?;
    ensure_eq!(word.get32(8), 0);
    Ok(())
}

/// Each buffer waits for less than the TDR time, and all of them for longer.
fn short_waits() -> TestResult {
    let faulty = Faulty::with_delay("short", "3000")?;
    let gpu = faulty.gpu(0)?;
    let word = gpu.buffer(PAGE)?;
    let begin = Instant::now();
    let mut turn = 0;
    while begin.elapsed() < Duration::from_millis(6500) {
        turn += 1;
        let wait = Pm4::new().wait32(word.at(0), Compare::Equal, turn, u32::MAX);
        let commands = gpu.commands(&wait)?;
        gpu.submit(&commands)?;
        let mark = gpu.mark()?;
        std::thread::sleep(A_WHILE);
        word.set32(0, turn);
        gpu.until(mark)?;
    }
    gpu.works()
}

fn patient_queue() -> TestResult {
    let faulty = Faulty::with_delay("patient", "10")?;
    let gpu = faulty.gpu(0)?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue_with(DISABLE_GPU_TIMEOUT, &mut [])?;
    let word = gpu.buffer(PAGE)?;
    let wait = gpu.commands(&Pm4::new().wait32(word.at(0), Compare::Equal, 1, u32::MAX))?;
    queue.submit(1, wait.address(), wait.length())?;
    // Many times the TDR time.
    std::thread::sleep(A_WHILE * 5);
    gpu.works()?;
    word.set32(0, 1);
    reaches(queue.progress(), 1)?;
    gpu.works()
}

fn software_wait() -> TestResult {
    let faulty = Faulty::with_delay("software", "10")?;
    let gpu = faulty.gpu(0)?;
    let fence = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&fence, 1))?;
    let mark = gpu.mark()?;
    std::thread::sleep(A_WHILE * 5);
    gpu.works()?;
    fence.signal(1)?;
    gpu.until(mark)
}

/// One device hangs in each of its contexts, and another one has work on the same nodes all the
/// time, which is all done.
fn others_go_on() -> TestResult {
    let faulty = Faulty::new("others")?;
    let other = faulty.gpu(0)?;
    let word = other.buffer(PAGE)?;
    let add = Pm4::new().atomic(Atomic::Add, word.at(0), 1, 0);
    let add = other.commands(&add)?;
    let (mut turns, mut hung) = (0, 0);
    while hung < 3 {
        let gpu = faulty.gpu(0)?;
        let commands = endless(&gpu)?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        while !gpu.done().is_reached(u64::MAX) {
            other.submit(&add)?;
            turns += 1;
            other.finish()?;
        }
        is_in(gpu.device(), ExecutionState::Hung)?;
        hung += 1;
    }
    ensure_eq!(word.get64(0), turns);
    other.works()
}

fn hung_queue() -> TestResult {
    let faulty = Faulty::new("queue")?;
    let (gpu, other) = (faulty.gpu(1)?, faulty.gpu(1)?);
    let word = gpu.buffer(PAGE)?;
    faulty.command(Command::HangQueue, 1, 0)?;
    let write = gpu.commands(&Pm4::new().set32(word.at(0), 1))?;
    gpu.submit(&write)?;
    gpu.mark()?;
    has_hung(&gpu)?;
    other.run(&Pm4::new().nop(0))?;
    ensure_eq!(word.get32(0), 0);
    Ok(())
}

/// The end of work is not told. The watch finds out that the engine has nothing to do.
fn dropped_interrupt() -> TestResult {
    let faulty = Faulty::new("dropped")?;
    let (gpu, other) = (faulty.gpu(0)?, faulty.gpu(0)?);
    let word = gpu.buffer(PAGE)?;
    faulty.command(Command::DropInterrupt, 0, 0)?;
    let write = gpu.commands(&Pm4::new().set32(word.at(0), 1))?;
    gpu.submit(&write)?;
    let mark = gpu.mark()?;
    eventually("the store", || word.get32(0) == 1)?;
    // A test would notice: nothing says that the work is done.
    ensure!(!gpu.is_done(mark) || gpu.done().is_reached(u64::MAX));
    has_hung(&gpu)?;
    other.run(&Pm4::new().nop(0))
}

fn user_queue_hangs() -> TestResult {
    let faulty = Faulty::new("user")?;
    let (gpu, other) = (faulty.gpu(0)?, faulty.gpu(0)?);
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let filled = UserQueue::new(&gpu, &queue)?;
    let commands = endless(&gpu)?;
    let call = Pm4::new().indirect(commands.address(), 16);
    filled.submit(&call)?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Hung)?;
    eventually("the doorbell says ABORT", || {
        filled.doorbell().status() == DoorbellStatus::Abort
    })?;
    fails_with(filled.doorbell().connect(), Status::DEVICE_REMOVED)?;
    other.run(&Pm4::new().nop(0))
}

/// A queue that waits in its ring does not run, however long that takes (GPU-93).
fn user_queue_waits() -> TestResult {
    let faulty = Faulty::with_delay("ring", "150")?;
    let gpu = faulty.gpu(0)?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    let filled = UserQueue::new(&gpu, &queue)?;
    let word = gpu.buffer(PAGE)?;
    let wait = Pm4::new().wait32(word.at(0), Compare::Equal, 1, u32::MAX);
    let value = filled.submit(&wait)?;
    std::thread::sleep(A_WHILE * 5);
    gpu.works()?;
    word.set32(0, 1);
    filled.until(value)?;
    gpu.works()
}

fn two_seconds() -> TestResult {
    let soft = selftests::soft_adapter::SoftAdapter::new("default")?;
    // That of the module, which the tests have made longer.
    let parameter = std::fs::read_to_string("/sys/module/opendxg/parameters/tdr_delay_ms")?;
    ensure_eq!(soft.get("tdr_delay_ms")?, parameter.trim());
    soft.set("tdr_delay_ms", "2000")?;
    soft.set("enabled", "1")?;
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let commands = endless(&gpu)?;
    let begin = Instant::now();
    gpu.submit(&commands)?;
    gpu.mark()?;
    has_hung(&gpu)?;
    ensure!(
        begin.elapsed() >= Duration::from_secs(2),
        "after {:?}",
        begin.elapsed()
    );
    Ok(())
}

fn many() -> TestResult {
    let faulty = Faulty::new("many")?;
    let mut all = Vec::new();
    for number in 0..12 {
        let gpu = faulty.gpu(number % 3)?;
        let commands = endless(&gpu)?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        all.push((gpu, commands));
    }
    let innocent = faulty.gpu(0)?;
    for (gpu, _commands) in &all {
        has_hung(gpu)?;
    }
    innocent.run(&Pm4::new().nop(0))
}
