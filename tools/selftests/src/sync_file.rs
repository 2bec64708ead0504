// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync files as the kernel shows them, and one of another driver that a test signals.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::SyncFile;

use crate::dma_buf::{export_sync_file, Vgem, READ, WRITE};
use crate::time::eventually;
use crate::{ensure, ensure_eq, TestResult};

/// What a sync file that has not signalled has as its status.
pub const PENDING: i32 = 0;
/// What one has that has signalled without an error.
pub const SIGNALLED: i32 = 1;

/// `struct sync_file_info`.
#[derive(Default)]
#[repr(C)]
struct FileInfo {
    name: [u8; 32],
    status: i32,
    flags: u32,
    count: u32,
    pad: u32,
    fences: u64,
}

/// `struct sync_fence_info`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct FenceInfo {
    timeline: [u8; 32],
    driver: [u8; 32],
    status: i32,
    flags: u32,
    timestamp: u64,
}

/// `struct sync_merge_data`.
#[derive(Default)]
#[repr(C)]
struct Merge {
    name: [u8; 32],
    other: i32,
    merged: i32,
    flags: u32,
    pad: u32,
}

fn ioctl<T>(file: impl AsFd, code: u64, arg: &mut T) -> TestResult {
    // SAFETY: each caller names the code of its struct.
    let answer = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), code, &raw mut *arg) };
    if answer < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(())
}

const FILE_INFO: u64 = 0xc038_3e04;

/// The status of a sync file: [`PENDING`], [`SIGNALLED`], or the error it has signalled with.
pub fn status(file: impl AsFd) -> TestResult<i32> {
    let mut info = FileInfo::default();
    ioctl(file, FILE_INFO, &mut info)?;
    Ok(info.status)
}

/// The driver of the only fence of a pending sync file.
pub fn driver(file: impl AsFd) -> TestResult<String> {
    let mut fence = FenceInfo::default();
    let mut info = FileInfo {
        count: 1,
        fences: (&raw mut fence) as u64,
        ..FileInfo::default()
    };
    ioctl(file, FILE_INFO, &mut info)?;
    ensure_eq!(info.count, 1, "fences");
    let length = fence.driver.iter().position(|&byte| byte == 0);
    let name = &fence.driver[..length.unwrap_or(fence.driver.len())];
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// A sync file that signals when both have.
pub fn merged(one: impl AsFd, other: impl AsFd) -> TestResult<SyncFile> {
    const MERGE: u64 = 0xc030_3e03;
    let mut arg = Merge {
        other: other.as_fd().as_raw_fd(),
        ..Merge::default()
    };
    ioctl(one, MERGE, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    Ok(SyncFile::from(unsafe { OwnedFd::from_raw_fd(arg.merged) }))
}

/// Waits until a sync file has signalled, and demands that it did so with this status.
#[track_caller]
pub fn ends_with(file: impl AsFd, expected: i32) -> TestResult {
    let mut last = Ok(PENDING);
    eventually("the sync file signals", || {
        last = status(&file);
        !matches!(last, Ok(PENDING))
    })?;
    let found = last?;
    let place = core::panic::Location::caller();
    ensure!(found == expected, "{place}: status {found}, not {expected}");
    Ok(())
}

/// A buffer of vgem without a fence.
pub struct Idle {
    vgem: Vgem,
    handle: u32,
    buffer: OwnedFd,
}

impl Idle {
    /// A new one, of a page.
    pub fn new() -> TestResult<Self> {
        let vgem = Vgem::open()?;
        let handle = vgem.create(1)?;
        let buffer = vgem.export(handle)?;
        Ok(Self {
            vgem,
            handle,
            buffer,
        })
    }

    /// The buffer.
    pub fn buffer(&self) -> &OwnedFd {
        &self.buffer
    }

    /// A device begins to write to it.
    pub fn begin(self) -> TestResult<Foreign> {
        let fence = self.vgem.fence(self.handle)?;
        Ok(Foreign { idle: self, fence })
    }
}

/// A sync file of vgem, which the test signals. The driver does so by itself after ten seconds, and
/// when this is dropped.
pub struct Foreign {
    idle: Idle,
    fence: u32,
}

impl Foreign {
    /// One that has not signalled.
    pub fn new() -> TestResult<Self> {
        Idle::new()?.begin()
    }

    /// The sync file.
    pub fn file(&self) -> TestResult<SyncFile> {
        Ok(export_sync_file(self.buffer(), READ | WRITE)?.into())
    }

    /// The buffer that the fence is in.
    pub fn buffer(&self) -> &OwnedFd {
        self.idle.buffer()
    }

    /// Signals it.
    pub fn signal(&self) -> TestResult {
        self.idle.vgem.signal(self.fence)
    }
}
