// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offers of the system memory that backs allocations, and who may take it (MEM-29, MEM-31,
//! MEM-33).

use std::os::fd::AsFd;
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Allocation, Dxg, EvictFlags, FdInfo, OfferFlags, OfferPriority, Reclaimed, StatisticsOf,
    Status, TrimFlags,
};
use selftests::call::{refused, succeeds};
use selftests::child::{Child, Gate};
use selftests::fds::pidfd;
use selftests::gpu::{one, Gpu, PAGE};
use selftests::user::{become_user, needs_root, OTHER};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::offers::{fill, holds, resident, squeeze, LATER, NOW};

const ALL: OfferFlags = OfferFlags::IMMEDIATELY.union(OfferFlags::ALLOW_DECOMMIT);
const CALLER: StatisticsOf<'static> = StatisticsOf::Caller;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-33 what a process could go without", info)
        .test(
            "MEM-29 MEM-31 MEM-33 system memory is given back, and is zeros afterwards",
            given_back,
        )
        .test("MEM-33 as much as was asked for, in order", in_order)
        .slow(
            "MEM-33 only what has lost its bytes",
            Duration::from_secs(90),
            repurposed,
        )
        .test("MEM-30 MEM-33 who wants it has memory again", wanted)
        .test(
            "MEM-31 what cannot have system memory stays offered",
            not_committed,
        )
        .test(
            "MEM-33 of another process, which may be looked at",
            of_another,
        )
        .test("MEM-33 questions that are refused", refusals)
}

fn bytes(dxg: &Dxg) -> TestResult<u64> {
    Ok(dxg.offer_info(CALLER)?.decommittable_bytes)
}

fn trim(dxg: &Dxg, bytes: u64) -> TestResult<u64> {
    Ok(dxg.trim_commitment(CALLER, bytes, TrimFlags::empty())?)
}

fn info() -> TestResult {
    let gpu = Gpu::new()?;
    let dxg = &Dxg::open()?;
    let before = dxg.offer_info(CALLER)?;
    ensure_eq!(before.decommittable_bytes, 0);
    let list = [gpu.allocate(3 * PAGE)?, gpu.allocate_local(5 * PAGE)?];
    let [system, local] = &list;
    gpu.device().offer(&[system], OfferPriority::Low, NOW)?;
    ensure_eq!(bytes(dxg)?, 0, "the memory is not offered with it");
    gpu.device().offer(&[system], OfferPriority::Low, ALL)?;
    ensure_eq!(bytes(dxg)?, 3 * PAGE);
    gpu.device().offer(&[local], OfferPriority::High, ALL)?;
    let both = dxg.offer_info(CALLER)?;
    ensure_eq!(both.decommittable_bytes, 8 * PAGE);
    ensure!(both.uniqueness != before.uniqueness, "{both:?}");
    ensure_eq!(dxg.offer_info(CALLER)?, both, "nothing has changed");
    // Another offer says something else.
    gpu.device().offer(&[local], OfferPriority::High, NOW)?;
    ensure_eq!(bytes(dxg)?, 3 * PAGE);
    gpu.paging().reclaim(&[system, local])?;
    let after = dxg.offer_info(CALLER)?;
    ensure_eq!(after.decommittable_bytes, 0);
    ensure!(after.uniqueness != both.uniqueness, "{after:?}");
    // Not before the work is done.
    let gate = gpu.device().create_fence(0)?;
    let nop = gpu.commands(&opendxg::pm4::Pm4::new().nop(0))?;
    gpu.context().wait(&one(&gate, 1))?;
    gpu.submit(&nop)?;
    let later = LATER | OfferFlags::ALLOW_DECOMMIT;
    gpu.device().offer(&[local], OfferPriority::Low, later)?;
    ensure_eq!(bytes(dxg)?, 0);
    gate.signal(1)?;
    gpu.finish()?;
    selftests::time::eventually("the offer takes effect", || {
        bytes(dxg).is_ok_and(|bytes| bytes == 5 * PAGE)
    })?;
    drop(list);
    selftests::time::eventually("it goes with the allocation", || {
        bytes(dxg).is_ok_and(|bytes| bytes == 0)
    })
}

