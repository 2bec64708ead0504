// SPDX-License-Identifier: MIT OR Apache-2.0
//! Very many ranges, and the limit of a process (MEM-50).

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use opendxg::{Dxg, FdInfo, GpuMap, GpuReserve, Status};
use selftests::gpu::{Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::rounds::{is_brief, rounds};
use selftests::{ensure_eq, fails_with, skip, Suite, TestResult};

const NO_MEMORY: Status = Status::NO_MEMORY;
const IP: Status = Status::INVALID_PARAMETER;
const BASE: u64 = 0x4000_0000_0000;
/// The most that a process has on an adapter.
const MOST: u64 = 65_536;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite.test("MEM-50 very many ranges", many).slow(
        "MEM-50 FEN-54 65,536 ranges and no more, and nothing changes at the limit",
        Duration::from_secs(120),
        limit,
    )
}

fn reserve(index: u64) -> GpuReserve {
    GpuReserve {
        base: BASE + index * BLOCK,
        size: BLOCK,
        ..GpuReserve::default()
    }
}

fn many() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let count = u64::from(rounds(500)).min(60_000);
    for index in 0..count {
        gpu.paging().reserve(&reserve(index))?;
    }
    fails_with(gpu.paging().reserve(&reserve(count / 2)), IP)?;
    adapter.free_gpu_range(BASE, count * BLOCK)?;
    // One range again.
    let all = GpuReserve {
        size: count * BLOCK,
        ..reserve(0)
    };
    gpu.paging().reserve(&all)?;
    adapter.free_gpu_range(BASE, count * BLOCK)?;
    Ok(())
}

/// How many ranges this process has on its adapter.
fn ranges(node: &File) -> TestResult<u64> {
    let info = FdInfo::read(node.as_fd())?;
    let text = info.get("dxg-gpu-memory").unwrap_or("");
    let number = text
        .split(' ')
        .find_map(|word| word.strip_prefix("ranges="));
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("dxg-gpu-memory: {text:?}").into())
}

fn limit() -> TestResult {
    if is_brief() {
        skip!("this takes as long as the limit is high");
    }
    let gpu = Gpu::new()?;
    let paging = gpu.paging();
    let adapter = gpu.device().adapter();
    let node = File::open(Dxg::open()?.path())?;
    let memory = gpu.allocate(2 * PAGE)?;
    let map = |address: u64, pages: u64| GpuMap {
        base: address,
        pages,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let count = MOST - ranges(&node)?;
    for index in 0..count {
        paging.reserve(&reserve(index))?;
    }
    ensure_eq!(ranges(&node)?, MOST);
    // What would take one more, or cut one into two or three.
    fails_with(paging.reserve(&reserve(count)), NO_MEMORY)?;
    fails_with(adapter.reserve_gpu_range(&reserve(count)), NO_MEMORY)?;
    fails_with(paging.map(Some(&memory), &map(0, 1)), NO_MEMORY)?;
    let (first, second) = (reserve(0).base, reserve(1).base);
    fails_with(paging.map(Some(&memory), &map(first, 1)), NO_MEMORY)?;
    fails_with(paging.map(Some(&memory), &map(first + PAGE, 1)), NO_MEMORY)?;
    fails_with(adapter.free_gpu_range(first + PAGE, PAGE), NO_MEMORY)?;
    ensure_eq!(ranges(&node)?, MOST);
    // A part from the beginning or the end takes none.
    adapter.free_gpu_range(first, PAGE)?;
    adapter.free_gpu_range(second - PAGE, PAGE)?;
    adapter.free_gpu_range(first + PAGE, BLOCK - 2 * PAGE)?;
    ensure_eq!(ranges(&node)?, MOST - 1);
    adapter.free_gpu_range(second + PAGE, PAGE)?;
    ensure_eq!(ranges(&node)?, MOST);
    fails_with(paging.reserve(&reserve(0)), NO_MEMORY)?;
    // What is replaced as a whole takes none either.
    paging.map(Some(&memory), &map(second, 1))?;
    ensure_eq!(ranges(&node)?, MOST);
    adapter.free_gpu_range(second, PAGE)?;
    adapter.free_gpu_range(second + 2 * PAGE, BLOCK - 2 * PAGE)?;
    adapter.free_gpu_range(reserve(2).base, (count - 2) * BLOCK)?;
    ensure_eq!(ranges(&node)?, MOST - count);
    Ok(())
}
