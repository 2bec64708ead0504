// SPDX-License-Identifier: MIT OR Apache-2.0
//! A safe client of `/dev/dxg`, the D3DKMT interface of the opendxg kernel module.
//!
//! | Type | What it is |
//! |---|---|
//! | [`Dxg`] | the open device node |
//! | [`Adapter`], [`Device`], [`Context`] | the chain of objects work belongs to |
//! | [`MonitoredFence`] | a 64-bit value to raise and to wait for; reading it is one load |
//! | [`NativeFence`] | the same, which the GPU waits for by itself |
//! | [`IntraGpuFence`] | a native fence that packets of one GPU alone use |
//! | [`SyncObject`] | any synchronisation object: mutex, semaphore, legacy fence, … |
//! | [`FenceValues`] | several fences for one wait or signal |
//! | [`Resource`], [`Allocation`] | memory, and what is shared of it as a whole |
//! | [`KeyedMutex`] | a mutex that its owner hands over with a key |
//! | [`Object`] | queries, the store ([`InfoItem`]), watches ([`Watch`]), [`WeakRef`] |
//! | [`ShareOptions`] | names and rights of NT handles |
//! | [`NtHandle`], [`GlobalHandle`] | how processes share: by descriptor or by number |
//! | [`PagingQueue`], [`GpuMap`] | memory that the GPU can address |
//! | [`pm4::Pm4`], [`HwQueue`] | work for the GPU and where to submit it ([`Context::submit`]) |
//! | [`soft_gpu`] | commands that make an engine do something wrong, or stop it |
//! | [`EventFd`], [`FencePoint`], [`FenceStream`] | descriptors to poll |
//! | [`SyncFile`] | what drivers of Linux wait for |
//! | [`TimelinePoint`], [`HandOver`] | a DRM timeline that signals a fence, or follows one |
//! | [`Status`], [`Error`] | what the module answered |
//!
//! Objects own their handles and destroy them when dropped. Every object keeps alive what it was
//! made from. All types can be used from several threads, except [`KeyedMutexGuard`].
//!
//! # Example
//!
//! ```no_run
//! use opendxg::{Dxg, EventFd};
//!
//! # fn main() -> opendxg::Result<()> {
//! let dxg = Dxg::open()?;
//! let adapter = dxg.adapters()?.into_iter().next().expect("an adapter");
//! println!("{}: {}", adapter.luid(), adapter.description()?);
//!
//! let device = adapter.create_device()?;
//! let fence = device.create_fence(0)?;
//!
//! let event = EventFd::new()?;
//! fence.wait_async(2, &event)?;
//! fence.signal(1)?;
//! fence.wait(1)?; // Satisfied: returns at once.
//! assert_eq!(event.take()?, 0);
//! fence.signal(2)?;
//! assert_eq!(event.take()?, 1);
//! assert_eq!(fence.value(), 2); // No system call.
//! # Ok(())
//! # }
//! ```
//!
//! Sharing with another process:
//!
//! ```no_run
//! use opendxg::{Access, Dxg, SyncFlags};
//! # fn main() -> opendxg::Result<()> {
//! # let dxg = Dxg::open()?;
//! # let device = dxg.adapters()?[0].create_device()?;
//! let fence = device.create_shareable_fence(0)?;
//! let nt_handle = fence.share(Access::ALL)?; // A descriptor: send it over a Unix socket …
//! let same_fence = device.open_fence(&nt_handle, SyncFlags::empty())?; // … and open it there.
//! # Ok(())
//! # }
//! ```
//!
//! # Fork
//!
//! A [`Dxg`] belongs to the process that opened it. In a forked child every call through it, and
//! through the objects made from it, fails with an error for which [`Error::is_foreign_process`]
//! holds, without asking the kernel; reading a mapped fence value still works. The child opens its
//! own [`Dxg`]. Dropping inherited objects is harmless, also in a child that has closed all
//! descriptors and got the same numbers again.
//!
//! # Features
//!
//! `raw` makes the modules `raw`, `uapi` and `node` public: calls by number with the structs of
//! the C headers, for the tests, the C library and tracers of this project. They follow the
//! headers and are no part of what the version number of this crate promises.
//!
//! # Kernels without the exec extension
//!
//! The module reports every NTSTATUS exactly. Behind another driver with the same interface the
//! crate falls back to plain ioctls, whose errno can stand for several statuses ([`Dxg::protocol`]
//! tells).

