// SPDX-License-Identifier: MIT OR Apache-2.0
//! The current value of a monitored fence, which the module maps into this process.

use core::ptr::NonNull;
use core::sync::atomic::{fence, AtomicU64, Ordering};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("fence values are read with one 64-bit load, which needs a 64-bit target");

/// The mapped word. Read-only for this process; the module writes it with single 64-bit stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FenceValue(NonNull<AtomicU64>);

// SAFETY: the word is only read, atomically, and the mapping belongs to the whole process.
unsafe impl Send for FenceValue {}
// SAFETY: as above.
unsafe impl Sync for FenceValue {}

impl FenceValue {
    /// The value at an address that the module returned; `None` for 0.
    ///
    /// # Safety
    ///
    /// A fence value is mapped there, and stays mapped for as long as this is used.
    pub(crate) unsafe fn at(address: u64) -> Option<Self> {
        NonNull::new(address as usize as *mut AtomicU64).map(Self)
    }

    /// Loads the value with acquire ordering: a reader that sees the value of a signal also sees
    /// what the signaller wrote before.
    pub(crate) fn load(self) -> u64 {
        // SAFETY: mapped as long as this is used; a relaxed 64-bit load is allowed on read-only
        // memory on every 64-bit target, a load with another ordering is not guaranteed to be.
        let value = unsafe { self.0.as_ref() }.load(Ordering::Relaxed);
        // ORDERING: pairs with the release of the module's store of the signalled value.
        fence(Ordering::Acquire);
        value
    }

    /// Where the value is mapped.
    pub(crate) fn address(self) -> *const u64 {
        self.0.as_ptr().cast_const().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_stored() {
        let word = AtomicU64::new(u64::MAX);
        // SAFETY: `word` outlives the value.
        let value = unsafe { FenceValue::at(word.as_ptr() as u64) }.unwrap();
        assert_eq!(value.load(), u64::MAX);
        word.store(7, Ordering::Release);
        assert_eq!(value.load(), 7);
        assert_eq!(value.address(), word.as_ptr().cast_const());
    }

    #[test]
    fn zero_is_no_mapping() {
        // SAFETY: never dereferenced.
        assert!(unsafe { FenceValue::at(0) }.is_none());
    }
}
