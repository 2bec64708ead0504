// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters of our own, which differ from the first one.

use std::fs;
use std::path::PathBuf;

use opendxg::{Device, Dxg};

/// Where adapters are made.
const ROOT: &str = "/sys/kernel/config/opendxg";

/// An adapter that is there as long as this.
#[derive(Debug)]
pub struct SoftAdapter(PathBuf);

impl SoftAdapter {
    /// One with these attributes and a device on it; `None` where adapters cannot be made.
    ///
    /// # Panics
    ///
    /// If it was made and cannot be opened.
    pub fn new(dxg: &Dxg, name: &str, attributes: &[(&str, &str)]) -> Option<(Self, Device)> {
        let path = PathBuf::from(ROOT).join(format!("bench-{name}"));
        fs::create_dir(&path).ok()?;
        let adapter = Self(path);
        for (attribute, value) in attributes.iter().chain(&[("enabled", "1")]) {
            fs::write(adapter.0.join(attribute), value).ok()?;
        }
        let luid = fs::read_to_string(adapter.0.join("luid")).ok()?;
        let adapters = dxg.adapters().expect("enumerate");
        let own = adapters
            .iter()
            .find(|own| own.luid().to_string() == luid.trim());
        let device = own.expect("the adapter that was made").create_device();
        Some((adapter, device.expect("create a device")))
    }
}

impl Drop for SoftAdapter {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
