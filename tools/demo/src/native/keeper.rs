// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that keeps: its engine takes strip after strip out of the shared memory, into a
//! picture of all frames. It checks every pixel and writes the picture.

use std::path::Path;

use demo::link::{Kind, Link};
use demo::memory::{self, check, Pixels, PIXEL};
use demo::{image_file, wakeups, Result};
use opendxg::pm4::Pm4;
use opendxg::{Dxg, SyncFlags};

use crate::plan::{
    frames, Strip, FRAMES, FRAMES_OF_A_ROW, KEEPS, PLACES, ROWS, SIDE, STRIPS, STRIP_BYTES,
};
use crate::ring::{self, Ring};

/// Pixels of a row of the picture.
const WIDTH: u64 = FRAMES_OF_A_ROW * SIDE;
/// Its rows.
const HEIGHT: u64 = FRAMES / FRAMES_OF_A_ROW * SIDE;
/// Bytes of the ring: more than all packets.
const RING: u64 = 128 << 10;

/// The whole process.
pub fn run(folder: &Path) -> Result {
    let link = Link::to_parent()?;
    let dxg = Dxg::open()?;
    let device = crate::adapter(&dxg)?.create_device()?;
    let paging = device.create_paging_queue()?;

    let places = device.open_share(link.expect_fd(Kind::Texture)?)?.resource;
    let painted = device.open_native_fence(link.expect_fd(Kind::Painted)?, SyncFlags::empty())?;
    let kept = device.open_native_fence(link.expect_fd(Kind::Kept)?, SyncFlags::empty())?;
    let place = places.allocations().first().ok_or("an empty resource")?;
    let from = memory::map(&paging, place, PLACES * STRIP_BYTES)?;
    let picture = Pixels::local(&paging, WIDTH * HEIGHT)?;

    let context = device.create_hw_context(KEEPS)?;
    let queue = ring::queue(&context)?;
    let ring = Ring::new(&paging, &queue, RING)?;
    let packets = Strip::all().fold(Pm4::new(), |packets, strip| {
        let packets = queue.record_wait(packets, &painted, strip.number());
        let packets = keep(packets, from + strip.place(), picture.address(), strip);
        queue.record_signal(packets, &kept, strip.number())
    });

    let woken = wakeups::count()?;
    ring.submit(&packets)?;
    link.send(Kind::Queued, STRIPS)?;
    crate::wait(&kept, STRIPS)?;
    let woken = wakeups::count()? - woken;
    check(&device)?;

    let found = picture.read(WIDTH * HEIGHT)?;
    image_file::write(&folder.join("native.png"), WIDTH as usize, &found)?;
    let frames = frames();
    for (index, found) in (0..).zip(found) {
        let (x, y) = (index % WIDTH, index / WIDTH);
        let frame = y / SIDE * FRAMES_OF_A_ROW + x / SIDE;
        let right = frames[((frame * SIDE + y % SIDE) * SIDE + x % SIDE) as usize];
        if found != right {
            return Err(
                format!("the picture has {found:08x} instead of {right:08x} at {x}, {y}").into(),
            );
        }
    }
    link.send(Kind::Checked, woken)?;
    Ok(())
}

/// Copies a strip into its frame, row by row.
fn keep(packets: Pm4, from: u64, picture: u64, strip: Strip) -> Pm4 {
    let left = strip.frame() % FRAMES_OF_A_ROW * SIDE;
    let top = strip.frame() / FRAMES_OF_A_ROW * SIDE + strip.top();
    (0..ROWS).fold(packets, |packets, row| {
        let to = picture + ((top + row) * WIDTH + left) * PIXEL;
        packets.copy(to, from + row * SIDE * PIXEL, SIDE * PIXEL)
    })
}
