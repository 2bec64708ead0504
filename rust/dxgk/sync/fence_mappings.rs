// SPDX-License-Identifier: GPL-2.0

//! What of ours is mapped in one process: pages of fence values.

use crate::sys::{
    mem::{
        mapping::{
            Mapped,
            Mapper, //
        },
        value_page::ValuePage, //
    },
    task::caller::Identity, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// The mapping of a shared fence, used by every open handle in the process.
struct SharedMapping {
    mapped: Mapped,
    opens: u32,
}

/// The mappings of one process.
#[pin_data]
pub(crate) struct FenceMappings {
    /// Whose memory this is.
    pub(crate) identity: Identity,
    mapper: Mapper,
    /// Mappings of shared fences, by object id. LOCK: nothing is mapped or unmapped under it.
    #[pin]
    shared: Mutex<RBTree<u64, SharedMapping>>,
}

impl FenceMappings {
    /// The address space of `identity`, with nothing in it.
    pub(crate) fn new(identity: Identity) -> Result<Arc<Self>> {
        let mapper = Mapper::new()?;

        Arc::pin_init(
            pin_init!(Self {
                identity,
                mapper,
                shared <- new_mutex!(RBTree::new(), "FenceMappings::shared"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Maps `page` read-only.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn map(&self, page: &Arc<ValuePage>) -> Result<Mapped> {
        self.mapper.map(page)
    }

    /// Removes a mapping that no handle of the process needs any more. Handles end in calls of
    /// their process, or with all others when the process is emptied; that may be done by the
    /// worker, which leaves the mapping to the end of the memory.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap(&self, mapped: Mapped) {
        if self.identity.is_caller() {
            self.mapper.unmap(mapped);
        }
    }

    /// Maps the page of the shared object `id`, or counts one more user of its mapping.
    ///
    /// Context: as [`FenceMappings::map`].
    pub(crate) fn map_shared(&self, id: u64, page: &Arc<ValuePage>) -> Result<usize> {
        if let Some(addr) = self.use_shared(id) {
            return Ok(addr);
        }

        let mapped = self.map(page)?;
        let fresh = SharedMapping { mapped, opens: 1 };
        let node =
            RBTreeNode::new(id, fresh, GFP_KERNEL_ACCOUNT).inspect_err(|_| self.unmap(mapped))?;
        let mut shared = self.shared.lock();

        // Another thread may have opened the same object meanwhile; one mapping is enough.
        if let Some(other) = shared.get_mut(&id) {
            let addr = other.mapped.addr;

            other.opens += 1;
            drop(shared);
            self.unmap(mapped);
            return Ok(addr);
        }
        shared.insert(node);
        Ok(mapped.addr)
    }

    fn use_shared(&self, id: u64) -> Option<usize> {
        let mut shared = self.shared.lock();
        let mapping = shared.get_mut(&id)?;

        // OVERFLOW: bounded by the handles of the process.
        mapping.opens += 1;
        Some(mapping.mapped.addr)
    }

    /// One user of the mapping of the shared object `id` is gone; the last one unmaps it (FEN-12).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap_shared(&self, id: u64) {
        let mut shared = self.shared.lock();
        let last = match shared.get_mut(&id) {
            Some(mapping) if mapping.opens > 1 => {
                mapping.opens -= 1;
                None
            }
            Some(_) => shared.remove_node(&id),
            None => None,
        };

        drop(shared);
        if let Some(node) = last {
            self.unmap(node.to_key_value().1.mapped);
        }
    }
}
