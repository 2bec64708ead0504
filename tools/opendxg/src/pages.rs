// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole pages of this process, to make allocations of.

use core::ops::Deref;
use core::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags};

use crate::error::OrOs;
use crate::shared_bytes::SharedBytesMut;
use crate::{Error, Result};

/// Page-aligned zeroed memory of this process. Unmapped when dropped; an allocation made of it
/// keeps the memory itself.
#[derive(Debug)]
pub struct Pages(SharedBytesMut);

impl Pages {
    /// Maps fresh private memory.
    pub fn new(len: usize) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let address = unsafe { rustix::mm::mmap_anonymous(null_mut(), len, protection, flags) };
        let address = address.or_os()?;
        // SAFETY: mapped until the drop, and given out as shared bytes only.
        let bytes = unsafe { SharedBytesMut::at(address.cast(), len) };
        bytes
            .map(Self)
            .ok_or(Error::Protocol("memory at address 0"))
    }
}

impl Deref for Pages {
    type Target = SharedBytesMut;

    fn deref(&self) -> &SharedBytesMut {
        &self.0
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, of which nobody has a reference any more.
        let _ = unsafe { rustix::mm::munmap(self.0.as_mut_ptr().cast(), self.0.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_and_aligned() {
        let pages = Pages::new(8192).unwrap();
        assert_eq!(pages.as_ptr() as usize % 4096, 0);
        assert_eq!(pages.to_vec(), vec![0; 8192]);
        pages.write(4095, &[1, 2]);
        assert_eq!(pages.to_vec()[4094..4098], [0, 1, 2, 0]);
    }
}
