// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests with other parties have in common: the part of Vulkan that they use.

#![warn(unreachable_pub)]

pub mod gpu;
pub mod imported;
pub mod painter;
pub mod semaphore;
pub mod timeline;

/// An error of Vulkan as a failure of a test.
pub fn failed(what: &'static str) -> impl Fn(ash::vk::Result) -> selftests::Failure {
    move |error| selftests::Failure::Failed(format!("{what}: {error}"))
}
