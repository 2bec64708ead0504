// SPDX-License-Identifier: GPL-2.0

//! Native fences: where processes see them, which queues wait for them, and whom their interrupts
//! tell (gpu.md section 5).
//!
//! A store to CurrentValue and a queue that begins to wait meet in one word for each engine: the
//! list of its queues that wait. Who stores looks at the words after the store, the engine looks at
//! CurrentValue after it has put the queue into the list, and both have a full barrier in between.
//! So one of them sees the other (GPU-53). Who stores puts the fence into the list of what the
//! engine has to look at, and rings.
//!
//! LOCK: `processes`, `fences` and the places of a process are leaves. A place in the list of an
//! engine is taken inside of that list. CPU signals come here with the lock of their fence held.

use super::{
    cmp::ENGINES,
    config::MonitoredValues,
    fence_doorbells::Others,
    listed::{
        List,
        Listed, //
    },
    system_space::SystemSpace, //
};
use crate::{
    ddi::{
        class::DeviceInterrupt,
        index_map::{
            IndexMap,
            NewNode,
            SlotState, //
        },
        native_fence::{
            CreateNativeFenceArgs,
            CurrentValueUpdate,
            FenceDoorbell,
            FenceUpdate,
            NativeFenceCallbacks,
            OpenNativeFenceArgs,
            SystemWords, //
        },
        slab::{
            self,
            SharedSlab,
            Slab, //
        },
        types::{
            FenceDoorbellCookie,
            KmdError,
            KmdResult,
            NativeFenceCookie,
            OpenNativeFenceCookie, //
        }, //
    },
    engine::{
        fences::{
            FenceIndex,
            Fences,
            NativeFence, //
        },
        run_list, //
    },
    platform::{
        self,
        full_fence,
        BoxedWakeup,
        Shared,
        ShortLock,
        Word32,
        Word64, //
    }, //
};

/// What wakes an engine, and the fences that it has to look at then.
pub struct Bell {
    pub(super) wakeup: BoxedWakeup,
    stored: ShortLock<List<OnEngine>>,
}

impl Bell {
    /// `None` if there is no memory. May sleep.
    pub fn new() -> Option<Shared<Self>> {
        platform::shared(Self {
            wakeup: platform::wakeup()?,
            stored: platform::short_lock!(List::new(), "soft::Bell::stored")?,
        })
    }

    /// The next fence that was stored to.
    pub fn pop(&self) -> Option<(Shared<OnEngine>, FenceIndex)> {
        self.stored.lock().pop()
    }

    /// The engine has to look at a fence.
    ///
    /// Context: does not sleep.
    pub(super) fn push(&self, fence: &Shared<OnEngine>) {
        if !core::mem::replace(&mut fence.place.lock().listed, true) {
            self.stored.lock().push(fence);
        }
        self.wakeup.ring();
    }
}

/// A fence on one engine.
pub struct OnEngine {
    /// Its name.
    index: Word32,
    /// The queues of the engine that wait for it, as [`run_list::List::to_word`] has them. The
    /// engine alone stores it.
    waiting: Word64,
    place: ShortLock<Place>,
}

/// Its place in the list of what the engine has to look at.
struct Place {
    listed: bool,
    next: Option<Shared<OnEngine>>,
}

impl Listed for OnEngine {
    type Told = FenceIndex;

    fn follow_by(&self, next: &Shared<Self>) {
        self.place.lock().next = Some(next.clone());
    }

    fn unlist(&self) -> (Option<Shared<Self>>, FenceIndex) {
        let mut place = self.place.lock();

        place.listed = false;
        (place.next.take(), self.index())
    }
}

impl OnEngine {
    fn index(&self) -> FenceIndex {
        FenceIndex(platform::load32_acquire(&self.index))
    }
}

/// The index of a fence that has none yet.
const NAMELESS: u32 = u32::MAX;

/// A native fence.
pub struct Fence {
    callbacks: Shared<dyn NativeFenceCallbacks>,
    engines: [Option<Shared<OnEngine>>; ENGINES],
    /// 1 once waits pass and signals store nothing (FEN-104).
    always_signaled: Word32,
    /// MonitoredValue as the CMP has it.
    monitored_value: Word64,
    /// Where the CMP reaches both words.
    system: SystemWords,
    /// On other adapters.
    others: Others,
}

