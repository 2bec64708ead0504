// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that say where memory is, and what is resident, that are made to fail.

use std::cell::Cell;
use std::rc::Rc;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Allocation, Dxg, EvictFlags, GpuMap, GpuRange, OfferFlags, OfferPriority, ResidentFlags,
    StatisticsOf, Status, TrimFlags,
};
use selftests::call::succeeds;
use selftests::gpu::{reaches, Gpu, PAGE, READ_WRITE};
use selftests::{ensure, fixture, TestResult};

use crate::t_failslab::gpu::{World, MANY};
use crate::t_failslab::plain::{keep, Maker, Plain, Sweep};
use crate::t_failslab::Call;

/// Pages that are too many to be made resident in the call.
const WORKER_PAGES: u64 = 1100;

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("MakeResident: system memory", |sweep| {
        resident(sweep, |gpu| gpu.allocate(PAGE), MANY)
    }),
    ("MakeResident: local memory", |sweep| {
        resident(sweep, |gpu| gpu.allocate_local(PAGE), 3)
    }),
    ("MakeResident: left to the worker", |sweep| {
        resident(sweep, |gpu| gpu.allocate_local(WORKER_PAGES * PAGE), 1)
    }),
    ("MakeResident: accessed physically", |sweep| {
        let make = |gpu: &Gpu| {
            let resource = gpu.device().new_resource();
            Ok(resource.physical(2 * PAGE, false).create_one()?)
        };
        resident(sweep, make, 3)
    }),
    ("Evict", |sweep| evicted(sweep, EvictFlags::empty())),
    ("Evict: only if necessary", |sweep| {
        evicted(sweep, EvictFlags::ONLY_IF_NECESSARY)
    }),
    ("OfferAllocations", |sweep| {
        offered(sweep, OfferFlags::ALLOW_DECOMMIT)
    }),
    ("OfferAllocations: at once", |sweep| {
        offered(sweep, OfferFlags::IMMEDIATELY)
    }),
    ("ReclaimAllocations2: without system memory", reclaimed),
    ("UpdateAllocationProperty: accessed physically", |sweep| {
        let gpu = Gpu::new()?;
        let memory = gpu.allocate(3 * PAGE)?;
        let mut arg = property(&gpu, &memory);
        arg.PropertyMaskValue = D3DDDI_UPDATEALLOCPROPERTY_SetAccessedPhysically;
        arg.Flags = D3DDDI_UPDATEALLOCPROPERTY_FLAGS_AccessedPhysically;
        sweep(&mut Plain::new(arg, 0, move |raw, arg| {
            let mut back = *arg;
            back.Flags = 0;
            let _alive = (&gpu, &memory);
            succeeds(raw, &mut back)
        })?)
    }),
    ("Lock2: local memory", |sweep| {
        let gpu = Gpu::new()?;
        let device = gpu.device().handle().0;
        let allocation = gpu.allocate_local(3 * PAGE)?;
        let list = [&allocation];
        let none = ResidentFlags::empty();
        let made = gpu.paging().make_resident(&list, none)?;
        reaches(gpu.paging().fence(), made.value()?)?;
        let mut arg = D3DKMT_LOCK2::zeroed();
        (arg.hDevice, arg.hAllocation) = (device, allocation.handle().0);
        sweep(&mut Plain::new(arg, 0, |raw, arg| {
            let mut unlock = D3DKMT_UNLOCK2::zeroed();
            (unlock.hDevice, unlock.hAllocation) = (arg.hDevice, arg.hAllocation);
            succeeds(raw, &mut unlock)
        })?)?;
        drop(allocation);
        Ok(())
    }),
    ("ChangeVideoMemoryReservation", |sweep| {
        let adapter = fixture::adapter()?;
        let mut arg = D3DKMT_CHANGEVIDEOMEMORYRESERVATION::zeroed();
        (arg.hAdapter, arg.Reservation) = (adapter.handle().0, PAGE);
        sweep(&mut Plain::new(arg, 0, |raw, arg| {
            let mut none = *arg;
            none.Reservation = 0;
            succeeds(raw, &mut none)
        })?)
    }),
    ("QueryVideoMemoryInfo", |sweep| {
        let adapter = fixture::adapter()?;
        let mut arg = D3DKMT_QUERYVIDEOMEMORYINFO::zeroed();
        arg.hAdapter = adapter.handle().0;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
];

/// Elements of lists that go the same way however long they are: enough for a list to grow.
const FEW: usize = 5;

/// Allocations that are resident once, or not at all.
fn resident(
    sweep: Sweep<'_>,
    make: impl Fn(&Gpu) -> TestResult<Allocation>,
    count: usize,
) -> TestResult {
    let world = World::new()?;
    let list = (0..count).map(|_| make(&world.gpu));
    let list = Rc::new(list.collect::<TestResult<Vec<_>>>()?);
    let handles: Vec<u32> = list.iter().map(|one| one.handle().0).collect();
    let mut ranges: Vec<GpuRange> = Vec::new();
    for one in list.iter() {
        let map = GpuMap {
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        ranges.push(world.gpu.paging().map(Some(one), &map)?);
    }
    let mut arg = D3DDDI_MAKERESIDENT::zeroed();
    arg.hPagingQueue = world.gpu.paging().handle().0;
    (arg.NumAllocations, arg.AllocationList) = (count as u32, handles.as_ptr() as u64);
    let (own, again) = (list.clone(), world.clone());
    let told = Rc::new(Cell::new(0));
    let count = told.clone();
    let first = worker_value(&world)?;
    let call = Plain::new(arg, 0, move |_, arg| {
        count.set(count.get() + u64::from(arg.PagingFenceValue != 0));
        reaches(again.gpu.paging().fence(), arg.PagingFenceValue)?;
        let list: Vec<&Allocation> = own.iter().collect();
        again.gpu.device().evict(&list, EvictFlags::empty())?;
        // It was resident once.
        selftests::fails_with(
            again.gpu.device().evict(&list, EvictFlags::empty()),
            Status::INVALID_PARAMETER,
        )
    })?;
    let mut call = Unanswered { call, count: 0 };
    sweep(&mut call)?;
    // A call that lacked memory has used up no value. One whose answer could not be written has, if
    // it left its work to the worker: that is the last thing that it does.
    let used = worker_value(&world)? - first - 1;
    let (told, unanswered) = (told.get(), call.count);
    ensure!(
        (told..=told + unanswered).contains(&used),
        "{used} values used, {told} told, {unanswered} could not be"
    );
    drop((list, handles));
    Ok(())
}

/// A call, and how many times its argument could not be read, or its answer not be written.
struct Unanswered<C> {
    call: C,
    count: u64,
}

impl<C: Call> Call for Unanswered<C> {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let answer = self.call.run();
        let faults = [Ok(Status::ACCESS_VIOLATION), Err(rustix::io::Errno::FAULT)];
        self.count += u64::from(faults.contains(&answer));
        answer
    }

    fn undo(&mut self) -> TestResult {
        self.call.undo()
    }

    fn handles(&self) -> u32 {
        self.call.handles()
    }
}

/// The next value of the fence of the paging queue: that of what is left to the worker.
fn worker_value(world: &World) -> TestResult<u64> {
    let memory = world.gpu.allocate_local(WORKER_PAGES * PAGE)?;
    let made = world
        .gpu
        .paging()
        .make_resident(&[&memory], ResidentFlags::empty())?;
    let value = made.value()?;
    ensure!(value != 0, "not left to the worker");
    reaches(world.gpu.paging().fence(), value)?;
    Ok(value)
}

/// An update of the properties of an allocation; what it changes is to be filled in.
fn property(gpu: &Gpu, allocation: &Allocation) -> D3DDDI_UPDATEALLOCPROPERTY {
    let mut arg = D3DDDI_UPDATEALLOCPROPERTY::zeroed();
    arg.hPagingQueue = gpu.paging().handle().0;
    arg.hAllocation = allocation.handle().0;
    arg
}

fn offered(sweep: Sweep<'_>, flags: OfferFlags) -> TestResult {
    let world = World::new()?;
    let list = (0..FEW).map(|_| world.gpu.allocate_local(PAGE));
    let list = list.collect::<TestResult<Vec<_>>>()?;
    let handles: Vec<u32> = list.iter().map(|one| one.handle().0).collect();
    let mut arg = D3DKMT_OFFERALLOCATIONS::zeroed();
    (arg.hDevice, arg.Flags) = (world.gpu.device().handle().0, flags.bits());
    (arg.NumAllocations, arg.HandleList) = (FEW as u32, handles.as_ptr() as u64);
    arg.Priority = D3DKMT_OFFER_PRIORITY_NORMAL;
    sweep(&mut Plain::new(arg, 0, move |_, _| {
        let list: Vec<&Allocation> = list.iter().collect();
        for one in &list {
            // It was offered.
            selftests::fails_with(one.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
        }
        let told = world.gpu.device().reclaim(&list)?;
        ensure!(told.iter().all(|dropped| !dropped), "{told:?}");
        Ok(())
    })?)
}

/// What cannot have system memory stays offered, and the call says so.
fn reclaimed(sweep: Sweep<'_>) -> TestResult {
    let world = World::new()?;
    let dxg = Dxg::open()?;
    let list = (0..3).map(|_| world.gpu.allocate_local(PAGE));
    let list = Rc::new(list.collect::<TestResult<Vec<_>>>()?);
    let handles: Vec<u32> = list.iter().map(|one| one.handle().0).collect();
    let all: Vec<&Allocation> = list.iter().collect();
    let made = world
        .gpu
        .paging()
        .make_resident(&all, ResidentFlags::empty())?;
    reaches(world.gpu.paging().fence(), made.value()?)?;
    drop(all);
    let (own, again) = (list.clone(), world.clone());
    let empty = move || -> TestResult {
        let list: Vec<&Allocation> = own.iter().collect();
        let flags = OfferFlags::IMMEDIATELY | OfferFlags::ALLOW_DECOMMIT;
        let device = again.gpu.device();
        device.offer(&list, OfferPriority::Low, flags)?;
        dxg.trim_commitment(StatisticsOf::Caller, u64::MAX, TrimFlags::empty())?;
        Ok(())
    };
    empty()?;
    let results = Rc::new([const { Cell::new(0u32) }; 3]);
    let mut arg = D3DKMT_RECLAIMALLOCATIONS2::zeroed();
    arg.hPagingQueue = world.gpu.paging().handle().0;
    (arg.NumAllocations, arg.HandleList) = (3, handles.as_ptr() as u64);
    arg.__bindgen_anon_1.pResults = results.as_ptr() as u64;
    sweep(&mut Plain::new(arg, 0, move |_, arg| {
        reaches(world.gpu.paging().fence(), arg.PagingFenceValue)?;
        for (one, result) in list.iter().zip(results.iter()) {
            match result.get() {
                D3DDDI_RECLAIM_RESULT_DISCARDED => {
                    let bytes = one.lock()?.to_vec();
                    ensure!(bytes.iter().all(|byte| *byte == 0), "not zeros");
                }
                D3DDDI_RECLAIM_RESULT_NOT_COMMITTED => {
                    selftests::fails_with(one.lock().map(|_| ()), Status::INVALID_PARAMETER)?;
                }
                other => return Err(format!("result {other}").into()),
            }
        }
        empty()
    })?)
}

fn evicted(sweep: Sweep<'_>, flags: EvictFlags) -> TestResult {
    let world = World::new()?;
    let list = (0..FEW).map(|_| world.gpu.allocate_local(PAGE));
    let list = list.collect::<TestResult<Vec<_>>>()?;
    let handles: Vec<u32> = list.iter().map(|one| one.handle().0).collect();
    let all = move |world: &World| -> TestResult {
        let list: Vec<&Allocation> = list.iter().collect();
        let none = ResidentFlags::empty();
        let made = world.gpu.paging().make_resident(&list, none)?;
        reaches(world.gpu.paging().fence(), made.value()?)
    };
    all(&world)?;
    let mut arg = D3DKMT_EVICT::zeroed();
    (arg.hDevice, arg.Flags) = (world.gpu.device().handle().0, flags.bits());
    (arg.NumAllocations, arg.AllocationList) = (FEW as u32, handles.as_ptr() as u64);
    sweep(&mut Plain::new(arg, 0, move |_, _| all(&world))?)
}
