// SPDX-License-Identifier: GPL-2.0

//! Which save areas a software adapter keeps, and until when (MEM-82 to MEM-90).

use super::{
    adapter::Adapter,
    config::SaveAreaKind,
    context::Context,
    save_area::{
        self,
        SaveArea, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        context_allocation::{
            flags,
            CreateContextAllocationArgs,
            MapContextAllocationArgs, //
        },
        paging::{
            PageSize,
            RootPageTable, //
        },
        types::{
            AllocationCookie,
            ContextId,
            CreateContextArgs,
            CreateDeviceArgs,
            DeviceCookie,
            DeviceId,
            KmdError,
            KmdResult, //
        }, //
    },
    platform::Shared,
};

/// No context, or no device.
const NO_CONTEXT: ContextId = ContextId(0);
const NO_DEVICE: DeviceId = DeviceId(0);

impl Adapter {
    /// CreateDevice. Its contexts may have one save area in common.
    pub(super) fn create_device(
        &self,
        class: &Passive,
        args: &CreateDeviceArgs,
    ) -> KmdResult<DeviceCookie> {
        let area = match self.config.save_areas.of_devices && !args.is_system {
            true => self.new_save_area(class, NO_CONTEXT, args.id)?,
            false => None,
        };
        let made = self.cpu_events.create_device(args.process, area.clone());

        if made.is_err() {
            self.end_save_area(class, area.as_deref());
        }
        made
    }

    /// DestroyDevice. Without such a device nothing happens.
    pub(super) fn destroy_device(&self, class: &Passive, device: DeviceCookie) {
        let area = self.cpu_events.destroy_device(device);

        self.leave_save_area(class, area.as_deref());
    }

    /// What a context of a client is saved to, if the adapter keeps it in memory of its own.
    pub(super) fn save_area_of(
        &self,
        class: &Passive,
        device: DeviceCookie,
        args: &CreateContextArgs<'_>,
    ) -> KmdResult<Option<Shared<SaveArea>>> {
        if args.is_system {
            return Ok(None);
        }
        match self.config.save_areas.of_devices {
            true => Ok(self.cpu_events.save_area_of(device)),
            false => self.new_save_area(class, args.id, NO_DEVICE),
        }
    }

    /// A save area for this context, or for all of this device.
    fn new_save_area(
        &self,
        class: &Passive,
        context: ContextId,
        device: DeviceId,
    ) -> KmdResult<Option<Shared<SaveArea>>> {
        let areas = self.config.save_areas;
        let is_visible = areas.kind == SaveAreaKind::Visible;

        if areas.kind == SaveAreaKind::None {
            return Ok(None);
        }

        let local = self.ids.local.filter(|_| !areas.in_system_memory);
        let segment = local.unwrap_or(self.ids.aperture);
        let set = 1_u32.wrapping_shl(segment);
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        let allocation = self.callbacks.create_context_allocation(
            class,
            &CreateContextAllocationArgs {
                context,
                device,
                flags: flags::ACCESSED_PHYSICALLY
                    | flags::PROTECTED
                    | flag(flags::USER_VISIBLE, is_visible)
                    | flag(flags::SHARED_ACROSS_CONTEXTS, areas.of_devices),
                size: save_area::SIZE,
                // CAST: 64 KiB.
                alignment: save_area::SIZE as u32,
                supported_segments: set,
                eviction_segments: set,
                preferred_segment: segment,
                // One of both is 0.
                driver: AllocationCookie(context.0 | device.0),
            },
        )?;
        let map = MapContextAllocationArgs {
            pages: save_area::SIZE / PageSize::Kib4.bytes(),
            ..MapContextAllocationArgs::default()
        };
        let mapped = match is_visible {
            true => self
                .callbacks
                .map_context_allocation(class, allocation, &map)
                .map(drop),
            false => Ok(()),
        };
        let area = SaveArea::new(allocation);

        match (mapped, area) {
            (Ok(()), Some(area)) => Ok(Some(area)),
            (mapped, _) => {
                // It is there, so that this cannot fail.
                let _gone = self.callbacks.destroy_context_allocation(class, allocation);

                Err(mapped.err().unwrap_or(KmdError::NoMemory))
            }
        }
    }

    /// Nobody is saved there any more.
    fn end_save_area(&self, class: &Passive, area: Option<&SaveArea>) {
        if let Some(area) = area.filter(|area| area.end()) {
            // After the end of the adapter it is gone already.
            let _gone = self
                .callbacks
                .destroy_context_allocation(class, area.allocation);
        }
    }

    /// What it is for is gone, unless it is to be left behind.
    fn leave_save_area(&self, class: &Passive, area: Option<&SaveArea>) {
        if !self.config.save_areas.are_left {
            self.end_save_area(class, area);
        }
    }

    /// A context is gone, or was never made. What it has in common with others stays.
    pub(super) fn leave_save_area_of(&self, class: &Passive, area: Option<&SaveArea>) {
        if !self.config.save_areas.of_devices {
            self.leave_save_area(class, area);
        }
    }

    /// Ends all save areas that contexts have now; they go on without (MEM-90).
    pub(super) fn end_save_areas(&self, class: &Passive) {
        self.each_context(|context| self.end_save_area(class, context.save_area.as_deref()));
    }

    /// Its save area says where its page tables begin.
    pub(super) fn update_save_area(
        &self,
        class: &Passive,
        context: &Context,
        root: &RootPageTable,
    ) {
        if let Some(area) = &context.save_area {
            let data = save_area::update_of(area.next_update(), root.address, root.entries);

            // It fails if the adapter does, which is told to the client elsewhere, or if the area
            // is gone.
            let _failed = self
                .callbacks
                .update_context_allocation(class, area.allocation, &data);
        }
    }
}
