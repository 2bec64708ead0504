// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel says from a moment on.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Failure, TestResult};

/// The kernel log from now on.
pub struct KernelLog(File);

impl KernelLog {
    /// What comes later.
    pub fn new() -> TestResult<Self> {
        let mut file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// The next record, if there is one: how bad it is, from 0 on, and the whole of it.
    pub fn record(&mut self) -> TestResult<Option<(u32, String)>> {
        let mut record = [0; 8192];
        loop {
            let size = match self.0.read(&mut record) {
                Ok(size) => size,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(None),
                // Records were lost.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => continue,
                Err(error) => return Err(Failure::from(error)),
            };
            let text = String::from_utf8_lossy(&record[..size]).into_owned();
            let level = text.split(',').next().and_then(|level| level.parse().ok());
            if let Some(level) = level {
                let level: u32 = level;
                return Ok(Some((level % 8, text)));
            }
        }
    }

    /// All that is there which has this in it.
    pub fn find(&mut self, part: &str) -> TestResult<Vec<String>> {
        let mut found = Vec::new();
        while let Some((_, text)) = self.record()? {
            if text.contains(part) {
                found.push(text);
            }
        }
        Ok(found)
    }
}
