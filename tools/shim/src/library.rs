// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one open node of the process, opened when the library is loaded, and how a C call reaches it.

use core::ffi::c_void;
use std::sync::OnceLock;

use opendxg::node::Node;
use opendxg::raw::Argument;
use opendxg::{Errno, Error, Status};

static NODE: OnceLock<Node> = OnceLock::new();

/// Run by the dynamic loader.
#[used]
#[link_section = ".init_array"]
static LOAD: extern "C" fn() = load;

/// Run by the dynamic loader.
#[used]
#[link_section = ".fini_array"]
static UNLOAD: extern "C" fn() = unload;

extern "C" fn load() {
    // Without a device the library still loads: every function then says so.
    let _ = NODE.get_or_init(Node::from_env).open();
}

extern "C" fn unload() {
    close();
}

/// Closes the node. Calls that are in progress in other threads are the caller's mistake.
pub(crate) fn close() {
    if let Some(node) = NODE.get() {
        // SAFETY: the documentation of D3DKMTCloseDxCoreDevice asks the program to have no call in
        // progress; when the library is unloaded there can be none.
        unsafe { node.close() };
    }
}

/// The node, if it is open.
fn node() -> Option<&'static Node> {
    NODE.get().filter(|node| node.fd().is_some())
}

/// The status a C caller gets.
fn status(answer: Result<Status, Errno>) -> Status {
    answer.unwrap_or_else(|errno| Error::Os(errno).status())
}

/// What every function checks first.
fn enter(arg: *mut c_void) -> Result<&'static Node, Status> {
    let node = node().ok_or(Status::UNSUCCESSFUL)?;
    if arg.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(node)
}

/// Passes the argument on as it is.
///
/// # Safety
///
/// `arg` is NULL or a `T` with addresses as the function's documentation asks for.
pub(crate) unsafe fn direct<T: Argument>(arg: *mut c_void) -> Status {
    match enter(arg) {
        // SAFETY: the C caller's promise.
        Ok(node) => status(unsafe { node.call(T::NR, arg, T::SIZE) }),
        Err(refused) => refused,
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

/// Hands the argument to a function of this library.
///
/// # Safety
///
/// As for [`direct`].
pub(crate) unsafe fn served<T>(arg: *mut c_void, serve: unsafe fn(&mut T) -> Status) -> Status {
    if let Err(refused) = enter(arg) {
        return refused;
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
