// SPDX-License-Identifier: MIT OR Apache-2.0
//! One round trip between two processes that sleep until the other wakes them.

use super::balls::{Ball, Eventfds, Fence, Futex, KeyedMutex, NtsyncEvents, Socket, Syncobj};
use super::Bench;
use crate::machine;
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::peer::{Peer, Place};

/// A ball and the process that returns it.
pub struct PingPong<'a> {
    peer: &'a Peer,
    ball: Box<dyn Ball>,
}

impl<'a> PingPong<'a> {
    /// Gives the other process its side.
    pub fn new(peer: &'a Peer, ball: impl Ball + 'static) -> Self {
        peer.teach(&ball);
        Self {
            peer,
            ball: Box::new(ball),
        }
    }

    fn participant(peer: &'a Peer, ball: impl Ball + 'static) -> Participant<'a> {
        Participant::new(ball.name(), Self::new(peer, ball))
    }
}

impl Subject for PingPong<'_> {
    fn begin(&mut self, operations: usize) {
        self.peer.play(self.ball.kind(), operations + 1);
        self.ball.serve(); // The other process is on its way only now.
    }

    fn run(&mut self) {
        self.ball.serve();
    }
}

/// Measures both groups: without and with waking a processor, if there are two.
pub fn measure(runner: &mut Runner, bench: &Bench, near: Plan, far: Plan) {
    let title = "round trip of two processes on one processor";
    measure_at(
        runner,
        bench,
        near,
        Place::SameProcessor,
        "ping-pong",
        title,
    );
    if machine::cpus() < 2 {
        return;
    }
    let title = "round trip of two processes on two processors";
    measure_at(
        runner,
        bench,
        far,
        Place::AnotherProcessor,
        "ping-pong-2",
        title,
    );
}

fn measure_at(
    runner: &mut Runner,
    bench: &Bench,
    plan: Plan,
    place: Place,
    name: &str,
    title: &str,
) {
    let peer = Peer::start(place);
    let mut all = vec![
        PingPong::participant(&peer, Fence::new(&bench.device, false)),
        PingPong::participant(&peer, Fence::new(&bench.device, true)),
        PingPong::participant(&peer, KeyedMutex::new(&bench.dxg)),
        PingPong::participant(&peer, Futex::new()),
        PingPong::participant(&peer, Eventfds::new()),
        PingPong::participant(&peer, Socket::new()),
    ];
    if bench.ntsync.is_some() {
        all.push(PingPong::participant(&peer, NtsyncEvents::new()));
    }
    if let Some(drm) = &bench.drm {
        all.push(PingPong::participant(&peer, Syncobj::new(drm)));
    }
    runner.group(name, title, plan, all);
}
