// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences whose values are in memory of their adapter, and what becomes of them when others
//! want the place (FEN-63, FEN-64).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{
    Device, EventFd, IntraGpuFence, MemoryGroup, NativeFence, Resident, ResidentFlags, Status,
    SyncFlags,
};
use selftests::child::{in_child, Child, Gate};
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{eventually, soon};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

use crate::t_native_fences::caps::works;
use crate::t_native_fences::intra_gpu::values;
use crate::t_native_fences::{is_told, monitored_value, signal, waited};

const NONE: SyncFlags = SyncFlags::empty();
const SHARED: SyncFlags = SyncFlags::SHARED.union(SyncFlags::NT_SECURITY_SHARING);

/// How often one command buffer adds to each fence.
const STEPS: u64 = 200;

/// Local memory of an adapter that is filled.
const SMALL: u64 = 1 << 20;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let suite = suite
        .test("FEN-63 where the values of which fences are", || {
            places("default", "1048576", 0)
        })
        .test("FEN-63 the same where MonitoredValue is local", || {
            places("optimized", "1048576", 1)
        })
        .test("FEN-63 an adapter without memory of its own", || {
            places("optimized", "0", 0)
        })
        .test("FEN-64 memory that processors do not see", hidden)
        .test("FEN-64 there is no room at the creation", no_room)
        .test("FEN-64 the adapter is removed", removed);
    [
        ("direct", "0", "vram4", "0"),
        ("shadow", "0", "doc2", "0"),
        ("direct", "1", "vram4", "0"),
        ("shadow", "1", "vram4", "1"),
    ]
    .into_iter()
    .fold(suite, |suite, how| {
        let (values, system, profile, large) = how;
        suite.slow(
            format!(
                "FEN-64 FEN-80 the place is wanted by others: {values}, {profile}, \
                 system process {system}, large pages {large}"
            ),
            Duration::from_secs(120),
            move || moved(how),
        )
    })
}

/// An adapter with so much memory of its own, where it wants values of fences in `memory`.
fn adapter(name: &str, memory: &str, bytes: &str) -> TestResult<SoftAdapter> {
    let adapter = SoftAdapter::new(&format!("fence-memory-{name}"))?;
    adapter.set("local_memory", bytes)?;
    adapter.set("fence_memory", memory)?;
    Ok(adapter)
}

/// Pages of local memory that are in use, by all processes and by this one.
fn pages(device: &Device) -> TestResult<(u64, u64)> {
    let adapter = device.adapter();
    let segment = adapter.segment_statistics(0)?;
    let own = adapter.video_memory(MemoryGroup::Local)?.usage;
    let all = if segment.is_aperture {
        0
    } else {
        segment.bytes_resident
    };
    Ok((all / PAGE, own / PAGE))
}

/// `of_default`: how many pages fences of the default type take.
fn places(memory: &str, bytes: &str, of_default: u64) -> TestResult {
    let adapter = adapter(&format!("places-{memory}-{bytes}"), memory, bytes)?;
    adapter.set("enabled", "1")?;
    let of_intra = if bytes == "0" { 0 } else { 2 };
    let observer = adapter.device()?;
    let device = adapter.device()?;
    ensure_eq!(pages(&device)?, (0, 0));
    {
        // Those of a process are packed.
        let fences = [
            device.create_native_fence(1)?,
            device.create_native_fence(2)?,
        ];
        ensure_eq!(pages(&device)?, (of_default, of_default));
        let intra = [
            device.create_intra_gpu_fence(NONE)?,
            device.create_intra_gpu_fence(NONE)?,
        ];
        let own = of_default + of_intra;
        ensure_eq!(pages(&device)?, (own, own));
        // What others may have is in system memory.
        let across = SHARED | SyncFlags::CROSS_ADAPTER;
        let shared = device.create_native_fence_with(3, SHARED)?;
        let across = device.create_native_fence_with(4, across)?;
        let _shared_intra = device.create_intra_gpu_fence(SHARED)?;
        ensure_eq!(pages(&device)?, (own, own));
        // FEN-61: another process has pages of its own.
        in_child(|| {
            let device = adapter.device()?;
            let fence = device.create_native_fence(1)?;
            ensure_eq!(pages(&device)?, (own + of_default, of_default));
            works(&device, &fence)
        })?;
        eventually("the end of the other process", || {
            pages(&device).is_ok_and(|pages| pages == (own, own))
        })?;
        for fence in fences.iter().chain([&shared]) {
            works(&device, fence)?;
        }
        let gpu = Gpu::on(&device, 0)?;
        gpu.run(&signal(&across, 5))?;
        across.wait(5)?;
        for fence in &intra {
            ensure_eq!(values(&gpu, fence)?, (0, u64::MAX));
            counts_on(&gpu, fence, 1..8)?;
        }
    }
    // They go with the last device at the latest. Who reads about a device, as any process may,
    // keeps it a little longer, and a device that is made meanwhile finds the pages: so there is
    // none between two looks.
    drop((device, observer));
    eventually("the end of the fences", || {
        let device = adapter.device();
        device.is_ok_and(|device| pages(&device).is_ok_and(|pages| pages == (0, 0)))
    })?;
    adapter.remove()
}

