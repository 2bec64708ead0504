// SPDX-License-Identifier: GPL-2.0

//! What a report says: how the adapter was before anything was done about it.

use super::{
    Done,
    Found,
    Kind, //
};
use crate::{
    ddi::{
        queue::{
            Fault,
            FaultKind, //
        },
        recovery::DebugInfo, //
    },
    dxgk::{
        adapter::Adapter,
        sched::{
            list::ListedQueue,
            queue::Queue, //
        }, //
    }, //
};

/// At most so many queues of a device are looked at after a fault: the adapter's worker has others
/// to serve.
const LOOKED_AT: usize = 64;

impl Adapter {
    /// An engine or the adapter is about to be reset; `hung` is the queue whose work has taken too
    /// long. The number of the report.
    ///
    /// Context: may sleep, but waits for no engine; `Recovery::turn`, before devices are in error.
    pub(in crate::dxgk) fn report_recovery(
        &self,
        kind: Kind,
        node: Option<u32>,
        hung: Option<&Queue>,
        info: &DebugInfo,
    ) -> u64 {
        self.reports.write(kind, |report| {
            report.node = node;
            report.guilty = hung.map(|queue| queue.id).or(info.queue);
            report.info = *info;
            for queue in self.queues.iter() {
                report.add(queue.snapshot());
            }
        })
    }

    /// A queue has stopped at a packet. Others of its device are shown with it.
    ///
    /// Context: may sleep, but waits for nobody who sleeps; no locks held, before the device is in
    /// error.
    pub(in crate::dxgk) fn report_fault(&self, queue: &Queue, fault: &Fault) {
        let found = match (fault.kind, &queue.device.process.space) {
            (FaultKind::PageFault { address, .. }, Some(space)) => {
                space.walk(address).map_or(Found::Busy, Found::Walk)
            }
            _ => Found::NotAsked,
        };
        let device = queue.device.id();
        let number = self.reports.write(Kind::Fault, |report| {
            report.node = Some(queue.node);
            report.guilty = Some(queue.id);
            report.fault = Some(*fault);
            report.found = found;
            report.add(queue.snapshot());
            for other in self.queues.of_device(device).take(LOOKED_AT) {
                let other = other.snapshot();

                if other.id != queue.id {
                    report.add(other);
                }
            }
        });

        self.reports.end(number, Done::Nothing);
    }
}
