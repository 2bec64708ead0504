// SPDX-License-Identifier: GPL-2.0

//! An allocation: bytes that belong to a resource, and what its driver knows about them.
//!
//! An allocation has no count of its own: who refers to it refers to its resource as well
//! (RES-77). Its storage ends with the resource. It ends before it when an unshared resource
//! withdraws one of its allocations (RES-82).

use super::storage::Storage;
use crate::dxgk::{
    adapter::Adapter,
    quota::holder::{
        Claim,
        Holder, //
    },
    stats::{
        Counted,
        ObjectId,
        ObjectKind,
        OwnStats,
        OBJECTS, //
    },
    vidmm::{
        mover::Mover,
        residency::live::LiveMemory,
        site::Site, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object,
        types::{
            AllocationId,
            CreateAllocationArgs, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        allocation_properties::Properties,
        allocation_rules::{
            self,
            Source, //
        },
        gpu_ranges::PAGE,
        invalid_if,
        residency, //
    },
    sys::alloc::pin_arc, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// Instead of a number of handles: the allocation no longer belongs to its resource.
const WITHDRAWN: u32 = u32::MAX;

/// Memory of the caller whose size is not known yet (RES-23).
pub(crate) struct Unsized {
    /// Where it begins in the creator's memory.
    pub(crate) address: u64,
    /// Who pays for it.
    pub(crate) holder: Arc<Holder>,
    /// Where its bytes are counted.
    pub(crate) stats: OwnStats,
}

/// What an allocation is over.
pub(crate) enum Bytes {
    /// These.
    Known(Arc<Storage>),
    /// Memory whose size the first mapping tells.
    Unsized(Unsized),
}

/// What is fixed at creation.
pub(crate) struct AllocationDescription {
    /// Whether its bytes may only be read.
    pub(crate) read_only: bool,
    /// Private driver data, as given at creation or made for a standard allocation.
    pub(crate) driver_data: KVVec<u8>,
}

/// Memory that belongs to a resource.
#[pin_data]
pub(crate) struct Allocation {
    _identified: ObjectId,
    /// Where it is counted.
    _adapter: Counted<Arc<Adapter>, OBJECTS>,
    _claim: Claim,
    /// What was fixed at creation.
    pub(crate) description: AllocationDescription,
    /// How many handles there are, or [`WITHDRAWN`].
    opens: Atomic<u32>,
    /// The bytes; `None` after the end. LOCK: `DmaSlots::kept` is taken inside, and
    /// `Movable::state` tried.
    #[pin]
    storage: Mutex<Option<Arc<Storage>>>,
    /// Where GPUs have it.
    pub(crate) memory: LiveMemory,
    /// Memory of the caller whose size is not known yet. LOCK: leaf.
    #[pin]
    unsized_bytes: Mutex<Option<Unsized>>,
}

/// An allocation that the KMD has made, and that has no bytes yet.
pub(crate) struct Described {
    identified: ObjectId,
    /// What the KMD has made of it; it says how large it is.
    pub(crate) kmd: Arc<object::Allocation>,
    /// Where it is to be while it is resident.
    site: Site,
}

/// What the KMD of `adapter` makes of private driver data, for the process with the number
/// `made_by`. Of an allocation over memory of the caller it need not know the size (RES-23).
/// `contiguous`: it is to be one range in a memory segment, whatever the KMD says.
///
/// Context: may sleep, no locks held.
pub(crate) fn described(
    adapter: &Adapter,
    made_by: u64,
    driver_data: &[u8],
    source: Source,
    contiguous: bool,
) -> DxgResult<Described> {
    let identified = ObjectId::new(ObjectKind::Allocation);
    let create = CreateAllocationArgs {
        id: AllocationId(identified.id),
        private_data: driver_data,
        existing: matches!(source, Source::Caller(_)),
    };
    let mut kmd = object::Allocation::create(&adapter.port, &Passive::here(), &create)?;

    kmd.made_by = made_by;

    let info = &mut kmd.info;
    // MEM-3: the KMD answers with what the adapter has.
    let properties = Properties::new(
        adapter.memory.known_segments(),
        info.supported_segments,
        info.preferred_segment,
        info.accessed_physically,
        contiguous,
    )?;

    invalid_if(!info.alignment.is_power_of_two())?;
    // MEM-3: nobody else needs to know.
    invalid_if(info.explicit_residency_notification && !info.accessed_physically)?;
    // What is there already is as large as it is, and never in a segment.
    if source == Source::New {
        let page = adapter.memory.page_size(info.supported_segments);

        allocation_rules::align_to(info, page)?;
    }

    let site = Site::new(&adapter.memory, properties, info.alignment);

    Ok(Described {
        identified,
        kmd: Arc::new(kmd, GFP_KERNEL_ACCOUNT)?,
        site,
    })
}

/// The size of an allocation that had none, until the caller knows of it. Dropping it leaves the
/// allocation without one.
pub(crate) struct NewSize {
    allocation: Arc<Allocation>,
    storage: Arc<Storage>,
    /// `None` when the caller knows of it.
    bytes: Option<Unsized>,
}

impl NewSize {
    /// How many pages it has.
    pub(crate) fn pages(&self) -> u64 {
        self.storage.size() / PAGE
    }

    /// The caller knows of it.
    pub(crate) fn commit(mut self) {
        self.bytes = None;
        *self.allocation.storage.lock() = Some(self.storage.clone());
        self.allocation.memory.set_storage(self.storage.clone());
    }
}

impl Drop for NewSize {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            *self.allocation.unsized_bytes.lock() = Some(bytes);
        }
    }
}

