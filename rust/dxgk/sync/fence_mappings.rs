// SPDX-License-Identifier: GPL-2.0

//! The mappings of pages of fence values in one process.

use crate::error::{
    DxgError,
    DxgResult, //
};
use crate::sys::alloc::tree_node;
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
    rbtree::RBTree,
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
    /// The process and its address space.
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
    pub(crate) fn map(&self, page: &Arc<ValuePage>) -> DxgResult<Mapped> {
        self.mapper.map(page).map_err(DxgError::from_errno)
    }

    /// Whether only the process sees `page`, where it was mapped.
    ///
    /// Context: as [`FenceMappings::map`].
    pub(crate) fn is_alone(&self, mapped: Mapped, page: &ValuePage) -> bool {
        self.mapper.is_alone(mapped, page)
    }

    /// Removes a mapping that no handle of the process needs any more. Handles are destroyed in
    /// calls of their process, or all together when the process is emptied. If the worker empties
    /// it, the mapping is left to the end of the address space.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap(&self, mapped: Mapped) {
        if self.identity.is_caller() {
            self.mapper.unmap(mapped);
        }
    }

    /// Maps the page of the shared object `id`, or adds a user to its mapping.
    ///
    /// Context: as [`FenceMappings::map`].
    pub(crate) fn map_shared(&self, id: u64, page: &Arc<ValuePage>) -> DxgResult<usize> {
        if let Some(addr) = self.use_shared(id) {
            return Ok(addr);
        }

        let mapped = self.map(page)?;
        let fresh = SharedMapping { mapped, opens: 1 };
        let node = tree_node(id, fresh).inspect_err(|_| self.unmap(mapped))?;
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

    /// Removes a user of the mapping of the shared object `id`; the last one unmaps it (FEN-12).
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
