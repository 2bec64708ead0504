// SPDX-License-Identifier: GPL-2.0

//! The removal of an adapter, and the error of a device, for the handles of a process: they stay,
//! and can be destroyed.

use super::{
    entry::{
        Entry,
        HandleTarget, //
    },
    open_allocation::OpenAllocation,
    HandleTable,
    State, //
};
use crate::dxgk::{
    adapter::Adapter,
    device::Device,
    object::{
        Header,
        Object, //
    },
    sync::{
        fence::Fence,
        legacy::LegacySync, //
    }, //
};
use crate::sys::trace;
use kernel::sync::Arc;

/// What the removal of an adapter acts on.
enum Used {
    Fence(Arc<Fence>),
    CpuEvent(Arc<LegacySync>),
    Allocation(Arc<OpenAllocation>),
}

impl Used {
    /// What the handle stands for, and the device that it is below.
    fn of(state: &State, entry: &Entry) -> Option<(Self, Option<u32>)> {
        let used = match &entry.item {
            HandleTarget::Sync(open) => match open.object() {
                Object::Fence(fence) => Self::Fence(fence.clone()),
                Object::Legacy(object) if object.cpu_event().is_some() => {
                    Self::CpuEvent(object.clone())
                }
                _ => return None,
            },
            HandleTarget::Allocation(opened) => Self::Allocation(opened.clone()),
            _ => return None,
        };

        Some((used, state.device_of(entry)))
    }

    fn header(&self) -> &Header {
        match self {
            Self::Fence(fence) => &fence.header,
            Self::CpuEvent(object) => &object.header,
            Self::Allocation(opened) => opened.open_resource.object().header(),
        }
    }

    fn adapter_removed(&self) {
        match self {
            Self::Fence(fence) => fence.always_signal(),
            // The handle stays (CPU-34).
            Self::CpuEvent(object) => {
                if let Some(event) = object.cpu_event() {
                    event.end();
                }
            }
            Self::Allocation(opened) => opened.adapter_removed(),
        }
    }
}

/// The fence that work of the handle's device could signal.
fn signalled_by(entry: &Entry) -> Option<Arc<Fence>> {
    let open = match &entry.item {
        HandleTarget::Sync(open) if open.grant().rights().signal || open.is_of_queue() => open,
        _ => return None,
    };

    match open.object() {
        Object::Fence(fence) => Some(fence.clone()),
        _ => None,
    }
}

impl HandleTable {
    /// The adapter is removed. This ends the fences that it could signal (FEN-105, FEN-143), and
    /// takes its memory out of the process. Also for handles that do not resolve yet. The lock is
    /// held for one handle at a time.
    ///
    /// Context: may sleep, no locks held; nothing is added on devices of the adapter any more.
    pub(in crate::dxgk) fn adapter_removed(&self, adapter: &Arc<Adapter>) {
        let mut seen = 0;

        while let Some((index, used)) = self.after(seen, Used::of) {
            seen = index;
            if let Some((used, device)) = used {
                let is_its = used.header().is_of(adapter)
                    || device.is_some_and(|device| self.is_on(device, adapter));

                if is_its {
                    used.adapter_removed();
                }
            }
        }
    }

    /// The adapter was reset: all its devices are in error.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn adapter_reset(&self, adapter: &Arc<Adapter>) {
        let mut seen = 0;

        while let Some((index, device)) = self.after(seen, |_, entry| match &entry.item {
            HandleTarget::Device(device) if Arc::ptr_eq(&device.adapter, adapter) => {
                Some(device.clone())
            }
            _ => None,
        }) {
            seen = index;
            if let Some(device) = device {
                device.was_reset();
            }
        }
    }

    /// The process ends: so do the queues of all its devices, before anything else of them.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn close_queues(&self) {
        let mut seen = 0;

        while let Some((index, device)) = self.after(seen, |_, entry| match &entry.item {
            HandleTarget::Device(device) => Some(device.clone()),
            _ => None,
        }) {
            seen = index;
            if let Some(device) = device {
                device.close_queues();
            }
        }
    }

    /// A device is in error: the fences that it could signal are always signaled from now on
    /// (FEN-104, FEN-105).
    ///
    /// Context: may sleep, no locks held; nothing is added on the device any more.
    pub(in crate::dxgk) fn device_failed(&self, device: &Device) {
        self.each_signalled_by(device, |fence| fence.always_signal());
    }

    /// The native fences that work of a device could signal are looked at (FEN-99).
    ///
    /// Context: may sleep, no spinlock held.
    pub(in crate::dxgk) fn look_at_fences(&self, device: &Device) {
        self.each_signalled_by(device, |fence| fence.look_on(device.adapter.id));
    }

    /// The native fence that a handle is for, if it allows to signal it, or to wait for it.
    pub(in crate::dxgk) fn logged_fence(&self, handle: u32, is_signal: bool) -> Option<Arc<Fence>> {
        let found = self.lookup().any_sync_object(handle).ok()?.cloned();
        let may = match is_signal {
            true => found.rights.signal,
            false => found.rights.wait,
        };

        match found.object {
            Object::Fence(fence) if may && fence.is_logged() => Some(fence),
            _ => None,
        }
    }

    /// A handle is about to be destroyed. While logs are traced, those that call a native fence so
    /// are read before.
    ///
    /// Context: may sleep, no locks held.
    #[inline(always)]
    pub(crate) fn look_at_logs(&self, handle: u32) {
        if trace::are_logs_traced() {
            self.look_at_logs_now(handle);
        }
    }

    #[cold]
    fn look_at_logs_now(&self, handle: u32) {
        let fence = self.logged_fence(handle, false);

        if let Some(adapter) = fence
            .as_ref()
            .and_then(|fence| fence.header.adapter.as_ref())
        {
            adapter.native_interrupts.look_at_logs();
        }
    }

    /// Does something with each fence that work of a device could signal. The lock is held for one
    /// handle at a time.
    fn each_signalled_by(&self, device: &Device, act: impl Fn(Arc<Fence>)) {
        let mut seen = 0;

        while let Some((index, fence)) = self.after(seen, |state, entry| {
            let fence = signalled_by(entry)?;
            let root = state.device_of(entry)?;

            matches!(
                state.find(root).map(|entry| &entry.item),
                Some(HandleTarget::Device(own)) if core::ptr::eq(&**own, device)
            )
            .then_some(fence)
        }) {
            seen = index;
            if let Some(fence) = fence {
                act(fence);
            }
        }
    }

    /// Whether a handle is that of a device of `adapter`.
    fn is_on(&self, device: u32, adapter: &Arc<Adapter>) -> bool {
        self.device(device)
            .is_ok_and(|device| Arc::ptr_eq(&device.adapter, adapter))
    }
}
