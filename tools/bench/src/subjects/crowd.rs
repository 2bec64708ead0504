// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on one fence while the process has many others.

use opendxg::MonitoredFence;

use super::Bench;
use crate::measure::{Participant, Plan, Runner};

/// Numbers of other fences.
pub const OTHERS: [u64; 3] = [10, 1_000, 60_000];

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let device = &bench.device;
    let mut others: Vec<MonitoredFence> = Vec::new();
    let mut all = Vec::new();
    for count in OTHERS {
        let fence = device.create_fence(0).expect("create a fence");
        let mut value = 0;
        all.push(Participant::at("signal", count, move || {
            value += 1;
            fence.signal(value).expect("signal a fence");
        }));
        let fence = device.create_fence(5).expect("create a fence");
        all.push(Participant::at("satisfied wait", count, move || {
            fence.wait(5).expect("wait");
        }));
        all.push(Participant::at("create and destroy", count, || {
            let fence = device.create_fence(0).expect("create a fence");
            fence.destroy().expect("destroy a fence");
        }));
    }
    runner.staged_group(
        "crowd",
        "operation while the process has N other fences",
        plan,
        all,
        |count| {
            others.resize_with(count as usize, || {
                device.create_fence(0).expect("create a fence")
            });
        },
    );
}
