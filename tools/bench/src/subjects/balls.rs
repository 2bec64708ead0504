// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways for two processes to wake each other in turn. Every way has two sides that are made from
//! the same descriptors: one serves, the other returns.

mod keyed_mutex;
mod socket;

use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use opendxg::{Access, Device, Dxg, EventFd, MonitoredFence, NtHandle, SyncFlags};
use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use rustix::thread::futex;

pub use self::keyed_mutex::KeyedMutex;
pub use self::socket::{FileServer, Socket};
use super::names;
use crate::ntsync::{Event, Ntsync};
use crate::syncobj::{Drm, Timeline};

/// One side of a way for two processes to wake each other.
pub trait Ball {
    /// Number of the way.
    fn kind(&self) -> u64;
    /// Name of the way.
    fn name(&self) -> &'static str;
    /// What the other side needs.
    fn fds(&self) -> Vec<BorrowedFd<'_>>;
    /// Wakes the other side and sleeps until it has answered.
    fn serve(&mut self);
    /// Sleeps until woken, and answers.
    fn echo(&mut self);
}

/// Numbers of the ways.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Kind {
    Fence,
    FenceEvent,
    Ntsync,
    Syncobj,
    Eventfd,
    Futex,
    Socket,
    KeyedMutex,
    FileServer,
}

/// The other side of a ball, in the second process.
pub fn catch(kind: u64, fds: Vec<OwnedFd>) -> Box<dyn Ball> {
    let mut fds = fds.into_iter();
    let mut next = || fds.next().expect("enough descriptors");
    match kind {
        kind if kind == Kind::Fence as u64 => Box::new(Fence::open(next(), false)),
        kind if kind == Kind::FenceEvent as u64 => Box::new(Fence::open(next(), true)),
        kind if kind == Kind::Ntsync as u64 => Box::new(NtsyncEvents {
            ntsync: next().into(),
            ping: next().into(),
            pong: next().into(),
        }),
        kind if kind == Kind::Syncobj as u64 => Box::new(Syncobj::import(next())),
        kind if kind == Kind::Eventfd as u64 => Box::new(Eventfds {
            ping: next(),
            pong: next(),
        }),
        kind if kind == Kind::Futex as u64 => Box::new(Futex::map(next())),
        kind if kind == Kind::Socket as u64 => Box::new(Socket::other_side(next())),
        kind if kind == Kind::KeyedMutex as u64 => Box::new(KeyedMutex::open(next())),
        kind if kind == Kind::FileServer as u64 => Box::new(FileServer::other_side(next(), next())),
        _ => panic!("no such ball"),
    }
}

/// A monitored fence whose odd values belong to one side, the even ones to the other.
pub struct Fence {
    fence: MonitoredFence,
    nt_handle: NtHandle,
    value: u64,
    /// Sleeps in poll on this instead of in the wait call.
    event: Option<EventFd>,
}

impl Fence {
    /// Makes the fence. With `by_event` the sides wait for an eventfd instead of blocking in the
    /// call.
    pub fn new(device: &Device, by_event: bool) -> Self {
        let fence = device.create_shareable_fence(0).expect("create a fence");
        let nt_handle = fence.share(Access::ALL).expect("share a fence");
        Self::with(fence, nt_handle, by_event)
    }

    fn open(fd: OwnedFd, by_event: bool) -> Self {
        let dxg = Dxg::open().expect("open the driver");
        let device = dxg.adapters().expect("adapters")[0].create_device();
        let nt_handle = NtHandle::from(fd);
        let flags = SyncFlags::empty();
        let fence = device
            .expect("create a device")
            .open_fence(&nt_handle, flags);
        Self::with(fence.expect("open a fence"), nt_handle, by_event)
    }

    fn with(fence: MonitoredFence, nt_handle: NtHandle, by_event: bool) -> Self {
        let event = by_event.then(|| EventFd::new().expect("make an eventfd"));
        Self {
            fence,
            nt_handle,
            value: 0,
            event,
        }
    }

    fn signal(&mut self) {
        self.value += 1;
        self.fence.signal(self.value).expect("signal a fence");
    }

    fn wait(&mut self) {
        self.value += 1;
        match &self.event {
            None => self.fence.wait(self.value).expect("wait for a fence"),
            Some(event) => {
                self.fence.wait_async(self.value, event).expect("wait");
                let count = event.wait(None).expect("poll an eventfd");
                assert_eq!(count, Some(1), "an event of one wait");
            }
        }
        assert_eq!(self.fence.value(), self.value, "value after a wait");
    }
}

impl Ball for Fence {
    fn kind(&self) -> u64 {
        if self.event.is_some() {
            Kind::FenceEvent as u64
        } else {
            Kind::Fence as u64
        }
    }

    fn name(&self) -> &'static str {
        if self.event.is_some() {
            "opendxg event"
        } else {
            names::OPENDXG
        }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.nt_handle.as_fd()]
    }

    fn serve(&mut self) {
        self.signal();
        self.wait();
    }

    fn echo(&mut self) {
        self.wait();
        self.signal();
    }
}

/// Two events that reset themselves.
pub struct NtsyncEvents {
    ntsync: Ntsync,
    ping: Event,
    pong: Event,
}

impl NtsyncEvents {
    /// Makes the events, in an instance of the device of their own.
    pub fn new() -> Self {
        let ntsync = Ntsync::open().expect("open ntsync");
        let ping = ntsync.event(false, false).expect("make an event");
        let pong = ntsync.event(false, false).expect("make an event");
        Self { ntsync, ping, pong }
    }
}

