// SPDX-License-Identifier: GPL-2.0

//! A process on one adapter: what its devices there have in common (GPU-3).
//!
//! The first device of a process on an adapter makes it, which is CreateProcess. It ends with the
//! last device, which is DestroyProcess. So it is found in a list of the process, and each device
//! has a [`GpuProcessUse`].
//!
//! LOCK: `GpuProcesses::list` is held while the KMD makes the process on the adapter, so that there
//! is one for each adapter. Nothing is dropped under it.

use super::{
    adapter::Adapter,
    quota::holder::Holder,
    sched::queued_work::QueuedWork,
    stats::next_id,
    sync::gpu_fences::GpuFences,
    vidmm::{
        address_space::AddressSpace,
        reserved::Reservations, //
    }, //
};
use crate::{
    ddi::{
        object,
        types::ProcessId, //
    },
    error::{
        DxgResult,
        Status, //
    },
    sys::alloc::pin_arc, //
};
use core::ops::Deref;
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A process on one adapter.
pub(crate) struct GpuProcess {
    /// The process as the KMD has it.
    pub(in crate::dxgk) kmd: Arc<object::Process>,
    /// Its GPU addresses; `None` if the adapter has none.
    pub(in crate::dxgk) space: Option<Arc<AddressSpace>>,
    /// The fences that they show.
    pub(in crate::dxgk) fences: Arc<GpuFences>,
    /// What waits for the work that its queues have.
    pub(in crate::dxgk) work: Arc<QueuedWork>,
}

impl GpuProcess {
    fn new(adapter: &Adapter, holder: &Arc<Holder>) -> DxgResult<Arc<Self>> {
        // No other process on any adapter has this number.
        let id = ProcessId(next_id());
        let (kmd, space) = AddressSpace::with_process(adapter, id, holder.clone())?;

        let fences = GpuFences::new()?;
        let work = QueuedWork::new()?;

        Ok(Arc::new(
            Self {
                kmd,
                space,
                fences,
                work,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}

/// One adapter that a process uses.
struct Used {
    /// The id of the adapter.
    adapter: u64,
    process: Arc<GpuProcess>,
    /// How many devices use it.
    devices: usize,
}

/// A process on all adapters that it uses.
#[pin_data]
pub(crate) struct GpuProcesses {
    /// What its address spaces take is charged to it.
    holder: Arc<Holder>,
    /// What it has reserved of their memory, with devices there or without.
    #[pin]
    pub(in crate::dxgk) reservations: Reservations,
    #[pin]
    list: Mutex<KVec<Used>>,
}

impl GpuProcesses {
    /// It uses none.
    pub(crate) fn new(holder: Arc<Holder>) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                holder,
                reservations <- Reservations::new(),
                list <- new_mutex!(KVec::new(), "GpuProcesses::list"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// The process on this adapter, for one more device.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enter(self: &Arc<Self>, adapter: &Adapter) -> DxgResult<GpuProcessUse> {
        let mut list = self.list.lock();

        if let Some(used) = list.iter_mut().find(|used| used.adapter == adapter.id) {
            // OVERFLOW: each is a device in memory.
            used.devices += 1;
            return Ok(GpuProcessUse {
                list: self.clone(),
                process: used.process.clone(),
            });
        }

        list.reserve(1, GFP_KERNEL_ACCOUNT)?;

        let process = GpuProcess::new(adapter, &self.holder)?;

        // There is room.
        let _room = list.push_within_capacity(Used {
            adapter: adapter.id,
            process: process.clone(),
            devices: 1,
        });

        Ok(GpuProcessUse {
            list: self.clone(),
            process,
        })
    }

    /// The GPU addresses on this adapter; INVALID_PARAMETER if the process has no device there,
    /// which makes them.
    pub(crate) fn space_on(&self, adapter: &Adapter) -> DxgResult<Arc<AddressSpace>> {
        let list = self.list.lock();
        let used = list
            .iter()
            .find(|used| used.adapter == adapter.id)
            .ok_or(Status::INVALID_PARAMETER)?;

        used.process
            .space
            .clone()
            .ok_or(Status::NOT_SUPPORTED.into())
    }

    /// Prints into fdinfo what it has on each adapter.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn show(&self, m: &SeqFile) {
        for place in 0.. {
            let used = {
                let list = self.list.lock();

                list.get(place)
                    .map(|used| (used.adapter, used.process.space.clone()))
            };
            let Some((adapter, space)) = used else {
                return;
            };

            if let Some(space) = space {
                let (stretches, tables) = space.extent();
                let [local, system] = [0, 1].map(|group| space.usage(group));

                seq_print!(
                    m,
                    "dxg-gpu-memory:\t{adapter} ranges={stretches} page-tables={tables}"
                );
                seq_print!(m, " resident-local={local} resident-system={system}\n");
            }
        }
    }

    /// Whether the process has a device.
    pub(in crate::dxgk) fn are_in_use(&self) -> bool {
        !self.list.lock().is_empty()
    }

    /// One device less.
    fn leave(&self, process: &Arc<GpuProcess>) {
        let mut list = self.list.lock();
        let place = list
            .iter()
            .position(|used| Arc::ptr_eq(&used.process, process));
        let Some(place) = place else {
            return;
        };
        let is_last = list.get_mut(place).is_some_and(|used| {
            used.devices -= 1;
            used.devices == 0
        });
        let ended = is_last.then(|| list.remove(place));

        drop(list);
        drop(ended);
    }
}

/// A device's use of its process on its adapter.
pub(crate) struct GpuProcessUse {
    list: Arc<GpuProcesses>,
    process: Arc<GpuProcess>,
}

impl Deref for GpuProcessUse {
    type Target = Arc<GpuProcess>;

    fn deref(&self) -> &Arc<GpuProcess> {
        &self.process
    }
}

impl Drop for GpuProcessUse {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.list.leave(&self.process);
    }
}
