// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second process of the measurements between processes.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use crate::fds::{channel, receive, send};
use crate::machine::{pin, unpin};
use crate::subjects::balls::{self, Ball};

/// The argument that makes this program the second process.
pub const ARGUMENT: &str = "peer";

/// Where the second process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the processor of the first process: a wake-up is a switch of tasks.
    SameProcessor,
    /// On another one, which sleeps and has to be woken.
    AnotherProcessor,
}

const FIRST_PROCESSOR: usize = 0;

/// The second process, as the first one sees it. Ends when dropped.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    /// `None` once it was told to end.
    socket: Option<OwnedFd>,
}

impl Peer {
    /// Starts this program a second time, on a processor of its own or on that of the first one.
    pub fn start(place: Place) -> Self {
        pin(FIRST_PROCESSOR);
        let (here, there) = channel();
        let program = std::env::current_exe().expect("path of this program");
        let child = Command::new(program)
            .arg(ARGUMENT)
            .arg(match place {
                Place::SameProcessor => "0",
                Place::AnotherProcessor => "1",
            })
            .stdin(Stdio::from(there))
            .spawn()
            .expect("start a second process");
        Self {
            child,
            socket: Some(here),
        }
    }

    fn socket(&self) -> &OwnedFd {
        self.socket.as_ref().expect("open until drop")
    }

    /// Gives it its side of a ball.
    pub fn teach(&self, ball: &dyn Ball) {
        send(self.socket(), [ball.kind(), 0], &ball.fds());
    }

    /// Tells it to return the ball of a kind a number of times.
    pub fn play(&self, kind: u64, rounds: usize) {
        send(self.socket(), [kind, rounds as u64], &[]);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.socket.take());
        let ended = self.child.wait().expect("the second process ends");
        assert!(ended.success(), "the second process failed: {ended}");
        unpin();
    }
}

/// What the second process does: a message with descriptors is a new ball, one without starts a
/// game.
///
/// # Panics
///
/// Without the number of a processor as second argument.
pub fn serve() {
    let processor = std::env::args().nth(2).and_then(|arg| arg.parse().ok());
    pin(processor.expect("number of a processor"));
    let socket = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .expect("standard input");
    let mut balls = BTreeMap::new();
    while let Some(([kind, value], fds)) = receive(&socket) {
        if fds.is_empty() {
            let ball: &mut Box<dyn Ball> = balls.get_mut(&kind).expect("a ball of this kind");
            for _ in 0..value {
                ball.echo();
            }
        } else {
            balls.insert(kind, balls::catch(kind, fds));
        }
    }
}
