// SPDX-License-Identifier: GPL-2.0

//! A context or a device of a client, for which its KMD may make allocations.

use kernel::sync::Arc;

/// Who has these allocations.
pub(super) trait MadeFor: Send + Sync {
    /// The KMD has destroyed the context or device with this number, so that nothing of it is on an
    /// engine (MEM-90).
    ///
    /// Context: may sleep, no locks held.
    fn end_user(&self, id: u64);
}

/// The right to make some. It is dropped after what they are for.
pub(in crate::dxgk) struct ContextUser {
    all: Arc<dyn MadeFor>,
    id: u64,
}

impl ContextUser {
    /// For the context or device with this number.
    pub(super) fn new(all: Arc<dyn MadeFor>, id: u64) -> Self {
        Self { all, id }
    }
}

impl Drop for ContextUser {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.all.end_user(self.id);
    }
}
