// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that draws, starts the readers and tells what happened.

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use demo::drawing::{Drawing, WIDTH};
use demo::link::{Kind, Link};
use demo::screen::{heading, Progress};
use demo::{alive, image_file, Result};
use opendxg::{KeyedMutex, MappingMut, MonitoredFence, Resource};

use crate::frame;
use crate::plan::{drawn, looked_at, Way, DRAW, KEPT, LOOK, NAME, PICTURES, TURNS};
use crate::share::{acquire, device, wait, Numbered, Triple};

/// A reader as the renderer sees it; killed when dropped before its end.
struct Reader {
    way: Way,
    child: Child,
    link: Link,
}

impl Reader {
    fn start(folder: &Path, way: Way, arguments: &[String]) -> Result<Self> {
        let (link, socket) = Link::to_child()?;
        let program = std::env::current_exe()?;
        let child = Command::new(program)
            .arg(folder)
            .arg(way.argument())
            .args(arguments)
            .stdin(Stdio::from(socket))
            .spawn()?;
        Ok(Self { way, child, link })
    }

    fn finish(mut self) -> Result {
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("{}: {status}", self.way.argument()).into()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Nothing to do for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole process.
pub fn run(folder: &Path, spoil: Option<u64>) -> Result {
    heading("4. Four processes share a picture: one renders, three look, each opening it in its own way.");
    let (dxg, device) = device()?;
    let triple = Triple::create(&dxg, &device)?;
    let numbered = Numbered::create(&dxg, &device)?;
    println!(
        "  renderer     process {} made a resource, a keyed mutex and a fence, shared together",
        std::process::id()
    );
    println!("               as {NAME}, and a second pair shared by number");

    let mut readers = Vec::new();
    for way in Way::ALL {
        let arguments = if way == Way::Number {
            numbered.numbers()?.to_vec()
        } else {
            Vec::new()
        };
        let reader = Reader::start(folder, way, &arguments)?;
        let nt_handle = (way == Way::NtHandle).then_some(&triple.nt_handle);
        reader.link.send_with_fd(Kind::Picture, 0, nt_handle)?;
        reader.link.expect(Kind::Ready)?;
        readers.push(reader);
    }

    let seen = |readers: &[Reader]| {
        let each = readers.iter().map(|reader| reader.link.expect(Kind::Seen));
        each.collect::<Result<Vec<u64>, String>>()
    };
    let studio = Studio {
        walls: [
            (lock(&triple.resource)?, &triple.mutex),
            (lock(&numbered.resource)?, &numbered.mutex),
        ],
        fence: &triple.fence,
        spoil,
    };
    let progress = Progress::begin(*PICTURES.end());
    studio.pictures(folder, &progress)?;
    let pictures = seen(&readers)?;
    progress.end();
    studio.turns()?;
    let turns = seen(&readers)?;
    table(&pictures, &turns);
    readers.into_iter().try_for_each(Reader::finish)
}

fn lock(resource: &Resource) -> Result<MappingMut<'_>> {
    let allocation = resource
        .allocations()
        .first()
        .ok_or("the resource is empty")?;
    Ok(allocation.lock_write()?)
}

/// Where frames are drawn.
struct Studio<'a> {
    /// The memory of both pictures, and the mutex that keeps its readers apart from us.
    walls: [(MappingMut<'a>, &'a KeyedMutex); 2],
    fence: &'a MonitoredFence,
    spoil: Option<u64>,
}

impl Studio<'_> {
    /// Frames with a new picture each.
    fn pictures(&self, folder: &Path, progress: &Progress) -> Result {
        let drawing = Drawing::new();
        let (mut pixels, mut bytes) = (Vec::new(), Vec::new());
        for number in PICTURES {
            drawing.frame(number, &mut pixels);
            bytes.clear();
            bytes.extend(pixels.iter().flat_map(|pixel| pixel.to_ne_bytes()));
            self.hand_over(number, &bytes)?;
            if number == KEPT {
                image_file::write(&folder.join("picture-rendered.png"), WIDTH, &pixels)?;
            }
            progress.advance(number);
        }
        Ok(())
    }

    /// Frames in which nothing but the number changes.
    fn turns(&self) -> Result {
        for number in TURNS {
            self.hand_over(number, &[])?;
        }
        Ok(())
    }

    /// Puts a frame into both resources as soon as everybody has looked at the last one.
    fn hand_over(&self, number: u64, pixels: &[u8]) -> Result {
        alive::step();
        let head = frame::head(number, frame::checksum(number, pixels));
        self.looked_at(number - 1)?;
        for (memory, mutex) in &self.walls {
            memory.write(0, &head);
            memory.write(frame::PIXELS, pixels);
            if self.spoil == Some(number) {
                memory.write(frame::PIXELS, &[!pixels.first().copied().unwrap_or(0)]);
            }
            mutex.release(LOOK, number)?;
        }
        Ok(self.fence.signal(drawn(number))?)
    }

    /// Waits until everybody has looked at a frame, and takes the mutexes. A reader that died with
    /// a mutex shows at once.
    fn looked_at(&self, number: u64) -> Result {
        for (_, mutex) in &self.walls {
            acquire(mutex, DRAW, number)?;
        }
        wait(self.fence, looked_at(number))
    }
}

/// How often the picture changed hands: nanoseconds of both series, for each reader.
fn table(pictures: &[u64], turns: &[u64]) {
    heading("How often the picture changed hands, every frame checked by every reader:");
    println!(
        "  {:<26}{:<16}{:>10}{:>14}{:>18}",
        "opened by", "waits for", "pictures", "per second", "turns per second"
    );
    let rate = |frames: &RangeInclusive<u64>, ns: u64| {
        let intervals = frames.end() - frames.start();
        intervals as f64 * 1e9 / ns.max(1) as f64
    };
    for ((way, pictures), turns) in Way::ALL.iter().zip(pictures).zip(turns) {
        println!(
            "  {:<26}{:<16}{:>10}{:>14.0}{:>18.0}",
            way.opens(),
            way.waits(),
            PICTURES.count(),
            rate(&PICTURES, *pictures),
            rate(&TURNS, *turns)
        );
    }
    println!("  (a turn is a hand-over without a new picture)");
}
