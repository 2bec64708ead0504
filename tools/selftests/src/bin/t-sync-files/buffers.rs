// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync files and the fences of dma-bufs, both ways (RES-88, FEN-160), and memory management
//! beside them (FEN-167).
//!
//! What a client does for implicit synchronisation: before it submits work on a buffer it makes a
//! sync file of the fences of the buffer and has a context wait for it; behind the work it makes a
//! sync file of a point and adds that to the fences of the buffer.

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{AllocationFlags, EvictFlags, ResidentFlags, SyncFile};
use rustix::event::PollFlags;
use selftests::dma_buf::{export_sync_file, import_sync_file, Vgem, READ, WRITE};
use selftests::fds::poll_events;
use selftests::gpu::{one, reaches, Buffer, Gpu, PAGE};
use selftests::region::Region;
use selftests::sync_file::{driver, ends_with, status, Foreign, Idle, PENDING, SIGNALLED};
use selftests::time::{a_while, eventually};
use selftests::{ensure, ensure_eq, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-88 FEN-162 a point of ours in a buffer of ours",
            in_our_buffer,
        )
        .test(
            "RES-88 FEN-162 a point of ours in a buffer of another driver",
            in_their_buffer,
        )
        .test(
            "FEN-165 RES-87 an engine waits for the writer of a buffer",
            after_their_writer,
        )
        .test(
            "FEN-165 FEN-162 another driver, our engine, another driver",
            there_and_back,
        )
        .test("FEN-162 a discarded point frees the buffer", discarded)
        .test(
            "FEN-167 memory moves while queues wait for what never comes",
            memory_management,
        )
}

/// A point that is signalled when `gate` has been and the work in `gpu` is done.
fn point(gpu: &Gpu) -> TestResult<SyncFile> {
    let mark = gpu.mark()?;
    Ok(gpu.device().create_sync_file(gpu.done(), mark)?)
}

fn is_idle(buffer: impl std::os::fd::AsFd, events: PollFlags) -> TestResult<bool> {
    Ok(poll_events(buffer.as_fd(), Duration::ZERO)?.contains(events))
}

fn in_our_buffer() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.buffer(PAGE)?;
    let buffer = memory.allocation().export_dmabuf()?;
    let gate = Foreign::new()?;
    ensure!(is_idle(&buffer, PollFlags::OUT)?);
    gpu.context().wait_sync_file(gate.file()?)?;
    let commands = gpu.commands(&Pm4::new().write(memory.address(), &[7]))?;
    gpu.submit(&commands)?;
    import_sync_file(&buffer, WRITE, point(&gpu)?)?;
    // Whoever asks Linux: readers and writers have to wait.
    ensure!(!is_idle(&buffer, PollFlags::IN)?);
    ensure!(!is_idle(&buffer, PollFlags::OUT)?);
    let fences = SyncFile::from(export_sync_file(&buffer, READ)?);
    ensure_eq!(status(&fences)?, PENDING);
    ensure_eq!(driver(&fences)?, "opendxg");
    // Another context waits for them.
    let other = Gpu::on(gpu.device(), 1)?;
    let copy = other.buffer(PAGE)?;
    other.context().wait_sync_file(&fences)?;
    let commands = other.commands(&Pm4::new().copy(copy.address(), memory.address(), PAGE))?;
    other.submit(&commands)?;
    let mark = other.mark()?;
    a_while();
    ensure!(!other.is_done(mark));
    gate.signal()?;
    other.until(mark)?;
    ensure_eq!(copy.get32(0), 7);
    ends_with(&fences, SIGNALLED)?;
    eventually("the buffer is idle", || {
        matches!(is_idle(&buffer, PollFlags::OUT), Ok(true))
    })?;
    // A reader of ours holds back writers alone.
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    import_sync_file(&buffer, READ, point(&gpu)?)?;
    ensure!(is_idle(&buffer, PollFlags::IN)?);
    ensure!(!is_idle(&buffer, PollFlags::OUT)?);
    gate.signal()?;
    gpu.finish()
}

/// vgem refuses to write to a buffer that somebody else uses.
fn in_their_buffer() -> TestResult {
    let vgem = Vgem::open()?;
    let handle = vgem.create(1)?;
    let buffer = vgem.export(handle)?;
    let gpu = Gpu::new()?;
    let gate = Foreign::new()?;
    gpu.context().wait_sync_file(gate.file()?)?;
    import_sync_file(&buffer, WRITE, point(&gpu)?)?;
    ensure!(vgem.fence(handle).is_err(), "the fence was not seen");
    gate.signal()?;
    gpu.finish()?;
    let fence = vgem.fence(handle)?;
    vgem.signal(fence)
}