/// A fence as a process sees it.
pub type SeenFence = NativeFence<Shared<Fence>>;

/// A word of a fence, as a process sees it.
struct Seen {
    va: u64,
    is_current_value: bool,
    fence: SeenFence,
    /// How many devices have it open.
    opens: u32,
}

/// What a process sees, by address.
struct Places(ShortLock<IndexMap<Seen>>);

/// Names a word by its address. All that the OS part shows to a process are within 32 GiB, so that
/// no two have the same name; if they had, the second one would be refused.
fn name(va: u64) -> u32 {
    // CAST: the lower half on purpose.
    (va / 8) as u32
}

impl Places {
    fn new() -> Option<Self> {
        let nothing = platform::short_lock!(IndexMap::new(), "soft::NativeFences::places")?;

        Some(Self(nothing))
    }

    /// The fence that has a word of this kind there.
    fn find(&self, va: u64, is_current_value: bool) -> Option<SeenFence> {
        let places = self.0.lock();
        let seen = places.get(name(va))?;

        (seen.va == va && seen.is_current_value == is_current_value).then(|| seen.fence.clone())
    }

    /// One more device sees a word; `None` if there is no memory. May sleep.
    fn add(&self, va: u64, is_current_value: bool, fence: &SeenFence) -> Option<()> {
        let name = name(va);
        let mut new = None;
        let mut seen = Some(Seen {
            va,
            is_current_value,
            fence: fence.clone(),
            opens: 1,
        });

        loop {
            // Dropped after the lock.
            let _freed;
            let mut places = self.0.lock();

            if let Some(known) = places.get_mut(name) {
                let is_same = known.va == va && known.fence.index == fence.index;

                // OVERFLOW: each is a device.
                known.opens = known.opens.wrapping_add(u32::from(is_same));
                return is_same.then_some(());
            }
            if places.slot_state(name) == SlotState::Missing {
                _freed = new.take().and_then(|node| places.insert_node(name, node));
                if let Some(missing) = places.missing_node(name) {
                    drop(places);
                    new = Some(NewNode::new(missing)?);
                    continue;
                }
            }
            places.put(name, &mut seen);
            return Some(());
        }
    }

    /// One device less.
    fn remove(&self, va: u64) {
        let name = name(va);
        let removed = {
            let mut places = self.0.lock();
            let opens = places.get_mut(name).map_or(0, |seen| {
                // OVERFLOW: this one was counted.
                seen.opens = seen.opens.wrapping_sub(1);
                seen.opens
            });

            match opens {
                0 => places.take(name),
                _ => None,
            }
        };

        drop(removed);
    }
}

/// A fence that a device has open.
#[derive(Clone, Copy)]
struct Open {
    process: u32,
    current_value: u64,
    monitored_value: u64,
    fence: FenceIndex,
}

/// The native fences of an adapter, and its processes.
pub struct NativeFences {
    bells: [Option<Shared<Bell>>; ENGINES],
    monitored_values: MonitoredValues,
    /// Where the CMP reaches their words; `None` if the OS part reaches them for it.
    system: Option<Shared<SystemSpace>>,
    processes: SharedSlab<Shared<Places>>,
    fences: SharedSlab<Shared<Fence>>,
    opens: SharedSlab<Open>,
}

/// The number that a cookie is.
fn number(cookie: u64) -> u32 {
    u32::try_from(cookie).unwrap_or(u32::MAX)
}

impl NativeFences {
    /// None, of an adapter with these engines; `None` if there is no memory. May sleep.
    pub fn new(
        bells: [Option<Shared<Bell>>; ENGINES],
        monitored_values: MonitoredValues,
        system: Option<Shared<SystemSpace>>,
    ) -> Option<Self> {
        Some(Self {
            bells,
            monitored_values,
            system,
            processes: platform::short_lock!(Slab::new()?, "soft::NativeFences::processes")?,
            fences: platform::short_lock!(Slab::new()?, "soft::NativeFences::fences")?,
            opens: platform::short_lock!(Slab::new()?, "soft::NativeFences::opens")?,
        })
    }

