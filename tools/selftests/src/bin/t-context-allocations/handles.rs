// SPDX-License-Identifier: MIT OR Apache-2.0
//! No call of a client reaches a context allocation: every call that takes an allocation or a
//! resource gets numbers near those that stand for one inside.

use std::time::Duration;

use selftests::child::in_child;
use selftests::fixture::ADAPTER_VARIABLE;
use selftests::gpu::Gpu;
use selftests::rounds::is_brief;
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::{content, expected, has, CREATE, MAPPED, ROOT};
use crate::t_negative::check;
use crate::t_negative::world::{State, World};
use crate::t_paging::log::Log;

pub(super) fn tests(suite: Suite) -> Suite {
    suite.slow(
        "MEM-86 every call refuses every handle value near a context allocation",
        Duration::from_secs(600),
        every,
    )
}

/// How many contexts get a save area in between.
fn contexts() -> u32 {
    match is_brief() {
        true => 1,
        false => 3,
    }
}

/// Values of local handles are multiples of this, with the number of their use above.
const STEP: u32 = 0x40;
const FIRST: u32 = 0x4000_0000;

fn every() -> TestResult {
    let soft = SoftAdapter::new("context-handles")?;
    soft.set("save_areas", "visible")?;
    soft.set("enabled", "1")?;
    let luid = soft.get("luid")?;
    // It has handles of its own, all of them of this adapter.
    in_child(|| {
        std::env::set_var(ADAPTER_VARIABLE, &luid);
        scan()
    })?;
    soft.remove()
}

fn scan() -> TestResult {
    let world = World::new(State::Fresh)?;
    let log = Log::all(&world.adapter)?;
    let contexts: TestResult<Vec<_>> = (0..contexts())
        .map(|node| Ok(world.device.create_context(node)?))
        .collect();
    let contexts = contexts?;
    let all = log.records(|_| true)?;
    let ids: Vec<_> = all.iter().filter(|one| one.what == CREATE).collect();
    ensure_eq!(ids.len(), contexts.len());
    let mut near = Vec::new();
    for context in &contexts {
        let handle = context.handle().0;
        // All that is between two handles, and other uses of the same place.
        near.extend(
            (0..STEP)
                .step_by(7)
                .chain([1, 2, STEP - 1])
                .map(|more| handle + more),
        );
        near.extend([
            handle ^ 0xc000_0000,
            handle ^ 0x8000_0000,
            handle ^ 0x2000_0000,
        ]);
    }
    let last = contexts[contexts.len() - 1].handle().0;
    for id in ids.iter().map(|one| one.get("object") as u32) {
        for id in id - 1..=id + 1 {
            near.extend([id, id * STEP, (last & !(FIRST - 1)) | id]);
        }
    }
    let near: Vec<_> = near.into_iter().map(|value| ("near one", value)).collect();
    let count = check::allocations(&world, &near)?;
    // Dozens of fields of dozens of calls.
    ensure!(count > 20 * near.len(), "{count} calls");
    println!("# {count} calls");
    // All of that has changed nothing there.
    let gpu = Gpu::on(&world.device, 0)?;
    let mapped = all.iter().filter(|one| one.what == MAPPED);
    let roots = all.iter().filter(|one| one.what == ROOT);
    for (mapped, root) in mapped.zip(roots) {
        has(&content(&gpu, mapped.get("va"))?, expected(1, root))?;
    }
    let gone = log.records(|one| ids.iter().any(|id| id.get("object") == one.get("object")))?;
    ensure!(gone.iter().all(|one| one.what != "DECOMMIT"));
    drop((gpu, contexts, log));
    Ok(())
}
