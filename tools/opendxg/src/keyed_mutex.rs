// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyed mutexes: the key of a release decides which waiter acquires the mutex next.

use core::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::calls::{self, call};
use crate::dxg::Dxg;
use crate::handle::{GlobalHandle, LocalHandle};
use crate::node::Node;
use crate::nt_fence::NO_DEADLINE;
use crate::object::duplicate;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// How long to wait for a keyed mutex, or for the fence of an NT handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// Without limit.
    Forever,
    /// This long; [`Duration::ZERO`] only tests.
    After(Duration),
    /// Until the clock shows this time.
    At(SystemTime),
    /// The number of the interface: units of 100 ns, relative when negative.
    Raw(i64),
}

/// From 1601 to 1970, in units of 100 ns.
const EPOCH: i64 = 116_444_736_000_000_000;

impl Timeout {
    /// The number of the interface; `None` for no limit.
    fn units(self) -> Option<i64> {
        let units = |duration: Duration| i64::try_from(duration.as_nanos().div_ceil(100));
        match self {
            Self::Forever => None,
            Self::Raw(units) => Some(units),
            Self::After(duration) => units(duration).ok().map(|units| -units),
            Self::At(time) => match time.duration_since(SystemTime::UNIX_EPOCH) {
                Ok(since) => units(since).ok().and_then(|units| EPOCH.checked_add(units)),
                // Long ago.
                Err(_) => Some(1),
            },
        }
    }
}

impl Timeout {
    /// The time in nanoseconds and the flags of a call with a deadline. A limit that begins now is
    /// by the monotonic clock.
    pub(crate) fn deadline(self) -> (u64, u32) {
        let none = (NO_DEADLINE, 0);
        let Some(units) = self.units() else {
            return none;
        };
        let at = match units {
            0 => return (0, 0),
            ..0 => {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
                let now = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
                now - i128::from(units) * 100
            }
            // One before 1970 has passed.
            _ => (i128::from(units - EPOCH) * 100).max(0),
        };
        let flags = if units > 0 { OPENDXG_WAIT_REALTIME } else { 0 };
        u64::try_from(at).map_or(none, |at| (at, flags))
    }
}

/// How acquiring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acquired {
    /// The calling thread owns the mutex; the fence value of the last release.
    Owned(u64),
    /// It did not become free with this key in time.
    TimedOut,
    /// An owner died: nobody acquires it any more.
    Abandoned,
}

/// An open keyed mutex. Its local handle is destroyed when it is dropped, which abandons a mutex
/// that was acquired through it.
#[derive(Debug)]
pub struct KeyedMutex {
    owned: Owned,
    global: Option<GlobalHandle>,
}

impl KeyedMutex {
    pub(crate) fn new(node: &Arc<Node>, handle: u32, global: u32) -> Self {
        let owned = Owned::new(node, handle, Kind::KeyedMutex);
        let global = (global != 0).then_some(GlobalHandle(global));
        Self { owned, global }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.owned.node()
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// The number by which any process can open it, unless it was made for NT handles.
    pub fn global_handle(&self) -> Option<GlobalHandle> {
        self.global
    }

    /// Waits until the mutex is free with this key, and takes it for the calling thread.
    pub fn acquire(&self, key: u64, timeout: Timeout) -> Result<Acquired> {
        let answer = calls::keyed_mutex::acquire(self.node(), self.handle(), key, timeout.units());
        acquired(answer?)
    }

    /// As [`acquire`](Self::acquire), with a guard: what fails or panics while the mutex is held
    /// gives it back as it was. TIMEOUT and ABANDONED are errors here.
    pub fn lock(&self, key: u64, timeout: Timeout) -> Result<KeyedMutexGuard<'_>> {
        match self.acquire(key, timeout)? {
            Acquired::Owned(fence_value) => Ok(KeyedMutexGuard {
                mutex: self,
                key,
                fence_value,
                _of_this_thread: PhantomData,
            }),
            Acquired::TimedOut => Err(Status::TIMEOUT.into()),
            Acquired::Abandoned => Err(Status::ABANDONED.into()),
        }
    }

    /// As [`acquire`](Self::acquire), and reads the private data, for which the buffer must be
    /// large enough.
    pub fn acquire_with_data(
        &self,
        key: u64,
        timeout: Timeout,
        data: &mut [u8],
    ) -> Result<Acquired> {
        let timeout = timeout.units();
        let answer = calls::keyed_mutex::acquire2(self.node(), self.handle(), key, timeout, data);
        acquired(answer?)
    }

    /// Gives the mutex to who waits for `key`. Only the thread that acquired it may.
    pub fn release(&self, key: u64, fence_value: u64) -> Result<()> {
        let mut arg = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
        arg.hKeyedMutex = self.handle().0;
        arg.Key = key;
        arg.FenceValue = fence_value;
        call(self.node(), &mut arg).map(|_| ())
    }

