// SPDX-License-Identifier: GPL-2.0

//! What the module has once: the adapters, the processes that have the device open, and the table
//! of global handles.
//!
//! LOCK: `numbers` is held while an adapter starts, so adapters arrive one after the other. The
//! locks of `Running` are taken under it.

use super::{
    adapter::{
        Adapter,
        AdapterKind,
        AdapterOptions,
        AdapterOwner,
        Luid, //
    },
    debugfs::Debugfs,
    process::Process,
    running::{
        Listed,
        Running, //
    },
    sched::files::GpuFiles,
    tables::Tables, //
};
use crate::{
    ddi::Kmd,
    logic::adapter_info::filter::Filter,
    sys::{
        alloc::pin_arc,
        task::{
            caller::{
                Identity,
                ProcessKey, //
            },
            group::ThreadGroup, //
        },
        trace::LogsTraced, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    rbtree::RBTreeNode,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// How many adapters may run at the same time.
pub(crate) const MAX_ADAPTERS: u32 = 16;

/// The module's one driver object.
#[pin_data(PinnedDrop)]
pub(crate) struct Driver {
    /// The number of the next adapter of each kind. Numbers are not used again.
    #[pin]
    numbers: Mutex<[u32; AdapterKind::COUNT]>,
    /// Shows what exists, if anything does.
    debugfs: Option<Debugfs>,
    /// The adapters that run, and the processes.
    running: Arc<Running>,
    /// What all processes share.
    pub(crate) tables: Tables,
}

impl Driver {
    /// A driver without adapters. `debugfs` shows the counters of those that come.
    pub(crate) fn new(debugfs: Option<Debugfs>) -> Result<Arc<Self>> {
        let tables = Tables::new()?;
        let gpu_files = debugfs.as_ref().map(GpuFiles::new).transpose()?;
        // CAST: 16.
        let running = pin_arc(Running::new(MAX_ADAPTERS as usize, gpu_files)?, GFP_KERNEL)?;

        Ok(pin_arc(
            pin_init!(Self {
                numbers <- new_mutex!([0; AdapterKind::COUNT], "Driver::numbers"),
                debugfs,
                running,
                tables,
            }),
            GFP_KERNEL,
        )?)
    }

    /// Starts one more adapter of this kind and makes it known, with what is configured about it.
    /// Its KMD is what `make` returns for its number (AddDevice). ENOSPC if as many as may be run
    /// already; then there is no KMD, and none is started. An adapter that does not start uses no
    /// number up.
    ///
    /// Context: may sleep, no spinlock held.
    pub(crate) fn add_adapter(
        &self,
        kind: AdapterKind,
        options: &AdapterOptions,
        make: impl FnOnce(u32) -> Result<KBox<dyn Kmd>, AllocError>,
    ) -> Result<Arc<Adapter>> {
        let mut numbers = self.numbers.lock();
        // CAST: the number of the variant.
        let number = numbers.get_mut(kind as usize).ok_or(EINVAL)?;
        let (index, next) = (*number, number.checked_add(1).ok_or(ENOSPC)?);

        // Until it is known, others can go, and none can come.
        // CAST: 16.
        if self.running.adapters.lock().len() >= MAX_ADAPTERS as usize {
            return Err(ENOSPC);
        }

        let adapter = Adapter::start(
            kind,
            index,
            make(index)?,
            options,
            self.debugfs.as_ref(),
            self.running.clone(),
        )?;
        let known = self
            .running
            .adapters
            .lock()
            .push_within_capacity(adapter.clone());

        known.map_err(|_| ENOSPC)?;
        *number = next;
        // Without memory for the files they are missing, and nothing else is.
        if let Some(files) = self.running.gpu_files.as_deref() {
            let _shown = files.show(&adapter);
        }
        Ok(adapter)
    }

    /// Removes an adapter, with clients or without: it is found no more, everything that waits for
    /// it ends, and its memory is taken out of all processes. What was made on it stays, and can
    /// be destroyed.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn remove_adapter(&self, adapter: &Arc<Adapter>) {
        AdapterOwner::remove_adapter(&*self.running, adapter);
    }

    /// The process of a thread group, if that has the device open.
    pub(crate) fn process_of(&self, group: &ThreadGroup) -> Option<Arc<Process>> {
        self.running.process_of(group)
    }

    /// The adapters that run now and pass `filter`, in the order in which they came.
    pub(crate) fn adapters(&self, filter: Filter) -> Result<KVec<Arc<Adapter>>, AllocError> {
        // CAST: 16.
        let mut all = KVec::with_capacity(MAX_ADAPTERS as usize, GFP_KERNEL_ACCOUNT)?;

        for adapter in self.running.adapters.lock().iter() {
            if adapter.passes(filter) {
                // There is room for as many as there can be.
                let _room = all.push_within_capacity(adapter.clone());
            }
        }
        Ok(all)
    }

    /// How many these are.
    pub(crate) fn adapter_count(&self, filter: Filter) -> u32 {
        let adapters = self.running.adapters.lock();
        let passing = adapters.iter().filter(|adapter| adapter.passes(filter));

        // CAST: at most 16.
        passing.count() as u32
    }

    /// The adapter with this LUID, if it runs.
    pub(crate) fn adapter(&self, luid: Luid) -> Option<Arc<Adapter>> {
        let adapters = self.running.adapters.lock();

        adapters
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
        let mut processes = self.running.processes.lock();

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
        self.running
            .processes
            .lock()
            .get_mut(&key)
            .map(Listed::reopen)
    }

    /// Releases one open file of `process`. The last one empties the process.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn release_process(&self, process: &Process) {
        let key = process.mappings.identity.key();
        let mut processes = self.running.processes.lock();
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

impl LogsTraced for Driver {
    /// The logs of all HW queues are larger then (GPU-80).
    fn logs_will_be_traced(&self) {
        for adapter in self.running.adapters.lock().iter() {
            adapter.log_renewal.request();
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Driver {
    /// The end of the module. Queues whose handles are gone may still work, so the adapters end as
    /// if they were removed.
    ///
    /// Context: may sleep, no locks held.
    fn drop(self: Pin<&mut Self>) {
        loop {
            let last = self.running.adapters.lock().pop();
            let Some(adapter) = last else {
                return;
            };

            self.running.end_adapter(&adapter);
        }
    }
}
