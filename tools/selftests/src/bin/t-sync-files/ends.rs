// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points whose signal never comes: they signal all the same, with an error (FEN-162).

use opendxg::pm4::Pm4;
use opendxg::{Device, ExecutionState, SyncFile};
use selftests::child::{Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::gpu::{one, Gpu, PAGE};
use selftests::leak::Watch;
use selftests::rounds::rounds;
use selftests::sync_file::{ends_with, status, Foreign, PENDING, SIGNALLED};
use selftests::{ensure_eq, Suite, TestResult};

const CANCELLED: i32 = -libc::ECANCELED;
const LOST: i32 = -libc::EIO;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-162 a context is destroyed", destroyed)
        .test("FEN-162 a device is destroyed", device)
        .test("FEN-162 GPU-95 a device is put in error", marked)
        .test("FEN-162 GPU-95 commands before it fault", faulted)
        .test(
            "FEN-162 commands before a fault do not matter",
            before_a_fault,
        )
        .test("FEN-161 FEN-162 its process is killed", killed)
        .test(
            "FEN-161 FEN-162 its process is killed and its commands run on",
            runs_on,
        )
        .test("FEN-162 the file outlives everything", outlives)
        .test("FEN-162 FEN-165 errors go through other contexts", chain)
}

/// A context that waits for a file of another driver, and then signals a fence; and the file of
/// that.
fn pending(device: &Device, foreign: &Foreign) -> TestResult<(opendxg::Context, SyncFile)> {
    let fence = device.create_fence(0)?;
    let context = device.create_context(0)?;
    context.wait_sync_file(foreign.file()?)?;
    context.signal(&one(&fence, 1))?;
    let file = device.create_sync_file(&fence, 1)?;
    ensure_eq!(status(&file)?, PENDING);
    Ok((context, file))
}

fn destroyed() -> TestResult {
    let watch = Watch::start()?;
    let gpu = Gpu::new()?;
    let foreign = Foreign::new()?;
    let (context, file) = pending(gpu.device(), &foreign)?;
    context.destroy()?;
    ends_with(&file, CANCELLED)?;
    foreign.signal()?;
    ensure_eq!(status(&file)?, CANCELLED);
    drop((gpu, file, foreign));
    watch.ends_clean()
}

fn device() -> TestResult {
    let device = selftests::fixture::device()?;
    let foreign = Foreign::new()?;
    let (context, file) = pending(&device, &foreign)?;
    // The device goes with its last object.
    drop((context, device));
    ends_with(&file, CANCELLED)
}

fn marked() -> TestResult {
    let gpu = Gpu::new()?;
    let foreign = Foreign::new()?;
    let (_context, file) = pending(gpu.device(), &foreign)?;
    gpu.device().mark_as_error(0x8000_0006)?;
    ends_with(&file, LOST)
}

fn faulted() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let foreign = Foreign::new()?;
    // A load from where nothing is.
    let bad = gpu.commands(&Pm4::new().write(0x10_0000_0000, &[1]))?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.submit(&bad)?;
    gpu.context().signal(&one(&fence, 1))?;
    let file = gpu.device().create_sync_file(&fence, 1)?;
    // And one of another context of the device.
    let held = Foreign::new()?;
    let (_context, other) = pending(gpu.device(), &held)?;
    foreign.signal()?;
    ends_with(&file, LOST)?;
    ends_with(&other, LOST)?;
    selftests::gpu::is_in(gpu.device(), ExecutionState::DmaPageFault)
}

fn before_a_fault() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let buffer = gpu.buffer(PAGE)?;
    let foreign = Foreign::new()?;
    let good = gpu.commands(&Pm4::new().write(buffer.address(), &[1]))?;
    let bad = gpu.commands(&Pm4::new().write(0x10_0000_0000, &[1]))?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.submit(&good)?;
    gpu.context().signal(&one(&fence, 1))?;
    gpu.submit(&bad)?;
    gpu.context().signal(&one(&fence, 2))?;
    let files = [1, 2].map(|value| gpu.device().create_sync_file(&fence, value));
    let [first, second] = files;
    let (first, second) = (first?, second?);
    foreign.signal()?;
    ends_with(&first, SIGNALLED)?;
    ends_with(&second, LOST)
}

/// What the child exports is a descriptor of this process, too.
fn in_a_child(body: impl FnOnce(&Gpu) -> TestResult<SyncFile>) -> TestResult<(Child, SyncFile)> {
    let (ours, theirs) = socket_pair()?;
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let file = body(&gpu)?;
        send(&theirs, &file)?;
        ready.open()?;
        loop {
            std::thread::park();
        }
    })?;
    ready.wait_for_child(&child)?;
    Ok((child, receive(&ours)?.into()))
}

fn killed() -> TestResult {
    let watch = Watch::start()?;
    for _ in 0..rounds(10) {
        let foreign = Foreign::new()?;
        let (child, file) = in_a_child(|gpu| {
            let (context, file) = pending(gpu.device(), &foreign)?;
            core::mem::forget(context);
            Ok(file)
        })?;
        ensure_eq!(status(&file)?, PENDING);
        child.kill()?;
        ends_with(&file, CANCELLED)?;
        foreign.signal()?;
    }
    watch.ends_clean()
}

/// What a killed process has submitted runs to its end, and so the point signals.
fn runs_on() -> TestResult {
    let watch = Watch::start()?;
    for _ in 0..rounds(5) {
        let (child, file) = in_a_child(|gpu| {
            let fence = gpu.device().create_fence(0)?;
            let delay = gpu.commands(&Pm4::new().delay(2000))?;
            for _ in 0..20 {
                gpu.submit(&delay)?;
            }
            gpu.context().signal(&one(&fence, 1))?;
            let file = gpu.device().create_sync_file(&fence, 1)?;
            core::mem::forget((fence, delay));
            Ok(file)
        })?;
        child.kill()?;
        ends_with(&file, SIGNALLED)?;
    }
    watch.ends_clean()
}

fn outlives() -> TestResult {
    let watch = Watch::start()?;
    let mut files = Vec::new();
    {
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_fence(0)?;
        for value in 1..20 {
            gpu.context().signal(&one(&fence, value))?;
            files.push(gpu.device().create_sync_file(&fence, value)?);
        }
    }
    for file in &files {
        ends_with(file, SIGNALLED)?;
    }
    drop(files);
    watch.ends_clean()
}

fn chain() -> TestResult {
    let (first, second) = (Gpu::new()?, Gpu::new()?);
    let foreign = Foreign::new()?;
    let (context, file) = pending(first.device(), &foreign)?;
    let fence = second.device().create_fence(0)?;
    second.context().wait_sync_file(&file)?;
    second.context().signal(&one(&fence, 1))?;
    let behind = second.device().create_sync_file(&fence, 1)?;
    context.destroy()?;
    ends_with(&file, CANCELLED)?;
    // The wait is over, and what is behind it is done.
    ends_with(&behind, SIGNALLED)
}