/// The pages that this process keeps in memory.
fn kept(dxg: &Dxg) -> TestResult<u64> {
    let info = FdInfo::read(dxg.as_fd())?;
    let bytes = info.get("dxg-process-resident").ok_or("no such line")?;
    Ok(bytes.parse().map_err(|_| "no number")?)
}

fn given_back() -> TestResult {
    let gpu = Gpu::new()?;
    let dxg = &Dxg::open()?;
    let size = 64 * PAGE;
    let list = [
        gpu.allocate(size)?,
        gpu.allocate(size)?,
        gpu.allocate_local(size)?,
        gpu.allocate_local(size)?,
    ];
    let [listed, unlisted, local, evicted] = &list;
    for allocation in &list {
        fill(allocation, 9)?;
    }
    resident(&gpu, &[listed, local])?;
    let all: Vec<&Allocation> = list.iter().collect();
    gpu.device().offer(&all, OfferPriority::Normal, ALL)?;
    let before = kept(dxg)?;
    ensure_eq!(trim(dxg, u64::MAX)?, 4 * size);
    let after = kept(dxg)?;
    ensure!(before - after >= 4 * size, "{before:#x}, {after:#x}");
    ensure_eq!(bytes(dxg)?, 0);
    ensure_eq!(trim(dxg, u64::MAX)?, 0, "it was given back already");
    for allocation in &list {
        ensure_eq!(allocation.residency()?, opendxg::Residency::NotResident);
    }
    let (told, value) = gpu.paging().reclaim(&all)?;
    selftests::gpu::reaches(gpu.paging().fence(), value)?;
    ensure_eq!(told, [Reclaimed::Discarded; 4]);
    ensure_eq!(listed.residency()?, opendxg::Residency::SharedMemory);
    ensure_eq!(local.residency()?, opendxg::Residency::GpuMemory);
    for allocation in [listed, unlisted, local, evicted] {
        holds(allocation, 0)?;
        fill(allocation, 4)?;
        holds(allocation, 4)?;
    }
    // Its bytes go where they went before.
    gpu.device().evict(&[listed, local], EvictFlags::empty())?;
    holds(local, 4)?;
    holds(listed, 4)?;
    gpu.works()
}

fn in_order() -> TestResult {
    let gpu = Gpu::new()?;
    let dxg = &Dxg::open()?;
    let list = (0..4).map(|_| gpu.allocate(2 * PAGE));
    let list = list.collect::<TestResult<Vec<_>>>()?;
    use OfferPriority::*;
    for (allocation, priority) in list.iter().zip([High, Low, Normal, Low]) {
        gpu.device().offer(&[allocation], priority, ALL)?;
    }
    let gone = || -> TestResult<u64> { Ok(8 * PAGE - bytes(dxg)?) };
    ensure_eq!(trim(dxg, 0)?, 0);
    ensure_eq!(trim(dxg, 1)?, 2 * PAGE);
    ensure_eq!(gone()?, 2 * PAGE);
    ensure_eq!(trim(dxg, 3 * PAGE)?, 4 * PAGE);
    ensure_eq!(gone()?, 6 * PAGE);
    let all: Vec<&Allocation> = list.iter().collect();
    let (kept, gone) = (Reclaimed::Kept, Reclaimed::Discarded);
    ensure_eq!(gpu.paging().reclaim(&all)?.0, [kept, gone, gone, gone]);
    Ok(())
}

