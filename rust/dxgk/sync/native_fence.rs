// SPDX-License-Identifier: GPL-2.0

//! What a native fence has more than a monitored fence: MonitoredValue, and what the KMD has made
//! of it (fences.md section 3).
//!
//! The KMD stores both values, because it has to tell its engines. If it cannot be entered, it runs
//! nothing: then the OS part stores them itself.
//!
//! LOCK: that of the fence, for everything that stores. The KMD is called under it (FEN-74).

use super::{
    fence_storage::{
        CountedPage,
        FenceStorage, //
    },
    native_interrupts::{
        Count,
        Interrupt,
        NativeInterrupts, //
    }, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        native_fence::{
            CreateNativeFenceArgs,
            CurrentValueUpdate,
            NativeFenceCallbacks,
            OpenNativeFenceArgs,
            PrivateData, //
        },
        object,
        port::Port,
        types::NativeFenceId, //
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
        full_fence,
        load_acquire,
        store_release,
        Word64, //
    },
    sys::mem::value_page::ValuePage,
};
use core::mem::size_of;
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    }, //
};

/// The native part of a fence. Dropped with it: first of all the KMD destroys it, and only then its
/// words may become those of another fence (FEN-66).
pub(crate) struct NativeFence {
    kmd: Arc<object::NativeFence>,
    interrupt: Arc<Interrupt>,
    /// Where CurrentValue is.
    pub(super) place: FenceStorage,
    /// The page of MonitoredValue, if CurrentValue has one of its own.
    monitored: Option<CountedPage>,
}

impl NativeFence {
    /// CreateNativeFence, of a fence whose CurrentValue is in `place`.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn new(
        port: &Arc<Port>,
        interrupts: &Arc<NativeInterrupts>,
        id: u64,
        place: FenceStorage,
        private_data: &mut PrivateData,
    ) -> DxgResult<Self> {
        let monitored = match place.common_monitored() {
            Some(_) => None,
            None => {
                let page = CountedPage::new()?;

                store_release(page.page.word(0), NOBODY_WAITS);
                Some(page)
            }
        };
        let interrupt = Interrupt::new(interrupts)?;
        let callbacks: Arc<dyn NativeFenceCallbacks> = interrupt.clone();
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(id),
            callbacks: &callbacks,
        };
        let kmd = object::NativeFence::create(port, &Passive::here(), &args, private_data)?;

        Ok(Self {
            kmd,
            interrupt,
            place,
            monitored,
        })
    }

    /// OpenNativeFence on a device that sees the words there.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn open(
        &self,
        device: &Arc<object::Device>,
        addresses: &OpenNativeFenceArgs,
        private_data: &mut PrivateData,
    ) -> DxgResult<object::OpenNativeFence> {
        let class = Passive::here();

        Ok(object::OpenNativeFence::open(
            &self.kmd,
            device,
            &class,
            addresses,
            private_data,
        )?)
    }

    /// The page that MonitoredValue is in. Its place there is that of CurrentValue.
    pub(super) fn monitored_page(&self) -> Option<&Arc<ValuePage>> {
        let counted = self.place.common_monitored().or(self.monitored.as_ref());

        counted.map(|counted| &counted.page)
    }

    /// MonitoredValue in the kernel's mapping.
    fn monitored_word(&self) -> Option<&Word64> {
        // CAST: an offset in a page.
        let word = self.place.offset() as usize / size_of::<u64>();

        Some(self.monitored_page()?.word(word))
    }

    /// Its interrupt is looked at now: a later one has to be told again. Whether it was raised.
    pub(super) fn begin_look(&self) -> bool {
        self.interrupt.take()
    }

    /// The look has released nobody.
    pub(super) fn was_spurious(&self) {
        self.interrupt.count(Count::Spurious);
    }

    /// UpdateCurrentValuesFromCpu (FEN-102, FEN-104). The fence lock is held.
    pub(super) fn store(&self, value: u64, how: CurrentValueUpdate) {
        let class = Dispatch::under_lock();
        let word = self.place.word();

        if self
            .kmd
            .update_current_value(&class, value, word, how)
            .is_err()
        {
            store_release(word, value);
        }
    }
}

/// The words of a fence.
pub(crate) enum Words {
    /// CurrentValue of a monitored fence.
    Monitored(FenceStorage),
    /// Both of a native fence.
    Native(KBox<NativeFence>),
}

impl Words {
    /// Where CurrentValue is.
    #[inline(always)]
    pub(super) fn place(&self) -> &FenceStorage {
        match self {
            Self::Monitored(place) => place,
            Self::Native(native) => &native.place,
        }
    }

    /// What it has if it is a native fence.
    #[inline(always)]
    pub(super) fn native(&self) -> Option<&NativeFence> {
        match self {
            Self::Monitored(_) => None,
            Self::Native(native) => Some(native),
        }
    }

    /// Where a fence that may be shared, or a native one, has the number of its binding; `None` for
    /// a private monitored fence.
    pub(super) fn binding(&self) -> Option<&Atomic<u32>> {
        match self {
            Self::Monitored(place) => place.binding(),
            Self::Native(native) => Some(native.interrupt.number()),
        }
    }
}

impl CurrentValue for Words {
    #[inline(always)]
    fn load(&self) -> u64 {
        load_acquire(self.place().word())
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        match self {
            Self::Monitored(place) => store_release(place.word(), value),
            Self::Native(native) => native.store(value, CurrentValueUpdate::Store),
        }
    }

    fn store_always_signaled(&self) {
        match self {
            Self::Monitored(place) => store_release(place.word(), u64::MAX),
            Self::Native(native) => native.store(u64::MAX, CurrentValueUpdate::AlwaysSignaled),
        }
    }
}

impl MonitoredValue for NativeFence {
    fn load(&self) -> u64 {
        self.monitored_word().map_or(NOBODY_WAITS, load_acquire)
    }

    fn store(&self, value: u64) {
        let Some(word) = self.monitored_word() else {
            return;
        };
        let class = Dispatch::under_lock();

        self.interrupt.count(Count::MonitoredUpdates);
        if self
            .kmd
            .update_monitored_value(&class, value, word)
            .is_err()
        {
            store_release(word, value);
            // ORDERING: as the KMD's, for an engine that is on its way out.
            full_fence();
        }
    }
}
