// SPDX-License-Identifier: MIT OR Apache-2.0
//! A picture from one process to another, in every way that one of the graphics interfaces needs (RES-90): the form
//! of the handle, the descriptions attached to it, and who may touch it when.

use std::os::fd::{FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, Device, MonitoredFence, SyncFlags};
use selftests::call::succeeds;
use selftests::child::Child;
use selftests::dma_buf::{accessed, export_sync_file, is_signalled, READ, WRITE};
use selftests::fds::{receive, send, socket_pair};
use selftests::region::Region;
use selftests::resource::{
    destruction, export, flags, share, Bundle, Create, Locked, OpenGlobal, OpenNt, ALL_ACCESS,
    PAGE_SIZE,
};
use selftests::{ensure, ensure_eq, fixture, Outcome, Suite};

use crate::object::{get, set, slot, Name};

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
    /// The implicit fences of a dma-buf, which are none.
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

fn handed_over(line: Line) -> Outcome {
    let (here, there) = socket_pair()?;
    let told = Told(Region::shared(PAGE_SIZE as usize)?);
    let first = Child::spawn(|| maker(line, &there, &told))?;
    let second = Child::spawn(|| user(line, &here, &told))?;
    drop((here, there));
    // The one that fails first explains the other.
    let outcome = second.join();
    first.join().and(outcome)
}

/// What the first process keeps until the second one is done.
struct Made {
    bundle: Bundle,
    mutex: u32,
    fence: Option<MonitoredFence>,
}

fn make(line: Line, device: &Device, raw: &Raw) -> Outcome<Made> {
    let bits = if line.form == Form::Global {
        flags::GLOBAL
    } else {
        flags::NT
    };
    let blob: Vec<u8> = (0..line.blob).map(|at| at as u8).collect();
    let bundle = Create::sized(device, bits, &[SIZE])
        .with_runtime(&blob)
        .run()?;
    for key in line.keys {
        let text = [&key[..], b" describes the picture"].concat();
        set(
            raw,
            u64::from(bundle.resource),
            OPENDXG_HANDLE_LOCAL,
            *key,
            &text,
        )?;
    }
    let fence = match (line.form, line.turn) {
        (Form::Triple, _) | (_, Turn::Fence) => Some(device.create_shareable_fence(0)?),
        _ => None,
    };
    Ok(Made {
        bundle,
        mutex: 0,
        fence,
    })
}

fn maker(line: Line, socket: &OwnedFd, told: &Told) -> Outcome {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let mut made = make(line, &device, &raw)?;
    if line.turn == Turn::KeyedMutex {
        let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
        if line.form == Form::Triple {
            arg.Flags = D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
        }
        succeeds(&raw, &mut arg)?;
        made.mutex = arg.hKeyedMutex;
        told.0.set_word(Told::MUTEX, arg.hSharedHandle);
    }
    let resource = made.bundle.resource;
    told.0.set_word(Told::RESOURCE, made.bundle.global);
    if made.mutex != 0 {
        acquire(&raw, made.mutex, 0)?;
    }
    made.bundle.lock()?.fill(1);

    // The NT handle carries the descriptions also where the memory goes another way.
    let name = Name::new("a-picture");
    let nt = match line.form {
        Form::Global => None,
        Form::Triple => {
            let fence = made.fence.as_ref().ok_or("no fence")?.handle().0;
            Some(share(&raw, &[resource, made.mutex, fence], ALL_ACCESS)?)
        }
        Form::Name => Some(share_named(&raw, resource, &name)?),
        Form::Nt | Form::DmaBuf => Some(made.bundle.share()?),
    };
    match &nt {
        Some(nt) if line.form != Form::Name => send(socket, nt)?,
        // Something to wait for: the numbers and the name are there now.
        _ => send(socket, selftests::fds::memfd()?)?,
    }
    if line.form == Form::DmaBuf {
        send(socket, export(&raw, made.bundle.first(), 0)?)?;
    }
    if let (Some(fence), Turn::Fence) = (&made.fence, line.turn) {
        send(socket, fence.share(Access::ALL)?)?;
        fence.signal(THERE)?;
        fence.wait(BACK)?;
    } else if line.turn == Turn::KeyedMutex {
        release(&raw, made.mutex, THERE)?;
        acquire(&raw, made.mutex, BACK)?;
    } else {
        // Explicitly: the other side says so.
        drop(receive(socket)?);
    }
    made.bundle.lock()?.holds(2)?;
    if made.mutex != 0 {
        release(&raw, made.mutex, 0)?;
        succeeds(
            &raw,
            &mut D3DKMT_DESTROYKEYEDMUTEX {
                hKeyedMutex: made.mutex,
            },
        )?;
    }
    Ok(())
}

