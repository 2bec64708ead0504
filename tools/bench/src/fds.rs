// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short messages with descriptors between the two processes of a measurement.

use core::mem::MaybeUninit;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    recvmsg, sendmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage,
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Most descriptors in a message.
const MOST: usize = 3;

/// Two numbers, the meaning of which is up to the processes.
pub type Words = [u64; 2];

/// A pair of connected sockets that keep messages apart.
pub fn channel() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("socketpair")
}

/// Sends a message.
pub fn send(socket: &OwnedFd, words: Words, fds: &[BorrowedFd<'_>]) {
    let bytes = words.map(u64::to_ne_bytes).concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(fds));
        assert!(fits, "at most {MOST} descriptors");
    }
    let flags = SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags).expect("the peer is there");
}

/// Receives a message; `None` when the other side is gone.
pub fn receive(socket: &OwnedFd) -> Option<(Words, Vec<OwnedFd>)> {
    let mut bytes = [0; size_of::<Words>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        flags,
    )
    .expect("recvmsg");
    if received.bytes == 0 {
        return None;
    }
    assert_eq!(received.bytes, bytes.len());
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    let word = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("two words"));
    Some(([word(0), word(8)], fds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn numbers_and_descriptors_arrive() {
        let (here, there) = channel();
        send(&here, [1, u64::MAX], &[here.as_fd(), there.as_fd()]);
        let (words, fds) = receive(&there).unwrap();
        assert_eq!((words, fds.len()), ([1, u64::MAX], 2));
        drop((here, fds));
        assert!(receive(&there).is_none());
    }
}
