// SPDX-License-Identifier: GPL-2.0

//! Address spaces of an adapter take turns where not all fits that they want (MEM-18).
//!
//! A process may want nearly all of a segment, whatever others want. Who lacks room there has what
//! nobody wants give way (`idle.rs`). If that does not do, another address space is *suspended*:
//! its contexts leave their engines, and what only suspended spaces want leaves the segment as room
//! is needed. The worker brings them back one after the other. All that a space wants gets its
//! place, for which others may be suspended; then its contexts go on. How long it stays says
//! `logic/rotation_rules.rs`.
//!
//! LOCK: `hand` is a mutex, outside `AllocationMemory::turn` and `Contexts::state`; spaces are
//! suspended and allocations move under it. `seats` is a spinlock and a leaf.

use super::{
    all_allocations::{
        AllAllocations,
        Leaves,
        Returned, //
    },
    contexts::Contexts,
    paging_worker::PagingWorker,
    seat::Seat, //
};
use crate::{
    dxgk::stats::next_id,
    logic::rotation_rules::{
        next_back,
        slice,
        time_left,
        SHORTEST, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_node, //
        },
        time::now_ns,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_delayed_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    },
    workqueue::{
        DelayedWork,
        WorkItem, //
    }, //
};

/// Who lacks room looks again after so many nanoseconds at the latest.
const LONGEST_SLEEP: u64 = 5_000_000;
/// The same while others are about to have their room.
const SHORT_SLEEP: u64 = 1_000_000;
/// How often a space waits for room that has no user any more.
const PATIENCE: u32 = 100;

struct Hand {
    /// The number of the allocation that left last. The next one is looked for behind it.
    at: u64,
    /// How long it took to bring the last space back, in nanoseconds.
    change: u64,
    /// How often room was waited for that has no user any more, since then.
    waited: u32,
}

/// The address spaces of one adapter.
#[pin_data]
pub(crate) struct Rotation {
    all: Arc<AllAllocations>,
    worker: Arc<PagingWorker>,
    /// The adapter is removed: nobody comes back.
    has_ended: AtomicFlag,
    #[pin]
    hand: Mutex<Hand>,
    /// By any number.
    #[pin]
    seats: SpinLock<RBTree<u64, Arc<Seat>>>,
    #[pin]
    next: DelayedWork<Rotation>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Rotation { self.next }
}

/// The address space is among those of its adapter, as long as this is there.
pub(in crate::dxgk) struct Seated {
    rotation: Arc<Rotation>,
    number: u64,
    pub(super) seat: Arc<Seat>,
}

/// What was done to have more room.
enum Step {
    /// Something has left the segment.
    Left,
    /// A space is suspended, whose allocations may leave.
    Suspended,
    /// The next space that could be suspended stays for so many nanoseconds.
    Stays(u64),
    /// What others want is on its way.
    Comes,
    /// There is nobody whose allocations could leave.
    Nobody,
}

/// Why a space does not come back now.
enum Later {
    /// It does after so many nanoseconds.
    After(u64),
    /// Something is missing that nobody can give: the others come first.
    Others,
}

/// Whether there is more room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// There is, or it was time to look again.
    Room,
    /// Others are about to have theirs: perhaps there will be.
    Perhaps,
    /// There is nobody whose allocations could leave.
    None,
}

