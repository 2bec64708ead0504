// SPDX-License-Identifier: GPL-2.0

//! Where an allocation is to be while it is resident, and how (MEM-4).
//!
//! | | not accessed physically | accessed physically | primary, not accessed physically |
//! |---|---|---|---|
//! | memory segment | any pages | one range | one range |
//! | system memory | any pages | any pages, which the aperture shows | any pages |
//!
//! The aperture shows a primary in system memory only while it is displayed, and nothing is.

use super::{
    aperture::Aperture,
    segment::{
        AdapterMemory,
        Segment, //
    }, //
};
use crate::{
    ddi::paging::PageSize,
    logic::allocation_properties::Properties,
    sys::mem::blocks::Layout, //
};
use kernel::sync::Arc;

/// Where an allocation is to be.
#[derive(Clone)]
pub(crate) struct Site {
    pub(super) properties: Properties,
    /// The memory segment; `None` is system memory. What cannot move is in system memory, too.
    pub(super) segment: Option<Arc<Segment>>,
    /// How it is to lie there.
    pub(super) layout: Layout,
    /// Whether it may be in system memory, too.
    pub(super) may_be_in_system_memory: bool,
    /// What shows it where it is in system memory.
    pub(super) aperture: Option<Arc<Aperture>>,
}

impl Site {
    /// Where an allocation with these properties is to be.
    pub(crate) fn new(memory: &AdapterMemory, properties: Properties, alignment: u32) -> Self {
        Self {
            properties,
            segment: memory.segment(properties.preferred).cloned(),
            layout: Layout {
                contiguous: properties.accessed_physically || properties.contiguous,
                alignment: alignment.into(),
            },
            may_be_in_system_memory: properties.may_be_in(memory.aperture.id),
            aperture: properties
                .accessed_physically
                .then(|| memory.aperture.clone()),
        }
    }

    /// Whether what is at `other` cannot stay there. A range is as good as any pages.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let id = |site: &Self| site.segment.as_ref().map(|segment| segment.id);

        id(self) != id(other)
            || match self.segment {
                Some(_) => self.layout.contiguous && !other.layout.contiguous,
                None => self.aperture.is_some() != other.aperture.is_some(),
            }
    }

    /// Whether it is to be in whole pages of 64 KiB.
    pub(super) fn wants_64kb_pages(&self) -> bool {
        self.segment
            .as_ref()
            .is_some_and(|segment| segment.page_size == PageSize::Kib64)
    }

    /// The budget group that it counts in.
    pub(super) fn group(&self) -> usize {
        let is_local = self
            .segment
            .as_ref()
            .is_some_and(|segment| segment.is_local_group);

        usize::from(!is_local)
    }
}
