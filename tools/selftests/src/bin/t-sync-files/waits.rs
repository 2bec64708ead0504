// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contexts that wait for sync files of any driver (FEN-165).

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, EventFd, Status};
use selftests::call::refused;
use selftests::child::Child;
use selftests::dma_buf::udmabuf;
use selftests::fds::{closed_number, memfd, pipe};
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::leak::Watch;
use selftests::resource::{export, Create, PAGE_SIZE};
use selftests::rounds::rounds;
use selftests::sync_file::{ends_with, merged, Foreign, SIGNALLED};
use selftests::time::a_while;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// A reason for D3DKMTMarkDeviceAsError.
const HUNG: u32 = 0x8000_0006;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-165 a file of another driver holds back its queue alone",
            held,
        )
        .test(
            "FEN-165 a file that has signalled holds nothing back",
            signalled,
        )
        .test("FEN-165 files of two drivers in one", both)
        .test("FEN-165 many waits for one file", many)
        .test(
            "FEN-165 a context waits for a file of another process",
            processes,
        )
        .test(
            "FEN-165 a file that signals with an error ends the wait",
            failed,
        )
        .test("FEN-165 what is no sync file", no_sync_file)
        .test("FEN-165 what is no context", no_context)
        .test(
            "FEN-165 a wait that ends before the file signals",
            ends_before,
        )
        .test("FEN-165 a process is killed while it waits", killed)
        .slow(
            "FEN-165 files that signal while their waits end",
            std::time::Duration::from_secs(120),
            races,
        )
}

/// The descriptor is closed at once: the wait has the fence.
fn held() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let foreign = Foreign::new()?;
    let other = Gpu::on(gpu.device(), 1)?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    let commands = gpu.commands(&Pm4::new().write(buffer.address(), &[1]))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    other.run(&Pm4::new().write(buffer.at(8), &[2]))?;
    a_while();
    ensure_eq!(buffer.get32(0), 0);
    ensure!(!gpu.is_done(mark));
    foreign.signal()?;
    gpu.until(mark)?;
    ensure_eq!(buffer.get32(0), 1);
    Ok(())
}

fn signalled() -> TestResult {
    let gpu = Gpu::new()?;
    let foreign = Foreign::new()?;
    let file = foreign.file()?;
    foreign.signal()?;
    ensure!(file.is_signalled()?);
    gpu.context().wait_sync_file(&file)?;
    gpu.finish()?;
    let own = gpu.device().create_sync_file(gpu.done(), 0)?;
    gpu.context().wait_sync_file(&own)?;
    gpu.finish()
}

fn both() -> TestResult {
    let gpu = Gpu::new()?;
    let foreign = [Foreign::new()?, Foreign::new()?];
    let file = merged(foreign[0].file()?, foreign[1].file()?)?;
    gpu.context().wait_sync_file(&file)?;
    let mark = gpu.mark()?;
    foreign[1].signal()?;
    a_while();
    ensure!(!gpu.is_done(mark));
    foreign[0].signal()?;
    gpu.until(mark)
}

fn many() -> TestResult {
    let gpu = Gpu::new()?;
    let foreign = Foreign::new()?;
    let file = foreign.file()?;
    let others: Result<Vec<_>, _> = (0..20).map(|_| gpu.device().create_context(0)).collect();
    let others = others?;
    let all = gpu.device().create_fence(0)?;
    for context in &others {
        for _ in 0..10 {
            context.wait_sync_file(&file)?;
        }
    }
    let [first, rest @ ..] = &others[..] else {
        return Err("no contexts".into());
    };
    let rest: Vec<_> = rest.iter().collect();
    first.signal_broadcast(&rest, &one(&all, 1), opendxg::SignalFlags::empty())?;
    a_while();
    ensure_eq!(all.value(), 0);
    foreign.signal()?;
    reaches(&all, 1)
}

/// Without a handle of anything of the other one.
fn processes() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let foreign = Foreign::new()?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.context().signal(&one(&fence, 1))?;
    let file = gpu.device().create_sync_file(&fence, 1)?;
    let theirs = file.as_fd().try_clone_to_owned()?;
    let (begun, gone) = (
        selftests::child::Gate::new()?,
        selftests::child::Gate::new()?,
    );
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        gpu.context().wait_sync_file(&theirs)?;
        let mark = gpu.mark()?;
        a_while();
        ensure!(!gpu.is_done(mark));
        begun.open()?;
        gone.wait()?;
        gpu.until(mark)
    })?;
    begun.wait_for_child(&child)?;
    foreign.signal()?;
    gone.open()?;
    child.join()?;
    ends_with(&file, SIGNALLED)
}

fn failed() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let fence = other.device().create_fence(0)?;
    let foreign = Foreign::new()?;
    let context = other.device().create_context(0)?;
    context.wait_sync_file(foreign.file()?)?;
    context.signal(&one(&fence, 1))?;
    let file = other.device().create_sync_file(&fence, 1)?;
    gpu.context().wait_sync_file(&file)?;
    let mark = gpu.mark()?;
    context.destroy()?;
    ends_with(&file, -libc::ECANCELED)?;
    gpu.until(mark)
}

