// SPDX-License-Identifier: MIT OR Apache-2.0
//! dma-bufs: what every one can do, from any exporter, and the kernel's own exporters: udmabuf,
//! heaps, drivers of cards.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags, SeekFrom};
use rustix::io::Errno;

use crate::fds::poll_events;
use crate::{ensure, skip, TestResult};

/// Access that is announced by DMA_BUF_IOCTL_SYNC.
pub const READ: u64 = 1;
/// Access that is announced by DMA_BUF_IOCTL_SYNC.
pub const WRITE: u64 = 2;

const SYNC: u64 = 0x4008_6200;
const SYNC_END: u64 = 4;
const EXPORT_SYNC_FILE: u64 = 0xc008_6202;
const IMPORT_SYNC_FILE: u64 = 0x4008_6203;

/// Issues an ioctl with an argument struct.
fn ioctl<T>(fd: impl AsFd, code: u64, arg: &mut T) -> rustix::io::Result<i32> {
    // SAFETY: each caller names the code of its struct.
    let answer = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), code, &raw mut *arg) };
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(answer)
}

/// Runs `body` between the announcements of an access of the processor.
pub fn accessed<T>(
    fd: impl AsFd,
    access: u64,
    body: impl FnOnce() -> TestResult<T>,
) -> TestResult<T> {
    ioctl(&fd, SYNC, &mut access.clone())?;
    let result = body()?;
    ioctl(&fd, SYNC, &mut (access | SYNC_END))?;
    Ok(result)
}

/// The announcement itself, for flags that may be wrong.
pub fn sync(fd: impl AsFd, flags: u64) -> rustix::io::Result<i32> {
    ioctl(fd, SYNC, &mut flags.clone())
}

#[repr(C)]
struct SyncFile {
    flags: u32,
    fd: i32,
}

/// The fences of a dma-buf that concern this access, as a sync file.
pub fn export_sync_file(fd: impl AsFd, access: u64) -> rustix::io::Result<OwnedFd> {
    let mut arg = SyncFile {
        flags: access as u32,
        fd: -1,
    };
    ioctl(fd, EXPORT_SYNC_FILE, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
}

/// Adds a sync file to the fences of a dma-buf.
pub fn import_sync_file(fd: impl AsFd, access: u64, file: impl AsFd) -> rustix::io::Result<()> {
    let mut arg = SyncFile {
        flags: access as u32,
        fd: file.as_fd().as_raw_fd(),
    };
    ioctl(fd, IMPORT_SYNC_FILE, &mut arg).map(drop)
}

/// Whether a sync file has signalled.
pub fn is_signalled(file: impl AsFd) -> TestResult<bool> {
    let events = poll_events(file.as_fd(), core::time::Duration::ZERO)?;
    Ok(events.contains(PollFlags::IN))
}

/// The size, as seeking tells it.
pub fn size(fd: impl AsFd) -> rustix::io::Result<u64> {
    let size = rustix::fs::seek(&fd, SeekFrom::End(0))?;
    rustix::fs::seek(fd, SeekFrom::Start(0))?;
    Ok(size)
}

/// A number that tells dma-bufs apart.
pub fn identity(fd: impl AsFd) -> TestResult<u64> {
    Ok(rustix::fs::fstat(fd)?.st_ino)
}

/// Who exports it.
pub fn exporter(fd: impl AsFd) -> TestResult<String> {
    let path = format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd());
    let text = std::fs::read_to_string(path)?;
    let name = text.lines().find_map(|line| line.strip_prefix("exp_name:"));
    Ok(name.ok_or("not a dma-buf")?.trim().into())
}

#[repr(C)]
struct UdmabufCreate {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// A dma-buf of udmabuf, and the memory file behind it.
pub fn udmabuf(size: u64) -> TestResult<(OwnedFd, OwnedFd)> {
    const CREATE: u64 = 0x4018_7542;
    const CLOEXEC: u32 = 1;
    let memory = memfd_create("udmabuf", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, size)?;
    fcntl_add_seals(&memory, SealFlags::SHRINK)?;
    let node = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/udmabuf")?;
    let mut arg = UdmabufCreate {
        memfd: memory.as_raw_fd() as u32,
        flags: CLOEXEC,
        offset: 0,
        size,
    };
    let fd = ioctl(&node, CREATE, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    Ok((unsafe { OwnedFd::from_raw_fd(fd) }, memory))
}

/// A buffer of a heap; skips the test where the kernel does not have it.
pub fn heap(name: &str, size: u64) -> TestResult<OwnedFd> {
    #[repr(C)]
    struct Allocation {
        size: u64,
        fd: u32,
        fd_flags: u32,
        heap_flags: u64,
    }
    const ALLOCATE: u64 = 0xc018_4800;
    let path = format!("/dev/dma_heap/{name}");
    let Ok(node) = File::open(&path) else {
        skip!("no {path}");
    };
    let mut arg = Allocation {
        size,
        fd: 0,
        fd_flags: (libc::O_CLOEXEC | libc::O_RDWR) as u32,
        heap_flags: 0,
    };
    ioctl(&node, ALLOCATE, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(arg.fd as i32) })
}

/// A graphics card: the node of a driver that has buffers.
pub struct Card {
    node: File,
}

/// The kernel's driver of graphics memory without graphics.
pub struct Vgem(Card);

impl std::ops::Deref for Vgem {
    type Target = Card;

