// SPDX-License-Identifier: GPL-2.0

//! The dma-bufs of one object, kept as long as the object is used (RES-86).
//!
//! A dma-buf is kept by a reference. Its address would not do: the release of a dma-buf comes with
//! the end of its inode, which may be long after its file was closed for the last time and freed.

use crate::sys::ffi;
use kernel::{
    fs::File,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// An object that dma-bufs are made of.
pub(crate) trait Exported: Send + Sync + 'static {
    /// Its dma-bufs.
    fn slots(&self) -> &DmaSlots;
}

/// The dma-bufs of one object: one for reading only, one for writing.
///
/// They are kept while the object has a [`User`], and dropped with the last one. A dma-buf owns the
/// object and this with it. So without users, nothing but the users of a dma-buf keeps them all.
#[pin_data]
pub(crate) struct DmaSlots {
    /// Goes from 0 to 1 and back at any time.
    users: Atomic<u32>,
    /// dma-bufs that have not been released yet, kept here or not.
    exports: Atomic<u32>,
    /// LOCK: leaf. No reference is dropped under it.
    #[pin]
    kept: Mutex<Kept>,
}

/// The dma-bufs that are kept.
#[derive(Default)]
struct Kept {
    read_only: Option<ARef<File>>,
    writable: Option<ARef<File>>,
}

impl Kept {
    fn of(&mut self, write: bool) -> &mut Option<ARef<File>> {
        if write {
            &mut self.writable
        } else {
            &mut self.read_only
        }
    }
}

impl DmaSlots {
    /// Without dma-bufs and users.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            users: Atomic::new(0),
            exports: Atomic::new(0),
            kept <- new_mutex!(Kept::default(), "DmaSlots::kept"),
        })
    }

    /// Counts a new dma-buf.
    pub(super) fn count_export(&self) {
        self.exports.add(1, Relaxed);
    }

    /// A dma-buf is being released.
    pub(super) fn forget_export(&self) {
        self.exports.fetch_sub(1, Relaxed);
    }

    /// Drops the dma-bufs that nobody has any more; says how many.
    ///
    /// Context: may sleep. Their end comes when the caller returns to user mode.
    pub(crate) fn drop_unused(&self) -> u32 {
        let mut kept = self.kept.lock();
        let mut unused = Kept::default();
        let mut count = 0;

        for write in [false, true] {
            let is_unused = kept.of(write).as_ref().is_some_and(|file| {
                // SAFETY: The file is referenced. Another reference is only made of one that there
                // is, and this one is behind the lock.
                unsafe { ffi::dxg_file_is_alone(file.as_ptr()) }
            });

            if is_unused {
                *unused.of(write) = kept.of(write).take();
                count += 1;
            }
        }
        drop(kept);
        drop(unused);
        count
    }

    /// Whether anybody has a dma-buf.
    ///
    /// Context: as [`DmaSlots::drop_unused`].
    pub(crate) fn is_exported(&self) -> bool {
        self.exports.load(Relaxed) > self.drop_unused()
    }
}

/// Somebody who uses the object other than through a dma-buf.
pub(crate) struct User<T: Exported>(Arc<T>);

impl<T: Exported> User<T> {
    /// Adds a user.
    pub(crate) fn new(object: Arc<T>) -> Self {
        // OVERFLOW: bounded by the handles of all processes.
        object.slots().users.fetch_add(1, Full);
        Self(object)
    }

    /// What is used.
    pub(crate) fn object(&self) -> &Arc<T> {
        &self.0
    }

    /// The file of the dma-buf that is kept, if there is one.
    pub(super) fn kept(&self, write: bool) -> Option<ARef<File>> {
        self.0.slots().kept.lock().of(write).clone()
    }

    /// Keeps a dma-buf of the object, unless another one is kept already; returns the one that is.
    pub(super) fn keep(&self, file: ARef<File>, write: bool) -> ARef<File> {
        // The one that is not kept is dropped after the lock.
        let mut kept = self.0.slots().kept.lock();
        let other = kept.of(write).clone();

        if other.is_none() {
            *kept.of(write) = Some(file.clone());
        }
        drop(kept);
        other.unwrap_or(file)
    }
}

impl<T: Exported> Drop for User<T> {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let slots = self.0.slots();

        if slots.users.fetch_sub(1, Full) != 1 {
            return;
        }

        let mut kept = slots.kept.lock();
        // There may be another user by now.
        let unused = (slots.users.load(Relaxed) == 0).then(|| core::mem::take(&mut *kept));

        drop(kept);
        drop(unused);
    }
}
