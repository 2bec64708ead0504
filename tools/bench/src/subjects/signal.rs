// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal that nobody waits for.

use core::sync::atomic::AtomicU32;

use opendxg::raw::code;
use opendxg::uapi::D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU;
use opendxg::{Access, Device, Dxg, EventFd, MonitoredFence};
use rustix::thread::futex;

use super::{names, Bench};
use crate::ioctl::ioctl;
use crate::library::Library;
use crate::measure::{Participant, Plan, Runner};

/// Number of SignalSynchronizationObjectFromCpu.
const SIGNAL: u32 = 0x31;

/// How many fences one call signals.
const MANY: usize = 64;

/// Signals by the plain code, as clients of another driver with this interface do.
fn plain_signal(dxg: &Dxg, device: &Device, objects: &[u32], values: &[u64]) {
    assert_eq!(objects.len(), values.len());
    let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
        hDevice: device.handle().0,
        ObjectCount: objects.len() as u32,
        ObjectHandleArray: objects.as_ptr() as u64,
        FenceValueArray: values.as_ptr() as u64,
        ..Default::default()
    };
    let size = size_of_val(&arg) as u32;
    // SAFETY: the argument of this code; both addresses hold `ObjectCount` live entries.
    unsafe { ioctl(dxg, code(SIGNAL, size), &mut arg) }.expect("signal a fence");
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let (dxg, device) = (&bench.dxg, &bench.device);
    let fence = device.create_fence(0).expect("create a fence");
    let plain = device.create_fence(0).expect("create a fence");
    let own = device.create_fence(0).expect("create a fence");
    let shared = device.create_shareable_fence(0).expect("create a fence");
    let nt_handle = shared.share(Access::SIGNAL).expect("share a fence");
    let many: [MonitoredFence; MANY] =
        std::array::from_fn(|_| device.create_fence(0).expect("create a fence"));
    let many_handles = many.each_ref().map(|fence| fence.handle().0);
    let mut many_values = [0; MANY];
    let (mut value, mut plain_value, mut own_value, mut point) = (0, 0, 0, 0);
    let mut shared_value = 0;
    let eventfd = EventFd::new().expect("make an eventfd");
    let word = AtomicU32::new(0);
    let mut all = vec![
        Participant::new(names::NO_OP, || dxg.no_op().expect("no-op")),
        Participant::new(names::OPENDXG, || {
            value += 1;
            fence.signal(value).expect("signal a fence");
        }),
        Participant::new("opendxg plain ioctl", || {
            plain_value += 1;
            plain_signal(dxg, device, &[plain.handle().0], &[plain_value]);
        }),
        Participant::new(names::MANY_FENCES, || {
            many_values.iter_mut().for_each(|value| *value += 1);
            plain_signal(dxg, device, &many_handles, &many_values);
        }),
        Participant::new(names::NT_HANDLE, || {
            shared_value += 1;
            nt_handle.signal(shared_value).expect("signal a fence");
        }),
        Participant::new(names::EVENTFD, || {
            eventfd.signal().expect("write an eventfd");
        }),
        Participant::new(names::FUTEX, || {
            futex::wake(&word, futex::Flags::empty(), 1).expect("futex wake");
        }),
    ];
    if let Some(library) = Library::load() {
        let (own, own_value) = (&own, &mut own_value);
        all.push(Participant::new(names::LIBRARY, move || {
            *own_value += 1;
            library.signal(device, own, *own_value);
        }));
    }
    if let Some(ntsync) = &bench.ntsync {
        let event = ntsync.event(true, false).expect("make an event");
        all.push(Participant::new(names::NTSYNC, move || {
            event.set().expect("set an event");
        }));
    }
    if let Some(drm) = &bench.drm {
        let timeline = drm.timeline().expect("make a timeline");
        all.push(Participant::new(names::SYNCOBJ, move || {
            point += 1;
            timeline.signal(point).expect("signal a point");
        }));
    }
    runner.group("signal", "signal that nobody waits for", plan, all);
    assert_eq!(fence.value(), value, "value after all signals");
    assert_eq!(plain.value(), plain_value, "value after all signals");
    assert_eq!(shared.value(), shared_value, "value after all signals");
    for (fence, value) in many.iter().zip(many_values) {
        assert_eq!(fence.value(), value, "value after all signals");
    }
    assert_eq!(own.value(), own_value, "value after all signals");
}
