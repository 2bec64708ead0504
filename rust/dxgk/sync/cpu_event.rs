// SPDX-License-Identifier: GPL-2.0

//! A CPU event: an eventfd of a process that the KMD signals (cpu-events.md). No call waits for it
//! or signals it.
//!
//! ```text
//! KMD: queue_dpc ---> the worker of dpc.rs ---> DpcRoutine ---> signal_event ---> eventfd
//! ```

use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        cpu_event::{
            CpuEventCallbacks,
            CreateCpuEventArgs,
            Signals, //
        },
        object,
        types::{
            CpuEventId,
            Escape,
            KmdResult, //
        }, //
    },
    dxgk::dpc::Dpc,
    error::{
        DxgResult,
        Status, //
    },
    sys::file::eventfd::EventFd, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// Ids are never used again (CPU-8).
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// What the KMD signals it with. The KMD keeps it until DestroyCpuEvent.
struct Callbacks {
    dpc: Arc<Dpc>,
    signals: Signals,
    event: EventFd,
}

impl CpuEventCallbacks for Callbacks {
    fn queue_dpc(&self) {
        self.dpc.queue();
    }

    fn signal_event(&self, _: &Dispatch) -> KmdResult {
        self.signals.send(|| self.event.signal())
    }
}

/// An event that the KMD signals, from its creation to its end, which may come before that of the
/// object.
#[pin_data]
pub(crate) struct CpuEvent {
    /// The id of the device that it was made on, and the device as the KMD has it.
    device_id: u64,
    device: Arc<object::Device>,
    /// What the KMD has of it, until it ends. LOCK: leaf; DestroyCpuEvent comes after it.
    #[pin]
    kmd: Mutex<Option<object::CpuEvent>>,
    callbacks: Arc<Callbacks>,
    client: u64,
}

impl CpuEvent {
    /// CreateCpuEvent (CPU-7), on the device with this id, for the adapter with this DpcRoutine.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        device_id: u64,
        device: &Arc<object::Device>,
        dpc: &Arc<Dpc>,
        event: EventFd,
    ) -> DxgResult<Pin<KBox<Self>>> {
        let callbacks = Arc::new(
            Callbacks {
                dpc: dpc.clone(),
                signals: Signals::new().ok_or(Status::NO_MEMORY)?,
                event,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let for_kmd: Arc<dyn CpuEventCallbacks> = callbacks.clone();
        let args = CreateCpuEventArgs {
            id: CpuEventId(NEXT_ID.fetch_add(1, Relaxed)),
            callbacks: &for_kmd,
        };
        let kmd = object::CpuEvent::create(device, &Passive::here(), &args)?;

        let event = KBox::pin_init(
            pin_init!(Self {
                device_id,
                device: device.clone(),
                client: kmd.client(),
                kmd <- new_mutex!(Some(kmd), "CpuEvent::kmd"),
                callbacks,
            }),
            GFP_KERNEL_ACCOUNT,
        );

        // Only memory can be missing.
        event.map_err(|_| Status::NO_MEMORY.into())
    }

    /// The id of the device that it was made on.
    pub(crate) fn device_id(&self) -> u64 {
        self.device_id
    }

    /// Gives a client's private request about it to the KMD, which answers in place.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn escape(&self, escape: &Escape, data: &mut [u8]) -> DxgResult {
        Ok(self.device.escape(&Passive::here(), escape, data)?)
    }

    /// What clients call it towards the KMD (`hKmdCpuEvent`). DEVICE_REMOVED once it has ended.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn client(&self) -> DxgResult<u64> {
        if self.kmd.lock().is_none() {
            return Err(Status::DEVICE_REMOVED.into());
        }
        Ok(self.client)
    }

    /// DestroyCpuEvent, once (CPU-29). On return nothing signals it any more, also if another
    /// thread is still in DestroyCpuEvent.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn end(&self) {
        let kmd = self.kmd.lock().take();

        drop(kmd);
        self.callbacks.signals.end();
    }

    /// How many signals it has got, and how many came after its end, which is a bug of the KMD
    /// (CPU-21).
    pub(in crate::dxgk) fn signals(&self) -> (u32, u32) {
        let Callbacks { signals, .. } = &*self.callbacks;

        (signals.sent(), signals.late())
    }
}
