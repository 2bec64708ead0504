// SPDX-License-Identifier: GPL-2.0

//! A HW queue: it takes submissions for its context.

use super::context::Context;
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        native_fence::LogBuffer,
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

    /// SetNativeFenceLogBuffer for both logs, or for none of them: fails as
    /// [`HwQueue::update_native_fence_logs`]. One at a time.
    pub fn set_native_fence_log_buffers(
        &self,
        class: &Passive,
        logs: &[LogBuffer; 2],
    ) -> KmdResult {
        let kmd = self.context.port().enter()?;

        for log in logs {
            kmd.set_native_fence_log_buffer(class, self.cookie, log);
        }
        Ok(())
    }

    /// UpdateNativeFenceLogs, for this queue. Fails while the adapter is reset and once it is
    /// stopped: no engine runs then.
    ///
    /// Context: does not sleep.
    pub fn update_native_fence_logs(&self, class: &Dispatch) -> KmdResult {
        let kmd = self.context.port().enter()?;

        kmd.update_native_fence_logs(class, &[self.cookie]);
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
