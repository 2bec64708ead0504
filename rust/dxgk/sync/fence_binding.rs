// SPDX-License-Identifier: GPL-2.0

//! A fence on one adapter: where its values are, and who sees them there.
//!
//! CurrentValue is one word for all adapters (FEN-136). For a *monitored* fence, which this is, an
//! adapter has nothing else: what it signals goes through the OS part, which releases the waiters.
//! A *native* fence is a binding of another kind (FEN-141, FEN-142). It adds a MonitoredValue that
//! the adapter compares with, the addresses of both values in its address spaces, and the cookie of
//! its KMD. Waits, signals, sharing and opens use what is here, whatever the kind.
//!
//! | who | address of CurrentValue | MonitoredValue |
//! |---|---|---|
//! | user CPU | [`FenceAddresses::user_cpu`] | none (FEN-57) |
//! | kernel CPU | [`FenceBinding::current`] | native only |
//! | GPU, in the process | [`FenceAddresses::process_gpu`] | native only |
//! | GPU, in the system process | native only | native only |

use super::{
    fence_mappings::FenceMappings,
    fence_storage::FenceStorage, //
};
use crate::{
    error::DxgResult,
    platform::Word64, //
};
use kernel::sync::Arc;

/// Where a process and its GPU see CurrentValue; 0 where they do not.
#[derive(Clone, Copy, Default)]
pub(crate) struct FenceAddresses {
    /// In the memory of the process, read-only.
    pub(crate) user_cpu: u64,
    /// In the GPU address space of the process.
    pub(crate) process_gpu: u64,
}

/// A fence on one adapter.
pub(crate) struct FenceBinding {
    current: FenceStorage,
}

impl FenceBinding {
    /// A monitored fence whose value is in `current`.
    pub(crate) fn monitored(current: FenceStorage) -> Self {
        Self { current }
    }

    /// CurrentValue, for the kernel.
    pub(crate) fn current(&self) -> &Word64 {
        self.current.word()
    }

    /// Shows CurrentValue of the fence `id` to the process of `mappings`, if that may see it: then
    /// this is ended by [`FenceBinding::close_in`].
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_in(
        &self,
        id: u64,
        mappings: &Arc<FenceMappings>,
    ) -> DxgResult<Option<FenceAddresses>> {
        Ok(self.current.open_in(id, mappings)?.map(|addr| {
            FenceAddresses {
                // CAST: an address fits 64 bits.
                user_cpu: addr as u64,
                // A monitored fence has none before there are GPU address spaces.
                process_gpu: 0,
            }
        }))
    }

    /// Ends what [`FenceBinding::open_in`] began.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close_in(&self, id: u64, mappings: &FenceMappings) {
        self.current.close_in(id, mappings);
    }
}
