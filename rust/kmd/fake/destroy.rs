// SPDX-License-Identifier: GPL-2.0

//! The ends of a test double's objects.

use super::{
    end_cookie,
    journal::{
        Entry,
        Kind, //
    },
    FakeKmd, //
};
use crate::ddi::{
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
        ProcessCookie, //
    },
    Destroy, //
};

impl Destroy for FakeKmd {
    fn destroy_process(&self, _: &Passive, process: ProcessCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyProcess);

        self.linger();
        if let Some(events) = &self.behaviour.cpu_events {
            events.remove_process(process.0);
        }
        self.journal.destroy(Kind::Process, process.0);
    }

    fn destroy_device(&self, _: &Passive, device: DeviceCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyDevice);

        self.linger();
        self.journal.destroy(Kind::Device, device.0);
    }

    fn destroy_context(&self, _: &Passive, context: ContextCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyContext);
        let device = self.journal.parent(Kind::Context, context.0);
        let _alone = self.journal.alone(device);

        self.linger();
        if let Some(mmu) = &self.behaviour.mmu {
            mmu.remove(context.0);
        }
        self.forget(Kind::Context, context.0);
        self.journal.destroy(Kind::Context, context.0);
    }

    fn destroy_hw_queue(&self, _: &Passive, queue: HwQueueCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyHwQueue);
        let context = self.journal.parent(Kind::HwQueue, queue.0);
        let _alone = self.alone_for(ContextCookie(context));

        self.linger();
        self.forget(Kind::HwQueue, queue.0);
        self.journal.destroy(Kind::HwQueue, queue.0);
    }

    fn destroy_doorbell(&self, _: &Passive, doorbell: DoorbellCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyDoorbell);
        let queue = self.journal.parent(Kind::Doorbell, doorbell.0);
        let context = self.journal.parent(Kind::HwQueue, queue);
        let _alone = self.alone_for(ContextCookie(context));

        self.linger();
        if let Some(doorbells) = &self.behaviour.doorbells {
            if !doorbells.remove(doorbell.0) {
                self.journal.bad_value();
            }
        }
        self.journal.destroy(Kind::Doorbell, doorbell.0);
    }

    fn destroy_cpu_event(&self, _: &Passive, event: CpuEventCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyCpuEvent);

        self.linger();
        if let Some(events) = &self.behaviour.cpu_events {
            events.remove(event.0);
        }
        self.journal.destroy(Kind::CpuEvent, event.0);
    }

    fn close_native_fence(&self, _: &Passive, open: OpenNativeFenceCookie) {
        let _call = self.enter_to_destroy(Entry::CloseNativeFence);

        self.linger();
        self.journal.destroy(Kind::OpenNativeFence, open.0);
    }

    fn disconnect_fence_doorbell(&self, _: &Passive, _: FenceDoorbellCookie) {
        // None was connected.
        self.journal.bad_value();
    }

    fn destroy_native_fence(&self, _: &Passive, fence: NativeFenceCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyNativeFence);

        self.linger();
        if let Some(fences) = &self.behaviour.native_fences {
            fences.remove(fence.0);
        }
        self.journal.destroy(Kind::NativeFence, fence.0);
    }

    fn notify_allocation_end(&self, _: &Passive, end: AllocationEndCookie, id: AllocationId) {
        let _call = self.enter_to_destroy(Entry::NotifyAllocationEnd);

        self.linger();
        self.journal
            .allocation_ends(|cookie| end_cookie(cookie, id) == end);
        if let Some(at_end) = &self.behaviour.at_end {
            at_end();
        }
    }

    fn destroy_allocation(&self, _: &Passive, allocation: AllocationCookie) {
        let _call = self.enter_to_destroy(Entry::DestroyAllocation);

        self.linger();
        self.journal.destroy(Kind::Allocation, allocation.0);
    }

    fn close_allocation(&self, _: &Passive, open: OpenAllocationCookie) {
        let _call = self.enter_to_destroy(Entry::CloseAllocation);
        let device = self.journal.parent(Kind::Open, open.0);
        let _alone = self.journal.alone(device);

        self.linger();
        self.journal.destroy(Kind::Open, open.0);
    }
}
