// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Vulkan driver that did not expect us draws into our memory, and another process sees the
//! picture (RES-87, RES-90).

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use interop::gpu::Gpu;
use interop::imported::{image_features, Buffer, Image};
use interop::painter::{draw, GROUND, TRIANGLE};
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, SyncFlags};
use selftests::call::succeeds;
use selftests::child::{in_child, Child};
use selftests::dma_buf::{accessed, exporter, READ};
use selftests::fds::{receive, send, socket_pair};
use selftests::region::Region;
use selftests::resource::{export, flags, lock, Create, OpenNt, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const WIDTH: u32 = 64;
const HEIGHT: u32 = 48;

/// The key of the layout of an image, in memory order (RES-61).
const IMAGE_LAYOUT: [u8; 16] = [
    0xb7, 0xfd, 0xd4, 0x1a, 0x6c, 0x7c, 0x4f, 0x4b, 0xae, 0x9d, 0xf6, 0xa3, 0x9a, 0xb9, 0x32, 0xdd,
];

fn main() {
    // The driver compiles shaders, on an emulated processor.
    let limit = Duration::from_secs(120);
    Suite::new("vulkan")
        .slow("RES-87 the driver takes dma-bufs", limit, || apart(offered))
        .slow(
            "RES-87 RES-90 a triangle that the driver drew is seen by another process",
            limit,
            drawn,
        )
        .slow(
            "RES-87 the driver fills our memory as a buffer",
            limit,
            || apart(filled),
        )
        .slow(
            "RES-87 the driver reads what another process wrote",
            limit,
            || apart(read),
        )
        .slow(
            "RES-87 memory of the driver is an allocation here",
            limit,
            || apart(driver_memory),
        )
        .run()
}

/// In a process of its own: the driver leaves threads and files behind.
fn apart(body: fn() -> TestResult) -> TestResult {
    in_child(body)
}

fn offered() -> TestResult {
    let gpu = Gpu::open()?;
    println!("# {}", gpu.name());
    let features = image_features(&gpu)?;
    println!("# linear images in dma-bufs: {features:?}");
    ensure!(
        features.contains(ash::vk::ExternalMemoryFeatureFlags::IMPORTABLE),
        "{features:?}"
    );
    Ok(())
}

/// What the painter tells the viewer beside the pixels.
#[derive(Clone, Copy)]
struct Layout {
    offset: u32,
    pitch: u32,
}

impl Layout {
    fn to_bytes(self) -> [u8; 16] {
        let numbers = [self.offset, self.pitch, WIDTH, HEIGHT];
        let mut bytes = [0; 16];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; 16]) -> TestResult<Self> {
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        ensure_eq!((number(8), number(12)), (WIDTH, HEIGHT));
        Ok(Self {
            offset: number(0),
            pitch: number(4),
        })
    }
}

/// Two processes that know each other only by a socket: one draws, one looks.
fn drawn() -> TestResult {
    let (here, there) = socket_pair()?;
    let painter = Child::spawn(|| paint(&there))?;
    let viewer = Child::spawn(|| view(&here))?;
    drop((here, there));
    painter.join()?;
    viewer.join()
}

fn paint(socket: &OwnedFd) -> TestResult {
    let gpu = Gpu::open()?;
    let mut image = Image::new(&gpu, WIDTH, HEIGHT)?;
    let (offset, pitch) = image.layout();
    let size = image.size().next_multiple_of(PAGE_SIZE);

    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[size]).run()?;
    describe(
        made.resource,
        Layout {
            offset: offset as u32,
            pitch: pitch as u32,
        },
    )?;
    let done = device.create_shareable_fence(0)?;
    send(socket, made.share()?)?;
    send(socket, done.share(Access::ALL)?)?;

    image.import(export(made.raw(), made.first(), 0)?, size)?;
    draw(&gpu, &image, WIDTH, HEIGHT)?;
    // The allocation has to live until the viewer has opened it; the NT handle in the socket does
    // that.
    drop(image);
    made.destroy()?;
    done.signal(1)?;
    Ok(())
}

/// Attaches the layout to the resource.
fn describe(resource: u32, layout: Layout) -> TestResult {
    let bytes = layout.to_bytes();
    let item = opendxg_info_item {
        key: IMAGE_LAYOUT,
        schema: 1,
        data: bytes.as_ptr() as u64,
        size: bytes.len() as u32,
        ..Default::default()
    };
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type) = (u64::from(resource), OPENDXG_HANDLE_LOCAL);
    (arg.items, arg.item_count) = ((&raw const item) as u64, 1);
    succeeds(&fixture::raw()?, &mut arg)
}

