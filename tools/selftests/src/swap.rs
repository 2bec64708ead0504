// SPDX-License-Identifier: MIT OR Apache-2.0
//! Swap on a RAM disk.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::{Error, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::{skip, TestResult};

const DISK: &CStr = c"/dev/ram0";
const PAGE: u64 = 4096;

/// Swap, until this is dropped.
pub struct Swap(());

impl Swap {
    /// Swaps to the first RAM disk, as large as it is. Skips the test where there is none, or no
    /// swap.
    pub fn on() -> TestResult<Self> {
        let path = DISK.to_str().unwrap_or_default();
        let Ok(mut disk) = OpenOptions::new().read(true).write(true).open(path) else {
            skip!("no {path}: load it with --modules brd");
        };
        if !std::path::Path::new("/proc/swaps").exists() {
            skip!("a kernel without swap");
        }
        let pages = disk.seek(SeekFrom::End(0))? / PAGE;
        let last = u32::try_from(pages - 1).map_err(|_| "too large a disk")?;
        // The header of a swap area: its version, its last page, no bad pages; the magic.
        let mut header = vec![0; PAGE as usize];
        header[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
        header[1028..1032].copy_from_slice(&last.to_ne_bytes());
        header[PAGE as usize - 10..].copy_from_slice(b"SWAPSPACE2");
        disk.write_all_at(&header, 0)?;
        disk.sync_all()?;
        drop(disk);
        // SAFETY: The path is a string that the kernel only reads.
        if unsafe { libc::swapon(DISK.as_ptr(), 0) } != 0 {
            return Err(Error::last_os_error().into());
        }
        Ok(Self(()))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // SAFETY: As above.
        if unsafe { libc::swapoff(DISK.as_ptr()) } != 0 {
            println!("# swapoff: {}", Error::last_os_error());
        }
    }
}
