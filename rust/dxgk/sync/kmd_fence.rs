// SPDX-License-Identifier: GPL-2.0

//! What the KMD of one adapter has of a native fence.
//!
//! The KMD stores both values, because it has to tell its engines. If it cannot be entered, it runs
//! nothing: then the OS part stores them itself. If it fails its engines may not know of a value,
//! and somebody could wait for ever: then the adapter is stopped, and all its fences are signaled
//! for good (FEN-108). Nothing is tried again.

use super::native_interrupts::{
    Count,
    Interrupt, //
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
            NativeFenceType,
            OpenNativeFenceArgs,
            PrivateData,
            SystemWords, //
        },
        object::{
            self,
            native_fence::ConnectedFenceDoorbell,
            NotUpdated, //
        },
        types::{
            KmdResult,
            NativeFenceId, //
        },
    },
    dxgk::{
        adapter::Adapter,
        stats::next_id,
        vidmm::{
            fence_page::FencePage,
            paging_process::SystemPage, //
        }, //
    },
    error::DxgResult,
    logic::fence_value,
    platform::{
        load_acquire,
        store_release,
        Word64, //
    },
};
use kernel::sync::{
    atomic::Atomic,
    Arc, //
};

/// What the KMD of one adapter has of a native fence, and what tells of its interrupts.
pub(crate) struct KmdFence {
    kmd: Arc<object::NativeFence>,
    /// Both words in the paging process. They go after the fence.
    _system: Option<[SystemPage; 2]>,
    interrupt: Arc<Interrupt>,
    adapter: Arc<Adapter>,
}

/// A native fence as a device of one adapter opens it.
#[derive(Clone, Copy)]
pub(crate) struct NativeView<'a> {
    pub(in crate::dxgk) kmd: &'a KmdFence,
    /// The page that MonitoredValue is in. Its place there is that of CurrentValue.
    pub(in crate::dxgk) monitored: Option<&'a FencePage>,
}

impl KmdFence {
    /// CreateNativeFence. MonitoredValue, which is `monitored_value`, is in its place, and
    /// CurrentValue too: both at one offset in their pages.
    ///
    /// Context: may sleep, no spinlock held.
    pub(super) fn new(
        adapter: &Arc<Adapter>,
        (pages, offset): ([&FencePage; 2], u64),
        monitored_value: u64,
        ty: NativeFenceType,
        private_data: &mut PrivateData,
    ) -> DxgResult<Self> {
        let interrupt = Interrupt::new(&adapter.native_interrupts)?;
        let callbacks: Arc<dyn NativeFenceCallbacks> = interrupt.clone();
        let system = match adapter.shows_native_fences() {
            Some(process) => {
                let [current, monitored] = pages;

                Some([process.show(current)?, process.show(monitored)?])
            }
            None => None,
        };
        let args = CreateNativeFenceArgs {
            id: NativeFenceId(next_id()),
            callbacks: &callbacks,
            monitored_value,
            ty,
            system: system.as_ref().map_or(SystemWords::default(), |pages| {
                let [current_value, monitored_value] =
                    pages.each_ref().map(|page| page.address(offset));

                SystemWords {
                    current_value,
                    monitored_value,
                }
            }),
        };
        let class = Passive::here();

        Ok(Self {
            kmd: object::NativeFence::create(&adapter.port, &class, &args, private_data)?,
            _system: system,
            interrupt,
            adapter: adapter.clone(),
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

    /// From now on engines that store to it ring the doorbell of `other`, which is on another
    /// adapter.
    ///
    /// Context: may sleep, no spinlock held.
    pub(super) fn connect(&self, other: &Self) -> KmdResult<ConnectedFenceDoorbell> {
        ConnectedFenceDoorbell::connect(&self.kmd, &other.kmd, &Passive::here())
    }

    /// Where the number of its binding is.
    pub(super) fn number(&self) -> &Atomic<u32> {
        self.interrupt.number()
    }

    /// Traces call its fence so.
    pub(super) fn name(&self, fence: u64) {
        self.interrupt.name(fence);
    }

    /// Whether logs say what was signalled, and not the values.
    #[inline(always)]
    pub(super) fn is_optimized(&self) -> bool {
        self.interrupt.is_optimized()
    }

    /// Counts something for the adapter, so often.
    pub(super) fn add(&self, what: Count, times: u64) {
        self.interrupt.add(what, times);
    }

    /// Its interrupt is looked at now: a later one has to be told again. Whether it was raised.
    pub(super) fn begin_look(&self) -> bool {
        self.interrupt.take()
    }

    /// The look has released nobody.
    pub(super) fn was_spurious(&self) {
        self.add(Count::Spurious, 1);
    }

    /// UpdateCurrentValuesFromCpu (FEN-102, FEN-104). The fence lock is held.
    pub(super) fn store_under_lock(&self, word: &Word64, value: u64, how: CurrentValueUpdate) {
        self.update(&Dispatch::under_lock(), word, value, how);
    }

    /// UpdateCurrentValuesFromCpu without the fence lock, for a value that is stored already, or
    /// for the one that stays for ever.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn tell(&self, word: &Word64, how: CurrentValueUpdate) {
        let value = match how {
            CurrentValueUpdate::AlwaysSignaled => u64::MAX,
            _ => load_acquire(word),
        };

        Dispatch::below(&mut Passive::here(), |class| {
            self.update(class, word, value, how);
        });
    }

    fn update(&self, class: &Dispatch, word: &Word64, value: u64, how: CurrentValueUpdate) {
        let result = self.call(|kmd| kmd.update_current_value(class, value, word, how));

        // A KMD that cannot be entered runs nothing that could be told.
        if result.is_err() && how != CurrentValueUpdate::NotificationOnly {
            store_release(word, value);
        }
        self.look_at(result);
    }

    /// An update, unless one has failed before.
    fn call(
        &self,
        update: impl FnOnce(&object::NativeFence) -> Result<(), NotUpdated>,
    ) -> Result<(), NotUpdated> {
        match self.adapter.has_failed() {
            true => Err(NotUpdated::NotEntered),
            false => update(&self.kmd),
        }
    }

    /// What follows when the KMD has failed. In any context; touches atomics and queues work only.
    fn look_at(&self, result: Result<(), NotUpdated>) {
        if result == Err(NotUpdated::Failed) {
            self.add(Count::FailedUpdates, 1);
            self.adapter.native_fences_failed();
        }
    }

    /// UpdateMonitoredValues of a fence whose CurrentValue is in `current_value`. The fence lock is
    /// held.
    pub(super) fn store_monitored(&self, word: &Word64, value: u64, current_value: &Word64) {
        self.add(Count::MonitoredUpdates, 1);

        let result = self.call(|kmd| kmd.update_monitored_value(value, word, current_value));

        if result.is_err() {
            // For an engine that is on its way out.
            fence_value::store_monitored(word, value);
        }
        self.look_at(result);
    }
}
