// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of what is queued (FEN-39 to FEN-44, FEN-48).

use std::time::Duration;

use opendxg::pm4::{Compare, Data, Interrupt, Pm4};
use opendxg::{Access, Context, Dxg, EventFd, FenceValues, SignalFlags, Status, SyncFlags};
use selftests::child::{Child, Gate};
use selftests::gpu::{one, reaches, Buffer, Gpu, NODES, PAGE};
use selftests::rounds::{is_brief, rounds, Dice};
use selftests::time::{a_while, eventually, soon};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-39 a queue does everything in the order of submission",
            in_order,
        )
        .test(
            "FEN-39 FEN-40 a wait holds back its own queue alone",
            own_queue,
        )
        .test("FEN-39 random programs keep their order", random)
        .test(
            "FEN-41 a signal comes after the buffers before it",
            after_buffers,
        )
        .test(
            "FEN-41 a TopOfPipeline fence comes when the buffers before it were fetched",
            when_fetched,
        )
        .test("FEN-42 queued and GPU signals may go down", down)
        .test(
            "FEN-44 FEN-48 a store of the GPU releases queued waits",
            store,
        )
        .test("FEN-44 a CPU signal releases waits of all queues", from_cpu)
        .test(
            "FEN-43 a signal of several contexts comes once, from the last",
            broadcast,
        )
        .test("FEN-43 an event of several contexts", event)
        .test(
            "FEN-39 FEN-42 a wait sees what the buffer before it takes back",
            not_early,
        )
        .test("FEN-39 a chain through contexts of every node", chain)
        .slow(
            "FEN-39 FEN-44 a chain of 10 000 waits through 1000 contexts",
            Duration::from_secs(180),
            long_chain,
        )
        .test(
            "FEN-82 FEN-44 a value that a signal takes back was seen",
            taken_back,
        )
        .test(
            "FEN-39 FEN-40 queues of several processes wait for each other",
            processes,
        )
        .test("FEN-26 FEN-39 a fence of another adapter", adapters)
        .test("FEN-40 every value can be waited for", values)
        .test("FEN-25 FEN-37 rights of an opening", rights)
}

/// Counts in `buffer` from `index`: only if exactly the ones before have come.
fn step(buffer: &Buffer, index: u64) -> Pm4 {
    use opendxg::pm4::Atomic;
    Pm4::new().atomic(Atomic::CompareSwap, buffer.address(), index + 1, index)
}

fn in_order() -> TestResult {
    let gpu = Gpu::new()?;
    let counter = gpu.buffer(PAGE)?;
    let gate = gpu.device().create_fence(0)?;
    let commands: TestResult<Vec<_>> = (0..100)
        .map(|index| gpu.commands(&step(&counter, index)))
        .collect();
    let commands = commands?;
    // Once while the queue stands still, once while it runs.
    for held in [true, false] {
        counter.set64(0, 0);
        if held {
            gpu.context().wait(&one(&gate, 1))?;
        }
        for one in &commands {
            gpu.submit(one)?;
        }
        let mark = gpu.mark()?;
        if held {
            ensure_eq!(counter.get64(0), 0);
            gate.signal(1)?;
        }
        gpu.until(mark)?;
        ensure_eq!(counter.get64(0), commands.len() as u64, "held: {held}");
    }
    Ok(())
}

fn own_queue() -> TestResult {
    for [held, free] in [[0, 0], [0, 1], [1, 2], [2, 0]] {
        let device = fixture::device()?;
        let (held, free) = (Gpu::on(&device, held)?, Gpu::on(&device, free)?);
        let buffer = held.buffer(PAGE)?;
        let gate = device.create_fence(0)?;
        held.context().wait(&one(&gate, 1))?;
        let commands = held.commands(&Pm4::new().write(buffer.address(), &[1]))?;
        held.submit(&commands)?;
        let mark = held.mark()?;
        free.run(&Pm4::new().write(buffer.at(8), &[2]))?;
        ensure_eq!(buffer.get32(8), 2);
        a_while();
        ensure!(!held.is_done(mark) && buffer.get32(0) == 0, "not held");
        gate.signal(1)?;
        held.until(mark)?;
        ensure_eq!(buffer.get32(0), 1);
    }
    Ok(())
}

