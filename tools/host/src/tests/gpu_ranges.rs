// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ranges of GPU addresses against an array with an element for each page (MEM-41, MEM-43, MEM-45,
//! MEM-49).

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::logic::gpu_ranges::{
    cost, edit, has_map, is_free, is_taken, keeps_tables, may_free, may_map, parts, reservation_of,
    Bounds, Finder, Mapping, Owner, Range, Ranges, Reservation, Stretch, What, ALIGNMENT, FIRST,
};

/// Pages of the model.
pub(super) const PAGES: u64 = 256;

#[derive(Default)]
pub(super) struct Map(BTreeMap<u64, Stretch>);

impl Ranges for Map {
    type Place = ();

    fn at_or_before(&self, page: u64) -> Option<Stretch> {
        self.0
            .range(..=page)
            .next_back()
            .map(|(_, stretch)| *stretch)
    }

    fn at_or_after(&self, page: u64) -> Option<Stretch> {
        self.0.range(page..).next().map(|(_, stretch)| *stretch)
    }

    fn insert(&mut self, (): (), stretch: Stretch) {
        assert!(self.0.insert(stretch.first, stretch).is_none());
    }

    fn replace(&mut self, stretch: Stretch) {
        assert!(self.0.insert(stretch.first, stretch).is_some());
    }

    fn remove(&mut self, first: u64) {
        assert!(self.0.remove(&first).is_some());
    }
}

/// The same, page by page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model(pub(super) [Option<Range>; PAGES as usize]);

fn cell(first: u64, end: u64) -> core::ops::Range<usize> {
    first as usize..end as usize
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Reserve {
        pages: u64,
        zero: bool,
    },
    /// By the KMD.
    Keep {
        pages: u64,
        is_shared: bool,
    },
    Map {
        opening: u64,
        offset: u64,
        first: Option<u64>,
        pages: u64,
    },
    Zero {
        first: u64,
        pages: u64,
    },
    Free {
        first: u64,
        pages: u64,
    },
    EndOpening {
        opening: u64,
    },
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let place = || (0..PAGES, 1..40u64);
    prop_oneof![
        (1..4u64, any::<bool>()).prop_map(|(blocks, zero)| Action::Reserve {
            pages: blocks * ALIGNMENT,
            zero
        }),
        (1..3u64, any::<bool>()).prop_map(|(blocks, is_shared)| Action::Keep {
            pages: blocks * ALIGNMENT,
            is_shared
        }),
        (0..3u64, 0..4u64, proptest::option::of(0..PAGES), 1..40u64).prop_map(
            |(opening, offset, first, pages)| Action::Map {
                opening,
                offset,
                first,
                pages
            }
        ),
        place().prop_map(|(first, pages)| Action::Zero { first, pages }),
        place().prop_map(|(first, pages)| Action::Free { first, pages }),
        (0..3u64).prop_map(|opening| Action::EndOpening { opening }),
    ]
}

pub(super) struct Both {
    pub(super) map: Map,
    pub(super) model: Model,
    finder: Finder,
    reservations: u64,
}

const ALL: Bounds = Bounds {
    first: FIRST,
    end: PAGES,
};

impl Both {
    pub(super) fn new() -> Self {
        Self {
            map: Map::default(),
            model: Model([None; PAGES as usize]),
            finder: Finder::new(FIRST),
            reservations: 0,
        }
    }

    /// `fills`: all pages are something afterwards.
    pub(super) fn edit(
        &mut self,
        first: u64,
        end: u64,
        fills: bool,
        change: impl Fn(Option<Range>, u64) -> Option<Range>,
    ) {
        let cost = cost(&self.map, first, end, fills);
        let before = self.map.0.len();
        let mut given = std::iter::repeat_n((), cost.places);
        edit(&mut self.map, &mut given, first, end, &change);
        let is_all = self.model.0[cell(first, end)].iter().all(Option::is_some);
        if fills || is_all {
            assert_eq!(given.next(), None, "places that nobody takes");
        }
        assert!(
            self.map.0.len() <= before + cost.more,
            "{before} stretches, {cost:?}, then {}",
            self.map.0.len()
        );
        for page in first..end {
            let cell = &mut self.model.0[page as usize];
            *cell = change(*cell, 0).map(|range| match change(None, 0) {
                // What is mapped goes on from the first page.
                Some(Range {
                    what: What::Mapped(_),
                    ..
                }) => range.at(page - first),
                _ => range,
            });
        }
    }

    /// The lowest fit by looking at every place.
    fn lowest(&self, pages: u64) -> Option<u64> {
        (FIRST..=PAGES.checked_sub(pages)?)
            .step_by(ALIGNMENT as usize)
            .find(|first| {
                self.model.0[cell(*first, first + pages)]
                    .iter()
                    .all(Option::is_none)
            })
    }

    fn pick(&mut self, pages: u64) -> Option<u64> {
        let found = self.finder.find(&self.map, pages, ALL);
        assert_eq!(found, self.lowest(pages), "lowest fit for {pages} pages");
        if let Some(first) = found {
            self.finder.taken(ALL, first, first + pages);
        }
        found
    }

