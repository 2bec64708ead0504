// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline: when waits and signals of fences were queued, and when a GPU did them.
//!
//! A pure library: text and events go in, a timeline and the bytes of files come out. The command
//! `opendxg trace` does the rest (`Documentation/timeline.md`).
//!
//! | Module | What |
//! |---|---|
//! | [`event`] | what can happen |
//! | [`text`] | the kernel's trace as events |
//! | [`builder`] | joins starts and ends |
//! | [`release`] | which signal made the condition of a wait true |
//! | [`lanes`] | places boxes so that none overlap |
//! | [`paging`] | what paging nodes do |
//! | [`perfetto`] | the trace for Perfetto |
//! | [`picture`] | the same as an SVG |

pub mod builder;
pub mod event;
pub mod lanes;
pub mod paging;
pub mod perfetto;
pub mod picture;
pub mod release;
pub mod text;

pub use builder::Timeline;
pub use event::{Event, Operation, Record};
pub use text::Trace;
