// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured, one module for each group.

mod across;
pub mod addresses;
pub mod balls;
pub mod beside;
pub mod cpu_events;
pub mod crowd;
pub mod doorbells;
pub mod event_loop;
pub mod gpu;
pub mod idle;
pub mod interrupt_forms;
pub mod lifecycle;
pub mod native_fences;
pub mod objects;
pub mod open;
pub mod paging_fences;
pub mod ping_pong;
pub mod population;
pub mod process;
pub mod queued_wait;
pub mod resets;
pub mod residency;
pub mod satisfied;
pub mod signal;
pub mod sync_files;
pub mod waiters;
pub mod wine;
pub mod working_set;

use opendxg::{Device, Dxg};

use crate::dmabuf::Udmabuf;
use crate::ntsync::Ntsync;
use crate::result::Competitor;
use crate::syncobj::Drm;
use crate::virtgpu::VirtGpu;

/// The driver and its competitors.
pub struct Bench {
    /// Our driver.
    pub dxg: Dxg,
    /// A device on its first adapter.
    pub device: Device,
    /// Not everywhere.
    pub ntsync: Option<Ntsync>,
    /// Not everywhere.
    pub drm: Option<Drm>,
    /// Not everywhere.
    pub virtgpu: Option<VirtGpu>,
    /// Not everywhere.
    pub udmabuf: Option<Udmabuf>,
    /// What is missing, in words.
    pub missing: Vec<String>,
    /// Competitors whose version matters.
    pub competitors: Vec<Competitor>,
}

impl Bench {
    /// Opens everything that is there.
    pub fn open() -> opendxg::Result<Self> {
        let dxg = Dxg::open()?;
        let device = dxg.adapters()?[0].create_device()?;
        let ntsync = Ntsync::open();
        let drm = Drm::find();
        let virtgpu = VirtGpu::find();
        let udmabuf = Udmabuf::open();
        let mut missing = Vec::new();
        if let Err(error) = &ntsync {
            missing.push(format!("ntsync: /dev/ntsync: {error}"));
        }
        if drm.is_none() {
            missing.push("drm_syncobj: no device below /dev/dri offers timelines".into());
        }
        if virtgpu.is_none() {
            missing.push("virtio-gpu: no device below /dev/dri makes its resources".into());
        }
        if let Err(error) = &udmabuf {
            missing.push(format!("udmabuf: /dev/udmabuf: {error}"));
        }
        Ok(Self {
            dxg,
            device,
            ntsync: ntsync.ok(),
            drm: drm.map(|(drm, _)| drm),
            virtgpu,
            udmabuf: udmabuf.ok(),
            missing,
            competitors: Vec::new(),
        })
    }
}

/// Names of participants. Reports refer to them.
pub mod names {
    /// This project.
    pub const OPENDXG: &str = "opendxg";
    /// The driver's call that does nothing.
    pub const NO_OP: &str = "opendxg no-op";
    /// No other thread does anything.
    pub const ALONE: &str = "opendxg alone";
    /// A keyed mutex that changes hands.
    pub const KEYED_MUTEX: &str = "opendxg keyed mutex";
    /// /dev/ntsync.
    pub const NTSYNC: &str = "ntsync";
    /// DRM timelines.
    pub const SYNCOBJ: &str = "drm_syncobj";
    /// The C library.
    pub const LIBRARY: &str = "libd3dkmt.so";
    /// One call that signals as many fences.
    pub const MANY_FENCES: &str = "opendxg 64 fences";
    /// A call on the descriptor of an NT handle.
    pub const NT_HANDLE: &str = "opendxg NT handle";
    /// eventfd.
    pub const EVENTFD: &str = "eventfd";
    /// futex.
    pub const FUTEX: &str = "futex";
    /// 64 bytes there, 64 bytes back.
    pub const SOCKETPAIR: &str = "socketpair";
    /// A request there, a descriptor back.
    pub const SERVER: &str = "socketpair, descriptor back";
    /// A dma-buf sent and received with SCM_RIGHTS, in one process.
    pub const PASSING: &str = "dma-buf passing";
    /// A dma-buf of a page that exists.
    pub const UDMABUF: &str = "udmabuf";
    /// A dma-buf and the memory file below it.
    pub const UDMABUF_MEMORY: &str = "udmabuf with its memory";
    /// A thread that does nothing.
    pub const THREAD: &str = "thread";
    /// The same, while another thread owns a keyed mutex.
    pub const BESIDE_OWNER: &str = "thread beside an owner of a keyed mutex";
    /// A process that does nothing.
    pub const CHILD: &str = "child";
    /// A process that opens our device and ends.
    pub const CHILD_OPENS: &str = "child that opens /dev/dxg";
    /// A process that opens ntsync's device and ends.
    pub const CHILD_OPENS_NTSYNC: &str = "child that opens /dev/ntsync";
    /// A process that runs a program.
    pub const CHILD_EXECS: &str = "child that execs";
    /// A process that opens our device and runs a program.
    pub const CHILD_OPENS_EXECS: &str = "child that opens /dev/dxg and execs";
}
