// SPDX-License-Identifier: MIT OR Apache-2.0
//! From MakeResident until the thread is awake that waits for the fence of the paging queue.

use std::time::Instant;

use opendxg::{Allocation, EvictFlags, PagingQueue, ResidentFlags};

use super::balls::Fence;
use super::ping_pong::PingPong;
use super::{names, Bench};
use crate::gpu::PAGE;
use crate::machine;
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::peer::{Peer, Place};

/// Name of the group.
pub const GROUP: &str = "paging-fence";
/// The most pages that a call makes resident by itself.
const AT_ONCE: u64 = 1_024;

/// The call does it all.
pub const IN_THE_CALL: &str = "MakeResident of 1024 pages, done in the call";
/// The call is PENDING, because there is a page more.
pub const BY_WORKER: &str = "MakeResident of 1025 pages, until its fence wakes";
/// The same, from the return of the call.
pub const SINCE_RETURN: &str = "the fence of 1025 pages, from the return of the call";
/// One page, behind those, from its own call.
pub const BEHIND: &str = "MakeResident of a page behind them, until its fence wakes";

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Call,
    Return,
    SecondCall,
}

/// Memory of the system with all its pages: nothing is copied or filled.
struct Pages<'a> {
    paging: &'a PagingQueue,
    allocation: Allocation,
    /// One that is made resident while the other one is being made so.
    page: Allocation,
    from: From,
    /// Whether the fence has to be waited for.
    pending: bool,
    took: Option<u64>,
}

impl<'a> Pages<'a> {
    fn new(paging: &'a PagingQueue, pages: u64, from: From) -> Self {
        let allocate = |pages| {
            let resource = paging.device().new_resource().linear(pages * PAGE);
            let allocation = resource.create_one().expect("create an allocation");
            allocation.lock_write().expect("map it").fill(1);
            allocation
        };
        Self {
            paging,
            allocation: allocate(pages),
            page: allocate(1),
            from,
            pending: pages > AT_ONCE,
            took: None,
        }
    }

    fn come(&self, allocation: &Allocation) -> u64 {
        let resident = self
            .paging
            .make_resident(&[allocation], ResidentFlags::empty());
        let value = resident.and_then(opendxg::Resident::value);
        value.expect("make resident")
    }
}

impl Subject for Pages<'_> {
    /// The thread goes before the worker where both have one processor. Else the worker would be
    /// through before the call returns, and nobody would have to wake up.
    fn begin(&mut self, _operations: usize) {
        machine::go_first(true);
    }

    fn end(&mut self) {
        machine::go_first(false);
    }

    fn run(&mut self) {
        let mut value = self.come(&self.allocation);
        assert_eq!(value != 0, self.pending, "whether it is PENDING");
        let mut began = Instant::now();
        if self.from == From::SecondCall {
            // On another processor the worker may be through already: then it is at once.
            began = Instant::now();
            value = self.come(&self.page);
        }
        self.paging.wait(value).expect("wait");
        self.took = (self.from != From::Call).then(|| began.elapsed().as_nanos() as u64);
    }

    fn after(&mut self) {
        let all = [&self.allocation, &self.page];
        let all = match self.from {
            From::SecondCall => &all[..],
            _ => &all[..1],
        };
        let gone = self.paging.device().evict(all, EvictFlags::empty());
        gone.expect("evict");
    }

    fn own_ns(&mut self) -> Option<u64> {
        self.took
    }
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let place = match machine::cpus() {
        0 | 1 => Place::SameProcessor,
        _ => Place::AnotherProcessor,
    };
    let peer = Peer::start(place);
    let paging = bench.device.create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let pages = |pages, from| Pages::new(&paging, pages, from);
    let all = vec![
        Participant::new(IN_THE_CALL, pages(AT_ONCE, From::Call)),
        Participant::new(BY_WORKER, pages(AT_ONCE + 1, From::Call)),
        Participant::new(SINCE_RETURN, pages(AT_ONCE + 1, From::Return)),
        Participant::new(BEHIND, pages(AT_ONCE + 1, From::SecondCall)),
        Participant::new(
            names::OPENDXG,
            PingPong::new(&peer, Fence::new(&bench.device, false)),
        ),
    ];
    runner.group(
        GROUP,
        "fence of a paging queue, and a round trip of two processes by a fence",
        plan,
        all,
    );
}
