// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements of fences and shared objects against other ways to synchronise and to share.
//!
//! The program `bench` runs in the virtual machine and prints a [`result::Report`] as JSON;
//! `bench-report` runs outside and turns it into a table and plots. `Documentation/benchmarks.md`
//! says what is measured and how to read it.

pub mod adapter;
pub mod bell;
pub mod dmabuf;
pub mod fds;
pub mod gpu;
pub mod ioctl;
pub mod library;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod ntsync;
pub mod peer;
pub mod report;
pub mod result;
pub mod rng;
pub mod subjects;
pub mod syncobj;
pub mod trace;
pub mod virtgpu;
pub mod wakeups;
pub mod wine;
