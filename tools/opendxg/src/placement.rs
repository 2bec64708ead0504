// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the memory of an allocation may be.

use crate::allocation::Allocation;
use crate::calls::call;
use crate::paging::PagingQueue;
use crate::raw::Argument;
use crate::uapi::*;
use crate::Result;

/// Bits of each segment in a list of preferences.
const PREFERENCE_BITS: usize = 6;

/// Most segments of such a list.
const PREFERENCES: usize = 5;

/// What to change of where an allocation may be. What is not mentioned stays as it is.
///
/// Segments count from 1. System memory is named by the aperture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    mask: u32,
    flags: u32,
    segments: u32,
    preferred: u32,
}

impl Placement {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn flag(mut self, mask: u32, flag: u32, value: bool) -> Self {
        self.mask |= mask;
        self.flags = match value {
            true => self.flags | flag,
            false => self.flags & !flag,
        };
        self
    }

    /// Whether it is one range to physical addresses.
    pub fn accessed_physically(self, value: bool) -> Self {
        self.flag(
            D3DDDI_UPDATEALLOCPROPERTY_SetAccessedPhysically,
            D3DDDI_UPDATEALLOCPROPERTY_FLAGS_AccessedPhysically,
            value,
        )
    }

    /// Whether it stays where it is while it is resident.
    pub fn unmoveable(self, value: bool) -> Self {
        self.flag(
            D3DDDI_UPDATEALLOCPROPERTY_SetUnmoveable,
            D3DDDI_UPDATEALLOCPROPERTY_FLAGS_Unmoveable,
            value,
        )
    }

    /// In which segments it may be. Those that cannot be named are left out.
    pub fn segments(mut self, segments: &[u32]) -> Self {
        self.mask |= D3DDDI_UPDATEALLOCPROPERTY_SetSupportedSegmentSet;
        self.segments = segments
            .iter()
            .filter_map(|segment| 1u32.checked_shl(segment.checked_sub(1)?))
            .fold(0, |set, bit| set | bit);
        self
    }

    /// In which of these it had best be, the best first; five at most count.
    pub fn preferred(mut self, segments: &[u32]) -> Self {
        self.mask |= D3DDDI_UPDATEALLOCPROPERTY_SetPreferredSegment;
        self.preferred =
            segments
                .iter()
                .take(PREFERENCES)
                .enumerate()
                .fold(0, |all, (place, segment)| {
                    all | ((segment & D3DDDI_SEGMENTPREFERENCE_SegmentId0)
                        << (place * PREFERENCE_BITS))
                });
        self
    }
}

impl PagingQueue {
    /// Changes where an allocation of the queue's device may be. If it is resident, it is moved;
    /// the GPU must not use it meanwhile. It holds when the fence of the queue has the value that
    /// this returns; 0 is now. Without room in the new place nothing changes.
    pub fn update_placement(&self, allocation: &Allocation, placement: &Placement) -> Result<u64> {
        let mut arg = D3DDDI_UPDATEALLOCPROPERTY::zeroed();
        arg.hPagingQueue = self.handle().0;
        arg.hAllocation = allocation.handle().0;
        arg.PropertyMaskValue = placement.mask;
        arg.Flags = placement.flags;
        arg.SupportedSegmentSet = placement.segments;
        arg.PreferredSegment = placement.preferred;
        call(self.device().node(), &mut arg)?;
        Ok(arg.PagingFenceValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_where_the_header_has_them() {
        let placement = Placement::new()
            .segments(&[1, 2, 31, 0, 33])
            .preferred(&[2, 31, 0, 5, 31, 7]);
        assert_eq!(placement.segments, 0x4000_0003);
        assert_eq!(placement.preferred, 2 | (31 << 6) | (5 << 18) | (31 << 24),);
        assert_eq!(D3DDDI_SEGMENTPREFERENCE_SegmentId4, 31 << 24);
        assert_eq!(
            placement.mask,
            D3DDDI_UPDATEALLOCPROPERTY_SetSupportedSegmentSet
                | D3DDDI_UPDATEALLOCPROPERTY_SetPreferredSegment,
        );
        assert_eq!(placement.flags, 0);
    }

    #[test]
    fn flags_are_changed_one_by_one() {
        let both = Placement::new().accessed_physically(true).unmoveable(true);
        assert_eq!((both.mask, both.flags), (9, 3));
        let one = both.accessed_physically(false);
        assert_eq!((one.mask, one.flags), (9, 2));
    }
}
