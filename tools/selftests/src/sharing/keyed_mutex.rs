// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyed mutexes.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Result, Status};

use super::client::How;
use super::local::{Local, What};
use super::Client;

/// How an acquire ended: SUCCESS, TIMEOUT or ABANDONED, and the fence value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// The status.
    pub status: Status,
    /// The fence value after the call.
    pub fence: u64,
}

impl Acquired {
    /// Acquired, with this fence value.
    pub fn with(fence: u64) -> Self {
        let status = Status::SUCCESS;
        Self { status, fence }
    }

    /// Timed out.
    pub const TIMEOUT: Self = Self {
        status: Status::TIMEOUT,
        fence: 0,
    };
    /// Abandoned.
    pub const ABANDONED: Self = Self {
        status: Status::ABANDONED,
        fence: 0,
    };
}

/// Milliseconds as a relative timeout.
const MILLISECOND: i64 = -10_000;

/// What the output fence is before a call.
const STALE: u64 = 0x1ead_beed_1ead_beed;

impl Client {
    /// CreateKeyedMutex2; with a global handle unless it is to be shared by NT handles.
    pub fn create_keyed_mutex(&self, how: How, initial: u64, private: &[u8]) -> Result<Local> {
        let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
        arg.InitialValue = initial;
        if !private.is_empty() {
            arg.pPrivateRuntimeData = private.as_ptr() as u64;
            arg.PrivateRuntimeDataSize = private.len() as u32;
        }
        if how == How::Nt {
            arg.Flags = D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
        }
        self.call(&mut arg)?;
        let local = Local::new(self, What::KeyedMutex, arg.hKeyedMutex);
        Ok(local.with_global(arg.hSharedHandle))
    }

    /// Acquires with a raw timeout; `None` waits for ever. A signal's EINTR is an error of the
    /// system.
    pub fn acquire(&self, handle: u32, key: u64, timeout: Option<i64>) -> Result<Acquired> {
        let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
        (arg.hKeyedMutex, arg.Key, arg.FenceValue) = (handle, key, STALE);
        arg.pTimeout = timeout
            .as_ref()
            .map_or(0, |value| (&raw const *value) as u64);
        let status = self.call(&mut arg)?;
        let fence = arg.FenceValue;
        if arg.Key != key {
            return Err(opendxg::Error::Protocol("acquire changed the key"));
        }
        Ok(Acquired { status, fence })
    }

    /// Acquires without waiting.
    pub fn try_acquire(&self, handle: u32, key: u64) -> Result<Acquired> {
        self.acquire(handle, key, Some(0))
    }

    /// Acquires, waiting for so many milliseconds at most.
    pub fn acquire_ms(&self, handle: u32, key: u64, limit: i64) -> Result<Acquired> {
        self.acquire(handle, key, Some(limit * MILLISECOND))
    }

    /// Releases.
    pub fn release(&self, handle: u32, key: u64, fence: u64) -> Result<()> {
        let mut arg = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
        (arg.hKeyedMutex, arg.Key, arg.FenceValue) = (handle, key, fence);
        self.call(&mut arg).map(|_| ())
    }
}
