// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's test camera (vivid), which captures pictures into dma-bufs of others. It reaches
//! them by a mapping in the kernel.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::fds::poll_events;
use crate::{ensure, skip, TestResult};

/// Pixels in a row.
pub const WIDTH: u32 = 320;
/// Rows.
pub const HEIGHT: u32 = 180;

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

fn ioctl<T>(node: &File, code: u64, arg: &mut T) -> rustix::io::Result<()> {
    // SAFETY: each caller names the code of its struct.
    if unsafe { libc::ioctl(node.as_raw_fd(), code, &raw mut *arg) } < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(())
}

/// A camera that takes pictures of [`WIDTH`] and [`HEIGHT`].
pub struct Camera {
    node: File,
    /// Bytes from row to row.
    pub pitch: u32,
    /// Bytes of a picture.
    pub size: u32,
}

impl Camera {
    /// The first camera; skips the test if there is none.
    pub fn open() -> TestResult<Self> {
        const SET_FORMAT: u64 = 0xc0d0_5605;
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
            if ioctl(&node, SET_FORMAT, &mut format).is_ok() {
                ensure!(
                    (format.width, format.height, format.pixel_format) == (WIDTH, HEIGHT, FORMAT),
                    "the camera takes other pictures"
                );
                return Ok(Self {
                    node,
                    pitch: format.pitch,
                    size: format.size,
                });
            }
        }
        skip!("no camera: load it with --modules vivid")
    }

    /// Makes room for this many buffers, which others bring. 0 gives those back that are there.
    pub fn request(&self, count: u32) -> TestResult {
        const REQUEST: u64 = 0xc014_5608;
        let mut request = Request {
            count,
            kind: CAPTURE,
            memory: BY_DMA_BUF,
            rest: [0; 2],
        };
        ioctl(&self.node, REQUEST, &mut request)?;
        ensure!(request.count == count, "room for {} buffers", request.count);
        Ok(())
    }

    /// Brings a buffer.
    pub fn queue(&self, index: u32, file: impl AsFd, size: u64) -> rustix::io::Result<()> {
        const QUEUE: u64 = 0xc058_560f;
        let mut buffer = Buffer {
            index,
            kind: CAPTURE,
            memory: BY_DMA_BUF,
            fd: file.as_fd().as_raw_fd() as u64,
            length: size as u32,
            ..Default::default()
        };
        ioctl(&self.node, QUEUE, &mut buffer)
    }

    /// Begins to take pictures.
    pub fn start(&self) -> TestResult {
        const START: u64 = 0x4004_5612;
        Ok(ioctl(&self.node, START, &mut { CAPTURE })?)
    }

    /// Ends, with all buffers that are still queued.
    pub fn stop(&self) -> TestResult {
        const STOP: u64 = 0x4004_5613;
        Ok(ioctl(&self.node, STOP, &mut { CAPTURE })?)
    }

    /// Waits for a picture; which buffer it is in.
    pub fn picture(&self) -> TestResult<u32> {
        const DEQUEUE: u64 = 0xc058_5611;
        let limit = crate::time::scaled(Duration::from_secs(20));
        let events = poll_events(self.node.as_fd(), limit)?;
        ensure!(events.contains(PollFlags::IN), "no picture: {events:?}");
        let mut buffer = Buffer {
            kind: CAPTURE,
            memory: BY_DMA_BUF,
            ..Default::default()
        };
        ioctl(&self.node, DEQUEUE, &mut buffer)?;
        ensure!(buffer.used == self.size, "{} bytes", buffer.used);
        Ok(buffer.index)
    }

    /// How many colours the middle row of a picture has. The camera shows colour bars: several
    /// colours side by side.
    pub fn colours(&self, picture: &crate::region::Region) -> usize {
        let row = (HEIGHT / 2 * self.pitch) as usize;
        let pixel = |x: u32| picture.word(row + 4 * x as usize) & 0xff_ffff;
        let mut colours: Vec<u32> = (0..WIDTH).map(pixel).collect();
        colours.sort_unstable();
        colours.dedup();
        colours.len()
    }
}
