// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages with chosen rights, for calls that must fault.

use core::cell::RefCell;
use core::ffi::c_void;
use core::ptr::null_mut;

use rustix::mm::{mmap_anonymous, mprotect, munmap, MapFlags, MprotectFlags, ProtFlags};

use crate::TestResult;

/// Size of a page.
pub const PAGE: usize = 4096;

/// Two pages, of which the second may not be touched.
struct Mapping(*mut c_void);

impl Mapping {
    fn new() -> TestResult<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, anywhere.
        let start = unsafe { mmap_anonymous(null_mut(), 2 * PAGE, rights, MapFlags::PRIVATE) }?;
        let mapping = Self(start);
        // SAFETY: the second page of our own mapping, which nobody uses.
        unsafe { mprotect(start.byte_add(PAGE), PAGE, MprotectFlags::empty()) }?;
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which nobody holds a reference.
        let _ = unsafe { munmap(self.0, 2 * PAGE) };
    }
}

thread_local! {
    /// Writable pages to be used again: mapping is slow where the kernel checks itself.
    static SPARE: RefCell<Vec<Mapping>> = const { RefCell::new(Vec::new()) };
}

/// A mapped page, followed by one at which nothing may be read or written.
pub struct Page {
    start: *mut c_void,
    /// Taken by `drop`.
    mapping: Option<Mapping>,
    writable: bool,
}

impl Page {
    /// A readable and writable page of zeroes.
    pub fn new() -> TestResult<Self> {
        let mapping = match SPARE.with_borrow_mut(Vec::pop) {
            Some(spare) => spare,
            None => Mapping::new()?,
        };
        let mut page = Self {
            start: mapping.0,
            mapping: Some(mapping),
            writable: true,
        };
        page.bytes_mut().fill(0);
        Ok(page)
    }

    /// A page whose last bytes are these, so that what follows them faults.
    pub fn ending_with(bytes: &[u8]) -> TestResult<Self> {
        let mut page = Self::new()?;
        let offset = PAGE - bytes.len();
        page.bytes_mut()[offset..].copy_from_slice(bytes);
        Ok(page)
    }

    /// A page that begins with these bytes.
    pub fn beginning_with(bytes: &[u8]) -> TestResult<Self> {
        let mut page = Self::new()?;
        page.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(page)
    }

    /// Takes the right to write away. From now on [`Page::bytes_mut`] must not be used.
    pub fn read_only(mut self) -> TestResult<Self> {
        self.writable = false;
        // SAFETY: our own mapping; nobody holds a reference into it.
        unsafe { mprotect(self.start, PAGE, MprotectFlags::READ) }?;
        Ok(self)
    }

    /// The address of the page.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// The address at which faults begin.
    pub fn end(&self) -> u64 {
        self.address() + PAGE as u64
    }

    /// What the page holds.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped readable as long as `self` lives.
        unsafe { core::slice::from_raw_parts(self.start.cast(), PAGE) }
    }

    /// What the page holds, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped writable as long as `self` lives, unless `read_only` was called, which
        // consumes it and whose users do not write.
        unsafe { core::slice::from_raw_parts_mut(self.start.cast(), PAGE) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let (true, Some(mapping)) = (self.writable, self.mapping.take()) {
            SPARE.with_borrow_mut(|spare| spare.push(mapping));
        }
    }
}

/// An address of this process at which nothing is mapped.
pub const UNMAPPED: u64 = 0x1000;
/// An address in the kernel's half.
pub const KERNEL_HALF: u64 = 0xffff_8880_0000_0000;
