// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wait for something that has happened already.

use opendxg::Access;

use super::{names, Bench};
use crate::library::Library;
use crate::measure::{Batch, Participant, Plan, Runner};

/// Loads in one timed run: one alone is shorter than the clock's step. They are atomic, so that
/// every one of them is made.
const LOADS: u32 = 1000;

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let fence = bench.device.create_fence(5).expect("create a fence");
    let by_call = bench.device.create_fence(5).expect("create a fence");
    let shared = bench
        .device
        .create_shareable_fence(5)
        .expect("create a fence");
    let nt_handle = shared.share(Access::WAIT).expect("share a fence");
    let mut all = vec![
        Participant::new(
            "opendxg mapped value",
            Batch(LOADS, || {
                assert!(fence.is_reached(5));
            }),
        ),
        Participant::new(names::OPENDXG, || by_call.wait(5).expect("wait")),
        Participant::new(names::NT_HANDLE, || nt_handle.wait(5).expect("wait")),
    ];
    if let Some(library) = Library::load() {
        let (device, own) = (&bench.device, &by_call);
        all.push(Participant::new(names::LIBRARY, move || {
            library.wait(device, own, 5);
        }));
    }
    if let Some(ntsync) = &bench.ntsync {
        let event = ntsync.event(true, true).expect("make an event");
        all.push(Participant::new(names::NTSYNC, move || {
            ntsync.wait(&event).expect("wait for an event");
        }));
    }
    if let Some(drm) = &bench.drm {
        let timeline = drm.timeline().expect("make a timeline");
        timeline.signal(5).expect("signal a point");
        all.push(Participant::new(names::SYNCOBJ, move || {
            timeline.wait(5).expect("wait for a point");
        }));
    }
    runner.group(
        "satisfied",
        "wait for something that has happened already",
        plan,
        all,
    );
}
