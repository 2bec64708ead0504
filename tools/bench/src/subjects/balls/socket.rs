// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a server process would need: a request and a reply over a socket, with or without a
//! descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};

use super::{names, Ball, Kind};
use crate::fds::{channel, receive, send};

/// A request of 64 bytes and a reply of 64 bytes: what a server process would need for any call.
pub struct Socket {
    here: OwnedFd,
    there: Option<OwnedFd>,
}

impl Socket {
    pub(super) fn other_side(here: OwnedFd) -> Self {
        Self { here, there: None }
    }

    /// Makes the sockets.
    pub fn new() -> Self {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let (here, there) = pair.expect("socketpair");
        Self {
            here,
            there: Some(there),
        }
    }

    fn send(&self) {
        let sent = rustix::io::write(&self.here, &[7; 64]).expect("write a socket");
        assert_eq!(sent, 64);
    }

    fn receive(&self) {
        let mut bytes = [0; 64];
        let received = rustix::io::read(&self.here, &mut bytes).expect("read a socket");
        assert_eq!((received, bytes), (64, [7; 64]));
    }
}

impl Default for Socket {
    fn default() -> Self {
        Self::new()
    }
}

impl Ball for Socket {
    fn kind(&self) -> u64 {
        Kind::Socket as u64
    }

    fn name(&self) -> &'static str {
        names::SOCKETPAIR
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.there.iter().map(AsFd::as_fd).collect()
    }

    fn serve(&mut self) {
        self.send();
        self.receive();
    }

    fn echo(&mut self) {
        self.receive();
        self.send();
    }
}

/// A request of 16 bytes and a reply with a descriptor: what a server process would need for a
/// call that opens or shares something.
pub struct FileServer {
    here: OwnedFd,
    there: Option<OwnedFd>,
    file: OwnedFd,
}

impl FileServer {
    /// Makes the sockets; the other side replies with `file`.
    pub fn new(file: OwnedFd) -> Self {
        let (here, there) = channel();
        Self {
            here,
            there: Some(there),
            file,
        }
    }

    pub(super) fn other_side(here: OwnedFd, file: OwnedFd) -> Self {
        Self {
            here,
            there: None,
            file,
        }
    }
}

impl Ball for FileServer {
    fn kind(&self) -> u64 {
        Kind::FileServer as u64
    }

    fn name(&self) -> &'static str {
        names::SERVER
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let there = self.there.iter().map(AsFd::as_fd);
        there.chain([self.file.as_fd()]).collect()
    }

    fn serve(&mut self) {
        send(&self.here, [0; 2], &[]);
        let (_, fds) = receive(&self.here).expect("the other side is there");
        assert_eq!(fds.len(), 1, "a descriptor");
    }

    fn echo(&mut self) {
        receive(&self.here).expect("the other side is there");
        send(&self.here, [0; 2], &[self.file.as_fd()]);
    }
}
