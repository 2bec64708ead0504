// SPDX-License-Identifier: GPL-2.0

//! Memory segments of the software adapter.

use super::{
    aperture::APERTURE_SIZE,
    config::Config, //
};
use crate::{
    ddi::segments::{
        SegmentDescriptor,
        SegmentKind,
        Segments,
        SYSTEM_MEMORY, //
    },
    engine::memory::{
        Physical,
        Place, //
    },
    platform::SegmentMemory, //
};

/// Which segments an adapter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentIds {
    /// That of its own memory, if it has any.
    pub(super) local: Option<u32>,
    /// Leads to pages of the system.
    pub(super) aperture: u32,
}

impl SegmentIds {
    /// Those of an adapter that has memory of its own, or has none.
    pub(super) fn new(has_local: bool) -> Self {
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
            cpu_visible: true,
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
