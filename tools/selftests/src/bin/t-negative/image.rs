// SPDX-License-Identifier: MIT OR Apache-2.0
//! The argument of one call as bytes, with everything it refers to.

use std::any::Any;

use selftests::memory::Page;
use selftests::Outcome;

/// An argument being put together.
pub(crate) struct Image {
    /// The struct.
    pub(crate) bytes: Vec<u8>,
    /// Memory that pointers of the struct address.
    memory: Vec<Page>,
    /// Objects whose handles are in the struct.
    keep: Vec<Box<dyn Any>>,
}

impl Image {
    /// A struct with every byte 0.
    pub(crate) fn zeroed(size: u32) -> Self {
        Self {
            bytes: vec![0; size as usize],
            memory: Vec::new(),
            keep: Vec::new(),
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
    pub(crate) fn point(&mut self, at: usize, contents: &[u8]) -> Outcome {
        let page = Page::ending_with(contents)?;
        self.put64(at, page.end() - contents.len() as u64);
        self.memory.push(page);
        Ok(())
    }

    /// Points to the beginning of a page that may be read but not written.
    pub(crate) fn point_read_only(&mut self, at: usize, contents: &[u8]) -> Outcome {
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

    /// Keeps something alive for as long as the argument.
    pub(crate) fn keep(&mut self, object: impl Any) {
        self.keep.push(Box::new(object));
    }
}
