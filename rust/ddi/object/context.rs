// SPDX-License-Identifier: GPL-2.0

//! A context: of packets, which takes submissions itself, or of HW queues.

use super::{
    allocation::Allocation,
    device::Device,
    process::{
        Process,
        TableUpdate, //
    }, //
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
            InitContextResource,
            PagingBuffer,
            PagingOperation,
            RootPageTable,
            TransferVirtual,
            UpdateContextAllocation, //
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
            AllocationCookie,
            ContextCookie,
            CreateContextArgs,
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Shared,
        Turns, //
    }, //
};

/// What a paging node is to do: with bytes of an allocation, or with page tables, of which only
/// `change` counts.
#[derive(Clone, Copy, Default)]
pub struct PagingWork<'a> {
    /// Where in the allocation they begin.
    pub offset: u64,
    /// How many there are.
    pub size: u64,
    /// GPU virtual address where they are to be, in the paging process.
    pub destination: u64,
    /// What becomes of them.
    pub change: Change<'a>,
}

/// What a paging node makes of bytes, or of page tables.
#[derive(Clone, Copy, Default)]
pub enum Change<'a> {
    /// Nothing: there is nothing to build.
    #[default]
    Nothing,
    /// UpdatePageTable of this process.
    Table(&'a Process, &'a TableUpdate<'a>),
    /// FlushTlb of this process, from the first address to before the last one.
    Flush(&'a Process, u64, u64),
    /// TransferVirtual of bytes of an allocation, from this GPU virtual address.
    Transfer(&'a Allocation, u64, Direction),
    /// FillVirtual of bytes of an allocation: each dword is this.
    Fill(&'a Allocation, u32),
    /// InitContextResource of a context allocation, which is at this place of a segment.
    Init(AllocationCookie, (u32, u64)),
    /// UpdateContextAllocation, with the private data of the KMD.
    Update(&'a [u8]),
}

/// What CreateContext has made.
pub struct Context {
    pub(super) cookie: ContextCookie,
    /// One call for the context at a time, beside those that make and destroy for its device
    /// (GPU-101). Those may wait for page tables, in callbacks, and page tables for these.
    turns: Turns,
    pub(super) device: Shared<Device>,
}

impl Context {
    /// CreateContext.
    pub fn create(
        device: &Shared<Device>,
        class: &Passive,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<Shared<Self>> {
        let turns = platform::context_turns().ok_or(KmdError::NoMemory)?;
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
        let _turn = self.turns.take();

        kmd.set_root_page_table(&class.setting_root(), self.cookie, root);
        Ok(())
    }

    /// SetRootPageTable while no work of the context runs. While the adapter is being stopped this
    /// waits, as all paging does: the old root is about to go.
    pub fn move_root_page_table(&self, class: &Passive, root: &RootPageTable) {
        if let Some(kmd) = self.port().enter_to_page(class) {
            let _turn = self.turns.take();

            kmd.set_root_page_table(&class.setting_root(), self.cookie, root);
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
        work: &PagingWork<'_>,
        buffer: &mut PagingBuffer,
    ) -> KmdResult<Built> {
        let PagingWork {
            offset,
            size,
            destination,
            change,
        } = *work;
        let kmd = self.port().enter()?;

        buffer.context = self.cookie;
        Ok(kmd.build_paging_buffer(
            &class.building(),
            match change {
                Change::Nothing => return Ok(Built::All),
                Change::Table(process, update) => process.table_operation(update, Some(buffer)),
                Change::Flush(process, first, last) => {
                    process.flush_operation(first, last, Some(buffer))
                }
                Change::Transfer(allocation, source, direction) => {
                    PagingOperation::TransferVirtual(
                        TransferVirtual {
                            allocation: allocation.cookie,
                            offset,
                            size,
                            source,
                            destination,
                            direction,
                        },
                        buffer,
                    )
                }
                Change::Fill(allocation, pattern) => PagingOperation::FillVirtual(
                    FillVirtual {
                        allocation: allocation.cookie,
                        offset,
                        size,
                        pattern,
                        destination,
                    },
                    buffer,
                ),
                Change::Init(allocation, at) => PagingOperation::InitContextResource(
                    InitContextResource {
                        allocation,
                        at,
                        size,
                        destination,
                    },
                    buffer,
                ),
                Change::Update(private_data) => PagingOperation::UpdateContextAllocation(
                    UpdateContextAllocation {
                        size,
                        destination,
                        private_data,
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
        let _turn = self.turns.take();

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
        let _turn = self.turns.take();

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
