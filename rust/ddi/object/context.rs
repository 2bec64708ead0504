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
        Shared, //
    }, //
};

/// What CreateContext has made.
pub struct Context {
    pub(super) cookie: ContextCookie,
    pub(super) device: Shared<Device>,
}

impl Context {
    /// CreateContext.
    pub fn create(
        device: &Shared<Device>,
        class: &Passive,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<Shared<Self>> {
        let cookie = {
            let kmd = device.process.port.enter()?;
            let _turn = device.turns.take();

            kmd.create_context(class, device.cookie, context)?
        };
        let context = Self {
            cookie,
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

    /// SubmitCommandVirtual. The caller sees to it that this is the only one for the context
    /// (GPU-101): no lock is held over the entry (MEM-96).
    ///
    /// Context: does not sleep.
    pub fn submit(&self, class: &Dispatch, submission: &Submission) -> KmdResult {
        let kmd = self.port().enter()?;

        kmd.submit_command(class, self.cookie, submission);
        Ok(())
    }

    /// SuspendContext, for who waits for its end inside `kmd`. See [`Context::suspend`].
    ///
    /// Context: may sleep.
    pub fn suspend_within(&self, kmd: &Calls<'_>, class: &mut Passive, id: u64) -> Suspend {
        let _turn = self.device.turns.take();

        Dispatch::below(class, |class| kmd.suspend_context(class, self.cookie, id))
    }

    /// SuspendContext. A stopped adapter runs nothing.
    ///
    /// Context: may sleep.
    pub fn suspend(&self, class: &mut Passive, id: u64) -> KmdResult<Suspend> {
        Ok(self.suspend_within(&self.port().enter()?, class, id))
    }

    /// ResumeContext.
    ///
    /// Context: may sleep.
    pub fn resume(&self, class: &mut Passive) -> KmdResult {
        let kmd = self.port().enter()?;
        let _turn = self.device.turns.take();

        Dispatch::below(class, |class| kmd.resume_context(class, self.cookie));
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
