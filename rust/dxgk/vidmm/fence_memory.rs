// SPDX-License-Identifier: GPL-2.0

//! Pages for the values of native fences that only one process has, in memory of its adapter or of
//! the system (FEN-63, FEN-64).

use super::{
    address_space::AddressSpace,
    fence_page::FencePage,
    local_page::{
        LocalPage,
        Seen, //
    },
    paging_log::LogAbout, //
};
use crate::{
    ddi::{
        class::Passive,
        fence_storage::{
            FenceStorageArgs,
            FenceWord, //
        },
        native_fence::NativeFenceType,
        segments::SegmentKind, //
    },
    dxgk::adapter::Adapter,
    error::{
        DxgResult,
        Status, //
    },
    logic::fence_placement::{
        preferred,
        Kind,
        Place, //
    }, //
};
use kernel::sync::Arc;

/// Where pages of fences of one type are taken, for a process on an adapter.
pub(in crate::dxgk) struct FenceMemory<'a> {
    adapter: &'a Arc<Adapter>,
    space: &'a Arc<AddressSpace>,
    kind: Kind,
}

impl<'a> FenceMemory<'a> {
    /// That of private fences of a process that has this address space on the adapter; `None` if
    /// all of them are in system memory, like those that may be shared.
    pub(in crate::dxgk) fn new(
        adapter: &'a Arc<Adapter>,
        space: Option<&'a Arc<AddressSpace>>,
        ty: NativeFenceType,
    ) -> Option<Self> {
        let kind = Kind {
            ty,
            is_shareable: false,
            is_optimized: adapter.native_fence_caps.optimized_default_type,
        };

        kind.is_local().then_some(Self {
            adapter,
            space: space?,
            kind,
        })
    }

    /// A page of words of one kind. If the driver wants it where it cannot be, the adapter is in
    /// error, and this is DEVICE_REMOVED.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn page(&self, word: FenceWord) -> DxgResult<FencePage> {
        let local = match self.kind.place(word) {
            Place::System => None,
            Place::Local => self.local_page(word)?,
        };

        match local {
            Some(local) => Ok(FencePage::in_segment(local)),
            None => Ok(FencePage::new()?),
        }
    }

    /// A page where the driver says; `None` if that is system memory, or has no room.
    fn local_page(&self, word: FenceWord) -> DxgResult<Option<Arc<LocalPage>>> {
        let Self {
            adapter,
            space,
            kind,
        } = self;
        let memory = &adapter.memory;
        let args = FenceStorageArgs { word, ty: kind.ty };
        let info = adapter
            .port
            .enter()?
            .get_fence_storage_info(&Passive::here(), &args);
        let is_hidden = |id| {
            memory
                .reported
                .get(id)
                .is_some_and(|segment| segment.kind == SegmentKind::Memory && !segment.cpu_visible)
        };
        let Ok(id) = preferred(&info, word, memory.known_segments(), is_hidden) else {
            adapter.native_fences_failed();
            return Err(Status::DEVICE_REMOVED.into());
        };
        let Some(segment) = memory.segment(id) else {
            return Ok(None);
        };

        LocalPage::new(
            segment,
            Seen {
                space: (*space).clone(),
                paging: adapter.shows_native_fences().map(|process| process.shows()),
                engines_store: word == FenceWord::CurrentValue,
            },
            &LogAbout::object(&memory.log, 0),
        )
    }
}
