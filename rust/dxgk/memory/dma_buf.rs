// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of allocations (RES-86). A dma-buf is a strong reference to the resource like any
//! other, in the form that other drivers and programs understand.
//!
//! The module puts no fence into their reservation object: monitored fences may never signal
//! (RES-88). Clients add those of sync files, which do.

use super::{
    allocation::Allocation,
    backing::pages_of,
    resource::Resource,
    storage::Storage, //
};
use crate::dxgk::{
    object::{
        Object,
        Strong, //
    },
    quota::holder::{
        Amounts,
        Claim,
        Holder, //
    },
    stats::{
        Counted,
        OwnStats,
        DMABUFS, //
    }, //
};
use crate::{
    error::{
        DxgError,
        DxgResult, //
    },
    logic::handle,
    sys::{
        file::object_file::{
            NotOurs,
            PendingFd, //
        },
        mem::{
            dma_export::{
                self,
                Buffer, //
            },
            dma_slots::User,
            pages::Whole,
            shmem::BadSection, //
        }, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// What one dma-buf owns.
struct Export {
    storage: Arc<Storage>,
    /// Its pages, which stay where they are meanwhile.
    pages: Whole,
    strong: Counted<Strong, DMABUFS>,
    /// Its file, which is kept without a descriptor.
    _claim: Claim,
}

impl Export {
    /// The resource that it is a reference to.
    fn resource(&self) -> Option<&Resource> {
        match self.strong.object() {
            Object::Resource(resource) => Some(resource),
            _ => None,
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if let Some(resource) = self.resource() {
            resource.exports.fetch_sub(1, Relaxed);
        }
    }
}

impl Buffer for Export {
    type Object = Storage;

    fn object(&self) -> &Arc<Storage> {
        &self.storage
    }

    fn pages(&self) -> &Whole {
        &self.pages
    }
}

/// A descriptor of the dma-buf of an allocation; `keep` makes the strong reference that a new one
/// holds. There is at most one for writing and one for reading only. Allocations with the same
/// bytes, by importing a dma-buf of this module, share them. For a dma-buf of another driver it is
/// the imported one, which holds nothing of this module. A new one is charged to `holder` as a
/// file.
///
/// Context: a system call, no locks held.
pub(crate) fn export(
    allocation: &Allocation,
    holder: &Arc<Holder>,
    read_only: bool,
    keep: impl FnOnce() -> DxgResult<Strong>,
) -> DxgResult<PendingFd> {
    let read_only = read_only || allocation.description.read_only;
    let storage = allocation.storage()?;

    if let Some(original) = storage.original(read_only)? {
        return Ok(PendingFd::of_file(original, handle::LAST_FD, true)?);
    }

    let user = storage.add_user();
    let make = || -> DxgResult<Export> {
        let storage = user.object();
        let pinned = Arc::new(storage.pin()?, GFP_KERNEL_ACCOUNT)?;
        let export = Export {
            storage: storage.clone(),
            pages: Whole::new(pinned).map_err(DxgError::from_errno)?,
            strong: Counted::new(keep()?),
            _claim: holder.charge(Amounts {
                files: 1,
                ..Amounts::default()
            })?,
        };

        if let Some(resource) = export.resource() {
            resource.exports.add(1, Relaxed);
        }
        Ok(export)
    };
    let file = dma_export::export(&user, !read_only, make, DxgError::from_errno)?;

    Ok(PendingFd::of_file(file, handle::LAST_FD, true)?)
}

/// The storage of an allocation that is made of the first `size` bytes of a shmem file or a
/// dma-buf. A dma-buf of this module gives those of the storage that it was made of, with a user of
/// its dma-bufs, so that this one is found again until the allocation has a handle.
///
/// Context: a system call, no locks held.
pub(super) fn section(
    holder: &Arc<Holder>,
    stats: OwnStats,
    fd: u32,
    size: u64,
    write: bool,
) -> DxgResult<(Arc<Storage>, Option<User<Storage>>)> {
    pages_of(size)?;

    match dma_export::imported::<Export>(fd) {
        Ok((_, false)) if write => Err(BadSection::Denied.into()),
        Ok((user, _)) => Ok((user.object().part(holder, stats, size)?, Some(user))),
        Err(NotOurs::Closed) => Err(BadSection::Closed.into()),
        Err(NotOurs::Mismatch) => {
            let storage = Storage::section(holder, stats, fd, size, write)?;

            Ok((storage, None))
        }
    }
}
