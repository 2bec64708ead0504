// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening a device without side effects on anything else, and knowing its descriptor again.

use core::ffi::CStr;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{fcntl_setfl, fstat, FileType, Mode, OFlags, Stat};
use rustix::io::{fcntl_dupfd_cloexec, Errno, Result};

/// Where descriptors of the node are put: above those that programs expect to get, close in a loop
/// or hand to `select`.
const HIGH: RawFd = 200;

/// The lowest number for it: 0 to 2 are the standard streams.
const LOWEST: RawFd = 3;

/// Opens the character device at `path`.
///
/// Nothing else is opened, not even for a moment: opening a FIFO would wake its writer, some
/// devices act when they are opened. ENOTTY for what is no character device.
pub(crate) fn open_device(path: &CStr) -> Result<OwnedFd> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let expected = fstat(&place)?;
    if !is_device(&expected) {
        return Err(Errno::NOTTY);
    }
    // Never waits for a carrier, and never becomes the terminal of the program.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let new = match rustix::fs::open(Link::to(&place).path(), flags, Mode::empty()) {
        // No /proc here.
        Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR) => {
            rustix::fs::open(path, flags, Mode::empty())?
        }
        new => new?,
    };
    if device_of(&fstat(&new)?) != device_of(&expected) {
        return Err(Errno::NOTTY);
    }
    fcntl_setfl(&new, OFlags::RDONLY)?;
    move_up(new)
}

/// Moves a descriptor to a number where it is in nobody's way.
fn move_up(fd: OwnedFd) -> Result<OwnedFd> {
    match fcntl_dupfd_cloexec(&fd, HIGH) {
        // Above the limit of the process, or none left up there.
        Err(Errno::INVAL | Errno::MFILE) if fd.as_raw_fd() < LOWEST => {
            fcntl_dupfd_cloexec(&fd, LOWEST)
        }
        Err(Errno::INVAL | Errno::MFILE) => Ok(fd),
        moved => moved,
    }
}

fn is_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
}

fn device_of(stat: &Stat) -> [u64; 3] {
    [stat.st_dev, stat.st_ino, stat.st_rdev]
}

/// `/proc/self/fd/N`, made without memory of the heap.
struct Link {
    text: [u8; 32],
    len: usize,
}

impl Link {
    fn to(fd: &OwnedFd) -> Self {
        let mut link = Self {
            text: [0; 32],
            len: 0,
        };
        // PANIC: 14 characters, and at most 10 digits.
        write!(link, "/proc/self/fd/{}", fd.as_raw_fd()).expect("32 bytes are enough");
        link
    }

    fn path(&self) -> &CStr {
        // PANIC: the array is longer than the text and began as zeros.
        CStr::from_bytes_until_nul(&self.text).expect("terminated")
    }
}

impl Write for Link {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        let end = self.len + part.len();
        // One byte stays for the terminator.
        let room = self.text[..31].get_mut(self.len..end);
        room.ok_or(core::fmt::Error)?
            .copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// How to know the open file of a [`Node`](crate::node::Node) again: the program may have closed
/// the number and opened something else.
///
/// Device and inode do not tell a node from another open of the same device. So the file is
/// marked, with the number of the signal that it would send if it was ever asked to send one
/// (`F_SETSIG`). It is not. The mark belongs to the open file, so a forked child finds it, too.
#[derive(Debug)]
pub(crate) struct Identity {
    device: [AtomicU64; 3],
    mark: i32,
}

impl Identity {
    /// No file yet, and a mark that few others have.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // The real-time signals.
        let mark = 34 + (NEXT.fetch_add(1, Ordering::Relaxed) % 31) as i32;
        Self {
            device: Default::default(),
            mark,
        }
    }

    /// Remembers this file.
    pub(crate) fn set(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let device = device_of(&fstat(fd)?);
        set_signal(fd, self.mark)?;
        for (place, word) in self.device.iter().zip(device) {
            // ORDERING: published with the number of the descriptor. Two threads that open at once
            // write the same; if not, the file is taken for a stranger, which is safe.
            place.store(word, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the number is that of the file.
    pub(crate) fn is(&self, fd: RawFd) -> bool {
        if fd < 0 {
            return false;
        }
        // SAFETY: only used to ask what it is, which is harmless for any number, open or not.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let device = self
            .device
            .each_ref()
            .map(|word| word.load(Ordering::Relaxed));
        let same = |stat| is_device(&stat) && device_of(&stat) == device;
        fstat(fd).is_ok_and(same) && signal(fd) == Some(self.mark)
    }
}

const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;

fn set_signal(fd: BorrowedFd<'_>, number: i32) -> Result<()> {
    fcntl(fd, F_SETSIG, number).map(|_| ())
}

fn signal(fd: BorrowedFd<'_>) -> Option<i32> {
    fcntl(fd, F_GETSIG, 0).ok()
}

/// What rustix does not have. Leaves the `errno` of C programs alone.
fn fcntl(fd: BorrowedFd<'_>, command: i32, argument: i32) -> Result<i32> {
    // SAFETY: the two commands above take an integer and touch no memory; `errno` is that of this
    // thread.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = libc::fcntl(fd.as_fd().as_raw_fd(), command, argument);
        let now = core::mem::replace(&mut *errno, before);
        if result < 0 {
            return Err(Errno::from_raw_os_error(now));
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;

    use super::*;

    fn null() -> OwnedFd {
        open_device(c"/dev/null").unwrap()
    }

    #[test]
    fn devices_are_put_above_the_low_numbers() {
        let fd = null();
        assert!(fd.as_raw_fd() >= HIGH);
        let flags = rustix::fs::fcntl_getfl(&fd).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
        assert!(rustix::io::fcntl_getfd(&fd)
            .unwrap()
            .contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn only_devices_are_opened() {
        for path in [c"/", c"/proc/self/exe"] {
            assert_eq!(open_device(path).map(drop), Err(Errno::NOTTY));
        }
        assert_eq!(open_device(c"/no/such").map(drop), Err(Errno::NOENT));
    }

    /// Opening a FIFO would block, or wake who waits for a reader.
    #[test]
    fn a_fifo_is_not_opened() {
        let path = std::env::temp_dir().join(format!("opendxg-fifo-{}", std::process::id()));
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &*name,
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(open_device(&name).map(drop), Err(Errno::NOTTY));
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let writer = rustix::fs::open(&*name, flags, Mode::empty());
        std::fs::remove_file(path).unwrap();
        // Nobody reads.
        assert_eq!(writer.map(drop), Err(Errno::NXIO));
    }

    #[test]
    fn a_file_is_known_again_and_another_open_of_the_device_is_not() {
        let (own, other) = (null(), null());
        let identity = Identity::new();
        assert!(!identity.is(own.as_raw_fd()) && !identity.is(-1));
        identity.set(own.as_fd()).unwrap();
        assert!(identity.is(own.as_raw_fd()));
        assert!(!identity.is(other.as_raw_fd()));
        let again = own.try_clone().unwrap();
        assert!(identity.is(again.as_raw_fd()));
        let zero = open_device(c"/dev/zero").unwrap();
        set_signal(zero.as_fd(), identity.mark).unwrap();
        assert!(!identity.is(zero.as_raw_fd()));
        let closed = own.into_raw_fd();
        // SAFETY: nobody uses the number.
        unsafe { libc::close(closed) };
        assert!(!identity.is(closed));
    }
}
