// SPDX-License-Identifier: GPL-2.0

//! A CPU event: an eventfd of a process that the KMD signals (cpu-events.md). No call waits for it
//! or signals it.
//!
//! ```text
//! KMD: queue_dpc ---> the worker of dpc.rs ---> DpcRoutine ---> signal_event ---> eventfd
//! ```
//!
//! Where the adapter has a border (`dxgk/border.rs`), signals and requests cross that.

use crate::{
    ddi::{
        border::EventName,
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
    dxgk::{
        border::FarDevice,
        dpc::Dpc, //
    },
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

/// The device that a CPU event is made on.
pub(in crate::dxgk) trait EventDevice: Send + Sync {
    /// What traces and fdinfo call it.
    fn id(&self) -> u64;

    /// The device as the KMD has it.
    fn kmd(&self) -> &Arc<object::Device>;

    /// What calls DpcRoutine of its adapter.
    fn dpc(&self) -> &Arc<Dpc>;

    /// How many CPU events it has (CPU-41).
    fn cpu_events(&self) -> &Atomic<u64>;

    /// The device across the border, if its adapter has one.
    fn far(&self) -> Option<&FarDevice>;
}

/// What the KMD has made, here or across the border.
enum Made {
    /// Its drop is DestroyCpuEvent.
    Here(#[allow(dead_code)] object::CpuEvent),
    Far(EventName),
}

impl Made {
    /// CreateCpuEvent, and what clients call the event towards the KMD.
    fn new(
        device: &Arc<dyn EventDevice>,
        callbacks: &Arc<dyn CpuEventCallbacks>,
    ) -> KmdResult<(Self, u64)> {
        let class = Passive::here();

        if let Some(far) = device.far() {
            let (name, client) = far.create(&class, callbacks)?;

            return Ok((Self::Far(name), client));
        }

        let args = CreateCpuEventArgs {
            id: CpuEventId(NEXT_ID.fetch_add(1, Relaxed)),
            callbacks,
        };
        let kmd = object::CpuEvent::create(device.kmd(), &class, &args)?;
        let client = kmd.client();

        Ok((Self::Here(kmd), client))
    }

    /// Its name across the border, if it is there.
    fn far(&self) -> Option<EventName> {
        match self {
            Self::Here(_) => None,
            Self::Far(name) => Some(*name),
        }
    }
}

/// What the KMD has of an event, which counts on its device meanwhile.
struct Created {
    made: Made,
    device: Arc<dyn EventDevice>,
}

impl Created {
    fn new(made: Made, device: &Arc<dyn EventDevice>) -> Self {
        device.cpu_events().add(1, Relaxed);
        Self {
            made,
            device: device.clone(),
        }
    }
}

impl Drop for Created {
    /// DestroyCpuEvent comes after this if the KMD is here.
    fn drop(&mut self) {
        // It wraps, as the counter does.
        self.device.cpu_events().add(1_u64.wrapping_neg(), Relaxed);
        if let (Some(far), Some(name)) = (self.device.far(), self.made.far()) {
            far.destroy(&Passive::here(), name);
        }
    }
}

/// What an event is for, in the words of the KMD.
pub(in crate::dxgk) type Usage = [u32; 8];

/// An event that the KMD signals, from its creation to its end, which may come before that of the
/// object.
#[pin_data]
pub(crate) struct CpuEvent {
    /// What it was made on.
    device: Arc<dyn EventDevice>,
    /// What the KMD has of it, until it ends. LOCK: leaf; DestroyCpuEvent comes after it.
    #[pin]
    created: Mutex<Option<Created>>,
    /// What the KMD was told last that it is for. LOCK: outside the locks of a KMD; one usage
    /// escape at a time.
    #[pin]
    usage: Mutex<Usage>,
    callbacks: Arc<Callbacks>,
    client: u64,
    /// Its name across the border, if it is there.
    name: Option<EventName>,
}

impl CpuEvent {
    /// CreateCpuEvent (CPU-7).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        device: &Arc<dyn EventDevice>,
        event: EventFd,
    ) -> DxgResult<Pin<KBox<Self>>> {
        let callbacks = Arc::new(
            Callbacks {
                dpc: device.dpc().clone(),
                signals: Signals::new().ok_or(Status::NO_MEMORY)?,
                event,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let for_kmd: Arc<dyn CpuEventCallbacks> = callbacks.clone();
        let (made, client) = Made::new(device, &for_kmd)?;
        let name = made.far();
        let created = Created::new(made, device);

        let event = KBox::pin_init(
            pin_init!(Self {
                device: device.clone(),
                client,
                name,
                created <- new_mutex!(Some(created), "CpuEvent::created"),
                usage <- new_mutex!([0; 8], "CpuEvent::usage"),
                callbacks,
            }),
            GFP_KERNEL_ACCOUNT,
        );

        // Only memory can be missing.
        event.map_err(|_| Status::NO_MEMORY.into())
    }

    /// The id of the device that it was made on.
    pub(crate) fn device_id(&self) -> u64 {
        self.device.id()
    }

    /// Tells the KMD what it is for, by an escape that the KMD answers in place. If the KMD
    /// refuses, it is for what it was before.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set_usage(
        &self,
        escape: &Escape<'_>,
        data: &mut [u8],
        usage: Usage,
    ) -> DxgResult {
        let mut last = self.usage.lock();
        let class = Passive::here();

        match (self.device.far(), self.name) {
            (Some(far), Some(name)) => far.set_usage(&class, name, escape.flags, data)?,
            _ => self.device.kmd().escape(&class, escape, data)?,
        }
        *last = usage;
        Ok(())
    }

    /// What the KMD was told last that it is for.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn usage(&self) -> Usage {
        *self.usage.lock()
    }

    /// What clients call it towards the KMD (`hKmdCpuEvent`). DEVICE_REMOVED once it has ended.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn client(&self) -> DxgResult<u64> {
        if self.created.lock().is_none() {
            return Err(Status::DEVICE_REMOVED.into());
        }
        Ok(self.client)
    }

    /// DestroyCpuEvent, once (CPU-29). On return nothing signals it any more, also if another
    /// thread is still in DestroyCpuEvent.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn end(&self) {
        let created = self.created.lock().take();

        drop(created);
        self.callbacks.signals.end();
    }

    /// How many signals it has got, and how many came after its end, which is a bug of the KMD
    /// (CPU-21).
    pub(in crate::dxgk) fn signals(&self) -> (u32, u32) {
        let Callbacks { signals, .. } = &*self.callbacks;

        (signals.sent(), signals.late())
    }
}
