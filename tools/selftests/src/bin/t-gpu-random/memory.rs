// SPDX-License-Identifier: MIT OR Apache-2.0
//! One allocation, and what the model knows about it.

use core::ops::Range;

use opendxg::{Allocation, EvictFlags, GpuMap, GpuRange, PagingQueue, ResidentFlags, Status};
use selftests::gpu::{PAGE, READ_WRITE};
use selftests::{ensure, ensure_eq, fails_with, TestResult};

/// Words of a page.
pub(crate) const WORDS: u64 = PAGE / 4;

/// A range of GPU addresses.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) address: u64,
    pub(crate) first_page: u64,
    pub(crate) pages: u64,
}

/// An allocation.
pub(crate) struct Memory {
    pub(crate) allocation: Allocation,
    pub(crate) pages: u64,
    /// What every word is, when all work is done.
    pub(crate) words: Vec<u32>,
    /// Where the GPU finds it, when all paging is done.
    pub(crate) views: Vec<View>,
    /// How often it was made resident.
    pub(crate) resident: u32,
}

impl Memory {
    pub(crate) fn new(allocation: Allocation, pages: u64) -> Self {
        Self {
            allocation,
            pages,
            words: vec![0; (pages * WORDS) as usize],
            views: Vec::new(),
            resident: 0,
        }
    }

    /// Whether the GPU may use it.
    pub(crate) fn is_usable(&self) -> bool {
        self.resident > 0 && !self.views.is_empty()
    }

    pub(crate) fn map(&mut self, paging: &PagingQueue, pages: Range<u64>) -> TestResult<u64> {
        let map = GpuMap {
            first_page: pages.start,
            pages: pages.end - pages.start,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let GpuRange { address, value } = paging.map(Some(&self.allocation), &map)?;
        self.views.push(View {
            address,
            first_page: map.first_page,
            pages: map.pages,
        });
        // One page too many has no effect.
        let beyond = GpuMap {
            pages: self.pages - map.first_page + 1,
            ..map
        };
        fails_with(
            paging.map(Some(&self.allocation), &beyond),
            Status::INVALID_PARAMETER,
        )?;
        Ok(value)
    }

    pub(crate) fn make_resident(&mut self, paging: &PagingQueue, times: u32) -> TestResult<u64> {
        let list = vec![&self.allocation; times as usize];
        let resident = paging.make_resident(&list, ResidentFlags::empty())?;
        self.resident += times;
        Ok(resident.value()?)
    }

    /// Takes it off the list of its device; once too often is refused.
    pub(crate) fn evict(&mut self, times: u32, flags: EvictFlags) -> TestResult {
        let device = self.allocation.device();
        let much = vec![&self.allocation; self.resident as usize + 1];
        fails_with(device.evict(&much, flags), Status::INVALID_PARAMETER)?;
        let list = vec![&self.allocation; times as usize];
        device.evict(&list, flags)?;
        self.resident -= times;
        Ok(())
    }

    /// Compares it with the model through a mapping for the CPU.
    pub(crate) fn check(&self) -> TestResult {
        let mapping = self.allocation.lock()?;
        let bytes: &[u8] = &mapping.to_vec();
        ensure_eq!(bytes.len() as u64, self.pages * PAGE);
        let found = bytes.chunks_exact(4).map(|word| match word {
            [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0,
        });
        for (index, (found, &expected)) in found.zip(&self.words).enumerate() {
            ensure!(
                found == expected,
                "word {index} of {} pages: {found:#x}, not {expected:#x}",
                self.pages
            );
        }
        Ok(())
    }
}
