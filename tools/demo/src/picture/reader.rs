// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that opens the picture, looks at every frame and checks it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Instant;

use demo::link::{Kind, Link};
use demo::{alive, image_file, Result};
use opendxg::{Access, Device, Dxg, KeyedMutex, NtHandle, Resource, SyncObject};

use crate::frame;
use crate::plan::{drawn, looked_at, Way, DRAW, KEPT, LOOK, NAME, PICTURES, TURNS};
use crate::share::{acquire, description, device, signal, wait, Numbered};

/// How a reader knows that it may look.
enum Turn {
    Mutex(KeyedMutex),
    Fence(Device, SyncObject),
}

impl Turn {
    fn take(&self, number: u64) -> Result {
        match self {
            Self::Mutex(mutex) => acquire(mutex, LOOK, number),
            Self::Fence(_, fence) => wait(fence, drawn(number)),
        }
    }

    fn pass_on(&self, number: u64) -> Result {
        match self {
            Self::Mutex(mutex) => Ok(mutex.release(DRAW, number)?),
            Self::Fence(device, fence) => signal(device, fence, looked_at(number)),
        }
    }
}

/// The whole process.
pub fn run(folder: &Path, way: Way, numbers: &[String]) -> Result {
    let link = Link::to_parent()?;
    let (dxg, device) = device()?;
    let (resource, turn) = open(way, &link, &dxg, &device, numbers)?;
    let description = description(&resource)?;
    let (width, height) = (description.width, description.height);
    println!(
        "  {:<12} process {} opened the picture; its description says {width} x {height}",
        way.argument(),
        std::process::id()
    );
    link.send(Kind::Ready, 0)?;

    let allocation = resource
        .allocations()
        .first()
        .ok_or("the resource is empty")?;
    let memory = allocation.lock()?;
    let mut kept = Vec::new();
    let mut pixels = vec![0; width * height * 4];
    let pictures = series(PICTURES, &turn, |number| {
        let mut head = [0; frame::HEAD];
        memory.read(0, &mut head);
        memory.read(description.offset, &mut pixels);
        if number == KEPT {
            kept.clone_from(&pixels);
        }
        frame::check(&head, number, &pixels)
    })?;
    link.send(Kind::Seen, pictures)?;
    let turns = series(TURNS, &turn, |number| {
        let mut head = [0; frame::HEAD];
        memory.read(0, &mut head);
        frame::check(&head, number, &[])
    })?;
    link.send(Kind::Seen, turns)?;

    let words = kept
        .chunks_exact(4)
        .map(|bytes| u32::from_ne_bytes(std::array::from_fn(|at| bytes[at])));
    let path = folder.join(format!("picture-{}.png", way.argument()));
    image_file::write(&path, width, &words.collect::<Vec<_>>())
}

fn open(
    way: Way,
    link: &Link,
    dxg: &Dxg,
    device: &Device,
    numbers: &[String],
) -> Result<(Resource, Turn)> {
    let (_, mut fds) = link.expect_with_fds(Kind::Picture)?;
    let nt_handle = match way {
        Way::NtHandle => NtHandle::from(fds.pop().ok_or("a descriptor was due")?),
        Way::Name => dxg.open_resource_name(NAME, Access::RESOURCE_ALL)?,
        Way::Number => {
            let Numbered { resource, mutex } = Numbered::open(dxg, device, numbers)?;
            return Ok((resource, Turn::Mutex(mutex)));
        }
    };
    let share = device.open_share(&nt_handle)?;
    let turn = match way {
        Way::Name => Turn::Fence(
            device.clone(),
            share.sync_object.ok_or("the share has no fence")?,
        ),
        _ => Turn::Mutex(share.keyed_mutex.ok_or("the share has no keyed mutex")?),
    };
    Ok((share.resource, turn))
}

/// Looks at some frames; returns the nanoseconds from the first to the last one.
fn series(
    frames: RangeInclusive<u64>,
    turn: &Turn,
    mut look: impl FnMut(u64) -> Result,
) -> Result<u64> {
    let mut began = None;
    for number in frames {
        alive::step();
        turn.take(number)?;
        began.get_or_insert_with(Instant::now);
        look(number)?;
        turn.pass_on(number)?;
    }
    let elapsed = began.ok_or("no frames")?.elapsed();
    Ok(elapsed.as_nanos().try_into()?)
}
