// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners that end while another process has their descriptor of the device: what they owned is
//! gone at once, and the descriptor stays as useless as it was.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use opendxg::raw;
use opendxg::raw::Errno;
use opendxg::uapi::DXG_NR_NOP;
use opendxg::{Access, Dxg, EventFd, Status};
use selftests::blocked::Blocked;
use selftests::child::{Child, Gate};
use selftests::fds::{pipe, receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::resource::lock;
use selftests::rounds::{rounds, Dice};
use selftests::sharing::{Acquired, Client, How, Local, Shape, What};
use selftests::task::{adopt_orphans, reap};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use crate::t_process::exec::{become_living_helper, LIVES};
use crate::t_process::kill::busy;

/// How the owner ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Exit,
    Kill,
    Exec,
}

/// What the owner has done with its own descriptors of the device when it ends.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    /// Nothing.
    Keeps,
    /// Closed them.
    Closed,
    /// Made exec keep them.
    Inherits,
}

/// The descriptors of the device that this process has, as numbers.
fn device_descriptors() -> TestResult<Vec<i32>> {
    let node = Dxg::open()?;
    let path = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}"));
    let device = path(node.as_fd().as_raw_fd())?;
    let entries = std::fs::read_dir("/proc/self/fd")?.collect::<Result<Vec<_>, _>>()?;
    let numbers = entries
        .iter()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let ours = |fd: &i32| *fd != node.as_fd().as_raw_fd() && path(*fd).is_ok_and(|it| it == device);
    Ok(numbers.filter(ours).collect())
}

impl Own {
    /// Does it. What uses the descriptors must not be used or dropped any more.
    fn prepare(self) -> TestResult {
        let fds = device_descriptors()?;
        ensure!(!fds.is_empty());
        for fd in fds {
            match self {
                Self::Keeps => {}
                // SAFETY: a descriptor of this process, whose users are not used any more.
                Self::Closed => drop(unsafe { OwnedFd::from_raw_fd(fd) }),
                Self::Inherits => {
                    // SAFETY: as above; changes a flag of it.
                    ensure_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }, 0);
                }
            }
        }
        Ok(())
    }
}

/// What another process gets from the owner.
struct Passed {
    device: OwnedFd,
    weak: OwnedFd,
    global: u32,
}

/// Two ends of a way to pass it.
struct Way {
    here: OwnedFd,
    there: OwnedFd,
    numbers: (OwnedFd, OwnedFd),
}

impl Way {
    fn new() -> TestResult<Self> {
        let (here, there) = socket_pair()?;
        let numbers = pipe()?;
        Ok(Self {
            here,
            there,
            numbers,
        })
    }

    /// In the owner: passes the device, and two ways to a resource that it owns.
    fn pass(&self, client: &Client, resource: &Local) -> TestResult {
        send(&self.there, Dxg::open()?)?;
        send(&self.there, client.open_weak(resource.target())?)?;
        rustix::io::write(&self.numbers.1, &resource.global().to_ne_bytes())?;
        Ok(())
    }

    fn receive(&self) -> TestResult<Passed> {
        let (device, weak) = (receive(&self.here)?, receive(&self.here)?);
        let mut global = [0; 4];
        rustix::io::read(&self.numbers.0, &mut global)?;
        let global = u32::from_ne_bytes(global);
        Ok(Passed {
            device,
            weak,
            global,
        })
    }
}

impl Passed {
    /// Demands that the resource is there, by every way.
    fn is_alive(&self, client: &Client) -> TestResult {
        client.resolve_weak(What::Resource, &self.weak)?.destroy()?;
        Ok(client
            .open_global(Shape::Resource, self.global)?
            .destroy()?)
    }

