// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of the operation log of an adapter, which controls its paging worker, too.

use std::path::PathBuf;

use opendxg::Adapter;

use crate::user::needs_root;
use crate::{skip, TestResult};

/// The file of one adapter.
pub struct PagingLog(PathBuf);

impl PagingLog {
    /// That of this adapter. Skips the test where it is not to be had.
    pub fn of(adapter: &Adapter) -> TestResult<Self> {
        const ALL: &str = "/sys/kernel/debug/opendxg/paging";
        needs_root()?;
        if !std::path::Path::new(ALL).exists() {
            skip!("debugfs is not mounted");
        }
        Ok(Self(PathBuf::from(ALL).join(adapter.luid().to_string())))
    }

    /// Writes a word to it.
    pub fn control(&self, word: &str) -> TestResult {
        Ok(std::fs::write(&self.0, word)?)
    }

    /// All that it says.
    pub fn text(&self) -> TestResult<String> {
        Ok(std::fs::read_to_string(&self.0)?)
    }

    /// Whether the adapter is still there.
    pub fn exists(&self) -> bool {
        self.0.exists()
    }
}
