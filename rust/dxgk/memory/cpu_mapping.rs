// SPDX-License-Identifier: GPL-2.0

//! The CPU mapping of an open allocation (RES-89).
//!
//! A mapping belongs to one handle, and so to one process. It counts the locks; the first maps and
//! the last unmaps. A mapping holds no reference to the allocation (RES-78). Revoking it takes the
//! bytes away, also from children that inherited it; only the mapping of a foreign dma-buf stays
//! with the children.

use super::{
    allocation::Allocation,
    storage::{
        CpuAccess,
        Storage, //
    }, //
};
use crate::dxgk::{
    quota::holder::{
        Amounts,
        Claim,
        Holder, //
    },
    stats::{
        Counted,
        OwnStats,
        CPU_MAPPINGS, //
    }, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::file::revocable_file::RevocableFile, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A file to map, counted. When it goes, mappings of it show no bytes any more.
struct CountedFile {
    file: RevocableFile,
    _counted: Counted<OwnStats, CPU_MAPPINGS>,
    _claim: Claim,
}

/// A mapping in the process.
struct Mapped {
    addr: usize,
    locks: u32,
    access: CpuAccess,
}

struct State {
    /// `None` after the end, and as long as the bytes have no size.
    storage: Option<Arc<Storage>>,
    /// Whether the bytes had no size when this was made.
    awaits_size: bool,
    /// Made by the first lock.
    file: Option<Arc<CountedFile>>,
    /// INVARIANT: a mapping of `file`.
    locked: Option<Mapped>,
}

/// An open allocation as its process sees it.
#[pin_data]
pub(crate) struct CpuMapping {
    write: bool,
    /// LOCK: leaf. Nothing is mapped, unmapped or revoked under it.
    #[pin]
    state: Mutex<State>,
}

impl CpuMapping {
    /// A mapping that shows nothing yet.
    pub(crate) fn new(storage: Option<Arc<Storage>>, write: bool) -> impl PinInit<Self> {
        pin_init!(Self {
            write,
            state <- new_mutex!(
                State {
                    awaits_size: storage.is_none(),
                    storage,
                    file: None,
                    locked: None,
                },
                "CpuMapping::state"
            ),
        })
    }

    /// Takes the bytes of the allocation, if they had no size before and have one now (RES-23).
    pub(crate) fn start_with(&self, allocation: &Allocation) {
        if !self.state.lock().awaits_size {
            return;
        }

        let Ok(storage) = allocation.storage() else {
            return;
        };
        let mut state = self.state.lock();

        if core::mem::take(&mut state.awaits_size) {
            state.storage = Some(storage);
        }
    }

    /// Adds a lock and returns the address of the mapping. `holder` is the process.
    ///
    /// Context: an ioctl of the process that the mapping belongs to, no locks held.
    pub(crate) fn lock(&self, holder: &Arc<Holder>) -> DxgResult<usize> {
        if let Some(addr) = self.state.lock().relock()? {
            return Ok(addr);
        }

        let storage = self.state.lock().live()?.clone();
        let access = storage.begin_cpu_access()?;
        let file = self.file(&storage, holder)?;
        let addr = file.file.map().map_err(|error| storage.not_shown(error))?;
        let mut state = self.state.lock();

        // Another thread may have locked it meanwhile, or destroyed it.
        match state.relock() {
            Ok(None) => {
                state.locked = Some(Mapped {
                    addr,
                    locks: 1,
                    access,
                });
                Ok(addr)
            }
            other => {
                drop(state);
                file.file.unmap(addr);
                Ok(other?.unwrap_or(addr))
            }
        }
    }

    /// The file to map.
    fn file(&self, storage: &Arc<Storage>, holder: &Arc<Holder>) -> DxgResult<Arc<CountedFile>> {
        if let Some(file) = &self.state.lock().file {
            return Ok(file.clone());
        }

        let claim = holder.charge(Amounts {
            files: 1,
            ..Amounts::default()
        })?;
        let fresh = Arc::new(
            CountedFile {
                file: RevocableFile::new(storage.source(), self.write)
                    .map_err(DxgError::from_errno)?,
                _counted: Counted::new(OwnStats::of(storage)),
                _claim: claim,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut state = self.state.lock();

        // As in `lock`: what is not used is dropped after the lock.
        state.live()?;
        match &state.file {
            Some(other) => Ok(other.clone()),
            None => {
                state.file = Some(fresh.clone());
                Ok(fresh)
            }
        }
    }

    /// Removes one lock; the last one unmaps.
    ///
    /// Context: as [`CpuMapping::lock`].
    pub(crate) fn unlock(&self) -> DxgResult {
        let last = self.state.lock().unlock()?;

        if let Some((file, locked)) = last {
            file.file.unmap(locked.addr);
            drop(locked.access);
        }
        Ok(())
    }

    /// Takes the bytes away from every process that has the mapping, for good: touching it is
    /// SIGBUS from now on. The mapping of a foreign dma-buf is replaced only in this process, and
    /// only if it is the caller.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn revoke(&self) {
        let (storage, file, locked) = {
            let mut state = self.state.lock();

            state.awaits_size = false;
            (state.storage.take(), state.file.take(), state.locked.take())
        };

        if let Some(counted) = &file {
            counted
                .file
                .revoke(locked.as_ref().map(|locked| locked.addr));
        }
        drop((locked, storage));
    }
}

impl CpuMapping {
    /// The adapter is gone: as [`CpuMapping::revoke`], but the locks are still counted, so that
    /// unlocking works.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn adapter_removed(&self) {
        let (storage, file, addr) = {
            let mut state = self.state.lock();
            let addr = state.locked.as_ref().map(|locked| locked.addr);

            state.awaits_size = false;
            (state.storage.take(), state.file.clone(), addr)
        };

        if let Some(counted) = file {
            counted.file.revoke(addr);
        }
        drop(storage);
    }
}

impl State {
    fn live(&self) -> DxgResult<&Arc<Storage>> {
        self.storage
            .as_ref()
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Adds a lock, if there is a mapping.
    fn relock(&mut self) -> DxgResult<Option<usize>> {
        self.live()?;
        match &mut self.locked {
            Some(locked) => {
                locked.locks = locked
                    .locks
                    .checked_add(1)
                    .ok_or(Status::INVALID_PARAMETER)?;
                Ok(Some(locked.addr))
            }
            None => Ok(None),
        }
    }

    /// Removes a lock; returns what to unmap if it was the last one.
    fn unlock(&mut self) -> DxgResult<Option<(Arc<CountedFile>, Mapped)>> {
        let locked = self.locked.as_mut().ok_or(Status::INVALID_PARAMETER)?;

        locked.locks -= 1;
        if locked.locks > 0 {
            return Ok(None);
        }

        Ok(self.file.clone().zip(self.locked.take()))
    }
}
