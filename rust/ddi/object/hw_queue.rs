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
        Shared,
        ShortTurns, //
    }, //
};

/// What CreateHwQueue has made.
pub struct HwQueue {
    cookie: HwQueueCookie,
    /// One submit at a time (GPU-101).
    turns: ShortTurns,
    context: Shared<Context>,
}

impl HwQueue {
    /// CreateHwQueue.
    pub fn create(
        context: &Shared<Context>,
        class: &Passive,
        queue: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<Self> {
        let turns = platform::short_turns().ok_or(KmdError::NoMemory)?;
        let kmd = context.port().enter()?;
        let _turn = context.device.turns.take();

        Ok(Self {
            cookie: kmd.create_hw_queue(class, context.cookie, queue)?,
            turns,
            context: context.clone(),
        })
    }

    /// SubmitCommandToHwQueue.
    ///
    /// Context: does not sleep.
    pub fn submit(&self, class: &Dispatch, submission: &Submission) -> KmdResult {
        let kmd = self.context.port().enter()?;
        let _turn = self.turns.take();

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
