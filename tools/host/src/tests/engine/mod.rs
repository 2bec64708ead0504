// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of `engine`, on a machine of their own.

#[cfg(not(loom))]
mod faults;
#[cfg(loom)]
mod fence_protocol;
#[cfg(not(loom))]
mod illegal;
#[cfg(not(loom))]
mod large_pages;
#[cfg(not(loom))]
mod limits;
#[cfg(not(loom))]
mod machine;
#[cfg(loom)]
mod message_passing;
#[cfg(not(loom))]
mod packets;
#[cfg(not(loom))]
mod play;
#[cfg(not(loom))]
mod play_ring;
#[cfg_attr(loom, allow(dead_code))]
mod program;
#[cfg(not(loom))]
mod properties;
#[cfg(not(loom))]
mod ring;
#[cfg(not(loom))]
mod run_list;
#[cfg(loom)]
mod shared_words;
#[cfg(not(loom))]
mod transfers;
#[cfg(not(loom))]
mod translation;
