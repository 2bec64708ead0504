// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that take a handle of any kind.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use opendxg::raw::{exact_code, Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Result, Status};

use super::client::answer;
use super::Client;

/// A handle of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// Local handle.
    Local(u32),
    /// NT handle, in a call on the device.
    Nt(BorrowedFd<'a>),
    /// NT handle, in a call on its own descriptor.
    This(BorrowedFd<'a>),
    /// Global handle.
    Global(u32),
    /// Weak reference.
    Weak(BorrowedFd<'a>),
}

impl Target<'_> {
    fn number(&self) -> (u64, u32) {
        match *self {
            Self::Local(handle) => (handle.into(), OPENDXG_HANDLE_LOCAL),
            Self::Nt(fd) => (fd.as_raw_fd() as u64, OPENDXG_HANDLE_NT),
            Self::This(_) => (0, OPENDXG_HANDLE_SELF),
            Self::Global(handle) => (handle.into(), OPENDXG_HANDLE_GLOBAL),
            Self::Weak(fd) => (fd.as_raw_fd() as u64, OPENDXG_HANDLE_WEAK),
        }
    }
}

/// Runs a call on any descriptor, and gets its exact status.
pub fn exec_on<T: Argument>(
    raw: &Raw,
    fd: BorrowedFd<'_>,
    arg: &mut T,
) -> rustix::io::Result<Status> {
    let code = exact_code(T::NR, T::SIZE);
    raw.ioctl_on(fd, code, (&raw mut *arg) as u64).map(Status)
}

/// An argument with a handle of any kind.
pub(super) trait Handled: Argument {
    /// Puts the handle in.
    fn set(&mut self, handle: u64, handle_type: u32);
}

macro_rules! handled {
    ($($name:ident)*) => {
        $(impl Handled for $name {
            fn set(&mut self, handle: u64, handle_type: u32) {
                (self.handle, self.handle_type) = (handle, handle_type);
            }
        })*
    };
}

handled! {
    opendxg_query_object opendxg_dup_nt opendxg_open_weak opendxg_watch
    opendxg_set_info opendxg_get_info opendxg_enum_info opendxg_delete_info
}

/// What a query told.
#[derive(Clone)]
pub struct Queried {
    /// All members.
    pub object: opendxg_query_object,
    /// The name, empty without one.
    pub name: String,
}

impl Client {
    /// Runs a call on the node, or on the descriptor of the target itself.
    pub(super) fn call_at<T: Handled>(&self, target: Target<'_>, arg: &mut T) -> Result<Status> {
        let (handle, handle_type) = target.number();
        arg.set(handle, handle_type);
        match target {
            Target::This(fd) => answer(exec_on(self.raw(), fd, arg)),
            _ => self.call(arg),
        }
    }

    /// QUERY_OBJECT with a buffer that is large enough for every name.
    pub fn query(&self, target: Target<'_>) -> Result<Queried> {
        let mut units = [0u16; 1024];
        let mut object = opendxg_query_object::zeroed();
        object.name = units.as_mut_ptr() as u64;
        object.name_size = size_of_val(&units) as u32;
        self.call_at(target, &mut object)?;
        // SAFETY: written by the call; the compiler does not see that.
        let units = unsafe { (&raw const units).read_volatile() };
        let length = object.name_size as usize / 2;
        let name = String::from_utf16_lossy(&units[..length.min(units.len())]);
        Ok(Queried { object, name })
    }

    /// The number of the object behind a handle.
    pub fn id(&self, target: Target<'_>) -> Result<u64> {
        Ok(self.query(target)?.object.object_id)
    }

    /// The strong references to the object behind a handle.
    pub fn references(&self, target: Target<'_>) -> Result<u32> {
        Ok(self.query(target)?.object.references)
    }

    /// DUP_NT.
    pub fn dup_nt(&self, target: Target<'_>, access: u32, flags: u32) -> Result<OwnedFd> {
        let mut arg = opendxg_dup_nt::zeroed();
        (arg.access, arg.flags) = (access, flags);
        self.call_at(target, &mut arg)?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(arg.new_handle as i32) })
    }
}
