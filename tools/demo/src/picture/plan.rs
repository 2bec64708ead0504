// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all four processes agree on.

use std::ops::RangeInclusive;
use std::time::Duration;

use opendxg::Guid;

/// Frames that hold a new picture.
pub const PICTURES: RangeInclusive<u64> = 1..=200;
/// Frames after them in which only the number changes: what a hand-over costs by itself.
pub const TURNS: RangeInclusive<u64> = 201..=700;
/// The frame that every process writes to a file.
pub const KEPT: u64 = 137;

/// Key of the keyed mutexes: the renderer may draw.
pub const DRAW: u64 = 0;
/// Key of the keyed mutexes: the reader may look.
pub const LOOK: u64 = 1;

/// Nobody waits longer for another one.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The picture's name.
pub const NAME: &str = r"\BaseNamedObjects\opendxg-demo-picture";
/// Key of the picture's description, made for this demo: anybody may make one.
pub const DESCRIPTION: Guid = Guid::new(0x3a54_9c1b, 0x0d0e, 0x4d3a, 0x9a6d_51f2_7c60_b8e4);

/// Value of the fence when frame `number` is drawn, and when it was looked at.
pub fn drawn(number: u64) -> u64 {
    2 * number - 1
}

/// See [`drawn`].
pub fn looked_at(number: u64) -> u64 {
    2 * number
}

/// How a reader opens the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a descriptor that arrives over a socket.
    NtHandle,
    /// By name.
    Name,
    /// By global handle.
    Number,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NtHandle, Self::Name, Self::Number];

    /// As an argument of the program, and in file names.
    pub fn argument(self) -> &'static str {
        match self {
            Self::NtHandle => "by-nt-handle",
            Self::Name => "by-name",
            Self::Number => "by-number",
        }
    }

    /// The other way round.
    pub fn from_argument(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.argument() == text)
    }

    /// For the table.
    pub fn opens(self) -> &'static str {
        match self {
            Self::NtHandle => "NT handle over a socket",
            Self::Name => "name",
            Self::Number => "number (global handle)",
        }
    }

    /// How it knows that it may look, for the table.
    pub fn waits(self) -> &'static str {
        match self {
            Self::Name => "shared fence",
            Self::NtHandle | Self::Number => "keyed mutex",
        }
    }
}
