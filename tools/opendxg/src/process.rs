// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which process this is, without a system call.
//!
//! A process id is not enough: the first process of every PID namespace is number 1, and numbers
//! are used again. So a page that the kernel clears in a forked child (`MADV_WIPEONFORK`) holds a
//! number, and a child that finds it cleared takes the next one. No process has the number of an
//! ancestor.

use core::ptr::{dangling_mut, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A process among itself and its ancestors. The children that `vfork` makes are the same one, as
/// long as they share the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u64);

impl Process {
    /// No process.
    pub const NONE: Self = Self(0);

    /// The calling one.
    #[inline(always)]
    pub fn current() -> Self {
        let page = PAGE.load(Ordering::Acquire);
        let page = if page.is_null() { map() } else { page };
        if page == without_page() {
            return Self::by_id();
        }
        // SAFETY: the page of `map`, which stays mapped and is only accessed atomically.
        let number = unsafe { &*page };
        // ORDERING: the number orders nothing else.
        match number.load(Ordering::Relaxed) {
            0 => Self(take_number(number)),
            known => Self(known),
        }
    }

    /// The calling one, where there is no page.
    #[cold]
    #[inline(never)]
    fn by_id() -> Self {
        Self((1 << 63) | u64::from(std::process::id()))
    }
}

/// A [`Process`] that changes.
#[derive(Debug)]
pub(crate) struct AtomicProcess(AtomicU64);

impl AtomicProcess {
    pub(crate) const fn new(process: Process) -> Self {
        Self(AtomicU64::new(process.0))
    }

    #[inline]
    pub(crate) fn load(&self) -> Process {
        // ORDERING: callers compare it with the current process and draw no conclusion about other
        // memory.
        Process(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, process: Process) {
        // ORDERING: as above.
        self.0.store(process.0, Ordering::Relaxed);
    }
}

/// The page; null until it is needed, and [`without_page`] where there can be none.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// The number that was taken last. A child begins with a copy.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Stands for a kernel that cannot clear pages, or has none left.
fn without_page() -> *mut AtomicU64 {
    dangling_mut()
}

/// Takes the next number for a process that has none.
#[cold]
#[inline(never)]
fn take_number(number: &AtomicU64) -> u64 {
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match number.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(first) => first,
    }
}

/// Makes the page. When several threads do, all use that of the first one.
#[cold]
fn map() -> *mut AtomicU64 {
    let new = page::new().unwrap_or(without_page());
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    match PAGE.compare_exchange(null_mut(), new, success, failure) {
        Ok(_) => new,
        Err(first) => {
            if new != without_page() {
                // SAFETY: made above, and nobody has seen it.
                unsafe { page::free(new) };
            }
            first
        }
    }
}

#[cfg(not(miri))]
mod page {
    use core::ptr::null_mut;
    use core::sync::atomic::AtomicU64;

    use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

    /// Small enough for every kernel to make a page of it.
    const LEN: usize = 8;

    /// A page of zeros that is cleared in a forked child.
    pub(super) fn new() -> Option<*mut AtomicU64> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let page = unsafe { mmap_anonymous(null_mut(), LEN, protection, MapFlags::PRIVATE) };
        let page = page.ok()?;
        // SAFETY: the whole of that mapping.
        match unsafe { madvise(page, LEN, Advice::LinuxWipeOnFork) } {
            Ok(()) => Some(page.cast()),
            Err(_) => {
                // SAFETY: nobody has seen it.
                unsafe { free(page.cast()) };
                None
            }
        }
    }

    /// # Safety
    ///
    /// `page` is one of `new` that nobody uses.
    pub(super) unsafe fn free(page: *mut AtomicU64) {
        // SAFETY: the caller's promise.
        let _ = unsafe { munmap(page.cast(), LEN) };
    }
}

/// Miri has no `madvise`, and no `fork` either.
#[cfg(miri)]
mod page {
    use core::sync::atomic::AtomicU64;

    pub(super) fn new() -> Option<*mut AtomicU64> {
        Some(Box::into_raw(Box::default()))
    }

    /// # Safety
    ///
    /// `page` is one of `new` that nobody uses.
    pub(super) unsafe fn free(page: *mut AtomicU64) {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(page) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_one_process() {
        let threads: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(Process::current))
            .collect();
        let own = Process::current();
        assert_ne!(own, Process::NONE);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), own);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "forks")]
    fn a_child_and_its_child_are_others() {
        let own = Process::current();
        let is_other = |parent: Process| Process::current() != parent;
        assert!(in_child(|| {
            let child = Process::current();
            is_other(own) && is_other(own) && in_child(|| is_other(child) && is_other(own))
        }));
        assert_eq!(Process::current(), own);
    }

    #[test]
    fn numbers_are_taken_once() {
        let number = AtomicU64::new(0);
        let first = take_number(&number);
        assert_eq!((take_number(&number), number.into_inner()), (first, first));
    }

    /// What `test` says in a forked child.
    fn in_child(test: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child does nothing but system calls and atomic accesses, and leaves by
        // `_exit`.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(if test() { 0 } else { 1 });
            }
            let mut status = -1;
            libc::waitpid(child, &mut status, 0) == child && status == 0
        }
    }
}