    fn reserve(&mut self, pages: u64, zero: bool, owner: Owner) {
        let Some(first) = self.pick(pages) else {
            return;
        };
        self.reservations += 1;
        let reservation = Reservation {
            id: self.reservations,
            zero,
            owner,
        };
        self.edit(first, first + pages, true, |_, _| {
            Some(Range {
                reservation: Some(reservation),
                what: reservation.bare(),
            })
        });
    }

    pub(super) fn run(&mut self, action: Action) {
        match action {
            Action::Reserve { pages, zero } => self.reserve(pages, zero, Owner::Client),
            Action::Keep { pages, is_shared } => {
                self.reserve(pages, false, Owner::Kmd { is_shared });
            }
            Action::Map {
                opening,
                offset,
                first,
                pages,
            } => {
                let first = match first {
                    Some(first) => first.clamp(FIRST, PAGES - 1),
                    None => match self.pick(pages) {
                        Some(first) => first,
                        None => return,
                    },
                };
                let end = (first + pages).min(PAGES);
                if !may_map(&self.map, first, end) {
                    return;
                }
                let mapping = Mapping {
                    opening,
                    offset,
                    write: true,
                    execute: false,
                    driver_protection: 0,
                };
                self.edit(first, end, true, |old, further| {
                    let what = What::Mapped(mapping);
                    let reservation = old.and_then(|old| old.reservation);
                    Some(Range { reservation, what }.at(further))
                });
            }
            Action::Zero { first, pages } => {
                let end = (first + pages).min(PAGES);
                if reservation_of(&self.map, first, end).is_none()
                    || !may_map(&self.map, first, end)
                {
                    return;
                }
                self.edit(first, end, true, |old, _| {
                    old.map(|old| Range {
                        what: What::Zero,
                        ..old
                    })
                });
            }
            Action::Free { first, pages } => {
                let end = (first + pages).min(PAGES);
                if !may_free(&self.map, first, end) {
                    return;
                }
                let stays = parts(&self.map, first, end).any(|part| part.range.freed().is_some());
                self.edit(first, end, stays, |old, _| old?.freed());
                self.finder.freed(&self.map, first, end);
            }
            Action::EndOpening { opening } => {
                let mapped: Vec<_> = parts(&self.map, 0, PAGES)
                    .filter(
                        |part| matches!(part.range.what, What::Mapped(it) if it.opening == opening),
                    )
                    .collect();
                for part in mapped {
                    self.edit(part.first, part.end(), false, |old, _| {
                        let reservation = old?.reservation?;
                        Some(Range {
                            reservation: Some(reservation),
                            what: reservation.bare(),
                        })
                    });
                    self.finder.freed(&self.map, part.first, part.end());
                }
            }
        }
    }

    /// The map shows what the model shows, with as few stretches as there can be.
    pub(super) fn check(&self) {
        let mut seen = [None; PAGES as usize];
        let mut last: Option<Stretch> = None;
        for stretch in self.map.0.values() {
            assert!(stretch.pages > 0);
            for page in 0..stretch.pages {
                let cell = &mut seen[(stretch.first + page) as usize];
                assert!(
                    cell.replace(stretch.range.at(page)).is_none(),
                    "they overlap"
                );
            }
            if let Some(last) = last.filter(|last| last.end() == stretch.first) {
                assert_ne!(last.range.at(last.pages), stretch.range, "two that are one");
            }
            last = Some(*stretch);
        }
        assert_eq!(seen, self.model.0);
    }

    /// Questions about some pages have the answers that the model gives.
    fn ask(&self, first: u64, end: u64) {
        let cells = &self.model.0[cell(first, end)];
        assert_eq!(
            is_free(&self.map, first, end),
            cells.iter().all(Option::is_none)
        );
        assert_eq!(
            is_taken(&self.map, first, end),
            cells.iter().all(Option::is_some)
        );
        assert_eq!(
            has_map(&self.map, first, end),
            cells
                .iter()
                .flatten()
                .any(|range| range.reservation.is_none() || matches!(range.what, What::Mapped(_)))
        );
        // MEM-64: what the KMD has reserved.
        let owner = |range: &Range| range.reservation.map(|reservation| reservation.owner);
        assert_eq!(
            may_map(&self.map, first, end),
            cells
                .iter()
                .flatten()
                .all(|range| owner(range) != Some(Owner::Kmd { is_shared: false }))
        );
        assert_eq!(
            may_free(&self.map, first, end),
            cells.iter().all(|it| it.is_some_and(|range| {
                match owner(&range) {
                    Some(Owner::Kmd { is_shared }) => is_shared && range.what != What::NoAccess,
                    _ => true,
                }
            }))
        );
        assert_eq!(
            keeps_tables(&self.map, first, end),
            cells.iter().flatten().any(|range| {
                range.reservation.is_some_and(|it| it.zero)
                    || matches!(owner(range), Some(Owner::Kmd { .. }))
            })
        );
        let common = cells[0].and_then(|range| range.reservation);
        let all = cells
            .iter()
            .all(|it| it.and_then(|range| range.reservation) == common);
        assert_eq!(
            reservation_of(&self.map, first, end),
            common.filter(|_| all)
        );
    }
}

