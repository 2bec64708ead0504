// SPDX-License-Identifier: MIT OR Apache-2.0
//! The competitor `/dev/ntsync` (linux/ntsync.h).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Result;

use crate::ioctl::{ioctl, ior, iow, iowr};

#[repr(C)]
struct EventArgs {
    manual: u32,
    signaled: u32,
}

#[repr(C)]
struct MutexArgs {
    owner: u32,
    count: u32,
}

#[repr(C)]
#[derive(Default)]
struct WaitArgs {
    timeout: u64,
    objs: u64,
    count: u32,
    index: u32,
    flags: u32,
    owner: u32,
    alert: u32,
    pad: u32,
}

const WAIT_ANY: u32 = iowr::<WaitArgs>(b'N', 0x82);
const CREATE_MUTEX: u32 = iow::<MutexArgs>(b'N', 0x84);
const MUTEX_UNLOCK: u32 = iowr::<MutexArgs>(b'N', 0x85);
const CREATE_EVENT: u32 = iow::<EventArgs>(b'N', 0x87);
const EVENT_SET: u32 = ior::<u32>(b'N', 0x88);

/// An instance of the device; its objects belong together.
#[derive(Debug)]
pub struct Ntsync(OwnedFd);

/// An event.
#[derive(Debug)]
pub struct Event(OwnedFd);

/// A mutex, which belongs to owner [`OWNER`] while it is held.
#[derive(Debug)]
pub struct Mutex(OwnedFd);

/// Whom this process calls the owner of what it waits for.
const OWNER: u32 = 1;

impl Ntsync {
    /// Opens the device.
    pub fn open() -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open("/dev/ntsync", flags, Mode::empty()).map(Self)
    }

    /// Makes an event. A manual one stays signalled; the other kind releases one waiter.
    pub fn event(&self, manual: bool, signaled: bool) -> Result<Event> {
        let mut args = EventArgs {
            manual: manual.into(),
            signaled: signaled.into(),
        };
        // SAFETY: the argument of this code, without addresses.
        let fd = unsafe { ioctl(&self.0, CREATE_EVENT, &mut args) }?;
        // SAFETY: the call returned a new descriptor.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes a mutex that nobody holds.
    pub fn mutex(&self) -> Result<Mutex> {
        let mut args = MutexArgs { owner: 0, count: 0 };
        // SAFETY: the argument of this code, without addresses.
        let fd = unsafe { ioctl(&self.0, CREATE_MUTEX, &mut args) }?;
        // SAFETY: the call returned a new descriptor.
        Ok(Mutex(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Waits until the event is signalled.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.wait_for(&event.0)
    }

    /// Waits until the mutex is free, and takes it.
    pub fn acquire(&self, mutex: &Mutex) -> Result<()> {
        self.wait_for(&mutex.0)
    }

    fn wait_for(&self, object: &OwnedFd) -> Result<()> {
        let objects = [object.as_raw_fd()];
        let mut args = WaitArgs {
            timeout: u64::MAX,
            objs: objects.as_ptr() as u64,
            count: 1,
            owner: OWNER,
            ..WaitArgs::default()
        };
        // SAFETY: the argument of this code; its address is that of `count` live descriptor
        // numbers.
        unsafe { ioctl(&self.0, WAIT_ANY, &mut args) }?;
        Ok(())
    }
}

impl Event {
    /// Signals it.
    pub fn set(&self) -> Result<()> {
        let mut previous = 0u32;
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.0, EVENT_SET, &mut previous) }?;
        Ok(())
    }
}

impl Mutex {
    /// Lets go of it.
    pub fn release(&self) -> Result<()> {
        let mut args = MutexArgs {
            owner: OWNER,
            count: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.0, MUTEX_UNLOCK, &mut args) }?;
        Ok(())
    }
}

impl From<OwnedFd> for Ntsync {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<OwnedFd> for Event {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for Ntsync {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