    /// A new process; `None` if there is no memory. May sleep.
    pub fn add_process(&self) -> Option<u32> {
        slab::insert(&self.processes, platform::shared(Places::new()?)?)
    }

    /// A process is gone. May sleep.
    pub(super) fn remove_process(&self, process: u32) {
        let removed = self.processes.lock().remove(process);

        drop(removed);
    }

    /// CreateNativeFence. InvalidParameter if the CMP does not reach the words. May sleep.
    pub fn create(&self, args: &CreateNativeFenceArgs<'_>) -> KmdResult<NativeFenceCookie> {
        if let Some(space) = &self.system {
            let monitored_value = space.load(args.system.monitored_value);

            if monitored_value != Some(args.monitored_value)
                || space.load(args.system.current_value).is_none()
            {
                return Err(KmdError::InvalidParameter);
            }
        }

        let fence = self.new_fence(args).ok_or(KmdError::NoMemory)?;
        let index = slab::insert(&self.fences, fence.clone()).ok_or(KmdError::NoMemory)?;

        for on_engine in fence.engines.iter().flatten() {
            platform::cmpxchg(&on_engine.index, NAMELESS, index);
        }
        Ok(NativeFenceCookie(index.into()))
    }

    /// A fence with its parts on all engines, which has no name yet.
    fn new_fence(&self, args: &CreateNativeFenceArgs<'_>) -> Option<Shared<Fence>> {
        let mut engines = [const { None }; ENGINES];

        for (place, _) in engines.iter_mut().zip(self.bells.iter().flatten()) {
            let nowhere = Place {
                listed: false,
                next: None,
            };

            *place = Some(platform::shared(OnEngine {
                index: platform::word32(NAMELESS),
                waiting: platform::word64(0),
                place: platform::short_lock!(nowhere, "soft::OnEngine::place")?,
            })?);
        }
        platform::shared(Fence {
            callbacks: args.callbacks.clone(),
            engines,
            always_signaled: platform::word32(0),
            monitored_value: platform::word64(args.monitored_value),
            system: args.system,
            others: Others::new()?,
        })
    }

    /// Whether the CMP does not reach the words of a fence any more, which it may until
    /// DestroyNativeFence has returned.
    pub(super) fn has_lost(&self, index: FenceIndex) -> bool {
        let (Some(space), Some(fence)) = (&self.system, self.fence(index)) else {
            return false;
        };
        let SystemWords {
            current_value,
            monitored_value,
        } = fence.system;

        space.has_lost(current_value) || space.has_lost(monitored_value)
    }

    /// DestroyNativeFence, when no queue waits for it any more. May sleep.
    pub(super) fn remove(&self, index: FenceIndex) {
        let removed = self.fences.lock().remove(index.0);

        drop(removed);
    }

    /// OpenNativeFence, in the process with this number. May sleep.
    pub fn open(
        &self,
        cookie: NativeFenceCookie,
        process: u32,
        args: &OpenNativeFenceArgs,
    ) -> KmdResult<OpenNativeFenceCookie> {
        let index = FenceIndex(number(cookie.0));
        let places = self.places(process).ok_or(KmdError::InvalidParameter)?;

        let fence = self
            .seen(index, args.monitored_value)
            .ok_or(KmdError::InvalidParameter)?;
        let open = Open {
            process,
            current_value: args.current_value,
            monitored_value: args.monitored_value,
            fence: index,
        };

        places
            .add(args.current_value, true, &fence)
            .ok_or(KmdError::NoMemory)?;
        if places.add(args.monitored_value, false, &fence).is_none() {
            places.remove(args.current_value);
            return Err(KmdError::NoMemory);
        }
        match slab::insert(&self.opens, open) {
            Some(number) => Ok(OpenNativeFenceCookie(number.into())),
            None => {
                places.remove(args.current_value);
                places.remove(args.monitored_value);
                Err(KmdError::NoMemory)
            }
        }
    }

    /// CloseNativeFence. Queues of the process that wait for it find that they may not. May sleep.
    pub fn close(&self, cookie: OpenNativeFenceCookie) {
        let removed = self.opens.lock().remove(number(cookie.0));
        let Some(removed) = removed else {
            return;
        };
        let Open {
            process,
            current_value,
            monitored_value,
            fence,
        } = removed.object;

        if let Some(places) = self.places(process) {
            places.remove(current_value);
            places.remove(monitored_value);
        }
        // A queue that has found the fence before has said that it waits for it: the lock of the
        // places is between the two.
        self.stored(fence);
    }

