// SPDX-License-Identifier: GPL-2.0

//! A context: of packets, which takes submissions itself, or of HW queues.

use super::device::Device;
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        paging::RootPageTable,
        port::{
            Calls,
            Port, //
        },
        queue::{
            Submission,
            Suspend, //
        },
        types::{
            ContextCookie,
            CreateContextArgs,
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

/// What CreateContext has made.
pub struct Context {
    pub(super) cookie: ContextCookie,
    /// One submit, suspend or resume at a time (GPU-101).
    turns: ShortTurns,
    pub(super) device: Shared<Device>,
}

impl Context {
    /// CreateContext.
    pub fn create(
        device: &Shared<Device>,
        class: &Passive,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<Shared<Self>> {
        let turns = platform::short_turns().ok_or(KmdError::NoMemory)?;
        let cookie = {
            let kmd = device.process.port.enter()?;
            let _turn = device.turns.take();

            kmd.create_context(class, device.cookie, context)?
        };
        let context = Self {
            cookie,
            turns,
            device: device.clone(),
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(context).ok_or(KmdError::NoMemory)
    }

    /// SetRootPageTable. A stopped adapter needs no page tables any more.
    pub fn set_root_page_table(&self, class: &Passive, root: &RootPageTable) -> KmdResult {
        let kmd = self.port().enter()?;
        let _turn = self.device.turns.take();

        kmd.set_root_page_table(class, self.cookie, root);
        Ok(())
    }

    /// SetRootPageTable while no work of the context runs. While the adapter is being stopped this
    /// waits, as all paging does: the old root is about to go.
    pub fn move_root_page_table(&self, class: &Passive, root: &RootPageTable) {
        if let Some(kmd) = self.port().enter_to_page(class) {
            let _turn = self.device.turns.take();

            kmd.set_root_page_table(class, self.cookie, root);
        }
    }

    /// SetContextSchedulingProperties.
    pub fn set_priority(&self, class: &Passive, priority: i32) -> KmdResult {
        let kmd = self.port().enter()?;
        let _turn = self.device.turns.take();

        kmd.set_context_priority(class, self.cookie, priority);
        Ok(())
    }

    /// SubmitCommandVirtual.
    ///
    /// Context: does not sleep.
    pub fn submit(&self, class: &Dispatch, submission: &Submission) -> KmdResult {
        let kmd = self.port().enter()?;
        let _turn = self.turns.take();

        kmd.submit_command(class, self.cookie, submission);
        Ok(())
    }

    /// SuspendContext, for who waits for its end inside `kmd`. See [`Context::suspend`].
    ///
    /// Context: does not sleep.
    pub fn suspend_within(&self, kmd: &Calls<'_>, class: &Dispatch, id: u64) -> Suspend {
        let _turn = self.turns.take();

        kmd.suspend_context(class, self.cookie, id)
    }

    /// SuspendContext. A stopped adapter runs nothing.
    ///
    /// Context: does not sleep.
    pub fn suspend(&self, class: &Dispatch, id: u64) -> KmdResult<Suspend> {
        let kmd = self.port().enter()?;
        let _turn = self.turns.take();

        Ok(kmd.suspend_context(class, self.cookie, id))
    }

    /// ResumeContext.
    ///
    /// Context: does not sleep.
    pub fn resume(&self, class: &Dispatch) -> KmdResult {
        let kmd = self.port().enter()?;
        let _turn = self.turns.take();

        kmd.resume_context(class, self.cookie);
        Ok(())
    }

    pub(super) fn port(&self) -> &Port {
        &self.device.process.port
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let class = Passive::here();
        let destroys = self.port().enter_to_destroy(&class);
        let _turn = self.device.turns.take();

        destroys.context(&class, self.cookie);
    }
}
