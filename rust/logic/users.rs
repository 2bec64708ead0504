// SPDX-License-Identifier: GPL-2.0

//! Who wants an allocation to be resident (MEM-17).
//!
//! Each open of a device has a count. A device's list has the allocation while one of its opens has
//! a count, or while something keeps it there that the device has queued (MEM-47). What a device
//! has offered is offered by all its opens (MEM-30).

use super::offer_rules::{
    Droppable,
    Offer, //
};
use crate::platform::{
    self,
    Growing, //
};

/// Where an open shows an allocation, as far as budgets go.
pub trait Space: Clone {
    /// So many bytes more of a budget group are wanted there.
    fn add_usage(&self, usage: Usage);

    /// So many bytes less.
    fn sub_usage(&self, usage: Usage);

    /// Whether both are the same.
    fn is(&self, other: &Self) -> bool;
}

/// Bytes of a budget group: what an allocation is while a device wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Which group.
    pub group: usize,
    /// How many bytes.
    pub bytes: u64,
}

/// What an open of a device wants.
pub struct User<S> {
    opening: u64,
    device: u64,
    /// How often it wants it to be resident.
    count: u32,
    /// How often something that it has queued keeps it so.
    kept: u32,
    /// What the device has said of it, unless it needs it.
    offer: Option<Offer>,
    /// Its bytes were dropped since the device has offered it.
    is_discarded: bool,
    space: S,
}

impl<S: Space> User<S> {
    fn is_listed(&self) -> bool {
        self.count != 0 || self.kept != 0
    }

    /// Changes the counts, and what its process uses with them.
    fn change<T>(&mut self, usage: Usage, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.is_listed();
        let result = change(self);

        match (before, self.is_listed()) {
            (false, true) => self.space.add_usage(usage),
            (true, false) => self.space.sub_usage(usage),
            _ => {}
        }
        result
    }
}

/// Those who have an allocation open.
pub struct Users<S> {
    all: Growing<User<S>>,
    /// The sum of all counts.
    wanted: u64,
    /// Somebody has wanted it to be resident.
    were_wanted: bool,
    /// How many handles there are besides, which no device uses.
    others: u64,
}

impl<S: Space> Users<S> {
    /// Nobody.
    pub fn new() -> Self {
        Self {
            all: Growing::new(),
            wanted: 0,
            were_wanted: false,
            others: 0,
        }
    }

    /// Whether somebody wants it to be resident.
    pub fn are_wanted(&self) -> bool {
        self.wanted != 0
    }

    /// Whether somebody has wanted it to be resident at some time.
    pub fn were_wanted(&self) -> bool {
        self.were_wanted
    }

    /// Whether nobody has it open.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many have it open.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Where it is shown, and by which open, of the one in this place.
    pub fn shown_in(&self, place: usize) -> Option<(S, u64)> {
        let user = self.all.get(place)?;

        Some((user.space.clone(), user.opening))
    }

    /// Whether all of them are of one process.
    pub fn are_of_one_process(&self) -> bool {
        let mut spaces = self.all.iter().map(|user| &user.space);

        match spaces.next() {
            Some(first) => spaces.all(|space| space.is(first)),
            None => true,
        }
    }

    /// Where those show it that want it to be resident.
    pub fn wanting(&self) -> impl Iterator<Item = &S> {
        self.all
            .iter()
            .filter(|user| user.is_listed())
            .map(|user| &user.space)
    }

    /// Where the first of them shows it.
    pub fn first_space(&self) -> Option<&S> {
        self.all.first().map(|user| &user.space)
    }

    /// Adds an open, which wants nothing yet. What its device has offered already stays offered.
    /// `None` if there is no memory. May sleep.
    pub fn enter(&mut self, opening: u64, device: u64, space: S) -> Option<()> {
        let same = self.all.iter().find(|user| user.device == device);
        let (offer, is_discarded) =
            same.map_or((None, false), |user| (user.offer, user.is_discarded));

        platform::push(
            &mut self.all,
            User {
                opening,
                device,
                count: 0,
                kept: 0,
                offer,
                is_discarded,
                space,
            },
        )
    }

    /// Removes an open, with what it wants. Whether it wanted anything, and what it was, which is
    /// dropped without the lock.
    pub fn leave(&mut self, opening: u64, usage: Usage) -> Option<(bool, User<S>)> {
        let place = self.all.iter().position(|user| user.opening == opening)?;
        let mut left = platform::remove(&mut self.all, place)?;
        let was_listed = left.is_listed();

        self.wanted -= u64::from(left.count) + u64::from(left.kept);
        left.change(usage, |left| (left.count, left.kept) = (0, 0));
        Some((was_listed, left))
    }

    fn of_open(&mut self, opening: u64) -> Option<&mut User<S>> {
        self.all.iter_mut().find(|user| user.opening == opening)
    }

    /// Whether this open wants it.
    pub fn wants(&self, opening: u64) -> bool {
        self.all
            .iter()
            .any(|user| user.opening == opening && user.is_listed())
    }