proptest! {
    /// MEM-41, MEM-43, MEM-49, MEM-64: reserve, map, unmap, free, and the end of an allocation.
    #[test]
    fn mem_41_ranges_are_what_an_array_of_pages_is(
        actions in proptest::collection::vec(action(), 1..60),
        questions in proptest::collection::vec((0..PAGES, 1..60u64), 1..8),
    ) {
        let mut both = Both::new();
        for action in actions {
            both.run(action);
            both.check();
        }
        for (first, pages) in questions {
            both.ask(first, (first + pages).min(PAGES));
        }
    }
}

/// MEM-41: Maximum bounds the end, and Minimum the start.
#[test]
fn mem_41_minimum_and_maximum() {
    let map = Map::default();
    let finder = Finder::new(FIRST);
    let bounds = |first, end| Bounds { first, end };

    assert_eq!(finder.find(&map, 16, bounds(FIRST, 32)), Some(16));
    assert_eq!(finder.find(&map, 16, bounds(FIRST, 31)), None);
    assert_eq!(finder.find(&map, 1, bounds(17, 64)), Some(32));
    assert_eq!(finder.find(&map, u64::MAX, bounds(FIRST, u64::MAX)), None);
    assert_eq!(finder.find(&map, 1, bounds(u64::MAX - 3, u64::MAX)), None);
}

/// How often a map is asked.
struct Counted<'a>(&'a Map, Cell<usize>);

impl Ranges for Counted<'_> {
    type Place = ();

    fn at_or_before(&self, page: u64) -> Option<Stretch> {
        self.1.set(self.1.get() + 1);
        self.0.at_or_before(page)
    }

    fn at_or_after(&self, page: u64) -> Option<Stretch> {
        self.1.set(self.1.get() + 1);
        self.0.at_or_after(page)
    }

    fn insert(&mut self, (): (), _: Stretch) {
        unreachable!()
    }

    fn replace(&mut self, _: Stretch) {
        unreachable!()
    }

    fn remove(&mut self, _: u64) {
        unreachable!()
    }
}

/// Every second block of 64 KiB is free. Whoever wants nearly two of them finds no room there, and
/// is not told so by each of the others again, also when a smaller one comes and goes.
#[test]
fn mem_41_small_gaps_are_not_gone_through_again() {
    const LARGE: u64 = 2 * ALIGNMENT - 1;
    let everywhere = Bounds {
        first: FIRST,
        end: u64::MAX,
    };
    let take = |map: &mut Map, finder: &mut Finder, pages: u64| {
        let counted = Counted(map, Cell::new(0));
        let found = finder.find(&counted, pages, everywhere);
        let looks = counted.1.get();
        let first = found.expect("there is room");
        finder.taken(everywhere, first, first + pages);
        let range = Range {
            reservation: None,
            what: What::Zero,
        };
        map.insert(
            (),
            Stretch {
                first,
                pages,
                range,
            },
        );
        (first, looks)
    };
    let free = |map: &mut Map, finder: &mut Finder, first: u64, pages: u64| {
        map.remove(first);
        finder.freed(map, first, first + pages);
    };
    let (mut map, mut finder) = (Map::default(), Finder::new(FIRST));
    for _ in 0..1000 {
        take(&mut map, &mut finder, ALIGNMENT);
    }
    for gap in (0..1000).step_by(2) {
        let first = FIRST + gap * ALIGNMENT;
        free(&mut map, &mut finder, first, ALIGNMENT);
    }
    let (first, looks) = take(&mut map, &mut finder, LARGE);
    assert_eq!(first, FIRST + 1000 * ALIGNMENT);
    assert!(looks > 500, "{looks}: it has looked at all gaps");
    for round in 1..100 {
        let (found, looks) = take(&mut map, &mut finder, LARGE);
        assert_eq!(found, first + round * 2 * ALIGNMENT);
        assert!(looks <= 4, "{looks}");
        let (small, looks) = take(&mut map, &mut finder, 1);
        assert_eq!(small, FIRST);
        assert!(looks <= 4, "{looks}");
        free(&mut map, &mut finder, small, 1);
    }
}

/// What a client does not want to have is not looked at, so it may be free.
#[test]
fn mem_41_below_a_minimum_is_room_for_others() {
    let (mut map, mut finder) = (Map::default(), Finder::new(FIRST));
    let from = |first| Bounds {
        first,
        end: u64::MAX,
    };
    assert_eq!(finder.find(&map, 1, from(64)), Some(64));
    finder.taken(from(64), 64, 65);
    let range = Range {
        reservation: None,
        what: What::Zero,
    };
    map.insert(
        (),
        Stretch {
            first: 64,
            pages: 1,
            range,
        },
    );
    assert_eq!(finder.find(&map, 1, from(FIRST)), Some(FIRST));
}
