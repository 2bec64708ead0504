// SPDX-License-Identifier: GPL-2.0

//! Calls from a KMD to the OS part that are about the adapter as a whole (gpu.md section 10.3).
//!
//! A KMD gets them with StartDevice and keeps them as long as it wants. They lead to a record of
//! the adapter and neither to the adapter nor to the port, so that there is no circle.

use super::{
    class::{
        DeviceInterrupt,
        Passive, //
    },
    context_allocation::{
        ContextMemory,
        CreateContextAllocationArgs,
        MapContextAllocationArgs, //
    },
    feature::{
        OsInterface,
        FEATURES, //
    },
    interrupt_lock::InterruptLock,
    native_fence::{
        self,
        NativeFenceServices, //
    },
    types::{
        ContextAllocationId,
        KmdError,
        KmdResult, //
    }, //
};
use crate::platform::{
    self,
    Shared,
    ShortLock,
    Word32, //
};
use core::array;

/// What the callbacks of one adapter tell.
pub struct Record {
    /// The version of each feature that is in use; 0 if it is not enabled.
    versions: [Word32; FEATURES],
    /// Under which its interrupts are reported.
    interrupts: InterruptLock,
    /// Who has context allocations, while the adapter runs. It leads to the KMD, so that it is
    /// taken away at the end.
    contexts: ShortLock<Option<Shared<dyn ContextMemory>>>,
}

impl Record {
    /// Nothing is enabled; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Shared<Self>> {
        platform::shared(Self {
            versions: array::from_fn(|_| platform::word32(0)),
            interrupts: InterruptLock::new()?,
            contexts: platform::short_lock!(None, "ddi::Record::contexts")?,
        })
    }

    /// Who has context allocations from now on; `None` at the end.
    ///
    /// Context: may sleep, no locks held.
    pub fn set_context_memory(&self, memory: Option<Shared<dyn ContextMemory>>) {
        let before = core::mem::replace(&mut *self.contexts.lock(), memory);

        drop(before);
    }

    fn context_memory(&self) -> KmdResult<Shared<dyn ContextMemory>> {
        self.contexts.lock().clone().ok_or(KmdError::NotSupported)
    }

    /// A version of a feature was agreed upon, once, before the driver hears of it.
    pub fn enable(&self, feature: u32, version: u16) {
        // CAST: 32 bits fit a usize.
        if let Some(place) = self.versions.get(feature as usize) {
            platform::cmpxchg(place, 0, version.into());
        }
    }

    fn version(&self, feature: u32) -> Option<u16> {
        // CAST: as above.
        let place = self.versions.get(feature as usize)?;
        let version = platform::load32_acquire(place);

        u16::try_from(version).ok().filter(|version| *version != 0)
    }
}

/// The callbacks. Those about features may be called in class P, from the end of StartDevice on.
#[derive(Clone)]
pub struct Callbacks(Option<Shared<Record>>);

impl Callbacks {
    /// Those of a KMD that was not started.
    pub const NONE: Self = Self(None);

    /// Those that tell what is in `record`.
    pub fn of(record: &Shared<Record>) -> Self {
        Self(Some(record.clone()))
    }

    /// SynchronizeExecution: runs a routine at device interrupt level, where a KMD reports
    /// interrupts (NotifyInterrupt). Nothing of a KMD that was not started is run: `None`.
    ///
    /// Context: does not sleep; class D or P, or a thread of the KMD. Not inside of itself, nor of
    /// UpdateMonitoredValues.
    pub fn synchronize_execution<T>(
        &self,
        routine: impl FnOnce(&DeviceInterrupt) -> T,
    ) -> Option<T> {
        Some(self.0.as_ref()?.interrupts.hold(routine))
    }

    /// IsFeatureEnabled: the version of a feature that is in use; `None` if it is not enabled, or
    /// the driver was not asked about its features yet.
    pub fn is_feature_enabled(&self, feature: u32) -> Option<u16> {
        self.0.as_ref()?.version(feature)
    }

    /// QueryFeatureInterface: what the OS part has for a feature. It succeeds for the version that
    /// [`Callbacks::is_feature_enabled`] tells, and fails with NotSupported for every other one.
    pub fn query_feature_interface(&self, feature: u32, version: u16) -> KmdResult<OsInterface> {
        match self.is_feature_enabled(feature) {
            Some(enabled) if enabled == version => {}
            _ => return Err(KmdError::NotSupported),
        }
        Ok(match feature {
            native_fence::FEATURE => OsInterface::NativeFence(NativeFenceServices),
            _ => OsInterface::Plain,
        })
    }

    /// Who has context allocations, if the KMD may ask there.
    fn context_memory(&self, may_ask: bool) -> KmdResult<Shared<dyn ContextMemory>> {
        if !may_ask {
            return Err(KmdError::InvalidParameter);
        }
        self.0
            .as_ref()
            .ok_or(KmdError::NotSupported)?
            .context_memory()
    }

    /// CreateContextAllocation: memory for a context or a device of a client (MEM-82). NotSupported
    /// if the adapter has no paging node, or does not run.
    pub fn create_context_allocation(
        &self,
        class: &Passive,
        args: &CreateContextAllocationArgs,
    ) -> KmdResult<ContextAllocationId> {
        self.context_memory(class.may_allocate())?.create(args)
    }

    /// MapContextAllocation: shows it in the address space of its process (MEM-85). What is not for
    /// clients is refused (MEM-86).
    pub fn map_context_allocation(
        &self,
        class: &Passive,
        allocation: ContextAllocationId,
        args: &MapContextAllocationArgs,
    ) -> KmdResult<u64> {
        self.context_memory(class.may_allocate())?
            .map(allocation, args)
    }

    /// UpdateContextAllocation: brings these data, [`MAX_PRIVATE_DATA`] bytes at most, back to the
    /// KMD with BuildPagingBuffer, and returns when the paging node has run what that has built
    /// (MEM-87).
    ///
    /// [`MAX_PRIVATE_DATA`]: super::context_allocation::MAX_PRIVATE_DATA
    pub fn update_context_allocation(
        &self,
        class: &Passive,
        allocation: ContextAllocationId,
        private_data: &[u8],
    ) -> KmdResult {
        self.context_memory(class.may_update())?
            .update(allocation, private_data)
    }

    /// DestroyContextAllocation, at any time: it waits for nothing. Its memory goes when its
    /// contexts are off the engines (MEM-90).
    pub fn destroy_context_allocation(
        &self,
        _: &Passive,
        allocation: ContextAllocationId,
    ) -> KmdResult {
        self.context_memory(true)?.destroy(allocation)
    }
}
