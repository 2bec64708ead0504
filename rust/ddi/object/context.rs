// SPDX-License-Identifier: GPL-2.0

//! A context: of packets, which takes submissions itself, or of HW queues.

use super::{
    allocation::Allocation,
    device::Device, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        paging::{
            Built,
            Direction,
            FillVirtual,
            PagingBuffer,
            PagingOperation,
            RootPageTable,
            TransferVirtual, //
        },
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

/// What a paging node is to do with bytes of an allocation.
#[derive(Clone, Copy)]
pub struct PagingWork {
    /// Where in the allocation they begin.
    pub offset: u64,
    /// How many there are.
    pub size: u64,
    /// GPU virtual address where they are to be, in the paging process.
    pub destination: u64,
    /// Where they come from.
    pub from: Origin,
}

/// Where bytes come from.
#[derive(Clone, Copy)]
pub enum Origin {
    /// TransferVirtual: from this GPU virtual address.
    Memory(u64, Direction),
    /// FillVirtual: each dword is this.
    Pattern(u32),
}

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

    /// BuildPagingBuffer with commands for this context, which is one of the paging process. The
    /// caller sees to it that this is the only one for its node.
    ///
    /// Context: may sleep.
    pub fn build(
        &self,
        class: &Passive,
        allocation: &Allocation,
        work: &PagingWork,
        buffer: &mut PagingBuffer,
    ) -> KmdResult<Built> {
        let PagingWork {
            offset,
            size,
            destination,
            from,
        } = *work;
        let allocation = allocation.cookie;
        let kmd = self.port().enter()?;

        buffer.context = self.cookie;
        Ok(kmd.build_paging_buffer(
            class,
            match from {
                Origin::Memory(source, direction) => PagingOperation::TransferVirtual(
                    TransferVirtual {
                        allocation,
                        offset,
                        size,
                        source,
                        destination,
                        direction,
                    },
                    buffer,
                ),
                Origin::Pattern(pattern) => PagingOperation::FillVirtual(
                    FillVirtual {
                        allocation,
                        offset,
                        size,
                        pattern,
                        destination,
                    },
                    buffer,
                ),
            },
        ))
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