    /// As [`release`](Self::release), and replaces the private data unless `data` is empty.
    pub fn release_with_data(&self, key: u64, fence_value: u64, data: &[u8]) -> Result<()> {
        let values = (key, fence_value);
        calls::keyed_mutex::release2(self.node(), self.handle(), values, data).map(|_| ())
    }

    /// Another local handle of the mutex.
    pub fn duplicate(&self) -> Result<Self> {
        let handle = duplicate(self.node(), self.handle(), OPENDXG_WHOLE)?;
        Ok(Self::new(
            self.node(),
            handle,
            self.global.map_or(0, |global| global.0),
        ))
    }

    /// Destroys the local handle and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}

/// A keyed mutex that the calling thread has. Dropped without [`release`](Self::release) it is
/// released with the key and the fence value with which it was acquired, as if nobody had had it.
#[derive(Debug)]
#[must_use = "the mutex is released when the guard is dropped"]
pub struct KeyedMutexGuard<'a> {
    mutex: &'a KeyedMutex,
    key: u64,
    fence_value: u64,
    /// Only the thread that acquired the mutex releases it.
    _of_this_thread: PhantomData<*const ()>,
}

impl KeyedMutexGuard<'_> {
    /// The fence value of the last release.
    pub fn fence_value(&self) -> u64 {
        self.fence_value
    }

    /// Gives the mutex to who waits for `key`.
    pub fn release(self, key: u64, fence_value: u64) -> Result<()> {
        let mutex = self.mutex;
        core::mem::forget(self);
        mutex.release(key, fence_value)
    }
}

impl Drop for KeyedMutexGuard<'_> {
    fn drop(&mut self) {
        // Refused when the handle was destroyed meanwhile, which has abandoned the mutex.
        let _ = self.mutex.release(self.key, self.fence_value);
    }
}

fn acquired((status, fence_value): (Status, u64)) -> Result<Acquired> {
    match status {
        Status::SUCCESS => Ok(Acquired::Owned(fence_value)),
        Status::TIMEOUT => Ok(Acquired::TimedOut),
        Status::ABANDONED => Ok(Acquired::Abandoned),
        _ => Err(Error::Protocol("status of an acquisition")),
    }
}

/// Keyed mutexes belong to no device.
impl Dxg {
    /// Makes a keyed mutex that is free with `key`, shared by global handle.
    pub fn create_keyed_mutex(&self, key: u64) -> Result<KeyedMutex> {
        let mut arg = D3DKMT_CREATEKEYEDMUTEX::zeroed();
        arg.InitialValue = key;
        call(self.node(), &mut arg)?;
        Ok(KeyedMutex::new(
            self.node(),
            arg.hKeyedMutex,
            arg.hSharedHandle,
        ))
    }

    /// Makes a keyed mutex with private data; `nt_sharing` makes it a possible part of an NT
    /// handle instead of giving it a global handle.
    pub fn create_keyed_mutex_with(
        &self,
        key: u64,
        data: &[u8],
        nt_sharing: bool,
    ) -> Result<KeyedMutex> {
        let flags = match nt_sharing {
            true => D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing,
            false => 0,
        };
        let (handle, global) = calls::keyed_mutex::create(self.node(), key, data, flags)?;
        Ok(KeyedMutex::new(self.node(), handle, global))
    }

    /// Opens a keyed mutex by its global handle.
    pub fn open_keyed_mutex(&self, handle: GlobalHandle) -> Result<KeyedMutex> {
        let mut arg = D3DKMT_OPENKEYEDMUTEX::zeroed();
        arg.hSharedHandle = handle.0;
        call(self.node(), &mut arg)?;
        Ok(KeyedMutex::new(self.node(), arg.hKeyedMutex, handle.0))
    }

    /// Opens a keyed mutex by its global handle; `data` becomes its private data if it has none.
    pub fn open_keyed_mutex_with(&self, handle: GlobalHandle, data: &[u8]) -> Result<KeyedMutex> {
        let local = calls::keyed_mutex::open(self.node(), handle.0, data)?;
        Ok(KeyedMutex::new(self.node(), local, handle.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        assert_eq!(Timeout::Forever.units(), None);
        assert_eq!(Timeout::After(Duration::ZERO).units(), Some(0));
        assert_eq!(
            Timeout::After(Duration::from_millis(10)).units(),
            Some(-100_000)
        );
        assert_eq!(Timeout::After(Duration::from_nanos(1)).units(), Some(-1));
        assert_eq!(Timeout::After(Duration::MAX).units(), None);
        assert_eq!(Timeout::At(SystemTime::UNIX_EPOCH).units(), Some(EPOCH));
        assert_eq!(Timeout::Raw(5).units(), Some(5));
    }

    #[test]
    fn answers() {
        assert_eq!(acquired((Status::SUCCESS, 7)), Ok(Acquired::Owned(7)));
        assert_eq!(acquired((Status::TIMEOUT, 0)), Ok(Acquired::TimedOut));
        assert_eq!(acquired((Status::ABANDONED, 0)), Ok(Acquired::Abandoned));
        assert!(acquired((Status::PENDING, 0)).is_err());
    }
}
