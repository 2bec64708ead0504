// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that scales: its engine makes small pictures of every frame, and one that is twice
//! as large of the last one. It checks every pixel and writes the picture.

use std::path::Path;

use demo::link::{Kind, Link};
use demo::memory::{self, check, one, Commands, Pixels, PIXEL};
use demo::{alive, image_file, wakeups, Result};
use opendxg::pm4::Pm4;
use opendxg::{Dxg, SyncFlags};

use crate::plan::{expected, offset, patterns, Step, FRAMES, SCALES, SIDE, STEPS, TILE};

/// The canvas: the last frame twice as large, at its right the frame as it is, and below that all
/// frames, small.
const WIDTH: u64 = 3 * SIDE;
/// See [`WIDTH`].
const HEIGHT: u64 = 2 * SIDE;
/// A small picture has one pixel of so many, in both directions.
const SHRINK: u64 = 4;
/// The pixel of these that it has.
const MIDDLE: u64 = 2;
/// Small pictures of a row.
const SMALL_OF_A_ROW: u64 = 4;

/// DMA_DATA: wait for it before the next packet.
const SYNC: u32 = 1 << 31;
/// DMA_DATA: take the same word again and again.
const SAME_SOURCE: u32 = 1 << 28;

/// The whole process.
pub fn run(folder: &Path) -> Result {
    let link = Link::to_parent()?;
    let dxg = Dxg::open()?;
    let adapters = dxg.adapters()?;
    let device = adapters
        .first()
        .ok_or("there is no adapter")?
        .create_device()?;
    let paging = device.create_paging_queue()?;

    let texture = device.open_share(link.expect_fd(Kind::Texture)?)?.resource;
    let painted = device.open_fence(link.expect_fd(Kind::Painted)?, SyncFlags::empty())?;
    let scaled = device.open_fence(link.expect_fd(Kind::Scaled)?, SyncFlags::empty())?;
    let pixels = texture.allocations().first().ok_or("an empty resource")?;
    let from = memory::map(&paging, pixels, SIDE * SIDE * PIXEL)?;
    let canvas = Pixels::local(&paging, WIDTH * HEIGHT)?;

    let scaling: Vec<Pm4> = Step::all()
        .map(|step| scale(canvas.address(), from, step))
        .collect();
    let scaling = Commands::new(&paging, &scaling)?;
    let context = device.create_hw_context(SCALES)?;
    let queue = context.create_hw_queue()?;
    for (step, (address, length)) in Step::all().zip(scaling.iter()) {
        alive::step();
        queue.wait(&one(&painted, step.number()))?;
        queue.submit(step.number(), address, length)?;
        queue.signal(&one(&scaled, step.number()))?;
    }

    let woken = wakeups::count()?;
    link.send(Kind::Queued, STEPS)?;
    crate::wait(queue.progress(), STEPS)?;
    let woken = wakeups::count()? - woken;
    check(&device)?;

    let found = canvas.read(WIDTH * HEIGHT)?;
    image_file::write(&folder.join("gpu.png"), WIDTH as usize, &found)?;
    let patterns = patterns();
    for (index, found) in (0..).zip(found) {
        let (x, y) = (index % WIDTH, index / WIDTH);
        let (frame, from_x, from_y) = source(x, y);
        let right = expected(&patterns, frame, from_x, from_y);
        if found != right {
            return Err(format!(
                "the picture has {found:08x} instead of {right:08x} at {x}, {y}, which is \
                 {from_x}, {from_y} of frame {}",
                frame + 1
            )
            .into());
        }
    }
    link.send(Kind::Checked, woken)?;
    Ok(())
}

/// Where the small picture of a frame begins in the canvas.
fn small(frame: u64) -> (u64, u64) {
    let side = SIDE / SHRINK;
    let (column, row) = (frame % SMALL_OF_A_ROW, frame / SMALL_OF_A_ROW);
    (2 * SIDE + column * side, SIDE + row * side)
}

/// What must be at a place of the canvas: the frame, and the place in it.
fn source(x: u64, y: u64) -> (u64, u64, u64) {
    let last = FRAMES - 1;
    if x < 2 * SIDE {
        return (last, x / 2, y / 2);
    }
    let (x, side) = (x - 2 * SIDE, SIDE / SHRINK);
    if y < SIDE {
        return (last, x, y);
    }
    let y = y - SIDE;
    let frame = y / side * SMALL_OF_A_ROW + x / side;
    let full = |at: u64| at % side * SHRINK + MIDDLE;
    (frame, full(x), full(y))
}

/// Scales a tile: packets copy pixels, one at a time.
fn scale(canvas: u64, texture: u64, step: Step) -> Pm4 {
    let (left, top) = (step.left(), step.top());
    let at = |x, y| texture + offset(x, y, SIDE);
    let to = |x, y| canvas + offset(x, y, WIDTH);
    let mut commands = Pm4::new();

    let (x, y) = small(step.frame());
    for row in (0..TILE).step_by(SHRINK as usize) {
        for column in (0..TILE).step_by(SHRINK as usize) {
            let from = at(left + column + MIDDLE, top + row + MIDDLE);
            let pixel = to(x + (left + column) / SHRINK, y + (top + row) / SHRINK);
            commands = commands.move32(pixel, from);
        }
    }
    if !step.is_last_frame() {
        return commands;
    }
    for row in top..top + TILE {
        commands = commands.copy(to(2 * SIDE + left, row), at(left, row), TILE * PIXEL);
        for column in left..left + TILE {
            // Each pixel twice, then the row once more.
            let (from, pixels) = (at(column, row), to(2 * column, 2 * row));
            commands = commands.dma(SYNC, from, pixels, (2 * PIXEL as u32) | SAME_SOURCE);
        }
        let bytes = 2 * TILE * PIXEL;
        commands = commands.copy(to(2 * left, 2 * row + 1), to(2 * left, 2 * row), bytes);
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_source() {
        for (x, y) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y))) {
            let (frame, x, y) = source(x, y);
            assert!(frame < FRAMES && x < SIDE && y < SIDE);
        }
        assert_eq!(source(2 * SIDE, SIDE), (0, MIDDLE, MIDDLE));
        let (x, y) = small(FRAMES - 1);
        assert_eq!(source(x + 1, y + 2), (FRAMES - 1, 6, 10));
        assert_eq!((x + SIDE / SHRINK, y + SIDE / SHRINK), (WIDTH, HEIGHT));
    }
}
