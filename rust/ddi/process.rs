// SPDX-License-Identifier: GPL-2.0

//! A process, and what a KMD may call about it.

use super::{
    class::Dispatch,
    types::{
        KmdError,
        KmdResult,
        ProcessId, //
    }, //
};
use crate::platform::{
    self,
    Shared, //
};

/// What CreateProcess gets (`DXGKARG_CREATEPROCESS`).
#[derive(Clone, Copy)]
pub struct CreateProcessArgs<'a> {
    /// Its name.
    pub id: ProcessId,
    /// `VirtualMachineProcess`: it is one of a guest, for which the OS part of the host has it
    /// made.
    pub is_of_virtual_machine: bool,
    /// `SystemProcess`: it is the paging process of the adapter, which is nobody's.
    pub is_system: bool,
    /// What the KMD may call about it, until DestroyProcess.
    pub callbacks: &'a Shared<dyn ProcessCallbacks>,
}

/// Calls from a KMD to the OS part about one process.
pub trait ProcessCallbacks: Send + Sync {
    /// SignalEvent without `CpuEventObject`: an event of the process is told once, by the handle
    /// that the process has for it. InvalidParameter for the handle 0, and for a process that is
    /// not one of a virtual machine (CPU-25): here a KMD signals what it got with CreateCpuEvent.
    /// InvalidHandle if the process has no such event. As [`signal_event`].
    ///
    /// [`signal_event`]: super::cpu_event::CpuEventCallbacks::signal_event
    fn signal_handle(&self, class: &Dispatch, handle: u64) -> KmdResult;
}

/// A process that is not one of a virtual machine.
struct LocalProcess;

impl ProcessCallbacks for LocalProcess {
    fn signal_handle(&self, _: &Dispatch, _: u64) -> KmdResult {
        Err(KmdError::InvalidParameter)
    }
}

/// The callbacks of a process that is not one of a virtual machine; `None` if there is no memory.
/// May sleep.
pub fn local_process() -> Option<Shared<dyn ProcessCallbacks>> {
    let callbacks: Shared<dyn ProcessCallbacks> = platform::shared(LocalProcess)?;

    Some(callbacks)
}
