// SPDX-License-Identifier: GPL-2.0

//! Retires an object when its last strong reference goes (RES-81). There are two steps, because
//! any task may drop the last reference, in any context.
//!
//! *Step one* runs in the drop and costs the same for every object. It takes no lock that is held
//! while a task sleeps. From then on the object cannot be found.
//!
//! *Step two*, the *cleanup*, ends waits, frees contents and sends notices, in this order (RES-74).
//! The users of the object decided how much that is. So the module's worker does it, unless it is
//! at most [`AT_ONCE`]. The work item is part of the object: dropping allocates nothing.
//!
//! Step two releases the user's charges. A call at a limit waits for the retirements that have
//! begun before it is refused; see [`Account::charge`](super::quota::account::Account::charge).

use super::{
    at_once::{
        Rest,
        AT_ONCE, //
    },
    keyed_mutex::KeyedMutex,
    memory::resource::Resource,
    object::Object,
    stats::{
        self,
        RETIRING, //
    },
    sync::legacy::LegacySync, //
};
use crate::sys::work;
use kernel::{
    impl_has_work,
    sync::Arc,
    workqueue::WorkItem, //
};

impl Object {
    /// The last strong reference is gone.
    ///
    /// Context: may sleep, no locks held; any task.
    pub(super) fn retire(&self) {
        let header = self.header();
        let global = header.global();

        if global != 0 {
            if let Some(globals) = &header.charge.account().accounts().globals {
                globals.remove(global);
            }
        }
        match self {
            Self::Fence(fence) => fence.unbind(),
            // Whoever destroys it is told of nothing any more (CPU-29).
            other => {
                if let Some(event) = other.cpu_event() {
                    event.end();
                }
            }
        }

        let attachments = header.attachments().retire();

        if attachments == Rest::Much || !self.cleanup_contents_at_once() {
            return self.clone().cleanup_later();
        }
        if attachments == Rest::Little {
            header.attachments().cleanup();
        }
    }

    /// Ends waits and frees contents, if that is little. True if it was.
    fn cleanup_contents_at_once(&self) -> bool {
        match self {
            Self::Fence(fence) => fence.orphan_at_once(),
            Self::Legacy(object) => {
                let little = object.has_few_waits();

                if little {
                    object.orphan();
                }
                little
            }
            Self::Resource(resource) => {
                let little = resource.has_little();

                if little {
                    resource.cleanup();
                }
                little
            }
            Self::KeyedMutex(mutex) => {
                let little = mutex.waiting() <= AT_ONCE;

                if little {
                    mutex.abandon();
                }
                little
            }
        }
    }

    /// Step two, the cleanup.
    fn cleanup(&self) {
        let header = self.header();

        match self {
            Self::Fence(fence) => fence.orphan(),
            Self::Legacy(object) => object.orphan(),
            Self::Resource(resource) => resource.cleanup(),
            Self::KeyedMutex(mutex) => mutex.abandon(),
        }
        header.attachments().cleanup();
    }

    /// Hands step two to the worker.
    fn cleanup_later(self) {
        stats::add::<RETIRING>(self.header(), 1);
        self.header().charge.account().begin_retirement();

        let Some(worker) = work::worker() else {
            return self.cleanup_now();
        };

        // An object retires once, so its work cannot be queued already.
        let _queued = match self {
            Self::Fence(fence) => return fence.cleanup_by(worker),
            Self::Legacy(object) => worker.enqueue(object).is_ok(),
            Self::Resource(resource) => worker.enqueue(resource).is_ok(),
            Self::KeyedMutex(mutex) => worker.enqueue::<_, 0>(mutex).is_ok(),
        };
    }

    /// Step two, by the worker.
    pub(super) fn cleanup_now(self) {
        let account = self.header().charge.account().clone();
        let adapter = self.header().adapter.clone();

        self.cleanup();
        // This drop releases the charge, unless a call in flight has the object.
        drop(self);
        account.end_retirement();
        stats::sub::<RETIRING>(&adapter, 1);
    }
}

/// Makes the field `retirement` of each kind the work of its step two. A fence has other work as
/// well.
macro_rules! retired_by_worker {
    ($($kind:ident as $variant:ident),*) => {$(
        impl_has_work! {
            impl HasWork<Self> for $kind { self.retirement }
        }

        impl WorkItem for $kind {
            type Pointer = Arc<Self>;

            fn run(this: Arc<Self>) {
                Object::$variant(this).cleanup_now();
            }
        }
    )*};
}

retired_by_worker!(
    LegacySync as Legacy,
    Resource as Resource,
    KeyedMutex as KeyedMutex
);
