// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's test camera (vivid) captures a picture into our memory (RES-87, RES-90).

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::PollFlags;
use selftests::child::in_child;
use selftests::fds::poll_events;
use selftests::resource::{export, flags, Create, OpenNt, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Failure, Outcome, Suite};

fn main() {
    Suite::new("camera")
        .test(
            "RES-87 RES-90 a camera captures into our memory, another process sees the picture",
            captured,
        )
        .run()
}

const WIDTH: u32 = 320;
const HEIGHT: u32 = 180;
/// Four bytes a pixel: blue, green, red, unused.
const FORMAT: u32 = u32::from_le_bytes(*b"XR24");
const CAPTURE: u32 = 1;
const BY_DMA_BUF: u32 = 4;

/// `struct v4l2_format` for one plane.
#[repr(C)]
struct Format {
    kind: u32,
    pad: u32,
    width: u32,
    height: u32,
    pixel_format: u32,
    field: u32,
    pitch: u32,
    size: u32,
    rest: [u32; 44],
}

/// `struct v4l2_requestbuffers`.
#[repr(C)]
struct Request {
    count: u32,
    kind: u32,
    memory: u32,
    rest: [u32; 2],
}

/// `struct v4l2_buffer`.
#[repr(C)]
#[derive(Default)]
struct Buffer {
    index: u32,
    kind: u32,
    used: u32,
    flags: u32,
    field: u32,
    pad: u32,
    time: [i64; 2],
    code: [u32; 4],
    sequence: u32,
    memory: u32,
    fd: u64,
    length: u32,
    rest: [u32; 3],
}

const SET_FORMAT: u64 = 0xc0d0_5605;
const REQUEST: u64 = 0xc014_5608;
const QUEUE: u64 = 0xc058_560f;
const DEQUEUE: u64 = 0xc058_5611;
const START: u64 = 0x4004_5612;
const STOP: u64 = 0x4004_5613;

fn ioctl<T>(node: &File, what: &str, code: u64, arg: &mut T) -> Outcome {
    // SAFETY: each caller names the code that goes with its struct.
    if unsafe { libc::ioctl(node.as_raw_fd(), code, &raw mut *arg) } < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Failure::Failed(format!("{what}: {error}")));
    }
    Ok(())
}

/// The first camera that captures.
fn camera() -> Outcome<(File, Format)> {
    for number in 0..8 {
        let path = format!("/dev/video{number}");
        let Ok(node) = OpenOptions::new().read(true).write(true).open(path) else {
            continue;
        };
        let mut format = Format {
            kind: CAPTURE,
            pad: 0,
            width: WIDTH,
            height: HEIGHT,
            pixel_format: FORMAT,
            field: 1,
            pitch: 0,
            size: 0,
            rest: [0; 44],
        };
        if ioctl(&node, "VIDIOC_S_FMT", SET_FORMAT, &mut format).is_ok() {
            return Ok((node, format));
        }
    }
    Err("no camera: load it with --modules vivid".into())
}

fn captured() -> Outcome {
    let (node, format) = camera()?;
    ensure_eq!(format.pixel_format, FORMAT);
    println!(
        "# {}x{}, {} bytes a row",
        format.width, format.height, format.pitch
    );
    let size = u64::from(format.size).next_multiple_of(PAGE_SIZE);
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[size]).run()?;
    let file = export(made.raw(), made.first(), 0)?;
    let mut request = Request {
        count: 2,
        kind: CAPTURE,
        memory: BY_DMA_BUF,
        rest: [0; 2],
    };
    ioctl(&node, "VIDIOC_REQBUFS", REQUEST, &mut request)?;
    // The camera wants two pictures at a time.
    let other = Create::sized(&device, flags::RESOURCE, &[size]).run()?;
    let other_file = export(other.raw(), other.first(), 0)?;
    let fds = [file.as_raw_fd(), other_file.as_raw_fd()];
    for index in 0..request.count {
        let mut buffer = Buffer {
            index,
            kind: CAPTURE,
            memory: BY_DMA_BUF,
            fd: fds[index as usize % 2] as u64,
            length: size as u32,
            ..Default::default()
        };
        ioctl(&node, "VIDIOC_QBUF", QUEUE, &mut buffer)?;
    }
    ioctl(&node, "VIDIOC_STREAMON", START, &mut { CAPTURE })?;
    let limit = selftests::time::scaled(Duration::from_secs(20));
    let events = poll_events(node.as_fd(), limit)?;
    ensure!(events.contains(PollFlags::IN), "no picture: {events:?}");
    let mut buffer = Buffer {
        kind: CAPTURE,
        memory: BY_DMA_BUF,
        ..Default::default()
    };
    ioctl(&node, "VIDIOC_DQBUF", DEQUEUE, &mut buffer)?;
    ensure_eq!((buffer.index, buffer.used), (0, format.size));
    ioctl(&node, "VIDIOC_STREAMOFF", STOP, &mut { CAPTURE })?;
    request.count = 0;
    ioctl(&node, "VIDIOC_REQBUFS", REQUEST, &mut request)?;
    drop((file, other_file));
    let nt = made.share()?;
    made.destroy()?;
    in_child(|| bars(&nt, format.pitch))
}

/// The camera shows colour bars: several colours side by side, each many pixels wide.
fn bars(nt: &std::os::fd::OwnedFd, pitch: u32) -> Outcome {
    let opened = OpenNt::new(&fixture::device()?, nt)?.run()?;
    let view = opened.lock()?;
    let row = (HEIGHT / 2 * pitch) as usize;
    let pixel = |x: u32| view.word(row + 4 * x as usize) & 0xff_ffff;
    let mut colours: Vec<u32> = (0..WIDTH).map(pixel).collect();
    let changes = colours.windows(2).filter(|pair| pair[0] != pair[1]).count();
    colours.sort_unstable();
    colours.dedup();
    println!("# {} colours, {changes} changes in a row", colours.len());
    ensure!(colours.len() >= 5, "colours {colours:x?}");
    Ok(())
}
