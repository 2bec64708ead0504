// SPDX-License-Identifier: GPL-2.0

//! What the module as a whole tells, in debugfs: `/sys/kernel/debug/opendxg`.
//!
//! What one process has is in the fdinfo of its own descriptors. What all processes have together
//! is for root, who is the only one that may look at each of them (RES-107).
//!
//! A kernel without debugfs, or one that is locked down, has no such directory, and nothing else
//! changes.

use super::stats;
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    prelude::*, //
};

/// The directory. Dropping it removes it, and waits for those who read.
pub(crate) struct Debugfs {
    _totals: Pin<KBox<File<()>>>,
}

impl Debugfs {
    /// Makes the directory.
    pub(crate) fn new() -> Result<Self> {
        let dir = Dir::new(c"opendxg");
        let totals = dir.read_callback_file(c"totals", (), &show_totals);

        Ok(Self {
            _totals: KBox::pin_init(totals, GFP_KERNEL)?,
        })
    }
}

/// How many of everything there are.
fn show_totals(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, counter) in [
        // First: if it is 0, what the worker has ended is in none of the others.
        ("retiring", &stats::RETIRING),
        ("processes", &stats::PROCESSES),
        ("objects", &stats::OBJECTS),
        ("handles", &stats::HANDLES),
        ("waiters", &stats::WAITERS),
        ("pages", &stats::PAGES),
        ("shares", &stats::SHARES),
        ("bytes", &stats::BYTES),
        ("dmabufs", &stats::DMABUFS),
        ("cpu-mappings", &stats::CPU_MAPPINGS),
        ("notices", &stats::NOTICES),
        ("values", &stats::VALUES),
    ] {
        writeln!(f, "{name}:\t{}", counter.get())?;
    }
    Ok(())
}
