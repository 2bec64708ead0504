// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients see of context allocations, and what they can do there.

use opendxg::pm4::Pm4;
use opendxg::{ExecutionState, GpuMap, Status};
use selftests::gpu::{Gpu, PAGE};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use super::{content, expected, has, only, Saved, MAPPED, PAGES, ROOT};

pub(super) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-85 MEM-86 a process reads a visible save area, and cannot store there",
            visible,
        )
        .test("MEM-86 its addresses are not the client's", not_theirs)
        .test("MEM-86 a private one is at no address", private)
}

fn visible() -> TestResult {
    let saved = Saved::new("context-visible", "visible")?;
    let (another, all) = saved.another()?;
    let mapped = only(&all, MAPPED)?;
    let address = mapped.get("va");
    let wanted = expected(1, only(&all, ROOT)?);
    ensure_eq!(mapped.get("status"), 0);
    ensure!(address != 0 && address % PAGE == 0);
    // Whoever shares its addresses.
    for gpu in [&another, &saved.gpu] {
        has(&content(gpu, address)?, wanted)?;
    }
    let last = address + PAGES * PAGE - 4;
    let victim = Gpu::on(&saved.soft.device()?, 0)?;
    victim.fails(&Pm4::new().write(last, &[1]), ExecutionState::DmaPageFault)?;
    ensure_eq!(victim.device().page_fault()?.address, last);
    has(&content(&saved.gpu, address)?, wanted)?;
    drop((victim, another));
    saved.remove()
}

fn not_theirs() -> TestResult {
    let saved = Saved::new("context-theirs", "visible")?;
    let (another, all) = saved.another()?;
    let address = only(&all, MAPPED)?.get("va");
    let wanted = expected(1, only(&all, ROOT)?);
    let adapter = saved.gpu.device().adapter();
    let own = saved.gpu.buffer(PAGE)?;
    for (first, pages) in [(address, PAGES), (address, 1), (address + PAGE, 1)] {
        fails_with(
            adapter.free_gpu_range(first, pages * PAGE),
            Status::INVALID_PARAMETER,
        )?;
        let map = GpuMap {
            base: first,
            pages: 1,
            ..GpuMap::default()
        };
        fails_with(
            saved.gpu.paging().map(Some(own.allocation()), &map),
            Status::INVALID_PARAMETER,
        )?;
    }
    has(&content(&another, address)?, wanted)?;
    drop((own, another));
    saved.remove()
}

/// Where it would be if it were visible.
fn private() -> TestResult {
    let saved = Saved::new("context-shown", "visible")?;
    let (another, all) = saved.another()?;
    let address = only(&all, MAPPED)?.get("va");
    drop(another);
    saved.remove()?;
    let saved = Saved::new("context-private", "private")?;
    let (another, all) = saved.another()?;
    ensure!(all.iter().all(|one| one.what != MAPPED));
    let read = Pm4::new().copy(address + PAGE, address, 4);
    another.fails(&read, ExecutionState::DmaPageFault)?;
    drop(another);
    saved.remove()
}
