// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making and sharing objects of every kind.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Device, Error, Result, Status, SyncFlags, SyncKind};

use super::access::{ALL_RESOURCE, ALL_SYNC};
use super::local::{Local, What};
use super::share::share_call;
use super::Attributes;
use crate::resource::Create;
use crate::{fixture, TestResult};

/// Every kind of shareable object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Mutex of contexts.
    Mutex,
    /// Semaphore of contexts.
    Semaphore,
    /// Legacy fence.
    Fence,
    /// Monitored fence.
    MonitoredFence,
    /// Resource of one allocation.
    Resource,
    /// Keyed mutex.
    KeyedMutex,
}

impl Shape {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Mutex,
        Self::Semaphore,
        Self::Fence,
        Self::MonitoredFence,
        Self::Resource,
        Self::KeyedMutex,
    ];
    /// Kinds that an NT handle may have alone.
    pub const NT: [Self; 5] = [
        Self::Mutex,
        Self::Semaphore,
        Self::Fence,
        Self::MonitoredFence,
        Self::Resource,
    ];
    /// Kinds that may have a global handle.
    pub const GLOBAL: [Self; 5] = [
        Self::Mutex,
        Self::Semaphore,
        Self::Fence,
        Self::Resource,
        Self::KeyedMutex,
    ];

    /// What a local handle of this kind is.
    pub fn what(self) -> What {
        match self {
            Self::Resource => What::Resource,
            Self::KeyedMutex => What::KeyedMutex,
            _ => What::Sync,
        }
    }

    /// All rights of an NT handle of this kind.
    pub fn all_access(self) -> u32 {
        match self {
            Self::Resource => ALL_RESOURCE,
            _ => ALL_SYNC,
        }
    }

    /// The name of its type (RES-15).
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Resource => "DxgkSharedResource",
            _ => "DxgkSharedSyncObject",
        }
    }

    /// What a query says of its type.
    pub fn object_type(self) -> u32 {
        match self {
            Self::Resource => OPENDXG_TYPE_RESOURCE,
            Self::KeyedMutex => OPENDXG_TYPE_KEYED_MUTEX,
            _ => OPENDXG_TYPE_SYNC_OBJECT,
        }
    }

    /// What a query says it is.
    pub fn kind(self) -> u32 {
        match self {
            Self::Mutex => D3DDDI_SYNCHRONIZATION_MUTEX,
            Self::Semaphore => D3DDDI_SEMAPHORE,
            Self::Fence => D3DDDI_FENCE,
            Self::MonitoredFence => D3DDDI_MONITORED_FENCE,
            Self::Resource => OPENDXG_KIND_RESOURCE,
            Self::KeyedMutex => OPENDXG_KIND_KEYED_MUTEX,
        }
    }
}

/// How an object can be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Not at all.
    Private,
    /// By a global handle.
    Global,
    /// By NT handles.
    Nt,
}

/// A process that uses the driver: a node and a device.
#[derive(Clone)]
pub struct Client {
    raw: Raw,
    device: Arc<Device>,
}

impl Client {
    /// A new node and a device on the first adapter.
    pub fn new() -> TestResult<Self> {
        Self::on(fixture::device()?)
    }

    /// The same with this device.
    pub fn on(device: Device) -> TestResult<Self> {
        let device = Arc::new(device);
        let raw = fixture::raw()?;
        Ok(Self { raw, device })
    }

    /// Permission to issue any call.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of the device.
    pub fn device_handle(&self) -> u32 {
        self.device.handle().0
    }

    /// Runs a call. Success-class statuses are successes.
    pub fn call<T: Argument>(&self, arg: &mut T) -> Result<Status> {
        answer(self.raw.exec(arg))
    }

    /// An object of this kind, shared like that. A resource has one allocation of a page.
    pub fn create(&self, shape: Shape, how: How) -> Result<Local> {
        let kind = match shape {
            Shape::Mutex => SyncKind::Mutex {
                initially_owned: false,
            },
            Shape::Semaphore => SyncKind::Semaphore {
                max_count: 3,
                initial_count: 1,
            },
            Shape::Fence => SyncKind::Fence { initial_value: 0 },
            Shape::MonitoredFence => SyncKind::MonitoredFence { initial_value: 0 },
            Shape::Resource => return self.create_resource(how, 1, b""),
            Shape::KeyedMutex => return self.create_keyed_mutex(how, 0, b""),
        };
        let flags = match how {
            How::Private => SyncFlags::empty(),
            How::Global => SyncFlags::SHARED,
            How::Nt => SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING,
        };
        let object = self.device.create_sync_object(kind, flags)?;
        let global = object.global_handle().map_or(0, |handle| handle.0);
        let local = Local::new(self, What::Sync, object.into_raw().0);
        Ok(local.with_global(global))
    }

