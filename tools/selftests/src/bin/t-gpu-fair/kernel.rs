// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rest of the kernel does not wait for engines that are always busy.

use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use selftests::gpu::{Gpu, NODES};
use selftests::hog::Hog;
use selftests::time::eventually;
use selftests::trace::ROOT;
use selftests::user::needs_root;
use selftests::{skip, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite.slow(
        "GPU-114 tracers of the kernel end while engines are busy",
        Duration::from_secs(60),
        tracers,
    )
}

/// A trace buffer of its own, with tracers of its own.
struct Tracer(PathBuf);

impl Tracer {
    fn new() -> TestResult<Self> {
        let known = read_to_string(Path::new(ROOT).join("available_tracers")).unwrap_or_default();
        if !known.split_whitespace().any(|name| name == "function") {
            skip!("no tracer of functions at {ROOT}");
        }
        let name = format!("instances/dxg-tracer-{}", std::process::id());
        let tracer = Self(Path::new(ROOT).join(name));
        create_dir(&tracer.0)?;
        // One that nobody calls all the time.
        write(tracer.0.join("set_ftrace_filter"), "ksys_sync")?;
        Ok(tracer)
    }

    fn set(&self, tracer: &str) -> std::io::Result<()> {
        write(self.0.join("current_tracer"), tracer)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = remove_dir(&self.0);
    }
}

/// The end of a tracer waits until no thread of the kernel can be in its code: until each of them
/// has slept, or has said that it is not there. An engine that always has work never sleeps.
fn tracers() -> TestResult {
    needs_root()?;
    let tracer = Tracer::new()?;
    let mut all = Vec::new();
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let busy = Hog::Loop.begin(&gpu)?;
        busy.runs()?;
        all.push((busy, gpu));
    }
    let ending = thread::spawn(move || {
        tracer.set("function")?;
        tracer.set("nop")
    });
    let ended = eventually("the tracer ends", || ending.is_finished());
    // Without this it would never end, should it wait for them.
    drop(all);
    ending.join().map_err(|_| "the thread has panicked")??;
    ended
}
