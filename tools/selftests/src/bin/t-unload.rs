// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking the module out: refused as long as anything of it is open or mapped, possible right
//! afterwards, and possible again and again.
//!
//! The runner keeps the device open to watch for leaks, so everything here happens in this
//! program's own main function, before the suite reports it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use opendxg::raw::Argument;
use opendxg::soft_gpu::Command;
use opendxg::uapi::*;
use opendxg::{Access, Dxg, FencePoint, NtHandle, ResidentFlags};
use rustix::io::Errno;
use selftests::call::succeeds;
use selftests::child::{Child, Gate};
use selftests::dma_buf::Vgem;
use selftests::gpu::{Gpu, NODES, PAGE, PAGING_NODE};
use selftests::hog::Hog;
use selftests::paging_log::PagingLog;
use selftests::region::Region;
use selftests::resource::{export, flags, Create, PAGE_SIZE};
use selftests::rounds::rounds;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, module, soft_adapter, Failure, Suite, TestResult};

/// Demands that the module cannot be taken out now.
fn is_pinned() -> TestResult {
    ensure_eq!(module::unload(), Err(Errno::WOULDBLOCK));
    Ok(())
}

/// Demands that the module can be taken out now, and puts it back.
fn is_free(parameters: &str) -> TestResult {
    module::unload()?;
    module::load(parameters)?;
    eventually("the node is there", || Dxg::open().is_ok())
}

fn device_descriptor() -> TestResult {
    let _dxg = Dxg::open()?;
    is_pinned()
}

fn nt_handle() -> TestResult {
    let nt: NtHandle = fixture::device()?
        .create_shareable_fence(0)?
        .share(Access::ALL)?;
    is_pinned()?;
    drop(nt);
    Ok(())
}

fn fence_point() -> TestResult {
    let point: FencePoint = fixture::device()?.create_fence(0)?.point(1)?;
    is_pinned()?;
    drop(point);
    Ok(())
}

/// A sync file, which keeps no object.
fn sync_file() -> TestResult {
    let file = {
        let device = fixture::device()?;
        let fence = device.create_fence(1)?;
        device.create_sync_file(&fence, 1)?
    };
    is_pinned()?;
    drop(file);
    Ok(())
}

/// A CPU event, which the process keeps to its end.
fn cpu_event() -> TestResult {
    let fd = opendxg::EventFd::new()?;
    let event = fixture::device()?.create_cpu_event(&fd)?;
    is_pinned()?;
    drop(event);
    Ok(())
}

/// A forked child has only the mapping: its owner and every descriptor are gone.
fn mapping() -> TestResult {
    selftests::task::adopt_orphans()?;
    let (ready, done) = (Gate::new()?, Gate::new()?);
    let (reader, writer) = selftests::fds::pipe()?;
    let owner = Child::spawn(|| {
        let name = module::parameter("name")?;
        let fence = fixture::device()?.create_shareable_fence(5)?;
        let node = std::fs::read_dir("/proc/self/fd")?
            .flatten()
            .find(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.ends_with(&name)));
        let node = node.and_then(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let node = node.ok_or("the device is not open")?;
        let pid = selftests::task::fork_survivor(|| {
            // SAFETY: nothing in this process uses the node any more.
            unsafe { libc::close(node) };
            ready.open()?;
            done.wait()?;
            ensure_eq!(fence.value(), 5);
            Ok(())
        })?;
        rustix::io::write(&writer, &pid.to_ne_bytes())?;
        loop {
            std::thread::park();
        }
    })?;
    ready.wait()?;
    let mut pid = [0; 4];
    rustix::io::read(&reader, &mut pid)?;
    owner.kill()?;
    let pinned = is_pinned();
    done.open()?;
    selftests::task::reap(i32::from_ne_bytes(pid))?;
    pinned
}

/// Only the dma-buf, then only its mapping, then only another driver that uses it.
fn dma_buf() -> TestResult {
    const SIZE: u64 = 4 * PAGE_SIZE;
    let file = {
        let device = fixture::device()?;
        let made = Create::sized(&device, flags::RESOURCE, &[SIZE]).run()?;
        made.lock()?.fill(1);
        export(made.raw(), made.first(), 0)?
    };
    is_pinned()?;
    let memory = Region::of_file(&file, SIZE as usize)?;
    let vgem = Vgem::open()?;
    let handle = vgem.import(&file)?;
    drop(file);
    is_pinned()?;
    memory.holds(1)?;
    drop(memory);
    is_pinned()?;
    vgem.close(handle)
}

