// SPDX-License-Identifier: MIT OR Apache-2.0
//! The competitor virtio-gpu (drm/virtgpu_drm.h), as far as it goes without a renderer on the host.
//!
//! Its EXECBUFFER is refused then, and its transfers have no fence. What is left is the command
//! that makes a resource: it goes to the device with a fence, which can be waited for.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Result;

use crate::ioctl::{ioctl, iow, iowr};

#[repr(C)]
#[derive(Default)]
struct Version {
    major: i32,
    minor: i32,
    patch: i32,
    pad: u32,
    name_len: u64,
    name: u64,
    date_len: u64,
    date: u64,
    desc_len: u64,
    desc: u64,
}

#[repr(C)]
#[derive(Default)]
struct CreateResource {
    target: u32,
    format: u32,
    bind: u32,
    width: u32,
    height: u32,
    depth: u32,
    array_size: u32,
    last_level: u32,
    nr_samples: u32,
    flags: u32,
    bo_handle: u32,
    res_handle: u32,
    size: u32,
    stride: u32,
}

#[repr(C)]
struct Wait {
    handle: u32,
    flags: u32,
}

#[repr(C)]
struct GemClose {
    handle: u32,
    pad: u32,
}

const VERSION: u32 = iowr::<Version>(b'd', 0x00);
const GEM_CLOSE: u32 = iow::<GemClose>(b'd', 0x09);
const RESOURCE_CREATE: u32 = iowr::<CreateResource>(b'd', 0x44);
const WAIT: u32 = iowr::<Wait>(b'd', 0x48);

/// A resource of two dimensions.
const TEXTURE_2D: u32 = 2;
/// Four bytes in a pixel.
const B8G8R8A8: u32 = 1;

/// A device of virtio-gpu.
#[derive(Debug)]
pub struct VirtGpu(OwnedFd);

impl VirtGpu {
    /// The first one that makes resources.
    pub fn find() -> Option<Self> {
        let entries = std::fs::read_dir("/dev/dri").ok()?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.reverse(); // Render nodes first.
        paths.into_iter().find_map(|path| {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let device = Self(rustix::fs::open(&path, flags, Mode::empty()).ok()?);
            device.is_virtio().then_some(())?;
            // It must be possible to make one and to wait for it.
            device.make().and_then(|job| job.wait()).ok()?;
            Some(device)
        })
    }

    /// Whether that is the driver's name.
    fn is_virtio(&self) -> bool {
        let mut name = [0_u8; 16];
        let mut args = Version {
            name_len: name.len() as u64,
            name: (&raw mut name) as u64,
            ..Version::default()
        };
        // SAFETY: the argument of this code; the only address holds as many bytes as it says.
        let told = unsafe { ioctl(&self.0, VERSION, &mut args) };
        told.is_ok() && name.starts_with(b"virtio_gpu\0")
    }

    /// Has the device make a resource of one page: a command with a fence.
    pub fn make(&self) -> Result<Job<'_>> {
        let mut args = CreateResource {
            target: TEXTURE_2D,
            format: B8G8R8A8,
            width: 32,
            height: 32,
            depth: 1,
            array_size: 1,
            size: 4096,
            ..CreateResource::default()
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.0, RESOURCE_CREATE, &mut args) }?;
        Ok(Job {
            device: self,
            handle: args.bo_handle,
        })
    }
}

/// A resource that the device has been told to make.
#[derive(Debug)]
pub struct Job<'a> {
    device: &'a VirtGpu,
    handle: u32,
}

impl Job<'_> {
    /// Waits until it is done.
    pub fn wait(&self) -> Result<()> {
        let mut args = Wait {
            handle: self.handle,
            flags: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        unsafe { ioctl(&self.device.0, WAIT, &mut args) }?;
        Ok(())
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut args = GemClose {
            handle: self.handle,
            pad: 0,
        };
        // SAFETY: the argument of this code, without addresses.
        let closed = unsafe { ioctl(&self.device.0, GEM_CLOSE, &mut args) };
        assert!(closed.is_ok(), "close a resource of virtio-gpu: {closed:?}");
    }
}
