// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that other processes may read and write at any time.
//!
//! Every access is a relaxed atomic access of one byte, because two that overlap at the same time
//! must have the same size: which bytes another thread is copying is not known. Long copies on
//! x86-64 are one instruction, which does for Rust's memory model what the loop of bytes beside it
//! does.

use core::ops::{Deref, Range};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;

/// A piece of memory that this process shares with others, to be read.
///
/// It is never borrowed as ordinary bytes, only copied. A copy that another process writes into
/// mixes old and new bytes: use a keyed mutex or a fence to take turns.
#[derive(Debug)]
pub struct SharedBytes {
    start: NonNull<AtomicU8>,
    len: usize,
}

/// A [`SharedBytes`] that can be written, too.
#[derive(Debug)]
pub struct SharedBytesMut(SharedBytes);

// SAFETY: the memory belongs to the whole process and is only accessed atomically, byte by byte.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// The memory at an address; `None` for address 0.
    ///
    /// # Safety
    ///
    /// `len` bytes are mapped there, and stay mapped and readable for as long as the object is
    /// used; nothing in this process accesses them other than by atomic accesses of one byte.
    pub(crate) unsafe fn at(start: *mut u8, len: usize) -> Option<Self> {
        let start = NonNull::new(start.cast())?;
        Some(Self { start, len })
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the memory is, for code that cannot use copies.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr().cast_const().cast()
    }

    /// Copies bytes out.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let range = self.range(offset, bytes.len());
        // SAFETY: inside the memory, which is mapped for as long as the object is used.
        unsafe { copy::load(self.start.as_ptr().add(range.start), bytes) };
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// A range that is inside.
    fn range(&self, offset: usize, len: usize) -> Range<usize> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        match end {
            Some(end) => offset..end,
            None => panic!("{len} bytes at {offset} are out of range of {}", self.len),
        }
    }
}

impl SharedBytesMut {
    /// The memory at an address; `None` for address 0.
    ///
    /// # Safety
    ///
    /// As for [`SharedBytes::at`], and the memory can be written.
    pub(crate) unsafe fn at(start: *mut u8, len: usize) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe { SharedBytes::at(start, len) }.map(Self)
    }

    /// Where the memory is, for code that cannot use copies.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.0.start.as_ptr().cast()
    }

    /// Copies bytes in.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let range = self.range(offset, bytes.len());
        // SAFETY: inside the memory, which is mapped and writable for as long as the object is
        // used.
        unsafe { copy::store(self.0.start.as_ptr().add(range.start), bytes) };
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) {
        // SAFETY: all of the memory, as above.
        unsafe { copy::fill(self.0.start.as_ptr(), self.0.len, byte) };
    }
}

impl Deref for SharedBytesMut {
    type Target = SharedBytes;

    fn deref(&self) -> &SharedBytes {
        &self.0
    }
}

/// Copies of single bytes with relaxed atomic accesses. Processes that take turns order them
/// with a call; within a turn no order is needed.
mod copy {
    use core::sync::atomic::{AtomicU8, Ordering};

    /// From how many bytes on the instruction is faster than the loop.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    const LONG: usize = 64;