/// Descriptors that do not keep the object, but need the module.
fn weak_and_watch() -> TestResult {
    let event = opendxg::EventFd::new()?;
    let (weak, watch) = {
        let raw = fixture::raw()?;
        let device = fixture::device()?;
        let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
        let mut weak = opendxg_open_weak::zeroed();
        (weak.handle, weak.handle_type) = (u64::from(made.resource), OPENDXG_HANDLE_LOCAL);
        succeeds(&raw, &mut weak)?;
        let mut watch = opendxg_watch::zeroed();
        (watch.handle, watch.handle_type) = (weak.handle, weak.handle_type);
        (watch.events, watch.event_fd) = (OPENDXG_WATCH_DESTROY, event.as_raw_fd());
        succeeds(&raw, &mut watch)?;
        // SAFETY: the calls made the descriptors for us.
        unsafe {
            (
                OwnedFd::from_raw_fd(weak.fd),
                OwnedFd::from_raw_fd(watch.fd),
            )
        }
    };
    is_pinned()?;
    drop(weak);
    is_pinned()?;
    drop(watch);
    Ok(())
}

/// Waits of all kinds that are pending when their process is killed, and the module taken out at
/// once.
fn busy(parameters: &str) -> TestResult {
    for _ in 0..rounds(10) {
        let ready = Gate::new()?;
        let child = Child::spawn(|| {
            let device = fixture::device()?;
            let (fence, event) = (device.create_shareable_fence(0)?, opendxg::EventFd::new()?);
            for value in 1..100 {
                fence.wait_async(value, &event)?;
                core::mem::forget(fence.point(value)?);
            }
            ready.open()?;
            Ok(fence.wait(1)?)
        })?;
        ready.wait()?;
        child.kill()?;
        is_free(parameters)?;
    }
    Ok(())
}

/// Engines that have work without end when their process is killed. As long as the process lives,
/// the module stays, and so it does until the last of that work was stopped: memory that an engine
/// uses belongs to the module.
fn engines(parameters: &str) -> TestResult {
    for _ in 0..rounds(3) {
        let ready = Gate::new()?;
        let child = Child::spawn(|| {
            let mut all = Vec::new();
            for (hog, node) in Hog::ALL.into_iter().zip(NODES.into_iter().cycle()) {
                let gpu = Gpu::node(node)?;
                let busy = hog.begin(&gpu)?;
                if hog.runs() {
                    busy.runs()?;
                }
                all.push((busy, gpu));
            }
            ready.open()?;
            loop {
                std::thread::park();
            }
        })?;
        ready.wait()?;
        is_pinned()?;
        child.kill()?;
        eventually("the module can be taken out", || module::unload().is_ok())?;
        module::load(parameters)?;
        eventually("the node is there", || Dxg::open().is_ok())?;
    }
    Ok(())
}

/// An operation that a paging worker has not begun when its process is killed, because root holds
/// the worker.
fn held_worker(parameters: &str) -> TestResult {
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let allocation = gpu.allocate(2048 * PAGE)?;
        let log = PagingLog::of(gpu.device().adapter())?;
        log.control("start")?;
        log.control("hold")?;
        let flags = ResidentFlags::empty();
        let value = gpu.paging().make_resident(&[&allocation], flags)?.value()?;
        ensure!(value != 0);
        ready.open()?;
        loop {
            std::thread::park();
        }
    })?;
    ready.wait_for_child(&child)?;
    is_pinned()?;
    child.kill()?;
    is_free(parameters)
}

