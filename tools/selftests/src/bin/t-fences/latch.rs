// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a wait has seen stays seen while a signal handler runs.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use opendxg::raw::Argument;
use opendxg::uapi::D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU;
use opendxg::{Device, FenceValues, MonitoredFence, Status};
use selftests::blocked::Blocked;
use selftests::call::succeeds;
use selftests::child::{in_child, Child, Gate};
use selftests::time::{a_while, eventually};
use selftests::{ensure, ensure_eq, fails_with, fds, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-16 FEN-19 a handler does not make a wait forget",
            latched,
        )
        .test("FEN-34 a pulse while the handler runs is not lost", pulse)
        .test(
            "FEN-19 a handler without SA_RESTART ends the wait for good",
            forgotten,
        )
        .test(
            "FEN-28 the last handle goes while the handler runs",
            orphaned,
        )
        .test("FEN-16 another wait is not the interrupted one", another)
        .test(
            "FEN-18 arrays that change during the sleep are a new wait",
            changed,
        )
        .test(
            "FEN-18 FEN-34 arrays that change and change back are the same wait",
            changed_back,
        )
        .test("FEN-89 a process dies while handlers run", killed)
}

/// How often the handler ran.
static HANDLED: AtomicU32 = AtomicU32::new(0);
/// What the handler reads a byte from, or -1.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
    let pipe = PIPE.load(Ordering::Relaxed);
    if pipe >= 0 {
        let mut byte = 0u8;
        // SAFETY: a plain system call that writes one byte.
        unsafe { libc::read(pipe, (&raw mut byte).cast(), 1) };
    }
}

/// Installs the handler. Only in a child process: handlers belong to the process.
fn install(flags: i32) -> TestResult {
    // SAFETY: a zeroed sigaction is a valid value; the handler does what a handler may do.
    let done = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut())
    };
    ensure_eq!(done, 0);
    Ok(())
}

/// A handler that runs until it is let go.
struct Held(OwnedFd, OwnedFd);

impl Held {
    fn new() -> TestResult<Self> {
        let (reader, writer) = fds::pipe()?;
        PIPE.store(reader.as_raw_fd(), Ordering::Relaxed);
        Ok(Self(reader, writer))
    }

    fn let_go(self) -> TestResult {
        PIPE.store(-1, Ordering::Relaxed);
        rustix::io::write(&self.1, &[1])?;
        // The handler reads from the other end still.
        eventually("the handler has read", || {
            let mut fds = [rustix::event::PollFd::new(
                &self.0,
                rustix::event::PollFlags::IN,
            )];
            let now = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            rustix::event::poll(&mut fds, Some(&now)) == Ok(0)
        })
    }
}

/// Sends the signal and waits until the handler runs.
fn interrupt<T: Send + 'static>(blocked: &Blocked<T>) -> TestResult {
    let before = HANDLED.load(Ordering::Relaxed);
    blocked.signal(libc::SIGUSR1)?;
    eventually("the handler runs", || {
        HANDLED.load(Ordering::Relaxed) > before
    })
}

type Fence = Arc<MonitoredFence>;

fn two() -> TestResult<(Device, Fence, Fence)> {
    let device = fixture::device()?;
    let (a, b) = (device.create_fence(0)?, device.create_fence(0)?);
    Ok((device, Arc::new(a), Arc::new(b)))
}

/// A thread that waits for 1 of both.
fn both(device: &Device, a: &Fence, b: &Fence) -> TestResult<Blocked<opendxg::Result<()>>> {
    let list = FenceValues::new().with(a, 1).with(b, 1);
    let device = device.clone();
    Blocked::new(move || device.wait_all(&list))
}

fn latched() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let (device, a, b) = two()?;
        for _ in 0..20 {
            let blocked = both(&device, &a, &b)?;
            a.signal(1)?;
            a.signal_rewind(0)?;
            for _ in 0..3 {
                interrupt(&blocked)?;
                eventually("it sleeps again", || {
                    selftests::task::is_blocked(blocked.id())
                })?;
            }
            b.signal(1)?;
            blocked.join()??;
            b.signal_rewind(0)?;
        }
        Ok(())
    })
}

fn pulse() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let (_device, fence, _) = two()?;
        let waiter = fence.clone();
        let blocked = Blocked::new(move || waiter.wait(10))?;
        let held = Held::new()?;
        interrupt(&blocked)?;
        fence.signal(10)?;
        fence.signal_rewind(3)?;
        // The thread is in the handler, and is not woken there.
        a_while();
        held.let_go()?;
        blocked.join()??;
        ensure_eq!(fence.value(), 3);
        Ok(())
    })
}

fn forgotten() -> TestResult {
    in_child(|| {
        install(0)?;
        let (device, a, b) = two()?;
        let list = FenceValues::new().with(&a, 1).with(&b, 1);
        let waiter = device.clone();
        let blocked = Blocked::new(move || loop {
            // The same call from the same place, again and again: each is a new one.
            match waiter.wait_all(&list) {
                Err(error) if error.is_interrupted() => continue,
                other => return other,
            }
        })?;
        a.signal(1)?;
        a.signal_rewind(0)?;
        interrupt(&blocked)?;
        eventually("it sleeps again", || {
            selftests::task::is_blocked(blocked.id())
        })?;
        b.signal(1)?;
        blocked.stays()?;
        a.signal(1)?;
        blocked.join()??;
        Ok(())
    })
}

