// SPDX-License-Identifier: GPL-2.0

//! The border of a virtual machine inside of one kernel: an adapter whose CPU events go through
//! what stands between a guest and its host (CPU-49, CPU-55). Neither the KMD nor the process has
//! any other code than without it.
//!
//! ```text
//! CpuEvent --- Guest --- Loopback ---> Function ---> KMD
//! eventfd <--- Receiver <--- Interrupt <--- Mailbox <---+
//! ```
//!
//! The adapter is a function of its own, and all processes are in its guest.

use super::dpc::Dpc;
use crate::{
    ddi::{
        border::{
            guest::Guest,
            host::{
                Function,
                Handles, //
            },
            mailbox::Mailbox,
            message::{
                Answer,
                Bytes,
                USAGE_SIZE, //
            },
            receiver::Receiver,
            Bell,
            EventName,
            Transport, //
        },
        class::Passive,
        cpu_event::CpuEventCallbacks,
        object,
        port::Port,
        process::CreateProcessArgs,
        reserve::ReserveAddresses,
        types::{
            HandleData,
            KmdError,
            KmdResult,
            ProcessId,
            QueueHandle, //
        }, //
    },
    sys::{
        alloc::pin_arc,
        work, //
    }, //
};
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// Where the KMD of an adapter is, as its CPU events see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EventPath {
    /// Here: a signal is a call.
    #[default]
    Local,
    /// Across the border of a virtual machine.
    Border,
    /// The same, and the guest is secure: nothing but what every driver knows goes to the host.
    Secure,
}

impl EventPath {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Local, "local"),
        (Self::Border, "border"),
        (Self::Secure, "secure"),
    ];

    /// The one that `cpu_events` in configfs names.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();

        all.find(|(_, other)| *other == name).map(|(path, _)| *path)
    }

    /// As `cpu_events` in configfs has it.
    pub(crate) fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();

        all.find(|(path, _)| *path == self)
            .map_or("", |(_, name)| *name)
    }
}

/// A call in the same kernel. The function of an adapter that is stopped is gone.
struct Loopback {
    function: Arc<Function>,
    port: Arc<Port>,
}

impl Transport for Loopback {
    fn call(&self, class: &Passive, request: &Bytes) -> KmdResult<Answer> {
        self.function
            .serve(class, request)
            .map_err(|error| match self.port.is_started() {
                true => error,
                false => KmdError::DeviceRemoved,
            })
    }
}

/// The interrupt of the guest.
#[pin_data]
struct Interrupt {
    receiver: Arc<Receiver>,
    /// How often it was asked for.
    count: Atomic<u64>,
    #[pin]
    work: Work<Interrupt>,
}

impl_has_work! {
    impl HasWork<Self> for Interrupt { self.work }
}

impl WorkItem for Interrupt {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.receiver.look();
    }
}

/// What the host rings to interrupt the guest.
struct InterruptBell(Arc<Interrupt>);

impl Bell for InterruptBell {
    /// The module's worker serves it: that runs what is queued before the module goes.
    fn ring(&self) {
        self.0.count.add(1, Relaxed);
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already and has not started.
            let _queued = worker.enqueue::<_, 0>(self.0.clone()).is_ok();
        }
    }
}

/// What the KMD rings to have DpcRoutine called.
struct DpcBell(Arc<Dpc>);

impl Bell for DpcBell {
    fn ring(&self) {
        self.0.queue();
    }
}

/// What there was of the border of an adapter, for debugfs.
#[derive(Clone)]
pub(in crate::dxgk) struct BorderCounts(Arc<Interrupt>);

impl BorderCounts {
    /// The names and present numbers.
    pub(in crate::dxgk) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Interrupt {
            receiver, count, ..
        } = &*self.0;
        let counts = [
            ("interrupts", count.load(Relaxed)),
            ("dropped", receiver.dropped().into()),
        ];

        counts.into_iter()
    }
}

/// The border of one adapter.
pub(in crate::dxgk) struct Border {
    guest: Guest,
    function: Arc<Function>,
    interrupt: Arc<Interrupt>,
}