    fn deref(&self) -> &Card {
        &self.0
    }
}

#[derive(Default)]
#[repr(C)]
struct Dumb {
    height: u32,
    width: u32,
    bits: u32,
    flags: u32,
    handle: u32,
    pitch: u32,
    size: u64,
}

#[repr(C)]
struct Prime {
    handle: u32,
    flags: u32,
    fd: i32,
}

#[repr(C)]
struct Close {
    handle: u32,
    pad: u32,
}

/// `struct drm_vgem_fence_attach`.
#[derive(Default)]
#[repr(C)]
struct Attach {
    handle: u32,
    flags: u32,
    fence: u32,
    pad: u32,
}

/// `struct drm_version`, of which only the name is asked for.
#[derive(Default)]
#[repr(C)]
struct Version {
    numbers: [i32; 3],
    pad: i32,
    name_length: u64,
    name: u64,
    rest: [u64; 4],
}

impl Card {
    /// The card of this driver, if there is one.
    pub fn of_driver(driver: &str) -> TestResult<Option<Self>> {
        for entry in std::fs::read_dir("/dev/dri").into_iter().flatten() {
            let path = entry?.path();
            let Ok(node) = OpenOptions::new().read(true).write(true).open(path) else {
                continue;
            };
            let mut name = [0u8; 32];
            let mut version = Version {
                name_length: name.len() as u64,
                name: name.as_mut_ptr() as u64,
                ..Default::default()
            };
            const VERSION: u64 = 0xc040_6400;
            let answered = ioctl(&node, VERSION, &mut version).is_ok();
            let length = name.iter().position(|&byte| byte == 0);
            // Render nodes have no buffers of this kind.
            let can = Self { node };
            if answered && &name[..length.unwrap_or(name.len())] == driver.as_bytes() {
                if let Ok(handle) = can.create(1) {
                    can.close(handle)?;
                    return Ok(Some(can));
                }
            }
        }
        Ok(None)
    }

    /// A new buffer of this many pages.
    pub fn create(&self, pages: u32) -> TestResult<u32> {
        const CREATE_DUMB: u64 = 0xc020_64b2;
        let mut arg = Dumb {
            height: pages,
            width: 1024,
            bits: 32,
            ..Default::default()
        };
        ioctl(&self.node, CREATE_DUMB, &mut arg)?;
        ensure!(arg.size == u64::from(pages) * 4096, "{} bytes", arg.size);
        Ok(arg.handle)
    }

    /// A buffer as a dma-buf.
    pub fn export(&self, handle: u32) -> TestResult<OwnedFd> {
        const HANDLE_TO_FD: u64 = 0xc00c_642d;
        let flags = (libc::O_CLOEXEC | libc::O_RDWR) as u32;
        let mut arg = Prime {
            handle,
            flags,
            fd: -1,
        };
        ioctl(&self.node, HANDLE_TO_FD, &mut arg)?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
    }

    /// Attaches to somebody else's dma-buf.
    pub fn import(&self, fd: impl AsFd) -> rustix::io::Result<u32> {
        const FD_TO_HANDLE: u64 = 0xc00c_642e;
        let mut arg = Prime {
            handle: 0,
            flags: 0,
            fd: fd.as_fd().as_raw_fd(),
        };
        ioctl(&self.node, FD_TO_HANDLE, &mut arg)?;
        Ok(arg.handle)
    }

    /// Ends a buffer or an attachment.
    pub fn close(&self, handle: u32) -> TestResult {
        const GEM_CLOSE: u64 = 0x4008_6409;
        ioctl(&self.node, GEM_CLOSE, &mut Close { handle, pad: 0 })?;
        Ok(())
    }
}

impl AsFd for Card {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.node.as_fd()
    }
}

impl Vgem {
    /// Opens its node; skips the test where the driver is not loaded.
    pub fn open() -> TestResult<Self> {
        let Some(card) = Card::of_driver("vgem")? else {
            skip!("no vgem: load it with --modules vgem");
        };
        Ok(Self(card))
    }

    /// Puts a fence into a buffer, as if a device was writing to it. The driver signals it after
    /// ten seconds.
    pub fn fence(&self, handle: u32) -> TestResult<u32> {
        const FENCE_ATTACH: u64 = 0xc010_6441;
        let flags = 1;
        let mut arg = Attach {
            handle,
            flags,
            ..Default::default()
        };
        ioctl(&self.node, FENCE_ATTACH, &mut arg)?;
        Ok(arg.fence)
    }

    /// Signals a fence.
    pub fn signal(&self, fence: u32) -> TestResult {
        const FENCE_SIGNAL: u64 = 0x4008_6442;
        let handle = fence;
        ioctl(&self.node, FENCE_SIGNAL, &mut Close { handle, pad: 0 })?;
        Ok(())
    }
}
