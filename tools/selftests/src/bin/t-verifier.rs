// SPDX-License-Identifier: MIT OR Apache-2.0
//! The software GPU with a verifier around it (MEM-95), on any kernel. The log of the kernel, which
//! the harness looks at, says whether a rule of the driver interface is broken.

use opendxg::pm4::Pm4;
use selftests::gpu::Gpu;
use selftests::trace::{traced_kmd, Event};
use selftests::{ensure, ensure_eq, module, skip, Suite, TestResult};

// Numbers of `rust/ddi/verifier/entry.rs`.
const CREATE_DEVICE: u64 = 6;
const DESTROY_DEVICE: u64 = 7;
const CREATE_CONTEXT: u64 = 8;
const DESTROY_CONTEXT: u64 = 9;
const SUBMIT_COMMAND: u64 = 15;
const UPDATE_PAGE_TABLE: u64 = 18;
const CREATE_ALLOCATION: u64 = 22;
const DESTROY_ALLOCATION: u64 = 24;
const COMPLETED: u64 = 31;

/// The places of an entry in the log, with what it was called for.
fn calls(log: &[Event], kind: u64) -> Vec<(usize, u64)> {
    let all = log.iter().enumerate();
    let kinds = all.filter(|(_, event)| event.get("kind") == kind);
    kinds
        .map(|(place, event)| (place, event.get("object")))
        .collect()
}

/// A command buffer from the creation of its device to the end.
fn life() -> TestResult {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    let log = traced_kmd(|| {
        let gpu = Gpu::new()?;
        gpu.submit(&gpu.commands(&Pm4::new().nop(0))?)?;
        gpu.finish()
    })?;
    let first = |kind| match calls(&log, kind).first() {
        Some(call) => Ok(*call),
        None => Err(format!("no call of {kind}")),
    };
    let steps = [
        CREATE_DEVICE,
        CREATE_CONTEXT,
        SUBMIT_COMMAND,
        COMPLETED,
        DESTROY_CONTEXT,
        DESTROY_DEVICE,
    ];
    for pair in steps.windows(2) {
        ensure!(first(pair[0])?.0 < first(pair[1])?.0, "{pair:?} in {log:?}");
    }
    ensure!(first(UPDATE_PAGE_TABLE)?.0 < first(SUBMIT_COMMAND)?.0);
    // What was made is destroyed, by the same name.
    for (create, destroy) in [
        (CREATE_DEVICE, DESTROY_DEVICE),
        (CREATE_CONTEXT, DESTROY_CONTEXT),
        (CREATE_ALLOCATION, DESTROY_ALLOCATION),
    ] {
        let names = |kind| {
            let mut names: Vec<_> = calls(&log, kind).iter().map(|call| call.1).collect();
            names.sort_unstable();
            names
        };
        ensure!(!names(create).is_empty());
        ensure_eq!(names(create), names(destroy));
    }
    // A context completes what it was given, and no other one tells of it.
    let queue = first(SUBMIT_COMMAND)?.1;
    ensure!(calls(&log, COMPLETED).iter().all(|call| call.1 == queue));
    Ok(())
}

pub(crate) fn main() {
    module::with_parameters("verify_kmd=1", || {
        Suite::new("verifier")
            .test(
                "MEM-95 every entry and callback is logged, and nothing is left",
                life,
            )
            .run()
    });
}
