// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is offered is discarded when system memory is short, for a cgroup or for the machine.

use std::time::Duration;

use opendxg::{Allocation, EvictFlags, OfferFlags, OfferPriority, Reclaimed, Residency};
use selftests::cgroup::{drop_caches, Group};
use selftests::child::in_child;
use selftests::gpu::{Buffer, Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::MIB;

const SIZE: u64 = 4 * MIB;
const NOW: OfferFlags = OfferFlags::IMMEDIATELY;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "MEM-111 offered memory of a cgroup is discarded, and nothing else",
            Duration::from_secs(60),
            by_group,
        )
        .slow(
            "MEM-111 offered memory of the machine is discarded, and nothing else",
            Duration::from_secs(60),
            by_machine,
        )
        .test(
            "MEM-111 what nobody wants loses its placement, and not its bytes",
            idle,
        )
        .test("MEM-111 what is taken back in time is as it was", in_time)
        .slow(
            "MEM-111 a cgroup at its limit gets room from what is offered",
            Duration::from_secs(60),
            at_the_limit,
        )
}

fn fill(allocation: &Allocation, byte: u8) -> TestResult {
    allocation.lock_write()?.fill(byte);
    Ok(())
}

#[track_caller]
fn holds(allocation: &Allocation, byte: u8) -> TestResult {
    let place = core::panic::Location::caller();
    let bytes = allocation.lock()?.to_vec();
    match bytes.iter().position(|found| *found != byte) {
        None => Ok(()),
        Some(at) => Err(format!("{place}: {:#x} at {at:#x}, not {byte:#x}", bytes[at]).into()),
    }
}

/// Some memory of each kind.
struct World {
    gpu: Gpu,
    /// Offered, without a placement.
    loose: Allocation,
    /// Offered, with one.
    placed: Buffer,
    /// Neither offered nor wanted.
    unwanted: Allocation,
    /// In use.
    used: Buffer,
}

impl World {
    fn new() -> TestResult<Self> {
        let gpu = Gpu::new()?;
        let world = Self {
            loose: gpu.allocate(SIZE)?,
            placed: gpu.buffer(SIZE)?,
            unwanted: gpu.allocate(SIZE)?,
            used: gpu.buffer(SIZE)?,
            gpu,
        };
        for (byte, allocation) in (1..).zip(world.all()) {
            fill(allocation, byte)?;
        }
        world.offer()?;
        Ok(world)
    }

    fn all(&self) -> [&Allocation; 4] {
        let Self {
            loose,
            placed,
            unwanted,
            used,
            ..
        } = self;
        [loose, placed.allocation(), unwanted, used.allocation()]
    }

    fn offered(&self) -> [&Allocation; 2] {
        [&self.loose, self.placed.allocation()]
    }

    fn offer(&self) -> TestResult {
        let device = self.gpu.device();
        Ok(device.offer(&self.offered(), OfferPriority::Normal, NOW)?)
    }

    /// Takes both back, and says what has become of them.
    fn take_back(&self) -> TestResult<Vec<Reclaimed>> {
        Ok(self.gpu.paging().reclaim(&self.offered())?.0)
    }

    /// Demands that what was offered is gone, and everything else is there.
    fn is_discarded(&self) -> TestResult {
        ensure_eq!(self.take_back()?, [Reclaimed::Discarded; 2]);
        for allocation in self.offered() {
            holds(allocation, 0)?;
        }
        holds(&self.unwanted, 3)?;
        holds(self.used.allocation(), 4)?;
        // Once is enough.
        self.offer()?;
        ensure_eq!(self.take_back()?, [Reclaimed::Kept; 2]);
        self.gpu.works()
    }
}

fn by_group() -> TestResult {
    let others = World::new()?;
    let group = Group::new("offered")?;
    // Only shrinkers can free anything.
    let _ = group.set("memory.swap.max", "0");
    in_child(|| {
        group.enter()?;
        let world = World::new()?;
        let before = group.charged()?;
        eventually("the memory is free", || {
            group.reclaim(4 * SIZE);
            group
                .charged()
                .is_ok_and(|now| now + 2 * SIZE <= before + MIB)
        })?;
        ensure_eq!(
            world.used.allocation().residency()?,
            Residency::SharedMemory
        );
        world.is_discarded()
    })?;
    // It was none of their business.
    ensure_eq!(others.take_back()?, [Reclaimed::Kept; 2]);
    for (byte, allocation) in (1..).zip(others.all()) {
        holds(allocation, byte)?;
    }
    Ok(())
}

fn by_machine() -> TestResult {
    let world = World::new()?;
    eventually("the placement is gone", || {
        let residency = world.placed.allocation().residency();
        drop_caches().is_ok() && residency.is_ok_and(|now| now == Residency::NotResident)
    })?;
    drop_caches()?;
    world.is_discarded()
}

fn idle() -> TestResult {
    let gpu = Gpu::new()?;
    let (used, idle) = (gpu.buffer(16 * PAGE)?, gpu.buffer(16 * PAGE)?);
    for (byte, buffer) in [(1, &used), (2, &idle)] {
        fill(buffer.allocation(), byte)?;
    }
    let list = [idle.allocation()];
    gpu.device().evict(&list, EvictFlags::ONLY_IF_NECESSARY)?;
    ensure_eq!(idle.allocation().residency()?, Residency::SharedMemory);
    eventually("it gives way", || {
        let residency = idle.allocation().residency();
        drop_caches().is_ok() && residency.is_ok_and(|now| now == Residency::NotResident)
    })?;
    ensure_eq!(used.allocation().residency()?, Residency::SharedMemory);
    holds(used.allocation(), 1)?;
    holds(idle.allocation(), 2)
}

fn in_time() -> TestResult {
    let world = World::new()?;
    ensure_eq!(world.take_back()?, [Reclaimed::Kept; 2]);
    for _ in 0..3 {
        drop_caches()?;
    }
    for (byte, allocation) in (1..).zip(world.all()) {
        holds(allocation, byte)?;
    }
    Ok(())
}

fn at_the_limit() -> TestResult {
    let group = Group::new("limit")?;
    let _ = group.set("memory.swap.max", "0");
    group.set("memory.max", &(40 * MIB).to_string())?;
    let outcome = in_child(|| {
        group.enter()?;
        let gpu = Gpu::new()?;
        for round in 1..5 {
            let allocation = gpu.allocate(24 * MIB)?;
            fill(&allocation, round)?;
            gpu.device()
                .offer(&[&allocation], OfferPriority::Low, NOW)?;
            allocation.into_raw();
        }
        Ok(())
    });
    ensure!(group.kills()? == 0, "killed: {outcome:?}");
    outcome
}
