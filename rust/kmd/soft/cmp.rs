// SPDX-License-Identifier: GPL-2.0

//! The context management processor (CMP): it wakes engines when a queue that waits for a word in
//! memory has to be looked at again (GPU-43). It sleeps until the first of these moments, and for
//! ever if there is none.

use super::{
    nodes,
    polls::{
        Polls,
        NEVER, //
    }, //
};
use crate::platform::{
    self,
    Run,
    Shared,
    Wakeup, //
};

/// How many engines there can be.
pub const ENGINES: usize = nodes::COUNT as usize;

/// The CMP of an adapter with such engines.
pub struct Cmp<E> {
    polls: Shared<Polls>,
    engines: [Option<Shared<E>>; ENGINES],
}

impl<E: Run> Cmp<E> {
    /// The CMP of these engines.
    pub fn new(polls: Shared<Polls>, engines: [Option<Shared<E>>; ENGINES]) -> Self {
        Self { polls, engines }
    }
}

impl<E: Run> Run for Cmp<E> {
    fn wakeup(&self) -> &Wakeup {
        &self.polls.wakeup
    }

    fn run(&self) {
        // For which moment each engine was woken.
        let mut woken = [NEVER; ENGINES];
        let mut next = None;

        while self.polls.wakeup.wait(next) {
            let now = platform::now_ns();

            next = None;
            for ((word, engine), woken) in self.polls.at.iter().zip(&self.engines).zip(&mut woken) {
                let at = platform::load_acquire(word);

                if at == NEVER || at == *woken {
                    continue;
                }
                if at <= now {
                    *woken = at;
                    if let Some(engine) = engine {
                        engine.wakeup().ring();
                    }
                } else {
                    next = Some(next.map_or(at, |next: u64| next.min(at)));
                }
            }
        }
    }
}
