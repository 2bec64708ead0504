// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of io_uring as it takes to poll a descriptor, to read from it, and to keep it.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io_uring::{
    io_uring_cqe, io_uring_enter, io_uring_params, io_uring_register, io_uring_setup, io_uring_sqe,
    IoringEnterFlags, IoringOp, IoringRegisterOp, IORING_OFF_CQ_RING, IORING_OFF_SQES,
    IORING_OFF_SQ_RING,
};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use crate::{Failure, TestResult};

/// Entries of the rings.
const ENTRIES: u32 = 8;

/// A part of the ring that the kernel shares with us.
struct Shared {
    start: *mut c_void,
    length: usize,
}

impl Shared {
    fn map(fd: &OwnedFd, length: usize, offset: u64) -> TestResult<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, anywhere.
        let start = unsafe { mmap(null_mut(), length, rights, MapFlags::SHARED, fd, offset) }?;
        Ok(Self { start, length })
    }

    /// A word of the ring.
    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset of an aligned word inside the mapping, which lives as
        // long.
        unsafe { &*self.start.byte_add(offset as usize).cast() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

/// An io_uring.
pub struct Ring {
    params: io_uring_params,
    submissions: Shared,
    completions: Shared,
    entries: Shared,
    fd: OwnedFd,
}

impl Ring {
    /// A small ring. Skips the test where the kernel has none.
    pub fn new() -> TestResult<Self> {
        let mut params = io_uring_params::default();
        // SAFETY: `params` asks for no memory of this process.
        let fd = unsafe { io_uring_setup(ENTRIES, &mut params) }
            .map_err(|errno| Failure::Skipped(format!("no io_uring: {errno}")))?;
        let sq = params.sq_off.array as usize + params.sq_entries as usize * size_of::<u32>();
        let cq =
            params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let sqes = params.sq_entries as usize * size_of::<io_uring_sqe>();
        Ok(Self {
            submissions: Shared::map(&fd, sq, IORING_OFF_SQ_RING)?,
            completions: Shared::map(&fd, cq, IORING_OFF_CQ_RING)?,
            entries: Shared::map(&fd, sqes, IORING_OFF_SQES)?,
            params,
            fd,
        })
    }

    /// Gives the ring a file to keep.
    pub fn keep_file(&self, fd: BorrowedFd<'_>) -> TestResult {
        self.register(IoringRegisterOp::RegisterFiles, fd)
    }

    /// Gives the ring an eventfd that it signals with every answer.
    pub fn keep_event(&self, event: BorrowedFd<'_>) -> TestResult {
        self.register(IoringRegisterOp::RegisterEventfd, event)
    }

    fn register(&self, what: IoringRegisterOp, fd: BorrowedFd<'_>) -> TestResult {
        let number = fd.as_raw_fd();
        // SAFETY: both take the address of one descriptor's number, which they only read.
        unsafe { io_uring_register(&self.fd, what, (&raw const number).cast(), 1) }?;
        Ok(())
    }

    /// Asks once for `POLLIN` of a descriptor; `data` comes back with the answer.
    pub fn poll_add(&mut self, fd: BorrowedFd<'_>, data: u64) -> TestResult {
        let mut entry = io_uring_sqe {
            opcode: IoringOp::PollAdd,
            fd: fd.as_raw_fd(),
            ..Default::default()
        };
        entry.op_flags.poll32_events = libc::POLLIN as u32;
        entry.user_data.u64_ = data;
        self.submit(entry)
    }

    /// Reads from a descriptor; `data` comes back with the answer.
    ///
    /// # Safety
    ///
    /// The bytes are not touched until the answer has come.
    pub unsafe fn read(&mut self, fd: BorrowedFd<'_>, bytes: &mut [u8], data: u64) -> TestResult {
        let mut entry = io_uring_sqe {
            opcode: IoringOp::Read,
            fd: fd.as_raw_fd(),
            ..Default::default()
        };
        entry.addr_or_splice_off_in.addr.ptr = bytes.as_mut_ptr().cast();
        entry.len.len = bytes.len() as u32;
        entry.off_or_addr2.off = u64::MAX;
        entry.user_data.u64_ = data;
        self.submit(entry)
    }

    fn submit(&mut self, entry: io_uring_sqe) -> TestResult {
        let offsets = &self.params.sq_off;
        let tail = self.submissions.word(offsets.tail);
        let mask = self
            .submissions
            .word(offsets.ring_mask)
            .load(Ordering::Relaxed);
        let index = tail.load(Ordering::Relaxed) & mask;
        // SAFETY: `index` is below the number of entries; the kernel does not read it before the
        // tail moves.
        unsafe {
            let slot = self
                .entries
                .start
                .cast::<io_uring_sqe>()
                .add(index as usize);
            slot.write(entry);
        }
        self.submissions
            .word(offsets.array + 4 * index)
            .store(index, Ordering::Relaxed);
        tail.fetch_add(1, Ordering::Release);
        // SAFETY: no argument beyond the numbers.
        let taken = unsafe { io_uring_enter(&self.fd, 1, 0, IoringEnterFlags::empty()) }?;
        if taken != 1 {
            return Err("the ring took nothing".into());
        }
        Ok(())
    }

    /// The next answer that is there, as (data, result).
    pub fn completed(&mut self) -> TestResult<Option<(u64, i32)>> {
        let offsets = &self.params.cq_off;
        let head = self.completions.word(offsets.head);
        let now = head.load(Ordering::Relaxed);
        if now == self.completions.word(offsets.tail).load(Ordering::Acquire) {
            return Ok(None);
        }
        let mask = self
            .completions
            .word(offsets.ring_mask)
            .load(Ordering::Relaxed);
        // SAFETY: the kernel published this entry by moving the tail.
        let (data, result) = unsafe {
            let entries = self.completions.start.byte_add(offsets.cqes as usize);
            let entry = &*entries.cast::<io_uring_cqe>().add((now & mask) as usize);
            (entry.user_data.u64_, entry.res)
        };
        head.store(now.wrapping_add(1), Ordering::Release);
        Ok(Some((data, result)))
    }

    /// Waits for the next answer.
    pub fn wait(&mut self) -> TestResult<(u64, i32)> {
        loop {
            if let Some(answer) = self.completed()? {
                return Ok(answer);
            }
            // SAFETY: no argument beyond the numbers.
            unsafe { io_uring_enter(&self.fd, 0, 1, IoringEnterFlags::GETEVENTS) }?;
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
