// SPDX-License-Identifier: GPL-2.0

//! What a HW queue has of its doorbell: the ring that its process fills, as the KMD knows it.

use super::views::{
    Callbacks,
    Views, //
};
use crate::{
    ddi::{
        class::Passive,
        doorbell::{
            CreateDoorbellArgs,
            Disconnect,
            DoorbellCallbacks, //
        },
        object,
        types::DoorbellId, //
    },
    dxgk::{
        handle::open_allocation::OpenAllocation,
        hw_queue::HwQueue,
        sched::{
            filled::Filled,
            kmd_queue::KmdQueue, //
        },
        sync::fence::Fence,
        vidmm::opened::Held, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        doorbell::DoorbellStatus,
        power::Awake, //
    },
    sys::alloc::pin_arc, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// What a doorbell is made of, after all checks.
pub(crate) struct Description<'a> {
    /// The allocation of the ring buffer.
    pub(crate) ring: &'a OpenAllocation,
    /// That of the ring buffer control.
    pub(crate) control: &'a OpenAllocation,
    /// `ResizeRingBufferOperation`.
    pub(crate) resizes_ring: bool,
    /// `RequireSecondaryCpuVA`.
    pub(crate) wants_secondary: bool,
    /// The part of the client's private data that the KMD reads.
    pub(crate) private_data: KVVec<u8>,
}

/// What goes when the ring ends, in this order: first the engine reads nothing more.
struct Live {
    kmd: Arc<object::Doorbell>,
    /// The ring buffer and its control, which stay resident.
    _held: [Held; 2],
    _queue: Arc<KmdQueue>,
}

/// The ring of a HW queue.
#[pin_data]
pub(crate) struct Ring {
    /// What the process sees.
    pub(crate) views: Arc<Views>,
    /// Shows how far the queue is.
    progress: Arc<Fence>,
    /// `None` after the end. LOCK: held over ConnectDoorbell and DisconnectDoorbell, which are one
    /// at a time for a doorbell. What the KMD calls back meanwhile does not take it.
    #[pin]
    live: Mutex<Option<Live>>,
}

impl Ring {
    /// CreateDoorbell of `queue`, which the OS part calls `id`.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn new(
        queue: &HwQueue,
        id: u64,
        description: &Description<'_>,
    ) -> DxgResult<Arc<Self>> {
        let own = queue.queue.kmd().ok_or(Status::INVALID_PARAMETER)?;
        let kmd_queue = own.hw_queue().ok_or(Status::INVALID_PARAMETER)?;
        let hold = |allocation: &OpenAllocation| {
            let opened = allocation.opened()?;
            let held = opened.hold().ok_or(Status::INVALID_PARAMETER)?;
            let address = held.address().ok_or(Status::INVALID_PARAMETER)?;

            Ok::<_, DxgError>((held, address))
        };
        let (ring, ring_at) = hold(description.ring)?;
        let (control, control_at) = hold(description.control)?;
        let views = Views::new().map_err(DxgError::from_errno)?;
        let callbacks: Arc<dyn DoorbellCallbacks> =
            Arc::new(Callbacks(views.clone()), GFP_KERNEL_ACCOUNT)?;
        let kmd = object::Doorbell::create(
            kmd_queue,
            &Passive::here(),
            &CreateDoorbellArgs {
                id: DoorbellId(id),
                ring: ring_at,
                ring_size: ring.size(),
                control: control_at,
                control_size: control.size(),
                resizes_ring: description.resizes_ring,
                wants_secondary: description.wants_secondary,
                private_data: &description.private_data,
                callbacks: &callbacks,
            },
        )?;
        let live = Live {
            kmd,
            _held: [ring, control],
            _queue: own,
        };

        Ok(pin_arc(
            pin_init!(Self {
                views,
                progress: queue.progress.clone(),
                live <- new_mutex!(Some(live), "Ring::live"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// ConnectDoorbell (GPU-21), unless the adapter sleeps: false then. It may be taken away again
    /// by the time this returns.
    ///
    /// Context: may sleep, no locks held but `Power::turn`.
    pub(super) fn connect(&self, awake: &Awake) -> DxgResult<bool> {
        let live = self.live.lock();

        // Who sends the adapter to sleep says so first, and then disconnects this.
        if !awake.is_awake() {
            return Ok(false);
        }

        let kmd = &live.as_ref().ok_or(Status::DEVICE_REMOVED)?.kmd;
        let mut class = Passive::here();

        match self.views.status() {
            DoorbellStatus::Connected | DoorbellStatus::ConnectedNotify => return Ok(true),
            DoorbellStatus::Abort => return Err(Status::DEVICE_REMOVED.into()),
            DoorbellStatus::Retry => {}
        }

        let since = self.views.moment();
        let connected = kmd.connect(&class)?;

        if let Err(error) = self.views.connect(kmd, since, connected) {
            kmd.disconnect(&class);
            return Err(error);
        }
        // Somebody may have rung before the page was rotated, and found it connected afterwards.
        kmd.look(&mut class);
        Ok(true)
    }

    /// NotifyWorkSubmission.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn notify(&self) -> DxgResult {
        let live = self.live.lock();
        let kmd = &live.as_ref().ok_or(Status::DEVICE_REMOVED)?.kmd;

        kmd.notify(&Passive::here())?;
        Ok(())
    }

    /// Disconnects for good, and then DestroyDoorbell: what was not run is not run.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn end_now(&self) {
        let live = {
            let mut live = self.live.lock();

            self.views.disconnect(Disconnect::Abort);
            if let Some(live) = &*live {
                live.kmd.disconnect(&Passive::here());
            }
            live.take()
        };

        drop(live);
    }
}

impl Filled for Ring {
    fn progress(&self) -> u64 {
        self.progress.value()
    }

    fn last_queued(&self) -> u64 {
        self.views.last_queued()
    }

    fn is_idle(&self) -> bool {
        self.last_queued() <= self.progress()
    }

    fn disconnect(&self) {
        self.views.disconnect(Disconnect::Abort);
        if let Some(live) = &*self.live.lock() {
            live.kmd.disconnect(&Passive::here());
        }
    }

    fn disconnect_for_now(&self) {
        let live = self.live.lock();

        self.views.disconnect(Disconnect::Retry);
        if let Some(live) = &*live {
            live.kmd.disconnect(&Passive::here());
        }
    }

    fn end(&self) {
        self.end_now();
    }

    fn status(&self) -> DoorbellStatus {
        self.views.status()
    }
}
