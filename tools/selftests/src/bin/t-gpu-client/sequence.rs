// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequence itself (GPU-115).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Allocation, Device, GpuMap, GpuProtection, Pages, PagingQueue, ResidentFlags, SyncFlags,
};
use selftests::child::{in_child, Child, Gate};
use selftests::gpu::{is_in, one, reaches, NODES, PAGE};
use selftests::rounds::rounds;
use selftests::{ensure_eq, fixture, Suite, TestResult};

/// The value that the work ends with.
const DONE: u64 = 0x1234;
/// Private data that nobody here knows.
pub(crate) const UNKNOWN: [u8; 72] = [0xa5; 72];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-115 GPU-2 the calls of a client on each node", sequence)
        .test("GPU-115 again and again", again)
        .test("GPU-115 GPU-70 clients in several processes", processes)
        .test(
            "GPU-115 FEN-11 a child of a fork reads what comes later",
            fork,
        )
}

/// A page of this process that the GPU reaches.
struct Mapped {
    pages: Pages,
    address: u64,
    /// Keeps the address.
    _allocation: Allocation,
}

/// Makes pages of this process an allocation with unknown data.
pub(crate) fn allocate(device: &Device, pages: &Pages) -> TestResult<Allocation> {
    let one = device
        .new_resource()
        .pages_with_driver_data(pages, &UNKNOWN);
    Ok(one.create_one()?)
}

/// One page, mapped and resident.
fn mapped(paging: &PagingQueue) -> TestResult<Mapped> {
    let pages = Pages::new(PAGE as usize)?;
    let allocation = allocate(paging.device(), &pages)?;
    let map = GpuMap {
        pages: 1,
        protection: GpuProtection::WRITE,
        ..GpuMap::default()
    };
    let range = paging.map(Some(&allocation), &map)?;
    reaches(paging.fence(), range.value)?;
    let resident = paging.make_resident(&[&allocation], ResidentFlags::empty())?;
    reaches(paging.fence(), resident.value()?)?;
    Ok(Mapped {
        pages,
        address: range.address,
        _allocation: allocation,
    })
}

fn on_node(node: u32) -> TestResult {
    let device = fixture::device()?;
    let paging = device.create_paging_queue()?;
    let (commands, source, target) = (mapped(&paging)?, mapped(&paging)?, mapped(&paging)?);
    let mut options = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
    options.NodeOrdinal = node;
    options.EngineAffinity = 1;
    options.ClientHint = D3DKMT_CLIENTHINT_CUDA;
    let context = device.create_context_with(options, &mut UNKNOWN.clone())?;
    let fence = device.create_fence(0)?;

    source.pages.write(0, b"8 bytes!and more");
    let copy = Pm4::new().pad_to(9).copy(target.address, source.address, 8);
    let copy = copy.pad_to(PAGE as usize / 4);
    commands.pages.write(0, &copy.bytes());
    context.submit_with(commands.address, PAGE as u32, &UNKNOWN)?;
    context.signal(&one(&fence, DONE))?;
    reaches(&fence, DONE)?;
    is_in(&device, opendxg::ExecutionState::Active)?;
    ensure_eq!(fence.value(), DONE);
    ensure_eq!(target.pages.to_vec()[..16], *b"8 bytes!\0\0\0\0\0\0\0\0");
    Ok(())
}

fn sequence() -> TestResult {
    NODES.into_iter().try_for_each(on_node)
}

fn again() -> TestResult {
    (0..rounds(20)).try_for_each(|_| on_node(1))
}

fn processes() -> TestResult {
    let children: TestResult<Vec<Child>> = (0..4)
        .map(|_| Child::spawn(|| (0..rounds(5)).try_for_each(|_| on_node(1))))
        .collect();
    children?.into_iter().try_for_each(Child::join)
}

fn fork() -> TestResult {
    let device = fixture::device()?;
    let paging = device.create_paging_queue()?;
    let context = device.create_context(1)?;
    let fence = device.create_fence_with(0, SyncFlags::empty())?;
    let gate = Gate::new()?;
    let child = Child::spawn(|| {
        gate.open()?;
        // Reading needs no call, and no call is allowed.
        while !fence.is_reached(DONE) {
            std::thread::yield_now();
        }
        Ok(())
    })?;
    gate.wait()?;
    let commands = mapped(&paging)?;
    commands.pages.write(0, &Pm4::new().pad_to(1024).bytes());
    context.submit(commands.address, PAGE as u32)?;
    context.signal(&one(&fence, DONE))?;
    child.join()?;
    in_child(|| {
        ensure_eq!(fence.value(), DONE);
        Ok(())
    })
}
