// SPDX-License-Identifier: GPL-2.0

//! What CPU waits and signals refuse, in the order in which it is checked (FEN-53): flags and
//! sizes, then the handles of all elements, then the types of all, then the rights of all.

use super::{
    wait_set::Mode,
    Invalid, //
};

/// Objects in one call (FEN-18).
pub const MAX_OBJECTS: u32 = 4096;

/// The only bit of a CPU signal's flags: the value may go down (FEN-32).
pub const ALLOW_FENCE_REWIND: u32 = 1 << 2;

/// The only bit of a CPU wait's flags: one element is enough (FEN-15).
pub const WAIT_ANY: u32 = 1 << 0;

/// Whether a CPU signal with these flags may rewind.
pub fn signal_flags(flags: u32) -> Result<bool, Invalid> {
    if flags & !ALLOW_FENCE_REWIND != 0 {
        return Err(Invalid);
    }
    Ok(flags & ALLOW_FENCE_REWIND != 0)
}

/// When a CPU wait with these flags ends.
pub fn wait_flags(flags: u32) -> Result<Mode, Invalid> {
    match flags {
        0 => Ok(Mode::All),
        WAIT_ANY => Ok(Mode::Any),
        _ => Err(Invalid),
    }
}

/// Checks the size and the addresses of the arrays of handles and values.
pub fn check_arrays(count: u32, handles: u64, values: u64) -> Result<(), Invalid> {
    if !(1..=MAX_OBJECTS).contains(&count) || handles == 0 || values == 0 {
        return Err(Invalid);
    }
    Ok(())
}

/// Why the elements of a call are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// INVALID_PARAMETER: something is no fence, or is not for this device (FEN-26).
    Mismatch,
    /// ACCESS_DENIED: a handle lacks the right (FEN-25, FEN-37).
    Denied,
}

/// What the elements seen so far are refused for. Handles are checked before, one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElementCheck {
    mismatch: bool,
    denied: bool,
}

impl ElementCheck {
    /// Looks at one more element: whether it is a fence for the device, and whether its handle has
    /// the right.
    pub fn see(&mut self, fits: bool, may: bool) {
        self.mismatch |= !fits;
        self.denied |= !may;
    }

    /// What comes first of all that was seen.
    pub fn result(self) -> Result<(), Refusal> {
        match self {
            Self { mismatch: true, .. } => Err(Refusal::Mismatch),
            Self { denied: true, .. } => Err(Refusal::Denied),
            _ => Ok(()),
        }
    }
}