/// Contexts with random buffers, signals and waits; each counts its own. Waits are only for what
/// was submitted before, so that everything ends.
fn random() -> TestResult {
    for seed in 0..rounds(10) {
        let mut dice = Dice::new(u64::from(seed) + 1);
        let gpu = Gpu::new()?;
        let contexts: Result<Vec<Context>, _> = (0..4)
            .map(|index| gpu.device().create_context(NODES[index % 3]))
            .collect();
        let contexts = contexts?;
        let counters: TestResult<Vec<Buffer>> = (0..4).map(|_| gpu.buffer(PAGE)).collect();
        let counters = counters?;
        let fence = gpu.device().create_fence(0)?;
        let (mut steps, mut kept) = ([0; 4], Vec::new());
        let mut signalled = 0;
        for _ in 0..60 {
            let which = dice.below(4) as usize;
            match dice.below(4) {
                0 if signalled != 0 => {
                    let value = u64::from(dice.below(signalled)) + 1;
                    contexts[which].wait(&one(&fence, value))?;
                }
                1 => {
                    // Signals of one chain: each waits for the one before.
                    contexts[which].wait(&one(&fence, signalled.into()))?;
                    signalled += 1;
                    contexts[which].signal(&one(&fence, signalled.into()))?;
                }
                _ => {
                    let commands = gpu.commands(&step(&counters[which], steps[which]))?;
                    contexts[which].submit(commands.address(), commands.length())?;
                    steps[which] += 1;
                    kept.push(commands);
                }
            }
        }
        let all = gpu.device().create_fence(0)?;
        let others: Vec<&Context> = contexts.iter().skip(1).collect();
        contexts[0].signal_broadcast(&others, &one(&all, 1), SignalFlags::empty())?;
        reaches(&all, 1)?;
        gpu.works()?;
        ensure_eq!(fence.value(), u64::from(signalled), "seed {seed}");
        for (counter, steps) in counters.iter().zip(steps) {
            ensure_eq!(counter.get64(0), steps, "seed {seed}");
        }
    }
    Ok(())
}

fn after_buffers() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let commands = gpu.commands(
        &Pm4::new()
            .wait32(buffer.address(), Compare::Equal, 1, u32::MAX)
            .write(buffer.at(8), &[5]),
    )?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    a_while();
    ensure!(!gpu.is_done(mark), "signalled while the buffer waits");
    buffer.set32(0, 1);
    gpu.until(mark)?;
    ensure_eq!(buffer.get32(8), 5);
    Ok(())
}

fn down() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    for (high, low) in [(2, 1), (u64::MAX, 1), (5, 0)] {
        gpu.context().signal(&one(&fence, high))?;
        gpu.finish()?;
        ensure_eq!(fence.value(), high);
        gpu.context().signal(&one(&fence, low))?;
        gpu.finish()?;
        ensure_eq!(fence.value(), low);
        // A flag that says what is so anyway.
        let flags = SignalFlags::ALLOW_FENCE_REWIND;
        gpu.context()
            .signal_broadcast(&[], &one(&fence, high), flags)?;
        gpu.context()
            .signal_broadcast(&[], &one(&fence, low), flags)?;
        gpu.finish()?;
        ensure_eq!(fence.value(), low);
        gpu.run(&Pm4::new().signal(fence.gpu_address(), high))?;
        ensure_eq!(fence.value(), high);
        gpu.run(&Pm4::new().write64(fence.gpu_address(), low))?;
        ensure_eq!(fence.value(), low);
    }
    Ok(())
}

fn store() -> TestResult {
    let device = fixture::device()?;
    let (waiter, writer) = (Gpu::on(&device, 0)?, Gpu::on(&device, 1)?);
    let fence = device.create_fence(0)?;
    ensure!(fence.gpu_address() != 0);
    let address = fence.gpu_address();
    let stores = [
        Pm4::new().signal(address, 1),
        Pm4::new().write64(address, 2),
        Pm4::new().set64(address, 3),
        Pm4::new().release(address, Data::Full(4), Interrupt::Only),
        Pm4::new().release(address, Data::Full(5), Interrupt::None),
    ];
    for (value, commands) in (1..).zip(stores) {
        waiter.context().wait(&one(&fence, value))?;
        let mark = waiter.mark()?;
        let event = EventFd::new()?;
        fence.wait_async(value, &event)?;
        writer.run(&commands)?;
        ensure_eq!(fence.value(), value);
        waiter.until(mark)?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "CPU wait for {value}");
    }
    // In the middle of a buffer, with an interrupt.
    let gate = writer.buffer(PAGE)?;
    waiter.context().wait(&one(&fence, 9))?;
    let mark = waiter.mark()?;
    let commands = writer.commands(&Pm4::new().signal(address, 9).wait32(
        gate.address(),
        Compare::Equal,
        1,
        u32::MAX,
    ))?;
    writer.submit(&commands)?;
    waiter.until(mark)?;
    gate.set32(0, 1);
    writer.finish()
}

