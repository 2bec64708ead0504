// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offers of memory that others have open, too, and of processes that die (MEM-30).

use std::time::Duration;

use opendxg::{Access, Adapter, OfferPriority, Reclaimed, Residency, Status};
use selftests::child::{Child, Gate};
use selftests::gpu::{one, Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

use super::offers::{fill, holds, is_resident_again, resident, squeeze, LATER, NOW};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "MEM-30 bytes are dropped when every device has offered them",
            Duration::from_secs(180),
            every_device,
        )
        .slow(
            "MEM-30 another handle of the device, and an export",
            Duration::from_secs(120),
            other_handles,
        )
        .test("MEM-30 who may only read does not offer", readers)
        .slow(
            "MEM-30 MEM-115 a process dies with offers, some of them not in effect",
            Duration::from_secs(120),
            killed,
        )
}

fn every_device() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let resource = gpu
        .device()
        .new_resource()
        .local(PAGE)
        .nt_shared()
        .create()?;
    let own = &resource.allocations()[0];
    let handle = resource.share(Access::GENERIC_ALL)?;
    fill(own, 3)?;
    resident(&gpu, &[own])?;
    gpu.device().offer(&[own], OfferPriority::Low, NOW)?;
    let opened = other.device().open_share(&handle)?.resource;
    let theirs = &opened.allocations()[0];
    // Only one of them does not need it.
    squeeze()?;
    is_resident_again(own)?;
    holds(theirs, 3)?;
    fails_with(own.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
    other.device().offer(&[theirs], OfferPriority::High, NOW)?;
    squeeze()?;
    ensure_eq!(own.residency()?, Residency::NotResident);
    // Each of them is told.
    let gone = vec![Reclaimed::Discarded];
    ensure_eq!(other.paging().reclaim(&[theirs])?.0, gone);
    holds(theirs, 0)?;
    fill(theirs, 4)?;
    fails_with(own.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
    squeeze()?;
    holds(theirs, 4)?;
    ensure_eq!(gpu.paging().reclaim(&[own])?.0, gone);
    holds(own, 4)?;
    // With the last one who needs it, it is only offered.
    resident(&gpu, &[own])?;
    gpu.device().offer(&[own], OfferPriority::Low, NOW)?;
    squeeze()?;
    is_resident_again(own)?;
    drop(opened);
    eventually("the other open ends", || {
        squeeze().is_ok() && own.residency().ok() == Some(Residency::NotResident)
    })?;
    // Who comes later finds zeros, and has them for good.
    let opened = other.device().open_share(&handle)?.resource;
    holds(&opened.allocations()[0], 0)?;
    fill(&opened.allocations()[0], 5)?;
    squeeze()?;
    holds(&opened.allocations()[0], 5)
}

fn other_handles() -> TestResult {
    let gpu = Gpu::new()?;
    let allocation = gpu.allocate_local(PAGE)?;
    fill(&allocation, 3)?;
    resident(&gpu, &[&allocation])?;
    gpu.device()
        .offer(&[&allocation], OfferPriority::Low, NOW)?;
    // A device offers an allocation, not a handle.
    let again = allocation.duplicate()?;
    fails_with(again.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
    ensure_eq!(gpu.paging().reclaim(&[&again])?.0, [Reclaimed::Kept]);
    holds(&allocation, 3)?;
    drop(again);
    // A dma-buf has addresses of the bytes, which stay.
    let exported = gpu.allocate_local(PAGE)?;
    fill(&exported, 8)?;
    let descriptor = exported.export_dmabuf()?;
    resident(&gpu, &[&exported])?;
    let flags = NOW | opendxg::OfferFlags::ALLOW_DECOMMIT;
    gpu.device()
        .offer(&[&exported], OfferPriority::Low, flags)?;
    squeeze()?;
    let dxg = opendxg::Dxg::open()?;
    let none = opendxg::TrimFlags::empty();
    let caller = opendxg::StatisticsOf::Caller;
    ensure_eq!(dxg.trim_commitment(caller, u64::MAX, none)?, 0);
    ensure_eq!(gpu.paging().reclaim(&[&exported])?.0, [Reclaimed::Kept]);
    holds(&exported, 8)?;
    drop(descriptor);
    Ok(())
}

fn readers() -> TestResult {
    let gpu = Gpu::new()?;
    let resource = gpu
        .device()
        .new_resource()
        .local(PAGE)
        .nt_shared()
        .create()?;
    let handle = resource.share(Access::GENERIC_READ)?;
    let other = Gpu::new()?;
    let opened = other.device().open_share(&handle)?.resource;
    let theirs = &opened.allocations()[0];
    let offer = other.device().offer(&[theirs], OfferPriority::Low, NOW);
    fails_with(offer, Status::ACCESS_DENIED)?;
    let offer = other
        .device()
        .offer_resources(&[&opened], OfferPriority::Low, NOW);
    fails_with(offer, Status::ACCESS_DENIED)?;
    holds(theirs, 0)
}

/// The bytes of local memory that are in use.
fn used(adapter: &Adapter) -> TestResult<u64> {
    let (segments, _) = adapter.segment_and_node_count()?;
    let mut used = 0;
    for segment in 0..segments {
        let statistics = adapter.segment_statistics(segment)?;
        if !statistics.is_aperture {
            used += statistics.bytes_resident;
        }
    }
    Ok(used)
}

fn killed() -> TestResult {
    let adapter = fixture::adapter()?;
    let before = used(&adapter)?;
    for drops in [false, true] {
        let (ready, never) = (Gate::new()?, Gate::new()?);
        let child = Child::spawn(|| {
            let gpu = Gpu::new()?;
            let gate = gpu.device().create_fence(0)?;
            let pieces = (0..16).map(|_| gpu.allocate_local(16 * PAGE));
            let pieces = pieces.collect::<TestResult<Vec<_>>>()?;
            let list: Vec<_> = pieces.iter().collect();
            resident(&gpu, &list)?;
            let flags = opendxg::OfferFlags::ALLOW_DECOMMIT;
            gpu.device()
                .offer(&list[..4], OfferPriority::High, NOW | flags)?;
            gpu.device().offer(&list[4..8], OfferPriority::Low, NOW)?;
            let nop = gpu.commands(&opendxg::pm4::Pm4::new().nop(0))?;
            gpu.context().wait(&one(&gate, 1))?;
            gpu.submit(&nop)?;
            gpu.device()
                .offer(&list[8..], OfferPriority::Auto, LATER | flags)?;
            ready.open()?;
            never.wait_for_parent()?;
            drop(nop);
            Ok(())
        })?;
        ready.wait_for_child(&child)?;
        if drops {
            squeeze()?;
        }
        child.kill()?;
        eventually("its memory is free", || {
            used(&adapter).is_ok_and(|used| used == before)
        })?;
    }
    squeeze()
}
