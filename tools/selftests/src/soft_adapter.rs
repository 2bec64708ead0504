// SPDX-License-Identifier: MIT OR Apache-2.0
//! Software adapters of one's own, made through configfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opendxg::{Adapter, Device, Dxg, Luid};

use crate::user::needs_root;
use crate::{skip, TestResult};

/// Where adapters are made.
pub const ROOT: &str = "/sys/kernel/config/opendxg";

/// Who updates page tables of the adapters that tests make, if they do not say so themselves.
const UPDATES_VARIABLE: &str = "OPENDXG_TEST_TABLE_UPDATES";

/// A directory for an adapter. Dropping it removes both, in the process that made it.
pub struct SoftAdapter {
    path: PathBuf,
    owner: u32,
}

impl SoftAdapter {
    /// A new directory, whose adapter is not enabled. Skips the test where there cannot be one.
    pub fn new(name: &str) -> TestResult<Self> {
        needs_root()?;
        if !Path::new(ROOT).exists() {
            skip!("configfs is not mounted");
        }
        let path = Path::new(ROOT).join(name);
        fs::create_dir(&path)?;
        let adapter = Self {
            path,
            owner: std::process::id(),
        };
        if let Ok(updates) = std::env::var(UPDATES_VARIABLE) {
            adapter.set("page_table_updates", &updates)?;
        }
        Ok(adapter)
    }

    /// The same with the adapter enabled.
    pub fn enabled(name: &str) -> TestResult<Self> {
        let adapter = Self::new(name)?;
        adapter.set("enabled", "1")?;
        Ok(adapter)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an attribute.
    pub fn set(&self, attribute: &str, value: &str) -> io::Result<()> {
        // An empty value is written too.
        let file = fs::OpenOptions::new()
            .write(true)
            .open(self.path.join(attribute))?;
        rustix::io::write(&file, value.as_bytes())?;
        Ok(())
    }

    /// Reads an attribute.
    pub fn get(&self, attribute: &str) -> io::Result<String> {
        Ok(fs::read_to_string(self.path.join(attribute))?.trim().into())
    }

    /// Removes the adapter; the directory stays.
    pub fn disable(&self) -> TestResult {
        Ok(self.set("enabled", "0")?)
    }

    /// The LUID of the enabled adapter.
    pub fn luid(&self) -> TestResult<Luid> {
        let text = self.get("luid")?;
        for adapter in Dxg::open()?.adapters()? {
            if adapter.luid().to_string() == text {
                return Ok(adapter.luid());
            }
        }
        Err(format!("no adapter has the LUID {text}").into())
    }

    /// Opens the adapter.
    pub fn open(&self) -> TestResult<Adapter> {
        Ok(Dxg::open()?.open_adapter(self.luid()?)?)
    }

    /// A device on it.
    pub fn device(&self) -> TestResult<Device> {
        Ok(self.open()?.create_device()?)
    }

    /// Removes the directory, and the adapter with it.
    pub fn remove(mut self) -> TestResult {
        self.owner = 0;
        Ok(fs::remove_dir(&self.path)?)
    }
}

impl Drop for SoftAdapter {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = fs::remove_dir(&self.path);
        }
    }
}
