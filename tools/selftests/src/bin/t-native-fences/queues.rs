// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of the GPU that wait for each other, without the CPU (GPU-43, GPU-48, GPU-53 to GPU-55).

use opendxg::pm4::{Compare, Pm4};
use opendxg::{Access, Context, ExecutionState, NativeFence, SyncFlags};
use selftests::child::Child;
use selftests::gpu::{one, reaches, Gpu, NODES, PAGE};
use selftests::rounds::rounds;
use selftests::time::{a_while, eventually};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::{signal, wait, Counts};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-43 GPU-53 a queue waits, another engine signals",
            hand_over,
        )
        .test("GPU-43 a plain wait for CurrentValue", plain_wait)
        .test("FEN-102 a CPU signal lets a queue go on", by_cpu)
        .test("FEN-44 a queued signal lets a queue go on", by_context)
        .test(
            "FEN-68 a pipeline of two engines without interrupts",
            pipeline,
        )
        .test("GPU-32 user-mode queues wait for each other", user_queues)
        .test("GPU-54 GPU-55 many queues wait for one fence", many)
        .test("FEN-87 GPU-58 two processes", processes)
        .test("GPU-48 an address that is no fence", no_fence)
        .test("GPU-48 a fence that is closed while a queue waits", closed)
}

fn hand_over() -> TestResult {
    for (from, to) in [(0, 1), (1, 0), (0, 0)] {
        let waits = Gpu::node(to)?;
        let signals = Gpu::on(waits.device(), from)?;
        let fence = waits.device().create_native_fence(0)?;
        let buffer = waits.buffer(PAGE)?;
        let commands = waits.commands(&wait(&fence, 5).write(buffer.at(0), &[1]))?;
        waits.submit(&commands)?;
        let mark = waits.mark()?;
        signals.run(&signal(&fence, 4))?;
        a_while();
        ensure!(!waits.is_done(mark));
        ensure_eq!(buffer.get64(0), 0);
        signals.run(&signal(&fence, 5))?;
        waits.until(mark)?;
        ensure_eq!(buffer.get64(0), 1);
        // The signal first.
        waits.run(&wait(&fence, 5))?;
    }
    Ok(())
}

fn plain_wait() -> TestResult {
    let waits = Gpu::node(1)?;
    let signals = Gpu::on(waits.device(), 0)?;
    let fence = waits.device().create_native_fence(0)?;
    let seen = waits.buffer(PAGE)?;
    let current = fence.gpu_address();
    let plain =
        Pm4::new()
            .write(seen.at(0), &[1])
            .wait64(current, Compare::GreaterOrEqual, 5, u64::MAX);
    let commands = waits.commands(&plain)?;
    waits.submit(&commands)?;
    let mark = waits.mark()?;
    eventually("the wait", || seen.get64(0) == 1)?;
    a_while();
    // A store that nobody is told of is not seen: such a queue is not polled.
    signals.run(&Pm4::new().write64(current, 5))?;
    a_while();
    ensure!(!waits.is_done(mark));
    signals.run(&signal(&fence, 5))?;
    waits.until(mark)
}

fn by_cpu() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let commands = gpu.commands(&wait(&fence, 10))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    fence.signal(9)?;
    a_while();
    ensure!(!gpu.is_done(mark));
    fence.signal(10)?;
    gpu.until(mark)
}

fn by_context() -> TestResult {
    let gpu = Gpu::node(1)?;
    let other = Gpu::on(gpu.device(), 0)?;
    let fence = gpu.device().create_native_fence(0)?;
    let commands = gpu.commands(&wait(&fence, 10))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    other.context().signal(&one(&fence, 10))?;
    gpu.until(mark)
}

fn pipeline() -> TestResult {
    let first = Gpu::node(0)?;
    let second = Gpu::on(first.device(), 1)?;
    let there = first.device().create_native_fence(0)?;
    let back = first.device().create_native_fence(0)?;
    let before = Counts::of(&first)?;
    let last = u64::from(rounds(50));
    let (mut sends, mut answers) = (Pm4::new(), Pm4::new());
    for round in 1..=last {
        sends = sends
            .append(&signal(&there, round))
            .append(&wait(&back, round));
        answers = answers
            .append(&wait(&there, round))
            .append(&signal(&back, round));
    }
    let (sends, answers) = (first.commands(&sends)?, second.commands(&answers)?);
    first.submit(&sends)?;
    second.submit(&answers)?;
    let marks = [first.mark()?, second.mark()?];
    first.until(marks[0])?;
    second.until(marks[1])?;
    ensure_eq!([there.value(), back.value()], [last; 2]);
    let after = Counts::of(&first)?;
    ensure_eq!(after.interrupts(), before.interrupts());
    ensure_eq!(after.monitored_updates(), before.monitored_updates());
    Ok(())
}

