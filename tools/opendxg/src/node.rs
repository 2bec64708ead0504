// SPDX-License-Identifier: MIT OR Apache-2.0
//! The open device node: which protocol it speaks, and how it is opened again after a fork.
//!
//! Reading the descriptor takes no lock, because a lock that another thread holds during `fork`
//! would stay locked in the child for ever. Opening again replaces the file *behind* the
//! descriptor number with `dup3`, so that no thread can ever use a number that was closed and
//! given away.
//!
//! A program may close descriptors that it does not know, and open files of its own under their
//! numbers. So the node knows its file again (`Identity`) before it closes or replaces it.

use core::ffi::{c_void, CStr};
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::borrow::Cow;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::io::{DupFlags, Errno, Result};

use crate::descriptor::{open_device, Identity};
use crate::ioctl;
use crate::process::AtomicProcess;
pub use crate::process::Process;
use crate::raw::Argument;
use crate::uapi::D3DKMT_ENUMADAPTERS2;
use crate::Status;

/// The node that is opened unless the environment variable [`DEVICE_VARIABLE`] names another.
pub const DEFAULT_DEVICE: &str = "/dev/dxg";

/// Environment variable with the path of the device node. An empty value means that there is none,
/// and programs with the rights of somebody else than their caller (set-user-ID and the like) do
/// not read it.
pub const DEVICE_VARIABLE: &str = "OPENDXG_DEVICE";

/// How calls travel to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// As ioctls that return the status itself: every status arrives exactly.
    Exact,
    /// As plain ioctls, whose errno stands for one status or several: the kernel has no others.
    Plain,
}

/// Value of [`Node::fd`] when the node is not open.
const CLOSED: RawFd = -1;

/// An open device node. All methods may be called from any thread at any time, [`Node::close`]
/// excepted, and [`Node::call`] also from a signal handler.
#[derive(Debug)]
pub struct Node {
    path: Cow<'static, CStr>,
    /// Descriptor number or [`CLOSED`]; stays the same when the file behind it is replaced.
    fd: AtomicI32,
    /// The file behind it.
    identity: Identity,
    /// Who opened it. No other process can use it.
    opener: AtomicProcess,
    /// Its process id: children of `vfork` are told from their parent by nothing else.
    pid: AtomicI32,
    /// [`Protocol::Plain`] was found. Written before the number is published.
    plain: AtomicBool,
}

impl Node {
    /// A node at the path the environment asks for, not opened yet.
    pub fn from_env() -> Self {
        // SAFETY: no precondition.
        let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        let asked = std::env::var_os(DEVICE_VARIABLE).filter(|path| !is_secure && !path.is_empty());
        asked.map_or_else(Self::default, |path| Self::at(path.into()))
    }

    /// A node at `path`, not opened yet.
    pub fn at(path: PathBuf) -> Self {
        // No file has a name with a zero inside, and none has the empty one.
        let path = CString::new(path.into_os_string().into_vec()).unwrap_or_default();
        Self::new(path.into())
    }

    /// A node at `path`, not opened yet. Needs no memory of the heap for a borrowed path.
    pub fn new(path: Cow<'static, CStr>) -> Self {
        Self {
            path,
            fd: AtomicI32::new(CLOSED),
            identity: Identity::new(),
            opener: AtomicProcess::new(Process::NONE),
            pid: AtomicI32::new(0),
            plain: AtomicBool::new(false),
        }
    }

    /// A node at a copy of `path`, not opened yet; `None` when there is no memory for it.
    pub fn copied(path: &CStr) -> Option<Self> {
        let path = path.to_bytes_with_nul();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(path.len()).ok()?;
        bytes.extend_from_slice(path);
        Some(Self::new(CString::from_vec_with_nul(bytes).ok()?.into()))
    }

    /// Another node at the same path, not opened yet; `None` when there is no memory for the path.
    pub fn another(&self) -> Option<Self> {
        match &self.path {
            Cow::Borrowed(path) => Some(Self::new(Cow::Borrowed(path))),
            Cow::Owned(path) => Self::copied(path),
        }
    }

