// SPDX-License-Identifier: GPL-2.0

//! What a stream of notices looks at: a process on an adapter (MEM-38).

use super::notice::{
    Notice,
    NoticeSource, //
};
use crate::{
    dxgk::{
        adapter::Adapter,
        gpu_process::GpuProcesses,
        process::Process, //
    },
    error::DxgResult,
    logic::{
        notice_rules::Kind,
        paging_log::{
            Action,
            Event, //
        },
        paging_rules::GROUPS, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A process on an adapter.
struct Source {
    adapter: Arc<Adapter>,
    /// The number of the process.
    process: u64,
    processes: Arc<GpuProcesses>,
}

impl NoticeSource for Source {
    fn usage(&self) -> Option<(u64, u64)> {
        self.adapter.check().ok()?;

        let space = self.processes.space_on(&self.adapter).ok()?;
        let budget = |group| self.adapter.budget(&self.processes.reservations, group).0;
        let over = (0..GROUPS).fold(0u64, |sum, group| {
            sum.saturating_add(space.usage(group).saturating_sub(budget(group)))
        });
        let is_local = self.adapter.memory.group_size(0) != 0;

        Some((over, budget(usize::from(!is_local))))
    }

    fn trace(&self, kind: Kind, (over, budget): (u64, u64)) {
        let (event, size) = match kind {
            Kind::Trim => (Event::Trim, over),
            Kind::Budget => (Event::BudgetChange, budget),
        };

        self.adapter.memory.log.tell(event, || Action {
            process: self.process,
            size,
            ..Action::default()
        });
    }
}

impl Process {
    /// A stream that tells the process about the memory of an adapter where it has a device.
    /// NOT_SUPPORTED if that has no GPU addresses.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn memory_notice(
        &self,
        adapter: &Arc<Adapter>,
        kind: Kind,
    ) -> DxgResult<Arc<Notice>> {
        self.gpu_processes.space_on(adapter)?;

        let source = Arc::new(
            Source {
                adapter: adapter.clone(),
                process: self.id,
                processes: self.gpu_processes.clone(),
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        Notice::new(&self.waits, adapter.memory.notices.clone(), source, kind)
    }
}
