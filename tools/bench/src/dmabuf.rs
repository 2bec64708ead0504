// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nearest objects that the kernel has without us: dma-bufs (linux/udmabuf.h), and how they
//! travel.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Result;

use crate::fds::{channel, receive, send};
use crate::ioctl::{ioctl, iow};

/// Bytes of every buffer that is measured: one page.
pub const SIZE: u64 = 4096;

#[repr(C)]
struct CreateArgs {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

const CREATE: u32 = iow::<CreateArgs>(b'u', 0x42);
const CLOEXEC: u32 = 1;

/// `/dev/udmabuf`, which makes dma-bufs of memory files.
#[derive(Debug)]
pub struct Udmabuf {
    node: OwnedFd,
    memory: OwnedFd,
}

impl Udmabuf {
    /// Opens the device.
    pub fn open() -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let node = rustix::fs::open("/dev/udmabuf", flags, Mode::empty())?;
        Ok(Self {
            node,
            memory: memory()?,
        })
    }

    /// Makes a dma-buf of memory that exists.
    pub fn create(&self) -> Result<OwnedFd> {
        self.of(&self.memory)
    }

    /// Makes a dma-buf and its memory.
    pub fn create_with_memory(&self) -> Result<OwnedFd> {
        self.of(&memory()?)
    }

    fn of(&self, memory: &OwnedFd) -> Result<OwnedFd> {
        let mut args = CreateArgs {
            memfd: memory.as_raw_fd() as u32,
            flags: CLOEXEC,
            offset: 0,
            size: SIZE,
        };
        // SAFETY: the argument of this code, without addresses.
        let fd = unsafe { ioctl(&self.node, CREATE, &mut args) }?;
        // SAFETY: the call returned a new descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A memory file as udmabuf wants it.
fn memory() -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("bench", flags)?;
    rustix::fs::ftruncate(&memory, SIZE)?;
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK)?;
    Ok(memory)
}

/// Sends a descriptor through a socket to itself, as one process would to another, but without its
/// wake-up.
pub struct Passing(OwnedFd, OwnedFd);

impl Passing {
    /// Makes the sockets.
    pub fn new() -> Self {
        let (here, there) = channel();
        Self(here, there)
    }

    /// Sends it, receives it and closes what arrived.
    pub fn pass(&self, fd: impl AsFd) {
        send(&self.0, [0; 2], &[fd.as_fd()]);
        let (_, fds) = receive(&self.1).expect("both ends are open");
        assert_eq!(fds.len(), 1);
    }
}

impl Default for Passing {
    fn default() -> Self {
        Self::new()
    }
}
