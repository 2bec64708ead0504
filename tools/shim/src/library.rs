// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one open node of the process, opened when the library is loaded, and how a C call reaches
//! it.

use core::ffi::{c_char, c_void, CStr};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use opendxg::node::Node;
use opendxg::raw::{call_descriptor, Argument, Errno, ObjectArgument};
use opendxg::uapi::*;
use opendxg::{Error, Status};

use crate::cleanup::{self, Suspects};

/// Never dropped: nothing happens at the end of the process, when numbers of descriptors may mean
/// other files, and the library is never unloaded (`build.rs`). The kernel closes the node.
static NODE: OnceLock<Node> = OnceLock::new();

/// Run by the dynamic loader.
#[used]
#[link_section = ".init_array"]
static LOAD: extern "C" fn() = load;

extern "C" fn load() {
    // Without a device the library still loads: every function then says so.
    let _ = NODE.get_or_init(from_env).open();
}

extern "C" {
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// The node that the environment asks for. Unlike the crate's function this one is run while the
/// program is loaded, and does not end it when there is no memory.
fn from_env() -> Node {
    // SAFETY: the name is terminated; nobody changes the environment while the library is loaded.
    let asked = unsafe { secure_getenv(c"OPENDXG_DEVICE".as_ptr()) };
    if asked.is_null() {
        return Node::default();
    }
    // SAFETY: a variable is terminated, and does not change, as above.
    match unsafe { CStr::from_ptr(asked) } {
        none if none.is_empty() => Node::default(),
        // An empty path is that of no node.
        path => Node::copied(path).unwrap_or_else(|| Node::new(c"".into())),
    }
}

/// Closes the node. Calls that are in progress in other threads are the caller's mistake.
fn close() {
    if let Some(node) = NODE.get() {
        // SAFETY: the documentation of D3DKMTCloseDxCoreDevice asks the program to have no call in
        // progress.
        unsafe { node.close() };
    }
}

/// Closes the node for the program, which ends all its handles.
pub(crate) fn close_for_program() {
    crate::dxcore::undisturbed(close);
    cleanup::after_close();
}

/// The node of this process, open or not.
pub(crate) fn node_of_process() -> Option<&'static Node> {
    NODE.get()
}

/// The node, if it is open.
fn node() -> Option<&'static Node> {
    NODE.get().filter(|node| node.fd().is_some())
}

/// The status a C caller gets.
#[inline]
fn status(answer: Result<Status, Errno>) -> Status {
    answer.unwrap_or_else(no_handler)
}

/// The status of a call that no handler ran for.
#[cold]
#[inline(never)]
fn no_handler(errno: Errno) -> Status {
    Error::Os(opendxg::Errno::from_raw_os_error(errno.raw_os_error())).status()
}

/// What every function checks first: the node, and its descriptor.
#[inline]
fn enter(arg: *mut c_void) -> Result<(&'static Node, BorrowedFd<'static>), Status> {
    let node = NODE.get().ok_or(Status::UNSUCCESSFUL)?;
    let fd = node.fd().ok_or(Status::UNSUCCESSFUL)?;
    if arg.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok((node, fd))
}

/// Passes the argument on as it is.
///
/// # Safety
///
/// `arg` is NULL or a `T` with addresses as the function's documentation asks for.
pub(crate) unsafe fn direct<T: Argument>(arg: *mut c_void) -> Status {
    match enter(arg) {
        // SAFETY: the C caller's promise; the node says that this is its descriptor.
        Ok((node, fd)) if !cleanup::destroys(T::NR) => unsafe {
            status(node.call_by(fd, T::NR, arg, T::SIZE))
        },
        // SAFETY: as above.
        Ok((node, fd)) => unsafe { destroying::<T>(node, fd, arg) },
        Err(refused) => refused,
    }
}

/// The rest of [`direct`] for calls that destroy something.
///
/// # Safety
///
/// As for [`direct`]; `fd` is that of the node, and `arg` is not NULL.
unsafe fn destroying<T: Argument>(node: &Node, fd: BorrowedFd<'_>, arg: *mut c_void) -> Status {
    // SAFETY: the C caller's promise.
    let suspects = unsafe { Suspects::of::<T>(arg) };
    // SAFETY: as above.
    let status = status(unsafe { node.call_by(fd, T::NR, arg, T::SIZE) });
    if let Some(suspects) = suspects {
        suspects.check(status);
    }
    status
}

