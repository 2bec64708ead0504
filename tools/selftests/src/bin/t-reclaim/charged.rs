// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of system memory are charged to who touches them first.

use opendxg::{Dxg, OfferFlags, OfferPriority, ResidentFlags, StatisticsOf, TrimFlags};
use selftests::cgroup::Group;
use selftests::child::in_child;
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::paging_log::PagingLog;
use selftests::time::eventually;
use selftests::{ensure, Suite, TestResult};

use super::MIB;

const SIZE: u64 = 8 * MIB;
/// What is charged besides: tables of pages, and what a process needs. Charges come in steps of
/// some pages for each processor.
const BESIDES: u64 = MIB;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-108 a page is charged to who touches it first", touched)
        .test(
            "MEM-108 MakeResident charges the thread that calls it, also where the worker goes on",
            made_resident,
        )
        .test(
            "MEM-108 what the worker has to take is charged to the owner",
            by_worker,
        )
}

/// Demands that `work` charges the group with so many bytes.
#[track_caller]
fn charges(group: &Group, bytes: u64, work: impl FnOnce() -> TestResult) -> TestResult {
    let place = core::panic::Location::caller();
    let before = group.charged()?;
    work()?;
    let grown = group.charged()?.saturating_sub(before);
    match (bytes - BESIDES..bytes + BESIDES).contains(&grown) {
        true => Ok(()),
        false => Err(format!("{place}: {grown} bytes are charged, not {bytes}").into()),
    }
}

fn touched() -> TestResult {
    let gpu = Gpu::new()?;
    let allocation = gpu.allocate(SIZE)?;
    let bytes = allocation.lock_write()?;
    let group = Group::new("first-touch")?;
    let half = SIZE as usize / 2;
    // Another process has the same mapping, and touches a half.
    in_child(|| {
        group.enter()?;
        charges(&group, SIZE / 2, || {
            bytes.write(0, &vec![1; half]);
            Ok(())
        })
    })?;
    ensure!(group.charged()? >= SIZE / 2 - BESIDES);
    // Whoever comes second is charged with nothing, and the rest is not the group's.
    let before = group.charged()?;
    bytes.fill(2);
    ensure!(group.charged()? < before + BESIDES);
    drop(bytes);
    drop(allocation);
    eventually("the charge is gone", || {
        group.charged().is_ok_and(|charged| charged < BESIDES)
    })
}

fn made_resident() -> TestResult {
    let group = Group::new("resident")?;
    in_child(|| {
        group.enter()?;
        let gpu = Gpu::new()?;
        // The first is done in the call.
        for pages in [1024, 2048] {
            let size = pages * PAGE;
            let allocation = gpu.allocate(size)?;
            charges(&group, size, || {
                let list = [&allocation];
                let resident = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
                reaches(gpu.paging().fence(), resident.value()?)
            })?;
        }
        Ok(())
    })
}

fn by_worker() -> TestResult {
    let group = Group::new("worker")?;
    let log = PagingLog::of(Gpu::new()?.device().adapter())?;
    let outcome = in_child(|| {
        group.enter()?;
        let (gpu, dxg) = (Gpu::new()?, Dxg::open()?);
        let size = 2048 * PAGE;
        let allocation = gpu.allocate(size)?;
        let list = [&allocation];
        log.control("hold")?;
        let resident = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
        ensure!(!gpu.paging().fence().is_reached(resident.value()?));
        // It loses the pages that it has got for that.
        let all = OfferFlags::IMMEDIATELY | OfferFlags::ALLOW_DECOMMIT;
        gpu.device().offer(&list, OfferPriority::Low, all)?;
        let caller = StatisticsOf::Caller;
        ensure!(dxg.trim_commitment(caller, size, TrimFlags::empty())? == size);
        charges(&group, size, || {
            log.control("release")?;
            reaches(gpu.paging().fence(), resident.value()?)
        })
    });
    log.control("release")?;
    outcome
}
