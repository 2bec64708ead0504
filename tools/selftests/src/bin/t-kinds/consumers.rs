// SPDX-License-Identifier: MIT OR Apache-2.0
//! A picture from one process to another, in every way that one of the graphics interfaces needs
//! (RES-90): the form of the handle, the descriptions attached to it, and who may touch it when.

mod handle;
mod maker;
mod user;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use selftests::call::succeeds;
use selftests::child::Child;
use selftests::fds::socket_pair;
use selftests::region::Region;
use selftests::resource::PAGE_SIZE;
use selftests::{Suite, TestResult};

/// How the other process gets the picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Global,
    Nt,
    /// One NT handle of resource, mutex and fence.
    Triple,
    Name,
    DmaBuf,
}

/// What says whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    KeyedMutex,
    Fence,
    /// The implicit fences of a dma-buf: there are none.
    SyncFile,
}

/// A GUID in the order of memory.
const fn guid(a: u32, b: u16, c: u16, d: [u8; 8]) -> [u8; 16] {
    let (a, b, c) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
    [
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ]
}

const LAYOUT: [u8; 16] = guid(
    0x1ad4_fdb7,
    0x7c6c,
    0x4b4f,
    [0xae, 0x9d, 0xf6, 0xa3, 0x9a, 0xb9, 0x32, 0xdd],
);
const DIRECT3D: [u8; 16] = guid(
    0x98fb_6f47,
    0x3e6a,
    0x46bd,
    [0xbb, 0x3f, 0x2e, 0x18, 0x90, 0xbb, 0x94, 0x8c],
);
const VULKAN: [u8; 16] = guid(
    0x15cc_3245,
    0x8dcd,
    0x4c21,
    [0x80, 0x37, 0x4c, 0x0d, 0xef, 0xd1, 0xcf, 0x3c],
);
const OPENGL: [u8; 16] = guid(
    0xa04c_6e50,
    0x5c2c,
    0x429b,
    [0x9d, 0x7b, 0x32, 0x46, 0xc8, 0xb3, 0x35, 0x17],
);
const OPENCL: [u8; 16] = guid(
    0xb795_3b58,
    0x9e7d,
    0x49b4,
    [0xb0, 0xea, 0x14, 0x9e, 0x70, 0xdc, 0x5b, 0xc6],
);

/// A line of the table.
#[derive(Clone, Copy)]
struct Line {
    consumer: &'static str,
    form: Form,
    keys: &'static [[u8; 16]],
    /// Bytes of runtime data.
    blob: usize,
    turn: Turn,
}

impl Line {
    /// The runtime data.
    fn runtime(&self) -> Vec<u8> {
        (0..self.blob).map(|at| at as u8).collect()
    }
}

const fn line(
    consumer: &'static str,
    form: Form,
    keys: &'static [[u8; 16]],
    blob: usize,
    turn: Turn,
) -> Line {
    Line {
        consumer,
        form,
        keys,
        blob,
        turn,
    }
}

const LINES: [Line; 14] = [
    line(
        "D3D9Ex, D3D10, D3D11 shared",
        Form::Global,
        &[],
        0x58,
        Turn::KeyedMutex,
    ),
    line(
        "D3D11 NT handle with keyed mutex",
        Form::Triple,
        &[DIRECT3D],
        0x68,
        Turn::KeyedMutex,
    ),
    line(
        "D3D12 heaps by NT handle",
        Form::Nt,
        &[],
        0x108,
        Turn::Fence,
    ),
    line("D3D12 heaps by name", Form::Name, &[], 0x108, Turn::Fence),
    line(
        "OpenGL by NT handle with a keyed mutex",
        Form::Triple,
        &[OPENGL, LAYOUT],
        0,
        Turn::KeyedMutex,
    ),
    line(
        "OpenGL by NT handle with a fence",
        Form::Nt,
        &[OPENGL, LAYOUT],
        0,
        Turn::Fence,
    ),
    line(
        "OpenGL by dma-buf",
        Form::DmaBuf,
        &[OPENGL, LAYOUT],
        0,
        Turn::Fence,
    ),
    line(
        "Vulkan by dma-buf",
        Form::DmaBuf,
        &[VULKAN, LAYOUT],
        0,
        Turn::Fence,
    ),
    line(
        "Vulkan by NT handle",
        Form::Nt,
        &[VULKAN, LAYOUT],
        0,
        Turn::Fence,
    ),
    line(
        "Vulkan by global handle",
        Form::Global,
        &[VULKAN, LAYOUT],
        0x58,
        Turn::KeyedMutex,
    ),
    line(
        "OpenCL by NT handle with a keyed mutex",
        Form::Triple,
        &[OPENCL],
        0,
        Turn::KeyedMutex,
    ),
    line(
        "OpenCL by NT handle with a fence",
        Form::Nt,
        &[OPENCL],
        0,
        Turn::Fence,
    ),
    line("OpenCL by dma-buf", Form::DmaBuf, &[OPENCL], 0, Turn::Fence),
    line(
        "V4L2, Wayland, PipeWire",
        Form::DmaBuf,
        &[LAYOUT],
        0,
        Turn::SyncFile,
    ),
];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    LINES.into_iter().fold(suite, |suite, line| {
        suite.test(format!("RES-90 {}", line.consumer), move || {
            handed_over(line)
        })
    })
}

const SIZE: u64 = 4 * PAGE_SIZE;
/// Turns of the keyed mutex and values of the fence: the second process, then the first one again.
const THERE: u64 = 1;
const BACK: u64 = 2;

/// Numbers that travel without a descriptor.
struct Told(Region);

impl Told {
    const RESOURCE: usize = 0;
    const MUTEX: usize = 4;
}

fn handed_over(line: Line) -> TestResult {
    let (here, there) = socket_pair()?;
    let told = Told(Region::shared(PAGE_SIZE as usize)?);
    let first = Child::spawn(|| maker::run(line, &there, &told))?;
    let second = Child::spawn(|| user::run(line, &here, &told))?;
    drop((here, there));
    // The one that fails first explains the other.
    let outcome = second.join();
    first.join().and(outcome)
}

/// What is stored under a key.
fn description(key: &[u8; 16]) -> Vec<u8> {
    [&key[..], b" describes the picture"].concat()
}

fn acquire(raw: &Raw, mutex: u32, key: u64) -> TestResult {
    let timeout = -10_000_000 * selftests::time::soon().as_secs() as i64;
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
    (arg.hKeyedMutex, arg.Key, arg.pTimeout) = (mutex, key, (&raw const timeout) as u64);
    succeeds(raw, &mut arg)
}

fn release(raw: &Raw, mutex: u32, key: u64) -> TestResult {
    let mut arg = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
    (arg.hKeyedMutex, arg.Key) = (mutex, key);
    succeeds(raw, &mut arg)
}
