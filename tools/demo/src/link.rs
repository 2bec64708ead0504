// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two programs tell each other besides frames: short messages over a Unix socket, which can
//! carry file descriptors. `c/link.h` is the same thing in C.

use core::mem::MaybeUninit;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    connect, recvmsg, sendmsg, socket_with, AddressFamily, RecvAncillaryBuffer,
    RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};

/// Kinds of messages, as in `c/link.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// C: value is the adapter's LUID; carries the fence and the board.
    Hello = 1,
    /// Rust: hand over frames in way number `value`.
    Start = 2,
    /// C: the last frame arrived.
    Finished = 3,
    /// Rust: make a semaphore.
    NumberPlease = 4,
    /// C: value is its global handle.
    Number = 5,
    /// Rust: the number works here.
    Opened = 6,
    /// C: its own handle is destroyed.
    Dropped = 7,
    /// Rust: all done.
    Goodbye = 8,
}

/// The socket to the other program.
pub struct Link(OwnedFd);

impl Link {
    /// Connects to the other program, which may need a moment to start.
    pub fn connect(path: &str) -> Result<Self, String> {
        let address = SocketAddrUnix::new(path).map_err(|error| format!("{path}: {error}"))?;
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let socket = socket.map_err(|error| format!("no socket: {error}"))?;
        for _ in 0..500 {
            match connect(&socket, &address) {
                Ok(()) => return Ok(Self(socket)),
                Err(Errno::NOENT | Errno::CONNREFUSED) => sleep(Duration::from_millis(20)),
                Err(error) => return Err(format!("{path}: {error}")),
            }
        }
        Err(format!("nobody listens at {path}"))
    }

    /// Sends a message.
    pub fn send(&self, kind: Kind, value: u64) -> Result<(), String> {
        let bytes = [(kind as u64).to_ne_bytes(), value.to_ne_bytes()].concat();
        let mut nothing = SendAncillaryBuffer::default();
        sendmsg(
            &self.0,
            &[IoSlice::new(&bytes)],
            &mut nothing,
            SendFlags::NOSIGNAL,
        )
        .map_err(|error| format!("cannot reach the other program: {error}"))?;
        Ok(())
    }

    /// Receives a message, which must be of this kind; returns its value.
    pub fn expect(&self, kind: Kind) -> Result<u64, String> {
        self.expect_with_fds(kind).map(|(value, _)| value)
    }

    /// As [`Link::expect`], and returns the descriptors that came along.
    pub fn expect_with_fds(&self, kind: Kind) -> Result<(u64, Vec<OwnedFd>), String> {
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            flags,
        )
        .map_err(|error| format!("cannot hear the other program: {error}"))?;
        if received.bytes != bytes.len() {
            return Err("the other program is gone".into());
        }
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fds = fds.flatten().collect();
        let word =
            |at| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("16 bytes hold two words"));
        if word(0) != kind as u64 {
            return Err(format!("expected message {kind:?}, got number {}", word(0)));
        }
        Ok((word(8), fds))
    }
}
