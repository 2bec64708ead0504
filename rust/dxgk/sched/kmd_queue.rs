// SPDX-License-Identifier: GPL-2.0

//! What the KMD has of a queue.

use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        object,
        queue::Submission,
        types::KmdResult, //
    },
    dxgk::{
        handle::open_sync_object::OpenSyncObject,
        sync::native_logs::{
            LiveLogs,
            QueueLogs, //
        },
        vidmm::contexts::SpaceContext, //
    }, //
};
use kernel::sync::Arc;

/// A context of packets or a HW queue, as the KMD has it. Dropping it destroys that: then nothing
/// of it runs any more.
///
/// Context of the drop: may sleep, no locks held.
pub(in crate::dxgk) enum KmdQueue {
    /// A context of packets.
    Context(SpaceContext),
    /// A HW queue, its logs, its progress fence, to which the KMD stores until it has destroyed the
    /// queue, and its context.
    HwQueue {
        /// First of all nobody reads them any more.
        logs: Option<LiveLogs>,
        kmd: Arc<object::HwQueue>,
        /// Engines write to them until then.
        _log_pages: Option<Arc<QueueLogs>>,
        _progress: OpenSyncObject,
        context: Arc<SpaceContext>,
    },
}

impl KmdQueue {
    /// Hands commands to the KMD; DeviceRemoved if the adapter is removed.
    ///
    /// Context: may sleep, no locks held; waits for nobody.
    pub(super) fn submit(&self, submission: &Submission) -> KmdResult {
        Dispatch::below(&mut Passive::here(), |class| match self {
            Self::Context(context) => context.submit(class, submission),
            Self::HwQueue { kmd, .. } => kmd.submit(class, submission),
        })
    }

    /// The HW queue, if it is one.
    pub(in crate::dxgk) fn hw_queue(&self) -> Option<&Arc<object::HwQueue>> {
        match self {
            Self::Context(_) => None,
            Self::HwQueue { kmd, .. } => Some(kmd),
        }
    }

    /// Its logs, if it has any.
    pub(in crate::dxgk) fn logs(&self) -> Option<&Arc<QueueLogs>> {
        match self {
            Self::Context(_) | Self::HwQueue { logs: None, .. } => None,
            Self::HwQueue {
                logs: Some(logs), ..
            } => Some(logs.shared()),
        }
    }

    /// The context whose work it takes.
    pub(in crate::dxgk) fn owner(&self) -> &object::Context {
        match self {
            Self::Context(context) => context,
            Self::HwQueue { context, .. } => context,
        }
    }

    /// The context, if it is one.
    pub(super) fn context(&self) -> Option<&object::Context> {
        match self {
            Self::Context(context) => Some(context),
            Self::HwQueue { .. } => None,
        }
    }
}
