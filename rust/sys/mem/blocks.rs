// SPDX-License-Identifier: GPL-2.0

//! Blocks of a segment, by the kernel's allocator for memory of GPUs.

use kernel::{
    gpu::buddy::{
        AllocatedBlocks,
        GpuBuddy,
        GpuBuddyAllocFlags,
        GpuBuddyAllocMode,
        GpuBuddyParams, //
    },
    page::PAGE_SIZE,
    prelude::*,
    ptr::Alignment, //
};

/// Which parts of a segment are in use.
pub(crate) struct Buddy(GpuBuddy);

impl Buddy {
    /// Nothing of `size` bytes, which are whole pages, is in use.
    pub(crate) fn new(size: u64) -> Result<Self> {
        let params = GpuBuddyParams {
            base_offset: 0,
            size,
            chunk_size: Alignment::new::<PAGE_SIZE>(),
        };

        Ok(Self(GpuBuddy::new(params)?))
    }

    /// How many bytes are not in use.
    pub(crate) fn available(&self) -> u64 {
        self.0.avail()
    }

    /// Takes so many bytes, which are whole pages: ENOSPC if there are not as many.
    ///
    /// Context: may sleep.
    pub(crate) fn take(&self, size: u64) -> Result<Blocks> {
        // The kernel's allocator calls more than it has at all EINVAL.
        if size > self.0.size() {
            return Err(ENOSPC);
        }

        let mode = GpuBuddyAllocMode::Simple;
        let page = Alignment::new::<PAGE_SIZE>();
        let blocks = self
            .0
            .alloc_blocks(mode, size, page, GpuBuddyAllocFlags::default());

        Ok(Blocks(KBox::pin_init(blocks, GFP_KERNEL_ACCOUNT)?))
    }
}

/// Blocks in use, until this is dropped.
///
/// Context of the drop: may sleep.
pub(crate) struct Blocks(Pin<KBox<AllocatedBlocks>>);

// SAFETY: The list of blocks belongs to this alone, and the allocator, which it goes back to, has a
// lock of its own.
unsafe impl Send for Blocks {}
// SAFETY: A shared reference only reads the list, which does not change until the drop.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Offsets in the segment, and sizes, in bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|block| (block.offset(), block.size()))
    }
}
