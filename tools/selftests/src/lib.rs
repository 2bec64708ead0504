// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the test programs have in common. Each program (`src/bin/t-*.rs`) is one [`Suite`] about
//! one subject and prints TAP 13; `run-all` runs them, side by side where they allow it.
//!
//! ```no_run
//! use selftests::{ensure_eq, fixture, Suite};
//!
//! Suite::new("example")
//!     .test("FEN-1 a fence starts at its initial value", || {
//!         let fence = fixture::device()?.create_fence(7)?;
//!         ensure_eq!(fence.value(), 7);
//!         Ok(())
//!     })
//!     .run()
//! ```
//!
//! A test passes when it returns `Ok`. It fails by an error (every error of the client crate and
//! of the system converts with `?`), by [`ensure!`], by a panic, or by leaving anything behind in
//! the driver: the runner compares the driver's counters around each test. It is skipped by
//! [`skip!`].
//!
//! Arguments of a program select the tests whose name contains one of them. `OPENDXG_TEST_SCALE`
//! multiplies every time limit, for slow machines; [`rounds`] and [`stress`] say what makes races
//! longer.

#![warn(unreachable_pub)]

pub mod allocations;
pub mod blocked;
pub mod call;
pub mod camera;
pub mod cgroup;
pub mod child;
pub mod dma_buf;
pub mod drm;
pub mod fds;
pub mod fixture;
pub mod freezer;
pub mod fuse;
pub mod gpu;
pub mod hog;
pub mod kernel_log;
pub mod leak;
pub mod memory;
pub mod module;
pub mod paging_log;
pub mod paused;
pub mod poison;
pub mod processors;
pub mod program;
pub mod region;
pub mod resource;
mod result;
pub mod rounds;
pub mod sharing;
pub mod soft_adapter;
pub mod stress;
mod suite;
pub mod swap;
pub mod sync_file;
pub mod task;
pub mod test_device;
pub mod time;
pub mod trace;
pub mod uring;
pub mod user;
pub mod user_queue;
mod watchdog;

pub use result::{fails_with, Failure, TestResult};
pub use suite::Suite;
