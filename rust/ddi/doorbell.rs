// SPDX-License-Identifier: GPL-2.0

//! Doorbells: how a process tells an engine of work without the kernel (GPU-18 to GPU-32).
//!
//! A doorbell belongs to a HW queue with a ring, and stays while it is connected to a physical one,
//! disconnected, and connected to another. A KMD may have fewer physical doorbells than queues:
//! then it takes one away from another queue, by [`DoorbellCallbacks::disconnect`].

use super::{
    class::Passive,
    types::DoorbellId, //
};
use crate::platform::{
    DoorbellPage,
    Shared, //
};

/// What CreateDoorbell gets (`DXGKARG_CREATEDOORBELL`).
#[derive(Clone, Copy)]
pub struct CreateDoorbellArgs<'a> {
    /// Its name.
    pub id: DoorbellId,
    /// GPU virtual address of the ring buffer.
    pub ring: u64,
    /// Bytes of the ring buffer.
    pub ring_size: u64,
    /// GPU virtual address of the ring buffer control.
    pub control: u64,
    /// Bytes of the ring buffer control.
    pub control_size: u64,
    /// `ResizeRingBufferOperation`: the queue had a doorbell with another ring before.
    pub resizes_ring: bool,
    /// `RequireSecondaryCpuVA`: the process wants to see the second page of the doorbell.
    pub wants_secondary: bool,
    /// The client's data.
    pub private_data: &'a [u8],
    /// What the KMD tells about it.
    pub callbacks: &'a Shared<dyn DoorbellCallbacks>,
}

/// What ConnectDoorbell has done (`DXGKARG_CONNECTDOORBELL`).
pub struct Connected {
    /// The physical doorbell, which the process may write to until it is disconnected.
    pub page: Shared<DoorbellPage>,
    /// The second page, if it has one.
    pub secondary: Option<Shared<DoorbellPage>>,
    /// `CONNECTED_NOTIFY_KMD`: the process calls NotifyWorkSubmission whenever it has rung.
    pub notify: bool,
    /// The GPU does not see that somebody writes to the page. So DoorbellRung tells it of the first
    /// access after the connection, and after each [`DoorbellCallbacks::trap`] (GPU-32). Not one of
    /// the WDK: no physical doorbell is like this.
    pub traps: bool,
}

/// Why DoorbellRung is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// The process accesses the physical doorbell, which traps.
    Accessed,
    /// It was connected, and the process may have written to the ring before.
    Connected,
}

/// Why a doorbell is disconnected (`D3DDDI_DOORBELLSTATUS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// The process may connect it again.
    Retry,
    /// It may not: the queue will not run any more.
    Abort,
}

/// Calls from a KMD to the OS part about one doorbell. The KMD keeps it until DestroyDoorbell has
/// returned, and calls nothing of it from there on.
///
/// Unlike those of a queue these change page tables of processes, and so may sleep.
pub trait DoorbellCallbacks: Send + Sync {
    /// DxgkCbDisconnectDoorbell: on return no process writes to the physical doorbell any more, and
    /// the status says why. What was rung before is in the ring, where the KMD has to look once
    /// more (GPU-23). Nothing happens if it is disconnected.
    ///
    /// No lock of the KMD that ConnectDoorbell or DoorbellRung of the same doorbell would need may
    /// be held.
    fn disconnect(&self, class: &Passive, why: Disconnect);

    /// The next access is told by DoorbellRung again. What was rung before is in the ring, where
    /// the KMD has to look once more. For a physical doorbell that traps.
    fn trap(&self, class: &Passive);
}
