// SPDX-License-Identifier: GPL-2.0

//! Memory segments of the software adapter.

use super::{
    aperture::APERTURE_SIZE,
    config::{
        Config,
        FenceMemory, //
    }, //
};
use crate::{
    ddi::{
        fence_storage::{
            FenceStorageArgs,
            FenceStorageInfo, //
        },
        native_fence::NativeFenceType,
        segments::{
            SegmentDescriptor,
            SegmentKind,
            Segments,
            SYSTEM_MEMORY, //
        }, //
    },
    engine::memory::{
        Physical,
        Place, //
    },
    platform::SegmentMemory, //
};

/// Which segments an adapter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentIds {
    /// That of its own memory, if it has any.
    pub(super) local: Option<u32>,
    /// Leads to pages of the system.
    pub(super) aperture: u32,
}

impl SegmentIds {
    /// Those of an adapter that has memory of its own, or has none.
    pub fn new(has_local: bool) -> Self {
        if has_local {
            Self {
                local: Some(1),
                aperture: 2,
            }
        } else {
            Self {
                local: None,
                aperture: 1,
            }
        }
    }

    /// What engines call a segment.
    fn place(&self, segment: u32) -> Option<Place> {
        match segment {
            SYSTEM_MEMORY => Some(Place::System),
            _ if self.local == Some(segment) => Some(Place::Local),
            _ if self.aperture == segment => Some(Place::Aperture),
            _ => None,
        }
    }

    /// Where a page of words of native fences is to be: in memory of the adapter, if it has any. It
    /// may be anywhere, and goes where the aperture leads.
    pub(super) fn fence_storage(
        &self,
        storage: &FenceStorageArgs,
        memory: FenceMemory,
    ) -> FenceStorageInfo {
        let is_local = storage.ty == NativeFenceType::IntraGpu || memory.is_optimized();
        let set = |segment| 1_u32.wrapping_shl(segment);

        FenceStorageInfo {
            supported_segments: self.local.map_or(0, set) | set(self.aperture),
            eviction_segments: set(self.aperture),
            preferred_segment: self.local.filter(|_| is_local).unwrap_or(self.aperture),
        }
    }

    /// Where something is, for engines.
    pub(super) fn physical(&self, segment: u32, address: u64) -> Option<Physical> {
        Some(Physical::new(self.place(segment)?, address))
    }
}

/// Describes the segments, in the order of their ids.
pub(super) fn describe(segments: &mut Segments, local: Option<&SegmentMemory>, config: &Config) {
    if let Some(memory) = local {
        // There is room for two.
        let _id = segments.add(SegmentDescriptor {
            kind: SegmentKind::Memory,
            size: config.local_memory,
            commit_limit: 0,
            cpu_visible: config.fence_memory != FenceMemory::Hidden,
            cache_coherent: false,
            use_64kb_pages: config.use_64kb_pages,
            application_target: true,
            local_budget_group: true,
            memory: Some(memory.clone()),
        });
    }

    let _id = segments.add(SegmentDescriptor {
        kind: SegmentKind::Aperture,
        size: APERTURE_SIZE,
        commit_limit: APERTURE_SIZE,
        cpu_visible: false,
        cache_coherent: true,
        use_64kb_pages: false,
        application_target: true,
        local_budget_group: false,
        memory: None,
    });
}