    fn places(&self, process: u32) -> Option<Shared<Places>> {
        self.processes.lock().get(process).cloned()
    }

    fn fence(&self, index: FenceIndex) -> Option<Shared<Fence>> {
        self.fences.lock().get(index.0).cloned()
    }

    /// The same by what the OS part calls it by.
    pub(super) fn by_cookie(&self, cookie: NativeFenceCookie) -> Option<Shared<Fence>> {
        self.fence(FenceIndex(number(cookie.0)))
    }

    /// Engines that store to a fence ring this doorbell from now on. May sleep.
    pub fn connect(
        &self,
        cookie: NativeFenceCookie,
        doorbell: &Shared<dyn FenceDoorbell>,
    ) -> KmdResult<FenceDoorbellCookie> {
        let fence = self.by_cookie(cookie).ok_or(KmdError::InvalidParameter)?;
        let place = fence.others.add(doorbell).ok_or(KmdError::NoMemory)?;

        // CAST: a few, behind 32 bits.
        Ok(FenceDoorbellCookie(((place as u64) << 32) | cookie.0))
    }

    /// They do not ring it any more. May sleep.
    pub fn disconnect(&self, doorbell: FenceDoorbellCookie) {
        // CAST: the lower half is the fence, the upper one a place.
        let (fence, place) = (doorbell.0 as u32, (doorbell.0 >> 32) as usize);

        if let Some(fence) = self.fence(FenceIndex(fence)) {
            fence.others.remove(place);
        }
    }

    /// A fence as a process sees it that has MonitoredValue there.
    pub fn seen(&self, index: FenceIndex, monitored_value: u64) -> Option<SeenFence> {
        Some(NativeFence {
            index,
            monitored_value,
            handle: self.fence(index)?,
        })
    }

    fn on_engine(&self, index: FenceIndex, engine: usize) -> Option<Shared<OnEngine>> {
        self.fences
            .lock()
            .get(index.0)?
            .engines
            .get(engine)?
            .clone()
    }

    /// The queues of an engine that wait for a fence.
    pub fn waiting(&self, index: FenceIndex, engine: usize) -> run_list::List {
        self.on_engine(index, engine)
            .map_or(run_list::List::EMPTY, |fence| {
                run_list::List::from_word(platform::load_acquire(&fence.waiting))
            })
    }

    /// Changes that list. The engine does.
    pub fn set_waiting(&self, index: FenceIndex, engine: usize, queues: run_list::List) {
        if let Some(fence) = self.on_engine(index, engine) {
            platform::store_release(&fence.waiting, queues.to_word());
        }
    }

    /// CurrentValue of the fence was stored, and all processors see that.
    pub fn stored(&self, index: FenceIndex) {
        if let Some(fence) = self.fence(index) {
            self.ring(&fence);
        }
    }

    /// Has the engines look whose queues wait for the fence.
    pub(super) fn ring(&self, fence: &Fence) {
        for (bell, on_engine) in self.bells.iter().zip(&fence.engines) {
            if let (Some(bell), Some(on_engine)) = (bell, on_engine) {
                if platform::load_acquire(&on_engine.waiting) != 0 {
                    bell.push(on_engine);
                }
            }
        }
    }

    /// Raises the interrupt of a fence.
    pub(super) fn signaled(&self, class: &DeviceInterrupt, index: FenceIndex) {
        if let Some(fence) = self.fence(index) {
            fence.callbacks.signaled(class);
        }
    }

    /// Stores a word of a fence. The CMP does so at its address in the paging process, if it has
    /// one there: InvalidParameter if no word is there.
    fn store(&self, update: &FenceUpdate<'_>, va: fn(&SystemWords) -> u64) -> KmdResult {
        match &self.system {
            None => platform::store_release(update.word, update.value),
            Some(space) => self
                .fence(FenceIndex(number(update.fence.0)))
                .and_then(|fence| space.store(va(&fence.system), update.value))
                .ok_or(KmdError::InvalidParameter)?,
        }
        Ok(())
    }