fn orphaned() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let device = fixture::device()?;
        let fence = device.create_fence(0)?;
        let list = FenceValues::new().with(&fence, 1);
        let waiter = device.clone();
        let blocked = Blocked::new(move || waiter.wait_all(&list))?;
        let held = Held::new()?;
        interrupt(&blocked)?;
        fence.destroy()?;
        held.let_go()?;
        fails_with(blocked.join()?, Status::INVALID_HANDLE)
    })
}

/// A handler that makes a wait of its own, on a fence that is signalled.
static OTHER: std::sync::OnceLock<MonitoredFence> = std::sync::OnceLock::new();

extern "C" fn waiting_handler(_: i32) {
    if let Some(fence) = OTHER.get() {
        let _ = fence.wait(1);
    }
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn another() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let (device, a, b) = two()?;
        let _ = OTHER.set(device.create_fence(1)?);
        // SAFETY: as in `install`.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = waiting_handler as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut());
        }
        let blocked = both(&device, &a, &b)?;
        interrupt(&blocked)?;
        eventually("it sleeps again", || {
            selftests::task::is_blocked(blocked.id())
        })?;
        b.signal(1)?;
        blocked.stays()?;
        a.signal(1)?;
        blocked.join()??;
        // Nothing of the first wait is left.
        let text = std::fs::read_to_string(format!(
            "/proc/self/fdinfo/{}",
            std::fs::File::open("/dev/dxg")?.as_raw_fd()
        ));
        ensure!(!text.unwrap_or_default().contains("waiters=1"));
        Ok(())
    })
}

/// The arrays of a wait for one or two fences, which other threads may change.
struct Arrays {
    device: u32,
    handles: Vec<u32>,
    values: Vec<AtomicU64>,
}

impl Arrays {
    /// A wait for `value` of all fences.
    fn new(device: &Device, fences: &[&Fence], value: u64) -> Arc<Self> {
        Arc::new(Self {
            device: device.handle().0,
            handles: fences.iter().map(|fence| fence.handle().0).collect(),
            values: fences.iter().map(|_| AtomicU64::new(value)).collect(),
        })
    }

    fn set(&self, value: u64) {
        for place in &self.values {
            place.store(value, Ordering::SeqCst);
        }
    }

    /// A thread that waits with these arrays.
    fn wait(self: &Arc<Self>) -> TestResult<Blocked<TestResult>> {
        let raw = fixture::raw()?;
        let arrays = self.clone();
        Blocked::new(move || {
            let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
            arg.hDevice = arrays.device;
            arg.ObjectCount = arrays.handles.len() as u32;
            arg.ObjectHandleArray = arrays.handles.as_ptr() as u64;
            arg.FenceValueArray = arrays.values.as_ptr() as u64;
            succeeds(&raw, &mut arg)
        })
    }
}

/// For the path of one element and that of several.
fn for_one_and_two(test: impl Fn(&Device, &[&Fence]) -> TestResult + Copy) -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let (device, a, b) = two()?;
        test(&device, &[&a])?;
        a.signal_rewind(0)?;
        test(&device, &[&a, &b])
    })
}

fn changed() -> TestResult {
    for_one_and_two(|device, fences| {
        let arrays = Arrays::new(device, fences, 1);
        let blocked = arrays.wait()?;
        // The thread that sleeps has copied 1; the repeated call reads 5.
        arrays.set(5);
        interrupt(&blocked)?;
        eventually("it sleeps again", || {
            selftests::task::is_blocked(blocked.id())
        })?;
        fences.iter().try_for_each(|fence| fence.signal(1))?;
        blocked.stays()?;
        fences.iter().try_for_each(|fence| fence.signal(5))?;
        blocked.join()?
    })
}

fn changed_back() -> TestResult {
    for_one_and_two(|device, fences| {
        let arrays = Arrays::new(device, fences, 1);
        let blocked = arrays.wait()?;
        // What the memory holds when the thread is interrupted does not matter.
        arrays.set(5);
        let held = Held::new()?;
        interrupt(&blocked)?;
        arrays.set(1);
        for fence in fences {
            fence.signal(1)?;
            fence.signal_rewind(0)?;
        }
        a_while();
        held.let_go()?;
        // A new wait would have missed the pulse.
        blocked.join()?
    })
}

fn killed() -> TestResult {
    let gate = Gate::new()?;
    let child = Child::spawn(|| {
        install(libc::SA_RESTART)?;
        let (device, a, b) = two()?;
        let blocked: Vec<_> = (0..4)
            .map(|_| both(&device, &a, &b))
            .collect::<TestResult<_>>()?;
        let _held = Held::new()?;
        blocked.iter().try_for_each(interrupt)?;
        gate.open()?;
        loop {
            a_while();
        }
    })?;
    gate.wait()?;
    child.kill()
    // The runner compares the counters.
}