/// Passes the argument on as it is: to the descriptor in the member `handle` where the type of
/// that handle is SELF, which needs no device, otherwise to the device.
///
/// # Safety
///
/// As for [`direct`].
pub(crate) unsafe fn object<T: ObjectArgument>(arg: *mut c_void) -> Status {
    let object = arg.cast::<T>();
    if arg.is_null() || !object.is_aligned() {
        // SAFETY: the C caller's promise.
        return unsafe { direct::<T>(arg) };
    }
    // SAFETY: aligned and not null; the C caller promises a live `T`.
    let object = unsafe { &mut *object };
    match object.object() {
        // SAFETY: the C caller's promise.
        (handle, OPENDXG_HANDLE_SELF) => unsafe { on_descriptor(handle, object) },
        // SAFETY: the C caller's promise.
        _ => unsafe { direct::<T>(arg) },
    }
}

/// Runs a call on the descriptor in a slot.
///
/// # Safety
///
/// As for [`direct`].
unsafe fn on_descriptor<T: ObjectArgument>(slot: u64, arg: &mut T) -> Status {
    arg.about(0, OPENDXG_HANDLE_SELF);
    // SAFETY: the C caller's promise.
    let status = unsafe { descriptor(slot, arg) };
    arg.about(slot, OPENDXG_HANDLE_SELF);
    status
}

/// Runs a call on a descriptor that is not the device.
///
/// # Safety
///
/// As for [`direct`].
pub(crate) unsafe fn descriptor<T: Argument>(slot: u64, arg: &mut T) -> Status {
    let Ok(fd @ 0..) = i32::try_from(slot) else {
        return Status::INVALID_HANDLE;
    };
    // SAFETY: only borrowed for the call; a number that is not open is refused by the kernel.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    // SAFETY: the C caller's promise.
    match unsafe { call_descriptor(fd, arg) } {
        Err(Errno::NOTTY) => Status::OBJECT_TYPE_MISMATCH,
        Err(Errno::BADF) => Status::INVALID_HANDLE,
        answer => status(answer),
    }
}

/// Passes the argument on as it is; in a forked child opens the node first.
///
/// # Safety
///
/// As for [`direct`].
pub(crate) unsafe fn reopening<T: Argument>(arg: *mut c_void) -> Status {
    match NODE.get() {
        // SAFETY: the C caller's promise.
        Some(node) if !arg.is_null() => status(unsafe { node.call_reopening(T::NR, arg, T::SIZE) }),
        _ => not_served(arg, Status::INVALID_PARAMETER),
    }
}

/// Hands the argument to a function of this library; NULL is answered with `null`.
///
/// # Safety
///
/// As for [`direct`].
pub(crate) unsafe fn served<T>(
    arg: *mut c_void,
    null: Status,
    serve: unsafe fn(&mut T) -> Status,
) -> Status {
    if node().is_none() {
        return Status::UNSUCCESSFUL;
    }
    if arg.is_null() {
        return null;
    }
    let arg = arg.cast::<T>();
    if !arg.is_aligned() {
        return Status::DATATYPE_MISALIGNMENT;
    }
    // SAFETY: aligned and not null; the C caller promises a live `T` with good addresses.
    unsafe { serve(&mut *arg) }
}

/// The answer of a function that does nothing: `answer`, unless something more general is wrong.
pub(crate) fn not_served(arg: *mut c_void, answer: Status) -> Status {
    enter(arg).err().unwrap_or(answer)
}

/// Runs another call for a function of this library.
///
/// # Safety
///
/// Every address in `arg` is one the call may use.
pub(crate) unsafe fn call<T: Argument>(arg: &mut T) -> Status {
    // SAFETY: the caller's promise; `arg` is a live struct.
    unsafe { direct::<T>((&raw mut *arg).cast()) }
}

/// As [`call`], and opens the node again in a forked child.
///
/// # Safety
///
/// As for [`call`].
pub(crate) unsafe fn call_reopening<T: Argument>(arg: &mut T) -> Status {
    // SAFETY: as in `call`.
    unsafe { reopening::<T>((&raw mut *arg).cast()) }
}
