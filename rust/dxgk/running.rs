// SPDX-License-Identifier: GPL-2.0

//! The adapters that run and the processes that have the device open, as an adapter that stops
//! needs them: the driver takes it out of all of them, whoever finds that it is at an end.
//!
//! LOCK: `adapters` and `processes` are leaves. `processes` is taken by open and release, by the
//! removal of an adapter and by its reset.

use super::{
    adapter::{
        Adapter,
        AdapterOwner, //
    },
    process::Process,
    sched::files::GpuFiles, //
};
use crate::sys::task::{
    caller::ProcessKey,
    group::ThreadGroup, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// A process and how many open files it has.
pub(super) struct Listed {
    pub(super) process: Arc<Process>,
    pub(super) opens: u32,
}

impl Listed {
    pub(super) fn reopen(&mut self) -> Arc<Process> {
        // OVERFLOW: bounded by the number of open files.
        self.opens += 1;
        self.process.clone()
    }
}

/// What runs.
#[pin_data]
pub(crate) struct Running {
    /// The adapters that run. There is room for all that may.
    #[pin]
    pub(super) adapters: SpinLock<KVec<Arc<Adapter>>>,
    #[pin]
    pub(super) processes: SpinLock<RBTree<ProcessKey, Listed>>,
    /// Shows what engines and queues do.
    pub(super) gpu_files: Option<Pin<KBox<GpuFiles>>>,
}

impl Running {
    /// Nothing, with room for so many adapters.
    pub(super) fn new(
        most_adapters: usize,
        gpu_files: Option<Pin<KBox<GpuFiles>>>,
    ) -> Result<impl PinInit<Self>> {
        let adapters = KVec::with_capacity(most_adapters, GFP_KERNEL)?;

        Ok(pin_init!(Self {
            adapters <- new_spinlock!(adapters, "Driver::adapters"),
            processes <- new_spinlock!(RBTree::new(), "Driver::processes"),
            gpu_files,
        }))
    }

    /// The end of an adapter that is not found any more.
    pub(super) fn end_adapter(&self, adapter: &Arc<Adapter>) {
        adapter.end_once(|| {
            if let Some(files) = self.gpu_files.as_deref() {
                files.hide(adapter);
            }
            adapter.end_doorbells();
            adapter.stop();
            adapter.end_queues();

            // From here on nothing is added to what these find: a call that adds something checks
            // the adapter afterwards.
            self.for_each_process(|process| process.handles.adapter_removed(adapter));
            adapter.fences.adapter_removed();
        });
    }

    fn for_each_process(&self, act: impl Fn(&Process)) {
        let mut seen = None;

        while let Some((key, process)) = self.process_after(seen) {
            act(&process);
            seen = Some(key);
        }
    }

    /// The process after the one with this key, in any order.
    fn process_after(&self, seen: Option<ProcessKey>) -> Option<(ProcessKey, Arc<Process>)> {
        let processes = self.processes.lock();
        let next = match seen {
            None => processes.cursor_front(),
            Some(key) => processes.cursor_lower_bound(&key.next()),
        }?;
        let (key, listed) = next.current();

        Some((*key, listed.process.clone()))
    }

    /// The process of a thread group, if that has the device open.
    pub(super) fn process_of(&self, group: &ThreadGroup) -> Option<Arc<Process>> {
        let mut seen = None;

        while let Some((key, process)) = self.process_after(seen) {
            if process.mappings.identity.is_group(group) {
                return Some(process);
            }
            seen = Some(key);
        }
        None
    }
}

impl AdapterOwner for Running {
    /// Removes an adapter, with clients or without: it is found no more, everything that waits for
    /// it ends, and its memory is taken out of all processes. What was made on it stays, and can
    /// be destroyed. If that was done before, or others are at it, this returns when it is done.
    ///
    /// Context: may sleep, no locks held.
    fn remove_adapter(&self, adapter: &Arc<Adapter>) {
        let running = {
            let mut adapters = self.adapters.lock();
            let place = adapters
                .iter()
                .position(|running| Arc::ptr_eq(running, adapter));

            place.and_then(|place| adapters.remove(place).ok())
        };

        drop(running);
        self.end_adapter(adapter);
    }

    /// All work of the adapter is lost: its devices are in error.
    ///
    /// Context: may sleep, no locks held.
    fn lose_devices(&self, adapter: &Arc<Adapter>) {
        self.for_each_process(|process| process.handles.adapter_reset(adapter));
    }
}
