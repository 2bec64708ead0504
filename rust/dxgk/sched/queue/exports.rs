// SPDX-License-Identifier: GPL-2.0

//! The sync files that stand for signals of this queue (FEN-161, FEN-162).
//!
//! An exported point belongs to the number of the item that signals it. It is due when that item is
//! over. When the queue discards what has not begun, the points go first, in any turn: nobody who
//! waits for one waits for the module's worker, which does the rest.

use crate::{
    dxgk::sched::{
        export::{
            ExportKey,
            Found,
            NewExport,
            Wanted, //
        },
        item::{
            Item,
            What, //
        }, //
    },
    logic::sync_file_rules::{
        self as rules,
        Verdict,
        Way, //
    },
    sys::dma_fence::own::Unsignalled, //
};
use kernel::rbtree::RBTree;

/// How many elements of waits and signals one hold of the lock looks at, and one item more.
const LOOKS: usize = 64;

/// The exported points of a queue that have not signalled.
pub(super) struct Exports {
    points: RBTree<ExportKey, Unsignalled>,
    /// The number of the next one.
    next: u64,
}

impl Exports {
    /// None.
    pub(super) fn new() -> Self {
        Self {
            points: RBTree::new(),
            next: 0,
        }
    }

    fn add(&mut self, item: u64, export: NewExport) {
        let NewExport { place, point } = export;
        let _nothing = self
            .points
            .insert(place.into_node((item, self.next), point));

        // OVERFLOW: 2^64 calls take longer than any machine runs.
        self.next = self.next.wrapping_add(1);
    }

    /// Takes out the first one, if its item comes before this one.
    pub(super) fn take_before(&mut self, item: Option<u64>) -> Option<Unsignalled> {
        let cursor = self.points.cursor_front_mut()?;

        if item.is_some_and(|item| cursor.current().0 .0 >= item) {
            return None;
        }
        Some(cursor.remove_current().1.to_key_value().1)
    }
}

/// How far a search is.
pub(super) enum Search {
    /// It goes on with this item.
    More(u64),
    /// It is at its end.
    Over(Found),
}

/// Where a search looks.
pub(super) struct Scope<'a> {
    /// The items that have not begun, and the number of the first one.
    pub(super) waiting: &'a mut RBTree<u64, Item>,
    pub(super) begin: u64,
    /// How many commands have begun and have not completed.
    pub(super) in_flight: u64,
    /// The first item is a signal that is carried out; true if nothing of it was missing but that.
    pub(super) signalling: Option<bool>,
    /// Whether the engine takes commands away that take too long.
    pub(super) has_timeout: bool,
}

impl Exports {
    /// Looks for a signal from the item `from` on; 0 is the first one. The waits with numbers for
    /// which `is_assumed` holds are taken for bounded. If there is `export`, it is taken and
    /// becomes that of the signal, and waits before it that hold are over from now on.
    ///
    /// What was looked at before stays bounded, so that a search may be made in parts.
    pub(super) fn search(
        &mut self,
        scope: Scope<'_>,
        wanted: Wanted,
        from: u64,
        is_assumed: &dyn Fn(u64) -> bool,
        export: &mut Option<NewExport>,
    ) -> Search {
        let Some(way) = Way::new(scope.has_timeout, scope.in_flight) else {
            return Search::Over(Found::Nothing);
        };
        let mut number = from.max(scope.begin);
        let mut looks = 0;

        while looks < LOOKS {
            // The item at the head may be carried out now. Then it is the last part of its signal
            // if nothing else was missing when that began.
            let running = (number == scope.begin)
                .then_some(scope.signalling)
                .flatten();
            let Some(item) = scope.waiting.get_mut(&number) else {
                return Search::Over(Found::Nothing);
            };

            // OVERFLOW: a call has a few thousand elements.
            looks += item.elements();
            match way.see(item.as_rule(wanted, running)) {
                Verdict::GoOn => {}
                Verdict::Blocked if is_assumed(number) => {}
                Verdict::Blocked => return Search::Over(Found::Blocked(number)),
                Verdict::Latch => {
                    if let (What::Wait(wait), Some(_)) = (&mut item.what, &export) {
                        wait.latch();
                    }
                }
                Verdict::Refused => return Search::Over(Found::Nothing),
                Verdict::Found => {
                    if let Some(export) = export.take() {
                        self.add(number, export);
                    }
                    return Search::Over(Found::Signal);
                }
            }
            // OVERFLOW: 2^64 items take longer than any machine runs.
            number = number.wrapping_add(1);
        }
        Search::More(number)
    }
}

impl Item {
    /// How many elements it has, at least one.
    fn elements(&self) -> usize {
        match &self.what {
            What::Commands(_) => 1,
            What::Signal(signal) => signal.elements().max(1),
            What::Wait(wait) => wait.elements().max(1),
        }
    }

    fn as_rule(&self, wanted: Wanted, running: Option<bool>) -> rules::Item {
        match &self.what {
            What::Commands(_) => rules::Item::Commands,
            What::Signal(signal) => rules::Item::Signal {
                reaches: running.unwrap_or_else(|| signal.is_last_part()) && signal.reaches(wanted),
            },
            What::Wait(wait) => rules::Item::Wait(wait.end()),
        }
    }
}
