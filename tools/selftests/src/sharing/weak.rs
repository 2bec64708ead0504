// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weak references and watches.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Result};

use super::client::answer;
use super::local::{Local, What};
use super::{exec_on, Client, Target};

/// What a watch has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchState {
    /// The cookie it was made with.
    pub cookie: u64,
    /// The object.
    pub object_id: u64,
    /// Generation of the store at the last change that was seen.
    pub generation: u64,
    /// Events since the last look.
    pub events: u32,
}

impl Client {
    /// OPEN_WEAK.
    pub fn open_weak(&self, target: Target<'_>) -> Result<OwnedFd> {
        let mut arg = opendxg_open_weak::zeroed();
        self.call_at(target, &mut arg)?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
    }

    /// RESOLVE_WEAK; the new handle is destroyed with the device of this client.
    pub fn resolve_weak(&self, what: What, fd: impl AsFd) -> Result<Local> {
        let mut arg = opendxg_resolve_weak::zeroed();
        arg.fd = fd.as_fd().as_raw_fd();
        arg.device = self.device_handle();
        self.call(&mut arg)?;
        Ok(Local::new(self, what, arg.handle))
    }

    /// WATCH.
    pub fn watch(
        &self,
        target: Target<'_>,
        events: u32,
        cookie: u64,
        event: &EventFd,
    ) -> Result<OwnedFd> {
        let mut arg = opendxg_watch::zeroed();
        (arg.events, arg.cookie) = (events, cookie);
        arg.event_fd = event.as_fd().as_raw_fd();
        self.call_at(target, &mut arg)?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
    }

    /// WATCH_STATE.
    pub fn watch_state(&self, watch: impl AsFd) -> Result<WatchState> {
        let mut arg = opendxg_watch_state::zeroed();
        answer(exec_on(self.raw(), watch.as_fd(), &mut arg))?;
        Ok(WatchState {
            cookie: arg.cookie,
            object_id: arg.object_id,
            generation: arg.generation,
            events: arg.events,
        })
    }
}
