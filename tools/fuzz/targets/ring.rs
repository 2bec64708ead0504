// SPDX-License-Identifier: MIT OR Apache-2.0

//! Any bytes as a ring that a process fills, its pointers, and what the process rewrites while the
//! engine reads (GPU-15, GPU-16, GPU-112).

#![no_main]

#[allow(dead_code)]
#[forbid(unsafe_code)]
#[path = "../../../rust/engine/mod.rs"]
mod engine;
mod platform;

#[allow(dead_code)]
mod tests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tests::play_ring::play_ring(bytes);
});
