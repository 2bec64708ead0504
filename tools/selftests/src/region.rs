// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapped memory of any size, as the bytes that several processes or the driver see.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::os::fd::AsFd;

use rustix::mm::{mmap, mmap_anonymous, munmap, MapFlags, ProtFlags};

use crate::TestResult;

/// A mapping, undone when dropped.
///
/// Other processes and the driver may write to the same memory at any time, so it is read and
/// written byte by byte through these methods and never borrowed.
#[derive(Debug)]
pub struct Region {
    start: *mut c_void,
    size: usize,
}

// SAFETY: an address and a size; access through it is volatile and not exclusive anyway.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

const BOTH: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Region {
    /// Memory of this process alone; children of a fork get copies.
    pub fn private(size: usize) -> TestResult<Self> {
        // SAFETY: a new mapping, anywhere.
        let start = unsafe { mmap_anonymous(null_mut(), size, BOTH, MapFlags::PRIVATE) }?;
        Ok(Self { start, size })
    }

    /// Memory that children of a fork share.
    pub fn shared(size: usize) -> TestResult<Self> {
        // SAFETY: a new mapping, anywhere.
        let start = unsafe { mmap_anonymous(null_mut(), size, BOTH, MapFlags::SHARED) }?;
        Ok(Self { start, size })
    }

    /// The first bytes of a file, shared with everybody who maps it.
    pub fn of_file(file: impl AsFd, size: usize) -> TestResult<Self> {
        Ok(Self::map(file, size, BOTH)?)
    }

    /// The same with other rights; the bare errno tells why it cannot be mapped.
    pub fn map(file: impl AsFd, size: usize, rights: ProtFlags) -> rustix::io::Result<Self> {
        // SAFETY: a new mapping, anywhere.
        let start = unsafe { mmap(null_mut(), size, rights, MapFlags::SHARED, file, 0) }?;
        Ok(Self { start, size })
    }

    /// Takes over a mapping that somebody else made.
    ///
    /// # Safety
    ///
    /// `size` bytes are mapped at `start`, and nobody else unmaps them.
    pub unsafe fn adopt(start: u64, size: usize) -> Self {
        let start = start as usize as *mut c_void;
        Self { start, size }
    }

    /// Gives the mapping away; it stays.
    pub fn into_address(self) -> u64 {
        let address = self.address();
        core::mem::forget(self);
        address
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// One byte.
    pub fn get(&self, at: usize) -> u8 {
        assert!(at < self.size);
        // SAFETY: inside the mapping, which lives as long as `self`.
        unsafe { self.start.cast::<u8>().add(at).read_volatile() }
    }

    /// Changes one byte.
    pub fn set(&self, at: usize, byte: u8) {
        assert!(at < self.size);
        // SAFETY: as in `get`.
        unsafe { self.start.cast::<u8>().add(at).write_volatile(byte) }
    }

    /// One word, at an offset in bytes that is a multiple of 4.
    pub fn word(&self, at: usize) -> u32 {
        assert!(at + 4 <= self.size && at % 4 == 0);
        // SAFETY: inside the mapping and aligned.
        unsafe { self.start.byte_add(at).cast::<u32>().read_volatile() }
    }

    /// Changes one word, at an offset in bytes that is a multiple of 4.
    pub fn set_word(&self, at: usize, word: u32) {
        assert!(at + 4 <= self.size && at % 4 == 0);
        // SAFETY: inside the mapping and aligned.
        unsafe { self.start.byte_add(at).cast::<u32>().write_volatile(word) }
    }

    /// Fills it with words that tell their place and `seed`.
    pub fn fill(&self, seed: u32) {
        for at in (0..self.size).step_by(4) {
            self.set_word(at, pattern(seed, at));
        }
    }

    /// Where it first differs from what [`Region::fill`] wrote.
    pub fn difference(&self, seed: u32) -> Option<usize> {
        (0..self.size)
            .step_by(4)
            .find(|&at| self.word(at) != pattern(seed, at))
    }

    /// Demands what [`Region::fill`] wrote.
    #[track_caller]
    pub fn holds(&self, seed: u32) -> TestResult {
        let place = core::panic::Location::caller();
        match self.difference(seed) {
            None => Ok(()),
            Some(at) => Err(format!(
                "{place}: word {:#x} at {at:#x}, expected {:#x}",
                self.word(at),
                pattern(seed, at)
            )
            .into()),
        }
    }

    /// Demands that every byte is 0.
    #[track_caller]
    pub fn is_zero(&self) -> TestResult {
        let place = core::panic::Location::caller();
        match (0..self.size).step_by(4).find(|&at| self.word(at) != 0) {
            None => Ok(()),
            Some(at) => Err(format!("{place}: word {:#x} at {at:#x}, not 0", self.word(at)).into()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which nobody holds a borrow.
        let _ = unsafe { munmap(self.start, self.size) };
    }
}

fn pattern(seed: u32, at: usize) -> u32 {
    (seed.wrapping_mul(0x9e37_79b9) ^ (at as u32).wrapping_mul(0x85eb_ca6b)) | 1
}
