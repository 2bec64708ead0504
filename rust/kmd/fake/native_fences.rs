// SPDX-License-Identifier: GPL-2.0

//! The native fences of a double, so that a test can do what a GPU does with them: store a value
//! and raise the interrupt.
//!
//! A test shares this with the double by
//! [`Behaviour::native_fences`](super::Behaviour::native_fences), and names a fence by its turn.

use super::interrupts::Interrupts;
use crate::{
    ddi::native_fence::{
        CreateNativeFenceArgs,
        CurrentValueUpdate,
        FenceUpdate,
        NativeFenceCallbacks,
        PrivateData,
        SystemWords, //
    },
    platform::{
        self,
        full_fence,
        Boxed,
        Shared,
        ShortLock,
        Word32, //
    }, //
};

/// How many fences there can be in one test.
const FENCES: usize = 8;

/// What the double keeps of a fence.
struct Fence {
    cookie: u64,
    callbacks: Shared<dyn NativeFenceCallbacks>,
    system: SystemWords,
}

/// The native fences of one double.
pub struct NativeFences {
    /// How it tells.
    pub interrupts: Interrupts,
    fences: ShortLock<Boxed<[Option<Fence>; FENCES]>>,
    /// How many of each update there were.
    monitored: Word32,
    current: Word32,
    notifications: Word32,
}

impl NativeFences {
    /// None; `None` if there is no memory.
    pub fn new() -> Option<Self> {
        Some(Self {
            interrupts: Interrupts::new()?,
            fences: platform::short_lock!(platform::none_array()?, "fake::NativeFences::fences")?,
            monitored: platform::word32(0),
            current: platform::word32(0),
            notifications: platform::word32(0),
        })
    }

    /// The double has made one.
    pub(super) fn add(&self, cookie: u64, fence: &CreateNativeFenceArgs<'_>) {
        let mut fences = self.fences.lock();

        if let Some(place) = fences.iter_mut().find(|place| place.is_none()) {
            *place = Some(Fence {
                cookie,
                callbacks: fence.callbacks.clone(),
                system: fence.system,
            });
        }
    }

    /// One is destroyed.
    pub(super) fn remove(&self, cookie: u64) {
        let removed = {
            let mut fences = self.fences.lock();
            let is_it = |place: &&mut Option<Fence>| {
                place.as_ref().is_some_and(|fence| fence.cookie == cookie)
            };

            fences.iter_mut().find(is_it).and_then(Option::take)
        };

        drop(removed);
    }

    /// What the double does with the data of a client: its bytes, each with other bits.
    pub(super) fn answer(private_data: &mut PrivateData) {
        for byte in private_data {
            *byte = !*byte;
        }
    }

    pub(super) fn update_monitored(&self, updates: &[FenceUpdate<'_>]) {
        for update in updates {
            platform::store_release(update.word, update.value);
            platform::fetch_add(&self.monitored, 1);
        }
        // ORDERING: between steps A3 and A4 of fences.md section 3.4.
        full_fence();
    }

    pub(super) fn update_current(&self, updates: &[FenceUpdate<'_>], how: CurrentValueUpdate) {
        for update in updates {
            if how == CurrentValueUpdate::NotificationOnly {
                platform::fetch_add(&self.notifications, 1);
            } else {
                platform::store_release(update.word, update.value);
                platform::fetch_add(&self.current, 1);
            }
        }
    }

    /// Raises the interrupt of the fence that was made at this turn, from 0, among those that are
    /// left. False if there is none.
    pub fn signal(&self, turn: usize) -> bool {
        let callbacks = {
            let fences = self.fences.lock();

            fences
                .iter()
                .flatten()
                .nth(turn)
                .map(|fence| fence.callbacks.clone())
        };

        callbacks.is_some_and(|callbacks| self.interrupts.raise(|class| callbacks.signaled(class)))
    }

    /// Where that fence is in the paging process; `None` if there is no such fence.
    pub fn system_words(&self, turn: usize) -> Option<SystemWords> {
        let fences = self.fences.lock();
        let found = fences.iter().flatten().nth(turn);

        found.map(|fence| fence.system)
    }

    /// How many updates of MonitoredValue there were.
    pub fn monitored_updates(&self) -> u32 {
        platform::load32_acquire(&self.monitored)
    }

    /// How many updates of CurrentValue there were.
    pub fn current_updates(&self) -> u32 {
        platform::load32_acquire(&self.current)
    }

    /// How many updates were notifications only.
    pub fn notifications(&self) -> u32 {
        platform::load32_acquire(&self.notifications)
    }
}
