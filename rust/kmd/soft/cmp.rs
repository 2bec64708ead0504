// SPDX-License-Identifier: GPL-2.0

//! The context management processor (CMP): it wakes engines when a queue that waits for a word in
//! memory has to be looked at again (GPU-43). It sleeps until the first of these moments, and for
//! ever if there is none.

use super::{
    nodes,
    polls::{
        Polls,
        NEVER, //
    },
    shell::Shell, //
};
use crate::platform::{
    self,
    Run,
    Shared,
    Wakeup, //
};

/// The CMP of an adapter.
pub(super) struct Cmp {
    polls: Shared<Polls>,
    engines: [Option<Shared<Shell>>; nodes::COUNT as usize],
}

impl Cmp {
    /// The CMP of these engines.
    pub(super) fn new(
        polls: Shared<Polls>,
        engines: [Option<Shared<Shell>>; nodes::COUNT as usize],
    ) -> Self {
        Self { polls, engines }
    }
}

impl Run for Cmp {
    fn wakeup(&self) -> &Wakeup {
        &self.polls.wakeup
    }

    fn run(&self) {
        // For which moment each engine was woken.
        let mut woken = [NEVER; nodes::COUNT as usize];
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