impl Allocation {
    /// An allocation of these bytes, charged by `claim`, which was `described` on `adapter`.
    pub(crate) fn new(
        adapter: Arc<Adapter>,
        claim: Claim,
        description: AllocationDescription,
        described: Described,
        priority: Option<u32>,
        bytes: Bytes,
    ) -> Result<Arc<Self>, AllocError> {
        let Described {
            identified,
            kmd,
            site,
        } = described;
        let priority = priority.unwrap_or(kmd.info.priority);
        let size = kmd.info.size;
        let (storage, unsized_bytes) = match bytes {
            Bytes::Known(storage) => (Some(storage), None),
            Bytes::Unsized(bytes) => (None, Some(bytes)),
        };
        let mover = Mover::new(&adapter.memory.log, &kmd, adapter.paging_node());
        let memory = LiveMemory::new(
            kmd,
            mover,
            &adapter.memory,
            storage.clone(),
            site,
            size,
            priority,
        )?;

        pin_arc(
            pin_init!(Self {
                _identified: identified,
                _adapter: Counted::new(adapter),
                _claim: claim,
                description,
                opens: Atomic::new(0),
                storage <- new_mutex!(storage, "Allocation::storage"),
                memory,
                unsized_bytes <- new_mutex!(unsized_bytes, "Allocation::unsized_bytes"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// What QueryAllocationResidency says of it (MEM-9).
    pub(crate) fn residency(&self) -> u32 {
        residency::of_allocation(self.memory.resident_in())
    }

    /// The bytes, unless they are gone.
    pub(crate) fn storage(&self) -> DxgResult<Arc<Storage>> {
        let storage = self.storage.lock().clone();

        storage.ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Bytes; 0 as long as they are not known.
    pub(crate) fn size(&self) -> u64 {
        self.memory.size()
    }

    /// The first mapping of an allocation without a size tells it: pins so many pages from its
    /// start (RES-21, RES-23). `None` if it has one.
    ///
    /// Context: a system call of the process that made it, no locks held.
    pub(crate) fn new_size(self: &Arc<Self>, pages: u64) -> DxgResult<Option<NewSize>> {
        let taken = self.unsized_bytes.lock().take();
        let Some(bytes) = taken else {
            return Ok(None);
        };
        let pinned = pages
            .checked_mul(PAGE)
            .ok_or(Status::INVALID_PARAMETER.into())
            .and_then(|size| {
                let write = !self.description.read_only;
                let stats = bytes.stats.clone();

                Storage::user(&bytes.holder, stats, bytes.address, size, write)
            });

        match pinned {
            Ok(storage) => Ok(Some(NewSize {
                allocation: self.clone(),
                bytes: Some(bytes),
                storage,
            })),
            Err(error) => {
                // Another mapping may be luckier.
                *self.unsized_bytes.lock() = Some(bytes);
                Err(error)
            }
        }
    }

    /// Adds a handle; INVALID_PARAMETER if the allocation was withdrawn.
    pub(crate) fn open(&self) -> DxgResult {
        let mut count = self.opens.load(Relaxed);

        while count != WITHDRAWN {
            // OVERFLOW: bounded by the handles of all processes.
            match self.opens.cmpxchg(count, count + 1, Full) {
                Ok(_) => return Ok(()),
                Err(now) => count = now,
            }
        }
        Err(Status::INVALID_PARAMETER.into())
    }

    /// Removes a handle.
    pub(crate) fn close(&self) {
        let mut count = self.opens.load(Relaxed);

        while count != WITHDRAWN {
            match self.opens.cmpxchg(count, count - 1, Full) {
                Ok(_) => return,
                Err(now) => count = now,
            }
        }
    }

    /// Withdraws the allocation if it has one handle and no dma-buf (RES-82): it can no longer be
    /// opened. True if it did.
    pub(crate) fn withdraw(&self) -> bool {
        let storage = self.storage.lock();
        let exported = storage.as_ref().is_some_and(Storage::is_exported);

        !exported && self.opens.cmpxchg(1, WITHDRAWN, Full).is_ok()
    }

    /// Drops the dma-bufs that nobody has any more; says how many.
    pub(super) fn drop_unused_exports(&self) -> u32 {
        self.storage()
            .map_or(0, |storage| storage.drop_unused_exports())
    }

    /// Whether it was withdrawn.
    pub(in crate::dxgk) fn is_withdrawn(&self) -> bool {
        self.opens.load(Relaxed) == WITHDRAWN
    }

    /// How many pages its end frees, if at most `most`, nothing else shares them, and the KMD need
    /// not be told. Only tries the lock.
    pub(in crate::dxgk) fn pages_at_most(&self, most: usize) -> Option<usize> {
        if self.memory.kmd.info.notify_end.is_some() {
            return None;
        }

        let storage = self.storage.try_lock()?;

        storage
            .as_ref()
            .map_or(Some(0), |storage| storage.pages_at_most(most))
    }

    /// Tells the KMD if it wants to know (RES-75), and drops the storage: nothing can reach the
    /// bytes through this allocation any more.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn cleanup(&self) {
        self.memory.kmd.notify_end(&Passive::here());

        let storage = self.storage.lock().take();

        drop(storage);
        self.memory.end();
    }

    /// Prints its storage into fdinfo, as words of a line.
    pub(crate) fn show(&self, m: &SeqFile) {
        if let Ok(storage) = self.storage() {
            storage.show(m);
        }
    }
}
