// SPDX-License-Identifier: MIT OR Apache-2.0
//! CreateAllocation: what it makes, what it refuses, and where the memory comes from.

mod accept;
mod driver;
mod file_pages;
mod publish;
mod refuse;
mod section;
mod system_memory;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("create")
        .with(accept::tests)
        .with(refuse::tests)
        .with(system_memory::tests)
        .with(section::tests)
        .with(file_pages::tests)
        .with(driver::tests)
        .with(publish::tests)
        .run()
}