fn from_cpu() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let gpus: TestResult<Vec<Gpu>> = (0..9).map(|index| Gpu::on(&device, index % 3)).collect();
    let gpus = gpus?;
    let mut marks = Vec::new();
    for (index, gpu) in (1..).zip(&gpus) {
        gpu.context().wait(&one(&fence, index))?;
        marks.push(gpu.mark()?);
    }
    for value in [3, 9] {
        fence.signal(value)?;
        let due = gpus.iter().zip(&marks).take(value as usize);
        due.into_iter()
            .try_for_each(|(gpu, &mark)| gpu.until(mark))?;
        a_while();
        let early = gpus.iter().zip(&marks).skip(value as usize);
        ensure!(
            early.into_iter().all(|(gpu, &mark)| !gpu.is_done(mark)),
            "too early at {value}"
        );
    }
    Ok(())
}

fn broadcast() -> TestResult {
    let device = fixture::device()?;
    let (a, b, c) = (
        Gpu::on(&device, 0)?,
        Gpu::on(&device, 1)?,
        Gpu::on(&device, 1)?,
    );
    let (gate, fence) = (device.create_fence(0)?, device.create_fence(0)?);
    for value in 1..=3 {
        let held = [&a, &b, &c][value as usize - 1];
        held.context().wait(&one(&gate, value))?;
        a.context().signal_broadcast(
            &[b.context(), c.context()],
            &one(&fence, value),
            SignalFlags::empty(),
        )?;
        a_while();
        ensure_eq!(fence.value(), value - 1, "one of them has not come so far");
        gate.signal(value)?;
        reaches(&fence, value)?;
    }
    // What comes behind is held back by the others, too.
    a.context().wait(&one(&gate, 4))?;
    a.context()
        .signal_broadcast(&[b.context()], &one(&fence, 4), SignalFlags::empty())?;
    gate.signal(4)?;
    reaches(&fence, 4)?;
    [a, b, c].iter().try_for_each(Gpu::finish)
}

fn event() -> TestResult {
    let device = fixture::device()?;
    let (a, b) = (Gpu::on(&device, 0)?, Gpu::on(&device, 1)?);
    let gate = device.create_fence(0)?;
    let event = EventFd::new()?;
    a.context().signal_event(&[], &event)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    b.context().wait(&one(&gate, 1))?;
    a.context().signal_event(&[b.context()], &event)?;
    a_while();
    ensure_eq!(event.take()?, 0);
    gate.signal(1)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    a.finish()?;
    b.finish()?;
    ensure_eq!(event.take()?, 0);
    Ok(())
}

/// A token that goes through every context and is counted on the way.
fn chain() -> TestResult {
    let device = fixture::device()?;
    let gpus: TestResult<Vec<Gpu>> = (0..12).map(|index| Gpu::on(&device, index % 3)).collect();
    let gpus = gpus?;
    let counter = gpus[0].buffer(PAGE)?;
    let fence = device.create_fence(0)?;
    let mut kept = Vec::new();
    // The last one first, so that every wait is there before its signal.
    for (index, gpu) in gpus.iter().enumerate().rev() {
        let index = index as u64;
        let commands = gpu.commands(&step(&counter, index))?;
        gpu.context().wait(&one(&fence, index + 1))?;
        gpu.submit(&commands)?;
        gpu.context().signal(&one(&fence, index + 2))?;
        kept.push(commands);
    }
    ensure_eq!(counter.get64(0), 0);
    fence.signal(1)?;
    reaches(&fence, gpus.len() as u64 + 1)?;
    ensure_eq!(counter.get64(0), gpus.len() as u64);
    Ok(())
}

