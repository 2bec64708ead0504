// SPDX-License-Identifier: GPL-2.0

//! What the GPU addresses of a process stand for: ranges that are reserved or mapped, and how they
//! are split, replaced, joined and found (MEM-41, MEM-43, MEM-45, MEM-49).
//!
//! Everything is counted in pages. A *stretch* is a run of pages that were reserved and mapped in
//! one way. Stretches do not overlap, and two that go on as one are one. The map that has them
//! belongs to the caller, which also has the lock and makes the memory ([`Ranges`]).

use crate::ddi::paging::PageSize;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Pages of the alignment of reservations, and of what is picked: 64 KiB.
pub const ALIGNMENT: u64 = 16;

/// The pages below are never given out: 64 KiB (MEM-40).
pub const FIRST: u64 = 16;

/// Whether a page is the first of one of 64 KiB.
pub fn is_64kb(page: u64) -> bool {
    page % PageSize::Kib64.pages() == 0
}

/// Most stretches of an address space (MEM-50).
pub const MAX_STRETCHES: u32 = 65536;

/// Who has reserved pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The process, by its calls.
    Client,
    /// The KMD, which writes the entries (MEM-64). Clients may map there if it is shared.
    Kmd {
        /// As it says.
        is_shared: bool,
    },
}

/// One call of ReserveGpuVirtualAddress, or of the KMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its number in its address space.
    pub id: u64,
    /// Whether its pages read as zero; otherwise they fault.
    pub zero: bool,
    /// Who has made it.
    pub owner: Owner,
}

impl Reservation {
    /// Whether its pages have tables whatever is mapped there.
    pub fn keeps_tables(self) -> bool {
        self.zero || self.owner != Owner::Client
    }

    /// What its pages are while nothing is mapped there.
    pub fn bare(self) -> What {
        match self.zero {
            true => What::Zero,
            false => What::NoAccess,
        }
    }
}

/// Pages of an allocation in an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The open of the allocation.
    pub opening: u64,
    /// Its first page.
    pub offset: u64,
    /// Whether they can be written.
    pub write: bool,
    /// Whether they can be executed.
    pub execute: bool,
    /// What the client says to the KMD about them.
    pub driver_protection: u64,
}

/// What pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An access faults.
    NoAccess,
    /// They read as zero, and stores are dropped.
    Zero,
    /// Pages of an allocation.
    Mapped(Mapping),
}

/// What a page is, and which reservation it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// `None` if Map took a free address.
    pub reservation: Option<Reservation>,
    /// What is there.
    pub what: What,
}

impl Range {
    /// What is so many pages further.
    pub fn at(self, pages: u64) -> Self {
        let what = match self.what {
            What::Mapped(mapping) => What::Mapped(Mapping {
                offset: mapping.offset.saturating_add(pages),
                ..mapping
            }),
            other => other,
        };

        Self { what, ..self }
    }

    /// Whether page tables have entries for it. What is not there faults by itself. What was
    /// reserved to read as zero keeps its tables, so that no update lacks them.
    pub fn has_entries(self) -> bool {
        self.what != What::NoAccess || self.reservation.is_some_and(Reservation::keeps_tables)
    }

    /// What is left when a client frees it: what the KMD has reserved stays.
    pub fn freed(self) -> Option<Self> {
        let reservation = self
            .reservation
            .filter(|reservation| reservation.owner != Owner::Client)?;

        Some(Self {
            reservation: Some(reservation),
            what: reservation.bare(),
        })
    }

    /// Whether a client has made something of it.
    fn is_of_client(self) -> bool {
        self.freed() != Some(self)
    }
}

/// A run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its first page.
    pub first: u64,
    /// How many; not 0.
    pub pages: u64,
    /// What the first page is; the others follow from it.
    pub range: Range,
}