    /// A resource of allocations of one page each.
    pub fn create_resource(&self, how: How, allocations: usize, runtime: &[u8]) -> Result<Local> {
        self.create_resource_with(how, 0, &vec![4096; allocations], runtime)
    }

    /// A resource of allocations of these sizes, with more creation flags.
    pub fn create_resource_with(
        &self,
        how: How,
        flags: u32,
        sizes: &[u64],
        runtime: &[u8],
    ) -> Result<Local> {
        let shared = match how {
            How::Private => 0,
            How::Global => D3DKMT_CREATEALLOCATIONFLAGS_CreateShared,
            How::Nt => {
                D3DKMT_CREATEALLOCATIONFLAGS_CreateShared
                    | D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing
            }
        };
        let flags = D3DKMT_CREATEALLOCATIONFLAGS_CreateResource | shared | flags;
        let (arg, infos) = self.create_allocations(flags, sizes, runtime)?;
        let local = Local::new(self, What::Resource, arg.hResource).with_global(arg.hGlobalShare);
        Ok(local.with_allocations(infos.iter().map(|info| info.hAllocation).collect()))
    }

    /// An allocation by itself.
    pub fn create_allocation(&self, size: u64) -> Result<Local> {
        let (_, infos) = self.create_allocations(0, &[size], b"")?;
        Ok(Local::new(self, What::Allocation, infos[0].hAllocation))
    }

    fn create_allocations(
        &self,
        flags: u32,
        sizes: &[u64],
        runtime: &[u8],
    ) -> Result<(D3DKMT_CREATEALLOCATION, Vec<D3DDDI_ALLOCATIONINFO2>)> {
        let mut create = Create::sized(&self.device, flags, sizes).with_runtime(runtime);
        let mut arg = create.argument();
        self.call(&mut arg)?;
        Ok((arg, create.infos))
    }

    /// Shares these handles with these attributes; also returns the status, which may be
    /// OBJECT_NAME_EXISTS.
    pub fn share_with(
        &self,
        handles: &[u32],
        attributes: Option<&mut Attributes>,
        access: u32,
    ) -> Result<(OwnedFd, Status)> {
        self.share_mode(handles, attributes, access, None)
    }

    /// The same with a mode for the name.
    pub fn share_mode(
        &self,
        handles: &[u32],
        attributes: Option<&mut Attributes>,
        access: u32,
        mode: Option<u32>,
    ) -> Result<(OwnedFd, Status)> {
        let mut slot = u64::MAX;
        let attributes = attributes.map_or(0, Attributes::address);
        let mut arg = share_call(handles, access, attributes, &mut slot);
        let answer = match mode {
            None => self.call(&mut arg),
            Some(mode) => {
                let mut with_mode = opendxg_share_objects::zeroed();
                with_mode.share = arg;
                with_mode.mode = mode;
                self.call(&mut with_mode)
            }
        };
        // SAFETY: written by the call; read anew because the compiler does not see that.
        let slot = unsafe { (&raw const slot).read_volatile() };
        match answer {
            Err(_) if slot != u64::MAX => Err(Error::Protocol("a refused share wrote its output")),
            Err(error) => Err(error),
            // SAFETY: the call made the descriptor for us.
            Ok(status) => Ok((unsafe { OwnedFd::from_raw_fd(slot as i32) }, status)),
        }
    }

    /// Shares one object without a name.
    pub fn share(&self, object: &Local, access: u32) -> Result<OwnedFd> {
        Ok(self.share_with(&[object.handle()], None, access)?.0)
    }

    /// Shares one object under a name, with all rights.
    pub fn share_named(&self, object: &Local, name: &str) -> Result<OwnedFd> {
        let access = match object.what() {
            What::Sync => ALL_SYNC,
            _ => ALL_RESOURCE,
        };
        let mut attributes = Attributes::named(name);
        let (fd, _) = self.share_with(&[object.handle()], Some(&mut attributes), access)?;
        Ok(fd)
    }

    /// A new object of this kind behind an NT handle with all rights, and its local handle.
    pub fn shared(&self, shape: Shape) -> Result<(Local, OwnedFd)> {
        let object = self.create(shape, How::Nt)?;
        let fd = self.share(&object, shape.all_access())?;
        Ok((object, fd))
    }

    /// The legal set of three: resource, keyed mutex, synchronisation object.
    pub fn triple(&self) -> Result<[Local; 3]> {
        Ok([
            self.create(Shape::Resource, How::Nt)?,
            self.create(Shape::KeyedMutex, How::Nt)?,
            self.create(Shape::MonitoredFence, How::Nt)?,
        ])
    }
}

/// Turns what the driver answered into a result.
pub(super) fn answer(answer: rustix::io::Result<Status>) -> Result<Status> {
    match answer? {
        status if status.is_success() => Ok(status),
        status => Err(Error::Status(status)),
    }
}
