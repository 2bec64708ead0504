// SPDX-License-Identifier: GPL-2.0

//! The doorbells of the software adapter (GPU-18 to GPU-32).
//!
//! A physical doorbell is a page of memory, of which no engine notices that it is written to. So it
//! traps: the first access makes the queue look at its ring, and from then on the engine looks by
//! itself, until there is nothing to do. Then the doorbell is made to trap again, and the engine
//! looks once more. What the process has written before that is seen by this look; who writes
//! later traps (GPU-32).
//!
//! An adapter may have fewer physical doorbells than queues: then the one goes away from its queue
//! that was used least recently (GPU-24). A process that has just connected is given time to ring
//! once before. Otherwise two that connect in turns take the doorbell from each other without end:
//! each has to return from its call, ring by way of a fault and read the status, while the other
//! one only has to call.
//!
//! LOCK: `Doorbells::connecting` is held while a doorbell is taken away, in which the OS part takes
//! its lock of that doorbell, and while the process that has it is given time. `Doorbells::slots`
//! is a leaf.

use super::queue::Queue;
use crate::{
    ddi::{
        class::Passive,
        doorbell::{
            Connected,
            Disconnect,
            DoorbellCallbacks, //
        },
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        DoorbellPage,
        Lock,
        Places,
        Shared,
        ShortLock,
        Word64, //
    }, //
};

/// Most physical doorbells that an adapter has.
pub const MOST: usize = 256;

/// How long a doorbell is not taken away from a process that has connected it and not rung yet.
const TENURE_NS: u64 = 1_000_000;

/// How the doorbells of an adapter behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorbellConfig {
    /// How many physical doorbells there are, at least one.
    pub count: u32,
    /// All queues have the same one.
    pub global: bool,
    /// Processes call NotifyWorkSubmission after each ring (GPU-25).
    pub notify: bool,
    /// An engine with nothing to do goes to F1, in which none is connected (GPU-28).
    pub f1: bool,
}

impl DoorbellConfig {
    /// Whether there can be such doorbells. CAST: 256.
    pub fn is_valid(&self) -> bool {
        (1..=MOST as u32).contains(&self.count)
    }
}

impl Default for DoorbellConfig {
    fn default() -> Self {
        Self {
            // CAST: 256.
            count: MOST as u32,
            global: false,
            notify: false,
            f1: false,
        }
    }
}

/// A doorbell, as long as the OS part has it.
pub(super) struct Doorbell {
    /// Whose work it tells of.
    pub(super) queue: Shared<Queue>,
    callbacks: Shared<dyn DoorbellCallbacks>,
    /// When it was last used, as the turn in which that was.
    used: Word64,
    /// Until when it is not taken away from its process.
    kept_until_ns: Word64,
    /// Whether it is connected, and wants to be told of work.
    notify: bool,
}

/// A physical doorbell.
struct Slot {
    page: Shared<DoorbellPage>,
    owner: Option<Shared<Doorbell>>,
}

/// The physical doorbells of an adapter.
pub(super) struct Doorbells {
    config: DoorbellConfig,
    /// One connection at a time.
    connecting: Lock<()>,
    slots: ShortLock<Places<Slot, MOST>>,
    /// The page of all, if they are global.
    global: Option<Shared<DoorbellPage>>,
    /// Counts uses.
    turn: Word64,
}

impl Doorbell {
    /// One that is not connected; `None` if there is no memory. May sleep.
    pub(super) fn new(
        queue: &Shared<Queue>,
        callbacks: &Shared<dyn DoorbellCallbacks>,
        config: &DoorbellConfig,
    ) -> Option<Shared<Self>> {
        platform::shared(Self {
            queue: queue.clone(),
            callbacks: callbacks.clone(),
            used: platform::word64(0),
            kept_until_ns: platform::word64(0),
            notify: config.notify,
        })
    }
}

impl Doorbells {
    /// Those of an adapter; `None` if there is no memory. May sleep.
    pub(super) fn new(config: &DoorbellConfig) -> Option<Self> {
        let mut slots = platform::places()?;
        let global = match config.global {
            true => Some(platform::doorbell_page()?),
            false => None,
        };

        // CAST: at most 256.
        for place in slots.iter_mut().take(config.count as usize) {
            let page = match &global {
                Some(page) => page.clone(),
                None => platform::doorbell_page()?,
            };

            *place = Some(Slot { page, owner: None });
        }
        Some(Self {
            config: *config,
            connecting: platform::lock!((), "soft::Doorbells::connecting")?,
            slots: platform::short_lock!(slots, "soft::Doorbells::slots")?,
            global,
            turn: platform::word64(0),
        })
    }