impl Stretch {
    /// The page after the last one.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.pages)
    }

    /// The part of it in these pages, if any.
    pub fn within(&self, first: u64, end: u64) -> Option<Self> {
        let from = self.first.max(first);
        let to = self.end().min(end);

        (from < to).then(|| Self {
            first: from,
            pages: to - from,
            range: self.range.at(from - self.first),
        })
    }
}

/// The stretches of an address space, by their first page.
pub trait Ranges {
    /// Memory for one more.
    type Place;

    /// The last one that begins at or before `page`.
    fn at_or_before(&self, page: u64) -> Option<Stretch>;

    /// The first one that begins at or after `page`.
    fn at_or_after(&self, page: u64) -> Option<Stretch>;

    /// Adds one. None begins there.
    fn insert(&mut self, place: Self::Place, stretch: Stretch);

    /// Puts another one where one begins.
    fn replace(&mut self, stretch: Stretch);

    /// Takes out the one that begins at `first`.
    fn remove(&mut self, first: u64);
}

/// The parts of stretches in these pages, in order.
pub fn parts<M: Ranges>(map: &M, first: u64, end: u64) -> impl Iterator<Item = Stretch> + '_ {
    let mut at = first;
    let mut before = map.at_or_before(first);

    core::iter::from_fn(move || loop {
        if at >= end {
            return None;
        }

        let found = match before.take() {
            Some(stretch) => stretch,
            None => map.at_or_after(at)?,
        };

        // What begins before may also end before.
        if found.end() <= at {
            continue;
        }

        let part = found.within(at, end)?;

        at = part.end();
        return Some(part);
    })
}

/// Whether nothing is in these pages.
pub fn is_free(map: &impl Ranges, first: u64, end: u64) -> bool {
    parts(map, first, end).next().is_none()
}

/// Whether something is in each of these pages.
pub fn is_taken(map: &impl Ranges, first: u64, end: u64) -> bool {
    let mut at = first;

    for part in parts(map, first, end) {
        if part.first != at {
            return false;
        }
        at = part.end();
    }
    at == end
}

/// Whether some of these pages were made by a map: they show an allocation, or are in no
/// reservation.
pub fn has_map(map: &impl Ranges, first: u64, end: u64) -> bool {
    parts(map, first, end)
        .any(|part| part.range.reservation.is_none() || matches!(part.range.what, What::Mapped(_)))
}

/// Whether some of these pages are in a reservation that keeps its tables.
pub fn keeps_tables(map: &impl Ranges, first: u64, end: u64) -> bool {
    parts(map, first, end)
        .filter_map(|part| part.range.reservation)
        .any(Reservation::keeps_tables)
}

/// Whether clients may map there, as far as the KMD is concerned.
pub fn may_map(map: &impl Ranges, first: u64, end: u64) -> bool {
    parts(map, first, end)
        .filter_map(|part| part.range.reservation)
        .all(|reservation| reservation.owner != Owner::Kmd { is_shared: false })
}

/// Whether clients have reserved or mapped all of these pages (MEM-49). What the KMD has mapped in
/// pages of its own is not theirs (MEM-86).
pub fn may_free(map: &impl Ranges, first: u64, end: u64) -> bool {
    is_taken(map, first, end)
        && may_map(map, first, end)
        && parts(map, first, end).all(|part| part.range.is_of_client())
}

/// The one reservation that all of these pages are in.
pub fn reservation_of(map: &impl Ranges, first: u64, end: u64) -> Option<Reservation> {
    let mut common = None;
    let mut at = first;

    for part in parts(map, first, end) {
        let own = part.range.reservation?;

        if part.first != at || *common.get_or_insert(own) != own {
            return None;
        }
        at = part.end();
    }
    common.filter(|_| at == end)
}

/// What [`edit`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// How many places, at most.
    pub places: usize,
    /// How many more stretches there are afterwards, at most.
    pub more: usize,
}