    /// UpdateMonitoredValues (FEN-73). Where the engines read MonitoredValue in memory, the barrier
    /// is all that it takes. InvalidParameter if the word that the CMP has stored is not that of
    /// the OS part, which alone stores it (FEN-59).
    ///
    /// Context: does not sleep.
    pub fn update_monitored_values(
        &self,
        class: &DeviceInterrupt,
        updates: &[FenceUpdate<'_>],
    ) -> KmdResult {
        for update in updates {
            self.store(update, |words| words.monitored_value)?;
            if self.system.is_some() && platform::load_acquire(update.word) != update.value {
                return Err(KmdError::InvalidParameter);
            }
            self.copy_monitored_value(update);
        }
        // ORDERING: between steps A3 and A4 of fences.md section 3.4. Pairs with the barrier
        // between a store to CurrentValue and the look at MonitoredValue.
        full_fence();
        for update in updates {
            self.look_for(class, update)?;
        }
        Ok(())
    }

    /// Step 1 of FEN-75, if the CMP has copies. Step 2 is the barrier.
    fn copy_monitored_value(&self, update: &FenceUpdate<'_>) {
        if self.monitored_values == MonitoredValues::Shadow {
            if let Some(fence) = self.fence(FenceIndex(number(update.fence.0))) {
                platform::store_release(&fence.monitored_value, update.value);
            }
        }
    }

    /// Step 3 of FEN-75: an engine that has not seen the copy has stored a value before, and the
    /// CMP interrupts for it.
    fn look_for(&self, class: &DeviceInterrupt, update: &FenceUpdate<'_>) -> KmdResult {
        if self.monitored_values == MonitoredValues::Shadow {
            let index = FenceIndex(number(update.fence.0));
            let current_value = match &self.system {
                None => Some(platform::load_acquire(update.current_value)),
                Some(space) => self
                    .fence(index)
                    .and_then(|fence| space.load(fence.system.current_value)),
            };

            if current_value.ok_or(KmdError::InvalidParameter)? > update.value {
                self.signaled(class, index);
            }
        }
        Ok(())
    }

    /// UpdateCurrentValuesFromCpu (FEN-102 to FEN-104). InvalidParameter if the CMP does not reach
    /// the word.
    ///
    /// Context: does not sleep.
    pub fn update_current_values(
        &self,
        updates: &[FenceUpdate<'_>],
        how: CurrentValueUpdate,
    ) -> KmdResult {
        for update in updates {
            let index = FenceIndex(number(update.fence.0));

            match how {
                CurrentValueUpdate::NotificationOnly => {}
                CurrentValueUpdate::Store => self.store(update, |words| words.current_value)?,
                CurrentValueUpdate::AlwaysSignaled => {
                    if let Some(fence) = self.fence(index) {
                        platform::cmpxchg(&fence.always_signaled, 0, 1);
                    }
                    // ORDERING: an engine that does not see this has stored before, or looks again
                    // behind its store (`Step::signal_fence`).
                    full_fence();
                    self.store(update, |words| words.current_value)?;
                }
            }
        }
        // ORDERING: step 1 of GPU-53.
        full_fence();
        for update in updates {
            self.stored(FenceIndex(number(update.fence.0)));
        }
        Ok(())
    }
}

impl Fences for NativeFences {
    type Handle = Shared<Fence>;

    fn by_current_value(&self, process: u16, va: u64) -> Option<SeenFence> {
        self.places(process.into())?.find(va, true)
    }

    fn by_monitored_value(&self, process: u16, va: u64) -> Option<SeenFence> {
        self.places(process.into())?.find(va, false)
    }

    fn monitored_value(&self, fence: &SeenFence) -> Option<u64> {
        (self.monitored_values == MonitoredValues::Shadow)
            .then(|| platform::load_acquire(&fence.handle.monitored_value))
    }

    fn is_always_signaled(&self, fence: &SeenFence) -> bool {
        platform::load32_acquire(&fence.handle.always_signaled) != 0
    }

    fn stored(&self, fence: &SeenFence) {
        self.ring(&fence.handle);
        fence.handle.others.ring();
    }
}
