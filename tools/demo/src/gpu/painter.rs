// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that makes the texture. One engine clears its tiles, another one copies a pattern
//! into them. It also starts the other process and tells what happened.

use std::path::Path;
use std::time::Instant;

use demo::link::Kind;
use demo::memory::{self, check, one, Commands, Pixels, PIXEL};
use demo::partner::Partner;
use demo::screen::heading;
use demo::{alive, wakeups, Result};
use opendxg::pm4::Pm4;
use opendxg::{Access, Dxg};

use crate::plan::{expected, offset, patterns, Step, CLEARS, COPIES, FRAMES, SIDE, STEPS, TILE};
use crate::table::{Adapter, Table};

/// The whole process. The tile of step `spoil` is not painted.
pub fn run(folder: &Path, spoil: Option<u64>) -> Result {
    heading(
        "5. Two processes share a texture. Engines clear, copy and scale its tiles, and wait for \
         each other.",
    );
    let dxg = Dxg::open()?;
    let adapters = dxg.adapters()?;
    let adapter = adapters.first().ok_or("there is no adapter")?;
    let device = adapter.create_device()?;
    let paging = device.create_paging_queue()?;

    let bytes = memory::in_pages(SIDE * SIDE * PIXEL);
    let texture = device.new_resource().local(bytes).nt_shared().create()?;
    let pixels = texture.allocations().first().ok_or("an empty resource")?;
    let address = memory::map(&paging, pixels, bytes)?;
    let patterns = patterns();
    let source = Pixels::drawn(&paging, &patterns)?;
    // Three fences, each for one direction. None of them is looked at before the end.
    let cleared = device.create_fence(0)?;
    let painted = device.create_shareable_fence(0)?;
    let scaled = device.create_shareable_fence(0)?;

    let (scaler, link) = Partner::start(folder, "scaler")?;
    let access = Access::RESOURCE_ALL;
    link.send_with_fd(Kind::Texture, 0, Some(texture.share(access)?))?;
    for (kind, fence) in [(Kind::Painted, &painted), (Kind::Scaled, &scaled)] {
        link.send_with_fd(kind, 0, Some(fence.share(Access::ALL)?))?;
    }

    let clearing: Vec<Pm4> = Step::all().map(|step| clear(address, step)).collect();
    let copying = Step::all().map(|step| match Some(step.number()) == spoil {
        true => Pm4::new().nop(0),
        false => copy(address, source.address(), step),
    });
    let copying: Vec<Pm4> = copying.collect();
    let clearing = Commands::new(&paging, &clearing)?;
    let copying = Commands::new(&paging, &copying)?;

    let before = Adapter::read(adapter.luid());
    let clears = device.create_context(CLEARS)?;
    let copies = device.create_context(COPIES)?;
    // Until then nothing runs: the first wait is for what this process signals below.
    let begin = device.create_fence(0)?;
    clears.wait(&one(&begin, 1))?;
    for ((step, clearing), copying) in Step::all().zip(clearing.iter()).zip(copying.iter()) {
        alive::step();
        clears.wait(&one(&scaled, step.before()))?;
        clears.submit(clearing.0, clearing.1)?;
        clears.signal(&one(&cleared, step.number()))?;
        copies.wait(&one(&cleared, step.number()))?;
        copies.submit(copying.0, copying.1)?;
        copies.signal(&one(&painted, step.number()))?;
    }
    let submissions = 2 * STEPS + link.expect(Kind::Queued)?;
    println!(
        "  {submissions} command buffers are queued: {STEPS} tiles of {FRAMES} frames, 3 engines"
    );

    let (woken, began) = (wakeups::count()?, Instant::now());
    begin.signal(1)?;
    crate::wait(&scaled, STEPS)?;
    let (woken, time) = (wakeups::count()? - woken, began.elapsed());
    check(&device)?;
    let after = Adapter::read(adapter.luid());
    let woken_scaler = link.expect(Kind::Checked)?;
    scaler.finish()?;

    for (index, found) in (0..).zip(memory::read(pixels, SIDE * SIDE)?) {
        let (x, y) = (index % SIDE, index / SIDE);
        let right = expected(&patterns, FRAMES - 1, x, y);
        if found != right {
            return Err(
                format!("the texture has {found:08x} at {x}, {y} instead of {right:08x}").into(),
            );
        }
    }
    Table {
        submissions,
        time,
        engines: before.zip(after),
        wakeups: [("painter", woken), ("scaler", woken_scaler)],
    }
    .print();
    Ok(())
}

/// Clears a tile, row by row.
fn clear(texture: u64, step: Step) -> Pm4 {
    (step.top()..step.top() + TILE).fold(Pm4::new(), |commands, y| {
        let row = texture + offset(step.left(), y, SIDE);
        commands.fill(row, step.background(), TILE * PIXEL)
    })
}

/// Copies the pattern into a tile, all but its rim.
fn copy(texture: u64, patterns: u64, step: Step) -> Pm4 {
    let x = step.left() + 1;
    (step.top() + 1..step.top() + TILE - 1).fold(Pm4::new(), |commands, y| {
        let from = patterns + offset(x, step.frame() * SIDE + y, SIDE);
        let to = texture + offset(x, y, SIDE);
        commands.copy(to, from, (TILE - 2) * PIXEL)
    })
}
