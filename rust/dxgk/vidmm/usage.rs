// SPDX-License-Identifier: GPL-2.0

//! How much memory there is, and who uses it: QueryVideoMemoryInfo and QueryStatistics (MEM-34 to
//! MEM-36, MEM-106).

use super::reserved::Reservations;
use crate::{
    ddi::{
        class::Passive,
        queue::NodeStatus,
        segments::SegmentKind, //
    },
    dxgk::{
        adapter::Adapter,
        process::Process, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        paging_log::{
            Action,
            Event, //
        },
        paging_rules, //
    }, //
};

/// Memory of a budget group, as a process may use it; in bytes.
pub(crate) struct GroupUsage {
    /// What it may use.
    pub(crate) budget: u64,
    /// What its devices want to be resident.
    pub(crate) usage: u64,
    /// What it has reserved.
    pub(crate) reservation: u64,
}

/// How full a segment is.
pub(crate) struct SegmentUsage {
    /// Bytes that it can have.
    pub(crate) commit_limit: u64,
    /// Bytes that are in use.
    pub(crate) used: u64,
    /// Whether it is an aperture.
    pub(crate) is_aperture: bool,
}

impl Process {
    /// How much of a group of the adapter it may use, and uses.
    pub(crate) fn group_usage(&self, adapter: &Adapter, group: usize) -> GroupUsage {
        // Without a device there it uses nothing.
        let space = self.gpu_processes.space_on(adapter);

        let (budget, reservation) = adapter.budget(&self.gpu_processes.reservations, group);

        GroupUsage {
            budget,
            usage: space.map_or(0, |space| space.usage(group)),
            reservation,
        }
    }

    /// Reserves so many bytes of a group of the adapter, instead of what it has reserved there.
    /// INVALID_PARAMETER if it may not have as much.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve_memory(&self, adapter: &Adapter, group: usize, bytes: u64) -> DxgResult {
        self.gpu_processes.reservations.change(
            adapter.id,
            &adapter.memory.reserved,
            (group, adapter.memory.group_size(group)),
            bytes,
        )?;
        adapter.memory.log.tell(Event::BudgetChange, || Action {
            process: self.id,
            size: bytes,
            // CAST: there are two groups.
            flags: group as u32,
            ..Action::default()
        });
        Ok(())
    }

    /// How much of the segment at a place it may use, and uses. That is known by group, so the
    /// first segment of a group stands for all of it. INVALID_PARAMETER if there is no such one.
    pub(crate) fn segment_usage(&self, adapter: &Adapter, place: u32) -> DxgResult<GroupUsage> {
        // CAST: 32 bits fit a usize.
        let place = place as usize;
        let groups = || {
            let reported = adapter.memory.reported.iter();

            reported.map(|(_, descriptor)| usize::from(!descriptor.local_budget_group))
        };
        let group = groups().nth(place).ok_or(Status::INVALID_PARAMETER)?;
        let whole = self.group_usage(adapter, group);
        let is_first = groups().take(place).all(|other| other != group);

        Ok(GroupUsage {
            usage: if is_first { whole.usage } else { 0 },
            ..whole
        })
    }
}

impl Adapter {
    /// The budget in a group of the process that has these reservations, and what it has reserved
    /// there.
    pub(super) fn budget(&self, reservations: &Reservations, group: usize) -> (u64, u64) {
        let parts = reservations.of_group(self.id, &self.memory.reserved, group);
        let budget = paging_rules::budget(self.memory.group_size(group), parts.of_others);

        (budget, parts.own)
    }

    /// How many segments it has.
    pub(crate) fn segment_count(&self) -> u32 {
        // CAST: at most 31.
        self.memory.reported.iter().count() as u32
    }

    /// The segment at a place; INVALID_PARAMETER if there is none.
    pub(crate) fn segment_usage(&self, place: u32) -> DxgResult<SegmentUsage> {
        let (id, descriptor) = self
            .memory
            .reported
            .iter()
            // CAST: 32 bits fit a usize.
            .nth(place as usize)
            .ok_or(Status::INVALID_PARAMETER)?;
        let is_aperture = descriptor.kind == SegmentKind::Aperture;
        let used = match self.memory.segment(id) {
            Some(segment) => segment.used(),
            None if self.memory.aperture.id == id => self.memory.aperture.used(),
            None => 0,
        };

        Ok(SegmentUsage {
            commit_limit: match is_aperture {
                true => descriptor.commit_limit,
                false => descriptor.size,
            },
            used,
            is_aperture,
        })
    }

    /// What a node has done and does; INVALID_PARAMETER if there is none.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn node_status(&self, node: u32) -> DxgResult<NodeStatus> {
        if node >= self.caps.nodes {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(self.port.enter()?.query_node_status(&Passive::here(), node))
    }
}
