// SPDX-License-Identifier: GPL-2.0

//! What an engine's packets report, as the OS part is told of it, and the clock that they see.

use crate::{
    ddi::queue::{
        Fault,
        FaultKind,
        QueueCallbacks,
        PAGE_FAULT_WRITE, //
    },
    engine::{
        fault::{
            self,
            FaultRecord, //
        },
        shell::{
            Clock,
            Interrupts,
            Record, //
        }, //
    },
    platform, //
};

/// The clock of timestamps: CLOCK_MONOTONIC.
pub(super) struct MonotonicClock;

impl Clock for MonotonicClock {
    fn ticks(&self) -> u64 {
        platform::now_ns()
    }
}

/// Tells the OS part what the packets of a queue report.
pub(super) struct Reporter<'a>(pub(super) &'a dyn QueueCallbacks);

impl Interrupts for Reporter<'_> {
    fn report(&mut self, record: Record) {
        match record {
            Record::MonitoredFenceSignaled => self.0.monitored_fence_signaled(),
            // Debug traps and CPU events, which there are none of: nobody can have asked for one.
            Record::Trap { .. } => {}
        }
    }
}

/// What the OS part is told of a fault.
pub(super) fn fault_of(record: &FaultRecord, number: u64) -> Fault {
    let (kind, flags) = match record.kind {
        fault::FaultKind::Page(page) => (
            FaultKind::PageFault {
                address: page.va,
                write: page.write,
                level: page.level.into(),
            },
            if page.write { PAGE_FAULT_WRITE } else { 0 },
        ),
        fault::FaultKind::Packet(_) => (
            FaultKind::IllegalPacket {
                header: record.header,
            },
            0,
        ),
    };

    Fault {
        kind,
        packet: record.packet,
        number,
        flags,
    }
}
