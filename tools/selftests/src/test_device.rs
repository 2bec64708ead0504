// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other side of dma-bufs, made for tests: `tools/selftests/kmod`. It exports buffers as
//! drivers of graphics cards do, and tells how they were used.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::{module, skip, TestResult};

const NODE: &str = "/dev/dxg_test_dmabuf";

/// What a buffer cannot do.
pub mod cannot {
    /// Has no mapping in the kernel.
    pub const VMAP: u32 = 1;
    /// Has an operation for it that fails.
    pub const VMAP_FAILS: u32 = 2;
    /// Is out of reach of processors.
    pub const MMAP: u32 = 4;
    /// Its descriptors are for reading only.
    pub const WRITE: u32 = 8;
    /// Has all pages mapped at once, and no faults.
    pub const FAULT: u32 = 16;
    /// Cannot be attached to.
    pub const ATTACH: u32 = 32;
}

/// How a device uses a buffer.
pub mod direction {
    /// It reads and writes.
    pub const BOTH: u32 = 0;
    /// It reads.
    pub const READS: u32 = 1;
    /// It writes.
    pub const WRITES: u32 = 2;
}

/// How often a buffer was used.
#[repr(C)]
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Uses {
    fd: i32,
    /// Attachments of devices.
    pub attached: u32,
    /// Mappings in devices.
    pub mapped: u32,
    /// Mappings in the kernel.
    pub vmapped: u32,
    /// Mappings in processes.
    pub mmapped: u32,
    /// Accesses of processors that began.
    pub begun: u32,
    /// Accesses of processors that ended.
    pub ended: u32,
    /// Attachments that have ended.
    pub detached: u32,
    /// Mappings in devices that have ended.
    pub unmapped: u32,
}

#[repr(C)]
struct Create {
    size: u64,
    flags: u32,
    fd: i32,
}

#[repr(C)]
struct Import {
    fd: i32,
    direction: u32,
}

/// The device.
pub struct TestDevice(File);

impl TestDevice {
    /// Opens it, and loads its driver before; skips the test where there is none.
    pub fn open() -> TestResult<Self> {
        if File::open(NODE).is_err() {
            let driver = std::env::current_exe()?.with_file_name("dxg_test_dmabuf.ko");
            if !driver.exists() || !module::is_replaceable() {
                skip!("no dxg_test_dmabuf.ko beside this program: tools/env/module --tests");
            }
            module::load_file(&driver, "")?;
        }
        let node = OpenOptions::new().read(true).write(true).open(NODE)?;
        Ok(Self(node))
    }

    fn ioctl<T>(&self, code: u64, arg: &mut T) -> rustix::io::Result<()> {
        // SAFETY: each caller names the code of its struct.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), code, &raw mut *arg) } < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        Ok(())
    }

    /// A new buffer with these [limits](cannot).
    pub fn create(&self, size: u64, flags: u32) -> TestResult<OwnedFd> {
        let mut arg = Create {
            size,
            flags,
            fd: -1,
        };
        self.ioctl(0xc010_7801, &mut arg)?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
    }

    /// How often a buffer of its own was used.
    pub fn uses(&self, file: impl AsFd) -> TestResult<Uses> {
        let fd = file.as_fd().as_raw_fd();
        let mut uses = Uses {
            fd,
            ..Default::default()
        };
        self.ioctl(0xc024_7802, &mut uses)?;
        uses.fd = 0;
        Ok(uses)
    }

    /// Attaches to a buffer of anybody, maps it in the device, and ends.
    pub fn import(&self, file: impl AsFd, direction: u32) -> rustix::io::Result<()> {
        let fd = file.as_fd().as_raw_fd();
        self.ioctl(0x4008_7803, &mut Import { fd, direction })
    }
}

impl AsFd for TestDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