    /// Where the node is.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.to_bytes()))
    }

    /// How calls travel to the kernel.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        if self.plain.load(Ordering::Relaxed) {
            Protocol::Plain
        } else {
            Protocol::Exact
        }
    }

    /// The descriptor, while the node is open.
    #[inline]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self.fd.load(Ordering::Acquire) {
            CLOSED => None,
            // SAFETY: the number stays open until `close` or the drop of the node; the caller of
            // `close` promises that no call is in progress.
            fd => Some(unsafe { BorrowedFd::borrow_raw(fd) }),
        }
    }

    /// Whether another process has opened it: the parent, before a fork.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        self.opener.load() != Process::current()
    }

    /// Opens the node, unless this process has it open; in a forked child puts a freshly opened
    /// file behind the descriptor.
    ///
    /// Fails with ENOTTY when the file is not a D3DKMT device, and in a child of `vfork`, whose
    /// parent would get the new number.
    pub fn open(&self) -> Result<()> {
        let new = open_device(&self.path)?;
        let plain = identify(new.as_fd())? == Protocol::Plain;
        self.adopt(new, plain)
    }

    /// Makes `new` the file of this node.
    fn adopt(&self, new: OwnedFd, plain: bool) -> Result<()> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let is_own = !self.is_foreign();
        if is_own && pid != self.pid.load(Ordering::Relaxed) {
            return Err(Errno::NOTTY);
        }
        let old = self.fd.load(Ordering::Acquire);
        let is_there = new.as_raw_fd() != old && self.identity.is(old);
        if is_own && is_there {
            return Ok(());
        }
        self.identity.set(new.as_fd())?;
        self.plain.store(plain, Ordering::Relaxed);
        if is_there {
            // The one that this child has inherited.
            replace(old, &new)?;
        } else if new.as_raw_fd() == old {
            // Somebody closed our number behind our back and the kernel gave it to us again.
            let _ = new.into_raw_fd();
        } else {
            self.publish(old, new);
        }
        self.pid.store(pid, Ordering::Relaxed);
        self.opener.store(Process::current());
        Ok(())
    }

    /// Gives the node a number: nothing is open, or the old one now belongs to a file of
    /// somebody else.
    fn publish(&self, old: RawFd, new: OwnedFd) {
        let fd = new.into_raw_fd();
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let published = self.fd.compare_exchange(old, fd, success, failure);
        if published.is_err() {
            // SAFETY: `fd` came from `into_raw_fd` above and was not published: another thread was
            // first, and its descriptor serves this process as well.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }

    /// Closes the node, if it still is behind its number.
    ///
    /// # Safety
    ///
    /// No other call on this node is in progress.
    pub unsafe fn close(&self) {
        let fd = self.fd.swap(CLOSED, Ordering::AcqRel);
        if self.identity.is(fd) {
            // SAFETY: the file is ours, and nobody can find the number any more.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }

    /// Runs call `nr` by the protocol of this kernel.
    ///
    /// `Ok` is the handler's answer, which includes its refusals; a number the kernel does not
    /// implement is NOT_SUPPORTED. `Err` means that no handler ran: ENOTTY in a process that did
    /// not open the node, EINTR for an interrupted wait, ENXIO when the node is not open.
    ///
    /// # Safety
    ///
    /// `arg` addresses `size` bytes; they and every address in them are something the call may
    /// read and write, or an address at which nothing is mapped.
    #[inline]
    pub unsafe fn call(&self, nr: u32, arg: *mut c_void, size: u32) -> Result<Status> {
        let fd = self.fd().ok_or(Errno::NXIO)?;
        // SAFETY: the caller's promise.
        unsafe { self.call_by(fd, nr, arg, size) }
    }

    /// As [`Node::call`] by [`Node::fd`], for callers that have looked at it. All that is rare is
    /// out of line, so that few instructions surround the ioctl.
    ///
    /// # Safety
    ///
    /// As for [`Node::call`]; `fd` is that of this node.
    #[inline(always)]
    pub unsafe fn call_by(
        &self,
        fd: BorrowedFd<'_>,
        nr: u32,
        arg: *mut c_void,
        size: u32,
    ) -> Result<Status> {
        if self.is_foreign() {
            return Err(Errno::NOTTY);
        }
        if self.protocol() == Protocol::Plain {
            // SAFETY: the caller's promise.
            return unsafe { call_plain(fd, nr, arg, size) };
        }
        // SAFETY: the caller's promise is the one that `exact` wants.
        match unsafe { ioctl::exact(fd, nr, arg, size) } {
            Ok(status) => Ok(status),
            Err(errno) => no_handler(fd, errno),
        }
    }

    /// As [`Node::call`], but opens the node again and repeats the call once when it turns out
    /// that this process has not opened it: a forked child, or a client that closed the
    /// descriptor.
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

impl Default for Node {
    /// The node at [`DEFAULT_DEVICE`], not opened yet.
    fn default() -> Self {
        Self::new(c"/dev/dxg".into())
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
        || unsafe { ioctl::exact(fd, NR, pointer, SIZE) },
        // SAFETY: as above.
        || unsafe { ioctl::plain(fd, NR, pointer, SIZE) },
    )
}

/// The rule of [`identify`]: the same call with its exact status, and as a plain ioctl if there is
/// no such code.
fn identify_by(
    exact: impl FnOnce() -> Result<Status>,
    plain: impl FnOnce() -> Result<Status>,
) -> Result<Protocol> {
    match exact() {
        Err(Errno::NOTTY) => plain().map(|_| Protocol::Plain),
        result => result.map(|_| Protocol::Exact),
    }
}

/// Runs a call on a kernel that has no exact ones.
///
/// # Safety
///
/// As for [`Node::call`].
#[cold]
#[inline(never)]
unsafe fn call_plain(fd: BorrowedFd<'_>, nr: u32, arg: *mut c_void, size: u32) -> Result<Status> {
    // SAFETY: the caller's promise is the one that `plain` wants.
    let result = unsafe { ioctl::plain(fd, nr, arg, size) };
    interpret(Protocol::Plain, result, || identify(fd))
}

/// What an exact call means that no handler ran for.
#[cold]
#[inline(never)]
fn no_handler(fd: BorrowedFd<'_>, errno: Errno) -> Result<Status> {
    interpret(Protocol::Exact, Err(errno), || identify(fd))
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
        Err(errno) if protocol == Protocol::Plain => Status::of_errno(errno).ok_or(errno),
        other => other,
    }
}

/// Puts the file of `new` behind the number `old`. Threads that are inside a call keep the file
/// they entered with; the next call finds the new one.
fn replace(old: RawFd, new: &OwnedFd) -> Result<()> {
    debug_assert_ne!(old, new.as_raw_fd());
    // SAFETY: `old` is our own number; `ManuallyDrop` keeps it from being closed here.
    let mut old = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(old) });
    rustix::io::dup3(new, &mut old, DupFlags::CLOEXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_EXACT: Result<Status> = Err(Errno::NOTTY);

    #[test]
    fn our_kernel_is_asked_once() {
        let plain = || panic!("the exact call has answered");
        assert_eq!(
            identify_by(|| Ok(Status::SUCCESS), plain),
            Ok(Protocol::Exact)
        );
    }

    #[test]
    fn a_kernel_without_exact_results_gets_plain_ioctls() {
        assert_eq!(
            identify_by(|| NOT_EXACT, || Ok(Status::SUCCESS)),
            Ok(Protocol::Plain)
        );
    }

    #[test]
    fn foreign_process_or_foreign_file() {
        assert_eq!(identify_by(|| NOT_EXACT, || NOT_EXACT), Err(Errno::NOTTY));
        let dead = || Err(Errno::BADF);
        assert_eq!(identify_by(dead, || panic!("not asked")), Err(Errno::BADF));
    }

    #[test]
    fn no_handler_is_not_supported() {
        for protocol in [Protocol::Exact, Protocol::Plain] {
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
        let exact = interpret(Protocol::Exact, Err(Errno::INVAL), no_need);
        assert_eq!(exact, Err(Errno::INVAL));
        let refused = Ok(Status::ACCESS_DENIED);
        assert_eq!(interpret(Protocol::Exact, refused, no_need), refused);
    }

    /// Any character device stands in for the node where no call is made.
    fn device(path: &str) -> OwnedFd {
        std::fs::File::open(path).unwrap().into()
    }

    fn opened() -> Node {
        let node = Node::at("/dev/null".into());
        node.adopt(open_device(&node.path).unwrap(), false).unwrap();
        node
    }

    fn number(node: &Node) -> RawFd {
        node.fd().unwrap().as_raw_fd()
    }

    fn rdev(fd: BorrowedFd<'_>) -> u64 {
        rustix::fs::fstat(fd).unwrap().st_rdev
    }

    fn is_open(fd: RawFd) -> bool {
        // SAFETY: the number is only asked about.
        rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok()
    }

    /// What a program does that closes all descriptors, and then opens its own file.
    fn take_number(node: &Node, stranger: &str) -> OwnedFd {
        // SAFETY: the node only compares what it finds under the number.
        let mut number = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number(node)) });
        rustix::io::dup3(device(stranger), &mut number, DupFlags::CLOEXEC).unwrap();
        ManuallyDrop::into_inner(number)
    }

    #[test]
    fn what_is_open_stays_open() {
        let node = opened();
        let before = number(&node);
        node.adopt(device("/dev/zero"), false).unwrap();
        assert_eq!(number(&node), before);
        assert!(node.identity.is(before));
    }

    #[test]
    fn a_child_gets_a_new_file_behind_the_number() {
        let node = opened();
        let before = number(&node);
        // As after a fork.
        node.opener.store(Process::NONE);
        // SAFETY: a call without an argument.
        let answer = unsafe { node.call(0x14, core::ptr::null_mut(), 0) };
        assert_eq!(answer, Err(Errno::NOTTY));
        node.adopt(device("/dev/zero"), true).unwrap();
        assert_eq!(number(&node), before);
        assert_eq!(rdev(node.fd().unwrap()), rdev(device("/dev/zero").as_fd()));
        assert!(!node.is_foreign());
        assert_eq!(node.protocol(), Protocol::Plain);
        let flags = rustix::io::fcntl_getfd(node.fd().unwrap()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_child_of_vfork_changes_nothing() {
        let node = opened();
        node.pid.store(1, Ordering::Relaxed);
        assert_eq!(node.adopt(device("/dev/null"), false), Err(Errno::NOTTY));
        assert!(node.identity.is(number(&node)));
    }

    #[test]
    fn a_file_that_took_the_number_is_not_replaced() {
        // Another device, and another open of the same one; in the process itself, and in a child.
        for stranger in ["/dev/zero", "/dev/null"] {
            for opener in [Process::current(), Process::NONE] {
                let node = opened();
                let before = number(&node);
                let stranger = take_number(&node, stranger);
                let kind = rdev(stranger.as_fd());
                node.opener.store(opener);
                node.adopt(open_device(&node.path).unwrap(), false).unwrap();
                assert_ne!(number(&node), before);
                assert_eq!(rdev(stranger.as_fd()), kind);
                assert!(!node.identity.is(before) && node.identity.is(number(&node)));
            }
        }
    }

    #[test]
    fn a_file_that_took_the_number_is_not_closed() {
        for stranger in ["/dev/zero", "/dev/null"] {
            let node = opened();
            let before = number(&node);
            let stranger = take_number(&node, stranger);
            let kind = rdev(stranger.as_fd());
            drop(node);
            assert!(is_open(before));
            assert_eq!(rdev(stranger.as_fd()), kind);
        }
    }

    #[test]
    fn the_own_file_is_closed() {
        let node = opened();
        let before = number(&node);
        // SAFETY: no call is in progress.
        unsafe { node.close() };
        assert!(node.fd().is_none() && !node.identity.is(before));
    }

    #[test]
    fn the_old_number_may_come_back() {
        let node = Node::at("/dev/null".into());
        let null = device("/dev/null");
        let before = null.as_raw_fd();
        node.fd.store(before, Ordering::Release);
        node.adopt(null, false).unwrap();
        assert_eq!(number(&node), before);
        assert!(node.identity.is(before));
    }

    #[test]
    fn the_environment_is_read_and_an_empty_value_is_none() {
        // The only test of this program that reads or writes the environment.
        for (value, path) in [
            (Some("/dev/null"), "/dev/null"),
            (Some(""), "/dev/dxg"),
            (None, DEFAULT_DEVICE),
        ] {
            match value {
                Some(value) => std::env::set_var(DEVICE_VARIABLE, value),
                None => std::env::remove_var(DEVICE_VARIABLE),
            }
            assert_eq!(Node::from_env().path(), Path::new(path));
        }
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
