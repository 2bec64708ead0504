// SPDX-License-Identifier: GPL-2.0

//! UpdateGpuVirtualAddress: changes of reservations that read as zero, in the order of a queue
//! (MEM-45, MEM-47).

use super::{
    state::State,
    AddressSpace, //
};
use crate::{
    ddi::paging::PageSize,
    dxgk::vidmm::residency::Opening,
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::{
            self,
            Mapping,
            Range,
            Reservation,
            What, //
        },
        gpu_va_rules::Update, //
    },
    sys::alloc::tree_node, //
};
use kernel::prelude::*;

impl State {
    /// Changes pages of a reservation, `part` of them at a time, to what begins with `what`.
    fn repeat(&mut self, first: u64, end: u64, part: u64, what: impl Fn(u64) -> What) -> DxgResult {
        let mut at = first;

        while at < end {
            let next = at.saturating_add(part.max(1)).min(end);
            let what = what(at);

            // What reads as zero has its tables.
            self.change(at, next, Some(PageSize::Kib4), |old, further| {
                let reservation = old?.reservation;

                Some(Range { reservation, what }.at(further))
            })?;
            at = next;
        }
        Ok(())
    }

    /// Copies what pages are to others, as if all were read before any is written.
    fn copy(&mut self, source: u64, first: u64, end: u64) -> DxgResult {
        let stop = source.saturating_add(end.saturating_sub(first));
        let mut parts = KVVec::new();

        for part in gpu_ranges::parts(&self.ranges, source, stop) {
            parts.push(part, GFP_KERNEL_ACCOUNT)?;
        }
        for part in &parts {
            let at = first.saturating_add(part.first.saturating_sub(source));

            self.repeat(at, at.saturating_add(part.pages), part.pages, |_| {
                part.range.what
            })?;
        }
        Ok(())
    }
}

impl AddressSpace {
    /// Checks that all pages of an update are in one reservation that reads as zero (MEM-45).
    pub(crate) fn zero_reservation(&self, first: u64, end: u64) -> DxgResult<Reservation> {
        let state = self.state.lock();

        gpu_ranges::reservation_of(&state.ranges, first, end)
            .filter(|reservation| reservation.zero)
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Does one operation of an update, if its pages are still in the reservations that they were
    /// in when it was queued.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn update(
        &self,
        update: &Update,
        opened: Option<Opening<'_>>,
        destination: Reservation,
        source: Option<Reservation>,
    ) -> DxgResult {
        // Dropped after the lock if it is not used.
        let mut node = match opened {
            Some(opened) => Some(tree_node(opened.id, opened.memory.clone())?),
            None => None,
        };
        let mut state = self.state.lock();
        let (first, end) = update.destination();
        let is_there = |state: &State, (first, end), reservation| {
            gpu_ranges::reservation_of(&state.ranges, first, end) == reservation
        };

        if !is_there(&state, (first, end), Some(destination)) {
            return Ok(());
        }
        if let Some(pages) = update.source() {
            if !is_there(&state, pages, source) {
                return Ok(());
            }
        }
        if let Some(opened) = opened {
            if opened.is_closed() {
                return Ok(());
            }
            if state.openings.get(&opened.id).is_none() {
                if let Some(node) = node.take() {
                    let _nothing = state.openings.insert(node);
                }
            }
        }

        let done = match *update {
            Update::Map {
                offset,
                part,
                write,
                execute,
                driver_protection,
                ..
            } => state.repeat(first, end, part, |_| {
                What::Mapped(Mapping {
                    opening: opened.map_or(0, |opened| opened.id),
                    offset,
                    write,
                    execute,
                    driver_protection,
                })
            }),
            Update::Unmap { zero, .. } => {
                let what = match zero {
                    true => What::Zero,
                    false => What::NoAccess,
                };

                state.repeat(first, end, end.saturating_sub(first), |_| what)
            }
            Update::Copy { source, .. } => state.copy(source, first, end),
        };

        state.tables.finish(first, end);
        drop(state);
        drop(node);
        done
    }
}
