// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that other processes may read and write at any time.

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU64, AtomicU8, Ordering};

/// A piece of memory that this process shares with others.
///
/// It is never borrowed as ordinary bytes, only copied in and out. A copy that another process writes
/// into mixes old and new bytes: use a keyed mutex or a fence to take turns.
#[derive(Debug)]
pub struct SharedBytes {
    start: NonNull<AtomicU8>,
    len: usize,
}

// SAFETY: the memory belongs to the whole process and is only accessed atomically.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// The memory at an address; `None` for address 0.
    ///
    /// # Safety
    ///
    /// `len` bytes are mapped there, and stay mapped for as long as the object is used; nothing accesses
    /// them other than atomically.
    pub(crate) unsafe fn at(address: u64, len: usize) -> Option<Self> {
        let start = NonNull::new(address as usize as *mut AtomicU8)?;
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
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr().cast()
    }

    /// Copies bytes out.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let (head, words, tail) = self.parts(offset, bytes.len());
        let (first, rest) = bytes.split_at_mut(head.len());
        let (middle, last) = rest.split_at_mut(words.len() * 8);
        // ORDERING: whoever takes turns orders the accesses with a call; within a turn none is needed.
        for (to, from) in first.iter_mut().chain(last).zip(head.iter().chain(tail)) {
            *to = from.load(Ordering::Relaxed);
        }
        for (to, from) in middle.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
        }
    }

    /// Copies bytes in. On memory that was opened read-only the process gets SIGSEGV.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let (head, words, tail) = self.parts(offset, bytes.len());
        let (first, rest) = bytes.split_at(head.len());
        let (middle, last) = rest.split_at(words.len() * 8);
        // ORDERING: as in `read`.
        for (from, to) in first.iter().chain(last).zip(head.iter().chain(tail)) {
            to.store(*from, Ordering::Relaxed);
        }
        for (from, to) in middle.chunks_exact(8).zip(words) {
            // PANIC: chunks of exactly 8 bytes.
            let word = u64::from_ne_bytes(from.try_into().expect("8 bytes"));
            to.store(word, Ordering::Relaxed);
        }
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) {
        let (head, words, tail) = self.parts(0, self.len);
        for to in head.iter().chain(tail) {
            to.store(byte, Ordering::Relaxed);
        }
        for to in words {
            to.store(u64::from_ne_bytes([byte; 8]), Ordering::Relaxed);
        }
    }

    /// A range as bytes up to the first whole word, words, and the bytes left over.
    fn parts(&self, offset: usize, len: usize) -> (&[AtomicU8], &[AtomicU64], &[AtomicU8]) {
        // SAFETY: mapped as long as the object is used, and only accessed atomically.
        let all = unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) };
        let range = &all[offset..][..len];
        // SAFETY: eight atomic bytes with the right alignment are as good as one atomic word.
        unsafe { range.align_to() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_at_every_alignment() {
        let mut memory = [0u64; 16];
        // SAFETY: `memory` outlives the object and is not used otherwise before it is gone.
        let shared = unsafe { SharedBytes::at(memory.as_mut_ptr() as u64, 128) }.unwrap();
        let source: Vec<u8> = (1..=100).collect();
        for offset in 0..9 {
            for len in 0..source.len() {
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
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn ranges_are_checked() {
        let mut memory = [0u64; 2];
        // SAFETY: as above.
        let shared = unsafe { SharedBytes::at(memory.as_mut_ptr() as u64, 16) }.unwrap();
        shared.read(9, &mut [0; 8]);
    }
}
