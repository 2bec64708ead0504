// SPDX-License-Identifier: GPL-2.0

//! opendxg: Windows' graphics kernel interface for GPU synchronisation and sharing, served by
//! `/dev/dxg` on an unmodified Linux kernel.
//!
//! Who may know whom, from the bottom up (see `Documentation/architecture.md`):
//!
//! - `platform`, `compat`: names from the kernel that differ between builds and releases;
//! - `ddi`: what is between the objects and the drivers of GPUs;
//! - `kmd`: these drivers;
//! - `engine`: the core of the software GPU;
//! - `logic`: pure rules; these four are also compiled on the host;
//! - `sys`: the kernel, wrapped; the only place with `unsafe`, apart from the wrapper of generated
//!   code in `uapi`;
//! - `error`: statuses, and how they travel;
//! - `dxgk`: the objects;
//! - `uapi`, `ioctl`: the contract with user space and its thin handlers;
//! - `file`: from a descriptor to its object;
//! - `configfs`: the adapters that the administrator makes;
//! - this file: the module itself.

mod compat;
mod configfs;
#[allow(dead_code, unreachable_pub)] // As `logic`.
mod ddi;
mod dxgk;
#[forbid(unsafe_code)]
#[allow(dead_code, unreachable_pub)] // As `logic`.
mod engine;
mod error;
mod file;
mod ioctl;
#[allow(dead_code, unreachable_pub)] // As `logic`.
mod kmd;
#[forbid(unsafe_code)]
#[allow(dead_code, unreachable_pub)] // The host tests use all of it, from another crate.
mod logic;
mod platform;
mod sys;
mod uapi;

use configfs::{
    add_adapter,
    Configfs, //
};
use dxgk::{
    adapter::AdapterOptions,
    debugfs::Debugfs,
    driver::{
        Driver,
        MAX_ADAPTERS, //
    },
    recovery::is_delay, //
};
use file::device::OpenFile;
use kernel::prelude::*;
use kmd::soft::Config;
use sys::{
    file::chardev::Registration,
    mem::dma_attachment::EngineDevice,
    params,
    trace::LogsListener,
    work::Worker, //
};

module! {
    type: OpenDxg,
    name: "opendxg",
    authors: ["The opendxg developers"],
    description: "D3DKMT graphics kernel objects: /dev/dxg without a Windows host",
    license: "GPL",
    imports_ns: ["DMA_BUF"],
}

/// The loaded module. Dropping it removes the node; open files keep the module loaded.
struct OpenDxg {
    _node: Registration<OpenFile>,
    _configfs: Configfs,
    _logs: LogsListener<Driver>,
    /// What is queued runs to its end, and without the node nothing new is queued.
    _worker: Worker,
    /// Dropped last: what the worker ends may be attached to it.
    _engines: EngineDevice,
}

impl kernel::Module for OpenDxg {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let adapters = params::adapters();
        let name = params::name();

        if !(1..=MAX_ADAPTERS).contains(&adapters) {
            pr_err!("adapters={adapters}: must be 1 to {MAX_ADAPTERS}\n");
            return Err(EINVAL);
        }
        if params::global_access() > 2 {
            pr_err!(
                "global_access={}: must be 0, 1 or 2\n",
                params::global_access()
            );
            return Err(EINVAL);
        }
        if !is_delay(params::tdr_delay_ms()) {
            pr_err!(
                "tdr_delay_ms={}: must be 10 to 3600000\n",
                params::tdr_delay_ms()
            );
            return Err(EINVAL);
        }
        if name.is_empty() {
            pr_err!("name=: must not be empty\n");
            return Err(EINVAL);
        }

        let engines = EngineDevice::add()?;
        let worker = Worker::start(c"opendxg")?;
        let driver = Driver::new(Some(Debugfs::new()?))?;

        for _ in 0..adapters {
            add_adapter(&driver, Config::default(), &AdapterOptions::NONE)?;
        }

        // Both let users pin the module, so nothing may fail from the moment that one of them does.
        let mut configfs = Configfs::new()?;
        let node = Registration::new(name, driver.clone())?;

        let logs = LogsListener::new(driver.clone());

        configfs.enable(driver);
        pr_info!("/dev/{} with {} software adapter(s)\n", name, adapters);
        Ok(Self {
            _node: node,
            _configfs: configfs,
            _logs: logs,
            _worker: worker,
            _engines: engines,
        })
    }
}
