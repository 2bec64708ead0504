// SPDX-License-Identifier: GPL-2.0

//! What an aperture shows.

use super::super::{
    class::Passive,
    paging::{
        MapApertureSegment,
        PagesOf,
        PagingOperation,
        UnmapApertureSegment, //
    },
    port::Port,
    types::{
        AllocationCookie,
        ContextAllocationId, //
    }, //
};
use crate::platform::Shared;

/// A part of an aperture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApertureRange {
    /// Id of the aperture.
    pub segment: u32,
    /// Its first page.
    pub first: u64,
    /// How many pages.
    pub count: u64,
}

/// Something whose pages an aperture can show.
pub trait InAperture: Send + Sync {
    /// Its number.
    fn id(&self) -> u64;

    /// The number of the process that has made it; 0 if there is none.
    fn made_by(&self) -> u64;

    /// What the KMD calls it.
    fn pages_of(&self) -> PagesOf;

    /// The way to its KMD.
    fn port(&self) -> &Shared<Port>;

    /// MapApertureSegment: shows pages of it, from `page` on, in the aperture with the id
    /// `segment`, from its page `first` on. They are physical addresses, at most
    /// [`MAX_APERTURE_PAGES`](crate::ddi::paging::MAX_APERTURE_PAGES). While the adapter is being
    /// stopped this waits; a stopped one looks at no aperture any more.
    fn map_aperture(
        &self,
        class: &Passive,
        (segment, first): (u32, u64),
        page: u64,
        pages: &[u64],
    ) {
        let map = MapApertureSegment {
            pages_of: self.pages_of(),
            segment,
            first,
            page,
            pages,
        };

        if let Some(kmd) = self.port().enter_to_page(class) {
            // It is done on return.
            let _done = kmd
                .build_paging_buffer(&class.building(), PagingOperation::MapApertureSegment(map));
        }
    }

    /// UnmapApertureSegment of a range that shows pages of it. `dummy` is the physical address of a
    /// page that belongs to nobody. On return no engine uses the pages, whatever has become of the
    /// adapter.
    fn unmap_aperture(&self, class: &Passive, range: &ApertureRange, dummy: u64) {
        let unmap = UnmapApertureSegment {
            pages_of: self.pages_of(),
            segment: range.segment,
            first: range.first,
            count: range.count,
            dummy,
        };

        if let Some(kmd) = self.port().enter_to_page(class) {
            // It is done on return.
            let _done = kmd.build_paging_buffer(
                &class.building(),
                PagingOperation::UnmapApertureSegment(unmap),
            );
        }
    }
}

/// A context allocation, which the KMD has made for itself.
pub struct ContextAllocation {
    id: ContextAllocationId,
    cookie: AllocationCookie,
    port: Shared<Port>,
}

impl ContextAllocation {
    /// The one with this number, which its KMD calls so.
    pub fn new(port: &Shared<Port>, id: ContextAllocationId, cookie: AllocationCookie) -> Self {
        Self {
            id,
            cookie,
            port: port.clone(),
        }
    }
}

impl InAperture for ContextAllocation {
    fn id(&self) -> u64 {
        self.id.0
    }

    /// No process may know of it.
    fn made_by(&self) -> u64 {
        0
    }

    fn pages_of(&self) -> PagesOf {
        PagesOf::ContextAllocation(self.cookie)
    }

    fn port(&self) -> &Shared<Port> {
        &self.port
    }
}
