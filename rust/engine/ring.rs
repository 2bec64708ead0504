// SPDX-License-Identifier: GPL-2.0

//! The ring of a queue that its process fills by itself (GPU-13 to GPU-17).
//!
//! A ring is an array of dwords. Its control page has a pointer that the process writes and one
//! that the engine writes. Both count dwords since the ring was made, and do not wrap; the place of
//! a dword in the ring is its number modulo the size. Both pages belong to the process, which may
//! write to them whenever it likes: what is read is read once, checked, and kept here.

/// Byte of the control page where the process says how much it has written.
const WRITE_POINTER: u64 = 0;
/// Byte of the control page where the engine says how much it has done.
const READ_POINTER: u64 = 64;

/// Bytes of a control page.
pub const CONTROL_SIZE: u64 = 4096;

/// The smallest ring, and the largest, in bytes.
const SIZES: core::ops::RangeInclusive<u64> = (4 << 10)..=(16 << 20);

/// Where a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// GPU virtual address of its first dword, a multiple of 4096.
    va: u64,
    /// How many it has, a power of two.
    dwords: u32,
    /// GPU virtual address of its control page.
    control: u64,
}

impl Ring {
    /// A ring of so many bytes; `None` if there can be no such ring.
    pub fn new(va: u64, bytes: u64, control: u64) -> Option<Self> {
        let aligned = (va | control) % 4096 == 0;

        (aligned && bytes.is_power_of_two() && SIZES.contains(&bytes)).then_some(Self {
            va,
            // CAST: at most 2^22.
            dwords: (bytes / 4) as u32,
            control,
        })
    }

    /// GPU virtual address of the pointer that the process writes.
    pub(super) fn write_pointer(&self) -> u64 {
        // OVERFLOW: what wraps is beyond every page table.
        self.control.wrapping_add(WRITE_POINTER)
    }

    /// GPU virtual address of the pointer that the engine writes.
    pub(super) fn read_pointer(&self) -> u64 {
        self.control.wrapping_add(READ_POINTER)
    }

    /// GPU virtual address of a dword.
    fn place(&self, dword: u64) -> u64 {
        // The size is a power of two, and so is one of what `u64` counts modulo.
        let index = dword % u64::from(self.dwords.max(1));

        self.va.wrapping_add(index.wrapping_mul(4))
    }
}

/// What a ring holds is not what a process may write there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadPointer;

/// How far a queue is in its ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub(super) ring: Ring,
    /// What the process has written so far, as was last read.
    written: u64,
    /// What it was told to be done.
    published: u64,
}

impl Reader {
    /// At the beginning.
    pub(super) fn new(ring: Ring) -> Self {
        Self {
            ring,
            written: 0,
            published: 0,
        }
    }

    /// The process has written so much. Address of the first new dword, and how many there are: a
    /// pointer does not go back, and no dword is written twice before it was read (GPU-15).
    ///
    /// Called when all that was written before has been done.
    pub(super) fn accept(&mut self, written: u64) -> Result<(u64, u32), BadPointer> {
        let more = written.checked_sub(self.written).ok_or(BadPointer)?;
        let more = u32::try_from(more).map_err(|_| BadPointer)?;

        if more > self.ring.dwords {
            return Err(BadPointer);
        }

        let first = self.ring.place(self.written);

        self.written = written;
        Ok((first, more))
    }

    /// Whether that is what the process has written so far, as was last read.
    pub(super) fn has_taken(&self, written: u64) -> bool {
        self.written == written
    }

    /// What the process is to be told with `left` dwords still to be done, if it does not know.
    pub(super) fn publish(&mut self, left: u32) -> Option<u64> {
        let done = self.written.saturating_sub(left.into());

        (core::mem::replace(&mut self.published, done) != done).then_some(done)
    }

    /// How many dwords have been done, as the process was told.
    pub(super) fn done(&self) -> u64 {
        self.published
    }

    /// The address so many dwords behind another one of the ring.
    pub(super) fn further(&self, va: u64, dwords: u32) -> u64 {
        let index = va.wrapping_sub(self.ring.va) / 4;

        self.ring.place(index.wrapping_add(dwords.into()))
    }
}
