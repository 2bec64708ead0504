// SPDX-License-Identifier: GPL-2.0

//! What submissions refuse (GPU-6, GPU-8, FEN-126), and the priorities of contexts.

use super::{
    invalid_if,
    queued_sync_rules::check_broadcast,
    Invalid, //
};

/// The longest command buffer, in bytes.
pub const MAX_COMMANDS: u32 = 16 << 20;
/// The most private driver data, in bytes.
pub const MAX_PRIVATE_DATA: u32 = 64 << 10;
/// `D3DDDI_MAX_WRITTEN_PRIMARIES`.
pub const MAX_PRIMARIES: u32 = 16;

/// The most history buffers: one for each context that a submission goes to.
pub const MAX_HISTORY_BUFFERS: u32 = 64;

/// Bits of `D3DKMT_SUBMITCOMMANDFLAGS` that have a meaning here.
pub mod bits {
    /// Nothing is executed.
    pub const NULL_RENDERING: u32 = 1 << 0;
    /// Where a present goes that is part of the commands: there are none.
    pub const PRESENT_REDIRECTED: u32 = 1 << 1;
    /// The KMD does not look at the private data.
    pub const NO_KMD_ACCESS: u32 = 1 << 2;

    /// All of them.
    pub const KNOWN: u32 = NULL_RENDERING | PRESENT_REDIRECTED | NO_KMD_ACCESS;
}

/// What every submission says.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    /// GPU virtual address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Bytes of the private driver data.
    pub private_data: u32,
    /// How many primaries are written to.
    pub primaries: u32,
}

impl Commands {
    /// Whether a buffer and what comes with it make sense.
    pub fn check(&self) -> Result<(), Invalid> {
        invalid_if(self.address % 4 != 0 || self.length % 4 != 0)?;
        invalid_if(!(4..=MAX_COMMANDS).contains(&self.length))?;
        invalid_if(self.address.checked_add(self.length.into()).is_none())?;
        invalid_if(self.private_data > MAX_PRIVATE_DATA || self.primaries > MAX_PRIMARIES)
    }
}

/// The flags of SubmitCommand, and to how many contexts it goes.
pub fn check_submit(flags: u32, contexts: u32) -> Result<(), Invalid> {
    invalid_if(flags & !bits::KNOWN != 0)?;
    check_broadcast(contexts)
}

/// The history buffers of a submission: how many, and where their handles are.
pub fn check_history(count: u32, list: u64) -> Result<(), Invalid> {
    invalid_if(count > MAX_HISTORY_BUFFERS || count != 0 && list == 0)
}

/// Whether a HW queue may go on to this value of its progress fence (FEN-126).
pub fn may_progress(last: u64, next: u64) -> bool {
    next > last
}

/// `D3DKMT_SETCONTEXTSCHEDULINGPRIORITY_ABSOLUTE`: the priority is not relative to the process.
pub const ABSOLUTE: i32 = 0x4000_0000;

/// The highest priority that anybody may set.
pub const FREE_PRIORITY: i32 = 0;

/// What a KMD is given for a priority among all contexts: -7 to 7, or 0 to 31 if it is absolute.
pub fn priority(asked: i32) -> Result<i32, Invalid> {
    let (range, priority) = match asked {
        0.. if asked & ABSOLUTE != 0 => (0..=31, asked & !ABSOLUTE),
        _ => (-7..=7, asked),
    };

    invalid_if(!range.contains(&priority))?;
    Ok(priority)
}

/// A priority among the contexts of a process: -7 to 7.
pub fn check_in_process_priority(asked: i32) -> Result<(), Invalid> {
    invalid_if(!(-7..=7).contains(&asked))
}
