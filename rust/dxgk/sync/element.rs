// SPDX-License-Identifier: GPL-2.0

//! What a wait waits for.

use super::fence::Fence;
use kernel::sync::Arc;

/// One (object, value) of a wait.
#[derive(Clone)]
pub(crate) struct Element {
    /// What is waited for.
    pub(crate) fence: Arc<Fence>,
    /// The value to wait for.
    pub(crate) value: u64,
}

impl Element {
    /// Whether the fence has reached the value now.
    pub(in crate::dxgk) fn holds(&self) -> bool {
        self.fence.satisfies(self.value)
    }
}
