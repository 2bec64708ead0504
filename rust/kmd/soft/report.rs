// SPDX-License-Identifier: GPL-2.0

//! What an engine's packets report, as the OS part is told of it, and the clock that they see.

use super::{
    cause::{
        Cause,
        Class, //
    },
    cpu_events::ContextEvents,
    native_fences::NativeFences,
    native_record::{
        NativeRecord,
        Signaller, //
    }, //
};
use crate::{
    ddi::{
        callbacks::Callbacks,
        queue::{
            Fault,
            FaultKind,
            PAGE_FAULT_WRITE, //
        }, //
    },
    engine::{
        fault::{
            self,
            FaultRecord, //
        },
        fences::FenceIndex,
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

/// Tells what the packets of a queue report: the OS part, and who waits for traps.
pub(super) struct Reporter<'a> {
    pub(super) signaller: Signaller<'a>,
    pub(super) events: Option<&'a ContextEvents>,
    pub(super) node: u32,
    pub(super) queue: u64,
    pub(super) native_fences: &'a NativeFences,
    pub(super) native_record: &'a mut NativeRecord,
    pub(super) interrupts: &'a Callbacks,
}

impl Interrupts for Reporter<'_> {
    fn report(&mut self, record: Record) {
        match record {
            Record::MonitoredFenceSignaled => self.interrupt(None),
            Record::NativeFenceSignaled(fence) => self.interrupt(Some(fence)),
            Record::Trap { class, argument } => {
                if let Some(events) = self.events {
                    events.note(&Cause {
                        class: Class::Trap,
                        node: self.node,
                        queue: self.queue,
                        detail: argument,
                        reason: class,
                    });
                }
            }
        }
    }
}

impl Reporter<'_> {
    /// Interrupts for a native fence, or for monitored ones.
    fn interrupt(&mut self, fence: Option<FenceIndex>) {
        let Signaller { callbacks, .. } = self.signaller;

        self.interrupts.synchronize_execution(|class| match fence {
            Some(fence) => {
                self.native_record
                    .signaled(class, fence, self.native_fences, &self.signaller);
            }
            None if self.native_record.is_legacy() => {
                callbacks.native_fence_signaled(class, self.native_record.nameless(&self.signaller))
            }
            None => callbacks.monitored_fence_signaled(class),
        });
    }
}

/// What clients are told of a fault.
pub(super) fn cause_of(record: &FaultRecord, node: u32, queue: u64) -> Cause {
    let (class, detail, reason) = match record.kind {
        fault::FaultKind::Page(page) => (
            Class::PageFault,
            page.va,
            if page.write { PAGE_FAULT_WRITE } else { 0 },
        ),
        fault::FaultKind::Packet(_) => (Class::BadObject, record.packet, record.header),
    };

    Cause {
        class,
        node,
        queue,
        detail,
        reason,
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
