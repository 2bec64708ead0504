// SPDX-License-Identifier: GPL-2.0

//! A value of a fence as a sync file, which programs and other drivers wait for (FEN-160 to
//! FEN-166).
//!
//! The fence of the sync file belongs to the queue that has the signal, or has signalled. From it
//! the monitored fence is found, as long as somebody else keeps that: a sync file may be attached
//! to an object, so it must keep none.

use crate::dxgk::{
    device::Device,
    info::weak::WeakTarget,
    object::{
        Object,
        Strong, //
    },
    quota::holder::{
        Amounts,
        Claim,
        Holder, //
    },
    sched::{
        export::Wanted,
        export_plan::ExportPlan, //
    },
    sync::fence::Fence, //
};
use crate::{
    error::DxgResult,
    logic::handle,
    sys::{
        alloc::pin_arc,
        dma_fence::{
            own::{
                Owner,
                Unsignalled, //
            },
            DmaFence, //
        },
        file::{
            object_file::PendingFd,
            sync_file, //
        },
        work, //
    }, //
};
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// What the fence of a sync file of this module stands for.
#[pin_data]
pub(crate) struct ExportedPoint {
    target: Arc<WeakTarget<Object>>,
    /// The value that the fence has or will have.
    pub(crate) value: u64,
    /// The file, and what is behind it.
    _claim: Claim,
    /// Drops it, because the last reference to a fence may go with interrupts off.
    #[pin]
    release: Work<ExportedPoint>,
}

impl_has_work! {
    impl HasWork<Self> for ExportedPoint { self.release }
}

impl WorkItem for ExportedPoint {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        drop(this);
    }
}

impl Owner for ExportedPoint {
    fn released(this: Arc<Self>) {
        if let Some(worker) = work::worker() {
            // A fence is released once, so it cannot be queued already.
            let _queued = worker.enqueue::<_, 0>(this).is_ok();
        }
    }
}

impl ExportedPoint {
    /// The one behind the fence of a sync file, if that is of this module.
    pub(crate) fn of(fence: &DmaFence) -> Option<Arc<Self>> {
        fence.owner()
    }

    /// The monitored fence, unless it has retired.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn strong(&self) -> Option<Strong> {
        Strong::of_weak(&self.target)
    }
}

/// A descriptor of a sync file that signals when `fence` has `value`. NOT_SUPPORTED if users could
/// delay that. It is charged to `holder` as a file.
///
/// Context: a system call, no locks held.
pub(crate) fn export(
    device: &Device,
    holder: &Arc<Holder>,
    fence: &Arc<Fence>,
    value: u64,
) -> DxgResult<PendingFd> {
    let wanted = Wanted {
        fence: fence.header.id(),
        value,
    };
    let holds = || fence.satisfies(value);
    // Without making anything, and without an effect on waits before it.
    let plan = ExportPlan::new(device, wanted, &holds)?;
    let claim = holder.charge(Amounts {
        files: 1,
        ..Amounts::default()
    })?;
    let target = Object::Fence(fence.clone()).weak_target()?;
    let exported = pin_arc(
        pin_init!(ExportedPoint {
            target,
            value,
            _claim: claim,
            release <- new_work!("ExportedPoint::release"),
        }),
        GFP_KERNEL_ACCOUNT,
    )?;
    let point = Unsignalled::new(exported)?;
    let fd = PendingFd::of_file(sync_file::new(point.fence())?, handle::LAST_FD, true)?;

    plan.carry_out(point)?;
    Ok(fd)
}
