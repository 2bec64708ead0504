// SPDX-License-Identifier: GPL-2.0

//! Blocks of a segment, by the kernel's allocator for memory of GPUs.

use kernel::{
    gpu::buddy::{
        AllocatedBlocks,
        GpuBuddy,
        GpuBuddyAllocFlag,
        GpuBuddyAllocFlags,
        GpuBuddyAllocMode,
        GpuBuddyParams, //
    },
    page::PAGE_SIZE,
    prelude::*,
    ptr::Alignment, //
};

/// How blocks are to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// All of them follow each other, so that they are one range.
    pub(crate) contiguous: bool,
    /// The range begins at a multiple of this many bytes, a power of two. Without `contiguous` it
    /// does not count.
    pub(crate) alignment: u64,
}

/// Which parts of a segment are in use.
pub(crate) struct Buddy {
    buddy: GpuBuddy,
    /// What blocks are multiples of, and begin at a multiple of.
    page: Alignment,
}

impl Buddy {
    /// Nothing of `size` bytes is in use, which are whole pages of so many: a power of two, and at
    /// least a page of the system.
    pub(crate) fn new(size: u64, page: u64) -> Result<Self> {
        let page = usize::try_from(page)
            .ok()
            .and_then(Alignment::new_checked)
            .filter(|page| *page >= Alignment::new::<PAGE_SIZE>())
            .ok_or(EINVAL)?;
        let params = GpuBuddyParams {
            base_offset: 0,
            size,
            chunk_size: page,
        };

        Ok(Self {
            buddy: GpuBuddy::new(params)?,
            page,
        })
    }

    /// How many bytes are not in use.
    pub(crate) fn available(&self) -> u64 {
        self.buddy.avail()
    }

    /// Takes so many bytes, and the rest of the last page: ENOSPC if there are not as many, or not
    /// so.
    ///
    /// Context: may sleep.
    pub(crate) fn take(&self, size: u64, layout: Layout) -> Result<Blocks> {
        // CAST: a usize fits 64 bits.
        let size = size
            .checked_next_multiple_of(self.page.as_usize() as u64)
            .ok_or(ENOSPC)?;

        // The allocator has other errors for what is larger than the whole.
        if size > self.available() {
            return Err(ENOSPC);
        }
        match layout.contiguous {
            false => self.blocks(size, self.page, Default::default()),
            true => self.range(size, layout.alignment),
        }
    }

    fn blocks(&self, size: u64, alignment: Alignment, flags: GpuBuddyAllocFlags) -> Result<Blocks> {
        let mode = GpuBuddyAllocMode::Simple;
        let blocks = self.buddy.alloc_blocks(mode, size, alignment, flags);

        Ok(Blocks(KBox::pin_init(blocks, GFP_KERNEL_ACCOUNT)?))
    }

    fn range(&self, size: u64, alignment: u64) -> Result<Blocks> {
        let alignment = usize::try_from(alignment)
            .ok()
            .and_then(Alignment::new_checked)
            .ok_or(EINVAL)?
            .max(self.page);
        // The allocator aligns to the size at least, so what is smaller takes that much. CAST: a
        // usize fits 64 bits.
        let size = size.max(alignment.as_usize() as u64);
        let flags = GpuBuddyAllocFlag::Contiguous.into();
        let blocks = match self.blocks(size, alignment, flags) {
            // It looks for the next power of two, which there may not be.
            Err(error) if error == EINVAL => Err(ENOSPC),
            other => other,
        }?;

        match blocks.is_range(alignment.as_usize() as u64) {
            true => Ok(blocks),
            false => Err(ENOSPC),
        }
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

    /// Offset of the first byte.
    pub(crate) fn first(&self) -> u64 {
        self.iter().map(|(offset, _)| offset).min().unwrap_or(0)
    }

    /// Whether all bytes follow each other, the first at a multiple of `alignment`.
    fn is_range(&self, alignment: u64) -> bool {
        let first = self.first();
        let end = |(offset, size): (u64, u64)| offset.saturating_add(size);
        let last = self.iter().map(end).max().unwrap_or(0);
        let size = self
            .iter()
            .fold(0u64, |sum, (_, size)| sum.saturating_add(size));

        first.checked_rem(alignment) == Some(0) && last.checked_sub(first) == Some(size)
    }
}