// With the feature `raw` everything is reachable, and what is not is a mistake.
#![cfg_attr(feature = "raw", warn(unreachable_pub))]
#![cfg_attr(not(feature = "raw"), allow(dead_code, unused_imports))]

mod adapter;
mod allocation;
mod arguments;
mod budget;
mod calls;
mod counters;
mod cpu_event;
mod descriptor;
mod device;
mod doorbell;
mod dxg;
mod error;
mod event;
mod fence;
mod fence_stream;
mod guid;
mod handle;
mod hw_queue;
mod intra_gpu_fence;
mod ioctl;
mod keyed_mutex;
mod native_fence;
#[cfg(feature = "raw")]
pub mod node;
#[cfg(not(feature = "raw"))]
mod node;
mod notice;
mod nt_fence;
mod object;
mod object_argument;
mod offer;
mod owned;
mod pages;
mod paging;
mod placement;
pub mod pm4;
mod process;
#[cfg(test)]
mod promises;
mod queued;
#[cfg(feature = "raw")]
pub mod raw;
#[cfg(not(feature = "raw"))]
mod raw;
mod resource;
mod resource_builder;
mod share;
mod shared_bytes;
pub mod soft_gpu;
mod status;
mod store;
mod submission;
mod sync_file;
mod sync_object;
mod timeline;
#[cfg(feature = "raw")]
pub mod uapi;
#[cfg(not(feature = "raw"))]
mod uapi;
mod value;
mod weak;

pub use adapter::ParseLuidError;
pub use adapter::{Adapter, AdapterType, ClockCalibration, DeviceIds, Feature, Luid};
pub use allocation::{Allocation, Mapping, MappingMut, Residency};
pub use budget::{MemoryGroup, ProcessNodeStatistics, SegmentStatistics};
pub use budget::{StatisticsOf, VideoMemory};
pub use counters::{Counters, FdInfo};
pub use cpu_event::CpuEvent;
pub use device::{Context, Device, ExecutionState, PageFault};
pub use doorbell::{Doorbell, DoorbellStatus};
pub use dxg::{AdapterFilter, Dxg, Version, NO_OP};
pub use error::{Errno, Error, Result};
pub use event::{EventFd, FencePoint};
pub use fence::{FenceValues, MonitoredFence, SignalFlags};
pub use fence_stream::FenceStream;
pub use guid::{Guid, ParseGuidError};
pub use handle::{GlobalHandle, LocalHandle, NtHandle};
pub use hw_queue::{HwQueue, LogDetail};
pub use intra_gpu_fence::IntraGpuFence;
pub use keyed_mutex::{Acquired, KeyedMutex, KeyedMutexGuard, Timeout};
pub use native_fence::NativeFence;
pub use node::Protocol;
pub use notice::{BudgetNotices, PagingLog, TrimNotice, TrimNotices};
pub use object::{AnyObject, Object, ObjectInfo, ObjectKind, ObjectRef, Target};
pub use offer::{OfferFlags, OfferInfo, OfferPriority, Reclaimed, TrimFlags};
pub use pages::Pages;
pub use paging::{EvictFlags, GpuMap, GpuProtection, GpuRange, GpuReserve};
pub use paging::{GpuUpdate, PagingPriority, PagingQueue, Reservation, Resident, ResidentFlags};
pub use placement::Placement;
pub use resource::{OpenedShare, Resource, ResourceName, ResourceSizes};
pub use resource_builder::{AllocationFlags, ResourceBuilder};
pub use share::ShareOptions;
pub use shared_bytes::{SharedBytes, SharedBytesMut};
pub use status::Status;
pub use store::{Info, InfoEntry, InfoFlags, InfoItem, Lookup, Update};
pub use sync_file::SyncFile;
pub use sync_object::{Access, SyncFlags, SyncKind, SyncObject};
pub use timeline::{HandOver, TimelinePoint};
pub use weak::{Watch, WatchEvents, WatchState, WeakRef};

/// Compiles the examples of the package's page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