impl Border {
    /// That of the adapter whose KMD is behind `port`; `None` if there is none.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(
        path: EventPath,
        port: &Arc<Port>,
        dpc: &Arc<Dpc>,
    ) -> Result<Option<Arc<Self>>> {
        if path == EventPath::Local {
            return Ok(None);
        }

        let mailbox = Arc::new(Mailbox::new().ok_or(ENOMEM)?, GFP_KERNEL)?;
        let receiver = Receiver::new(mailbox.clone()).ok_or(ENOMEM)?;
        let receiver = Arc::new(receiver, GFP_KERNEL)?;
        let of_guest = receiver.clone();
        let interrupt = pin_arc(
            pin_init!(Interrupt {
                receiver,
                count: Atomic::new(0),
                work <- new_work!("border::Interrupt::work"),
            }),
            GFP_KERNEL,
        )?;
        let guest_bell: Arc<dyn Bell> = Arc::new(InterruptBell(interrupt.clone()), GFP_KERNEL)?;
        let host_bell: Arc<dyn Bell> = Arc::new(DpcBell(dpc.clone()), GFP_KERNEL)?;
        let function = Function::new(mailbox, guest_bell, host_bell).ok_or(ENOMEM)?;
        let function = Arc::new(function, GFP_KERNEL)?;
        let loopback = Loopback {
            function: function.clone(),
            port: port.clone(),
        };
        let transport: Arc<dyn Transport> = Arc::new(loopback, GFP_KERNEL)?;
        let border = Self {
            guest: Guest::new(transport, of_guest, path == EventPath::Secure),
            function,
            interrupt,
        };

        Ok(Some(Arc::new(border, GFP_KERNEL)?))
    }

    /// What debugfs shows.
    pub(in crate::dxgk) fn counts(&self) -> BorderCounts {
        BorderCounts(self.interrupt.clone())
    }

    /// Whether a client may send an escape that not every driver knows (CPU-19).
    pub(in crate::dxgk) fn check_escape(&self) -> KmdResult {
        self.guest.check_escape()
    }

    /// CreateProcess by the host, for a process of the guest: it is one of a virtual machine.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn create_process(
        &self,
        port: &Arc<Port>,
        class: &Passive,
        id: ProcessId,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<Arc<object::Process>> {
        let callbacks = self.function.process(id.0).ok_or(KmdError::NoMemory)?;
        let args = CreateProcessArgs {
            id,
            is_of_virtual_machine: true,
            is_system: false,
            callbacks: &callbacks,
        };

        object::Process::create_with(port, class, &args, addresses)
    }

    /// The host has a device of a process, by the names that the guest has for them.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn add_device(
        self: &Arc<Self>,
        (process, device): (u64, u64),
        client: Arc<dyn ClientHandles>,
        kmd: &Arc<object::Device>,
    ) -> Result<FarDevice> {
        let handles = OwnHandles { client, device };
        let handles: Arc<Handles> = Arc::new(handles, GFP_KERNEL_ACCOUNT)?;

        self.function
            .add_device(process, device, kmd, Some(handles))
            .map_err(|_| ENOMEM)?;
        Ok(FarDevice {
            border: self.clone(),
            process,
            device,
        })
    }
}

/// A process, as the host asks it about its handles.
pub(crate) trait ClientHandles: Send + Sync {
    /// What a handle stands for that takes work of the device with this id.
    ///
    /// Context: class P.
    fn queue_of(&self, device: u64, handle: u32) -> Option<QueueHandle>;
}

/// The handles of a process, for what the host asks about one of its devices.
struct OwnHandles {
    /// It is emptied when it ends, which breaks the circle.
    client: Arc<dyn ClientHandles>,
    device: u64,
}

impl HandleData for OwnHandles {
    fn queue(&self, handle: u32) -> Option<QueueHandle> {
        self.client.queue_of(self.device, handle)
    }
}

/// A device that the host's side has.
pub(in crate::dxgk) struct FarDevice {
    border: Arc<Border>,
    process: u64,
    device: u64,
}

impl FarDevice {
    /// CreateCpuEvent, and what the KMD calls the event towards clients.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn create(
        &self,
        class: &Passive,
        callbacks: &Arc<dyn CpuEventCallbacks>,
    ) -> KmdResult<(EventName, u64)> {
        let Border { guest, .. } = &*self.border;

        guest.create(class, self.process, self.device, callbacks)
    }

    /// The usage escape, answered in place.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn set_usage(
        &self,
        class: &Passive,
        event: EventName,
        flags: u32,
        data: &mut [u8],
    ) -> KmdResult {
        let data: &mut [u8; USAGE_SIZE] =
            data.try_into().map_err(|_| KmdError::InvalidParameter)?;

        self.border.guest.set_usage(class, event, flags, data)
    }

    /// DestroyCpuEvent. Nothing tells the event on return.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn destroy(&self, class: &Passive, event: EventName) {
        self.border.guest.destroy(class, event);
    }
}

impl Drop for FarDevice {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.border
            .function
            .remove_device(self.process, self.device);
    }
}
