// SPDX-License-Identifier: MIT OR Apache-2.0
//! A keyed mutex that goes back and forth: its key says whose turn it is.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use opendxg::{Acquired, Dxg, GlobalHandle, Timeout};
use rustix::fs::MemfdFlags;

use super::{names, Ball, Kind};

/// Key of the side that serves.
const HERE: u64 = 0;
/// Key of the side that returns.
const THERE: u64 = 1;

/// One side of a keyed mutex. The side that serves owns it between two rounds.
pub struct KeyedMutex {
    mutex: opendxg::KeyedMutex,
    /// Holds the global handle, for the other side.
    number: OwnedFd,
}

impl KeyedMutex {
    /// Makes the mutex and acquires it.
    pub fn new(dxg: &Dxg) -> Self {
        let mutex = dxg.create_keyed_mutex(HERE).expect("create a keyed mutex");
        let GlobalHandle(global) = mutex.global_handle().expect("a global handle");
        let number = rustix::fs::memfd_create("number", MemfdFlags::CLOEXEC).expect("memfd");
        rustix::io::write(&number, &global.to_ne_bytes()).expect("write a memfd");
        let ball = Self { mutex, number };
        ball.acquire(HERE);
        ball
    }

    pub(super) fn open(number: OwnedFd) -> Self {
        let mut bytes = [0; 4];
        rustix::io::pread(&number, &mut bytes, 0).expect("read a memfd");
        let dxg = Dxg::open().expect("open the driver");
        let mutex = dxg.open_keyed_mutex(GlobalHandle(u32::from_ne_bytes(bytes)));
        Self {
            mutex: mutex.expect("open a keyed mutex"),
            number,
        }
    }

    fn acquire(&self, key: u64) {
        let acquired = self.mutex.acquire(key, Timeout::Forever).expect("acquire");
        assert_eq!(acquired, Acquired::Owned(0));
    }

    fn release(&self, key: u64) {
        self.mutex.release(key, 0).expect("release");
    }
}

impl Ball for KeyedMutex {
    fn kind(&self) -> u64 {
        Kind::KeyedMutex as u64
    }

    fn name(&self) -> &'static str {
        names::KEYED_MUTEX
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.number.as_fd()]
    }

    fn serve(&mut self) {
        self.release(THERE);
        self.acquire(HERE);
    }

    fn echo(&mut self) {
        self.acquire(THERE);
        self.release(HERE);
    }
}
