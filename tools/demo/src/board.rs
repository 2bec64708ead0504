// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that the two programs share, and how a frame is drawn and checked.
//! `c/board.h` is the same thing in C.

use core::mem::size_of;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::ops::Deref;
use std::os::fd::AsFd;

use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use rustix::time::{clock_gettime, ClockId};

/// Frames handed over in each way, half of them by each program.
pub const FRAMES_PER_WAY: u64 = 1000;
/// How many ways of waiting are shown.
pub const WAYS: u64 = 4;
const PIXELS: u64 = 512;

/// What a program draws. The fence value that announces it is its number: 1, 2, 3 …
#[repr(C)]
struct Frame {
    number: AtomicU64,
    /// CLOCK_MONOTONIC, read just before the signal.
    sent_ns: AtomicU64,
    checksum: AtomicU64,
    pixels: [AtomicU64; PIXELS as usize],
}

/// The shared memory. Nothing here is locked: whose turn it is, is what the fence says. All
/// accesses are relaxed, so that only the fence keeps them in order.
#[repr(C)]
pub struct Board {
    frame: Frame,
    /// Written by the receiver of each frame.
    latency_ns: [AtomicU64; (WAYS * FRAMES_PER_WAY) as usize],
}

const _: () = assert!(size_of::<Frame>() == 4120);
const _: () = assert!(size_of::<Board>() == 36120);

impl Board {
    /// Draws frame `number`.
    pub fn draw(&self, number: u64) {
        let frame = &self.frame;
        frame.number.store(number, Relaxed);
        let mut checksum = number;
        for (index, shown) in frame.pixels.iter().enumerate() {
            let value = pixel(number, index as u64);
            shown.store(value, Relaxed);
            checksum = add_to_checksum(checksum, value);
        }
        frame.checksum.store(checksum, Relaxed);
        frame.sent_ns.store(now_ns(), Relaxed);
    }

    /// Checks that this is frame `number`, complete and undamaged, and notes how long it took.
    pub fn check(&self, number: u64) -> Result<(), String> {
        let arrived = now_ns();
        let frame = &self.frame;
        let found = frame.number.load(Relaxed);
        if found != number {
            return Err(format!(
                "frame {number} was due, but frame {found} is there"
            ));
        }
        let mut checksum = number;
        for (index, shown) in frame.pixels.iter().enumerate() {
            let value = shown.load(Relaxed);
            if value != pixel(number, index as u64) {
                return Err(format!("pixel {index} of frame {number} is wrong"));
            }
            checksum = add_to_checksum(checksum, value);
        }
        if frame.checksum.load(Relaxed) != checksum {
            return Err(format!("checksum of frame {number} is wrong"));
        }
        let latency = arrived.saturating_sub(frame.sent_ns.load(Relaxed));
        self.latency_ns[number as usize - 1].store(latency, Relaxed);
        Ok(())
    }

    /// How long each frame of a way took from the signal to the other program, sorted.
    pub fn latencies(&self, way: u64) -> Vec<u64> {
        let frames = (way * FRAMES_PER_WAY) as usize..((way + 1) * FRAMES_PER_WAY) as usize;
        let latencies = self.latency_ns[frames].iter();
        let mut sorted: Vec<u64> = latencies.map(|ns| ns.load(Relaxed)).collect();
        sorted.sort_unstable();
        sorted
    }
}

/// A board mapped into this process.
pub struct MappedBoard(NonNull<Board>);

impl MappedBoard {
    /// Maps the memory behind a descriptor.
    pub fn map(fd: impl AsFd) -> Result<Self, String> {
        let size = rustix::fs::fstat(&fd).map_err(|error| error.to_string())?;
        if size.st_size != size_of::<Board>() as i64 {
            return Err(format!("the shared memory has {} bytes", size.st_size));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let length = size_of::<Board>();
        // SAFETY: a new mapping at an address chosen by the kernel.
        let address = unsafe { mmap(null_mut(), length, protection, MapFlags::SHARED, fd, 0) };
        let address = address.map_err(|error| format!("no shared memory: {error}"))?;
        NonNull::new(address.cast())
            .map(Self)
            .ok_or_else(|| "mapped at 0".into())
    }
}

impl Deref for MappedBoard {
    type Target = Board;

    fn deref(&self) -> &Board {
        // SAFETY: mapped until drop, large enough, page aligned; atomics may change under a
        // reference.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for MappedBoard {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which no reference is left. A failure would leave it mapped.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<Board>()) };
    }
}

/// CLOCK_MONOTONIC, which is the same in both programs.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The picture: a different value for every pixel of every frame.
fn pixel(number: u64, index: u64) -> u64 {
    let mut x = number * PIXELS + index;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn add_to_checksum(checksum: u64, value: u64) -> u64 {
    (checksum ^ value).wrapping_mul(0x100_0000_01b3)
}
