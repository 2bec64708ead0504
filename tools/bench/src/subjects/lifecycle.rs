// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making an object and destroying it.

use opendxg::{Device, EventFd, MonitoredFence};

use super::{names, Bench};
use crate::measure::{Participant, Plan, Runner, Subject};

/// A fence made and destroyed while another one exists in the process.
struct Second<'a> {
    device: &'a Device,
    first: Option<MonitoredFence>,
}

impl Subject for Second<'_> {
    fn begin(&mut self, _operations: usize) {
        self.first = Some(self.device.create_fence(0).expect("create a fence"));
    }

    fn run(&mut self) {
        create_and_destroy(self.device);
    }

    fn end(&mut self) {
        self.first = None;
    }
}

fn create_and_destroy(device: &Device) {
    let fence = device.create_fence(0).expect("create a fence");
    fence.destroy().expect("destroy a fence");
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let device = &bench.device;
    let mut all = vec![
        Participant::new(
            names::OPENDXG,
            Second {
                device,
                first: None,
            },
        ),
        Participant::new("opendxg only fence", || create_and_destroy(device)),
        Participant::new("opendxg shareable", || {
            let fence = device.create_shareable_fence(0).expect("create a fence");
            fence.destroy().expect("destroy a fence");
        }),
        Participant::new(names::EVENTFD, || {
            EventFd::new().expect("make an eventfd");
        }),
    ];
    if let Some(ntsync) = &bench.ntsync {
        all.push(Participant::new(names::NTSYNC, || {
            ntsync.event(true, false).expect("make an event");
        }));
    }
    if let Some(drm) = &bench.drm {
        all.push(Participant::new(names::SYNCOBJ, || {
            drm.timeline().expect("make a timeline");
        }));
    }
    runner.group("lifecycle", "create and destroy an object", plan, all);
}