impl Rotation {
    /// Nobody yet, of an adapter with these allocations.
    pub(super) fn new(
        all: &Arc<AllAllocations>,
        worker: &Arc<PagingWorker>,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                all: all.clone(),
                worker: worker.clone(),
                has_ended: AtomicFlag::new(false),
                hand <- new_mutex!(Hand { at: 0, change: 0, waited: 0 }, "Rotation::hand"),
                seats <- new_spinlock!(RBTree::new(), "Rotation::seats"),
                next <- new_delayed_work!("Rotation::next"),
            }),
            GFP_KERNEL,
        )
    }

    /// A new address space with these contexts is among them, as long as the result is kept.
    ///
    /// Context: may sleep.
    pub(super) fn join(self: &Arc<Self>, contexts: &Arc<Contexts>) -> Result<Seated, AllocError> {
        let number = next_id();
        let seat = Seat::new(contexts)?;
        let node = tree_node(number, seat.clone())?;
        // Numbers are different.
        let _nothing = self.seats.lock().insert(node);

        Ok(Seated {
            rotation: self.clone(),
            number,
            seat,
        })
    }

    /// Has others leave the segment, for `requester`.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn make_room(self: &Arc<Self>, segment: u32, requester: &Arc<Seat>) -> Made {
        let (stays, made) = {
            let mut hand = self.hand.lock();

            loop {
                match self.step(&mut hand, segment, requester) {
                    Step::Left => return Made::Room,
                    Step::Suspended => {
                        // Whom they make room for uses it for a while.
                        if !requester.is_suspended() {
                            requester.begin_turn();
                        }
                        self.come_back_in(slice(hand.change));
                    }
                    Step::Nobody => return Made::None,
                    Step::Stays(left) => break (left, Made::Room),
                    Step::Comes => break (SHORT_SLEEP, Made::Perhaps),
                }
            }
        };

        fsleep(Delta::from_nanos(
            // CAST: it is far below 2^63.
            stays.min(LONGEST_SLEEP) as i64,
        ));
        made
    }

    /// Does one thing that brings room in the segment nearer. Each allocation is looked at once.
    fn step(&self, hand: &mut Hand, segment: u32, requester: &Arc<Seat>) -> Step {
        let mut at = hand.at;
        let mut is_second_round = false;
        let mut first: Option<Arc<Seat>> = None;
        let mut comes = false;

        loop {
            let Some((number, memory)) = self.all.after(at) else {
                if is_second_round {
                    break;
                }
                is_second_round = true;
                at = 0;
                continue;
            };

            if is_second_round && number > hand.at {
                break;
            }
            at = number;
            match memory.leave(segment, requester) {
                Leaves::Left => {
                    hand.at = number;
                    return Step::Left;
                }
                Leaves::IsUsedBy(seat) => {
                    let is_longer = |before: &Arc<Seat>| seat.turn().since < before.turn().since;

                    if first.as_ref().is_none_or(is_longer) {
                        first = Some(seat);
                    }
                }
                Leaves::Comes => comes = true,
                Leaves::Stays => {}
            }
            work::breathe();
        }

        let Some(first) = first else {
            return if comes { Step::Comes } else { Step::Nobody };
        };
        let left = time_left(first.turn().since, now_ns(), slice(hand.change));

        if left != 0 {
            return Step::Stays(left);
        }
        first.suspend();
        Step::Suspended
    }

    /// The next space comes back after so many nanoseconds, unless one is about to.
    fn come_back_in(self: &Arc<Self>, after: u64) {
        if self.has_ended.load(Relaxed) {
            return;
        }
        // CAST: slices are far below 2^32 milliseconds.
        let after = after.div_ceil(1_000_000) as u32;

        self.worker
            .enqueue_delayed(self.clone(), msecs_to_jiffies(after));
    }

    /// The space that comes back next.
    fn next_back(&self) -> Option<Arc<Seat>> {
        let seats = self.seats.lock();
        let place = next_back(seats.values().map(|seat| seat.turn()))?;

        let next = seats.values().nth(place);

        next.cloned()
    }

    /// Gives all that the space wants its place. What has ended needs none to end its work.
    fn bring_back(&self, hand: &mut Hand, seat: &Arc<Seat>) -> Result<(), Later> {
        let mut at = 0;

        if seat.has_ended() {
            return Ok(());
        }

        while let Some((number, memory)) = self.all.after(at) {
            loop {
                match memory.clone().come_back(seat) {
                    Returned::Done => break,
                    Returned::Failed => return Err(Later::Others),
                    Returned::LacksRoom(segment, look) => match self.step(hand, segment, seat) {
                        Step::Left | Step::Suspended => {}
                        Step::Stays(left) => return Err(Later::After(left)),
                        Step::Comes => return Err(Later::After(SHORT_SLEEP)),
                        Step::Nobody if hand.waited < PATIENCE && look.is_outdated() => {
                            hand.waited += 1;
                            return Err(Later::After(SHORT_SLEEP));
                        }
                        Step::Nobody => match memory.clone().come_back_elsewhere(seat) {
                            true => break,
                            false => return Err(Later::Others),
                        },
                    },
                }
            }
            at = number;
            work::breathe();
        }
        Ok(())
    }

    /// The adapter is removed: nobody comes back any more.
    ///
    /// Context: may sleep, no locks held; not the worker.
    pub(in crate::dxgk) fn end(self: &Arc<Self>) {
        self.has_ended.store(true, Relaxed);
        work::cancel::<_, 0>(self);
    }
}

impl WorkItem for Rotation {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let Some(seat) = this.next_back() else {
            return;
        };

        if this.worker.is_held() {
            return this.come_back_in(SHORTEST);
        }

        let mut hand = this.hand.lock();
        let began = now_ns();
        let after = match seat.charge(|| this.bring_back(&mut hand, &seat)) {
            Ok(()) => {
                seat.resume();
                hand.change = now_ns().saturating_sub(began);
                hand.waited = 0;
                slice(hand.change)
            }
            Err(Later::After(left)) => left,
            Err(Later::Others) => {
                seat.begin_turn();
                slice(hand.change)
            }
        };

        drop(hand);
        if this.next_back().is_some() {
            this.come_back_in(after);
        }
    }
}

impl Seated {
    /// The process has ended: the space takes no turns any more.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn end(&self) {
        self.seat.end();
        if self.seat.is_suspended() {
            self.rotation.come_back_in(0);
        }
    }
}

impl Drop for Seated {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let node = self.rotation.seats.lock().remove_node(&self.number);

        drop(node);
    }
}
