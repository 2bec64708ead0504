// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters beside each other: each round ends with a last signal, and then silence (FEN-80,
//! FEN-83, M20, M21, M28).

use opendxg::pm4::Pm4;
use opendxg::{Access, EventFd};
use selftests::gpu::Gpu;
use selftests::rounds::rounds;
use selftests::time::soon;
use selftests::{ensure_eq, Suite, TestResult};

use super::scene::{adapter, create, open, By, Side};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-80 FEN-138 two adapters hand over to each other",
            hand_over,
        )
        .test("FEN-83 FEN-138 both signal at once (M21)", at_once)
        .test("FEN-121 FEN-137 opened while signals run (M28)", opened)
}

/// Commands that signal one fence and wait for another, in turns.
fn hand_over() -> TestResult {
    let (x, y) = (adapter("x", true)?, adapter("y", true)?);
    let (x, y) = (Gpu::on(&x.device()?, 0)?, Gpu::on(&y.device()?, 0)?);
    let there = [create(x.device(), true)?, create(x.device(), true)?];
    let mut back = Vec::new();
    for fence in &there {
        let handle = fence.fence().share(Access::ALL)?;
        back.push(open(y.device(), &handle, true)?);
    }
    let last = u64::from(rounds(100));
    let (mut sends, mut answers) = (Pm4::new(), Pm4::new());
    for round in 1..=last {
        sends = sends
            .signal_native(there[0].fence().gpu_address(), round)
            .wait_native(there[1].fence().gpu_address(), round);
        answers = answers
            .wait_native(back[0].fence().gpu_address(), round)
            .signal_native(back[1].fence().gpu_address(), round);
    }
    let (sends, answers) = (x.commands(&sends)?, y.commands(&answers)?);
    x.submit(&sends)?;
    y.submit(&answers)?;
    let marks = [x.mark()?, y.mark()?];
    x.until(marks[0])?;
    y.until(marks[1])?;
    ensure_eq!(
        there.each_ref().map(|fence| fence.fence().value()),
        [last; 2]
    );
    Ok(())
}

/// Engines of both adapters, and a CPU; queues of both wait, and CPUs.
fn at_once() -> TestResult {
    let x = Side::first("x", true)?;
    let y = x.another("y", true)?;
    let waits = [Gpu::on(x.gpu.device(), 1)?, Gpu::on(y.gpu.device(), 1)?];
    let sides = [&x, &y];
    for round in 1..=u64::from(rounds(30)) {
        // Whichever value is the last, all of them reach the first one.
        let values = [3 * round, 3 * round + 1, 3 * round + 2];
        let event = EventFd::new()?;
        let mut marks = Vec::new();
        let mut kept = Vec::new();
        for (side, gpu) in sides.iter().zip(&waits) {
            let at = side.fence().gpu_address();
            let commands = gpu.commands(&Pm4::new().wait_native(at, values[0]))?;
            gpu.submit(&commands)?;
            marks.push(gpu.mark()?);
            side.fence().wait_async(values[0], &event)?;
            kept.push(commands);
        }
        let mut signals = Vec::new();
        for (side, value) in sides.iter().zip(values) {
            let at = side.fence().gpu_address();
            let commands = side.gpu.commands(&Pm4::new().signal_native(at, value))?;
            side.gpu.submit(&commands)?;
            signals.push(commands);
        }
        x.fence().signal_rewind(values[2])?;
        for ((gpu, mark), side) in waits.iter().zip(marks).zip(sides) {
            gpu.until(mark)?;
            side.gpu.finish()?;
        }
        let mut told = 0;
        while told < 2 {
            told += event
                .wait(Some(soon()))?
                .ok_or("a wait of the CPU never ends")?;
        }
        ensure_eq!(told, 2);
    }
    Ok(())
}

/// A device of another adapter opens a fence, and waits for the last of many signals.
fn opened() -> TestResult {
    const MANY: u64 = 100;

    let x = Side::first("x", true)?;
    let handle = x.fence().share(Access::ALL)?;
    for round in 0..u64::from(rounds(10)) {
        let first = round * MANY;
        let at = x.fence().gpu_address();
        let signals = (1..=MANY).fold(Pm4::new(), |signals, number| {
            signals.signal_native(at, first + number)
        });
        let soft = adapter("y", true)?;
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let commands = x.gpu.commands(&signals)?;
        x.gpu.submit(&commands)?;
        let there = open(gpu.device(), &handle, true)?;
        let wait = Pm4::new().wait_native(there.fence().gpu_address(), first + MANY);
        gpu.run(&wait)?;
        x.gpu.finish()?;
        // Neither the fence nor the adapter is lost when nothing is open there.
        drop((there, gpu));
        soft.remove()?;
        x.signal(By::Cpu, first + MANY)?;
        ensure_eq!(x.fence().value(), first + MANY);
    }
    Ok(())
}
