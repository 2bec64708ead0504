// SPDX-License-Identifier: GPL-2.0

//! The doorbell of a HW queue that its process fills.

use super::hw_queue::HwQueue;
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        doorbell::{
            Connected,
            CreateDoorbellArgs,
            Rung, //
        },
        types::{
            DoorbellCookie,
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Shared, //
    }, //
};

/// What CreateDoorbell has made.
pub struct Doorbell {
    cookie: DoorbellCookie,
    queue: Shared<HwQueue>,
}

impl Doorbell {
    /// CreateDoorbell.
    pub fn create(
        queue: &Shared<HwQueue>,
        class: &Passive,
        doorbell: &CreateDoorbellArgs<'_>,
    ) -> KmdResult<Shared<Self>> {
        let cookie = {
            let kmd = queue.context.port().enter()?;
            let _turn = queue.context.device.turns.take();

            kmd.create_doorbell(class, queue.cookie, doorbell)?
        };
        let doorbell = Self {
            cookie,
            queue: queue.clone(),
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(doorbell).ok_or(KmdError::NoMemory)
    }

    /// ConnectDoorbell. The caller sees to it that this and DisconnectDoorbell are not at the same
    /// time.
    pub fn connect(&self, class: &Passive) -> KmdResult<Connected> {
        let kmd = self.queue.context.port().enter()?;

        kmd.connect_doorbell(class, self.cookie)
    }

    /// DisconnectDoorbell. A stopped adapter has none any more.
    pub fn disconnect(&self, class: &Passive) {
        if let Ok(kmd) = self.queue.context.port().enter() {
            kmd.disconnect_doorbell(class, self.cookie);
        }
    }

    /// NotifyWorkSubmission.
    pub fn notify(&self, class: &Passive) -> KmdResult {
        let kmd = self.queue.context.port().enter()?;

        kmd.notify_work_submission(class, self.cookie);
        Ok(())
    }

    /// The process may have rung before the doorbell was connected, and found it connected then.
    pub fn look(&self, class: &mut Passive) {
        Dispatch::below(class, |class| self.tell(class, Rung::Connected));
    }

    /// The process accesses the physical doorbell, which traps.
    ///
    /// Context: does not sleep.
    pub fn rung(&self, class: &Dispatch) {
        self.tell(class, Rung::Accessed);
    }

    fn tell(&self, class: &Dispatch, why: Rung) {
        if let Ok(kmd) = self.queue.context.port().enter() {
            kmd.doorbell_rung(class, self.cookie, why);
        }
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        let class = Passive::here();
        let destroys = self.queue.context.port().enter_to_destroy(&class);
        let _turn = self.queue.context.device.turns.take();

        destroys.doorbell(&class, self.cookie);
    }
}
