// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Rust half of the demo: it opens the fence that the C half made and draws every frame with
//! an even number. It also tells what happens.
//!
//! ```text
//! demo-rust SOCKET
//! ```

mod board;
mod way;

use std::process::ExitCode;

use board::{Board, MappedBoard, FRAMES_PER_WAY};
use demo::link::{Kind, Link};
use demo::screen::{self, heading, say, Progress, Row};
use demo::{alive, Result};
use opendxg::{Adapter, Device, Dxg, GlobalHandle, Luid, MonitoredFence, Status, SyncFlags};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: demo-rust SOCKET");
        return ExitCode::from(2);
    };
    alive::watch("demo-rust");
    match demo(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ndemo-rust: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demo(path: &str) -> Result {
    heading("1. Two programs share a fence. A fence is a number that only goes up; programs wait for it.");
    let link = Link::connect(path)?;
    let (luid, fds) = link.expect_with_fds(Kind::Hello)?;
    let [nt_handle, memory] = <[_; 2]>::try_from(fds).map_err(|_| "two descriptors were due")?;
    let board = MappedBoard::map(memory)?;

    let dxg = Dxg::open()?;
    let adapter = find_adapter(&dxg, luid)?;
    let device = adapter.create_device()?;
    let fence = device.open_fence(&nt_handle, SyncFlags::empty())?;
    drop(nt_handle);
    say(&format!(
        "is process {}; it opened the fence on the same adapter ({}) and reads value {}",
        std::process::id(),
        adapter.description()?,
        fence.value()
    ));

    heading("2. They draw frames into shared memory in turn. The fence says whose turn it is.");
    let mut rows = Vec::new();
    for (index, mut way) in (0..).zip(way::all()?) {
        println!("\n  {}: {}", way.name(), way.story());
        link.send(Kind::Start, index)?;
        hand_over(&fence, &board, index, way.as_mut())?;
        link.expect(Kind::Finished)?;
        let latencies = board.latencies(index);
        rows.push(Row {
            name: way.name(),
            latencies,
        });
    }

    heading("3. An object can also be shared by a plain number, which keeps nothing alive.");
    open_by_number(&link, &dxg, &device)?;
    link.send(Kind::Goodbye, 0)?;
    screen::table(&rows);
    Ok(())
}

/// The adapter that the other program uses.
fn find_adapter(dxg: &Dxg, luid: u64) -> Result<Adapter> {
    let luid = Luid {
        high: (luid >> 32) as i32,
        low: luid as u32,
    };
    let mut adapters = dxg.adapters()?.into_iter();
    let adapter = adapters.find(|adapter| adapter.luid() == luid);
    Ok(adapter.ok_or_else(|| format!("there is no adapter {luid}"))?)
}

/// Checks the odd frames of a way and draws the even ones.
fn hand_over(fence: &MonitoredFence, board: &Board, index: u64, way: &mut dyn way::Way) -> Result {
    let progress = Progress::begin(FRAMES_PER_WAY);
    let before = index * FRAMES_PER_WAY;
    for frame in (1..=FRAMES_PER_WAY).step_by(2) {
        let number = before + frame;
        alive::step();
        way.wait(fence, number)?;
        if fence.value() != number {
            return Err(format!("the fence is {} instead of {number}", fence.value()).into());
        }
        board.check(number)?;
        board.draw(number + 1);
        fence.signal(number + 1)?;
        progress.advance(frame);
        progress.advance(frame + 1);
    }
    progress.end();
    Ok(())
}

/// A semaphore of the other program, opened by its global handle, lives on here and then is gone.
fn open_by_number(link: &Link, dxg: &Dxg, device: &Device) -> Result {
    link.send(Kind::NumberPlease, 0)?;
    let number = GlobalHandle(link.expect(Kind::Number)?.try_into()?);
    let first = dxg.open_global(number)?;
    say("opened the semaphore by that number alone");
    link.send(Kind::Opened, 0)?;
    link.expect(Kind::Dropped)?;

    let second = dxg.open_global(number)?;
    say("opened it again: it lives on, because this program still has a handle");
    first.destroy()?;
    second.destroy()?;
    match dxg.open_global(number) {
        Err(error) if error.status() == Status::INVALID_PARAMETER => {
            say(&format!(
                "destroyed its handles, the last ones. The number is dead now: {error}"
            ));
        }
        Err(error) => return Err(format!("a dead number gave {error}").into()),
        Ok(_) => return Err("a number still works although its object is gone".into()),
    }
    // The device still works: only the number died.
    Ok(device.create_fence(0)?.destroy()?)
}