/// The fence has the value while the buffer runs, and not any more when it has run.
fn not_early() -> TestResult {
    let gpu = Gpu::new()?;
    let (gate, fence) = (gpu.buffer(PAGE)?, gpu.device().create_fence(1)?);
    let commands = gpu.commands(
        &Pm4::new()
            .wait32(gate.address(), Compare::Equal, 1, u32::MAX)
            .write64(fence.gpu_address(), 0),
    )?;
    gpu.submit(&commands)?;
    gpu.context().wait(&one(&fence, 1))?;
    let mark = gpu.mark()?;
    a_while();
    ensure!(!gpu.is_done(mark), "the buffer has not run");
    gate.set32(0, 1);
    eventually("the buffer has run", || fence.value() == 0)?;
    a_while();
    ensure!(!gpu.is_done(mark), "the fence does not have the value");
    fence.signal(1)?;
    gpu.until(mark)
}

/// Each signal releases the wait of another context, whose signal releases the next one. Nothing
/// of it nests.
fn long_chain() -> TestResult {
    let (links, contexts) = if is_brief() {
        (1000, 100)
    } else {
        (10_000, 1000)
    };
    let device = fixture::device()?;
    let contexts: Result<Vec<Context>, _> = (0..contexts)
        .map(|index| device.create_context(NODES[index % 3]))
        .collect();
    let contexts = contexts?;
    let fence = device.create_fence(0)?;
    for (link, context) in (1..=links).zip(contexts.iter().cycle()) {
        context.wait(&one(&fence, link))?;
        context.signal(&one(&fence, link + 1))?;
    }
    ensure_eq!(fence.value(), 0);
    fence.signal(1)?;
    reaches(&fence, links + 1)
}

/// An engine stores a value that nobody has been told of yet, and a signal of the processor or of a
/// queue goes down from there.
fn taken_back() -> TestResult {
    let device = fixture::device()?;
    let (gpu, waiter) = (Gpu::on(&device, 0)?, Gpu::on(&device, 1)?);
    let gate = gpu.buffer(PAGE)?;
    for queued in [false, true] {
        let fence = device.create_fence(0)?;
        let event = EventFd::new()?;
        fence.wait_async(5, &event)?;
        waiter.context().wait(&one(&fence, 5))?;
        let mark = waiter.mark()?;
        gate.set32(0, 0);
        let commands = gpu.commands(&Pm4::new().write64(fence.gpu_address(), 5).wait32(
            gate.address(),
            Compare::Equal,
            1,
            u32::MAX,
        ))?;
        gpu.submit(&commands)?;
        eventually("the engine has stored it", || fence.value() == 5)?;
        match queued {
            true => {
                let other = device.create_context(2)?;
                other.signal(&one(&fence, 3))?;
                eventually("it went down", || fence.value() == 3)?;
            }
            false => fence.signal_rewind(3)?,
        }
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "queued: {queued}");
        waiter.until(mark)?;
        gate.set32(0, 1);
        gpu.finish()?;
        ensure_eq!(fence.value(), 3);
    }
    Ok(())
}

fn processes() -> TestResult {
    let gpu = Gpu::new()?;
    let ping = gpu.device().create_shareable_fence(0)?;
    let pong = gpu.device().create_shareable_fence(0)?;
    let handles = (ping.share(Access::ALL)?, pong.share(Access::ALL)?);
    let luid = gpu.device().adapter().luid();
    let (count, queued) = (u64::from(rounds(50)), Gate::new()?);
    let child = Child::spawn(|| {
        let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
        let ping = device.open_fence(&handles.0, SyncFlags::empty())?;
        let pong = device.open_fence(&handles.1, SyncFlags::empty())?;
        let gpu = Gpu::on(&device, 1)?;
        for value in 1..=count {
            gpu.context().wait(&one(&ping, value))?;
            gpu.context().signal(&one(&pong, value))?;
        }
        let mark = gpu.mark()?;
        queued.open()?;
        gpu.until(mark)
    })?;
    queued.wait()?;
    // All of it is queued on both sides: from here on no process does anything.
    for value in 1..=count {
        gpu.context().signal(&one(&ping, value))?;
        gpu.context().wait(&one(&pong, value))?;
    }
    gpu.finish()?;
    ensure_eq!(pong.value(), count);
    child.join()
}

