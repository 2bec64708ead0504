// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel memory per object: many objects are made, and what the kernel's own accounts grow by is
//! divided by their number.
//!
//! What an object takes is its share of the slab caches (`Slab` of /proc/meminfo) and of the pages
//! that hold fence values (a counter of the driver). What is charged to the process is `kernel` in
//! `memory.stat` of a memory cgroup of its own.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use opendxg::{Dxg, SyncFlags, SyncKind};

use crate::result::Memory;
use crate::subjects::Bench;

const OBJECTS: usize = 10_000;
const CGROUP: &str = "/sys/fs/cgroup/bench";

/// Measures all kinds of objects.
pub fn measure(bench: &Bench) -> Vec<Memory> {
    eprint!("  memory      ");
    let charged = enter_cgroup();
    let mut meter = Meter {
        dxg: &bench.dxg,
        charged,
        found: Vec::new(),
    };
    let device = &bench.device;
    meter.count("opendxg fence", || {
        device.create_fence(0).expect("create a fence")
    });
    meter.count("opendxg shareable fence", || {
        device.create_shareable_fence(0).expect("create a fence")
    });
    meter.count("opendxg semaphore by number", || {
        let kind = SyncKind::Semaphore {
            max_count: 1,
            initial_count: 0,
        };
        device
            .create_sync_object(kind, SyncFlags::SHARED)
            .expect("create a semaphore")
    });
    if let Some(ntsync) = &bench.ntsync {
        meter.count("ntsync event", || {
            ntsync.event(true, false).expect("create an event")
        });
    }
    if let Some(drm) = &bench.drm {
        meter.count("drm_syncobj timeline", || {
            drm.timeline().expect("create a timeline")
        });
    }
    meter.count("eventfd", || {
        opendxg::EventFd::new().expect("make an eventfd")
    });
    eprintln!(" {} kinds", meter.found.len());
    meter.found
}

struct Meter<'a> {
    dxg: &'a Dxg,
    charged: bool,
    found: Vec<Memory>,
}

impl Meter<'_> {
    fn count<T>(&mut self, what: &str, create: impl Fn() -> T) {
        let mut objects = Vec::with_capacity(OBJECTS);
        // The first ones pay for tables that all share.
        let few: Vec<T> = (0..100).map(|_| create()).collect();
        let (bytes, charged) = self.read();
        objects.extend((0..OBJECTS).map(|_| create()));
        let (bytes_after, charged_after) = self.read();
        drop((few, objects));
        let each = |before: f64, after: f64| (after - before) / OBJECTS as f64;
        self.found.push(Memory {
            what: what.into(),
            objects: OBJECTS as u64,
            bytes: each(bytes, bytes_after),
            charged: self.charged.then(|| each(charged, charged_after)),
        });
        eprint!(".");
    }

    /// Bytes of the whole kernel, and those charged to this process.
    fn read(&self) -> (f64, f64) {
        let slab = settled_slab();
        let counters = self.dxg.counters().expect("counters of the driver");
        let pages = counters.total_pages as f64 * rustix::param::page_size() as f64;
        let charged = if self.charged {
            field(&format!("{CGROUP}/memory.stat"), "kernel")
        } else {
            0.0
        };
        (slab + pages, charged)
    }
}

/// Bytes of the slab caches, once they stay the same: what was freed returns with a delay.
fn settled_slab() -> f64 {
    let mut slab = f64::NAN;
    for _ in 0..20 {
        sleep(Duration::from_millis(200));
        let now = field("/proc/meminfo", "Slab:") * 1024.0;
        if (now - slab).abs() < 32.0 * 1024.0 {
            return now;
        }
        slab = now;
    }
    slab
}

/// Moves this process to a memory cgroup of its own. False if there are none.
fn enter_cgroup() -> bool {
    // It is there already, or cannot be made: then entering it fails.
    let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    let _ = fs::create_dir(CGROUP);
    let procs = Path::new(CGROUP).join("cgroup.procs");
    let entered = fs::write(procs, std::process::id().to_string());
    entered.is_ok() && fs::exists(format!("{CGROUP}/memory.stat")).unwrap_or(false)
}

/// The number behind a word at the beginning of a line.
fn field(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let words = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words));
    words
        .and_then(|mut words| words.next()?.parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {file}"))
}
