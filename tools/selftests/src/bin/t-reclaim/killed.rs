// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes die while their memory is taken away.

use std::thread;
use std::time::Duration;

use opendxg::{EvictFlags, OfferFlags, OfferPriority, ResidentFlags};
use selftests::cgroup::{drop_caches, Group};
use selftests::child::{Child, Gate};
use selftests::gpu::{Gpu, PAGE};
use selftests::{Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite.slow(
        "MEM-111 MEM-115 processes die while memory is taken from them",
        Duration::from_secs(120),
        killed,
    )
}

const ROUNDS: u64 = 12;

/// Offers, takes back, makes resident and evicts, for ever.
fn work(started: &Gate) -> TestResult {
    let gpu = Gpu::new()?;
    let list = [
        gpu.allocate(64 * PAGE)?,
        gpu.allocate_local(64 * PAGE)?,
        gpu.allocate(64 * PAGE)?,
    ];
    let all: Vec<_> = list.iter().collect();
    for round in 0u64.. {
        for (number, allocation) in all.iter().enumerate() {
            let byte = (round as u8).wrapping_add(number as u8);
            allocation.lock_write()?.fill(byte);
        }
        let _ready = gpu.paging().make_resident(&all, ResidentFlags::empty())?;
        let flags = match round % 2 {
            0 => OfferFlags::IMMEDIATELY,
            _ => OfferFlags::IMMEDIATELY | OfferFlags::ALLOW_DECOMMIT,
        };
        gpu.device().offer(&all, OfferPriority::Low, flags)?;
        gpu.paging().reclaim(&all)?;
        let flags = match round % 3 {
            0 => EvictFlags::ONLY_IF_NECESSARY,
            _ => EvictFlags::empty(),
        };
        gpu.device().evict(&all, flags)?;
        if round == 2 {
            started.open()?;
        }
    }
    Ok(())
}

/// Does something again and again, until it is dropped.
fn again(what: impl Fn()) -> TestResult<Child> {
    Child::spawn(|| loop {
        what();
        thread::sleep(Duration::from_millis(1));
    })
}

fn killed() -> TestResult {
    let group = Group::new("killed")?;
    let _group = again(|| {
        group.reclaim(1 << 20);
    })?;
    let _machine = again(|| {
        let _ = drop_caches();
    })?;
    for round in 0..ROUNDS {
        let started = Gate::new()?;
        let child = Child::spawn(|| {
            group.enter()?;
            work(&started)
        })?;
        started.wait_for_child(&child)?;
        thread::sleep(Duration::from_millis(7 * round));
        child.kill()?;
    }
    Ok(())
}
