// SPDX-License-Identifier: GPL-2.0

//! The destroys, verified.

use super::{
    entry::Entry,
    objects::{
        Kind,
        Object, //
    },
    rule::Rule,
    Verifier, //
};
use crate::{
    ddi::{
        class::Passive,
        types::{
            AllocationCookie,
            AllocationEndCookie,
            AllocationId,
            ContextCookie,
            CpuEventCookie,
            DeviceCookie,
            DoorbellCookie,
            FenceDoorbellCookie,
            HwQueueCookie,
            NativeFenceCookie,
            OpenAllocationCookie,
            OpenNativeFenceCookie,
            ProcessCookie,
            Scheduling, //
        },
        Destroy, //
    },
    platform, //
};

impl Verifier {
    /// A destroy for which it is the only call of its device.
    fn end(&self, entry: Entry, kind: Kind, cookie: u64, destroy: impl FnOnce(u64)) {
        let Some((call, object)) = self.enter_to_end(entry, kind, cookie) else {
            return;
        };
        let _alone = device_of(&object).and_then(|device| call.alone(device));

        destroy(object.cookie());
        if let Some(work) = &object.queue {
            platform::cmpxchg(&work.ended, 0, 1);
            call.check(
                Rule::CallbacksKept,
                platform::load32_acquire(&work.released) != 0,
            );
        }
    }
}

/// The device whose calls exclude each other.
fn device_of(object: &Object) -> Option<&Object> {
    match object.kind {
        Kind::Context(_) | Kind::Open => object.parent().map(|device| &**device),
        Kind::HwQueue => object.parent()?.parent().map(|device| &**device),
        Kind::Doorbell => device_of(object.parent()?),
        _ => None,
    }
}

impl Destroy for Verifier {
    fn destroy_process(&self, class: &Passive, process: ProcessCookie) {
        self.end(Entry::DestroyProcess, Kind::Process, process.0, |process| {
            self.kmd.destroy_process(class, ProcessCookie(process));
        });
    }

    fn destroy_device(&self, class: &Passive, device: DeviceCookie) {
        self.end(Entry::DestroyDevice, Kind::Device, device.0, |device| {
            self.kmd.destroy_device(class, DeviceCookie(device));
        });
    }

    fn destroy_context(&self, class: &Passive, context: ContextCookie) {
        let kind = Kind::Context(Scheduling::Packets);

        self.end(Entry::DestroyContext, kind, context.0, |context| {
            self.kmd.destroy_context(class, ContextCookie(context));
        });
    }

    fn destroy_hw_queue(&self, class: &Passive, queue: HwQueueCookie) {
        self.end(Entry::DestroyHwQueue, Kind::HwQueue, queue.0, |queue| {
            self.kmd.destroy_hw_queue(class, HwQueueCookie(queue));
        });
    }

    fn destroy_doorbell(&self, class: &Passive, doorbell: DoorbellCookie) {
        let kind = Kind::Doorbell;

        self.end(Entry::DestroyDoorbell, kind, doorbell.0, |doorbell| {
            self.kmd.destroy_doorbell(class, DoorbellCookie(doorbell));
        });
    }

    fn destroy_cpu_event(&self, class: &Passive, event: CpuEventCookie) {
        self.end(Entry::DestroyCpuEvent, Kind::CpuEvent, event.0, |event| {
            self.kmd.destroy_cpu_event(class, CpuEventCookie(event));
        });
    }

    fn close_native_fence(&self, class: &Passive, open: OpenNativeFenceCookie) {
        let kind = Kind::OpenNativeFence;

        self.end(Entry::CloseNativeFence, kind, open.0, |open| {
            self.kmd
                .close_native_fence(class, OpenNativeFenceCookie(open));
        });
    }

    fn disconnect_fence_doorbell(&self, class: &Passive, doorbell: FenceDoorbellCookie) {
        let (entry, kind) = (Entry::DisconnectFenceDoorbell, Kind::FenceDoorbell);

        self.end(entry, kind, doorbell.0, |doorbell| {
            self.kmd
                .disconnect_fence_doorbell(class, FenceDoorbellCookie(doorbell));
        });
    }

    fn destroy_native_fence(&self, class: &Passive, fence: NativeFenceCookie) {
        let kind = Kind::NativeFence;

        self.end(Entry::DestroyNativeFence, kind, fence.0, |fence| {
            self.kmd
                .destroy_native_fence(class, NativeFenceCookie(fence));
        });
    }

    fn notify_allocation_end(&self, class: &Passive, end: AllocationEndCookie, id: AllocationId) {
        let call = self.enter_to_destroy(Entry::NotifyAllocationEnd, id.0);
        let told = call
            .find(Kind::Allocation, end.0)
            .ok()
            .filter(|allocation| allocation.id == id.0)
            .and_then(|allocation| allocation.tell_end());

        call.check(Rule::BadNotice, told.is_some());
        if let Some(end) = told {
            self.kmd.notify_allocation_end(class, end, id);
        }
    }

    fn destroy_allocation(&self, class: &Passive, allocation: AllocationCookie) {
        let kind = Kind::Allocation;

        self.end(Entry::DestroyAllocation, kind, allocation.0, |allocation| {
            self.kmd
                .destroy_allocation(class, AllocationCookie(allocation));
        });
    }

    fn close_allocation(&self, class: &Passive, open: OpenAllocationCookie) {
        self.end(Entry::CloseAllocation, Kind::Open, open.0, |open| {
            self.kmd.close_allocation(class, OpenAllocationCookie(open));
        });
    }
}
