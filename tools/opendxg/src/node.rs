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
        self.adopt(new)
    }

    /// Makes `new` the file of this node.
    fn adopt(&self, new: OwnedFd) -> Result<()> {
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
        if self
            .fd
            .compare_exchange(old, fd, order, Ordering::Acquire)
            .is_err()
        {
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
        interpret(self.protocol(), result, || identify(fd))
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
    identify_by(
        // SAFETY: `arg` lives across the call and holds no address.
        || unsafe { ioctl::exec(fd, NR, pointer, SIZE) },
        // SAFETY: as above.
        || unsafe { ioctl::plain(fd, NR, pointer, SIZE) },
    )
}

/// The rule of [`identify`]: the same call through exec, and as a plain ioctl if there is no exec.
fn identify_by(
    exec: impl FnOnce() -> Result<Status>,
    plain: impl FnOnce() -> Result<Status>,
) -> Result<Protocol> {
    match exec() {
        Err(Errno::NOTTY) => plain().map(|_| Protocol::Plain),
        result => result.map(|_| Protocol::Exec),
    }
}

/// What the result of a call means.
fn interpret(
    protocol: Protocol,
    result: Result<Status>,
    identify: impl FnOnce() -> Result<Protocol>,
) -> Result<Status> {
    match result {
        // Either the number has no handler or the process is the wrong one.
        Err(Errno::NOTTY) => identify().map(|_| Status::NOT_SUPPORTED),
        Err(errno) if protocol == Protocol::Plain => Status::from_errno(errno).ok_or(errno),
        other => other,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const NO_EXEC: Result<Status> = Err(Errno::NOTTY);

    #[test]
    fn our_kernel_is_asked_once() {
        let plain = || panic!("exec has answered");
        assert_eq!(
            identify_by(|| Ok(Status::SUCCESS), plain),
            Ok(Protocol::Exec)
        );
    }

    #[test]
    fn a_kernel_without_exec_gets_plain_ioctls() {
        assert_eq!(
            identify_by(|| NO_EXEC, || Ok(Status::SUCCESS)),
            Ok(Protocol::Plain)
        );
    }

    #[test]
    fn foreign_process_or_foreign_file() {
        assert_eq!(identify_by(|| NO_EXEC, || NO_EXEC), Err(Errno::NOTTY));
        let dead = || Err(Errno::BADF);
        assert_eq!(identify_by(dead, || panic!("not asked")), Err(Errno::BADF));
    }

    #[test]
    fn no_handler_is_not_supported() {
        for protocol in [Protocol::Exec, Protocol::Plain] {
            let supported = || Ok(protocol);
            let result = interpret(protocol, Err(Errno::NOTTY), supported);
            assert_eq!(result, Ok(Status::NOT_SUPPORTED));
            let foreign = || Err(Errno::NOTTY);
            let result = interpret(protocol, Err(Errno::NOTTY), foreign);
            assert_eq!(result, Err(Errno::NOTTY));
        }
    }

    #[test]
    fn an_errno_is_a_status_on_the_plain_path_only() {
        let no_need = || panic!("must not ask");
        let plain = |errno| interpret(Protocol::Plain, Err(errno), no_need);
        assert_eq!(plain(Errno::INVAL), Ok(Status::INVALID_PARAMETER));
        assert_eq!(plain(Errno::INTR), Err(Errno::INTR));
        let exec = interpret(Protocol::Exec, Err(Errno::INVAL), no_need);
        assert_eq!(exec, Err(Errno::INVAL));
        let refused = Ok(Status::ACCESS_DENIED);
        assert_eq!(interpret(Protocol::Exec, refused, no_need), refused);
    }

    /// Any character device stands in for the node where no call is made.
    fn device(path: &str) -> OwnedFd {
        std::fs::File::open(path).unwrap().into()
    }

    fn rdev(fd: BorrowedFd<'_>) -> u64 {
        rustix::fs::fstat(fd).unwrap().st_rdev
    }

    #[test]
    fn opening_again_keeps_the_number() {
        let node = Node::at(PathBuf::new());
        node.adopt(device("/dev/null")).unwrap();
        let number = node.fd().unwrap().as_raw_fd();
        node.adopt(device("/dev/null")).unwrap();
        assert_eq!(node.fd().unwrap().as_raw_fd(), number);
        let flags = rustix::io::fcntl_getfd(node.fd().unwrap()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_file_that_took_the_number_is_left_alone() {
        let node = Node::at(PathBuf::new());
        // What a client does that closes all descriptors and then opens its own file.
        let stranger = device("/dev/zero");
        node.fd.store(stranger.as_raw_fd(), Ordering::Release);
        let null = device("/dev/null");
        let null_rdev = rdev(null.as_fd());
        node.adopt(null).unwrap();
        assert_ne!(node.fd().unwrap().as_raw_fd(), stranger.as_raw_fd());
        assert_eq!(rdev(node.fd().unwrap()), null_rdev);
        assert_ne!(rdev(stranger.as_fd()), null_rdev);
    }

    #[test]
    fn the_old_number_may_come_back() {
        let node = Node::at(PathBuf::new());
        let null = device("/dev/null");
        let number = null.as_raw_fd();
        node.fd.store(number, Ordering::Release);
        node.adopt(null).unwrap();
        assert_eq!(node.fd().unwrap().as_raw_fd(), number);
    }

    #[test]
    fn not_a_dxg_device() {
        let node = Node::at("/dev/null".into());
        assert_eq!(node.open(), Err(Errno::NOTTY));
        assert!(node.fd().is_none());
        let node = Node::at("/no/such/node".into());
        assert_eq!(node.open(), Err(Errno::NOENT));
    }

    #[test]
    fn a_closed_node_refuses_calls() {
        let node = Node::at("/no/such/node".into());
        // SAFETY: a call without an argument.
        let call = || unsafe { node.call(0x14, core::ptr::null_mut(), 0) };
        assert_eq!(call(), Err(Errno::NXIO));
        // SAFETY: as above.
        let reopening = || unsafe { node.call_reopening(0x14, core::ptr::null_mut(), 0) };
        assert_eq!(reopening(), Err(Errno::NXIO));
        // SAFETY: no call is in progress.
        unsafe { node.close() };
    }
}
