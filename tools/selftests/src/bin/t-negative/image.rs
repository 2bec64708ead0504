// SPDX-License-Identifier: MIT OR Apache-2.0
//! The argument of one call as bytes, with everything it refers to.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use selftests::memory::Page;
use selftests::TestResult;

/// An argument being put together.
pub(crate) struct Image {
    /// The struct.
    pub(crate) bytes: Vec<u8>,
    /// Memory that pointers of the struct address.
    memory: Vec<Page>,
    /// What the call is made on, if it is not the device.
    on: Option<OwnedFd>,
    /// Other memory that is referred to.
    existing: Vec<Box<dyn Any>>,
    /// Objects whose handles are in the struct.
    keep: Vec<Box<dyn Any>>,
    /// Waits for what an accepted call does later.
    settled: Vec<Box<dyn Fn() -> TestResult>>,
}

impl Image {
    /// A struct with every byte 0.
    pub(crate) fn zeroed(size: u32) -> Self {
        Self {
            bytes: vec![0; size as usize],
            memory: Vec::new(),
            on: None,
            existing: Vec::new(),
            keep: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Writes a number of 1 to 8 bytes.
    pub(crate) fn put(&mut self, at: usize, size: usize, value: u64) {
        self.bytes[at..at + size].copy_from_slice(&value.to_ne_bytes()[..size]);
    }

    /// Writes a 32-bit number.
    pub(crate) fn put32(&mut self, at: usize, value: u32) {
        self.put(at, 4, value.into());
    }

    /// Writes a 64-bit number.
    pub(crate) fn put64(&mut self, at: usize, value: u64) {
        self.put(at, 8, value);
    }

    /// Reads a number of 1 to 8 bytes.
    pub(crate) fn get(&self, at: usize, size: usize) -> u64 {
        let mut number = [0; 8];
        number[..size].copy_from_slice(&self.bytes[at..at + size]);
        u64::from_ne_bytes(number)
    }

    /// Points to a copy of `contents`, after which nothing is mapped.
    pub(crate) fn point(&mut self, at: usize, contents: &[u8]) -> TestResult {
        let address = self.place(contents)?;
        self.put64(at, address);
        Ok(())
    }

    /// Where a copy of `contents` is, after which nothing is mapped.
    pub(crate) fn place(&mut self, contents: &[u8]) -> TestResult<u64> {
        let page = Page::ending_with(contents)?;
        let address = page.end() - contents.len() as u64;
        self.memory.push(page);
        Ok(address)
    }

    /// Points to the beginning of a page that may be read but not written.
    pub(crate) fn point_read_only(&mut self, at: usize, contents: &[u8]) -> TestResult {
        let page = Page::beginning_with(contents)?.read_only()?;
        self.put64(at, page.address());
        self.memory.push(page);
        Ok(())
    }

    /// The bytes a pointer of the struct addresses.
    pub(crate) fn pointed(&self, at: usize, length: usize) -> Vec<u8> {
        let address = self.get(at, 8);
        let holds = |page: &&Page| (page.address()..page.end()).contains(&address);
        self.memory.iter().find(holds).map_or(Vec::new(), |page| {
            let start = (address - page.address()) as usize;
            page.bytes()[start..].iter().take(length).copied().collect()
        })
    }

    /// Whether objects were made for this argument alone.
    pub(crate) fn has_objects(&self) -> bool {
        !self.keep.is_empty()
    }

    /// Has the call made on this descriptor.
    pub(crate) fn on(&mut self, fd: OwnedFd) {
        self.on = Some(fd);
    }

    /// What the call is made on, if it is not the device.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.on.as_ref().map(AsFd::as_fd)
    }

    /// Keeps memory alive for as long as the argument.
    pub(crate) fn keep_memory(&mut self, memory: impl Any) {
        self.existing.push(Box::new(memory));
    }

    /// Keeps something alive for as long as the argument.
    pub(crate) fn keep(&mut self, object: impl Any) {
        self.keep.push(Box::new(object));
    }

    /// What tells that the call has done all it does, once it was accepted.
    pub(crate) fn settles(&mut self, settled: impl Fn() -> TestResult + 'static) {
        self.settled.push(Box::new(settled));
    }

    /// Waits until an accepted call has done all it does.
    pub(crate) fn settle(&self) -> TestResult {
        self.settled.iter().try_for_each(|settled| settled())
    }
}
