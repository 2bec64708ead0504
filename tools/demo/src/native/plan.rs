// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both processes agree on: strips of frames, and the places that they go through.

use std::time::Duration;

use demo::drawing::{self, Drawing};
use demo::memory::PIXEL;

/// Pixels of a side of a frame.
pub const SIDE: u64 = 128;
/// Rows of a strip.
pub const ROWS: u64 = 16;
/// Bytes of a strip, one row after the other.
pub const STRIP_BYTES: u64 = ROWS * SIDE * PIXEL;
/// Strips of a frame.
const STRIPS_OF_A_FRAME: u64 = SIDE / ROWS;
/// Frames.
pub const FRAMES: u64 = 8;
/// Strips of all frames together.
pub const STRIPS: u64 = FRAMES * STRIPS_OF_A_FRAME;
/// How many strips the memory that both processes share has room for.
pub const PLACES: u64 = 4;

/// Frames of a row of the picture that is kept.
pub const FRAMES_OF_A_ROW: u64 = 4;

/// Where the painting engine is: compute.
pub const PAINTS: u32 = 1;
/// Where the keeping engine is: copy.
pub const KEEPS: u32 = 2;

/// Nobody waits longer for the engines.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One strip of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Strip(u64);

impl Strip {
    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..STRIPS).map(Self)
    }

    /// Its number, from 1. Fences have it as their value when the strip is painted, or kept.
    pub fn number(self) -> u64 {
        self.0 + 1
    }

    /// The strip that was in its place before; 0 if there was none.
    pub fn before(self) -> u64 {
        self.number().saturating_sub(PLACES)
    }

    /// Where its place is in the shared memory, in bytes.
    pub fn place(self) -> u64 {
        self.0 % PLACES * STRIP_BYTES
    }

    /// Where the painter has it, in bytes.
    pub fn source(self) -> u64 {
        self.0 * STRIP_BYTES
    }

    /// Its frame, from 0.
    pub fn frame(self) -> u64 {
        self.0 / STRIPS_OF_A_FRAME
    }

    /// Its first row in the frame.
    pub fn top(self) -> u64 {
        self.0 % STRIPS_OF_A_FRAME * ROWS
    }
}

/// The frames, one below the other: strip after strip.
pub fn frames() -> Vec<u32> {
    let drawing = Drawing::new();
    let (mut whole, mut all) = (Vec::new(), Vec::new());
    for frame in 1..=FRAMES {
        drawing.frame(frame, &mut whole);
        // The corner with the number of the frame.
        let rows = whole.chunks_exact(drawing::WIDTH);
        for row in rows.skip(drawing::HEIGHT - SIDE as usize) {
            all.extend_from_slice(&row[..SIDE as usize]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips() {
        let all: Vec<Strip> = Strip::all().collect();
        assert_eq!(
            (all[0].number(), all[0].before(), all[0].place()),
            (1, 0, 0)
        );
        let again = all[PLACES as usize];
        assert_eq!((again.before(), again.place()), (1, 0));
        let last = all[all.len() - 1];
        assert_eq!((last.frame(), last.top()), (FRAMES - 1, SIDE - ROWS));
        let bytes = frames().len() as u64 * PIXEL;
        assert_eq!(bytes, last.source() + STRIP_BYTES);
    }
}
