// SPDX-License-Identifier: GPL-2.0

//! Contexts that are suspended together, and the wait for that: no work of an address space runs
//! while its page tables move (MEM-55, MEM-56, MEM-59).

use super::{
    context::Context,
    process::Process, //
};
use crate::{
    ddi::{
        class::Passive,
        queue::Suspend,
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Arrivals,
        Shared,
        Word32, //
    }, //
};

/// The contexts of a process that are suspended together.
pub struct Suspensions {
    process: Shared<Process>,
    /// How many suspensions have ended that were pending.
    ended: Shared<Arrivals>,
}

/// One of these contexts, as its callbacks know it.
pub struct Suspension {
    /// As in [`Suspensions`].
    all_ended: Shared<Arrivals>,
    /// The id of the suspension that is waited for; 0 for none.
    awaited: Word32,
}

impl Suspension {
    /// SUSPEND_CONTEXT_COMPLETED: [`suspended`](crate::ddi::queue::QueueCallbacks::suspended) of
    /// the context.
    ///
    /// Context: any.
    pub fn ended(&self, id: u64) {
        if self.take(id) {
            self.all_ended.arrive();
        }
    }

    /// Whether a suspension was waited for, once.
    fn take(&self, id: u64) -> bool {
        u32::try_from(id).is_ok_and(|id| id != 0 && platform::cmpxchg(&self.awaited, id, 0))
    }
}

impl Suspensions {
    /// No contexts of a process yet.
    pub fn new(process: &Shared<Process>) -> KmdResult<Shared<Self>> {
        let ended = platform::arrivals().and_then(platform::shared);
        let suspensions = Self {
            process: process.clone(),
            ended: ended.ok_or(KmdError::NoMemory)?,
        };

        platform::shared(suspensions).ok_or(KmdError::NoMemory)
    }

    /// What a new context needs.
    pub fn add(&self) -> KmdResult<Shared<Suspension>> {
        let suspension = Suspension {
            all_ended: self.ended.clone(),
            awaited: platform::word32(0),
        };

        platform::shared(suspension).ok_or(KmdError::NoMemory)
    }

    /// Suspends contexts, as the one with this id, which is not 0 and not that of the last time. On
    /// return no work of them runs. One of these at a time.
    ///
    /// The KMD is not stopped meanwhile, so that it tells of the end.
    pub fn suspend<'a>(
        &self,
        class: &mut Passive,
        id: u32,
        contexts: impl Iterator<Item = (&'a Context, &'a Suspension)>,
    ) {
        // A stopped adapter runs nothing.
        let Some(kmd) = self.process.port.enter_to_page(class) else {
            return;
        };
        let mut expected = self.ended.count();

        for (context, suspension) in contexts {
            platform::cmpxchg(&suspension.awaited, 0, id);

            let suspend = context.suspend_within(&kmd, class, id.into());

            // A KMD may tell of the end before it returns.
            if suspend == Suspend::Pending || !suspension.take(id.into()) {
                // OVERFLOW: it counts modulo 2^32.
                expected = expected.wrapping_add(1);
            }
        }
        self.ended.wait_until(expected);
    }

    /// Their work goes on.
    pub fn resume<'a>(&self, class: &mut Passive, contexts: impl Iterator<Item = &'a Context>) {
        for context in contexts {
            // A stopped adapter does not go on.
            let _stopped = context.resume(class);
        }
    }
}
