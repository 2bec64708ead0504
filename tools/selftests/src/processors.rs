// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processors that are taken out of the machine for a while.

use std::fs;
use std::path::PathBuf;

use crate::user::needs_root;
use crate::{skip, TestResult};

/// Processors that do nothing until this is dropped.
pub struct Offline {
    switches: Vec<PathBuf>,
}

impl Offline {
    /// All but the first one. Skips the test where they stay.
    pub fn all_but_one() -> TestResult<Self> {
        needs_root()?;
        let mut offline = Self {
            switches: Vec::new(),
        };
        for number in 1..64 {
            let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{number}/online"));
            if fs::read_to_string(&switch).is_ok_and(|text| text.trim() == "1") {
                fs::write(&switch, "0")?;
                offline.switches.push(switch);
            }
        }
        // A machine with one processor shows the same.
        let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
        if online.trim() != "0" {
            skip!("processors {} stay", online.trim());
        }
        Ok(offline)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        for switch in &self.switches {
            if let Err(error) = fs::write(switch, "1") {
                println!("# {}: {error}", switch.display());
            }
        }
    }
}