fn description(nt: &OwnedFd) -> TestResult<Layout> {
    let mut bytes = [0u8; 16];
    let mut arg = opendxg_get_info::zeroed();
    (arg.handle, arg.handle_type) = (nt.as_raw_fd() as u64, OPENDXG_HANDLE_NT);
    (arg.key, arg.max_schema) = (IMAGE_LAYOUT, 1);
    (arg.data, arg.size) = (bytes.as_mut_ptr() as u64, 16);
    succeeds(&fixture::raw()?, &mut arg)?;
    ensure_eq!((arg.size, arg.schema), (16, 1));
    Layout::from_bytes(bytes)
}

fn view(socket: &OwnedFd) -> TestResult {
    let (nt, fence) = (receive(socket)?, receive(socket)?);
    let device = fixture::device()?;
    let done = device.open_fence(&fence, SyncFlags::empty())?;
    done.wait(1)?;
    let layout = description(&nt)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let pixels = opened.lock()?;
    let at = |x: u32, y: u32| -> [u8; 4] {
        let start = (layout.offset + y * layout.pitch + x * 4) as usize;
        [0, 1, 2, 3].map(|byte| pixels.get(start + byte))
    };
    // In the middle of the triangle, and in all corners.
    for (x, y) in [(32, 24), (32, 12), (20, 40), (44, 40)] {
        let colour = at(x, y);
        let is_close = colour
            .iter()
            .zip(TRIANGLE)
            .all(|(&got, wanted)| got.abs_diff(wanted) <= 1);
        ensure!(
            is_close,
            "({x}, {y}) is {colour:?}, not the triangle's {TRIANGLE:?}"
        );
    }
    for (x, y) in [
        (0, 0),
        (WIDTH - 1, 0),
        (0, HEIGHT - 1),
        (WIDTH - 1, HEIGHT - 1),
        (4, 4),
        (59, 10),
    ] {
        ensure_eq!(at(x, y), GROUND, "({x}, {y})");
    }
    let inside = (0..HEIGHT).map(|y| (0..WIDTH).filter(|&x| at(x, y) != GROUND).count());
    println!(
        "# {} of {} pixels are the triangle's",
        inside.sum::<usize>(),
        WIDTH * HEIGHT
    );
    Ok(())
}

const SIZE: u64 = 16 * PAGE_SIZE;

fn filled() -> TestResult {
    let gpu = Gpu::open()?;
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[SIZE]).run()?;
    let buffer = Buffer::import(&gpu, export(made.raw(), made.first(), 0)?, SIZE)?;
    let memory = made.lock()?;
    memory.fill(1);
    for word in [0x1234_5678, 0xdead_beef] {
        buffer.fill(word)?;
        let wrong = (0..SIZE as usize)
            .step_by(4)
            .find(|&at| memory.word(at) != word);
        ensure_eq!(wrong, None, "{word:#x}");
    }
    Ok(())
}

fn read() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[SIZE]).run()?;
    let target = Create::sized(&device, flags::RESOURCE, &[SIZE]).run()?;
    let nt = made.share()?;
    in_child(|| {
        let device = fixture::device()?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        opened.lock()?.fill(3);
        opened.destroy()
    })?;
    let gpu = Gpu::open()?;
    let from = Buffer::import(&gpu, export(made.raw(), made.first(), 0)?, SIZE)?;
    let to = Buffer::import(&gpu, export(target.raw(), target.first(), 0)?, SIZE)?;
    from.copy_to(&to)?;
    target.lock()?.holds(3)
}

fn driver_memory() -> TestResult {
    let gpu = Gpu::open()?;
    let buffer = Buffer::new(&gpu, SIZE)?;
    let file = buffer.export()?;
    println!("# the driver's memory is exported by {}", exporter(&file)?);
    let device = fixture::device()?;
    let made = Create::section(&device, flags::NT, file.as_raw_fd() as u64, SIZE).run()?;
    buffer.fill(0x5555_aaaa)?;
    let word = accessed(&file, READ, || Ok(made.lock()?.word(0x3000)))?;
    ensure_eq!(word, 0x5555_aaaa);
    // Another process writes through an opening, and the driver's own mapping shows it.
    let nt = made.share()?;
    in_child(|| {
        let device = fixture::device()?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        let view = lock(opened.raw(), opened.device, opened.first(), SIZE as usize)?;
        view.fill(7);
        Ok(())
    })?;
    Region::of_file(&file, SIZE as usize)?.holds(7)?;
    made.destroy()
}