fn share_named(raw: &Raw, resource: u32, name: &Name) -> Outcome<OwnedFd> {
    let (set, mut out) = ([resource], u64::MAX);
    let mut arg = D3DKMT_SHAREOBJECTS::zeroed();
    (arg.ObjectCount, arg.DesiredAccess) = (1, ALL_ACCESS);
    arg.ObjectHandleArray = set.as_ptr() as u64;
    arg.pObjectAttributes = name.address();
    arg.pSharedNtHandle = (&raw mut out) as u64;
    succeeds(raw, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(out as i32) })
}

fn acquire(raw: &Raw, mutex: u32, key: u64) -> Outcome {
    let timeout = -10_000_000 * selftests::time::soon().as_secs() as i64;
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
    (arg.hKeyedMutex, arg.Key, arg.pTimeout) = (mutex, key, (&raw const timeout) as u64);
    succeeds(raw, &mut arg)
}

fn release(raw: &Raw, mutex: u32, key: u64) -> Outcome {
    let mut arg = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
    (arg.hKeyedMutex, arg.Key) = (mutex, key);
    succeeds(raw, &mut arg)
}

/// The descriptions, through a handle of any type.
fn described(line: Line, raw: &Raw, handle: u64, handle_type: u32) -> Outcome {
    for key in line.keys {
        let text = [&key[..], b" describes the picture"].concat();
        ensure_eq!(get(raw, handle, handle_type, *key)?, Ok(text));
    }
    Ok(())
}

/// The picture in the second process.
enum Picture {
    Mapped(Locked),
    DmaBuf(OwnedFd, Region),
}

impl Picture {
    /// The first process's bytes are there; ours take their place.
    fn answer(&self) -> Outcome {
        match self {
            Self::Mapped(memory) => {
                memory.holds(1)?;
                memory.fill(2);
            }
            Self::DmaBuf(file, memory) => accessed(file, READ | WRITE, || {
                memory.holds(1)?;
                memory.fill(2);
                Ok(())
            })?,
        }
        Ok(())
    }
}

fn user(line: Line, socket: &OwnedFd, told: &Told) -> Outcome {
    let first = receive(socket)?;
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let (mut mutex, mut fence) = (0, 0);
    let mut opened = None;
    let blob: Vec<u8> = (0..line.blob).map(|at| at as u8).collect();
    match line.form {
        Form::Global => {
            let mut open = OpenGlobal::new(&device, told.0.word(Told::RESOURCE))?;
            let bundle = open.run()?;
            ensure_eq!(open.buffers.runtime, blob);
            described(line, &raw, u64::from(bundle.resource), OPENDXG_HANDLE_LOCAL)?;
            let mut arg = D3DKMT_OPENKEYEDMUTEX::zeroed();
            arg.hSharedHandle = told.0.word(Told::MUTEX);
            succeeds(&raw, &mut arg)?;
            (mutex, opened) = (arg.hKeyedMutex, Some(bundle));
        }
        Form::Nt | Form::Triple | Form::Name => {
            let nt = match line.form {
                Form::Name => Name::new("A-PICTURE").open(&raw, true)?,
                _ => first,
            };
            described(line, &raw, slot(&nt), OPENDXG_HANDLE_NT)?;
            let mut open = OpenNt::new(&device, &nt)?;
            opened = Some(open.run()?);
            ensure_eq!(open.buffers.runtime, blob);
            (mutex, fence) = (open.arg.hKeyedMutex, open.arg.hSyncObject);
            ensure_eq!(mutex != 0 && fence != 0, line.form == Form::Triple);
        }
        Form::DmaBuf => described(line, &raw, slot(&first), OPENDXG_HANDLE_NT)?,
    }
    let picture = match &opened {
        Some(bundle) => Picture::Mapped(bundle.lock()?),
        None => {
            let file = receive(socket)?;
            let memory = Region::of_file(&file, SIZE as usize)?;
            Picture::DmaBuf(file, memory)
        }
    };
    match line.turn {
        Turn::KeyedMutex => {
            acquire(&raw, mutex, THERE)?;
            picture.answer()?;
            release(&raw, mutex, BACK)?;
        }
        Turn::Fence => {
            let fence = device.open_fence(receive(socket)?, SyncFlags::empty())?;
            fence.wait(THERE)?;
            picture.answer()?;
            fence.signal(BACK)?;
        }
        Turn::SyncFile => {
            let Picture::DmaBuf(file, _) = &picture else {
                return Err("not a dma-buf".into());
            };
            ensure!(is_signalled(export_sync_file(file, READ | WRITE)?)?);
            picture.answer()?;
            send(socket, selftests::fds::memfd()?)?;
        }
    }
    if mutex != 0 {
        succeeds(&raw, &mut D3DKMT_DESTROYKEYEDMUTEX { hKeyedMutex: mutex })?;
    }
    if fence != 0 {
        succeeds(
            &raw,
            &mut D3DKMT_DESTROYSYNCHRONIZATIONOBJECT { hSyncObject: fence },
        )?;
    }
    drop(picture);
    if let Some(bundle) = opened {
        let (resource, _) = bundle.leak();
        succeeds(&raw, &mut destruction(device.handle().0, resource, &[], 0))?;
    }
    Ok(())
}
