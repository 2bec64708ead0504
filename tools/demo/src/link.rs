// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two programs tell each other besides frames: short messages over a Unix socket, which
//! can carry file descriptors. `c/link.h` is the same thing in C.

use core::mem::MaybeUninit;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    connect, recvmsg, sendmsg, socket_with, socketpair, AddressFamily, RecvAncillaryBuffer,
    RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType,
};

/// Kinds of messages. Those of the first part are also in `c/link.h`.
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
    /// Renderer: a picture; carries its NT handle for the reader that opens it so.
    Picture = 9,
    /// Reader: opened it.
    Ready = 10,
    /// Reader: value is the nanoseconds that the last series of hand-overs took.
    Seen = 11,
    /// Painter: the texture; carries its NT handle.
    Texture = 12,
    /// Painter: the fence of the painted tiles; carries its NT handle.
    Painted = 13,
    /// Painter: the fence of the tiles that may be painted again; carries its NT handle.
    Scaled = 14,
    /// Painter: the fence of the strips that are kept, and may be painted again; carries its NT
    /// handle.
    Kept = 17,
    /// Scaler: all its work is queued; value is how many submissions that was.
    Queued = 15,
    /// Scaler: the picture is right; value is how often it was woken.
    Checked = 16,
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

    /// A link, and the socket of its other side for a child process.
    pub fn to_child() -> Result<(Self, OwnedFd), String> {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (here, there) = pair.map_err(|error| format!("no socket: {error}"))?;
        Ok((Self(here), there))
    }

    /// The link to the parent process, which is the standard input.
    pub fn to_parent() -> Result<Self, String> {
        let socket = std::io::stdin().as_fd().try_clone_to_owned();
        socket
            .map(Self)
            .map_err(|error| format!("no standard input: {error}"))
    }

    /// Sends a message.
    pub fn send(&self, kind: Kind, value: u64) -> Result<(), String> {
        self.send_with_fd(kind, value, None::<OwnedFd>)
    }

    /// Sends a message that may carry a descriptor.
    pub fn send_with_fd(
        &self,
        kind: Kind,
        value: u64,
        fd: Option<impl AsFd>,
    ) -> Result<(), String> {
        let bytes = [(kind as u64).to_ne_bytes(), value.to_ne_bytes()].concat();
        let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err("no space for a descriptor".into());
        }
        sendmsg(
            &self.0,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
        .map_err(|error| format!("cannot reach the other program: {error}"))?;
        Ok(())
    }

    /// Receives a message, which must be of this kind; returns its value.
    pub fn expect(&self, kind: Kind) -> Result<u64, String> {
        self.expect_with_fds(kind).map(|(value, _)| value)
    }

    /// As [`Link::expect`], and returns the one descriptor that came along.
    pub fn expect_fd(&self, kind: Kind) -> Result<OwnedFd, String> {
        let (_, mut fds) = self.expect_with_fds(kind)?;
        fds.pop().ok_or_else(|| "a descriptor was due".into())
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
