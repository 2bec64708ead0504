// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines with one processor and with all of them (GPU-4).

use std::time::Duration;

use opendxg::pm4::{Atomic, Compare, Pm4};
use opendxg::Context;
use selftests::gpu::{one, reaches, Gpu, NODES, PAGE};
use selftests::hog::Hog;
use selftests::processors::Offline;
use selftests::rounds::rounds;
use selftests::{ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-4 engines and processes that wait for each other",
            Duration::from_secs(60),
            all_to_all,
        )
        .slow(
            "GPU-4 the same with one processor",
            Duration::from_secs(60),
            || {
                let _rest = Offline::all_but_one()?;
                all_to_all()
            },
        )
        .slow(
            "GPU-4 engines that are always busy, with one processor",
            Duration::from_secs(60),
            || {
                let _rest = Offline::all_but_one()?;
                busy()
            },
        )
        .test("GPU-4 an engine waits for another one in a packet", engines)
}

/// A ring of the three engines and this process: each waits for the one before.
fn all_to_all() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let word = gpu.buffer(PAGE)?;
    let add = gpu.commands(&Pm4::new().atomic(Atomic::Add, word.at(0), 1, 0))?;
    let contexts: Result<Vec<Context>, _> = NODES
        .map(|n| device.create_context(n))
        .into_iter()
        .collect();
    let contexts = contexts?;
    let fence = device.create_fence(0)?;
    let mut value = 0;
    for turn in 1..=u64::from(rounds(30)) {
        for context in &contexts {
            context.wait(&one(&fence, value + 1))?;
            context.submit(add.address(), add.length())?;
            context.signal(&one(&fence, value + 2))?;
            value += 1;
        }
        fence.signal(value - 2)?;
        value += 1;
        reaches(&fence, value)?;
        ensure_eq!(word.get64(0), 3 * turn);
    }
    gpu.finish()
}

fn busy() -> TestResult {
    let mut all = Vec::new();
    for node in NODES {
        for hog in [Hog::Loop, Hog::Poll] {
            let gpu = Gpu::node(node)?;
            let busy = hog.begin(&gpu)?;
            busy.runs()?;
            all.push((busy, gpu));
        }
    }
    for node in NODES {
        let gpu = Gpu::node(node)?;
        for _ in 0..rounds(3) {
            gpu.run(&Pm4::new().nop(0))?;
        }
    }
    Ok(())
}

/// Two engines hand a word to and fro without any queue between them.
fn engines() -> TestResult {
    let (first, second) = (Gpu::node(0)?, Gpu::node(1)?);
    // One process has one address space on the adapter.
    let word = first.buffer(PAGE)?;
    let turns = rounds(20);
    let (mut ping, mut pong) = (Pm4::new(), Pm4::new());
    for turn in 1..=turns {
        ping = ping
            .set32(word.at(0), turn)
            .wait32(word.at(4), Compare::Equal, turn, u32::MAX);
        pong = pong
            .wait32(word.at(0), Compare::Equal, turn, u32::MAX)
            .set32(word.at(4), turn);
    }
    let (ping, pong) = (first.commands(&ping)?, second.commands(&pong)?);
    first.submit(&ping)?;
    second.submit(&pong)?;
    first.finish()?;
    second.finish()?;
    ensure_eq!(word.read(0, 2), [turns, turns]);
    Ok(())
}
