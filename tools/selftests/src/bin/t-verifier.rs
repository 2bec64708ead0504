// SPDX-License-Identifier: MIT OR Apache-2.0
//! The software GPU with a verifier around it (MEM-95), on any kernel. The log of the kernel, which
//! the harness looks at, says whether a rule of the driver interface is broken.

use std::os::fd::AsRawFd;

use opendxg::pm4::Pm4;
use opendxg::{Access, SyncFlags};
use selftests::child::{Child, Gate};
use selftests::gpu::Gpu;
use selftests::leak::Watch;
use selftests::soft_adapter::SoftAdapter;
use selftests::trace::{traced_kmd, Event};
use selftests::{ensure, ensure_eq, module, skip, Suite, TestResult};

// Numbers of `rust/ddi/verifier/entry.rs`.
const CREATE_PROCESS: u64 = 4;
const CREATE_DEVICE: u64 = 6;
const DESTROY_DEVICE: u64 = 7;
const CREATE_CONTEXT: u64 = 8;
const DESTROY_CONTEXT: u64 = 9;
const SET_ROOT_PAGE_TABLE: u64 = 11;
const CREATE_HW_QUEUE: u64 = 13;
const DESTROY_HW_QUEUE: u64 = 14;
const SUBMIT_COMMAND: u64 = 15;
const UPDATE_PAGE_TABLE: u64 = 18;
const CREATE_ALLOCATION: u64 = 22;
const DESTROY_ALLOCATION: u64 = 24;
const CALIBRATE_GPU_CLOCK: u64 = 27;
const COMPLETED: u64 = 31;
const CREATE_NATIVE_FENCE: u64 = 59;
const OPEN_NATIVE_FENCE: u64 = 60;
const CLOSE_NATIVE_FENCE: u64 = 61;
const DESTROY_NATIVE_FENCE: u64 = 62;

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

/// Trace 5: the paging process of an adapter that starts. Nothing is submitted.
fn paging_process() -> TestResult {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    let log = traced_kmd(|| SoftAdapter::enabled("verifier-paging")?.remove())?;
    let kinds = [
        CREATE_PROCESS,
        CREATE_DEVICE,
        UPDATE_PAGE_TABLE,
        CREATE_CONTEXT,
        SET_ROOT_PAGE_TABLE,
        SUBMIT_COMMAND,
    ];
    let mut steps: Vec<_> = log.iter().map(|event| event.get("kind")).collect();
    steps.retain(|kind| kinds.contains(kind));
    // A table after the other.
    steps.dedup();
    ensure_eq!(steps, kinds[..5]);
    Ok(())
}

/// A HW queue, whose progress fence is a native one from before it until after it.
fn progress() -> TestResult {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let watch = Watch::start()?;
    let log = traced_kmd(|| {
        context.create_hw_queue()?.destroy()?;
        watch.now()?;
        Ok(())
    })?;
    let kinds = [
        CREATE_NATIVE_FENCE,
        OPEN_NATIVE_FENCE,
        CREATE_HW_QUEUE,
        DESTROY_HW_QUEUE,
        CLOSE_NATIVE_FENCE,
        DESTROY_NATIVE_FENCE,
    ];
    let log: Vec<_> = log.iter().map(|event| event.get("kind")).collect();
    let own: Vec<_> = log.iter().filter(|kind| kinds.contains(kind)).collect();
    ensure!(own.iter().copied().eq(&kinds), "{log:?}");
    Ok(())
}

/// What a KMD hears of native fences between two marks. Whoever made a step marks its end.
fn steps(log: &[Event]) -> Vec<Vec<u64>> {
    let kinds = log.iter().map(|event| event.get("kind"));
    let own = kinds.filter(|kind| {
        [
            CREATE_NATIVE_FENCE,
            OPEN_NATIVE_FENCE,
            CLOSE_NATIVE_FENCE,
            DESTROY_NATIVE_FENCE,
            CALIBRATE_GPU_CLOCK,
        ]
        .contains(kind)
    });
    own.collect::<Vec<_>>()
        .split(|kind| *kind == CALIBRATE_GPU_CLOCK)
        .map(<[u64]>::to_vec)
        .collect()
}

/// A step has ended, with all that the worker does of it.
fn mark(gpu: &Gpu, watch: &Watch) -> TestResult {
    watch.now()?;
    gpu.device().adapter().clock_calibration(0)?;
    Ok(())
}

/// A creates the fence and B opens it; the descriptor stays open or not.
fn openings(keeps_descriptor: bool) -> TestResult<Vec<Vec<u64>>> {
    let log = traced_kmd(|| {
        let a = Gpu::new()?;
        let watch = Watch::start()?;
        let [opened, go_on, done] = [Gate::new()?, Gate::new()?, Gate::new()?];
        mark(&a, &watch)?;
        let fence = a.device().create_shareable_native_fence(0)?;
        mark(&a, &watch)?;
        let handle = fence.share(Access::ALL)?;
        mark(&a, &watch)?;
        let b = Child::spawn(|| {
            let b = Gpu::new()?;
            let fence = b.device().open_native_fence(&handle, SyncFlags::empty())?;
            // SAFETY: the copy of this process, which uses it no more and drops nothing.
            unsafe { libc::close(handle.as_raw_fd()) };
            opened.open()?;
            go_on.wait_for_parent()?;
            // It works as before.
            b.run(&Pm4::new().signal_native(fence.gpu_address(), 7))?;
            fence.wait(7)?;
            fence.destroy()?;
            done.open()?;
            go_on.wait_for_parent()
        })?;
        opened.wait_for_child(&b)?;
        mark(&a, &watch)?;
        let kept = keeps_descriptor.then_some(handle);
        mark(&a, &watch)?;
        fence.destroy()?;
        mark(&a, &watch)?;
        go_on.open()?;
        done.wait_for_child(&b)?;
        mark(&a, &watch)?;
        drop(kept);
        mark(&a, &watch)?;
        go_on.open()?;
        b.join()
    })?;
    Ok(steps(&log))
}

fn native_fence() -> TestResult {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    let begin = [
        vec![],
        vec![CREATE_NATIVE_FENCE, OPEN_NATIVE_FENCE],
        // Shared: none.
        vec![],
        vec![OPEN_NATIVE_FENCE],
        // Both have closed the descriptor, or A keeps it.
        vec![],
        vec![CLOSE_NATIVE_FENCE],
    ];
    let expect = |ends: [&[u64]; 3]| {
        let ends = ends.into_iter().map(<[u64]>::to_vec);
        begin.iter().cloned().chain(ends).collect::<Vec<_>>()
    };
    let last = [CLOSE_NATIVE_FENCE, DESTROY_NATIVE_FENCE];
    ensure_eq!(openings(false)?, expect([&last, &[], &[]]));
    // Row 7': it is kept by the descriptor.
    ensure_eq!(openings(true)?, expect([&last[..1], &last[1..], &[]]));
    Ok(())
}

pub(crate) fn main() {
    module::with_parameters("verify_kmd=1", || {
        Suite::new("verifier")
            .test(
                "MEM-95 every entry and callback is logged, and nothing is left",
                life,
            )
            .test(
                "MEM-63 MEM-73 the paging process, when an adapter starts",
                paging_process,
            )
            .test("FEN-125 the progress fence of a queue", progress)
            .test(
                "FEN-121 FEN-122 FEN-124 a fence that two processes have open",
                native_fence,
            )
            .run()
    });
}