/// An engine stores each of these values, and finds it where it was stored.
fn counts_on(gpu: &Gpu, fence: &IntraGpuFence, next: core::ops::Range<u64>) -> TestResult {
    let seen = gpu.buffer(PAGE)?;
    let mut packets = Pm4::new();
    for value in next.clone() {
        packets = packets
            .signal_native(fence.gpu_address(), value)
            .wait_native(fence.gpu_address(), value)
            .copy(seen.at(8 * (value - next.start)), fence.gpu_address(), 8);
    }
    gpu.run(&packets)?;
    for value in next.clone() {
        ensure_eq!(seen.get64(8 * (value - next.start)), value);
    }
    Ok(())
}

/// The adapter is in error, as with updates that fail (FEN-108).
fn hidden() -> TestResult {
    for intra in [false, true] {
        let adapter = adapter(&format!("hidden-{intra}"), "hidden", "1048576")?;
        adapter.set("enabled", "1")?;
        let device = adapter.device()?;
        // What is in system memory can be made.
        let shared = device.create_native_fence_with(3, SHARED)?;
        works(&device, &shared)?;
        let event = waited(&shared, 99)?;
        match intra {
            true => fails_with(device.create_intra_gpu_fence(NONE), Status::DEVICE_REMOVED)?,
            false => fails_with(device.create_native_fence(0), Status::DEVICE_REMOVED)?,
        }
        is_told(&event)?;
        ensure_eq!(shared.value(), u64::MAX);
        fails_with(
            device.create_native_fence_with(3, SHARED),
            Status::DEVICE_REMOVED,
        )?;
    }
    Ok(())
}

/// Takes all local memory, until the end of the process.
fn fill(device: &Device) -> TestResult<(Gpu, opendxg::Allocation)> {
    let gpu = Gpu::on(device, 0)?;
    let size = device.adapter().segment_statistics(0)?.commit_limit;
    let all = gpu.allocate_local(size)?;
    let answer = gpu
        .paging()
        .make_resident(&[&all], ResidentFlags::CANT_TRIM_FURTHER)?;
    match answer {
        Resident::At(value) => reaches(gpu.paging().fence(), value)?,
        Resident::TooMuch { .. } => return Err("there is no room for all".into()),
    }
    Ok((gpu, all))
}

fn no_room() -> TestResult {
    let adapter = adapter("no-room", "default", "1048576")?;
    adapter.set("enabled", "1")?;
    let (full, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let _all = fill(&adapter.device()?)?;
        full.open()?;
        done.wait_for_parent()
    })?;
    full.wait_for_child(&child)?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let intra = gpu.device().create_intra_gpu_fence(NONE)?;
    ensure_eq!(pages(gpu.device())?, (SMALL / PAGE, 0));
    ensure_eq!(values(&gpu, &intra)?, (0, u64::MAX));
    counts_on(&gpu, &intra, 1..9)?;
    done.open()?;
    child.join()?;
    counts_on(&gpu, &intra, 9..12)
}

fn removed() -> TestResult {
    let adapter = adapter("removed", "optimized", "1048576")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let fence = gpu.device().create_native_fence(0)?;
    let intra = gpu.device().create_intra_gpu_fence(NONE)?;
    let event = waited(&fence, 5)?;
    let commands = gpu.commands(&Pm4::new().wait_native(intra.gpu_address(), 1))?;
    gpu.submit(&commands)?;
    adapter.disable()?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    ensure_eq!(fence.value(), u64::MAX);
    drop((fence, intra, commands, gpu));
    adapter.remove()
}

/// Fences whose pages are local, until somebody fills that memory.
struct Scene {
    gpu: Gpu,
    other: Gpu,
    fences: Vec<NativeFence>,
    intra: Vec<IntraGpuFence>,
}

impl Scene {
    /// One on a device of its own.
    fn on(adapter: &SoftAdapter) -> TestResult<(Device, Self)> {
        let device = adapter.device()?;
        let scene = Self::new(&device)?;
        Ok((device, scene))
    }

