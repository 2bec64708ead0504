// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace 7: what an update does, and in which order.

use std::thread;

use selftests::gpu::{Gpu, PAGE};
use selftests::task::me;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::{expected, only, Saved, PAGES, ROOT};
use crate::t_paging::log::{names, Record};

const CALL: &str = "CB UpdateContextAllocation";
const QUEUE: &str = "QUEUE UpdateContextAllocation";
const BUILD: &str = "BUILD UpdateContextAllocation";
const RETURN: &str = "RETURN UpdateContextAllocation";
const ENTRIES: &str = "BUILD UpdatePageTable";
const VALID: u64 = 8;

pub(super) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-75 MEM-87 MEM-103 trace 7, an update", update)
        .test("MEM-75 MEM-87 updates in paging buffers of 32 bytes", small)
        .test("MEM-88 updates of contexts of several threads", threads)
}

/// The records of the batch that this one is of.
fn batch<'a>(all: &'a [Record], first: &Record) -> TestResult<Vec<&'a Record>> {
    let number = first.get("batch");
    ensure!(number != 0);
    Ok(all
        .iter()
        .filter(|one| one.get("batch") == number)
        .collect())
}

/// The checksum of bytes in the log: FNV-1a.
fn checksum(words: &[u32]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let sum = bytes.fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    sum.into()
}

/// Demands that these records are trace 7, with so many paging buffers.
fn check(own: &[&Record], buffers: usize) -> TestResult {
    let mut wanted = vec![CALL, QUEUE, "VA_ALLOC", ENTRIES, "BUILD FlushTlb"];
    for _ in 0..buffers {
        wanted.extend([BUILD, "SUBMIT", "COMPLETE"]);
    }
    wanted.extend(["VA_FREE", RETURN]);
    let found: Vec<_> = own.iter().map(|one| one.what.as_str()).collect();
    ensure_eq!(found, wanted);
    let [call, _, scratch, entries, flush, build, ..] = own else {
        return Err("too short".into());
    };
    let answer = own[own.len() - 1];
    // The driver is called with what it has given, and learns that it is done.
    for one in [call, build] {
        ensure_eq!(one.get("count"), 20);
        ensure_eq!(one.get("pattern"), call.get("pattern"));
    }
    ensure_eq!(answer.get("status"), 0);
    ensure_eq!(answer.get("thread"), call.get("thread"));
    ensure!(build.get("thread") != call.get("thread"));
    // All of the allocation is shown in the scratch area, and nothing else is flushed.
    for one in [scratch, entries, build] {
        ensure_eq!(one.get("object"), call.get("object"));
        ensure_eq!(one.get("va"), scratch.get("va"));
        ensure_eq!(one.get("process"), 0);
    }
    ensure_eq!(entries.get("count"), PAGES);
    ensure!(entries.get("flags") & VALID != 0);
    for one in [scratch, flush, build] {
        ensure_eq!(one.get("size"), PAGES * PAGE);
    }
    ensure_eq!(flush.get("va"), scratch.get("va"));
    Ok(())
}

fn update() -> TestResult {
    let saved = Saved::new("context-update", "private")?;
    let (another, all) = saved.another()?;
    let call = only(&all, CALL)?;
    ensure_eq!(call.get("thread"), me() as u64);
    let own = batch(&all, call)?;
    check(&own, 1)?;
    // It is where the allocation got its memory.
    let memory = all
        .iter()
        .find(|one| one.what == "COMMIT" && one.get("object") == call.get("object"))
        .ok_or("no memory")?;
    for name in ["segment", "offset"] {
        ensure_eq!(own[3].get(name), memory.get(name));
    }
    // It says where page tables begin, which the driver has just been told.
    let root = only(&all, ROOT)?;
    ensure!(root.number < call.number, "{:?}", names(&all));
    ensure_eq!(call.get("pattern"), checksum(&expected(1, root)[1..]));
    another.works()?;
    drop(another);
    saved.remove()
}

/// Five dwords do not fit with what a packet has besides.
fn small() -> TestResult {
    let saved = Saved::new("context-small", "private")?;
    saved.log.control("buffer 8")?;
    let (another, all) = saved.another()?;
    check(&batch(&all, only(&all, CALL)?)?, 2)?;
    drop(another);
    saved.remove()
}

fn threads() -> TestResult {
    const THREADS: usize = 4;
    const ROUNDS: usize = 5;
    let saved = Saved::new("context-threads", "private")?;
    let device = saved.gpu.device();
    thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| -> TestResult {
                    for node in 0..ROUNDS {
                        Gpu::on(device, node as u32 % 3)?.works()?;
                    }
                    Ok(())
                })
            })
            .collect();
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| "a thread panicked")?)
    })?;
    let all = saved.log.records(|_| true)?;
    let calls: Vec<_> = all.iter().filter(|one| one.what == CALL).collect();
    ensure_eq!(calls.len(), THREADS * ROUNDS);
    for call in calls {
        check(&batch(&all, call)?, 1)?;
    }
    saved.remove()
}
