// SPDX-License-Identifier: GPL-2.0

//! A HW queue: it takes the work of a context of HW queues (GPU-8). Its *progress fence* shows how
//! far it is, and nobody else signals it (FEN-125 to FEN-127). It is a native fence where there are
//! such. Its process may fill it instead, by a doorbell (`doorbell/`).

use super::{
    context::Context,
    device::Device,
    handle::open_sync_object::OpenSyncObject,
    object::Object,
    sched::{
        kmd_queue::KmdQueue,
        queue::{
            self,
            Queue, //
        }, //
    },
    stats::{
        Counted,
        CountedOn,
        ObjectId,
        ObjectKind,
        Stats,
        OBJECTS, //
    },
    sync::{
        fence::Fence,
        native_log_pair::LogDetail,
        native_logs::{
            LiveLogs,
            QueueLogs, //
        }, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object,
        types::{
            CreateHwQueueArgs,
            HwQueueId, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// What a HW queue is made of, after all checks.
pub(crate) struct Description {
    /// Its work may take for ever.
    pub(crate) disable_gpu_timeout: bool,
    /// GPU virtual address of the value of its progress fence.
    pub(crate) progress_fence: u64,
    /// The part of the client's private data that the KMD reads.
    pub(crate) private_data: KVVec<u8>,
    /// The handle of its progress fence.
    pub(crate) progress_handle: u32,
    /// Its process fills it: nothing is submitted (GPU-31).
    pub(crate) user_mode_submission: bool,
}

/// A HW queue of a context.
pub(crate) struct HwQueue {
    identified: ObjectId,
    /// Takes its work.
    pub(crate) queue: Arc<Queue>,
    /// The handle of its progress fence, which goes with it.
    pub(crate) progress_handle: u32,
    /// Its progress fence.
    pub(in crate::dxgk) progress: Arc<Fence>,
    has_logs: bool,
    context: Counted<Arc<Context>, OBJECTS>,
}

impl CountedOn for HwQueue {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.context.stats()
    }
}

impl HwQueue {
    /// A new queue on `context`, which keeps its progress fence open by `progress`.
    /// INVALID_PARAMETER if that is a context of packets.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        context: &Arc<Context>,
        description: &Description,
        progress: OpenSyncObject,
    ) -> DxgResult<Arc<Self>> {
        let kmd = context.of_hw_queues().ok_or(Status::INVALID_PARAMETER)?;

        context.device().check()?;
        if description.user_mode_submission {
            context.adapter().check_user_mode_submission(context.node)?;
        }

        let Object::Fence(fence) = progress.object() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let fence = fence.clone();
        let identified = ObjectId::new(ObjectKind::HwQueue);
        let id = identified.id;
        let own = queue::Description {
            id,
            node: context.node,
            is_hw: true,
            is_filled_by_process: description.user_mode_submission,
            disable_gpu_timeout: context.disable_gpu_timeout || description.disable_gpu_timeout,
            context: context.state().clone(),
            suspension: None,
        };
        // GPU-71.
        let has_logs = description.user_mode_submission && context.adapter().has_native_fences();
        let own_node = context.node;
        let mut number = 0;
        let queue = Queue::new(context.device(), own, |callbacks| {
            let create = CreateHwQueueArgs {
                id: HwQueueId(id),
                disable_gpu_timeout: description.disable_gpu_timeout,
                user_mode_submission: description.user_mode_submission,
                progress_fence: description.progress_fence,
                native_progress_fence: fence.native().is_some(),
                private_data: &description.private_data,
                callbacks,
            };

            let kmd_queue = object::HwQueue::create(kmd, &Passive::here(), &create)?;
            let logs = match has_logs {
                true => Some(LiveLogs::new(
                    context.device(),
                    own_node,
                    id,
                    &kmd_queue,
                    &fence,
                )?),
                false => None,
            };

            number = logs.as_ref().map_or(0, LiveLogs::number);
            Ok(KmdQueue::HwQueue {
                _log_pages: logs.as_ref().map(|logs| logs.shared().clone()),
                logs,
                kmd: kmd_queue,
                _progress: progress,
                context: kmd.clone(),
            })
        })?;

        // Nothing of it has run.
        queue.log_number.store(number, Relaxed);
        // Without memory it is dropped, which ends its queue.
        Ok(Arc::new(
            Self {
                identified,
                queue,
                progress_handle: description.progress_handle,
                progress: fence,
                has_logs,
                context: Counted::new(context.clone()),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What traces and debugfs call it.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// Where its logs are now. INVALID_PARAMETER if it has none: what goes through the kernel is
    /// not logged (GPU-71). DEVICE_REMOVED if it will not run any more.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn log_detail(&self) -> DxgResult<LogDetail> {
        if !self.has_logs {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(self.logs().ok_or(Status::DEVICE_REMOVED)?.detail())
    }

    /// Its logs, if it has any and may still run.
    pub(in crate::dxgk) fn logs(&self) -> Option<Arc<QueueLogs>> {
        self.queue.kmd_now()?.logs().cloned()
    }

    /// The context that it was made on.
    pub(in crate::dxgk) fn context(&self) -> &Context {
        &self.context
    }

    /// The device of its context.
    pub(crate) fn device(&self) -> &Arc<Device> {
        self.context.device()
    }

    /// Its handle is about to be destroyed, and everything below it before that. A doorbell must
    /// not take the ring away that the queue still goes through.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn begin_to_leave(&self) {
        if self.queue.is_filled_by_process {
            self.queue.leave();
        }
    }

    /// Called when the handle is gone, although a call in progress may use this a little longer.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(&self) {
        self.queue.leave();
    }
}

impl Drop for HwQueue {
    /// It may never have had a handle.
    fn drop(&mut self) {
        self.leave();
    }
}
