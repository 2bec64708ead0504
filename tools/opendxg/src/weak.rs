// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knowing an object without keeping it alive: weak references and watches.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use bitflags::bitflags;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::calls::call;
use crate::calls::object::{call_on, query};
use crate::device::Device;
use crate::dxg::Dxg;
use crate::error::OrOs;
use crate::handle::slot;
use crate::object::{name_buffer, AnyObject, ObjectInfo};
use crate::raw::Argument;
use crate::uapi::*;
use crate::Result;

/// A descriptor that refers to an object, dead or alive, without keeping it alive. It hangs up
/// when the object dies.
#[derive(Debug)]
pub struct WeakRef(OwnedFd);

impl WeakRef {
    /// A new local handle on `device`, while the object lives; NOT_FOUND afterwards.
    pub fn resolve(&self, device: &Device) -> Result<AnyObject> {
        let mut arg = opendxg_resolve_weak::zeroed();
        arg.fd = self.0.as_raw_fd();
        arg.device = device.handle().0;
        call(device.node(), &mut arg)?;
        AnyObject::adopt(device, arg.handle)
    }

    /// What the object is; works for a dead one as well.
    pub fn query(&self, dxg: &Dxg) -> Result<ObjectInfo> {
        let mut arg = opendxg_query_object::zeroed();
        let mut name = name_buffer();
        let handle = (slot(self.0.as_fd()), OPENDXG_HANDLE_WEAK);
        query(dxg.node(), handle, &mut arg, &mut name)?;
        Ok(ObjectInfo::new(&arg, &name))
    }

    /// Whether the object is dead.
    pub fn is_dead(&self) -> Result<bool> {
        self.wait_dead(Some(Duration::ZERO))
    }

    /// Waits until the object is dead; false after `timeout`.
    pub fn wait_dead(&self, timeout: Option<Duration>) -> Result<bool> {
        hung_up(self.as_fd(), timeout)
    }
}

bitflags! {
    /// What a watch tells about.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct WatchEvents: u32 {
        /// The object is dead.
        const DESTROY = OPENDXG_WATCH_DESTROY;
        /// The information store has changed.
        const CHANGE = OPENDXG_WATCH_CHANGE;
        const _ = !0;
    }
}

/// A watch of an object. Dropping it ends the watch. It does not keep the object alive and hangs
/// up when the object dies.
#[derive(Debug)]
pub struct Watch(OwnedFd);

/// What a watch has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchState {
    /// The number given to [`Object::watch`](crate::Object::watch).
    pub cookie: u64,
    /// Which object it is about, also when it is gone.
    pub object_id: u64,
    /// Generation of the store at the last change.
    pub generation: u64,
    /// Events since the last question.
    pub events: WatchEvents,
}

impl Watch {
    /// What happened since the last question.
    pub fn state(&self) -> Result<WatchState> {
        let mut arg = opendxg_watch_state::zeroed();
        call_on(self.0.as_fd(), &mut arg)?;
        Ok(WatchState {
            cookie: arg.cookie,
            object_id: arg.object_id,
            generation: arg.generation,
            events: WatchEvents::from_bits_retain(arg.events),
        })
    }

    /// Whether the object is dead.
    pub fn is_dead(&self) -> Result<bool> {
        hung_up(self.as_fd(), Some(Duration::ZERO))
    }
}

macro_rules! descriptor {
    ($($type:ident)*) => {
        $(
            impl From<OwnedFd> for $type {
                fn from(fd: OwnedFd) -> Self {
                    Self(fd)
                }
            }

            impl From<$type> for OwnedFd {
                fn from(object: $type) -> Self {
                    object.0
                }
            }

            impl AsFd for $type {
                fn as_fd(&self) -> BorrowedFd<'_> {
                    self.0.as_fd()
                }
            }

            impl AsRawFd for $type {
                fn as_raw_fd(&self) -> RawFd {
                    self.0.as_raw_fd()
                }
            }
        )*
    };
}

descriptor! { WeakRef Watch }

/// Polls for the hang-up; false after `timeout`.
fn hung_up(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<bool> {
    // More seconds than a timespec can hold are for ever.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    rustix::event::poll(&mut fds, timeout.as_ref()).or_os()?;
    Ok(fds[0].revents().contains(PollFlags::HUP))
}
