// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's fault injection, for one task and one step at a time.

use std::fs::{write, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;
use selftests::{Failure, TestResult};

const DEBUGFS: &str = "/sys/kernel/debug";
const FAIL_NTH: &str = "/proc/thread-self/fail-nth";
const CACHES: &str = "/sys/kernel/slab";

/// Blocks of the kernel's allocator for memory of GPUs. Linux 7.2 uses a block after it has freed
/// it when there is no memory to split another one (`alloc_from_freetree`, mended in 7.3).
const SPARED: &str = "gpu_buddy_block";

/// Whether the kernel has fault injection.
pub(crate) fn exists() -> bool {
    Path::new(FAIL_NTH).exists()
}

/// Makes sleeping allocations fail too, and quietly.
pub(crate) fn prepare() -> Result<(), String> {
    let set = |name: &str, value: &str| {
        let path = format!("{DEBUGFS}/{name}");
        write(&path, value).map_err(|error| format!("{path}: {error}"))
    };
    set("failslab/ignore-gfp-wait", "N")?;
    set("failslab/verbose", "0")?;
    for (name, value) in [
        ("fail_page_alloc/ignore-gfp-wait", "N"),
        ("fail_page_alloc/min-order", "0"),
        ("fail_page_alloc/verbose", "0"),
        ("fail_usercopy/verbose", "0"),
    ] {
        // Not in every kernel that has the first.
        if Path::new(DEBUGFS).join(name).exists() {
            set(name, value)?;
        }
    }
    spare()
}

/// Leaves one cache out: all others are marked, and only those fail.
fn spare() -> Result<(), String> {
    let caches = std::fs::read_dir(CACHES).map_err(|error| format!("{CACHES}: {error}"))?;
    for cache in caches {
        let cache = cache.map_err(|error| format!("{CACHES}: {error}"))?;
        if cache.file_name() == SPARED {
            continue;
        }
        let switch = cache.path().join("failslab");
        write(&switch, "1").map_err(|error| format!("{}: {error}", switch.display()))?;
    }
    let filter = format!("{DEBUGFS}/failslab/cache-filter");
    write(&filter, "Y").map_err(|error| format!("{filter}: {error}"))
}

/// The switch of the calling thread.
pub(crate) struct Injector(File);

impl Injector {
    pub(crate) fn new() -> TestResult<Self> {
        let file = OpenOptions::new().read(true).write(true).open(FAIL_NTH)?;
        Ok(Self(file))
    }

    /// Has step number `step` of what this thread does next fail.
    pub(crate) fn arm(&self, step: u32) -> TestResult {
        Ok(self.0.write_all_at(step.to_string().as_bytes(), 0)?)
    }

    /// Runs `call` with its step number `step` failing. Also tells whether there was such a step.
    pub(crate) fn fail<T>(&self, step: u32, call: impl FnOnce() -> T) -> TestResult<(T, bool)> {
        self.arm(step)?;
        let result = call();
        let mut text = [0; 16];
        // Reading copies to us, which is a step as well: if it fails, the call had not used up its
        // steps.
        let injected = match self.0.read_at(&mut text, 0) {
            Ok(_) => text.starts_with(b"0"),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::FAULT) => false,
            Err(error) => return Err(Failure::from(error)),
        };
        let off = self.0.write_all_at(b"0", 0);
        // The first write may be the step that fails.
        off.or_else(|_| self.0.write_all_at(b"0", 0))?;
        Ok((result, injected))
    }
}
