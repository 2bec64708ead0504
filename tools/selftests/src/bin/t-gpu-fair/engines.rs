// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines that others keep busy.

use std::time::Duration;

use opendxg::pm4::{Atomic, Pm4};
use selftests::child::{Child, Gate};
use selftests::gpu::{one, reaches, Gpu, NODES, PAGE};
use selftests::hog::Hog;
use selftests::rounds::{is_brief, rounds};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-50 users whose work never ends, and one whose work does",
            Duration::from_secs(60),
            never_ends,
        )
        .slow(
            "GPU-50 many queues of one user, and one of another",
            Duration::from_secs(60),
            many_queues,
        )
        .slow(
            "GPU-50 64 queues of an engine all come forward",
            Duration::from_secs(60),
            all_forward,
        )
        .slow(
            "GPU-50 a user cannot put himself before others",
            Duration::from_secs(60),
            priority,
        )
        .slow(
            "GPU-60 interrupts of one process for ever, and the waits of another",
            Duration::from_secs(60),
            interrupts,
        )
}

/// Waits and signals between CPU and engines: so many rounds on each node.
fn work(turns: u32) -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let word = gpu.buffer(PAGE)?;
        let add = Pm4::new().atomic(Atomic::Add, word.at(0), 1, 0);
        let add = gpu.commands(&add)?;
        for turn in 1..=turns {
            gpu.submit(&add)?;
            gpu.finish()?;
            ensure_eq!(word.get64(0), u64::from(turn));
        }
    }
    Ok(())
}

/// Runs `hogging` as a user until `body` has ended as another one.
fn beside(
    hogging: impl Fn() -> TestResult<Vec<selftests::hog::Busy>>,
    body: impl Fn() -> TestResult,
) -> TestResult {
    needs_root()?;
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let hog = Child::spawn(|| {
        become_user(USER)?;
        let busy = hogging()?;
        for one in &busy {
            one.runs()?;
        }
        let before: Vec<u64> = busy.iter().map(|one| one.turns()).collect();
        ready.open()?;
        end.wait_for_parent()?;
        // It was there all the time: it comes forward still.
        for (one, before) in busy.iter().zip(before) {
            ensure!(one.turns() >= before);
        }
        Ok(())
    })?;
    ready.wait_for_child(&hog)?;
    selftests::child::in_child(|| {
        become_user(OTHER)?;
        body()
    })?;
    end.open()?;
    hog.join()
}

fn never_ends() -> TestResult {
    let all = [Hog::Loop, Hog::Copies, Hog::Delay];
    // In the engine one is like the other.
    for hog in all.into_iter().take(if is_brief() { 1 } else { 3 }) {
        beside(
            || {
                let mut all = Vec::new();
                for node in NODES {
                    let gpu = Gpu::node(node)?;
                    all.push(hog.begin(&gpu)?);
                    core::mem::forget(gpu);
                }
                Ok(all)
            },
            || work(rounds(10)),
        )
        .map_err(|error| format!("{hog:?}: {error}"))?;
    }
    Ok(())
}

fn many_queues() -> TestResult {
    beside(
        || {
            let device = fixture::device()?;
            let mut all = Vec::new();
            let count = if is_brief() { 6 } else { 12 };
            for number in 0..count {
                let gpu = Gpu::on(&device, NODES[number % 3])?;
                let hog = if number < count / 2 {
                    Hog::Loop
                } else {
                    Hog::Poll
                };
                all.push(hog.begin(&gpu)?);
                core::mem::forget(gpu);
            }
            Ok(all)
        },
        || work(rounds(3)),
    )
}

fn all_forward() -> TestResult {
    let queues = if is_brief() { 8 } else { 64 };
    let device = fixture::device()?;
    let gpu = Gpu::on(&device, 0)?;
    let words = gpu.buffer(PAGE)?;
    let stop = gpu.buffer(PAGE)?;
    stop.set32(0, 1);
    let mut kept = Vec::new();
    for number in 0..queues as u64 {
        let context = device.create_context(0)?;
        let chain = 4;
        let body = Pm4::new()
            .atomic(Atomic::Add, words.at(8 * number), 1, 0)
            .skip_if_zero(stop.at(0), chain);
        let bytes = (body.len() as u64 + u64::from(chain)) * 4;
        let commands = gpu.commands(&body.clone().pad_to(bytes as usize / 4))?;
        let body = body.chain(commands.address(), bytes);
        commands.buffer().write(0, body.words());
        context.submit(commands.address(), commands.length())?;
        kept.push((context, commands));
    }
    let least = |turn: u64| {
        let at = |number: usize| words.get64(8 * number as u64);
        (0..queues).all(|number| at(number) >= turn)
    };
    for turn in 1..=u64::from(rounds(5)) {
        let from: Vec<u64> = (0..queues).map(|n| words.get64(8 * n as u64)).collect();
        selftests::time::eventually("each of them comes forward", || {
            (0..queues).all(|n| words.get64(8 * n as u64) > from[n])
        })?;
        ensure!(least(turn));
    }
    stop.set32(0, 0);
    let fence = device.create_fence(0)?;
    for (value, (context, _)) in (1..).zip(&kept) {
        context.signal(&one(&fence, value))?;
        reaches(&fence, value)?;
    }
    gpu.run(&Pm4::new().nop(0))
}

fn priority() -> TestResult {
    beside(
        || {
            let mut all = Vec::new();
            for node in NODES {
                let gpu = Gpu::node(node)?;
                // As high as he gets.
                for priority in (-7..=7).rev() {
                    if gpu.context().set_priority(priority).is_ok() {
                        break;
                    }
                }
                let _ = gpu.context().set_priority_in_process(7);
                all.push(Hog::Loop.begin(&gpu)?);
                core::mem::forget(gpu);
            }
            Ok(all)
        },
        || work(rounds(5)),
    )
}

fn interrupts() -> TestResult {
    beside(
        || {
            let mut all = Vec::new();
            for node in [0, 1] {
                let gpu = Gpu::node(node)?;
                // Many fences that have waiters, and are never stored to.
                for value in 0..if is_brief() { 10 } else { 100 } {
                    let fence = gpu.device().create_fence(0)?;
                    gpu.context().priority()?;
                    let event = opendxg::EventFd::new()?;
                    fence.wait_async(value + 1, &event)?;
                    core::mem::forget((fence, event));
                }
                all.push(Hog::Interrupts.begin(&gpu)?);
                core::mem::forget(gpu);
            }
            Ok(all)
        },
        || {
            // The CPU waits for what an engine stores, and the engine for what the CPU stores.
            let gpu = Gpu::node(2)?;
            let (ping, pong) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
            for turn in 1..=u64::from(rounds(50)) {
                gpu.context().wait(&one(&ping, turn))?;
                let store = gpu.commands(&Pm4::new().signal(pong.gpu_address(), turn))?;
                gpu.submit(&store)?;
                ping.signal(turn)?;
                reaches(&pong, turn)?;
                gpu.finish()?;
            }
            Ok(())
        },
    )
}
