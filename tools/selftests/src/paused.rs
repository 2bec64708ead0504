// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory whose first reader waits: a call of the driver stops in the middle of its copy.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::mm::{userfaultfd, UserfaultfdFlags};

use crate::memory::Page;
use crate::region::Region;
use crate::time::soon;
use crate::user::needs_root;
use crate::{ensure, fds, skip, TestResult};

const SIZE: usize = 4096;

/// `_UFFDIO_API`, `_UFFDIO_REGISTER` and `_UFFDIO_COPY` with the sizes of their structs.
mod request {
    pub(super) const API: u64 = 0xc018_aa3f;
    pub(super) const REGISTER: u64 = 0xc020_aa00;
    pub(super) const COPY: u64 = 0xc028_aa03;
}

/// A page that is not there until [`PausedPage::fill`].
pub struct PausedPage {
    memory: Region,
    faults: OwnedFd,
}

impl PausedPage {
    /// A page that nobody has read.
    pub fn new() -> TestResult<Self> {
        needs_root()?;
        // SAFETY: the descriptor watches only the page below.
        let faults = match unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC) } {
            Ok(faults) => faults,
            Err(rustix::io::Errno::NOSYS) => skip!("the kernel has no userfaultfd"),
            Err(error) => return Err(error.into()),
        };
        let page = Self {
            memory: Region::private(SIZE)?,
            faults,
        };
        // The version; then the range, for pages that are missing.
        page.ask(request::API, &mut [0xaa, 0, 0])?;
        page.ask(request::REGISTER, &mut [page.address(), SIZE as u64, 1, 0])?;
        Ok(page)
    }

    fn ask<const N: usize>(&self, code: u64, arg: &mut [u64; N]) -> TestResult {
        // SAFETY: a struct of `N` words, as the code says; the addresses in it are those of pages
        // that live.
        let done = unsafe { libc::ioctl(self.faults.as_raw_fd(), code, arg.as_mut_ptr()) };
        if done != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Waits until a thread reads it.
    pub fn until_read(&self) -> TestResult {
        ensure!(!fds::poll_events(self.faults.as_fd(), soon())?.is_empty());
        let mut message = [0; 32];
        let size = File::from(self.faults.try_clone()?).read(&mut message)?;
        ensure!(size == message.len());
        Ok(())
    }

    /// Lets the reader go on, with a page that begins with these bytes.
    pub fn fill(&self, bytes: &[u8]) -> TestResult {
        let source = Page::beginning_with(bytes)?;
        let (to, from) = (self.address(), source.address());
        self.ask(request::COPY, &mut [to, from, SIZE as u64, 0, 0])
    }
}
