// SPDX-License-Identifier: GPL-2.0

//! What the module has once: the adapters, the processes that have the device open, and the table
//! of global handles.
//!
//! LOCK: `adapters` and `processes` are leaves. `processes` is taken by open and release, and by
//! the removal of an adapter.

use super::{
    adapter::{
        Adapter,
        Luid, //
    },
    debugfs::Debugfs,
    process::Process,
    tables::Tables, //
};
use crate::{
    kmd::soft::{
        Config,
        SoftKmd, //
    },
    sys::{
        alloc::pin_arc,
        task::caller::{
            Identity,
            ProcessKey, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// How many adapters may run at the same time.
pub(crate) const MAX_ADAPTERS: u32 = 16;

/// The adapters that run.
struct Adapters {
    /// There is room for [`MAX_ADAPTERS`].
    running: KVec<Arc<Adapter>>,
    /// The number of the next one. Numbers are not used again.
    next: u32,
}

/// A process and how many open files it has.
struct Listed {
    process: Arc<Process>,
    opens: u32,
}

impl Listed {
    fn reopen(&mut self) -> Arc<Process> {
        // OVERFLOW: bounded by the number of open files.
        self.opens += 1;
        self.process.clone()
    }
}

/// The module's one driver object.
#[pin_data]
pub(crate) struct Driver {
    #[pin]
    adapters: SpinLock<Adapters>,
    /// Shows what exists, if anything does.
    debugfs: Option<Debugfs>,
    /// What all processes share.
    pub(crate) tables: Tables,
    #[pin]
    processes: SpinLock<RBTree<ProcessKey, Listed>>,
}

impl Driver {
    /// A driver with this many adapters, whose counters `debugfs` shows.
    pub(crate) fn new(adapter_count: u32, debugfs: Option<Debugfs>) -> Result<Arc<Self>> {
        let tables = Tables::new()?;
        let adapters = Adapters {
            // CAST: 16.
            running: KVec::with_capacity(MAX_ADAPTERS as usize, GFP_KERNEL)?,
            next: 0,
        };
        let driver = pin_arc(
            pin_init!(Self {
                adapters <- new_spinlock!(adapters, "Driver::adapters"),
                debugfs,
                tables,
                processes <- new_spinlock!(RBTree::new(), "Driver::processes"),
            }),
            GFP_KERNEL,
        )?;

        for _ in 0..adapter_count {
            driver.add_soft_adapter(Config::default())?;
        }
        Ok(driver)
    }

    /// Starts one more software adapter; ENOSPC if as many as may be run already.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn add_soft_adapter(&self, config: Config) -> Result<Arc<Adapter>> {
        let index = {
            let mut adapters = self.adapters.lock();
            let index = adapters.next;

            adapters.next = index.checked_add(1).ok_or(ENOSPC)?;
            index
        };
        let kmd = SoftKmd::add_device(Config { index, ..config });
        let kmd = KBox::new(kmd, GFP_KERNEL)?;

        self.add(Adapter::start(index, kmd, self.debugfs.as_ref()).map_err(|_| ENOMEM)?)
    }

    /// From now on a started adapter is found; ENOSPC as above.
    pub(super) fn add(&self, adapter: Arc<Adapter>) -> Result<Arc<Adapter>> {
        let added = self
            .adapters
            .lock()
            .running
            .push_within_capacity(adapter.clone());

        added.map_err(|_| ENOSPC)?;
        Ok(adapter)
    }

    /// Removes an adapter, with clients or without: it is found no more, everything that waits for
    /// it ends, and its memory is taken out of all processes. What was made on it stays, and can be
    /// destroyed.
    ///
    /// Context: may sleep, no locks held; once for an adapter.
    pub(crate) fn remove_adapter(&self, adapter: &Arc<Adapter>) {
        let running = {
            let mut adapters = self.adapters.lock();
            let place = adapters
                .running
                .iter()
                .position(|running| Arc::ptr_eq(running, adapter));

            place.and_then(|place| adapters.running.remove(place).ok())
        };

        drop(running);
        adapter.stop();

        // From here on nothing is added to what these find: whoever does looks at the adapter after
        // it.
        let mut seen = None;

        while let Some((key, process)) = self.process_after(seen) {
            process.handles.lose(adapter);
            seen = Some(key);
        }

        adapter.shared_fences.adapter_removed();
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

    /// The adapters that run now, in the order in which they came.
    pub(crate) fn adapters(&self) -> Result<KVec<Arc<Adapter>>, AllocError> {
        // CAST: 16.
        let mut all = KVec::with_capacity(MAX_ADAPTERS as usize, GFP_KERNEL_ACCOUNT)?;

        for adapter in &self.adapters.lock().running {
            // There is room for as many as there can be.
            let _room = all.push_within_capacity(adapter.clone());
        }
        Ok(all)
    }

    /// How many adapters run now.
    pub(crate) fn adapter_count(&self) -> u32 {
        // CAST: at most 16.
        self.adapters.lock().running.len() as u32
    }

    /// The adapter with this LUID, if it runs.
    pub(crate) fn adapter(&self, luid: Luid) -> Option<Arc<Adapter>> {
        let adapters = self.adapters.lock();

        adapters
            .running
            .iter()
            .find(|adapter| adapter.luid == luid)
            .cloned()
    }

    /// The calling process, with one more open file.
    pub(crate) fn open_process(&self) -> Result<Arc<Process>> {
        let identity = Identity::of_caller()?;
        let key = identity.key();

        // The identities in the tree are referenced, so that equal keys are the same process.
        if let Some(known) = self.reopen(key) {
            return Ok(known);
        }

        let process = Process::new(identity, self.tables.accounts.of_caller()?)?;
        let fresh = Listed {
            process: process.clone(),
            opens: 1,
        };
        let node =
            RBTreeNode::new(key, fresh, GFP_KERNEL_ACCOUNT).inspect_err(|_| process.release())?;
        let mut processes = self.processes.lock();

        // Another thread of the process may have opened the device meanwhile.
        if let Some(listed) = processes.get_mut(&key) {
            let known = listed.reopen();

            drop(processes);
            drop(node);
            process.release();
            return Ok(known);
        }
        processes.insert(node);
        Ok(process)
    }

    fn reopen(&self, key: ProcessKey) -> Option<Arc<Process>> {
        self.processes.lock().get_mut(&key).map(Listed::reopen)
    }

    /// Releases one open file of `process`. The last one empties the process.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn release_process(&self, process: &Process) {
        let key = process.mappings.identity.key();
        let mut processes = self.processes.lock();
        let last = match processes.get_mut(&key) {
            Some(listed) if listed.opens > 1 => {
                listed.opens -= 1;
                None
            }
            Some(_) => processes.remove_node(&key),
            None => None,
        };

        drop(processes);
        if let Some(node) = last {
            node.to_key_value().1.process.release();
        }
    }
}