/// A fence that both adapters know orders their queues.
fn adapters() -> TestResult {
    let soft = selftests::soft_adapter::SoftAdapter::enabled("gpu-submit")?;
    let result = two_adapters(&soft);
    soft.disable()?;
    result
}

fn two_adapters(soft: &selftests::soft_adapter::SoftAdapter) -> TestResult {
    let here = Gpu::new()?;
    let there = Gpu::on(&soft.device()?, 0)?;
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    let fence = here.device().create_fence_with(0, flags)?;
    let handle = fence.share(Access::ALL)?;
    let same = there.device().open_fence(&handle, SyncFlags::empty())?;
    there.context().wait(&one(&same, 1))?;
    there.context().signal(&one(&same, 2))?;
    here.context().wait(&one(&fence, 2))?;
    let mark = here.mark()?;
    a_while();
    ensure!(!here.is_done(mark));
    let starter = Gpu::on(here.device(), 1)?;
    starter.context().signal(&one(&fence, 1))?;
    here.until(mark)?;
    ensure_eq!(same.value(), 2);
    // A store of an engine is seen by the other adapter, too.
    there.context().wait(&one(&same, 3))?;
    let mark = there.mark()?;
    here.run(&Pm4::new().signal(fence.gpu_address(), 3))?;
    there.until(mark)
}

fn values() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&fence, 0))?;
    gpu.finish()?;
    for value in [1, 2, 0x7fff_ffff_ffff_ffff, u64::MAX] {
        gpu.context().wait(&one(&fence, value))?;
        let mark = gpu.mark()?;
        fence.signal(value - 1)?;
        a_while();
        ensure!(!gpu.is_done(mark), "wait for {value:#x}");
        fence.signal(value)?;
        gpu.until(mark)?;
    }
    // Several fences, and one of them several times.
    let (a, b) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let all = FenceValues::new().with(&a, 1).with(&b, 2).with(&a, 3);
    gpu.context().wait(&all)?;
    let mark = gpu.mark()?;
    b.signal(2)?;
    a.signal(2)?;
    a_while();
    ensure!(!gpu.is_done(mark));
    a.signal(3)?;
    gpu.until(mark)
}

fn rights() -> TestResult {
    let gpu = Gpu::new()?;
    let shared = gpu.device().create_shareable_fence(0)?;
    let handle = shared.share(Access::ALL)?;
    let no_signal = gpu.device().open_fence(&handle, SyncFlags::NO_SIGNAL)?;
    let no_wait = gpu.device().open_fence(&handle, SyncFlags::NO_WAIT)?;
    fails_with(
        gpu.context().signal(&one(&no_signal, 1)),
        Status::ACCESS_DENIED,
    )?;
    fails_with(gpu.context().wait(&one(&no_wait, 1)), Status::ACCESS_DENIED)?;
    gpu.context().wait(&one(&no_signal, 1))?;
    let other = Gpu::on(gpu.device(), 1)?;
    other.context().signal(&one(&no_wait, 1))?;
    gpu.finish()?;
    ensure_eq!(shared.value(), 1);
    Ok(())
}

fn when_fetched() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let word = gpu.buffer(PAGE)?;
        let top = gpu
            .device()
            .create_fence_with(0, SyncFlags::TOP_OF_PIPELINE)?;
        let end = gpu.device().create_fence(0)?;
        let wait = |value| Pm4::new().wait32(word.at(0), Compare::Equal, value, u32::MAX);

        // All of it has been read when its last packet waits. A call may name both.
        let commands = gpu.commands(&wait(1))?;
        gpu.submit(&commands)?;
        let both = FenceValues::new().with(&end, 1).with(&top, 1);
        gpu.context().signal(&both)?;
        reaches(&top, 1)?;
        a_while();
        ensure_eq!(end.value(), 0, "node {node}");
        word.set32(0, 1);
        reaches(&end, 1)?;

        // What is behind a packet that waits has not been read.
        let commands = gpu.commands(&wait(2).set32(word.at(8), 1))?;
        gpu.submit(&commands)?;
        gpu.context().signal(&one(&top, 2))?;
        a_while();
        ensure_eq!(top.value(), 1, "node {node}");
        word.set32(0, 2);
        reaches(&top, 2)?;
        gpu.finish()?;
    }
    Ok(())
}
