// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both processes agree on: the texture, its tiles, and the numbers of the steps.

use std::time::Duration;

use demo::drawing::{self, Drawing};
use demo::memory::PIXEL;

/// Pixels of a side of the texture.
pub const SIDE: u64 = 128;
/// Pixels of a side of a tile.
pub const TILE: u64 = 16;
/// Tiles of a row of the texture.
pub const TILES_OF_A_ROW: u64 = SIDE / TILE;
/// Tiles of a frame.
pub const TILES: u64 = TILES_OF_A_ROW * TILES_OF_A_ROW;
/// Frames.
pub const FRAMES: u64 = 16;
/// Tiles that are painted and scaled, all frames together.
pub const STEPS: u64 = FRAMES * TILES;

/// Where the clearing engine is: 3D.
pub const CLEARS: u32 = 0;
/// Where the copying engine is: compute.
pub const COPIES: u32 = 1;
/// Where the scaling engine is: copy.
pub const SCALES: u32 = 2;

/// Nobody waits longer for the engines.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One tile of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(u64);

impl Step {
    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..STEPS).map(Self)
    }

    /// Its number, from 1. Fences have it as their value when the step is done.
    pub fn number(self) -> u64 {
        self.0 + 1
    }

    /// The step in which this place of the texture was used before; 0 if there was none.
    pub fn before(self) -> u64 {
        self.number().saturating_sub(TILES)
    }

    /// The frame, from 0.
    pub fn frame(self) -> u64 {
        self.0 / TILES
    }

    /// Whether it belongs to the last frame.
    pub fn is_last_frame(self) -> bool {
        self.frame() + 1 == FRAMES
    }

    /// The tile of the frame.
    fn tile(self) -> u64 {
        self.0 % TILES
    }

    /// The leftmost column of the tile.
    pub fn left(self) -> u64 {
        self.tile() % TILES_OF_A_ROW * TILE
    }

    /// The highest row of the tile.
    pub fn top(self) -> u64 {
        self.tile() / TILES_OF_A_ROW * TILE
    }

    /// What the tile is cleared with: a colour of its own in every frame.
    pub fn background(self) -> u32 {
        let part = |value: u64| 40 + value as u32; // At most 40 + 255 - 40.
        let (red, green, blue) = (self.left(), self.frame() * 12, self.top());
        (part(red) << 16) | (part(green) << 8) | part(blue)
    }
}

/// Bytes from the start of a picture to a pixel.
pub fn offset(x: u64, y: u64, width: u64) -> u64 {
    (y * width + x) * PIXEL
}

/// What the painter copies from: a square of each frame, one after the other.
pub fn patterns() -> Vec<u32> {
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

/// The pixel that the texture must have at a place when a frame is painted: the background is
/// left at the rim of each tile.
pub fn expected(patterns: &[u32], frame: u64, x: u64, y: u64) -> u32 {
    let is_rim = |at: u64| at % TILE == 0 || at % TILE == TILE - 1;
    if is_rim(x) || is_rim(y) {
        let tile = y / TILE * TILES_OF_A_ROW + x / TILE;
        return Step(frame * TILES + tile).background();
    }
    patterns[((frame * SIDE + y) * SIDE + x) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let all: Vec<Step> = Step::all().collect();
        assert_eq!(all.len() as u64, STEPS);
        assert_eq!((all[0].number(), all[0].before()), (1, 0));
        let next = all[TILES as usize];
        assert_eq!((next.before(), next.frame()), (1, 1));
        assert_eq!((next.left(), next.top()), (0, 0));
        let last = all[all.len() - 1];
        assert!(last.is_last_frame());
        assert_eq!((last.left(), last.top()), (SIDE - TILE, SIDE - TILE));
    }

    #[test]
    fn tiles_and_frames_are_told_apart() {
        let mut colours: Vec<u32> = Step::all().map(Step::background).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len() as u64, STEPS);
        let patterns = patterns();
        assert_eq!(patterns.len() as u64, FRAMES * SIDE * SIDE);
        assert_eq!(
            expected(&patterns, 1, 0, 0),
            Step::all().nth(TILES as usize).unwrap().background()
        );
        assert_eq!(
            expected(&patterns, 2, 20, 40),
            patterns[((2 * SIDE + 40) * SIDE + 20) as usize]
        );
    }
}
