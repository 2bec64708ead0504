// SPDX-License-Identifier: GPL-2.0

//! What the module has once: the adapters, the processes that have the device open, and the table
//! of global handles.
//!
//! LOCK: `processes` is a leaf, taken by open and release only.

use super::{
    adapter::{
        Adapter,
        Luid, //
    },
    process::Process,
    tables::Tables, //
};
use crate::{
    error::DxgResult,
    kmd::soft::{
        Config,
        SoftKmd, //
    },
    sys::{
        alloc::pin_arc,
        task::caller::Identity, //
    }, //
};
use kernel::{
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
    adapters: KVec<Arc<Adapter>>,
    /// What all processes share.
    pub(crate) tables: Arc<Tables>,
    #[pin]
    processes: SpinLock<RBTree<(usize, usize), Listed>>,
}

impl Driver {
    /// A driver with this many adapters.
    pub(crate) fn new(adapter_count: u32) -> DxgResult<Arc<Self>> {
        let mut adapters = KVec::new();

        for index in 0..adapter_count {
            let kmd = KBox::new(SoftKmd::add_device(Config { index }), GFP_KERNEL)?;

            adapters.push(Adapter::start(index, kmd)?, GFP_KERNEL)?;
        }

        let tables = Tables::new()?;

        Ok(pin_arc(
            pin_init!(Self {
                adapters,
                tables,
                processes <- new_spinlock!(RBTree::new(), "Driver::processes"),
            }),
            GFP_KERNEL,
        )?)
    }

    /// Adapters in the order of their indices.
    pub(crate) fn adapters(&self) -> &[Arc<Adapter>] {
        &self.adapters
    }

    /// The adapter with this LUID.
    pub(crate) fn adapter(&self, luid: Luid) -> Option<&Arc<Adapter>> {
        self.adapters.iter().find(|adapter| adapter.luid == luid)
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

    fn reopen(&self, key: (usize, usize)) -> Option<Arc<Process>> {
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
