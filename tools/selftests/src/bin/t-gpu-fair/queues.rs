// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues and limits that others have filled.

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Error, EvictFlags, GpuMap, ResidentFlags, Status};
use selftests::child::{Child, Gate};
use selftests::gpu::{one, reaches, Gpu, NODES, PAGE, READ_WRITE};
use selftests::rounds::{is_brief, rounds};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "FEN-45 GPU-68 a user at his limits, and another one",
            Duration::from_secs(60),
            at_limits,
        )
        .slow(
            "MEM-14 very many paging operations, and those of another process",
            Duration::from_secs(60),
            paging,
        )
}

/// What a user is refused with who has enough.
const LIMITS: [Status; 2] = [Status::NO_MEMORY, Status::QUOTA_EXCEEDED];

/// How many things are tried that should not all succeed; a few in a brief run.
fn most(all: u64) -> u64 {
    if is_brief() {
        all / 1000
    } else {
        all
    }
}

/// What a user does until it is refused. A brief run ends long before that: then others go on
/// beside much that is queued.
fn fill() -> TestResult {
    let gpu = Gpu::new()?;
    let gate = gpu.device().create_fence(0)?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    gpu.context().wait(&one(&gate, 1))?;
    let mut items = 0u64;
    let refused = loop {
        let result = match items % 3 {
            0 => gpu.context().submit(nop.address(), nop.length()),
            1 => gpu.context().signal(&one(gpu.done(), 1)),
            _ => gpu.context().wait(&one(&gate, 1)),
        };
        match result {
            Ok(()) if items == most(3_000_000) => break None,
            Ok(()) => items += 1,
            Err(error) => break Some(error),
        }
    };
    let is_at_limit = |refused: &Option<Error>| match refused {
        Some(error) => LIMITS.contains(&error.status()),
        None => is_brief(),
    };
    ensure!(is_at_limit(&refused), "after {items} items: {refused:?}");
    // And as many contexts and queues as he gets.
    let mut contexts = Vec::new();
    let refused = loop {
        match gpu.device().create_context(NODES[contexts.len() % 3]) {
            Ok(_) if contexts.len() as u64 == most(100_000) => break None,
            Ok(context) => contexts.push(context),
            Err(error) => break Some(error),
        }
    };
    ensure!(
        is_at_limit(&refused),
        "{} contexts: {refused:?}",
        contexts.len()
    );
    println!("# {items} items, {} contexts", contexts.len());
    // All of it is there until the process ends.
    core::mem::forget((gpu, contexts, nop, gate));
    Ok(())
}

fn at_limits() -> TestResult {
    needs_root()?;
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let hog = Child::spawn(|| {
        become_user(USER)?;
        fill()?;
        ready.open()?;
        end.wait_for_parent()
    })?;
    ready.wait_for_child(&hog)?;
    selftests::child::in_child(|| {
        become_user(OTHER)?;
        for node in NODES {
            let gpu = Gpu::node(node)?;
            for _ in 0..rounds(5) {
                gpu.run(&Pm4::new().nop(0))?;
            }
        }
        Ok(())
    })?;
    end.open()?;
    hog.join()
}

fn paging() -> TestResult {
    needs_root()?;
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let hog = Child::spawn(|| {
        become_user(USER)?;
        let gpu = Gpu::new()?;
        let memory = gpu.allocate_local(64 * PAGE)?;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let map = GpuMap {
            pages: 64,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        std::thread::scope(|scope| {
            let flood = || -> TestResult<u32> {
                let mut turns = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let range = gpu.paging().map(Some(&memory), &map)?;
                    gpu.paging()
                        .make_resident(&[&memory], ResidentFlags::empty())?
                        .value()?;
                    gpu.device().evict(&[&memory], EvictFlags::empty())?;
                    let adapter = gpu.device().adapter();
                    adapter.free_gpu_range(range.address, 64 * PAGE)?;
                    turns += 1;
                }
                Ok(turns)
            };
            let threads = [scope.spawn(flood), scope.spawn(flood)];
            let result = ready.open().and_then(|()| end.wait_for_parent());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            for thread in threads {
                let turns = thread.join().map_err(|_| "panic in a thread")??;
                println!("# {turns} rounds of the flood");
            }
            result
        })
    })?;
    ready.wait_for_child(&hog)?;
    selftests::child::in_child(|| {
        become_user(OTHER)?;
        let gpu = Gpu::node(1)?;
        let memory = gpu.allocate_local(PAGE)?;
        for _ in 0..rounds(20) {
            let map = GpuMap {
                pages: 1,
                protection: READ_WRITE,
                ..GpuMap::default()
            };
            let range = gpu.paging().map(Some(&memory), &map)?;
            let resident = gpu
                .paging()
                .make_resident(&[&memory], ResidentFlags::empty())?;
            reaches(gpu.paging().fence(), resident.value()?.max(range.value))?;
            gpu.run(&Pm4::new().write(range.address, &[1]))?;
            gpu.device().evict(&[&memory], EvictFlags::empty())?;
            let adapter = gpu.device().adapter();
            adapter.free_gpu_range(range.address, PAGE)?;
        }
        Ok(())
    })?;
    end.open()?;
    hog.join()
}
