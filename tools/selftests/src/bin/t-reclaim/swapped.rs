// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no GPU uses is swapped when memory is short; what one uses is not.

use std::os::fd::AsFd;
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Dxg, EvictFlags, FdInfo, ResidentFlags};
use selftests::cgroup::Group;
use selftests::child::in_child;
use selftests::gpu::{reaches, Buffer, Gpu, PAGE};
use selftests::swap::Swap;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::MIB;

/// Half of what a RAM disk has.
const SIZE: u64 = 8 * MIB;
/// What a process may have in memory besides.
const BESIDES: u64 = 2 * MIB;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "MEM-108 system memory is swapped while it is not resident, and only then",
            Duration::from_secs(90),
            || swapped(Gpu::buffer),
        )
        .slow(
            "MEM-108 what has left local memory is swapped, and comes back from there",
            Duration::from_secs(90),
            || swapped(Gpu::local_buffer),
        )
}

fn word(page: u64) -> u64 {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[track_caller]
fn is_whole(buffer: &Buffer) -> TestResult {
    for page in 0..SIZE / PAGE {
        ensure_eq!(buffer.get64(page * PAGE + 8), word(page), "page {page}");
    }
    Ok(())
}

/// Bytes that the module keeps in memory for this process.
fn kept() -> TestResult<u64> {
    let info = FdInfo::read(Dxg::open()?.as_fd())?;
    let bytes = info.get("dxg-process-resident").ok_or("no such line")?;
    Ok(bytes.parse().map_err(|_| "no number")?)
}

fn swapped(make: impl Fn(&Gpu, u64) -> TestResult<Buffer>) -> TestResult {
    let _swap = Swap::on()?;
    let group = Group::new("swapped")?;
    group.swapped()?;
    in_child(|| {
        group.enter()?;
        let gpu = Gpu::new()?;
        let copy = gpu.buffer(SIZE)?;
        let buffer = make(&gpu, SIZE)?;
        let list = [buffer.allocation()];
        for page in 0..SIZE / PAGE {
            buffer.set64(page * PAGE + 8, word(page));
        }
        // While it is resident, it stays where it is, as the other one does at any time.
        for _ in 0..3 {
            group.reclaim(SIZE);
        }
        ensure!(group.swapped()? < BESIDES, "{}", group.swapped()?);
        let unevictable = group.line("memory.stat", "unevictable")?;
        ensure!(unevictable >= SIZE, "{unevictable}");
        for round in 0..2 {
            gpu.device().evict(&list, EvictFlags::empty())?;
            // By the mapping, which stays.
            is_whole(&buffer)?;
            ensure!(kept()? >= 2 * SIZE);
            let before = group.charged()?;
            eventually("it is swapped", || {
                group.reclaim(SIZE);
                group.swapped().is_ok_and(|bytes| bytes >= SIZE * 7 / 8)
            })?;
            ensure!(group.charged()? + SIZE / 2 <= before);
            ensure!(kept()? < 2 * SIZE, "{}", kept()?);
            if round == 0 {
                is_whole(&buffer)?;
            }
            let resident = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
            reaches(gpu.paging().fence(), resident.value()?)?;
            gpu.run(&Pm4::new().copy(copy.address(), buffer.address(), SIZE))?;
            is_whole(&copy)?;
            is_whole(&buffer)?;
            gpu.run(&Pm4::new().fill(copy.address(), 0, SIZE))?;
        }
        Ok(())
    })
}
