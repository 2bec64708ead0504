// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call that fails leaves nothing in its resource, and long lists are destroyed in
//! proportion.

use std::time::Duration;

use opendxg::{Device, Status};
use selftests::call::succeeds;
use selftests::child::in_child;
use selftests::memory::Page;
use selftests::resource::{destruction, flags, Create, OpenResource, PAGE_SIZE};
use selftests::{ensure_eq, fixture, Suite, TestResult};

use crate::t_bounds::cost::{self, hardly_more, needs_counting, Cost};
use crate::t_bounds::duplicate;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "RES-3 RES-24 calls that fail leave nothing in their resource",
            Duration::from_secs(60),
            nothing_left,
        )
        .slow(
            "RES-28 a list costs the same in whatever order its handles were made",
            Duration::from_secs(60),
            orders,
        )
}

/// What the destruction of a resource without allocations costs.
fn destroy_empty(resource: OpenResource) -> TestResult<Cost> {
    cost::of(|| resource.destroy())
}

fn nothing_left() -> TestResult {
    /// Allocations of one failing call: an array of so many fits a page.
    const COUNT: usize = 40;
    needs_counting()?;
    in_child(|| {
        let device = fixture::device()?;
        let raw = fixture::raw()?;
        let empty = || Create::sized(&device, flags::RESOURCE, &[]).run();
        let fresh = (0..5)
            .map(|_| destroy_empty(empty()?))
            .try_fold(Cost::MAX, |least, cost| cost.map(|cost| least.min(cost)))?;

        let resource = empty()?;
        let mut create = Create::sized(&device, 0, &[PAGE_SIZE; COUNT]);
        create.resource = resource.resource;
        let mut arg = create.argument();
        // SAFETY: structs of integers.
        let infos = unsafe {
            let size = size_of_val(create.infos.as_slice());
            core::slice::from_raw_parts(create.infos.as_ptr().cast::<u8>(), size)
        };
        let page = Page::beginning_with(infos)?.read_only()?;
        arg.__bindgen_anon_2.pAllocationInfo2 = page.address();
        for _ in 0..1000 {
            ensure_eq!(raw.exec(&mut arg)?, Status::ACCESS_VIOLATION);
        }
        // Whatever is in the resource is gone through when it is destroyed.
        let used = destroy_empty(resource)?;
        hardly_more("a new resource and one after failures", fresh, used)
    })
}

/// Adds an allocation to a resource.
fn add(device: &Device, resource: u32) -> TestResult<u32> {
    let mut create = Create::sized(device, 0, &[PAGE_SIZE]);
    create.resource = resource;
    Ok(create.run()?.leak().1[0])
}

/// What the destruction of a list costs.
fn destroy(device: &Device, list: &[u32]) -> TestResult<Cost> {
    let raw = fixture::raw()?;
    cost::of(|| succeeds(&raw, &mut destruction(device.handle().0, 0, list, 0)))
}

/// How many handles of each kind are in the list.
const MANY: usize = 1000;
/// How many calls make handles of the same resource that its open resource does not have, and how
/// many each.
const OTHERS: (usize, usize) = (3, 2000);

/// What it costs to destroy some of the allocations of a large resource together with duplicates
/// of one of them. The handles were made one kind after the other, or in turns.
fn mixture(in_turns: bool) -> TestResult<Cost> {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let resource = Create::sized(&device, flags::RESOURCE, &[]).run()?;
    let first = add(&device, resource.resource)?;
    let mut list = vec![first];
    for number in 0..2 * MANY {
        let is_own = match in_turns {
            true => number % 2 == 0,
            false => number < MANY,
        };
        list.push(match is_own {
            true => add(&device, resource.resource)?,
            false => duplicate(&raw, first)?,
        });
    }
    for _ in 0..OTHERS.0 {
        let mut create = Create::sized(&device, 0, &vec![PAGE_SIZE; OTHERS.1]);
        create.resource = resource.resource;
        create.run()?.leak();
    }
    let cost = destroy(&device, &list)?;
    resource.destroy()?;
    Ok(cost)
}

fn orders() -> TestResult {
    needs_counting()?;
    in_child(|| {
        let grouped = mixture(false)?;
        let mixed = mixture(true)?;
        hardly_more("handles by kind and in turns", grouped, mixed)
    })
}
