// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening objects by NT handle, global handle and name.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Error, GlobalHandle, Result, Status, SyncFlags};

use super::local::{Local, What};
use super::{Attributes, Client, Shape};

/// What opening a resource returned.
pub struct Opened {
    /// The resource with its allocations.
    pub resource: Local,
    /// The keyed mutex of a set of three.
    pub mutex: Option<Local>,
    /// The synchronisation object of a set of three.
    pub sync: Option<Local>,
    /// The runtime data.
    pub runtime: Vec<u8>,
}

/// Buffers for one opening of a resource.
struct Buffers {
    infos: Vec<D3DDDI_OPENALLOCATIONINFO2>,
    runtime: Vec<u8>,
    resource: Vec<u8>,
    total: Vec<u8>,
}

impl Buffers {
    fn new(allocations: u32, runtime: u32, resource: u32, total: u32) -> Self {
        // One byte more than needed: the addresses may not be NULL.
        let bytes = |size: u32| vec![0; size as usize + 1];
        // SAFETY: integers only.
        let info = unsafe { core::mem::zeroed() };
        Self {
            infos: vec![info; allocations as usize + 1],
            runtime: bytes(runtime),
            resource: bytes(resource),
            total: bytes(total),
        }
    }

    fn allocations(&self, count: u32) -> Vec<u32> {
        let infos = &self.infos[..count as usize];
        infos.iter().map(|info| info.hAllocation).collect()
    }
}

impl Client {
    /// Opens whatever is behind an NT handle that was shared from this kind.
    pub fn open(&self, shape: Shape, fd: impl AsFd) -> Result<Local> {
        match shape.what() {
            What::Sync => self.open_sync(fd),
            _ => Ok(self.open_resource(fd)?.resource),
        }
    }

    /// Opens a synchronisation object by NT handle.
    pub fn open_sync(&self, fd: impl AsFd) -> Result<Local> {
        let object = self.device().open_sync_object(fd, SyncFlags::empty())?;
        Ok(Local::new(self, What::Sync, object.into_raw().0))
    }

    /// Opens a resource, or a set of three, by NT handle.
    pub fn open_resource(&self, fd: impl AsFd) -> Result<Opened> {
        let slot = fd.as_fd().as_raw_fd() as u64;
        let mut query = D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE::zeroed();
        query.hDevice = self.device_handle();
        query.hNtHandle = slot;
        self.call(&mut query)?;
        let (count, runtime) = (query.NumAllocations, query.PrivateRuntimeDataSize);
        let (resource, total) = (
            query.ResourcePrivateDriverDataSize,
            query.TotalPrivateDriverDataSize,
        );
        let mut buffers = Buffers::new(count, runtime, resource, total);
        let mut arg = D3DKMT_OPENRESOURCEFROMNTHANDLE::zeroed();
        arg.hDevice = self.device_handle();
        arg.hNtHandle = slot;
        arg.NumAllocations = count;
        arg.pOpenAllocationInfo2 = buffers.infos.as_mut_ptr() as u64;
        arg.PrivateRuntimeDataSize = runtime;
        arg.pPrivateRuntimeData = buffers.runtime.as_mut_ptr() as u64;
        arg.ResourcePrivateDriverDataSize = resource;
        arg.pResourcePrivateDriverData = buffers.resource.as_mut_ptr() as u64;
        arg.TotalPrivateDriverDataBufferSize = total;
        arg.pTotalPrivateDriverDataBuffer = buffers.total.as_mut_ptr() as u64;
        self.call(&mut arg)?;
        let optional = |what, handle: u32| (handle != 0).then(|| Local::new(self, what, handle));
        buffers.runtime.truncate(runtime as usize);
        let local = Local::new(self, What::Resource, arg.hResource);
        Ok(Opened {
            resource: local.with_allocations(buffers.allocations(count)),
            mutex: optional(What::KeyedMutex, arg.hKeyedMutex),
            sync: optional(What::Sync, arg.hSyncObject),
            runtime: buffers.runtime,
        })
    }

