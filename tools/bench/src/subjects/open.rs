// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening an object that exists, and closing it again.

use opendxg::{Access, SyncFlags, SyncKind};

use super::balls::Socket;
use super::ping_pong::PingPong;
use super::{names, Bench};
use crate::measure::{Participant, Plan, Runner};
use crate::peer::{Peer, Place};

/// Measures the group. The socket stands for asking another process that keeps the objects.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let (dxg, device) = (&bench.dxg, &bench.device);
    let kind = SyncKind::Semaphore {
        max_count: 1,
        initial_count: 0,
    };
    let semaphore = device
        .create_sync_object(kind, SyncFlags::SHARED)
        .expect("create a semaphore");
    let number = semaphore.global_handle().expect("a global handle");
    let fence = device.create_shareable_fence(0).expect("create a fence");
    let nt_handle = fence.share(Access::ALL).expect("share a fence");
    let peer = Peer::start(Place::SameProcessor);
    let all = vec![
        Participant::new("opendxg by number", || {
            let opened = dxg.open_global(number).expect("open a semaphore");
            opened.destroy().expect("destroy a handle");
        }),
        Participant::new("opendxg by descriptor", || {
            let flags = SyncFlags::empty();
            let opened = device.open_fence(&nt_handle, flags).expect("open a fence");
            opened.destroy().expect("destroy a handle");
        }),
        Participant::new(names::SOCKETPAIR, PingPong::new(&peer, Socket::new())),
    ];
    runner.group("open", "open an existing object and close it", plan, all);
}
