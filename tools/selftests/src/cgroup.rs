// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory cgroups, and the kernel's ways to ask for memory.

use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::path::{Path, PathBuf};

use crate::time::eventually;
use crate::{skip, TestResult};

const ROOT: &str = "/sys/fs/cgroup";

/// A memory cgroup, removed when dropped.
pub struct Group(PathBuf);

impl Group {
    /// A new one. Skips the test where there are none.
    pub fn new(name: &str) -> TestResult<Self> {
        let controllers = read_to_string(format!("{ROOT}/cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|name| name == "memory") {
            skip!("no memory controller at {ROOT}");
        }
        write(format!("{ROOT}/cgroup.subtree_control"), "+memory")?;
        let path = Path::new(ROOT).join(name);
        create_dir(&path)?;
        Ok(Self(path))
    }

    /// Writes to one of its files.
    pub fn set(&self, file: &str, value: &str) -> TestResult {
        Ok(write(self.0.join(file), value)?)
    }

    /// Puts the calling process into the group.
    pub fn enter(&self) -> TestResult {
        self.set("cgroup.procs", &std::process::id().to_string())
    }

    fn number(&self, file: &str) -> TestResult<u64> {
        let text = read_to_string(self.0.join(file))?;
        let number = text.trim().parse();
        number.map_err(|_| format!("{file} is not a number").into())
    }

    /// The number behind a word in one of its files.
    pub fn line(&self, file: &str, word: &str) -> TestResult<u64> {
        let text = read_to_string(self.0.join(file))?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let number = lines.find_map(|(name, number)| (name == word).then_some(number));
        number
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| format!("{file} without {word}").into())
    }

    /// Bytes charged now.
    pub fn charged(&self) -> TestResult<u64> {
        self.number("memory.current")
    }

    /// Bytes in swap. Skips the test where there is no swap.
    pub fn swapped(&self) -> TestResult<u64> {
        if !self.0.join("memory.swap.current").exists() {
            skip!("no swap");
        }
        self.number("memory.swap.current")
    }

    /// The most bytes that were charged at one time.
    pub fn peak(&self) -> TestResult<u64> {
        if !self.0.join("memory.peak").exists() {
            skip!("no memory.peak");
        }
        self.number("memory.peak")
    }

    /// How often a process of this group was killed for want of memory.
    pub fn kills(&self) -> TestResult<u64> {
        self.line("memory.events", "oom_kill")
    }

    /// Asks the kernel to free so many bytes of the group. True if it could.
    pub fn reclaim(&self, bytes: u64) -> bool {
        write(self.0.join("memory.reclaim"), bytes.to_string()).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let gone = || remove_dir(&self.0).is_ok();
        let _ = eventually("the group is empty", gone);
    }
}

/// Asks all shrinkers of the machine to free what they can.
pub fn drop_caches() -> TestResult {
    Ok(write("/proc/sys/vm/drop_caches", "2")?)
}