/// Batches that hang in the paging nodes of adapters when their process is killed: the workers of
/// the adapters end them while the module goes. Others of these tests run without resets.
fn hanging_paging_nodes(parameters: &str) -> TestResult {
    let reload = |parameters: &str| {
        eventually("the module can be taken out", || module::unload().is_ok())?;
        module::load(parameters)?;
        eventually("the node is there", || Dxg::open().is_ok())
    };
    let with_resets = format!("{parameters} tdr_delay_ms=2000");
    reload(&with_resets)?;
    for _ in 0..rounds(3) {
        let ready = Gate::new()?;
        let child = Child::spawn(|| {
            let gpu = Gpu::new()?;
            let adapter = gpu.device().adapter();
            let log = PagingLog::of(adapter)?;
            log.control("start")?;
            let allocation = gpu.allocate_local(2048 * PAGE)?;
            adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
            let flags = ResidentFlags::empty();
            let value = gpu.paging().make_resident(&[&allocation], flags)?.value()?;
            ensure!(value != 0);
            ready.open()?;
            loop {
                std::thread::park();
            }
        })?;
        ready.wait_for_child(&child)?;
        is_pinned()?;
        child.kill()?;
        reload(&with_resets)?;
    }
    reload(parameters)
}

/// The administrator may say who opens the node.
fn node_mode(parameters: &str) -> TestResult {
    use std::os::unix::fs::PermissionsExt;
    for (given, expected) in [("mode=0640", 0o640), ("", 0o666)] {
        module::unload()?;
        module::load(&format!("{parameters} {given}"))?;
        eventually("the node is there", || Dxg::open().is_ok())?;
        let node = std::fs::metadata(Dxg::open()?.path())?;
        ensure_eq!(node.permissions().mode() & 0o777, expected, "{given}");
    }
    Ok(())
}

/// A module that refuses to be loaded leaves nothing behind that is in the way of the next load.
fn refused_parameters(parameters: &str) -> TestResult {
    module::unload()?;
    for given in ["name=", "adapters=0", "global_access=3"] {
        let refused = module::try_load(&format!("{parameters} {given}"));
        ensure_eq!(refused, Err(Errno::INVAL), "{given}");
        ensure!(!Path::new(soft_adapter::ROOT).exists(), "{given}");
    }
    module::load(parameters)?;
    is_free(parameters)
}

/// All tests, with the outcome of each. The node is not open before the first and after the last.
fn outcomes() -> Vec<(&'static str, TestResult)> {
    let names = [
        "the module stays while the device is open, and goes after the last close",
        "the module stays while an NT handle is open, and goes after the last close",
        "the module stays while a fence point is open, and goes after the last close",
        "FEN-162 the module stays while a sync file is open, and goes after the last close",
        "CPU-36 the module stays while a CPU event is there, and goes after the last close",
        "the module stays while a process has only a mapping, and goes after its end",
        "RES-110 the module stays while a dma-buf is open, mapped or used by another driver",
        "RES-110 the module stays while a weak reference or a watch is open",
        "the mode of the node is a parameter",
        "a parameter that is refused leaves nothing behind",
        "the module goes right after its users were killed, again and again",
        "GPU-114 the module stays while engines work, and goes after the end of the process",
        "MEM-107 the module goes although root holds a paging worker",
        "MEM-60 MEM-14 the module goes although paging nodes hang",
    ];
    if !module::is_replaceable() {
        let reason = "needs root and the module file of tools/vm/run";
        return names
            .map(|name| (name, Err(Failure::Skipped(reason.into()))))
            .into();
    }
    let parameters = match module::parameters() {
        Ok(parameters) => parameters,
        Err(error) => return names.map(|name| (name, Err(error.clone()))).into(),
    };
    let then_free = |outcome: TestResult| outcome.and_then(|()| is_free(&parameters));
    let outcomes = [
        then_free(device_descriptor()),
        then_free(nt_handle()),
        then_free(fence_point()),
        then_free(sync_file()),
        then_free(cpu_event()),
        then_free(mapping()),
        then_free(dma_buf()),
        then_free(weak_and_watch()),
        node_mode(&parameters),
        refused_parameters(&parameters),
        busy(&parameters),
        engines(&parameters),
        held_worker(&parameters),
        hanging_paging_nodes(&parameters),
    ];
    names.into_iter().zip(outcomes).collect()
}

pub(crate) fn main() {
    let outcomes = outcomes();
    outcomes
        .into_iter()
        .fold(Suite::new("unload"), |suite, (name, outcome)| {
            suite.test(name, || outcome)
        })
        .run()
}
