// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Vulkan driver and an engine of ours take turns, by sync files alone (FEN-160, FEN-165).

use std::time::Duration;

use interop::gpu::Gpu as Vulkan;
use interop::imported::{Buffer, Image};
use interop::painter::{draw_and, GROUND, TRIANGLE};
use interop::semaphore::Semaphore;
use opendxg::pm4::Pm4;
use selftests::child::in_child;
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::sync_file::{status, Foreign, PENDING};
use selftests::time::a_while;
use selftests::{ensure, ensure_eq, Suite, TestResult};

const WIDTH: u32 = 64;
const HEIGHT: u32 = 48;

fn main() {
    // The driver compiles shaders, on an emulated processor.
    let limit = Duration::from_secs(120);
    Suite::new("vulkan-sync")
        .slow(
            "FEN-160 FEN-162 FEN-165 RES-87 a driver draws, our engine copies, the driver reads",
            limit,
            || in_child(relay),
        )
        .run()
}

/// The driver draws into `picture`. Behind that our context signals a monitored fence and our
/// engine copies to `copy`; behind that the driver copies to `result`. No step is waited for by a
/// CPU before the next one is submitted.
fn relay() -> TestResult {
    let vulkan = Vulkan::open()?;
    println!("# {}", vulkan.name());
    let gpu = Gpu::new()?;
    let mut image = Image::new(&vulkan, WIDTH, HEIGHT)?;
    let size = image.size().next_multiple_of(PAGE);
    let [picture, copy, result] = [gpu.buffer(size)?, gpu.buffer(size)?, gpu.buffer(size)?];
    image.import(picture.allocation().export_dmabuf()?, size)?;
    let from = Buffer::import(&vulkan, copy.allocation().export_dmabuf()?, size)?;
    let to = Buffer::import(&vulkan, result.allocation().export_dmabuf()?, size)?;

    let drawn = gpu.device().create_fence(0)?;
    let commands = gpu.commands(&Pm4::new().copy(copy.address(), picture.address(), size))?;
    let (drawing, copying) = (Semaphore::new(&vulkan)?, Semaphore::new(&vulkan)?);
    // A third driver holds everything up, so that it can be seen who waits for whom.
    let gate = Foreign::new()?;

    draw_and(&vulkan, &image, WIDTH, HEIGHT, Some(&drawing), || {
        match drawing.export()? {
            Some(file) => gpu.context().wait_sync_file(file)?,
            None => println!("# the driver has drawn before it says so"),
        }
        gpu.context().wait_sync_file(gate.file()?)?;
        gpu.context().signal(&one(&drawn, 1))?;
        gpu.submit(&commands)?;
        let mark = gpu.mark()?;

        let copied = gpu.device().create_sync_file(gpu.done(), mark)?;
        ensure_eq!(status(&copied)?, PENDING);
        copying.import(copied.into())?;
        let last = vulkan.submit(
            |commands| from.record_copy(commands, &to),
            Some(&copying),
            None,
        )?;

        a_while();
        ensure!(!last.is_done()?, "the driver did not wait for our engine");
        ensure_eq!(drawn.value(), 0);
        result.holds(0..size, 0)?;
        gate.signal()?;
        last.finish()?;
        reaches(&drawn, 1)
    })?;

    let (offset, pitch) = image.layout();
    let at = |x: u32, y: u32| {
        result
            .get32(offset + u64::from(y) * pitch + u64::from(x) * 4)
            .to_le_bytes()
    };
    for (x, y) in [(32, 24), (32, 12), (20, 40), (44, 40)] {
        let colour = at(x, y);
        let mut parts = colour.iter().zip(TRIANGLE);
        ensure!(
            parts.all(|(&got, wanted)| got.abs_diff(wanted) <= 1),
            "({x}, {y}) is {colour:?}"
        );
    }
    for (x, y) in [
        (0, 0),
        (WIDTH - 1, 0),
        (0, HEIGHT - 1),
        (WIDTH - 1, HEIGHT - 1),
    ] {
        ensure_eq!(at(x, y), GROUND, "({x}, {y})");
    }
    gpu.works()
}