    /// Demands that nothing of the owner is left.
    fn is_dead(&self, client: &Client, watch: &Watch) -> TestResult {
        let (now, start) = (watch.now()?, watch.at_start());
        ensure_eq!(now.total_objects, start.total_objects);
        ensure_eq!(now.total_handles, start.total_handles);
        ensure_eq!(now.total_waiters, start.total_waiters);
        for total in ["bytes", "cpu-mappings"] {
            ensure!(start.other_totals.contains_key(total), "no total {total}");
            ensure_eq!(now.other_totals.get(total), start.other_totals.get(total));
        }
        let resolved = client.resolve_weak(What::Resource, &self.weak);
        fails_with(resolved, Status::NOT_FOUND)?;
        let opened = client.open_global(Shape::Resource, self.global);
        fails_with(opened, Status::INVALID_PARAMETER)
    }

    /// Demands that the descriptor is refused as before, and shows a process that has nothing.
    fn is_useless(&self) -> TestResult {
        let code = raw::code(DXG_NR_NOP, 0);
        let answer = fixture::raw()?.ioctl_on(&self.device, code, 0);
        ensure_eq!(answer, Err(Errno::NOTTY));
        let number = self.device.as_raw_fd();
        let shown = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
        ensure!(shown.contains("dxg-process-handles:\t0\n"), "{shown}");
        ensure!(shown.contains("dxg-process-waiters:\t0\n"), "{shown}");
        Ok(())
    }
}

/// Everything that is kept by handles: a mapped resource, a fence with a pending wait, an acquired
/// mutex. Never dropped.
fn own_things(mutex: u32, way: &Way) -> TestResult {
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Global)?;
    let allocation = resource.allocations()[0];
    lock(client.raw(), client.device_handle(), allocation, 4096)?.leak();
    let fence = client.device().create_shareable_fence(0)?;
    let event = EventFd::new()?;
    fence.wait_async(5, &event)?;
    let mutex = client.open_global(Shape::KeyedMutex, mutex)?;
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
    way.pass(&client, &resource)?;
    core::mem::forget((client, resource, fence, event, mutex));
    Ok(())
}

fn owner_ends(end: End, own: Own) -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let watch = Watch::start()?;
    let (way, ready, go) = (Way::new()?, Gate::new()?, Gate::new()?);
    let (alive, writer) = pipe()?;
    let owner = Child::spawn(|| {
        own_things(mutex.global(), &way)?;
        own.prepare()?;
        ready.open()?;
        go.wait()?;
        match end {
            // SAFETY: ends this process without dropping anything.
            End::Exit => unsafe { libc::_exit(0) },
            End::Kill => loop {
                std::thread::park();
            },
            End::Exec => become_living_helper(&alive),
        }
    })?;
    let passed = way.receive()?;
    ready.wait()?;
    passed.is_alive(&client)?;
    let (waits, handle) = (client.clone(), mutex.handle());
    let waiter = Blocked::new(move || waits.acquire(handle, 0, None))?;
    waiter.stays()?;
    go.open()?;
    // Who has waited for the end of a process finds nothing of it.
    let running = match end {
        End::Exit => owner.join().map(|()| None)?,
        End::Kill => owner.kill().map(|()| None)?,
        End::Exec => Some(owner),
    };
    ensure_eq!(waiter.join()??, Acquired::ABANDONED);
    if running.is_some() {
        eventually("the program that is gone has no objects", || {
            passed.is_dead(&client, &watch).is_ok()
        })?;
    }
    passed.is_dead(&client, &watch)?;
    passed.is_useless()?;
    let known = watch.now()?.total_processes;
    ensure_eq!(known, watch.at_start().total_processes + 1);
    drop(passed);
    drop(writer);
    if let Some(owner) = running {
        owner.join()?;
    }
    drop(way);
    ensure_eq!(watch.now()?.total_processes, known - 1);
    mutex.destroy()?;
    Ok(())
}

extern "C" fn sleeps(_: *mut libc::c_void) -> libc::c_int {
    loop {
        // SAFETY: plain system call.
        unsafe { libc::pause() };
    }
}