impl Default for NtsyncEvents {
    fn default() -> Self {
        Self::new()
    }
}

impl Ball for NtsyncEvents {
    fn kind(&self) -> u64 {
        Kind::Ntsync as u64
    }

    fn name(&self) -> &'static str {
        names::NTSYNC
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.ntsync.as_fd(), self.ping.as_fd(), self.pong.as_fd()]
    }

    fn serve(&mut self) {
        self.ping.set().expect("set an event");
        self.ntsync.wait(&self.pong).expect("wait for an event");
    }

    fn echo(&mut self) {
        self.ntsync.wait(&self.ping).expect("wait for an event");
        self.pong.set().expect("set an event");
    }
}

/// A timeline whose odd points belong to one side, the even ones to the other.
pub struct Syncobj {
    timeline: Timeline,
    exported: OwnedFd,
    point: u64,
}

impl Syncobj {
    /// Makes the timeline.
    pub fn new(drm: &Drm) -> Self {
        let timeline = drm.timeline().expect("make a timeline");
        let exported = timeline.export().expect("export a timeline");
        Self {
            timeline,
            exported,
            point: 0,
        }
    }

    /// Opens the timeline in an open file of this process: one that two processes use would change
    /// its owner with every call, which waits for RCU.
    fn import(exported: OwnedFd) -> Self {
        let (drm, _) = Drm::find().expect("a device that offers timelines");
        Self {
            timeline: drm.import(&exported).expect("import a timeline"),
            exported,
            point: 0,
        }
    }

    fn signal(&mut self) {
        self.point += 1;
        self.timeline.signal(self.point).expect("signal a point");
    }

    fn wait(&mut self) {
        self.point += 1;
        self.timeline.wait(self.point).expect("wait for a point");
    }
}

impl Ball for Syncobj {
    fn kind(&self) -> u64 {
        Kind::Syncobj as u64
    }

    fn name(&self) -> &'static str {
        names::SYNCOBJ
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.exported.as_fd()]
    }

    fn serve(&mut self) {
        self.signal();
        self.wait();
    }

    fn echo(&mut self) {
        self.wait();
        self.signal();
    }
}

/// Two eventfds, read with blocking reads.
pub struct Eventfds {
    ping: OwnedFd,
    pong: OwnedFd,
}

impl Eventfds {
    /// Makes the eventfds.
    pub fn new() -> Self {
        let make = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("make an eventfd");
        Self {
            ping: make(),
            pong: make(),
        }
    }
}

impl Default for Eventfds {
    fn default() -> Self {
        Self::new()
    }
}

fn add_one(event: &OwnedFd) {
    rustix::io::write(event, &1u64.to_ne_bytes()).expect("write an eventfd");
}

fn take(event: &OwnedFd) {
    let mut count = [0; 8];
    rustix::io::read(event, &mut count).expect("read an eventfd");
    assert_eq!(u64::from_ne_bytes(count), 1, "count of an eventfd");
}

impl Ball for Eventfds {
    fn kind(&self) -> u64 {
        Kind::Eventfd as u64
    }

    fn name(&self) -> &'static str {
        names::EVENTFD
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.ping.as_fd(), self.pong.as_fd()]
    }

    fn serve(&mut self) {
        add_one(&self.ping);
        take(&self.pong);
    }

    fn echo(&mut self) {
        take(&self.ping);
        add_one(&self.pong);
    }
}

/// A word in shared memory whose odd values belong to one side, the even ones to the other.
pub struct Futex {
    memory: OwnedFd,
    word: NonNull<AtomicU32>,
    value: u32,
}

impl Futex {
    /// Makes the memory.
    pub fn new() -> Self {
        let memory = rustix::fs::memfd_create("futex", MemfdFlags::CLOEXEC).expect("memfd");
        rustix::fs::ftruncate(&memory, 4).expect("memfd");
        Self::map(memory)
    }

    fn map(memory: OwnedFd) -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel.
        let word = unsafe { mmap(null_mut(), 4, protection, MapFlags::SHARED, &memory, 0) };
        let word = NonNull::new(word.expect("map memory").cast()).expect("not mapped at 0");
        Self {
            memory,
            word,
            value: 0,
        }
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: mapped until drop, aligned; atomics may change under a reference.
        unsafe { self.word.as_ref() }
    }

    fn signal(&mut self) {
        self.value += 1;
        // ORDERING: pairs with the load in `wait`.
        self.word().store(self.value, Ordering::Release);
        futex::wake(self.word(), futex::Flags::empty(), 1).expect("futex wake");
    }

    fn wait(&mut self) {
        let before = self.value;
        self.value += 1;
        // ORDERING: pairs with the store in `signal`.
        while self.word().load(Ordering::Acquire) != self.value {
            match futex::wait(self.word(), futex::Flags::empty(), before, None) {
                Ok(()) | Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => panic!("futex wait: {error}"),
            }
        }
    }
}

impl Default for Futex {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Futex {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which no reference is left. A failure would leave it mapped.
        let _ = unsafe { munmap(self.word.as_ptr().cast(), 4) };
    }
}

impl Ball for Futex {
    fn kind(&self) -> u64 {
        Kind::Futex as u64
    }

    fn name(&self) -> &'static str {
        names::FUTEX
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.memory.as_fd()]
    }

    fn serve(&mut self) {
        self.signal();
        self.wait();
    }

    fn echo(&mut self) {
        self.wait();
        self.signal();
    }
}
