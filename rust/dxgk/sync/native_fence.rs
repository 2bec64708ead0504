// SPDX-License-Identifier: GPL-2.0

//! What a native fence has more than a monitored fence: MonitoredValue, and what the KMD has made
//! of it (fences.md section 3).
//!
//! LOCK: that of the fence, for everything that stores. The KMD is called under it.

use super::{
    cross_adapter::{
        CrossAdapter,
        NativePart, //
    },
    fence_storage::{
        CountedPage,
        FenceStorage, //
    },
    kmd_fence::{
        KmdFence,
        NativeView, //
    },
    native_interrupts::Count, //
};
use crate::{
    ddi::native_fence::{
        CurrentValueUpdate,
        NativeFenceType,
        PrivateData, //
    },
    dxgk::{
        adapter::Adapter,
        vidmm::fence_page::FencePage, //
    },
    error::DxgResult,
    logic::{
        fence_value::NOBODY_WAITS,
        waiters::{
            CurrentValue,
            MonitoredValue, //
        }, //
    },
    platform::{
        self,
        load_acquire,
        store_release, //
    }, //
};
use core::mem::size_of;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The native part of a fence of one adapter. Dropped with it: first of all the KMD destroys it,
/// and only then its words may become those of another fence (FEN-66).
pub(crate) struct NativeFence {
    on_adapter: KmdFence,
    /// Where CurrentValue is.
    pub(super) place: FenceStorage,
    /// The page of MonitoredValue, if CurrentValue has one of its own.
    monitored: Option<CountedPage>,
    /// When the last one has begun to wait, by the CPU clock, if logs say what was signalled.
    last_wait_ns: Atomic<u64>,
}

impl NativeFence {
    /// CreateNativeFence, of a fence whose CurrentValue is in `place`.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn new(
        adapter: &Arc<Adapter>,
        place: FenceStorage,
        ty: NativeFenceType,
        private_data: &mut PrivateData,
    ) -> DxgResult<Self> {
        let monitored = match place.common_monitored() {
            Some(_) => None,
            None => {
                let page = CountedPage::new()?;

                page.page.store(0, NOBODY_WAITS);
                Some(page)
            }
        };
        let page = place.page();
        let pages = [
            &page,
            page_of_monitored(&place, &monitored).unwrap_or(&page),
        ];

        Ok(Self {
            on_adapter: KmdFence::new(
                adapter,
                (pages, place.offset()),
                NOBODY_WAITS,
                ty,
                private_data,
            )?,
            place,
            monitored,
            last_wait_ns: Atomic::new(0),
        })
    }

    /// What a device that opens it sees.
    pub(in crate::dxgk) fn view(&self) -> NativeView<'_> {
        NativeView {
            kmd: &self.on_adapter,
            monitored: self.monitored_page(),
        }
    }

    /// The page that MonitoredValue is in. Its place there is that of CurrentValue.
    fn monitored_page(&self) -> Option<&FencePage> {
        page_of_monitored(&self.place, &self.monitored)
    }

    /// Which word of its page MonitoredValue is.
    fn monitored_index(&self) -> usize {
        // CAST: an offset in a page.
        self.place.offset() as usize / size_of::<u64>()
    }

    /// As [`KmdFence::name`].
    pub(super) fn name(&self, fence: u64) {
        self.on_adapter.name(fence);
    }

    /// As [`KmdFence::begin_look`].
    pub(super) fn begin_look(&self) -> bool {
        self.on_adapter.begin_look()
    }

    /// As [`KmdFence::was_spurious`].
    pub(super) fn was_spurious(&self) {
        self.on_adapter.was_spurious();
    }

    /// Counts something for the adapter, so often.
    pub(super) fn add(&self, what: Count, times: u64) {
        self.on_adapter.add(what, times);
    }

    /// Somebody is queued. The fence lock is held.
    pub(super) fn begin_wait(&self) {
        self.add(Count::WaitsAdded, 1);
        if self.on_adapter.is_optimized() {
            self.last_wait_ns.store(platform::now_ns(), Relaxed);
        }
    }

    /// Whether everybody who waits now waited at this time already. The fence lock is held.
    pub(super) fn all_waited_at(&self, ns: u64) -> bool {
        self.last_wait_ns.load(Relaxed) < ns
    }

    /// UpdateCurrentValuesFromCpu (FEN-102, FEN-104). The fence lock is held.
    fn store(&self, value: u64, how: CurrentValueUpdate) {
        self.place.store_by(value, |word| {
            self.on_adapter.store_under_lock(word, value, how);
        });
    }
}

