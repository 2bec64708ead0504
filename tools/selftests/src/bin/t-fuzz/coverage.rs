// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which code of the module ran, from the kernel's KCOV.

use std::collections::HashSet;
use std::fs::{read_to_string, File};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{mmap, MapFlags, ProtFlags};
use selftests::{skip, TestResult};

/// How many places of one program are kept.
const PLACES: usize = 1 << 18;

const KCOV_INIT_TRACE: u64 = 0x8008_6301;
const KCOV_ENABLE: u64 = 0x6364;
const KCOV_TRACE_PC: u64 = 0;

/// A buffer that the kernel writes to while a thread is in it.
pub(crate) struct Kcov {
    file: File,
    words: &'static [AtomicU64],
}

impl Kcov {
    /// A new one. Skips where the kernel has none.
    pub(crate) fn new() -> TestResult<Self> {
        let path = "/sys/kernel/debug/kcov";
        let Ok(file) = File::options().read(true).write(true).open(path) else {
            skip!("this kernel has no KCOV");
        };
        // SAFETY: the kernel keeps the number.
        if unsafe { libc::ioctl(file.as_raw_fd(), KCOV_INIT_TRACE, PLACES) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        // SAFETY: new memory, which stays for the life of the process.
        let words = unsafe {
            let start = mmap(
                core::ptr::null_mut(),
                PLACES * 8,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )?;
            core::slice::from_raw_parts(start.cast::<AtomicU64>(), PLACES)
        };
        Ok(Self { file, words })
    }

    /// From here on what the calling thread does is kept, until it ends.
    pub(crate) fn enable(&self) -> TestResult {
        self.words[0].store(0, Ordering::Relaxed);
        // SAFETY: the kernel writes to the memory that was mapped for it.
        if unsafe { libc::ioctl(self.file.as_raw_fd(), KCOV_ENABLE, KCOV_TRACE_PC) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }

    /// The places, in the order in which they ran.
    fn places(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.words[0].load(Ordering::Relaxed) as usize;
        let words = &self.words[1..];
        words[..count.min(words.len())]
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
    }
}

/// All that ran so far.
pub(crate) struct Coverage {
    /// Where the module is.
    module: core::ops::Range<u64>,
    pub(crate) blocks: HashSet<u32>,
    pub(crate) edges: HashSet<u64>,
}

impl Coverage {
    pub(crate) fn new() -> TestResult<Self> {
        let modules = read_to_string("/proc/modules")?;
        let line = modules.lines().find(|line| line.starts_with("opendxg "));
        let words: Vec<_> = line.ok_or("the module is not there")?.split(' ').collect();
        let size: u64 = words[1].parse().map_err(|_| "no size of the module")?;
        let start = u64::from_str_radix(words[5].trim_start_matches("0x"), 16);
        let start = start.map_err(|_| "no address of the module")?;
        // Its data is elsewhere, so that nothing before it is code of another.
        Ok(Self {
            module: start..start + size,
            blocks: HashSet::new(),
            edges: HashSet::new(),
        })
    }

    /// Takes in what a program did. Whether some of it was new.
    pub(crate) fn add(&mut self, kcov: &Kcov) -> bool {
        let before = self.edges.len();
        let mut last = 0;
        for place in kcov.places().filter(|place| self.module.contains(place)) {
            let place = place - self.module.start;
            self.blocks.insert(place as u32);
            self.edges.insert((last << 32) | place);
            last = place;
        }
        self.edges.len() > before
    }
}
