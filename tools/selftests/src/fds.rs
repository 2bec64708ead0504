// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors: kinds that are not ours, and sending them to another process.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::MemfdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::{ensure, ensure_eq, skip, Failure, TestResult};

/// A pipe: its reading and its writing end.
pub fn pipe() -> TestResult<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// A memory file.
pub fn memfd() -> TestResult<OwnedFd> {
    Ok(rustix::fs::memfd_create("selftests", MemfdFlags::CLOEXEC)?)
}

/// A pidfd of a process.
pub fn pidfd(pid: i32) -> TestResult<OwnedFd> {
    // SAFETY: plain system call.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    if fd < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A number that no descriptor of this process has, and that none gets before hundreds are open.
pub fn closed_number() -> TestResult<RawFd> {
    let (reader, _) = pipe()?;
    let high = rustix::io::fcntl_dupfd_cloexec(&reader, 900)?;
    Ok(high.as_raw_fd())
}

/// Whether two descriptors are of one open file, as the kernel sees it.
pub fn is_same_file(first: impl AsFd, second: impl AsFd) -> TestResult<bool> {
    const KCMP_FILE: i32 = 0;
    let pid = std::process::id() as i32;
    let (first, second) = (first.as_fd().as_raw_fd(), second.as_fd().as_raw_fd());
    // SAFETY: plain system call.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, first, second) };
    match result {
        0 => Ok(true),
        1..=3 => Ok(false),
        _ => {
            let error = std::io::Error::last_os_error();
            skip!("no kcmp: {error}")
        }
    }
}

/// Two connected sockets that keep messages apart.
pub fn socket_pair() -> TestResult<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        kind,
        flags,
        None,
    )?)
}

/// Sends a descriptor.
pub fn send(socket: impl AsFd, fd: impl AsFd) -> TestResult {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err("no space for a descriptor".into());
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(b"f")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives a descriptor.
pub fn receive(socket: impl AsFd) -> TestResult<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let rights = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    rights.ok_or_else(|| Failure::Failed("no descriptor arrived".into()))
}

/// What `poll` says about a descriptor, asked for everything.
pub fn poll_events(fd: BorrowedFd<'_>, timeout: Duration) -> TestResult<PollFlags> {
    let timeout = Timespec::try_from(timeout).map_err(|_| "time limit too long")?;
    let asked = PollFlags::IN | PollFlags::OUT | PollFlags::PRI;
    let mut fds = [PollFd::from_borrowed_fd(fd, asked)];
    rustix::event::poll(&mut fds, Some(&timeout))?;
    Ok(fds[0].revents())
}

/// Demands that a descriptor is for nothing that files are for.
pub fn refuses_io(fd: BorrowedFd<'_>) -> TestResult {
    ensure!(rustix::io::read(fd, &mut [0u8; 16]).is_err(), "read");
    refuses_all_but_reads(fd)
}

/// The same for a descriptor that can be read from.
pub fn refuses_all_but_reads(fd: BorrowedFd<'_>) -> TestResult {
    ensure!(rustix::io::write(fd, &[0u8; 16]).is_err(), "write");
    let number = fd.as_raw_fd();
    // SAFETY: plain system calls, which are refused; the arguments of the calls are no addresses.
    unsafe {
        ensure_eq!(libc::lseek(number, 8, libc::SEEK_SET), -1);
        for rights in [libc::PROT_NONE, libc::PROT_READ, libc::PROT_WRITE] {
            for sharing in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
                let start = libc::mmap(core::ptr::null_mut(), 4096, rights, sharing, number, 0);
                ensure_eq!(start, libc::MAP_FAILED, "mmap {rights} {sharing}");
            }
        }
        // Calls of the device: create, enumerate, wait; and one that no file of the module has.
        for code in [
            0xc060_4710u32,
            0xc010_4714,
            0xc028_473a,
            0xc000_478f,
            0x5401,
        ] {
            ensure_eq!(libc::ioctl(number, code.into(), 0), -1, "{code:#x}");
        }
    }
    Ok(())
}