/// An allocation of their buffer. The lock of it waits for their devices, so there must be no fence
/// yet.
fn imported(gpu: &Gpu, file: &std::os::fd::OwnedFd) -> TestResult<Buffer> {
    let resource = gpu.device().new_resource();
    let allocation = resource
        .existing_section(file, PAGE)
        .flags(AllocationFlags::empty())
        .create_one()?;
    Buffer::new(gpu.paging(), allocation, PAGE)
}

fn after_their_writer() -> TestResult {
    let gpu = Gpu::new()?;
    let idle = Idle::new()?;
    let theirs = Region::of_file(idle.buffer(), PAGE as usize)?;
    theirs.fill(1);
    let source = imported(&gpu, idle.buffer())?;
    let copy = gpu.buffer(PAGE)?;
    let foreign = idle.begin()?;
    gpu.context()
        .wait_sync_file(export_sync_file(foreign.buffer(), READ)?)?;
    let commands = gpu.commands(&Pm4::new().copy(copy.address(), source.address(), PAGE))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    a_while();
    ensure!(!gpu.is_done(mark));
    // Their device writes, and says so.
    theirs.fill(2);
    foreign.signal()?;
    gpu.until(mark)?;
    ensure_eq!(copy.get32(0), theirs.word(0));
    Ok(())
}

/// A producer, our engine, a consumer; each of them only knows the buffers.
fn there_and_back() -> TestResult {
    let gpu = Gpu::new()?;
    let idle = Idle::new()?;
    let vgem = Vgem::open()?;
    let handle = vgem.create(1)?;
    let target = vgem.export(handle)?;
    let (from, to) = (imported(&gpu, idle.buffer())?, imported(&gpu, &target)?);
    let foreign = idle.begin()?;
    gpu.context()
        .wait_sync_file(export_sync_file(foreign.buffer(), READ)?)?;
    gpu.context()
        .wait_sync_file(export_sync_file(&target, WRITE)?)?;
    let commands = gpu.commands(&Pm4::new().copy(to.address(), from.address(), PAGE))?;
    gpu.submit(&commands)?;
    let done = point(&gpu)?;
    import_sync_file(foreign.buffer(), READ, &done)?;
    import_sync_file(&target, WRITE, &done)?;
    ensure!(vgem.fence(handle).is_err(), "the consumer does not wait");
    // Their device has written, and says so.
    Region::of_file(foreign.buffer(), PAGE as usize)?.fill(9);
    foreign.signal()?;
    ends_with(&done, SIGNALLED)?;
    let fence = vgem.fence(handle)?;
    Region::of_file(&target, PAGE as usize)?.holds(9)?;
    vgem.signal(fence)
}

fn discarded() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.buffer(PAGE)?;
    let buffer = memory.allocation().export_dmabuf()?;
    let gate = Foreign::new()?;
    let fence = gpu.device().create_fence(0)?;
    let context = gpu.device().create_context(0)?;
    context.wait_sync_file(gate.file()?)?;
    context.signal(&one(&fence, 1))?;
    import_sync_file(&buffer, WRITE, gpu.device().create_sync_file(&fence, 1)?)?;
    ensure!(!is_idle(&buffer, PollFlags::OUT)?);
    context.destroy()?;
    eventually("the buffer is idle", || {
        matches!(is_idle(&buffer, PollFlags::OUT), Ok(true))
    })
}

/// Eviction and residency of what queues would use that wait for a fence that nobody signals, and
/// for a sync file.
fn memory_management() -> TestResult {
    let gpu = Gpu::new()?;
    let never = gpu.device().create_fence(0)?;
    let foreign = Foreign::new()?;
    let memory = gpu.local_buffer(16 * PAGE)?;
    memory.fill(5);
    let blocked = gpu.device().create_context(1)?;
    let other = gpu.device().create_context(2)?;
    let commands = gpu.commands(&Pm4::new().write(memory.address(), &[6]))?;
    blocked.wait(&one(&never, 1))?;
    blocked.submit(commands.address(), commands.length())?;
    other.wait_sync_file(foreign.file()?)?;
    other.submit(commands.address(), commands.length())?;
    for _ in 0..10 {
        gpu.device()
            .evict(&[memory.allocation()], EvictFlags::empty())?;
        let resident = gpu
            .paging()
            .make_resident(&[memory.allocation()], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?)?;
        memory.holds(0..16 * PAGE, 5)?;
    }
    ensure_eq!(never.value(), 0);
    foreign.signal()?;
    gpu.finish()
}
