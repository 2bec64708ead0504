// SPDX-License-Identifier: GPL-2.0

//! What a KMD has made, as a verifier knows it.
//!
//! The OS part gets cookies of the verifier, which are never used again. So it finds those of
//! another kind and those of what is gone, whatever the KMD calls its objects.

use crate::{
    ddi::{
        slab::{
            self,
            SharedSlab,
            Slab, //
        },
        types::{
            AllocationEndCookie,
            Scheduling, //
        },
    },
    platform::{
        self,
        Shared,
        Word32,
        Word64, //
    }, //
};

/// What a cookie stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Process,
    Device,
    /// A context, which takes work so.
    Context(Scheduling),
    HwQueue,
    Doorbell,
    CpuEvent,
    NativeFence,
    OpenNativeFence,
    FenceDoorbell,
    Allocation,
    Open,
}

impl Kind {
    /// Whether this is what an entry wants. It may want any context.
    fn is(self, wanted: Self) -> bool {
        matches!((self, wanted), (Self::Context(_), Self::Context(_))) || self == wanted
    }
}

/// An object of the KMD.
pub(super) struct Object {
    pub(super) kind: Kind,
    /// What the OS part calls it, for the log.
    pub(super) id: u64,
    /// What the KMD calls it; 0 while it is being made.
    cookie: Word64,
    /// Tells it from others that had the same number.
    serial: u32,
    /// What it was made on: of a device's, the device first.
    parents: [Option<Shared<Object>>; 2],
    /// How many were made on it.
    children: Word32,
    /// A call that excludes others is inside.
    pub(super) busy: Word32,
    /// What is known of it as a queue, if it can be one.
    pub(super) queue: Option<Shared<Work>>,
    /// A KMD has asked to be told of its end (1), and has been told (2).
    end_wanted: Word32,
    end: Word64,
}

/// What is known of the work of a context or a HW queue.
pub(super) struct Work {
    /// On which node it runs.
    pub(super) node: u32,
    /// Most submissions at a time; 0 if it takes none.
    pub(super) most: u64,
    /// Whether submissions have a progress value.
    pub(super) progress: bool,
    /// Whether its process fills it, so that nothing is submitted.
    pub(super) is_filled_by_process: bool,
    /// A submit is inside.
    pub(super) submitting: Word32,
    pub(super) submitted: Word64,
    pub(super) completed: Word64,
    /// How many suspensions there were, and answers to them.
    pub(super) suspensions: Word32,
    pub(super) answers: Word32,
    pub(super) faulted: Word32,
    /// The destroy has returned.
    pub(super) ended: Word32,
    /// The KMD has let go of its callbacks.
    pub(super) released: Word32,
}

impl Work {
    pub(super) fn new(node: u32, most: u64, progress: bool) -> Option<Shared<Self>> {
        Self::make(node, most, progress, false)
    }

    /// That of a HW queue which its process fills.
    pub(super) fn of_process(node: u32) -> Option<Shared<Self>> {
        Self::make(node, 0, true, true)
    }

    fn make(
        node: u32,
        most: u64,
        progress: bool,
        is_filled_by_process: bool,
    ) -> Option<Shared<Self>> {
        platform::shared(Self {
            node,
            most,
            progress,
            is_filled_by_process,
            submitting: platform::word32(0),
            submitted: platform::word64(0),
            completed: platform::word64(0),
            suspensions: platform::word32(0),
            answers: platform::word32(0),
            faulted: platform::word32(0),
            ended: platform::word32(0),
            released: platform::word32(0),
        })
    }
}

impl Object {
    /// What the KMD calls it.
    pub(super) fn cookie(&self) -> u64 {
        platform::load_acquire(&self.cookie)
    }

    /// What it was made on first: its device, or the context of a HW queue.
    pub(super) fn parent(&self) -> Option<&Shared<Object>> {
        self.parents.first().and_then(Option::as_ref)
    }

    pub(super) fn has_children(&self) -> bool {
        platform::load32_acquire(&self.children) != 0
    }

    /// The KMD wants to be told of its end with this cookie.
    pub(super) fn want_end(&self, end: AllocationEndCookie) {
        platform::store_release(&self.end, end.0);
        platform::cmpxchg(&self.end_wanted, 0, 1);
    }

    /// The KMD is told, with this; `None` if it did not want that, or not again.
    pub(super) fn tell_end(&self) -> Option<AllocationEndCookie> {
        platform::cmpxchg(&self.end_wanted, 1, 2)
            .then(|| AllocationEndCookie(platform::load_acquire(&self.end)))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        for parent in self.parents.iter().flatten() {
            platform::fetch_sub(&parent.children, 1);
        }
    }
}

/// All objects of a KMD.
pub(super) struct Objects {
    all: SharedSlab<Shared<Object>>,
    serial: Word32,
    count: Word32,
}

/// An object that is being made: the KMD has not answered yet. Its cookie is kept for it.
pub(super) struct New {
    pub(super) object: Shared<Object>,
    pub(super) cookie: u64,
}

impl Objects {
    /// None; `None` if there is no memory. May sleep.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            all: platform::short_lock!(Slab::new()?, "ddi::Objects::all")?,
            serial: platform::word32(0),
            count: platform::word32(0),
        })
    }

    /// Room for a new object; `None` if there is no memory. May sleep.
    pub(super) fn prepare(
        &self,
        kind: Kind,
        id: u64,
        parents: [Option<Shared<Object>>; 2],
        queue: Option<Shared<Work>>,
    ) -> Option<New> {
        // OVERFLOW: a number is used again after four billion others.
        let serial = platform::fetch_add(&self.serial, 1).wrapping_add(1);

        for parent in parents.iter().flatten() {
            platform::fetch_add(&parent.children, 1);
        }

        let object = platform::shared(Object {
            kind,
            id,
            cookie: platform::word64(0),
            serial,
            parents,
            children: platform::word32(0),
            busy: platform::word32(0),
            queue,
            end_wanted: platform::word32(0),
            end: platform::word64(0),
        })?;
        let number = slab::insert(&self.all, object.clone())?;

        platform::fetch_add(&self.count, 1);
        Some(New {
            object,
            cookie: (u64::from(serial) << 32) | u64::from(number),
        })
    }

    /// The KMD has made it, and calls it so. Returns what the OS part calls it.
    pub(super) fn made(&self, new: &New, cookie: u64) -> u64 {
        platform::store_release(&new.object.cookie, cookie);
        new.cookie
    }

    /// The object with this cookie, if it is of this kind.
    pub(super) fn find(&self, kind: Kind, cookie: u64) -> Option<Shared<Object>> {
        let (serial, number) = split(cookie);
        let all = self.all.lock();

        all.get(number)
            .filter(|object| object.serial == serial && object.kind.is(kind))
            .cloned()
    }

    /// An object is gone, or was never made. Its cookie stands for nothing any more.
    pub(super) fn remove(&self, cookie: u64) {
        let removed = self.all.lock().remove(split(cookie).1);

        if removed.is_some() {
            platform::fetch_sub(&self.count, 1);
        }
        drop(removed);
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        platform::load32_acquire(&self.count) == 0
    }
}

/// The serial number and the number of a cookie.
fn split(cookie: u64) -> (u32, u32) {
    // CAST: the upper half, and the lower half on purpose.
    ((cookie >> 32) as u32, cookie as u32)
}
