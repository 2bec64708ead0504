// SPDX-License-Identifier: GPL-2.0

//! Who sees the value of a fence through a handle: the process, and its GPU addresses on one
//! adapter (FEN-1, FEN-6, FEN-12). A fence that a device opens is seen by the device's adapter.

use super::{
    fence::Fence,
    fence_binding::FenceAddresses,
    fence_mappings::FenceMappings,
    shown_fences::Sight, //
};
use crate::{
    ddi::object,
    dxgk::{
        adapter::Adapter,
        gpu_process::GpuProcess,
        vidmm::{
            address_space::AddressSpace,
            fence_page::FencePage, //
        }, //
    },
    error::DxgResult, //
};
use kernel::sync::Arc;

/// Who sees the value of a fence.
pub(crate) struct FenceViewer {
    /// The process.
    pub(crate) mappings: Arc<FenceMappings>,
    /// Where its GPU sees them, for a handle that belongs to a device.
    pub(in crate::dxgk) device: Option<ViewingDevice>,
}

/// A device through which a fence is seen.
pub(crate) struct ViewingDevice {
    pub(in crate::dxgk) adapter: Arc<Adapter>,
    /// The GPU addresses of the process there.
    pub(in crate::dxgk) gpu: Arc<GpuProcess>,
    /// The device as the KMD has it, for native fences.
    pub(in crate::dxgk) kmd: Arc<object::Device>,
}

impl FenceViewer {
    /// The process on its adapter, and its GPU addresses there, if it has any.
    fn gpu(&self) -> Option<(&Arc<GpuProcess>, &Arc<AddressSpace>)> {
        let gpu = &self.device.as_ref()?.gpu;

        Some((gpu, gpu.space.as_ref()?))
    }

    /// Shows the value of `fence`, if it may be seen: then this is ended by
    /// [`FenceViewer::close`]. Engines may store to it if it may be signalled, which is `stores`.
    /// If it is native there, `monitored` is its page of MonitoredValue.
    ///
    /// Context: a system call of the process, no locks held.
    pub(in crate::dxgk) fn open(
        &self,
        fence: &Arc<Fence>,
        stores: bool,
        monitored: Option<&FencePage>,
    ) -> DxgResult<Option<FenceAddresses>> {
        let id = fence.header.id();
        let storage = fence.storage();
        let Some(addr) = storage.open_in(id, &self.mappings)? else {
            return Ok(None);
        };
        let (process_gpu, monitored_gpu) = match self.gpu() {
            Some((gpu, space)) => gpu
                .fences
                .open(space, fence, stores, monitored)
                .inspect_err(|_| storage.close_in(id, &self.mappings))?,
            None => (0, 0),
        };

        Ok(Some(FenceAddresses {
            // CAST: an address fits 64 bits.
            user_cpu: addr as u64,
            process_gpu,
            monitored_gpu,
        }))
    }

    /// Ends what [`FenceViewer::open`] began.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn close(&self, fence: &Arc<Fence>, stores: bool, is_native: bool) {
        let sight = Sight { stores, is_native };
        let id = fence.header.id();

        if let Some((gpu, space)) = self.gpu() {
            gpu.fences.close(space, fence, sight);
        }
        fence.storage().close_in(id, &self.mappings);
    }
}
