// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often a thread has the kernel allocate memory, by the kernel's own tracepoint.

use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::path::{Path, PathBuf};

use crate::trace::ROOT;
use crate::{ensure, skip, TestResult};

/// Every piece that the kernel takes with `kmalloc`, as its allocator for Rust does.
const EVENT: &str = "events/kmem/kmalloc";

/// Counts the allocations of one thread, between [`Allocations::begin`] and the end.
pub struct Allocations(PathBuf);

impl Allocations {
    /// Skips the test if the kernel cannot tell.
    pub fn needed() -> TestResult {
        if !Path::new(ROOT).join(EVENT).is_dir() {
            skip!("no {EVENT} at {ROOT}");
        }
        Ok(())
    }

    /// Begins to count what this thread allocates.
    pub fn begin(thread: i32) -> TestResult<Self> {
        let instance = format!("instances/kmalloc-{}-{thread}", std::process::id());
        let counter = Self(Path::new(ROOT).join(instance));
        create_dir(&counter.0)?;
        write(counter.0.join("buffer_size_kb"), "512")?;
        let filter = format!("common_pid == {thread}");
        write(counter.0.join(EVENT).join("filter"), filter)?;
        write(counter.0.join(EVENT).join("enable"), "1")?;
        Ok(counter)
    }

    /// What was allocated since then, a line for each.
    pub fn end(self) -> TestResult<Vec<String>> {
        write(self.0.join(EVENT).join("enable"), "0")?;
        let text = read_to_string(self.0.join("trace"))?;
        let lost = text.lines().any(|line| line.contains("LOST"));
        ensure!(!lost, "more than the buffer has room for");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines.map(String::from).collect())
    }
}

impl Drop for Allocations {
    fn drop(&mut self) {
        let _ = remove_dir(&self.0);
    }
}
