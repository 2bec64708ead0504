// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the memory manager does and in which order, by its operation log (memory.md sections 9 and
//! 15). Where nothing else is said, page tables are written by the processor, so that traces are
//! without what needs the address space of a paging process. `tables.rs` has them by the paging
//! node.

use opendxg::EvictFlags;
use selftests::gpu::{Gpu, PAGE};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use log::{Log, Record};
use traces::resident;

pub(crate) mod engine;
mod events;
mod held;
pub(crate) mod log;
mod moves;
mod others;
mod own;
mod root;
pub(crate) mod switches;
mod tables;
pub(crate) mod traces;
mod turns;

pub(crate) fn main() {
    let suite = Suite::new("paging")
        .test("MEM-104 the log is off until it is wanted", off)
        .test("MEM-104 MEM-107 words that are refused", refusals)
        .test("MEM-104 what is lost is counted", overrun);
    let suite = engine::tests(root::tests(traces::tests(suite)));
    let suite = tables::tests(suite);
    let suite = switches::tests(events::tests(suite));
    let suite = turns::tests(moves::tests(own::tests(suite)));
    held::tests(others::tests(suite)).run()
}

fn off() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    let buffer = gpu.buffer(PAGE)?;
    ensure!(!log.own()?.is_empty());
    log.control("stop")?;
    let before = log.own()?.len();
    drop(buffer);
    drop(gpu.buffer(PAGE)?);
    ensure_eq!(log.own()?.len(), before);
    log.control("clear")?;
    ensure!(log.own()?.is_empty());
    Ok(())
}

fn refusals() -> TestResult {
    let log = Log::new(&Gpu::new()?)?;
    for word in [
        "",
        "begin",
        "start now",
        "hold\n\n",
        "STOP",
        "scratch",
        "scratch 0",
        "scratch -1",
        "buffer +8",
        "buffer 8 ",
        "buffer 4294967296",
        "scratch  8",
        "fault 1",
        "move 0",
        "stay 1",
        "fail",
        "busy 0",
        "segment -1",
        "random 1",
    ] {
        let result = log.control(word);
        // Nothing is written if there is nothing to write.
        ensure_eq!(result.is_ok(), word.is_empty(), "{word:?}");
    }
    log.control("stop\n")
}

fn overrun() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    let allocation = gpu.allocate(PAGE)?;
    // PIN, RETURN, UNPIN and RETURN.
    for _ in 0..1500 {
        resident(&gpu, &allocation)?;
        gpu.device().evict(&[&allocation], EvictFlags::empty())?;
    }
    let (lost, text) = log.text()?;
    ensure!(lost >= 6000 - 4096, "{lost} lost");
    let first = Record::parse(text.lines().next().ok_or("nothing")?)?;
    let last = Record::parse(text.lines().last().ok_or("nothing")?)?;
    ensure_eq!(last.number - first.number + 1, 4096);
    log.control("clear")?;
    ensure_eq!(log.text()?.0, 0);
    Ok(())
}
