// SPDX-License-Identifier: GPL-2.0

//! Which places of a process show the pages of its shareable fences (FEN-12).
//!
//! A *window* is a range of addresses with a place for each of 64 pages, which come and go. So a
//! process needs one mapping for 64 fences, and in the steady state makes and removes none.
//!
//! If the process has unmapped, moved or replaced a place by itself, nobody knows what it shows.
//! The window is *spoiled* then: it gets no page any more, and goes when its last place comes back.
//!
//! The list of windows is the caller's. Windows with room, and entries without a window, are found
//! without a search.

/// Places in a window: one bit each.
pub const PLACES: u32 = u64::BITS;

/// Instead of an entry.
const END: u32 = u32::MAX;

/// An entry of the list: a window that is at `A`, or none.
#[derive(Clone, Copy, Debug)]
pub struct Window<A> {
    at: Option<A>,
    taken: u64,
    is_spoiled: bool,
    /// The next entry of the chain that this one is in.
    next: u32,
}

impl<A> Window<A> {
    /// An entry without a window, for the end of a list.
    pub const fn none() -> Self {
        Self {
            at: None,
            taken: 0,
            is_spoiled: false,
            next: END,
        }
    }

    /// Takes the window out of its entry, at the end of everything.
    pub fn into_place(self) -> Option<A> {
        self.at
    }

    fn has_room(&self) -> bool {
        self.at.is_some() && !self.is_spoiled && self.taken != u64::MAX
    }
}

/// A place in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The entry of the window.
    window: u32,
    /// Which place of the window.
    pub slot: u32,
}

/// What is known of a list of windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// The first window with room. Each that has room is in this chain, and no other.
    with_room: u32,
    /// The first entry without a window. Each of these is in this chain.
    vacant: u32,
}

/// The entry at `index` of a list.
fn entry<A>(list: &mut [Window<A>], index: u32) -> Option<&mut Window<A>> {
    // CAST: 32 bits fit a usize.
    list.get_mut(index as usize)
}

impl Windows {
    /// Those of an empty list.
    pub const fn new() -> Self {
        Self {
            with_room: END,
            vacant: END,
        }
    }

    /// Takes a free place, if there is one, of the window at `A`.
    pub fn take<A: Copy>(&mut self, list: &mut [Window<A>]) -> Option<(Place, A)> {
        let window = self.with_room;
        let found = entry(list, window)?;
        let slot = found.taken.trailing_ones();

        found.taken |= 1_u64.checked_shl(slot)?;
        if !found.has_room() {
            self.with_room = found.next;
        }
        Some((Place { window, slot }, found.at?))
    }

    /// Gives a place back that shows nothing any more. Hands the window out if nothing is left of
    /// it: then its entry is vacant.
    pub fn give_back<A>(&mut self, list: &mut [Window<A>], place: Place) -> Option<A> {
        let found = entry(list, place.window)?;
        let had_room = found.has_room();

        found.taken &= !1_u64.checked_shl(place.slot)?;
        if found.is_spoiled {
            if found.taken == 0 {
                return self.vacate(list, place.window);
            }
        } else if !had_room {
            found.next = self.with_room;
            self.with_room = place.window;
        }
        None
    }

    /// Gives a place back of which nobody knows what it shows: the window is spoiled.
    pub fn spoil<A>(&mut self, list: &mut [Window<A>], place: Place) -> Option<A> {
        let found = entry(list, place.window)?;
        let (had_room, next) = (found.has_room(), found.next);

        found.is_spoiled = true;
        if had_room {
            self.take_out(list, place.window, next);
        }
        self.give_back(list, place)
    }

    /// Whether an entry is vacant.
    pub const fn has_vacant(&self) -> bool {
        self.vacant != END
    }

    /// Puts a window into a vacant entry, and takes its first place. `None` if no entry is vacant.
    pub fn open<A>(&mut self, list: &mut [Window<A>], at: A) -> Option<Place> {
        let window = self.vacant;
        let found = entry(list, window)?;

        self.vacant = found.next;
        *found = Window {
            at: Some(at),
            taken: 1,
            is_spoiled: false,
            next: self.with_room,
        };
        self.with_room = window;
        Some(Place { window, slot: 0 })
    }

    /// The last entry of the list is new, and vacant.
    pub fn add<A>(&mut self, list: &mut [Window<A>]) {
        if let Some(last) = list.len().checked_sub(1) {
            // CAST: a process has far fewer windows, each of which takes memory.
            self.make_vacant(list, last as u32);
        }
    }

    /// The window in the entry is gone.
    fn vacate<A>(&mut self, list: &mut [Window<A>], window: u32) -> Option<A> {
        let at = entry(list, window)?.at.take();

        self.make_vacant(list, window);
        at
    }

    fn make_vacant<A>(&mut self, list: &mut [Window<A>], window: u32) {
        if let Some(found) = entry(list, window) {
            *found = Window {
                next: self.vacant,
                ..Window::none()
            };
            self.vacant = window;
        }
    }

    /// Takes a window out of the chain of those with room. This is a search. It happens once in the
    /// life of a window that its process has changed.
    fn take_out<A>(&mut self, list: &mut [Window<A>], window: u32, next: u32) {
        if self.with_room == window {
            self.with_room = next;
            return;
        }

        let mut at = self.with_room;

        while let Some(found) = entry(list, at) {
            if found.next == window {
                found.next = next;
                return;
            }
            at = found.next;
        }
    }
}
