// SPDX-License-Identifier: GPL-2.0

//! What a test double saw, and which rule of the driver interface was broken first.
//!
//! Only atomics, so that the double may be called in every context class, and a wrong order of
//! calls is found rather than waited for.

use super::facts::APERTURE_PAGES;
use crate::{
    ddi::{
        paging::PagesOf,
        queue::Submission, //
    },
    platform::{
        self,
        Word32,
        Word64, //
    }, //
};
use core::array;

pub use crate::ddi::verifier::entry::Entry;

/// A rule that the OS part broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Broken {
    /// A call that is not a destroy, before StartDevice or after StopDevice.
    NotStarted = 1,
    /// A cookie that this KMD did not give, or of another kind, or that was destroyed before.
    BadCookie,
    /// Something was destroyed before what was made on it.
    ChildrenLeft,
    /// Two calls for one object at the same time, or one beside StopDevice.
    Together,
    /// RemoveDevice while something is left, or without StopDevice.
    NotEmpty,
    /// An entry of class P where it may not sleep, or one of class D where it might.
    WrongClass,
    /// More objects or calls than the double has room for: the test is too large.
    TooMany,
    /// A submission whose number does not follow that of the last one of its queue.
    OutOfOrder,
    /// More submissions of a queue at a time than the node takes.
    InFlight,
    /// Values that no entry may get: commands that are not aligned, entries beyond a table.
    BadValue,
    /// The aperture is to show something where it shows something, or nothing where it shows
    /// nothing, or what belongs to another allocation.
    Aperture,
    /// A context runs while its page tables change, or its root moves (MEM-56, MEM-59).
    NotIdle,
    /// Something leads to a page table that is not initialised (MEM-53).
    Uninitialised,
    /// A page table goes while engines may look at it, or with entries that are valid (MEM-56).
    TableInUse,
    /// An entry under a spinlock of the OS part (MEM-96).
    SpinLockHeld,
    /// A power state that it has already, or D3 with a context that runs or a doorbell that is
    /// connected, or a connection in D3.
    BadPower,
}

/// What a cookie stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    Process = 1,
    Device,
    Context,
    HwQueue,
    Doorbell,
    CpuEvent,
    NativeFence,
    OpenNativeFence,
    Allocation,
    Open,
}

/// How many objects there can be in one test, and how many calls are recorded.
const OBJECTS: usize = 48;
const CALLS: usize = 256;

/// An object: its kind, and the one or two it was made on, each by number from 1.
struct Slot {
    kind: Word32,
    parents: [Word32; 2],
    /// Somebody is in a call for it, one of class P or one of class D.
    busy: Word32,
    busy_short: Word32,
    /// Number of its last submission, if it takes any.
    submitted: Word64,
    /// Up to which it has completed them.
    completed: Word64,
    /// It is a context that is suspended, or a doorbell that is disconnected.
    rests: Word32,
}

/// The journal of one double. The test and the double share it.
pub struct Journal {
    slots: [Slot; OBJECTS],
    calls: [Word32; CALLS],
    count: Word32,
    broken: Word32,
    /// Calls are counted, but the first of them are forgotten when there are very many.
    forgets: Word32,
    /// 0 before StartDevice, then STARTED, then STOPPED, then REMOVED.
    stage: Word32,
    inside: Word32,
    /// 1 in D3.
    asleep: Word32,
    /// Which allocation each page of the aperture shows, by its cookie; 0 for none. Those of
    /// contexts have the bit `OF_CONTEXT`.
    aperture: [Word32; APERTURE_PAGES],
}

/// Marks cookies of context allocations.
const OF_CONTEXT: u32 = 1 << 31;

const STARTED: u32 = 1;
const STOPPED: u32 = 2;
const REMOVED: u32 = 3;

impl Journal {
    /// An empty journal.
    pub fn new() -> Self {
        let word = || platform::word32(0);

        Self {
            slots: array::from_fn(|_| Slot {
                kind: word(),
                parents: [word(), word()],
                busy: word(),
                busy_short: word(),
                submitted: platform::word64(0),
                completed: platform::word64(0),
                rests: word(),
            }),
            calls: array::from_fn(|_| word()),
            count: word(),
            broken: word(),
            forgets: word(),
            stage: word(),
            inside: word(),
            asleep: word(),
            aperture: array::from_fn(|_| word()),
        }
    }

    /// The entries so far, in order.
    pub fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        // CAST: 32 bits fit a usize.
        let count = platform::load32_acquire(&self.count) as usize;