/// Whether `at` is inside of a stretch, not at its beginning.
fn is_cut(map: &impl Ranges, at: u64) -> bool {
    map.at_or_before(at)
        .is_some_and(|stretch| stretch.first != at && stretch.end() > at)
}

/// What it takes to make something of these pages, and of those between that are free (`fills`), or
/// to make nothing of them.
pub fn cost(map: &impl Ranges, first: u64, end: u64, fills: bool) -> Cost {
    let cuts = usize::from(is_cut(map, first)) + usize::from(is_cut(map, end));
    let mut found = 0usize;
    let mut gaps = 0usize;
    let mut at = first;

    for part in parts(map, first, end) {
        found = found.saturating_add(1);
        gaps = gaps.saturating_add(usize::from(part.first != at));
        at = part.end();
    }
    gaps = gaps.saturating_add(usize::from(at != end));
    match fills {
        true => {
            let places = cuts.saturating_add(gaps);

            Cost {
                places,
                more: places,
            }
        }
        false => Cost {
            places: cuts,
            more: cuts.saturating_sub(found),
        },
    }
}

/// Splits the stretch that goes across `at`.
fn split<M: Ranges>(map: &mut M, places: &mut impl Iterator<Item = M::Place>, at: u64) {
    let Some(stretch) = map.at_or_before(at) else {
        return;
    };

    if !is_cut(map, at) {
        return;
    }

    let Some(place) = places.next() else {
        return;
    };
    let front = Stretch {
        pages: at - stretch.first,
        ..stretch
    };

    map.replace(front);
    map.insert(
        place,
        Stretch {
            first: at,
            pages: stretch.pages - front.pages,
            range: stretch.range.at(front.pages),
        },
    );
}

/// Joins what goes on as one, from the stretch before `first` to the one at `end`.
fn join(map: &mut impl Ranges, first: u64, end: u64) {
    let start = first.saturating_sub(1);
    let mut next = map.at_or_before(start).or_else(|| map.at_or_after(start));

    while let Some(stretch) = next {
        let Some(follower) = map.at_or_after(stretch.end()) else {
            return;
        };

        if follower.first > end {
            return;
        }
        if follower.first == stretch.end() && stretch.range.at(stretch.pages) == follower.range {
            let joined = Stretch {
                pages: stretch.pages.saturating_add(follower.pages),
                ..stretch
            };

            map.remove(follower.first);
            map.replace(joined);
            next = Some(joined);
        } else {
            next = Some(follower);
        }
    }
}

/// Changes what these pages are. `change` is asked for each part: what it was, if anything, and how
/// many pages it is from `first`; it says what the first page of the part becomes, if anything.
/// There must be as many places as [`cost`] says.
pub fn edit<M: Ranges>(
    map: &mut M,
    places: &mut impl Iterator<Item = M::Place>,
    first: u64,
    end: u64,
    mut change: impl FnMut(Option<Range>, u64) -> Option<Range>,
) {
    split(map, places, first);
    split(map, places, end);

    let mut at = first;

    while at < end {
        let next = map.at_or_after(at).filter(|next| next.first < end);

        match next {
            Some(stretch) if stretch.first == at => {
                match change(Some(stretch.range), at - first) {
                    Some(range) => map.replace(Stretch { range, ..stretch }),
                    None => map.remove(at),
                }
                at = stretch.end();
            }
            _ => {
                let gap_end = next.map_or(end, |next| next.first);

                if let Some(range) = change(None, at - first) {
                    let Some(place) = places.next() else {
                        break;
                    };

                    map.insert(
                        place,
                        Stretch {
                            first: at,
                            pages: gap_end - at,
                            range,
                        },
                    );
                }
                at = gap_end;
            }
        }
    }
    join(map, first, end);
}

/// The next multiple of [`ALIGNMENT`].
fn align(page: u64) -> Option<u64> {
    page.checked_next_multiple_of(ALIGNMENT)
}

