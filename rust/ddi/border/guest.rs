// SPDX-License-Identifier: GPL-2.0

//! The guest's side: the OS part that has the processes, whose KMD is in the host.

use super::{
    message::{
        put,
        Answer,
        Request,
        USAGE_SIZE, //
    },
    receiver::Receiver,
    EventName,
    Transport, //
};
use crate::{
    ddi::{
        class::Passive,
        cpu_event::CpuEventCallbacks,
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::Shared, //
};

/// One function, as its guest sees it.
pub struct Guest {
    transport: Shared<dyn Transport>,
    receiver: Shared<Receiver>,
    /// Only what every driver knows goes to the host (CPU-54).
    is_secure: bool,
}

impl Guest {
    /// A function without events.
    pub fn new(
        transport: Shared<dyn Transport>,
        receiver: Shared<Receiver>,
        is_secure: bool,
    ) -> Self {
        Self {
            transport,
            receiver,
            is_secure,
        }
    }

    /// CreateCpuEvent of a device of a process, by their names here. The event, and what the KMD
    /// calls it towards clients. NoMemory if there are as many as may be.
    ///
    /// Context: may sleep, no locks held.
    pub fn create(
        &self,
        class: &Passive,
        process: u64,
        device: u64,
        callbacks: &Shared<dyn CpuEventCallbacks>,
    ) -> KmdResult<(EventName, u64)> {
        // It may be signalled before the answer is here.
        let event = self
            .receiver
            .add(callbacks.clone())
            .ok_or(KmdError::NoMemory)?;
        let request = Request::Create {
            event,
            process,
            device,
        };

        match self.transport.call(class, &request.encode()) {
            Ok(Answer::Created { client }) if client != 0 => Ok((event, client)),
            Ok(_) => {
                self.destroy(class, event);
                Err(KmdError::DeviceRemoved)
            }
            Err(error) => {
                self.receiver.remove(event);
                Err(error)
            }
        }
    }

    /// The usage escape about an event, answered in place.
    ///
    /// Context: may sleep, no locks held.
    pub fn set_usage(
        &self,
        class: &Passive,
        event: EventName,
        flags: u32,
        data: &mut [u8; USAGE_SIZE],
    ) -> KmdResult {
        let mut usage = *data;

        // No handle of the guest means anything to the host.
        put(&mut usage, 4, &event.place.to_le_bytes());
        put(&mut usage, 8, &[0; 8]);

        let request = Request::Usage {
            event,
            flags,
            data: usage,
        };

        match self.transport.call(class, &request.encode())? {
            Answer::Usage(answer) => {
                for (place, byte) in data.iter_mut().zip(answer).skip(8) {
                    *place = byte;
                }
                Ok(())
            }
            // A host that makes no sense.
            _ => Err(KmdError::DeviceRemoved),
        }
    }

    /// Whether a client may send another escape to the driver: AccessDenied in a secure guest
    /// (CPU-19). This border carries none, so such a one goes its own way.
    pub fn check_escape(&self) -> KmdResult {
        match self.is_secure {
            true => Err(KmdError::AccessDenied),
            false => Ok(()),
        }
    }

    /// DestroyCpuEvent. What the KMD has signalled before it is told on return, and nothing is
    /// afterwards, whatever has become of the host.
    ///
    /// Context: may sleep, no locks held.
    pub fn destroy(&self, class: &Passive, event: EventName) {
        let request = Request::Destroy { event };
        // If the function is gone, so is what it had.
        let _answer = self.transport.call(class, &request.encode());

        // The last signals came before the answer, and the interrupt may not have come yet.
        self.receiver.look();
        self.receiver.remove(event);
    }
}