fn request(gpu: &Gpu, file: u64) -> d3dkmt_waitsyncfile {
    let mut arg = d3dkmt_waitsyncfile::zeroed();
    (arg.sync_file_handle, arg.context) = (file, gpu.context().handle().0);
    arg
}

fn no_sync_file() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let fence = gpu.device().create_shareable_fence(0)?;
    let made = Create::sized(gpu.device(), 0, &[PAGE_SIZE]).run()?;
    let (foreign_buffer, memory) = udmabuf(PAGE_SIZE)?;
    let (reader, _writer) = pipe()?;
    let others: [(&str, OwnedFd); 10] = [
        ("an eventfd", EventFd::new()?.as_fd().try_clone_to_owned()?),
        ("a dma-buf of ours", export(made.raw(), made.first(), 0)?),
        ("a dma-buf of another driver", foreign_buffer),
        ("a memory file", memory),
        ("another memory file", memfd()?),
        (
            "our own fence",
            fence.share(Access::ALL)?.as_fd().try_clone_to_owned()?,
        ),
        (
            "a point of a fence",
            fence.point(1)?.as_fd().try_clone_to_owned()?,
        ),
        ("a pipe", reader),
        ("a device", File::open("/dev/null")?.into()),
        ("our device", File::open("/dev/dxg")?.into()),
    ];
    for (what, fd) in &others {
        let mut arg = request(&gpu, fd.as_raw_fd() as u64);
        refused(&raw, &mut arg, Status::OBJECT_TYPE_MISMATCH)
            .map_err(|error| format!("{what}: {error}"))?;
    }
    let closed = closed_number()? as u64;
    for number in [
        0,
        closed,
        1 << 29,
        1 << 30,
        u64::from(u32::MAX),
        1 << 32,
        u64::MAX,
    ] {
        let mut arg = request(&gpu, number);
        refused(&raw, &mut arg, Status::INVALID_HANDLE)
            .map_err(|error| format!("descriptor {number:#x}: {error}"))?;
    }
    // Nothing was queued.
    gpu.finish()
}

fn no_context() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let foreign = Foreign::new()?;
    let file = foreign.file()?;
    let hardware = gpu.device().create_hw_context(0)?;
    let good = request(&gpu, file.as_raw_fd() as u64);
    for context in [
        0,
        u32::MAX,
        gpu.device().handle().0,
        hardware.handle().0,
        gpu.done().handle().0,
    ] {
        let mut arg = good;
        arg.context = context;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    for reserved in [1, 1 << 31, u32::MAX] {
        let mut arg = good;
        arg.reserved = reserved;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    gpu.finish()?;
    gpu.device().mark_as_error(HUNG)?;
    let mut arg = good;
    refused(&raw, &mut arg, Status::DEVICE_REMOVED)
}

/// The file signals when nobody waits any more: for a destroyed context, a device in error, and
/// one that is destroyed.
fn ends_before() -> TestResult {
    let watch = Watch::start()?;
    for end in 0..4 {
        let gpu = Gpu::new()?;
        let foreign = Foreign::new()?;
        let file = foreign.file()?;
        let context = gpu.device().create_context(0)?;
        for _ in 0..10 {
            context.wait_sync_file(&file)?;
        }
        match end {
            0 => context.destroy()?,
            1 => gpu.device().mark_as_error(HUNG)?,
            2 => {
                drop(context);
                drop(gpu);
            }
            _ => context.set_priority(-1)?,
        }
        foreign.signal()?;
        ends_with(&file, SIGNALLED)?;
    }
    watch.ends_clean()
}

fn killed() -> TestResult {
    let watch = Watch::start()?;
    let foreign = Foreign::new()?;
    let file = foreign.file()?;
    for _ in 0..rounds(10) {
        let ready = selftests::child::Gate::new()?;
        let child = Child::spawn(|| {
            let gpu = Gpu::new()?;
            for node in 0..3 {
                let context = gpu.device().create_context(node)?;
                context.wait_sync_file(&file)?;
                context.signal(&one(gpu.done(), 1))?;
                core::mem::forget(context);
            }
            ready.open()?;
            loop {
                std::thread::park();
            }
        })?;
        ready.wait_for_child(&child)?;
        child.kill()?;
    }
    foreign.signal()?;
    ends_with(&file, SIGNALLED)?;
    drop((foreign, file));
    watch.ends_clean()
}

fn races() -> TestResult {
    let watch = Watch::start()?;
    for round in 0..rounds(200) {
        let gpu = Gpu::new()?;
        let foreign = Foreign::new()?;
        let context = gpu.device().create_context(round % 3)?;
        for _ in 0..5 {
            context.wait_sync_file(foreign.file()?)?;
        }
        std::thread::scope(|scope| {
            let signals = scope.spawn(|| foreign.signal());
            let ends = if round % 2 == 0 {
                context.destroy().map_err(Into::into)
            } else {
                gpu.device().mark_as_error(HUNG).map_err(Into::into)
            };
            ends.and(signals.join().map_err(|_| "a thread has panicked")?)
        })?;
    }
    watch.ends_clean()
}