    fn new(device: &Device) -> TestResult<Self> {
        Ok(Self {
            gpu: Gpu::on(device, 0)?,
            other: Gpu::on(device, 1)?,
            fences: (0..4)
                .map(|value| device.create_native_fence(value))
                .collect::<Result<_, _>>()?,
            intra: (0..2)
                .map(|_| device.create_intra_gpu_fence(NONE))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Signals that each wake who waits, until `stop`: then nothing more comes, so that nothing
    /// mends what was lost (FEN-83).
    fn signals(&self, stop: &AtomicBool) -> TestResult<u64> {
        let event = EventFd::new()?;
        let mut turns = 0;
        while !stop.load(Ordering::Acquire) || turns == 0 {
            let mut packets = Pm4::new();
            for fence in &self.fences {
                // MonitoredValue falls twice, before the engine comes or beside it.
                fence.wait_async(fence.value() + 2, &event)?;
                packets = packets.append(&signal(fence, fence.value() + 2));
            }
            let commands = self.gpu.commands(&packets)?;
            self.gpu.submit(&commands)?;
            let mut woken = 0;
            while woken < self.fences.len() as u64 {
                woken += event
                    .wait(Some(soon()))?
                    .ok_or("a signal has woken nobody")?;
            }
            ensure_eq!(woken, self.fences.len() as u64);
            self.gpu.finish()?;
            turns += 1;
        }
        Ok(turns)
    }

    /// Packets that add to CurrentValue until `stop`, so that the sum tells whether a store was
    /// lost.
    fn count(&self, stop: &AtomicBool) -> TestResult<u64> {
        let mut packets = Pm4::new();
        for _ in 0..STEPS {
            for fence in &self.intra {
                packets = packets.atomic(Atomic::Add, fence.gpu_address(), 1, 0);
            }
        }
        let commands = self.other.commands(&packets)?;
        let mut count = 0;
        while !stop.load(Ordering::Acquire) || count == 0 {
            // The engine always has some.
            for _ in 0..4 {
                self.other.submit(&commands)?;
                count += STEPS;
            }
            self.other.finish()?;
        }
        Ok(count)
    }
}

fn moved((values_in, system, profile, large): (&str, &str, &str, &str)) -> TestResult {
    let name = format!("moved-{values_in}-{system}");
    let adapter = adapter(&name, "optimized", "1048576")?;
    adapter.set("monitored_values", values_in)?;
    adapter.set("map_to_gpu_system_process", system)?;
    adapter.set("profile", profile)?;
    adapter.set("use_64kb_pages", large)?;
    adapter.set("enabled", "1")?;
    let times = rounds(20).max(2);
    let (begin, full, free) = (Gate::new()?, Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        for _ in 0..times {
            begin.wait_for_parent()?;
            let all = fill(&adapter.device()?)?;
            full.open()?;
            begin.wait_for_parent()?;
            drop(all);
            free.open()?;
        }
        Ok(())
    })?;
    for _ in 0..times {
        let mut made = None;
        eventually("the fences are in the segment", || {
            // What is left of the last round ends a moment later. Until then new fences are beside
            // those, which have moved.
            drop(made.take());
            made = Scene::on(&adapter).ok();
            made.as_ref()
                .is_some_and(|(device, _)| pages(device).is_ok_and(|(_, own)| own == 3))
        })?;
        let (device, scene) = made.ok_or("there is no scene")?;
        let waiting = waited(&scene.fences[0], 1 << 40)?;
        let stop = AtomicBool::new(false);
        let count = thread::scope(|scope| {
            let signals = scope.spawn(|| scene.signals(&stop));
            let counting = scope.spawn(|| scene.count(&stop));
            let filled = begin.open().and_then(|()| full.wait_for_child(&child));
            stop.store(true, Ordering::Release);
            signals.join().map_err(|_| "the thread has panicked")??;
            let count = counting.join().map_err(|_| "the thread has panicked")??;
            filled.map(|()| count)
        })?;
        // All of it has gone, and nothing is lost.
        ensure_eq!(pages(&device)?, (SMALL / PAGE, 0));
        let value = scene.fences[0].value();
        ensure_eq!(
            monitored_value(&scene.gpu, &scene.fences[0])?,
            (1 << 40) - 1
        );
        for fence in &scene.fences[1..] {
            ensure_eq!(monitored_value(&scene.gpu, fence)?, u64::MAX);
        }
        for fence in &scene.intra {
            ensure_eq!(values(&scene.gpu, fence)?, (count, u64::MAX));
        }
        for fence in &scene.fences[1..] {
            works(&device, fence)?;
        }
        begin.open()?;
        free.wait_for_child(&child)?;
        // The place has other bytes, or none; the fences do not see that.
        ensure_eq!(scene.fences[0].value(), value);
        scene.gpu.run(&signal(&scene.fences[0], 1 << 40))?;
        is_told(&waiting)?;
        for fence in &scene.fences[1..] {
            works(&device, fence)?;
        }
        for fence in &scene.intra {
            counts_on(&scene.gpu, fence, count + 1..count + 9)?;
        }
        // What the other one had ends a moment later. The next fences shall have room.
        eventually("the memory of the other one is free", || {
            pages(&device).is_ok_and(|(all, own)| all == own)
        })?;
    }
    child.join()?;
    adapter.remove()
}