    /// The open wants it once more. False if it has ended.
    pub fn want(&mut self, opening: u64, usage: Usage) -> bool {
        let Some(user) = self.of_open(opening) else {
            return false;
        };
        let Some(count) = user.count.checked_add(1) else {
            return false;
        };

        user.change(usage, |user| user.count = count);
        self.wanted += 1;
        self.were_wanted = true;
        true
    }

    /// The device wants it once less; false if it did not want it. Another open of it will do: the
    /// device has one list.
    pub fn unwant(&mut self, opening: u64, device: u64, usage: Usage) -> bool {
        let wants = |user: &User<S>| user.count != 0;
        let own = |user: &User<S>| user.opening == opening && wants(user);
        let other = |user: &User<S>| user.device == device && wants(user);
        let place = self.all.iter().position(own);
        let place = place.or_else(|| self.all.iter().position(other));
        let Some(user) = place.and_then(|place| self.all.get_mut(place)) else {
            return false;
        };

        user.change(usage, |user| user.count -= 1);
        self.wanted -= 1;
        true
    }

    /// It stays on the list of the device, if it is there, until [`Users::let_go`]. False if it is
    /// not there.
    pub fn keep(&mut self, opening: u64, device: u64, usage: Usage) -> bool {
        let is_listed = self
            .all
            .iter()
            .any(|user| user.device == device && user.is_listed());
        let Some(user) = self.of_open(opening).filter(|_| is_listed) else {
            return false;
        };

        // It may be gone already.
        if user.offer.is_some() {
            return false;
        }

        let Some(kept) = user.kept.checked_add(1) else {
            return false;
        };

        user.change(usage, |user| user.kept = kept);
        self.wanted += 1;
        true
    }

    /// Takes one [`Users::keep`] back, unless the end of the open has.
    pub fn let_go(&mut self, opening: u64, usage: Usage) {
        if let Some(user) = self.of_open(opening).filter(|user| user.kept != 0) {
            user.change(usage, |user| user.kept -= 1);
            self.wanted -= 1;
        }
    }

    /// What it is counts in another group from now on.
    pub fn move_usage(&self, from: Usage, to: Usage) {
        for user in self.all.iter().filter(|user| user.is_listed()) {
            user.space.sub_usage(from);
            user.space.add_usage(to);
        }
    }

    /// A handle that no device uses comes, or goes.
    pub fn count_other(&mut self, comes: bool) {
        // OVERFLOW: each is a handle in memory, and goes after it has come.
        self.others = match comes {
            true => self.others.wrapping_add(1),
            false => self.others.wrapping_sub(1),
        };
    }

    fn of_device(&mut self, device: u64) -> impl Iterator<Item = &mut User<S>> {
        self.all
            .iter_mut()
            .filter(move |user| user.device == device)
    }

    /// Whether this device has it open.
    pub fn is_open_by(&self, device: u64) -> bool {
        self.all.iter().any(|user| user.device == device)
    }

    /// Whether somebody has offered it.
    pub fn are_offering(&self) -> bool {
        self.all.iter().any(|user| user.offer.is_some())
    }

    /// Whether this device has offered it.
    pub fn is_offered_by(&self, device: u64) -> bool {
        let is_offered = |user: &User<S>| user.device == device && user.offer.is_some();

        self.all.iter().any(is_offered)
    }

    /// The device says this of it from now on, and returns what it said before. False if it does
    /// not have it open.
    pub fn set_offer(&mut self, device: u64, offer: Option<Offer>) -> (bool, Option<Offer>) {
        let mut before = (false, None);

        for user in self.of_device(device) {
            before = (true, core::mem::replace(&mut user.offer, offer));
        }
        before
    }

    /// The work of the device is done that was queued before it offered this by `call`.
    pub fn take_effect(&mut self, device: u64, call: u64) {
        for user in self.of_device(device) {
            if let Some(offer) = &mut user.offer {
                offer.take_effect(call);
            }
        }
    }

    /// Whether its bytes may be dropped, and how. While something uses it that was begun before,
    /// they may not.
    pub fn droppable(&self) -> Option<Droppable> {
        if self.others != 0 || self.all.iter().any(|user| user.kept != 0) {
            return None;
        }
        Droppable::of(self.all.iter().map(|user| user.offer))
    }

    /// Its bytes were dropped: each device is told when it takes it back.
    pub fn discard(&mut self) {
        for user in self.all.iter_mut() {
            user.is_discarded = true;
        }
    }

    /// Whether all who have it open are to be told that its bytes were dropped.
    pub fn are_all_discarded(&self) -> bool {
        self.all.iter().all(|user| user.is_discarded)
    }

    /// Whether the device is to be told that its bytes were dropped.
    pub fn is_discarded(&self, device: u64) -> bool {
        let is_discarded = |user: &User<S>| user.device == device && user.is_discarded;

        self.all.iter().any(is_discarded)
    }

    /// The device knows that its bytes were dropped.
    pub fn tell_discarded(&mut self, device: u64) {
        for user in self.of_device(device) {
            user.is_discarded = false;
        }
    }
}