    /// How they behave.
    pub(super) fn config(&self) -> &DoorbellConfig {
        &self.config
    }

    /// The process has rung.
    pub(super) fn rung(&self, doorbell: &Doorbell) {
        self.use_now(doorbell);
        platform::store_release(&doorbell.kept_until_ns, 0);
    }

    /// It is used.
    fn use_now(&self, doorbell: &Doorbell) {
        // OVERFLOW: 2^64 uses take longer than any machine runs. Who is counted twice in a turn is
        // as good a choice as the other.
        let turn = platform::load_acquire(&self.turn).wrapping_add(1);

        platform::store_release(&self.turn, turn);
        platform::store_release(&doorbell.used, turn);
    }

    /// ConnectDoorbell. `look` makes the engine of a queue look at its ring. May sleep.
    pub(super) fn connect(
        &self,
        doorbell: &Shared<Doorbell>,
        look: impl Fn(&Shared<Queue>),
    ) -> KmdResult<Connected> {
        let _turn = self.connecting.lock();
        let page = match self.page_of(doorbell) {
            Some(page) => page,
            None => {
                let page = self.take_page(doorbell, &look)?;

                // What the last process has written to it is nobody else's business.
                if self.global.is_none() {
                    platform::clear_doorbell_page(&page);
                }
                page
            }
        };

        self.use_now(doorbell);
        platform::store_release(
            &doorbell.kept_until_ns,
            platform::now_ns().saturating_add(TENURE_NS),
        );
        // What was written before the doorbell was connected is in the ring.
        look(&doorbell.queue);
        Ok(Connected {
            page,
            secondary: None,
            notify: doorbell.notify,
            traps: !doorbell.notify,
        })
    }

    /// The physical doorbell that it has.
    fn page_of(&self, doorbell: &Shared<Doorbell>) -> Option<Shared<DoorbellPage>> {
        self.slots
            .lock()
            .iter()
            .flatten()
            .find(|slot| slot.is_of(doorbell))
            .map(|slot| slot.page.clone())
    }

    /// Gives it a physical doorbell, of another queue if all have one.
    fn take_page(
        &self,
        doorbell: &Shared<Doorbell>,
        look: impl Fn(&Shared<Queue>),
    ) -> KmdResult<Shared<DoorbellPage>> {
        loop {
            let victim = {
                let mut slots = self.slots.lock();

                if let Some(free) = slots.iter_mut().flatten().find(|slot| slot.owner.is_none()) {
                    free.owner = Some(doorbell.clone());
                    return Ok(free.page.clone());
                }
                slots
                    .iter()
                    .flatten()
                    .filter_map(|slot| slot.owner.as_ref())
                    .min_by_key(|owner| platform::load_acquire(&owner.used))
                    .cloned()
            };
            // There is at least one, and all have an owner.
            let victim = victim.ok_or(KmdError::DeviceRemoved)?;

            if platform::now_ns() < platform::load_acquire(&victim.kept_until_ns) {
                platform::pause();
                continue;
            }
            // Only after this may another queue have the page.
            victim
                .callbacks
                .disconnect(&Passive::here(), Disconnect::Retry);
            look(&victim.queue);
            self.release(&victim);
        }
    }

    /// It is about to be destroyed: on return no callback of it is inside or comes any more from
    /// here. May sleep.
    pub(super) fn end(&self, doorbell: &Shared<Doorbell>) {
        let _turn = self.connecting.lock();

        self.release(doorbell);
    }

    /// It has no physical doorbell any more; nobody writes to that. May sleep.
    pub(super) fn release(&self, doorbell: &Shared<Doorbell>) {
        let owner = self
            .slots
            .lock()
            .iter_mut()
            .flatten()
            .find(|slot| slot.is_of(doorbell))
            .and_then(|slot| slot.owner.take());

        // It goes where no lock is held.
        drop(owner);
    }
}

impl Slot {
    fn is_of(&self, doorbell: &Shared<Doorbell>) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|owner| Shared::ptr_eq(owner, doorbell))
    }
}
