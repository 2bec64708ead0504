// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two processes share a picture: one draws, the other one looks, and a fence says whose turn it
//! is.
//!
//! The second process is this program again. It inherits two descriptors, the NT handles of the
//! picture and of the fence, and learns their numbers from its arguments.

use std::error::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

use opendxg::{Access, Device, Dxg, NtHandle, ShareOptions, SyncFlags};

const WIDTH: u32 = 64;
const HEIGHT: u32 = 64;
const BYTES: usize = (WIDTH * HEIGHT * 4) as usize;
const FRAMES: u64 = 8;

/// The fence is at 2n - 1 when frame n is drawn, and at 2n when it was looked at.
fn drawn(frame: u64) -> u64 {
    2 * frame - 1
}

fn looked_at(frame: u64) -> u64 {
    2 * frame
}

fn device() -> opendxg::Result<(Dxg, Device)> {
    let dxg = Dxg::open()?;
    let adapter = dxg.adapters()?.into_iter().next();
    let device = adapter.expect("an adapter").create_device()?;
    Ok((dxg, device))
}

/// Makes picture and fence, starts the other process, and draws.
fn draw() -> Result<(), Box<dyn Error>> {
    let (dxg, device) = device()?;
    let builder = device
        .new_resource()
        .image(WIDTH, HEIGHT, u64::from(WIDTH) * 4);
    let picture = builder.nt_shared().create()?;
    let fence = device.create_shareable_fence(0)?;

    // Open across exec, for the other process.
    let share = |handle, access| dxg.share(&[handle], &ShareOptions::new(access).inherit());
    let handles = [
        share(picture.handle(), Access::RESOURCE_ALL)?,
        share(fence.handle(), Access::ALL)?,
    ];
    let mut viewer = Command::new(std::env::current_exe()?)
        .args(handles.iter().map(|handle| handle.as_raw_fd().to_string()))
        .spawn()?;

    let pixels = picture.allocations()[0].lock_write()?;
    for frame in 1..=FRAMES {
        fence.wait(looked_at(frame - 1))?;
        pixels.fill(frame as u8);
        fence.signal(drawn(frame))?;
    }
    let status = viewer.wait()?;
    status
        .success()
        .then_some(())
        .ok_or("the viewer failed".into())
}

/// Looks at the pictures of the first process.
fn look(numbers: &[String]) -> Result<(), Box<dyn Error>> {
    let mut handles = Vec::new();
    for number in numbers {
        // SAFETY: inherited, and nobody else in this process knows of it.
        let fd = unsafe { OwnedFd::from_raw_fd(number.parse()?) };
        handles.push(NtHandle::from(fd));
    }
    let (_dxg, device) = device()?;
    let picture = device.open_share(&handles[0])?.resource;
    let fence = device.open_fence(&handles[1], SyncFlags::empty())?;

    let pixels = picture.allocations()[0].lock()?;
    for frame in 1..=FRAMES {
        fence.wait(drawn(frame))?;
        let seen = pixels.to_vec();
        if seen[..BYTES].iter().any(|&byte| u64::from(byte) != frame) {
            return Err(format!("frame {frame} is not what was drawn").into());
        }
        println!("frame {frame}: {BYTES} bytes as drawn");
        fence.signal(looked_at(frame))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<String> = std::env::args().skip(1).collect();
    match numbers.len() {
        0 => draw(),
        2 => look(&numbers),
        _ => Err("usage: picture".into()),
    }
}
