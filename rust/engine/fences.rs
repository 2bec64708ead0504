// SPDX-License-Identifier: GPL-2.0

//! What the engine wants to know of native fences (fences.md section 3, gpu.md section 5.2).
//!
//! A fence has two words, each in a page that page tables lead to: CurrentValue, which the queues
//! of its processes store and wait for, and MonitoredValue, which says from which value on somebody
//! on the CPU waits. The engine finds a fence by where the process of a queue sees these words.

use super::{
    fault::PageFault,
    memory::Memory,
    operation::FenceValue,
    space::Space, //
};

/// Names a native fence on its adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FenceIndex(pub u32);

/// A native fence, as a process has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFence<H> {
    /// Its name.
    pub index: FenceIndex,
    /// GPU virtual address of MonitoredValue in the process.
    pub monitored_value: u64,
    /// Leads to it, so that it is looked up once for a packet.
    pub handle: H,
}

/// The native fences of an adapter. An adapter without any says nothing else than this does.
///
/// All of these are called inside of a step. They must not sleep.
pub trait Fences {
    /// What leads to a fence.
    type Handle;

    /// The fence whose CurrentValue the process with this PASID sees at this address (GPU-58).
    fn by_current_value(&self, _process: u16, _va: u64) -> Option<NativeFence<Self::Handle>> {
        None
    }

    /// The same for MonitoredValue.
    fn by_monitored_value(&self, _process: u16, _va: u64) -> Option<NativeFence<Self::Handle>> {
        None
    }

    /// MonitoredValue as the CMP has it; `None` if that is what is in memory (GPU-57).
    fn monitored_value(&self, _fence: &NativeFence<Self::Handle>) -> Option<u64> {
        None
    }

    /// Whether waits for it pass and signals of it store nothing (FEN-104). From before
    /// CurrentValue becomes the highest value on.
    fn is_always_signaled(&self, _fence: &NativeFence<Self::Handle>) -> bool {
        false
    }

    /// CurrentValue was stored, and all processors see that: the queues that wait for the fence
    /// have to look again (GPU-53).
    fn stored(&self, _fence: &NativeFence<Self::Handle>) {}
}

/// No native fence.
impl Fences for () {
    type Handle = ();
}

/// Whether a wait for a native fence is over.
pub(super) fn is_satisfied<M: Memory, F: Fences>(
    space: &mut Space<'_, M>,
    fences: &F,
    fence: &NativeFence<F::Handle>,
    wait: FenceValue,
) -> Result<bool, PageFault> {
    Ok(fences.is_always_signaled(fence) || space.load64(wait.va)? >= wait.value)
}