fn user_queues() -> TestResult {
    let gpu = Gpu::new()?;
    let contexts: [Context; 2] = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let queues = [user_queue(&contexts[0])?, user_queue(&contexts[1])?];
    let users = [
        UserQueue::connected(&gpu, &queues[0])?,
        UserQueue::connected(&gpu, &queues[1])?,
    ];
    let fences = [
        gpu.device().create_native_fence(0)?,
        gpu.device().create_native_fence(0)?,
    ];
    for round in 1..=u64::from(rounds(20)) {
        let first = users[0].submit(&signal(&fences[0], round).append(&wait(&fences[1], round)))?;
        let second =
            users[1].submit(&wait(&fences[0], round).append(&signal(&fences[1], round)))?;
        users[0].until(first)?;
        users[1].until(second)?;
    }
    Ok(())
}

fn many() -> TestResult {
    const QUEUES: usize = 80;

    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let other = gpu.device().create_native_fence(0)?;
    let commands = gpu.commands(&wait(&fence, 1))?;
    let others = gpu.commands(&wait(&other, 1))?;
    let contexts = (0..QUEUES)
        .map(|number| gpu.device().create_context(NODES[number % 2]))
        .collect::<Result<Vec<_>, _>>()?;
    let done = gpu.device().create_fence(0)?;
    for (number, context) in (1..).zip(&contexts) {
        context.submit(commands.address(), commands.length())?;
        let ended = gpu.device().create_fence(0)?;
        context.signal(&one(&ended, 1))?;
        done.wait(0)?;
        // Every other one waits again for something else, which keeps it.
        if number % 2 == 0 {
            context.submit(others.address(), others.length())?;
        }
        drop(ended);
    }
    gpu.run(&signal(&fence, 1))?;
    let ends = contexts
        .iter()
        .map(|context| {
            let end = gpu.device().create_fence(0)?;
            context.signal(&one(&end, 1))?;
            Ok(end)
        })
        .collect::<TestResult<Vec<_>>>()?;
    for end in ends.iter().step_by(2) {
        reaches(end, 1)?;
    }
    for end in ends.iter().skip(1).step_by(2) {
        ensure_eq!(end.value(), 0);
    }
    other.signal(1)?;
    for end in &ends {
        reaches(end, 1)?;
    }
    Ok(())
}

fn processes() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(0)?;
    let answer = gpu.device().create_shareable_native_fence(0)?;
    let handles = [fence.share(Access::ALL)?, answer.share(Access::ALL)?];
    let before = Counts::of(&gpu)?.interrupts();
    let child = Child::spawn(|| {
        let gpu = Gpu::node(1)?;
        let open = |number: usize| -> TestResult<NativeFence> {
            let handle = &handles[number];
            Ok(gpu.device().open_native_fence(handle, SyncFlags::empty())?)
        };
        let (fence, answer) = (open(0)?, open(1)?);
        gpu.run(&wait(&fence, 3).append(&signal(&answer, 4)))
    })?;
    let commands = gpu.commands(&wait(&answer, 4))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    let other = Gpu::on(gpu.device(), 2)?;
    other.run(&signal(&fence, 3))?;
    gpu.until(mark)?;
    child.join()?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    Ok(())
}

fn no_fence() -> TestResult {
    let programs: [fn(u64) -> Pm4; 2] = [
        |address| Pm4::new().signal_native(address, 1),
        |address| Pm4::new().wait_native(address, 1),
    ];
    for program in programs {
        let gpu = Gpu::new()?;
        let monitored = gpu.device().create_fence(0)?;
        let commands = program(monitored.gpu_address());
        gpu.fails(&commands, ExecutionState::DmaFault)?;
    }
    // One of another process.
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let address = fence.gpu_address();
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let monitored = gpu.device().create_fence(0)?;
        let near =
            Pm4::new().signal_native(monitored.gpu_address() / PAGE * PAGE + address % PAGE, 1);
        gpu.fails(&near, ExecutionState::DmaFault)
    })?;
    child.join()?;
    ensure_eq!(fence.value(), 0);
    Ok(())
}

fn closed() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let commands = gpu.commands(&wait(&fence, 10))?;
    gpu.submit(&commands)?;
    a_while();
    fence.destroy()?;
    eventually("the device in error", || {
        gpu.device().execution_state().ok() == Some(ExecutionState::DmaFault)
    })
}