    /// Reads bytes.
    ///
    /// # Safety
    ///
    /// As many bytes at `from` can be read, and nothing accesses them other than atomically by
    /// bytes.
    pub(super) unsafe fn load(from: *const AtomicU8, to: &mut [u8]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if to.len() >= LONG {
            // SAFETY: reads and writes exactly what the loop below does, each byte once; the
            // direction flag is clear.
            unsafe {
                core::arch::asm!(
                    "rep movsb",
                    inout("rcx") to.len() => _,
                    inout("rsi") from => _,
                    inout("rdi") to.as_mut_ptr() => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        for (index, to) in to.iter_mut().enumerate() {
            // SAFETY: one of the bytes that the caller promises.
            *to = unsafe { &*from.add(index) }.load(Ordering::Relaxed);
        }
    }

    /// Writes bytes.
    ///
    /// # Safety
    ///
    /// As many bytes at `to` can be written, and nothing accesses them other than atomically by
    /// bytes.
    pub(super) unsafe fn store(to: *const AtomicU8, from: &[u8]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if from.len() >= LONG {
            // SAFETY: as in `load`.
            unsafe {
                core::arch::asm!(
                    "rep movsb",
                    inout("rcx") from.len() => _,
                    inout("rsi") from.as_ptr() => _,
                    inout("rdi") to => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        for (index, from) in from.iter().enumerate() {
            // SAFETY: one of the bytes that the caller promises.
            unsafe { &*to.add(index) }.store(*from, Ordering::Relaxed);
        }
    }

    /// Writes the same byte `len` times.
    ///
    /// # Safety
    ///
    /// As for [`store`].
    pub(super) unsafe fn fill(to: *const AtomicU8, len: usize, byte: u8) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if len >= LONG {
            // SAFETY: as in `load`.
            unsafe {
                core::arch::asm!(
                    "rep stosb",
                    inout("rcx") len => _,
                    inout("rdi") to => _,
                    in("al") byte,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        for index in 0..len {
            // SAFETY: one of the bytes that the caller promises.
            unsafe { &*to.add(index) }.store(byte, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test on memory that nothing else accesses.
    fn with_bytes(len: usize, test: impl FnOnce(&SharedBytesMut)) {
        let mut memory = vec![0u8; len];
        // SAFETY: the memory outlives the object and is not used otherwise before it is gone.
        test(&unsafe { SharedBytesMut::at(memory.as_mut_ptr(), len) }.unwrap());
    }

    #[test]
    fn copies_at_every_alignment() {
        // Both sides of where the long form begins.
        let lens: &[usize] = if cfg!(miri) {
            &[0, 9, 70]
        } else {
            &[0, 1, 7, 8, 9, 63, 64, 65, 100]
        };
        let source: Vec<u8> = (1..=100).collect();
        with_bytes(128, |shared| {
            for offset in 0..9 {
                for &len in lens {
                    shared.fill(0xee);
                    shared.write(offset, &source[..len]);
                    let mut back = vec![0; len];
                    shared.read(offset, &mut back);
                    assert_eq!(back, source[..len]);
                    let all = shared.to_vec();
                    assert!(all[..offset].iter().all(|&byte| byte == 0xee));
                    assert!(all[offset + len..].iter().all(|&byte| byte == 0xee));
                }
            }
        });
    }

    /// The two writes of the audit, and a reader: accesses of different sizes would be undefined
    /// behaviour, which Miri reports. Without Miri, every byte is one that somebody wrote.
    #[test]
    fn copies_that_overlap_at_the_same_time() {
        let rounds = if cfg!(miri) { 3 } else { 2000 };
        with_bytes(96, |shared| {
            for round in 0..rounds {
                shared.fill(0);
                std::thread::scope(|scope| {
                    scope.spawn(|| shared.write(0, &[1; 8]));
                    scope.spawn(|| shared.write(1, &[2; 3]));
                    scope.spawn(|| shared.write(3, &[3; 80]));
                    scope.spawn(|| {
                        let mut bytes = [0xff; 90];
                        shared.read(round % 5, &mut bytes);
                        assert!(bytes.iter().all(|&byte| byte <= 3));
                    });
                });
                let all = shared.to_vec();
                assert_eq!((all[0], all[83]), (1, 0));
                assert!((1..=2).contains(&all[1]) && (1..=3).contains(&all[3]));
            }
        });
    }

    #[test]
    fn ranges_are_checked() {
        with_bytes(16, |shared| {
            for (offset, len) in [(9, 8), (17, 0), (usize::MAX, 1), (usize::MAX, 2)] {
                let attempt = || shared.read(offset, &mut vec![0; len]);
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
                assert!(result.is_err(), "{len} bytes at {offset}");
            }
            shared.read(16, &mut []);
        });
    }

    #[test]
    fn address_0_is_no_memory() {
        // SAFETY: never dereferenced.
        assert!(unsafe { SharedBytes::at(core::ptr::null_mut(), 8) }.is_none());
    }
}
