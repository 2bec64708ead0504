// SPDX-License-Identifier: GPL-2.0

//! What of ours is mapped in one process: pages of fence values.
//!
//! A page is mapped by the call that makes or opens a fence. The call announces the page under a
//! token, maps the device file at that token, and withdraws it; our `mmap` operation takes the page
//! from the announcement. So no address is looked up later, and a user who maps the device by hand
//! finds nothing.

use crate::sys::{
    caller::Identity,
    mapping,
    value_page::ValuePage, //
};
use kernel::{
    fs::File,
    new_mutex,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLock, //
    }, //
};

/// A page of ours in the process.
#[derive(Clone, Copy)]
pub(crate) struct Mapped {
    /// Where.
    pub(crate) addr: usize,
    token: usize,
}

/// The mapping of a shared fence, used by every opening in the process.
struct SharedMapping {
    mapped: Mapped,
    openings: u32,
}

/// The mappings of one process.
#[pin_data]
pub(crate) struct AddressSpace {
    /// Whose memory this is.
    pub(crate) identity: Identity,
    /// Pages that a call is mapping at this moment, by token. LOCK: leaf, taken inside the mmap
    /// lock.
    #[pin]
    announced: SpinLock<RBTree<usize, Arc<ValuePage>>>,
    /// Mappings of shared fences, by object id. LOCK: nothing is mapped or unmapped under it.
    #[pin]
    shared: Mutex<RBTree<u64, SharedMapping>>,
}

impl AddressSpace {
    /// The address space of `identity`, with nothing in it.
    pub(crate) fn new(identity: Identity) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                identity,
                announced <- new_spinlock!(RBTree::new(), "AddressSpace::announced"),
                shared <- new_mutex!(RBTree::new(), "AddressSpace::shared"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Maps `page` read-only. `file` is the caller's open device.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn map(&self, file: &File, page: &Arc<ValuePage>) -> Result<Mapped> {
        static NEXT_TOKEN: Atomic<usize> = Atomic::new(1);

        // Tokens become page offsets of the device file, which have 52 bits: enough for a mapping
        // every microsecond for a century. They are unique among all processes.
        let token = NEXT_TOKEN.fetch_add(1, Relaxed);
        let node = RBTreeNode::new(token, page.clone(), GFP_KERNEL_ACCOUNT)?;

        self.announced.lock().insert(node);

        let addr = mapping::map(file, token);
        let withdrawn = self.announced.lock().remove_node(&token);

        drop(withdrawn);
        Ok(Mapped { addr: addr?, token })
    }

    /// Removes a mapping, if the caller is the process it was made in; a mapping that outlives its
    /// process goes with the memory of the process.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap(&self, mapped: Mapped) {
        if self.identity.is_caller() {
            mapping::unmap(mapped.addr, mapped.token);
        }
    }

    /// The page announced under `token`; asked by our `mmap` operation.
    pub(crate) fn announced(&self, token: usize) -> Option<Arc<ValuePage>> {
        self.announced.lock().get(&token).cloned()
    }

    /// Maps the page of the shared object `id`, or counts one more user of its mapping.
    ///
    /// Context: as [`AddressSpace::map`].
    pub(crate) fn map_shared(&self, file: &File, id: u64, page: &Arc<ValuePage>) -> Result<usize> {
        if let Some(addr) = self.use_shared(id) {
            return Ok(addr);
        }

        let mapped = self.map(file, page)?;
        let fresh = SharedMapping {
            mapped,
            openings: 1,
        };
        let node = match RBTreeNode::new(id, fresh, GFP_KERNEL_ACCOUNT) {
            Ok(node) => node,
            Err(error) => {
                self.unmap(mapped);
                return Err(error);
            }
        };
        let mut shared = self.shared.lock();

        // Another thread may have opened the same object meanwhile; one mapping is enough.
        if let Some(other) = shared.get_mut(&id) {
            other.openings += 1;

            let addr = other.mapped.addr;

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
        mapping.openings += 1;
        Some(mapping.mapped.addr)
    }

    /// One user of the mapping of the shared object `id` is gone; the last one unmaps it (FEN-12).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn unmap_shared(&self, id: u64) {
        let mut shared = self.shared.lock();
        let last = match shared.get_mut(&id) {
            Some(mapping) if mapping.openings > 1 => {
                mapping.openings -= 1;
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