fn repurposed() -> TestResult {
    let gpu = Gpu::new()?;
    let dxg = &Dxg::open()?;
    let (dropped, other) = (gpu.allocate_local(2 * PAGE)?, gpu.allocate(2 * PAGE)?);
    fill(&dropped, 7)?;
    fill(&other, 7)?;
    resident(&gpu, &[&dropped])?;
    gpu.device().offer(&[&dropped], OfferPriority::Low, NOW)?;
    squeeze()?;
    gpu.device()
        .offer(&[&dropped, &other], OfferPriority::Low, ALL)?;
    let only = TrimFlags::ONLY_REPURPOSED | TrimFlags::LAZY;
    ensure_eq!(dxg.trim_commitment(CALLER, u64::MAX, only)?, 2 * PAGE);
    ensure_eq!(dxg.trim_commitment(CALLER, u64::MAX, only)?, 0);
    let told = gpu.device().reclaim(&[&dropped, &other])?;
    ensure_eq!(told, [true, false]);
    holds(&dropped, 0)?;
    holds(&other, 7)
}

fn wanted() -> TestResult {
    let gpu = Gpu::new()?;
    let dxg = &Dxg::open()?;
    for allocation in [gpu.allocate(2 * PAGE)?, gpu.allocate_local(2 * PAGE)?] {
        fill(&allocation, 7)?;
        gpu.device()
            .offer(&[&allocation], OfferPriority::Low, ALL)?;
        ensure_eq!(trim(dxg, u64::MAX)?, 2 * PAGE);
        // Nothing is there to be exported.
        fails_with(allocation.export_dmabuf().map(|_| ()), Status::NO_MEMORY)?;
        resident(&gpu, &[&allocation])?;
        // It is still offered.
        fails_with(allocation.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
        ensure_eq!(trim(dxg, u64::MAX)?, 2 * PAGE);
        let told = gpu.device().reclaim(&[&allocation])?;
        ensure_eq!(told, [true]);
        holds(&allocation, 0)?;
    }
    gpu.works()
}

/// The system promises no more memory, until this is dropped.
struct NoMore([(&'static str, String); 2]);

impl NoMore {
    fn begin() -> TestResult<Self> {
        let read = |name: &'static str| -> TestResult<(&'static str, String)> {
            Ok((name, std::fs::read_to_string(name)?))
        };
        let before = [
            read("/proc/sys/vm/overcommit_memory")?,
            read("/proc/sys/vm/overcommit_ratio")?,
        ];
        let set = Self(before);
        std::fs::write("/proc/sys/vm/overcommit_kbytes", "1")?;
        std::fs::write("/proc/sys/vm/overcommit_memory", "2")?;
        Ok(set)
    }
}

impl Drop for NoMore {
    fn drop(&mut self) {
        for (name, value) in &self.0 {
            let _ = std::fs::write(name, value);
        }
    }
}

fn not_committed() -> TestResult {
    // More than what the process keeps a file for.
    const SIZE: u64 = 17 * PAGE;
    needs_root()?;
    let gpu = Gpu::new()?;
    let dxg = &Dxg::open()?;
    let mut pair = gpu.device().new_resource().linear(SIZE).create()?;
    gpu.device().new_resource().linear(SIZE).add_to(&mut pair)?;
    let [empty, whole] = [&pair.allocations()[0], &pair.allocations()[1]];
    let other = gpu.allocate(SIZE)?;
    for allocation in [empty, whole, &other] {
        fill(allocation, 7)?;
    }
    gpu.device().offer(&[empty], OfferPriority::Low, ALL)?;
    ensure_eq!(trim(dxg, u64::MAX)?, SIZE);
    gpu.device()
        .offer(&[whole, &other], OfferPriority::Low, NOW)?;
    let none = Reclaimed::NotCommitted;
    let (told, first, pair_told) = {
        let _no_more = NoMore::begin()?;
        (
            gpu.paging().reclaim(&[empty]),
            gpu.device().reclaim(&[empty, &other]),
            gpu.paging().reclaim_resources(&[&pair]),
        )
    };
    ensure_eq!(told?.0, [none]);
    fails_with(first.map(|_| ()), Status::NO_MEMORY)?;
    ensure_eq!(pair_told?.0, [none]);
    // All of it is still offered.
    for allocation in [empty, whole, &other] {
        fails_with(allocation.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
    }
    ensure_eq!(
        gpu.paging().reclaim_resources(&[&pair])?.0,
        [Reclaimed::Discarded]
    );
    holds(empty, 0)?;
    holds(whole, 7)?;
    ensure_eq!(gpu.device().reclaim(&[&other])?, [false]);
    holds(&other, 7)
}

fn of_another() -> TestResult {
    needs_root()?;
    let (offered, trimmed) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let allocation = gpu.allocate(2 * PAGE)?;
        fill(&allocation, 7)?;
        gpu.device()
            .offer(&[&allocation], OfferPriority::Low, ALL)?;
        offered.open()?;
        trimmed.wait_for_parent()?;
        ensure_eq!(gpu.device().reclaim(&[&allocation])?, [true]);
        holds(&allocation, 0)
    })?;
    offered.wait_for_child(&child)?;
    let process = pidfd(child.pid())?;
    let theirs = StatisticsOf::Process(process.as_fd());
    let dxg = Dxg::open()?;
    let info = dxg.offer_info(theirs)?;
    ensure_eq!(info.decommittable_bytes, 2 * PAGE);
    ensure_eq!(bytes(&dxg)?, 0);
    // Who may not look at the process may not take its memory.
    let pid = child.pid();
    let stranger = Child::spawn(|| {
        become_user(OTHER)?;
        let process = pidfd(pid)?;
        let theirs = StatisticsOf::Process(process.as_fd());
        let dxg = Dxg::open()?;
        fails_with(dxg.offer_info(theirs), Status::ACCESS_DENIED)?;
        let none = TrimFlags::empty();
        let trim = dxg.trim_commitment(theirs, u64::MAX, none);
        fails_with(trim, Status::ACCESS_DENIED)
    })?;
    stranger.join()?;
    ensure_eq!(dxg.offer_info(theirs)?, info);
    let none = TrimFlags::empty();
    ensure_eq!(dxg.trim_commitment(theirs, u64::MAX, none)?, 2 * PAGE);
    trimmed.open()?;
    child.join()?;
    // One that does not have the device open has nothing.
    let (asked, ready) = (Gate::new()?, Gate::new()?);
    let idle = Child::spawn(|| {
        ready.open()?;
        asked.wait_for_parent()
    })?;
    ready.wait_for_child(&idle)?;
    let process = pidfd(idle.pid())?;
    let theirs = StatisticsOf::Process(process.as_fd());
    ensure_eq!(dxg.offer_info(theirs)?.decommittable_bytes, 0);
    ensure_eq!(dxg.trim_commitment(theirs, u64::MAX, none)?, 0);
    asked.open()?;
    idle.join()
}

fn refusals() -> TestResult {
    let raw = fixture::raw()?;
    let mut info = D3DKMT_QUERYPROCESSOFFERINFO::zeroed();
    for size in [0, 31, 33, u32::MAX] {
        info.cbSize = size;
        refused(&raw, &mut info, Status::INVALID_PARAMETER)?;
    }
    info.cbSize = 32;
    info.hProcess = 999;
    refused(&raw, &mut info, Status::INVALID_HANDLE)?;
    info.hProcess = u64::MAX;
    succeeds(&raw, &mut info)?;
    let mut trim = D3DKMT_TRIMPROCESSCOMMITMENT::zeroed();
    for (size, flags) in [(0, 0), (39, 0), (41, 0), (40, 4), (40, 1 << 31)] {
        (trim.cbSize, trim.Flags) = (size, flags);
        refused(&raw, &mut trim, Status::INVALID_PARAMETER)?;
    }
    (trim.cbSize, trim.Flags) = (40, 3);
    trim.hProcess = 999;
    refused(&raw, &mut trim, Status::INVALID_HANDLE)?;
    trim.hProcess = 0;
    succeeds(&raw, &mut trim)
}