        self.calls.iter().take(count).map(platform::load32_acquire)
    }

    /// How many calls of an entry there were.
    pub fn count(&self, entry: Entry) -> usize {
        // CAST: the number of the variant.
        self.entries().filter(|seen| *seen == entry as u32).count()
    }

    /// How many objects there are.
    pub fn alive(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| platform::load32_acquire(&slot.kind) != 0)
            .count()
    }

    /// The first rule that was broken, by its number in [`Broken`]; 0 for none.
    pub fn broken(&self) -> u32 {
        platform::load32_acquire(&self.broken)
    }

    /// Whether the KMD was removed and no rule was broken: what every test ends with.
    pub fn is_good_end(&self) -> bool {
        self.broken() == 0 && platform::load32_acquire(&self.stage) == REMOVED
    }

    /// Every entry begins with this.
    fn record(&self, entry: Entry) {
        if platform::may_sleep().is_some_and(|may_sleep| may_sleep != entry.is_passive()) {
            self.break_rule(Broken::WrongClass);
        }
        match platform::holds_spinlock() {
            Some(true) if !entry.is_under_lock() => self.break_rule(Broken::SpinLockHeld),
            Some(false) if entry.is_at_device_interrupt() => self.break_rule(Broken::WrongClass),
            _ => {}
        }

        // CAST: 32 bits fit a usize, and the number of the variant.
        let mut place = platform::fetch_add(&self.count, 1) as usize;

        if platform::load32_acquire(&self.forgets) != 0 {
            place %= CALLS;
        }
        match self.calls.get(place) {
            Some(call) => set(call, entry as u32),
            None => self.break_rule(Broken::TooMany),
        }
    }

    /// A test makes very many calls: only the last of them can be asked for.
    pub(super) fn forget_calls(&self) {
        set(&self.forgets, 1);
    }

    /// Values that no entry may get.
    pub(super) fn bad_value(&self) {
        self.break_rule(Broken::BadValue);
    }

    pub(super) fn break_rule(&self, rule: Broken) {
        // The first one counts. CAST: the number of the variant.
        platform::cmpxchg(&self.broken, 0, rule as u32);
    }

    /// A call begins that is not a destroy.
    pub(super) fn enter(&self, entry: Entry) -> Call<'_> {
        if platform::load32_acquire(&self.stage) != STARTED {
            self.break_rule(Broken::NotStarted);
        }
        self.enter_to_destroy(entry)
    }

    /// A destroy begins.
    pub(super) fn enter_to_destroy(&self, entry: Entry) -> Call<'_> {
        self.record(entry);
        platform::fetch_add(&self.inside, 1);
        Call(self)
    }

    pub(super) fn start(&self) {
        self.record(Entry::StartDevice);
        if !platform::cmpxchg(&self.stage, 0, STARTED) {
            self.break_rule(Broken::NotStarted);
        }
    }

    pub(super) fn stop(&self) {
        self.record(Entry::StopDevice);
        if platform::load32_acquire(&self.inside) != 0 {
            self.break_rule(Broken::Together);
        }
        if !platform::cmpxchg(&self.stage, STARTED, STOPPED) {
            self.break_rule(Broken::NotStarted);
        }
        // There is no aperture any more.
        for page in &self.aperture {
            set(page, 0);
        }
    }

    /// Nothing is inside, as far as a test calls no query at the same time.
    pub(super) fn check_alone(&self) {
        if platform::load32_acquire(&self.inside) != 0 {
            self.break_rule(Broken::Together);
        }
    }

    /// A KMD that failed to start is removed without StopDevice.
    pub(super) fn remove(&self, started: bool) {
        self.record(Entry::RemoveDevice);

        let from = if started { STOPPED } else { 0 };

        if self.alive() != 0 || !platform::cmpxchg(&self.stage, from, REMOVED) {
            self.break_rule(Broken::NotEmpty);
        }
    }

    /// A new object, on these others; its cookie.
    pub(super) fn create(&self, kind: Kind, parents: [u64; 2]) -> u64 {
        for (number, slot) in (1u64..).zip(&self.slots) {
            // CAST: the number of the variant.
            if platform::cmpxchg(&slot.kind, 0, kind as u32) {
                for (word, parent) in slot.parents.iter().zip(parents) {
                    set(word, u32::try_from(parent).unwrap_or(u32::MAX));
                }
                set(&slot.rests, u32::from(kind == Kind::Doorbell));
                return number;
            }
        }
        self.break_rule(Broken::TooMany);
        0
    }

    /// An object is gone.
    pub(super) fn destroy(&self, kind: Kind, cookie: u64) {
        let Some(slot) = self.find(kind, cookie) else {
            return;
        };
        let is_parent = |word| u64::from(platform::load32_acquire(word)) == cookie;

        if self
            .aperture
            .iter()
            .any(|page| kind == Kind::Allocation && is_parent(page))
        {
            self.break_rule(Broken::ChildrenLeft);
        }
        if self.slots.iter().any(|other| {
            platform::load32_acquire(&other.kind) != 0 && other.parents.iter().any(is_parent)
        }) {
            self.break_rule(Broken::ChildrenLeft);
        }
        for word in &slot.parents {
            set(word, 0);
        }
        set(&slot.busy, 0);
        set(&slot.busy_short, 0);
        platform::store_release(&slot.submitted, 0);
        platform::store_release(&slot.completed, 0);
        set(&slot.kind, 0);
    }

    /// Replaces what pages of the aperture show, each once.
    fn change_aperture(&self, first: u64, count: u64, old: u32, new: u32) {
        let number = |page| usize::try_from(page).ok();
        let pages = number(first)
            .zip(first.checked_add(count).and_then(number))
            .and_then(|(first, end)| self.aperture.get(first..end));

        if !pages.is_some_and(|pages| pages.iter().all(|page| platform::cmpxchg(page, old, new))) {
            self.break_rule(Broken::Aperture);
        }
    }

    /// What pages of the aperture have for who is shown there. Context allocations have names of
    /// the test, which are none of the journal's.
    fn in_aperture_as(&self, pages_of: PagesOf) -> u32 {
        match pages_of {
            PagesOf::Allocation(cookie) => {
                self.check(Kind::Allocation, cookie.0);
                number(cookie.0)
            }
            PagesOf::ContextAllocation(cookie) => number(cookie.0) | OF_CONTEXT,
        }
    }

    /// Pages of the aperture show this from now on.
    pub(super) fn map_aperture(&self, pages_of: PagesOf, first: u64, count: u64) {
        self.change_aperture(first, count, 0, self.in_aperture_as(pages_of));
    }

    /// They show nothing any more.
    pub(super) fn unmap_aperture(&self, pages_of: PagesOf, first: u64, count: u64) {
        self.change_aperture(first, count, self.in_aperture_as(pages_of), 0);
    }

    /// How many pages the aperture shows.
    pub fn in_aperture(&self) -> usize {
        self.aperture
            .iter()
            .filter(|page| platform::load32_acquire(page) != 0)
            .count()
    }

    /// More queues than there is room for.
    pub(super) fn too_many(&self) {
        self.break_rule(Broken::TooMany);
    }

    /// A queue gets work, of which it takes so much at a time.
    pub(super) fn submit(&self, kind: Kind, cookie: u64, submission: &Submission, most: u64) {
        let _alone = self.alone_in_short(kind, cookie);
        let Some(slot) = self.find(kind, cookie) else {
            return;
        };
        let last = platform::load_acquire(&slot.submitted);
        let completed = platform::load_acquire(&slot.completed);

        if submission.number != last.wrapping_add(1) {
            self.break_rule(Broken::OutOfOrder);
        }
        if submission.number.saturating_sub(completed) > most {
            self.break_rule(Broken::InFlight);
        }
        if submission.length == 0
            || submission.length % 4 != 0
            || submission.commands % 4 != 0
            || submission.progress.is_some() != (kind == Kind::HwQueue)
        {
            self.break_rule(Broken::BadValue);
        }
        platform::store_release(&slot.submitted, submission.number);
    }

    /// A queue has done work; false if it was not given so much, or it is done.
    pub(super) fn complete(&self, cookie: u64, number: u64) -> bool {
        let Some(slot) = self.slot(cookie) else {
            return false;
        };
        let due = platform::load_acquire(&slot.completed) < number
            && number <= platform::load_acquire(&slot.submitted);

        if due {
            platform::store_release(&slot.completed, number);
        }
        due
    }

    /// The number of the last submission of a queue.
    pub(super) fn submitted(&self, cookie: u64) -> u64 {
        self.slot(cookie)
            .map_or(0, |slot| platform::load_acquire(&slot.submitted))
    }

    /// A context is suspended, or a doorbell disconnected; or not any more.
    pub(super) fn set_rests(&self, kind: Kind, cookie: u64, rests: bool) {
        if !rests && kind == Kind::Doorbell && platform::load32_acquire(&self.asleep) != 0 {
            self.break_rule(Broken::BadPower);
        }
        if let Some(slot) = self.find(kind, cookie) {
            set(&slot.rests, rests.into());
        }
    }

    /// Whether all submissions have completed.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| {
            platform::load_acquire(&slot.completed) == platform::load_acquire(&slot.submitted)
        })
    }

    /// SetPowerState, to D3 if it sleeps then.
    pub(super) fn set_asleep(&self, asleep: bool) {
        let is_kind = |slot: &Slot, kind: Kind| {
            // CAST: the number of the variant.
            platform::load32_acquire(&slot.kind) == kind as u32
        };
        let all_rest = self
            .slots
            .iter()
            .filter(|slot| is_kind(slot, Kind::Context) || is_kind(slot, Kind::Doorbell))
            .all(|slot| platform::load32_acquire(&slot.rests) != 0);
        let (from, to) = (u32::from(!asleep), u32::from(asleep));

        if !platform::cmpxchg(&self.asleep, from, to) || (asleep && !all_rest) {
            self.break_rule(Broken::BadPower);
        }
    }

    /// Whether it is in D3.
    pub fn is_asleep(&self) -> bool {
        platform::load32_acquire(&self.asleep) != 0
    }

    fn slot(&self, cookie: u64) -> Option<&Slot> {
        cookie
            .checked_sub(1)
            .and_then(|place| usize::try_from(place).ok())
            .and_then(|place| self.slots.get(place))
    }

    /// The end of the one allocation that `is_it` names by its cookie, which is still there.
    pub(super) fn allocation_ends(&self, is_it: impl Fn(u64) -> bool) {
        match (1u64..).zip(&self.slots).find(|(cookie, _)| is_it(*cookie)) {
            Some((cookie, slot)) => {
                // Told twice, which nothing else shows: `busy` is for devices and contexts.
                if self.find(Kind::Allocation, cookie).is_some()
                    && !platform::cmpxchg(&slot.busy, 0, 1)
                {
                    self.break_rule(Broken::Together);
                }
            }
            None => self.break_rule(Broken::BadCookie),
        }
    }

    /// An object that a call names has to be there.
    pub(super) fn check(&self, kind: Kind, cookie: u64) {
        let _slot = self.find(kind, cookie);
    }

    /// The first of those that an object was made on.
    pub(super) fn parent(&self, kind: Kind, cookie: u64) -> u64 {
        self.find(kind, cookie)
            .and_then(|slot| slot.parents.first())
            .map_or(0, |word| platform::load32_acquire(word).into())
    }

    fn find(&self, kind: Kind, cookie: u64) -> Option<&Slot> {
        let slot = self
            .slot(cookie)
            // CAST: the number of the variant.
            .filter(|slot| platform::load32_acquire(&slot.kind) == kind as u32);

        if slot.is_none() {
            self.break_rule(Broken::BadCookie);
        }
        slot
    }

    /// A call for this device alone.
    pub(super) fn alone(&self, device: u64) -> Option<Alone<'_>> {
        self.alone_in(Kind::Device, device)
    }

    /// A call for this device or context alone.
    pub(super) fn alone_in(&self, kind: Kind, cookie: u64) -> Option<Alone<'_>> {
        let slot = self.find(kind, cookie)?;

        self.alone_by(&slot.busy)
    }

    /// A submit for this queue alone.
    pub(super) fn alone_in_short(&self, kind: Kind, cookie: u64) -> Option<Alone<'_>> {
        let slot = self.find(kind, cookie)?;

        self.alone_by(&slot.busy_short)
    }

    fn alone_by<'a>(&self, busy: &'a Word32) -> Option<Alone<'a>> {
        if !platform::cmpxchg(busy, 0, 1) {
            self.break_rule(Broken::Together);
            return None;
        }
        Some(Alone(busy))
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

/// A call in progress.
pub(super) struct Call<'a>(&'a Journal);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        platform::fetch_sub(&self.0.inside, 1);
    }
}

/// A call in progress that is the only one of its kind for its object.
pub(super) struct Alone<'a>(&'a Word32);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        set(self.0, 0);
    }
}

/// A cookie as a word has it.
fn number(cookie: u64) -> u32 {
    u32::try_from(cookie).unwrap_or(u32::MAX)
}

/// A store, by the names that `platform` has.
fn set(word: &Word32, value: u32) {
    while !platform::cmpxchg(word, platform::load32_acquire(word), value) {}
}
