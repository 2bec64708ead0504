// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened, in numbers.

use std::time::Duration;

use demo::screen::heading;
use opendxg::Luid;
use opendxg_cli::{debugfs, engines::Engine};

/// The engines of an adapter, as the module counts.
pub struct Adapter(Vec<Engine>);

impl Adapter {
    /// Reads them; `None` if there is no debugfs.
    pub fn read(luid: Luid) -> Option<Self> {
        let mount = std::path::Path::new(debugfs::MOUNT);
        debugfs::engines(mount, &luid.to_string()).ok().map(Self)
    }
}

/// The table.
pub struct Table {
    /// Command buffers that were queued.
    pub submissions: u64,
    /// From the first command to the last one.
    pub time: Duration,
    /// The engines before and after.
    pub engines: Option<(Adapter, Adapter)>,
    /// How often each process was woken from the first command to the last one.
    pub wakeups: [(&'static str, u64); 2],
}

impl Table {
    /// Prints it.
    pub fn print(&self) {
        heading("What it took, every pixel checked:");
        println!(
            "  {:<12}{:>14}{:>18}{:>14}",
            "engine", "submissions", "engine switches", "busy"
        );
        match &self.engines {
            None => println!("  ? (only root sees them, in debugfs)"),
            Some((before, after)) => before.0.iter().zip(&after.0).for_each(row),
        }
        let time = format!("in {} ms", self.time.as_millis());
        println!(
            "  {:<12}{:>14}{:>18}{time:>14}",
            "together", self.submissions, ""
        );
        println!("\n  {:<12}{:>14}", "process", "CPU wake-ups");
        for (name, count) in self.wakeups {
            println!("  {name:<12}{count:>14}");
        }
        println!("  (a process sleeps from the first command to the last one; the end wakes it)");
    }
}

/// What an engine has done in between.
fn row((before, after): (&Engine, &Engine)) {
    let since = |value: fn(&Engine) -> Option<u64>| {
        let (before, after) = (value(before)?, value(after)?);
        after.checked_sub(before)
    };
    let text = |count: Option<u64>| count.map_or("?".into(), |count| count.to_string());
    let busy = since(|one| one.busy_ns).map_or("?".into(), |ns| format!("{} ms", ns / 1_000_000));
    println!(
        "  {:<12}{:>14}{:>18}{busy:>14}",
        format!("{} {}", after.node, after.kind),
        text(since(|one| one.submissions)),
        text(since(|one| one.switches)),
    );
}