/// The owner's memory lives on in a process that shares it, and so do copies of its descriptors.
fn memory_is_shared() -> TestResult {
    adopt_orphans()?;
    let watch = Watch::start()?;
    let (told, tell) = pipe()?;
    let owner = Child::spawn(|| {
        core::mem::forget(fixture::device()?.create_shareable_fence(0)?);
        let stack: &mut [u128] = vec![0; 4096].leak();
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        // SAFETY: a stack of its own, whose top is aligned, for ever.
        let pid = unsafe {
            let top = stack.as_mut_ptr_range().end.cast();
            libc::clone(sleeps, top, flags, core::ptr::null_mut())
        };
        rustix::io::write(&tell, &pid.to_ne_bytes())?;
        loop {
            std::thread::park();
        }
    })?;
    let mut pid = [0; 4];
    rustix::io::read(&told, &mut pid)?;
    let pid = i32::from_ne_bytes(pid);
    ensure!(pid > 0, "clone failed");
    ensure!(watch.now()?.total_objects > watch.at_start().total_objects);
    owner.kill()?;
    let left = watch.now()?;
    // SAFETY: plain system call; the process was handed to us and not reaped yet.
    ensure_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    reap(pid)?;
    ensure_eq!(left.total_objects, watch.at_start().total_objects);
    ensure_eq!(left.total_handles, watch.at_start().total_handles);
    watch.unchanged()
}

/// The owner ends in the middle of calls, with its threads running.
fn in_the_middle(end: End) -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    let mut dice = Dice::new(2);
    for _ in 0..rounds(10) {
        let watch = Watch::start()?;
        let (ready, (here, there)) = (Gate::new()?, socket_pair()?);
        let (alive, writer) = pipe()?;
        let moment = Duration::from_micros(dice.below(20_000).into());
        let owner = Child::spawn(|| {
            send(&there, Dxg::open()?)?;
            std::thread::scope(|scope| {
                scope.spawn(|| busy(&nt, &ready));
                match end {
                    End::Exec => {
                        ready.wait()?;
                        // Any moment will do; this only varies it.
                        std::thread::sleep(moment);
                        become_living_helper(&alive)
                    }
                    _ => Ok(()),
                }
            })
        })?;
        let device = receive(&here)?;
        let is_empty = || -> TestResult {
            let (now, start) = (watch.now()?, watch.at_start());
            ensure_eq!(now.total_objects, start.total_objects);
            ensure_eq!(now.total_handles, start.total_handles);
            ensure_eq!(now.total_waiters, start.total_waiters);
            Ok(())
        };
        if end == End::Exec {
            let program = format!("/proc/{}/cmdline", owner.pid());
            eventually("exec", || {
                std::fs::read_to_string(&program).is_ok_and(|words| words.contains(LIVES))
            })?;
            eventually("the objects go", || is_empty().is_ok())?;
            drop(writer);
            owner.join()?;
        } else {
            ready.wait()?;
            std::thread::sleep(moment);
            owner.kill()?;
        }
        is_empty()?;
        drop(device);
        watch.unchanged()?;
    }
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    let cases = [
        (End::Exit, Own::Keeps, "exits"),
        (End::Exit, Own::Closed, "closes the device and exits"),
        (End::Kill, Own::Keeps, "is killed"),
        (End::Kill, Own::Closed, "closes the device and is killed"),
        (End::Exec, Own::Keeps, "execs"),
        (End::Exec, Own::Closed, "closes the device and execs"),
        (End::Exec, Own::Inherits, "execs with the device open"),
    ];
    let suite = cases.into_iter().fold(suite, |suite, (end, own, what)| {
        let name = format!("RES-8 RES-99 FEN-89 an owner passes its descriptor on and {what}");
        suite.test(&name, move || owner_ends(end, own))
    });
    suite
        .test(
            "RES-8 kill -9 of an owner whose memory another process shares",
            memory_is_shared,
        )
        .slow(
            "RES-8 FEN-89 kill -9 at any moment while another process has the descriptor",
            Duration::from_secs(60),
            || in_the_middle(End::Kill),
        )
        .slow(
            "RES-8 FEN-89 exec at any moment while another process has the descriptor",
            Duration::from_secs(60),
            || in_the_middle(End::Exec),
        )
}
