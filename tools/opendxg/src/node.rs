// SPDX-License-Identifier: MIT OR Apache-2.0
//! The open device node: which protocol it speaks, and how it is opened again after a fork.
//!
//! Reading the descriptor takes no lock, because a lock that another thread holds during `fork` would
//! stay locked in the child for ever. Opening again replaces the file *behind* the descriptor
//! number with `dup3`, so that no thread can ever use a number that was closed and given away.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{DupFlags, Errno, Result};

use crate::ioctl;
use crate::raw::Argument;
use crate::uapi::D3DKMT_ENUMADAPTERS2;
use crate::Status;

/// The node that is opened unless the environment variable [`DEVICE_VARIABLE`] names another.
pub const DEFAULT_DEVICE: &str = "/dev/dxg";

/// Environment variable with the path of the device node.
pub const DEVICE_VARIABLE: &str = "OPENDXG_DEVICE";

/// How calls travel to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Through the exec extension: every status arrives exactly.
    Exec,
    /// As plain ioctls, whose errno stands for one status or several: the kernel has no exec.
    Plain,
}

/// Value of [`Node::fd`] when the node is not open.
const CLOSED: RawFd = -1;

/// An open device node. All methods may be called from any thread at any time, [`Node::close`]
/// excepted.
#[derive(Debug)]
pub struct Node {
    path: PathBuf,
    /// Descriptor number or [`CLOSED`]; stays the same when the file behind it is replaced.
    fd: AtomicI32,
    /// [`Protocol::Plain`] was found. Written before the number is published.
    plain: AtomicBool,
}

impl Node {
    /// A node at the path the environment asks for, not opened yet.
    pub fn from_env() -> Self {
        let path = std::env::var_os(DEVICE_VARIABLE).unwrap_or_else(|| DEFAULT_DEVICE.into());
        Self::at(PathBuf::from(path))
    }

