// SPDX-License-Identifier: GPL-2.0

//! The host's side: the OS part that has the KMD, for one function of a guest.
//!
//! Nothing that the guest says is believed: each field is looked at again, what a function has is
//! bounded, and nobody waits for the guest (CPU-52). What one function has, no other one reaches:
//! events are looked up here, not in the KMD (CPU-53).

use super::{
    mailbox::Mailbox,
    message::{
        put,
        word,
        Answer,
        Bytes,
        Request,
        USAGE_SIZE, //
    },
    ways::{
        Way,
        Ways, //
    },
    Bell,
    EventName,
    MOST_EVENTS, //
};
use crate::{
    ddi::{
        class::Passive,
        cpu_event::{
            CpuEventCallbacks,
            CreateCpuEventArgs,
            Signals, //
        },
        object,
        process::ProcessCallbacks,
        types::{
            CpuEventId,
            Escape,
            HandleData,
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Lock,
        Places,
        Shared, //
    }, //
};

/// Most devices of a function.
pub const MOST_DEVICES: usize = 1024;

/// `D3DDDI_ESCAPEFLAGS`: NoAdapterSynchronization, VirtualMachineData, DriverKnownEscape.
const NO_SYNCHRONIZATION: u32 = 1 << 3;
const VIRTUAL_MACHINE_DATA: u32 = 1 << 5;
const KNOWN: u32 = 1 << 6;
/// `D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE`.
const CPUEVENTUSAGE: u32 = 2;

/// What the handles of a process of the guest stand for, as the host knows them.
pub type Handles = dyn HandleData + Send + Sync;

/// A device of the guest.
struct Device {
    process: u64,
    name: u64,
    kmd: Shared<object::Device>,
    handles: Option<Shared<Handles>>,
}

/// An event of the guest.
struct Event {
    id: EventName,
    way: Shared<Way>,
    device: Shared<object::Device>,
    handles: Option<Shared<Handles>>,
    kmd: object::CpuEvent,
}

struct State {
    devices: Places<Device, MOST_DEVICES>,
    events: Places<Event, MOST_EVENTS>,
}

/// A function of a guest.
pub struct Function {
    /// LOCK: held while the KMD is called, for this function alone; outside its locks, and those of
    /// handles.
    state: Lock<State>,
    ways: Shared<Ways>,
    mailbox: Shared<Mailbox>,
    interrupt: Shared<dyn Bell>,
    dpc: Shared<dyn Bell>,
}

impl Function {
    /// One without anything, which has this mailbox and interrupt; DpcRoutine is called by `dpc`.
    /// `None` if there is no memory. May sleep.
    pub fn new(
        mailbox: Shared<Mailbox>,
        interrupt: Shared<dyn Bell>,
        dpc: Shared<dyn Bell>,
    ) -> Option<Self> {
        let state = State {
            devices: platform::places()?,
            events: platform::places()?,
        };

        Some(Self {
            state: platform::lock!(state, "border::Function::state")?,
            ways: platform::shared(Ways::new()?)?,
            mailbox,
            interrupt,
            dpc,
        })
    }

    /// What CreateProcess of a process of the guest gets, by the guest's name for it; `None` if
    /// there is no memory. May sleep.
    pub fn process(&self, name: u64) -> Option<Shared<dyn ProcessCallbacks>> {
        Ways::of_process(&self.ways, name)
    }

    /// The guest has a device of a process, by its own names, whose handles are these. NoMemory if
    /// it has as many as may be.
    ///
    /// Context: may sleep, no locks held.
    pub fn add_device(
        &self,
        process: u64,
        name: u64,
        kmd: &Shared<object::Device>,
        handles: Option<Shared<Handles>>,
    ) -> KmdResult {
        let mut state = self.state.lock();
        let place = state.devices.iter_mut().find(|place| place.is_none());

        *place.ok_or(KmdError::NoMemory)? = Some(Device {
            process,
            name,
            kmd: kmd.clone(),
            handles,
        });
        Ok(())
    }

    /// The guest has it no more, nor what it has made on it.
    ///
    /// Context: may sleep, no locks held.
    pub fn remove_device(&self, process: u64, name: u64) {
        let removed = {
            let mut state = self.state.lock();
            let State { devices, events } = &mut *state;
            let is_it = |device: &Device| device.process == process && device.name == name;
            let mut places = devices.iter_mut();
            let removed = places
                .find(|place| place.as_ref().is_some_and(is_it))
                .and_then(Option::take);

            if let Some(device) = &removed {
                for place in events.iter_mut() {
                    let is_its = |event: &mut Event| Shared::ptr_eq(&event.device, &device.kmd);

                    if let Some(event) = place.take_if(is_its) {
                        self.give_up(event);
                    }
                }
            }
            removed
        };

        drop(removed);
    }

    /// Does what a guest asks for.
    ///
    /// Context: may sleep, no locks held.
    pub fn serve(&self, class: &Passive, request: &Bytes) -> KmdResult<Answer> {
        match Request::decode(request)? {
            Request::Create {
                event,
                process,
                device,
            } => self.create(class, event, process, device),
            Request::Destroy { event } => {
                self.end(event)?;
                Ok(Answer::Destroyed)
            }
            Request::Usage { event, flags, data } => self.set_usage(class, event, flags, data),
        }
    }

    fn create(
        &self,
        class: &Passive,
        id: EventName,
        process: u64,
        device: u64,
    ) -> KmdResult<Answer> {
        let mut state = self.state.lock();
        let State { devices, events } = &mut *state;
        let device = devices
            .iter()
            .flatten()
            .find(|own| own.process == process && own.name == device)
            .ok_or(KmdError::InvalidParameter)?;
        // CAST: 32 bits fit a usize.
        let place = events
            .get_mut(id.place as usize)
            .ok_or(KmdError::InvalidParameter)?;

        // Its guest has never got the answer, and has given it up.
        if let Some(lost) = place.take() {
            self.give_up(lost);
        }

        let way = Way {
            signals: Signals::new().ok_or(KmdError::NoMemory)?,
            event: id,
            process,
            mailbox: self.mailbox.clone(),
            interrupt: self.interrupt.clone(),
            dpc: self.dpc.clone(),
        };
        let way = platform::shared(way).ok_or(KmdError::NoMemory)?;
        let callbacks: Shared<dyn CpuEventCallbacks> = way.clone();
        let args = CreateCpuEventArgs {
            id: CpuEventId(id.id()),
            callbacks: &callbacks,
        };

        self.ways.put(id, Some(way.clone()));

        let kmd = object::CpuEvent::create(&device.kmd, class, &args)
            .inspect_err(|_| self.ways.put(id, None))?;
        let client = kmd.client();

        *place = Some(Event {
            id,
            way,
            device: device.kmd.clone(),
            handles: device.handles.clone(),
            kmd,
        });
        Ok(Answer::Created { client })
    }

    fn set_usage(
        &self,
        class: &Passive,
        id: EventName,
        flags: u32,
        mut data: [u8; USAGE_SIZE],
    ) -> KmdResult<Answer> {
        let state = self.state.lock();
        let event = state
            .events
            .get(id.place as usize)
            .and_then(Option::as_ref)
            .filter(|event| event.id == id)
            .ok_or(KmdError::InvalidParameter)?;

        if flags & KNOWN == 0
            || flags & !(KNOWN | NO_SYNCHRONIZATION) != 0
            || word(&data, 0) != CPUEVENTUSAGE
            || word(&data, 4) != id.place
        {
            return Err(KmdError::InvalidParameter);
        }
        put(&mut data, 8, &event.kmd.client().to_le_bytes());

        let escape = Escape {
            flags: flags | VIRTUAL_MACHINE_DATA,
            handles: event
                .handles
                .as_deref()
                .map(|handles| -> &dyn HandleData { handles }),
            ..Escape::default()
        };

        event.device.escape(class, &escape, &mut data)?;
        Ok(Answer::Usage(data))
    }

    /// DestroyCpuEvent. InvalidParameter if there is no such event.
    fn end(&self, id: EventName) -> KmdResult {
        let mut state = self.state.lock();
        let event = state
            .events
            .get_mut(id.place as usize)
            .filter(|place| place.as_ref().is_some_and(|event| event.id == id))
            .and_then(Option::take)
            .ok_or(KmdError::InvalidParameter)?;

        self.end_event(event);
        Ok(())
    }

    /// What is in the mailbox stays there: the guest looks at it when it has the answer.
    fn end_event(&self, event: Event) {
        let Event { id, way, kmd, .. } = event;

        drop(kmd);
        self.ways.put(id, None);
        way.signals.end();
    }

    /// Ends an event that the guest does not know any more: nothing of it is left to stick.
    fn give_up(&self, event: Event) {
        let id = event.id;

        self.end_event(event);
        self.mailbox.forget(id);
    }

    /// The function is reset, or its guest is gone: so is all that it had. Waits for nobody.
    ///
    /// Context: may sleep, no locks held.
    pub fn reset(&self) {
        let mut state = self.state.lock();

        for place in state.events.iter_mut() {
            if let Some(event) = place.take() {
                self.give_up(event);
            }
        }
        for place in state.devices.iter_mut() {
            *place = None;
        }
    }
}

impl Drop for Function {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.reset();
    }
}
