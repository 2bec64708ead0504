// SPDX-License-Identifier: GPL-2.0

//! A HW queue: it takes submissions for its context.

use super::context::Context;
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        queue::Submission,
        types::{
            CreateHwQueueArgs,
            HwQueueCookie,
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Shared, //
    }, //
};

/// What CreateHwQueue has made.
pub struct HwQueue {
    pub(super) cookie: HwQueueCookie,
    pub(super) context: Shared<Context>,
}

impl HwQueue {
    /// CreateHwQueue.
    pub fn create(
        context: &Shared<Context>,
        class: &Passive,
        queue: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<Shared<Self>> {
        let cookie = {
            let kmd = context.port().enter()?;
            let _turn = context.device.turns.take();

            kmd.create_hw_queue(class, context.cookie, queue)?
        };
        let queue = Self {
            cookie,
            context: context.clone(),
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(queue).ok_or(KmdError::NoMemory)
    }

    /// SubmitCommandToHwQueue. As [`Context::submit`].
    ///
    /// Context: does not sleep.
    pub fn submit(&self, class: &Dispatch, submission: &Submission) -> KmdResult {
        let kmd = self.context.port().enter()?;

        kmd.submit_command_to_hw_queue(class, self.cookie, submission);
        Ok(())
    }
}

impl Drop for HwQueue {
    fn drop(&mut self) {
        let class = Passive::here();
        let destroys = self.context.port().enter_to_destroy(&class);
        let _turn = self.context.device.turns.take();

        destroys.hw_queue(&class, self.cookie);
    }
}
