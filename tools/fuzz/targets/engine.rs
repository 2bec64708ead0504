// SPDX-License-Identifier: MIT OR Apache-2.0

//! Any bytes as page tables, command buffers and budgets of an engine (GPU-112).
//!
//! The bytes are played as in the property tests of `tools/host`, which check memory accesses and
//! budgets; here coverage decides which bytes come next.

#![no_main]

#[allow(dead_code)]
#[forbid(unsafe_code)]
#[path = "../../../rust/engine/mod.rs"]
mod engine;
mod platform;

#[allow(dead_code)]
mod tests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tests::play::play(bytes);
});
