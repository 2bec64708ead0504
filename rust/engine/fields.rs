// SPDX-License-Identifier: GPL-2.0

//! The dwords behind the header of a packet, and the bits of a dword.

use super::fault::Illegal;

/// The bits `high` to `low` of a dword.
pub(super) const fn bits(dword: u32, high: u32, low: u32) -> u32 {
    // OVERFLOW: all callers have high and low in a dword; wrapping is total.
    let above = 31_u32.wrapping_sub(high);

    dword
        .wrapping_shl(above)
        .wrapping_shr(above.wrapping_add(low))
}

/// One bit of a dword.
pub(super) const fn bit(dword: u32, number: u32) -> bool {
    bits(dword, number, number) != 0
}

/// How many dwords behind the header are read at most.
const MAX_FIELDS: usize = 9;

/// The fields of a packet, each read once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields {
    dwords: [u32; MAX_FIELDS],
    /// GPU virtual address of what follows them in the packet, and how many dwords that is.
    pub(super) rest_va: u64,
    pub(super) rest: u32,
}

impl Fields {
    /// The places of the first so many dwords, to be filled.
    pub(super) fn places(&mut self, fields: u32) -> &mut [u32] {
        // CAST: to a wider type.
        let count = (fields as usize).min(MAX_FIELDS);

        self.dwords.get_mut(..count).unwrap_or_default()
    }

    /// A dword by the number that it has in the specification: 1 follows the header.
    pub(super) fn dword(&self, number: usize) -> u32 {
        number
            .checked_sub(1)
            .and_then(|index| self.dwords.get(index))
            .copied()
            .unwrap_or(0)
    }

    /// Two dwords, the first of which is the lower half.
    pub(super) fn qword(&self, number: usize) -> u64 {
        let high = u64::from(self.dword(number.saturating_add(1)));

        (high << 32) | u64::from(self.dword(number))
    }

    /// An address in two dwords, a multiple of `unit`.
    pub(super) fn address(&self, number: usize, unit: u64) -> Result<u64, Illegal> {
        let va = self.qword(number);

        if va % unit == 0 {
            Ok(va)
        } else {
            Err(Illegal::Alignment)
        }
    }
}
