// SPDX-License-Identifier: GPL-2.0

//! Native fences: the GPU waits for them by itself, and interrupts only when somebody on the CPU
//! waits (fences.md section 3).
//!
//! A fence has two words in memory of the OS part. CurrentValue is the value. MonitoredValue is one
//! less than the lowest value that a CPU waits for, or the highest value if none does. A KMD keeps
//! neither address: it gets a reference with each call that is about them (FEN-107).

use super::types::{
    NativeFenceCookie,
    NativeFenceId, //
};
use crate::platform::{
    Shared,
    Word64, //
};

/// Whether a driver has them (`DXGK_FEATURE_NATIVE_FENCE`).
pub const FEATURE: u32 = 37;

/// Bytes of a client's data that go to the KMD and back (`D3DDDI_NATIVE_FENCE_PDD_SIZE`).
pub const PRIVATE_DATA_SIZE: usize = 64;

/// A client's data: what it wrote, and what the KMD makes of it.
pub type PrivateData = [u8; PRIVATE_DATA_SIZE];

/// What CreateNativeFence gets (`DXGKARG_CREATENATIVEFENCE`). On this adapter there is one of them
/// for a fence, however many have it open (FEN-121).
#[derive(Clone, Copy)]
pub struct CreateNativeFenceArgs<'a> {
    /// Its name.
    pub id: NativeFenceId,
    /// What its interrupt tells. The KMD has it until DestroyNativeFence.
    pub callbacks: &'a Shared<dyn NativeFenceCallbacks>,
}

/// What OpenNativeFence gets (`DXGKARG_OPENNATIVEFENCE`). All devices of a process see a fence at
/// the same addresses (FEN-120).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenNativeFenceArgs {
    /// GPU virtual address of CurrentValue in the process.
    pub current_value: u64,
    /// GPU virtual address of MonitoredValue in the process, which may only read it.
    pub monitored_value: u64,
}

/// One fence of UpdateMonitoredValues or UpdateCurrentValuesFromCpu.
#[derive(Clone, Copy)]
pub struct FenceUpdate<'a> {
    /// Which one.
    pub fence: NativeFenceCookie,
    /// What the word is to be, or is already.
    pub value: u64,
    /// The word that it is for, in the mapping of the kernel.
    pub word: &'a Word64,
}

/// What UpdateCurrentValuesFromCpu does with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrentValueUpdate {
    /// Stores it.
    Store,
    /// `NotificationOnly`: nothing, because it is stored already (FEN-103).
    NotificationOnly,
    /// `AlwaysSignaled`: stores it, which is the highest one. From then on waits of the GPU pass,
    /// and its signals store nothing (FEN-104).
    AlwaysSignaled,
}

/// Calls from a KMD to the OS part about one native fence.
///
/// They may be called in any context class and under locks of the KMD. They obey the interrupt
/// rule: they touch atomics and queue work, nothing else.
pub trait NativeFenceCallbacks: Send + Sync {
    /// NATIVE_FENCE_SIGNALED with this fence in the array: an engine has stored a value to
    /// CurrentValue that is above MonitoredValue (FEN-91). The value, and what was stored before
    /// it, is visible to everybody.
    fn signaled(&self);
}