    /// A node at `path`, not opened yet.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            fd: AtomicI32::new(CLOSED),
            plain: AtomicBool::new(false),
        }
    }

    /// Where the node is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How calls travel to the kernel.
    pub fn protocol(&self) -> Protocol {
        if self.plain.load(Ordering::Relaxed) {
            Protocol::Plain
        } else {
            Protocol::Exec
        }
    }

    /// The descriptor, while the node is open.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self.fd.load(Ordering::Acquire) {
            CLOSED => None,
            // SAFETY: the number stays open until `close` or the drop of the node; the caller of `close`
            // promises that no call is in progress.
            fd => Some(unsafe { BorrowedFd::borrow_raw(fd) }),
        }
    }

    /// Opens the node; when it is open already, puts a freshly opened file behind its descriptor.
    ///
    /// Fails with ENOTTY when the file is not a D3DKMT device.
    pub fn open(&self) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let new = rustix::fs::open(&self.path, flags, Mode::empty())?;
        let plain = identify(new.as_fd())? == Protocol::Plain;
        self.plain.store(plain, Ordering::Relaxed);

        let old = self.fd.load(Ordering::Acquire);
        if new.as_raw_fd() == old {
            // Somebody closed our number behind our back and the kernel gave it to us again.
            let _ = new.into_raw_fd();
            return Ok(());
        }
        if is_same_device(old, new.as_fd()) {
            return replace(old, &new);
        }
        // Nothing open, or the number now belongs to a file that is none of our business.
        let fd = new.into_raw_fd();
        let order = Ordering::AcqRel;
        if let Err(other) = self.fd.compare_exchange(old, fd, order, Ordering::Acquire) {
            debug_assert_ne!(other, fd);
            // SAFETY: `fd` came from `into_raw_fd` above and was not published: another thread was
            // first, and its descriptor serves this process as well.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        Ok(())
    }

    /// Closes the node.
    ///
    /// # Safety
    ///
    /// No other call on this node is in progress.
    pub unsafe fn close(&self) {
        let fd = self.fd.swap(CLOSED, Ordering::AcqRel);
        if fd != CLOSED {
            // SAFETY: the number was ours and nobody can find it any more.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }

    /// Runs call `nr` by the protocol of this kernel.
    ///
    /// `Ok` is the handler's answer, which includes its refusals; a number the kernel does not
    /// implement is NOT_SUPPORTED. `Err` means that no handler ran: ENOTTY in a process that did not
    /// open the node, EINTR for an interrupted wait, ENXIO when the node is not open.
    ///
    /// # Safety
    ///
    /// `arg` addresses `size` bytes; they and every address in them are something the call may read
    /// and write, or an address at which nothing is mapped.
    pub unsafe fn call(&self, nr: u32, arg: *mut c_void, size: u32) -> Result<Status> {
        let fd = self.fd().ok_or(Errno::NXIO)?;
        let result = match self.protocol() {
            // SAFETY: the caller's promise is the one that `exec` wants.
            Protocol::Exec => unsafe { ioctl::exec(fd, nr, arg, size) },
            // SAFETY: the caller's promise is the one that `plain` wants.
            Protocol::Plain => unsafe { ioctl::plain(fd, nr, arg, size) },
        };
        match result {
            // Either the number has no handler or the process is the wrong one.
            Err(Errno::NOTTY) => identify(fd).map(|_| Status::NOT_SUPPORTED),
            Err(errno) if self.protocol() == Protocol::Plain => {
                Status::from_errno(errno).ok_or(errno)
            }
            other => other,
        }
    }

    /// As [`Node::call`], but opens the node again and repeats the call once when it turns out that
    /// this process has not opened it: a forked child, or a client that closed the descriptor.
    ///
    /// Only for calls that use no handle: EnumAdapters2, EnumAdapters3 and OpenAdapterFromLuid.
    ///
    /// # Safety
    ///
    /// As for [`Node::call`].
    pub unsafe fn call_reopening(&self, nr: u32, arg: *mut c_void, size: u32) -> Result<Status> {
        // SAFETY: the caller's promise, here and below.
        let result = unsafe { self.call(nr, arg, size) };
        match result {
            Err(Errno::NOTTY | Errno::BADF | Errno::NXIO) | Ok(Status::INVALID_HANDLE)
                if self.open().is_ok() =>
            {
                // SAFETY: as above.
                unsafe { self.call(nr, arg, size) }
            }
            other => other,
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: nobody else has a reference.
        unsafe { self.close() };
    }
}

/// Finds out whether this process can use the descriptor, and how.
///
/// EnumAdapters2 without an array counts the adapters and changes nothing. ENOTTY if it cannot be
/// used: opened by another process, or not a D3DKMT device.
fn identify(fd: BorrowedFd<'_>) -> Result<Protocol> {
    const NR: u32 = D3DKMT_ENUMADAPTERS2::NR;
    const SIZE: u32 = D3DKMT_ENUMADAPTERS2::SIZE;
    let mut arg = D3DKMT_ENUMADAPTERS2::zeroed();
    let pointer = (&raw mut arg).cast::<c_void>();
    // SAFETY: `arg` lives across the call and holds no address.
    match unsafe { ioctl::exec(fd, NR, pointer, SIZE) } {
        Err(Errno::NOTTY) => {}
        result => return result.map(|_| Protocol::Exec),
    }
    // SAFETY: as above.
    unsafe { ioctl::plain(fd, NR, pointer, SIZE) }.map(|_| Protocol::Plain)
}

/// Whether `old` is an open descriptor of the character device that `new` has open.
fn is_same_device(old: RawFd, new: BorrowedFd<'_>) -> bool {
    if old == CLOSED {
        return false;
    }
    // SAFETY: only used for `fstat`, which is harmless on any number, open or not.
    let old = unsafe { BorrowedFd::borrow_raw(old) };
    match (rustix::fs::fstat(old), rustix::fs::fstat(new)) {
        (Ok(old), Ok(new)) => {
            FileType::from_raw_mode(old.st_mode) == FileType::CharacterDevice
                && FileType::from_raw_mode(new.st_mode) == FileType::CharacterDevice
                && old.st_rdev == new.st_rdev
        }
        _ => false,
    }
}

/// Puts the file of `new` behind the number `old`. Threads that are inside a call keep the file they
/// entered with; the next call finds the new one.
fn replace(old: RawFd, new: &OwnedFd) -> Result<()> {
    debug_assert_ne!(old, new.as_raw_fd());
    // SAFETY: `old` is our own number; `ManuallyDrop` keeps it from being closed here.
    let mut old = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(old) });
    rustix::io::dup3(new, &mut old, DupFlags::CLOEXEC)
}
