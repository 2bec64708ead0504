// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often this thread has slept: each time somebody had to wake it.

use crate::Result;

/// So many times until now.
pub fn count() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.ok_or("the kernel does not count it")?.trim().parse()?)
}