    /// Opens an object of this kind by global handle.
    pub fn open_global(&self, shape: Shape, global: u32) -> Result<Local> {
        match shape.what() {
            What::Sync => {
                let dxg = opendxg::Dxg::open()?;
                let object = dxg.open_global(GlobalHandle(global))?;
                Ok(Local::new(self, What::Sync, object.into_raw().0))
            }
            What::KeyedMutex => {
                let mut arg = D3DKMT_OPENKEYEDMUTEX::zeroed();
                arg.hSharedHandle = global;
                self.call(&mut arg)?;
                Ok(Local::new(self, What::KeyedMutex, arg.hKeyedMutex))
            }
            What::Resource | What::Allocation => self.open_global_resource(global),
        }
    }

    fn open_global_resource(&self, global: u32) -> Result<Local> {
        let mut query = D3DKMT_QUERYRESOURCEINFO::zeroed();
        query.hDevice = self.device_handle();
        query.hGlobalShare = global;
        self.call(&mut query)?;
        let count = query.NumAllocations;
        let mut buffers = Buffers::new(
            count,
            query.PrivateRuntimeDataSize,
            query.ResourcePrivateDriverDataSize,
            query.TotalPrivateDriverDataSize,
        );
        let mut arg = D3DKMT_OPENRESOURCE::zeroed();
        arg.hDevice = self.device_handle();
        arg.hGlobalShare = global;
        arg.NumAllocations = count;
        arg.__bindgen_anon_1.pOpenAllocationInfo2 = buffers.infos.as_mut_ptr() as u64;
        arg.pPrivateRuntimeData = buffers.runtime.as_mut_ptr() as u64;
        arg.PrivateRuntimeDataSize = query.PrivateRuntimeDataSize;
        arg.pResourcePrivateDriverData = buffers.resource.as_mut_ptr() as u64;
        arg.ResourcePrivateDriverDataSize = query.ResourcePrivateDriverDataSize;
        arg.pTotalPrivateDriverDataBuffer = buffers.total.as_mut_ptr() as u64;
        arg.TotalPrivateDriverDataBufferSize = query.TotalPrivateDriverDataSize;
        self.call(&mut arg)?;
        let local = Local::new(self, What::Resource, arg.hResource);
        Ok(local.with_allocations(buffers.allocations(count)))
    }

    /// Opens an NT handle by name, by the call for synchronisation objects or the one for
    /// resources.
    pub fn open_name(&self, what: What, name: &str, access: u32) -> Result<OwnedFd> {
        self.open_attributes(what, Some(&mut Attributes::named(name)), access)
    }

    /// The same with any attributes, or none. A refusal must have set the output to 0 (RES-43).
    pub fn open_attributes(
        &self,
        what: What,
        attributes: Option<&mut Attributes>,
        access: u32,
    ) -> Result<OwnedFd> {
        macro_rules! open {
            ($name:ident) => {{
                let mut arg = $name::zeroed();
                arg.dwDesiredAccess = access;
                arg.pObjAttrib = attributes.map_or(0, Attributes::address);
                arg.hNtHandle = 0x1ead_beed_1ead_beed;
                (self.call(&mut arg), arg.hNtHandle)
            }};
        }
        let (answer, slot) = match what {
            What::Sync => open!(D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME),
            _ => open!(D3DKMT_OPENNTHANDLEFROMNAME),
        };
        match answer {
            // SAFETY: the call made the descriptor for us.
            Ok(Status::SUCCESS) => Ok(unsafe { OwnedFd::from_raw_fd(slot as i32) }),
            Ok(status) => Err(Error::Status(status)),
            Err(Error::Status(_)) if slot != 0 => Err(Error::Protocol("hNtHandle is not 0")),
            Err(error) => Err(error),
        }
    }
}