/// The page that MonitoredValue is in, of a fence whose CurrentValue is in `place`: the common one
/// there, or `own`.
fn page_of_monitored<'a>(
    place: &'a FenceStorage,
    own: &'a Option<CountedPage>,
) -> Option<&'a FencePage> {
    let counted = place.common_monitored().or(own.as_ref());

    counted.map(|counted| &counted.page)
}

/// The words of a fence.
pub(crate) enum Words {
    /// CurrentValue of a monitored fence.
    Monitored(FenceStorage),
    /// Both of a native fence of one adapter.
    Native(KBox<NativeFence>),
    /// Those of a cross-adapter fence, which may be native on some adapters.
    CrossAdapter(Pin<KBox<CrossAdapter>>),
}

impl Words {
    /// Where CurrentValue is.
    #[inline(always)]
    pub(super) fn place(&self) -> &FenceStorage {
        match self {
            Self::Monitored(place) => place,
            Self::Native(native) => &native.place,
            Self::CrossAdapter(cross) => &cross.place,
        }
    }

    /// What it has if it is a native fence of one adapter.
    #[inline(always)]
    pub(super) fn native(&self) -> Option<&NativeFence> {
        match self {
            Self::Native(native) => Some(native),
            _ => None,
        }
    }

    /// What it has if it is a cross-adapter fence.
    #[inline(always)]
    pub(super) fn cross_adapter(&self) -> Option<&CrossAdapter> {
        match self {
            Self::CrossAdapter(cross) => Some(cross),
            _ => None,
        }
    }

    /// Where a fence that may be shared, or a native one, has the number of its binding; `None` for
    /// a private monitored fence.
    pub(super) fn binding(&self) -> Option<&Atomic<u32>> {
        match self {
            Self::Native(native) => Some(native.on_adapter.number()),
            _ => self.place().binding(),
        }
    }
}

impl CurrentValue for Words {
    #[inline(always)]
    fn load(&self) -> u64 {
        match self {
            Self::Native(native) => native.place.load(),
            // Those of others are in system memory for good.
            _ => load_acquire(self.place().word()),
        }
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        match self {
            Self::Native(native) => native.store(value, CurrentValueUpdate::Store),
            _ => store_release(self.place().word(), value),
        }
    }

    fn store_always_signaled(&self) {
        match self {
            Self::Native(native) => native.store(u64::MAX, CurrentValueUpdate::AlwaysSignaled),
            _ => store_release(self.place().word(), u64::MAX),
        }
    }
}

/// The words of a fence, which the native fence of one adapter stores.
pub(super) struct StoredBy<'a> {
    pub(super) words: &'a Words,
    pub(super) part: &'a NativePart,
}

impl CurrentValue for StoredBy<'_> {
    fn load(&self) -> u64 {
        self.words.load()
    }

    fn store(&self, value: u64) {
        self.part.store(self.words.place().word(), value);
    }
}

impl MonitoredValue for NativeFence {
    fn load(&self) -> u64 {
        let page = self.monitored_page();

        page.map_or(NOBODY_WAITS, |page| page.load(self.monitored_index()))
    }

    fn store(&self, value: u64) {
        if let Some(page) = self.monitored_page() {
            page.store_by(self.monitored_index(), value, |word| {
                self.on_adapter
                    .store_monitored(word, value, self.place.word());
            });
        }
    }
}