/// Where addresses are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first page that may be taken.
    pub first: u64,
    /// The page that the last one taken is before.
    pub end: u64,
}

/// The lowest run of so many free pages in these bounds that begins at a multiple of 64 KiB.
fn lowest_from(map: &impl Ranges, pages: u64, bounds: Bounds) -> Option<u64> {
    let mut at = align(bounds.first)?;

    loop {
        let end = at.checked_add(pages).filter(|end| *end <= bounds.end)?;
        let in_the_way = map
            .at_or_before(at)
            .filter(|before| before.end() > at)
            .or_else(|| map.at_or_after(at).filter(|next| next.first < end));

        match in_the_way {
            Some(stretch) => at = align(stretch.end())?,
            None => return Some(at),
        }
    }
}

/// How many sizes of runs are told apart: those of 1, of 2 and 3, of 4 to 7 … pages, and the rest.
const CLASSES: usize = 16;

/// Where a search need not begin.
///
/// INVARIANT: no run of `pages` free pages begins at a multiple of 64 KiB below `below`.
#[derive(Clone, Copy, Debug)]
struct Hint {
    pages: u64,
    below: u64,
}

/// Finds free addresses, the lowest first, and remembers where there are none: for the last size of
/// each class that was looked for. So who asks for such a size again does not go through all that
/// is too small for it.
#[derive(Clone, Copy, Debug)]
pub struct Finder {
    /// Nothing below is ever given out.
    lowest: u64,
    hints: [Hint; CLASSES],
}

impl Finder {
    /// Nothing is taken yet, from the page `lowest` on.
    pub fn new(lowest: u64) -> Self {
        Self {
            lowest,
            // INVARIANT: nothing is free below.
            hints: core::array::from_fn(|class| Hint {
                pages: 1 << class,
                below: lowest,
            }),
        }
    }

    /// Where a search for so many pages begins.
    fn start(&self, pages: u64) -> u64 {
        self.hints
            .iter()
            .filter(|hint| hint.pages <= pages)
            .map(|hint| hint.below)
            .max()
            .unwrap_or(self.lowest)
    }

    /// The lowest fit (MEM-41).
    pub fn find(&self, map: &impl Ranges, pages: u64, bounds: Bounds) -> Option<u64> {
        let first = bounds.first.max(self.start(pages));

        lowest_from(map, pages, Bounds { first, ..bounds })
    }

    /// These pages were found in `bounds`, and are taken now.
    pub fn taken(&mut self, bounds: Bounds, first: u64, end: u64) {
        let pages = end.saturating_sub(first);

        // What is before the bounds was not looked at.
        if bounds.first > self.start(pages) {
            return;
        }
        // INVARIANT: what was passed over had no room for so many pages. If it is nothing, it had
        // no room for any. No run begins in what is taken.
        for hint in &mut self.hints {
            if hint.pages >= pages || align(hint.below) == Some(first) {
                hint.below = hint.below.max(end);
            }
        }

        // CAST: at most 63.
        let class = pages.checked_ilog2().unwrap_or(0) as usize;

        if let Some(own) = self.hints.get_mut(class.min(CLASSES - 1)) {
            if own.pages > pages || own.below < end {
                *own = Hint { pages, below: end };
            }
        }
    }

    /// Some of these pages may be free again.
    pub fn freed(&mut self, map: &impl Ranges, first: u64, end: u64) {
        if is_taken(map, first, end) {
            return;
        }
        // They may join what is free around them.
        let start = map
            .at_or_before(first)
            .map_or(0, |before| before.end().min(first))
            .max(self.lowest);
        let room = map
            .at_or_after(end)
            .map_or(u64::MAX, |after| after.first)
            .saturating_sub(start);

        // INVARIANT: no other run has become longer, and none of these is longer than `room`.
        for hint in &mut self.hints {
            if hint.pages <= room {
                hint.below = hint.below.min(start);
            }
        }
    }
}
