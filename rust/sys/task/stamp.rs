// SPDX-License-Identifier: GPL-2.0

//! Who did something, and when, in one word: cheap enough for every signal.
//!
//! The process is a number of the initial namespace of process ids. It may be gone, and its number
//! used again: then the process with that number is younger than the stamp. The time is that of the
//! last tick, and wraps with 32 bits of jiffies, after months.

use crate::sys::ffi;
use kernel::{
    seq_file::SeqFile,
    seq_print, //
};

/// A process and a time.
#[derive(Clone, Copy)]
pub(crate) struct Stamp(u64);

/// Where the number of the process is.
const PROCESS: u32 = 32;

impl Stamp {
    /// Nobody has done it.
    pub(crate) const NEVER: Self = Self(0);

    /// The calling process, now. A kernel thread is no process.
    #[inline(always)]
    pub(crate) fn of_caller() -> Self {
        // SAFETY: Looks at the current task and at the clock only.
        Self(unsafe { ffi::dxg_stamp() })
    }

    /// The process of this stamp, now.
    pub(crate) fn again(self) -> Self {
        let process = self.0 >> PROCESS << PROCESS;

        Self(process | u64::from(Self::of_caller().time()))
    }

    /// The number of the process as the calling task has it; 0 for no process, or for one that the
    /// pid namespace of the caller does not know.
    pub(crate) fn process_for_caller(self) -> u32 {
        // CAST: the upper half.
        number_for_caller((self.0 >> PROCESS) as u32)
    }

    /// How many nanoseconds ago it was.
    pub(crate) fn age_ns(self) -> u64 {
        // SAFETY: Looks at the clock only.
        unsafe { ffi::dxg_stamp_age(self.time()) }
    }

    /// Prints it as words of a line, if somebody has done it.
    pub(crate) fn print(self, m: &SeqFile) {
        if self.0 != Self::NEVER.0 {
            seq_print!(m, " by={}", self.process_for_caller());
            seq_print!(m, " ago={}", self.age_ns());
        }
    }

    fn time(self) -> u32 {
        // CAST: the lower half.
        self.0 as u32
    }
}

/// A number of a process or thread of the initial namespace as the calling task has it, or 0.
pub(crate) fn number_for_caller(number: u32) -> u32 {
    // SAFETY: Any number may be asked for.
    unsafe { ffi::dxg_number_for_caller(number) }
}
