// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resources: one or more allocations that are shared as a whole.

use std::os::fd::{AsFd, BorrowedFd};

use crate::allocation::{described_size, Allocation};
use crate::calls::resource::{Name, Opened, ATTEMPTS};
use crate::calls::{self, call};
use crate::device::Device;
use crate::dxg::Dxg;
use crate::handle::{slot, GlobalHandle, LocalHandle, NtHandle};
use crate::keyed_mutex::KeyedMutex;
use crate::node::Protocol;
use crate::object::duplicate;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::share::ShareOptions;
use crate::sync_object::{Access, SyncObject};
use crate::uapi::*;
use crate::{Error, Luid, Result, Status};

pub use crate::calls::resource::ResourceSizes;

/// How to find a shared resource.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ResourceName<'a> {
    /// By number.
    Global(GlobalHandle),
    /// By NT handle.
    Nt(BorrowedFd<'a>),
}

impl ResourceName<'_> {
    fn raw(self) -> Name {
        match self {
            Self::Global(handle) => Name::Global(handle.0),
            Self::Nt(fd) => Name::Nt(slot(fd)),
        }
    }
}

impl From<GlobalHandle> for ResourceName<'_> {
    fn from(handle: GlobalHandle) -> Self {
        Self::Global(handle)
    }
}

impl<'a> From<&'a NtHandle> for ResourceName<'a> {
    fn from(handle: &'a NtHandle) -> Self {
        Self::Nt(handle.as_fd())
    }
}

/// One open of a resource: a handle of the resource and one of each allocation. All are destroyed
/// when it is dropped.
#[derive(Debug)]
pub struct Resource {
    /// Dropped before the handle that ends them.
    allocations: Vec<Allocation>,
    owned: Owned,
    device: Device,
    global: Option<GlobalHandle>,
    runtime_data: Vec<u8>,
    driver_data: Vec<Vec<u8>>,
}

/// What was behind an NT handle.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedShare {
    /// The first member, which is always there.
    pub resource: Resource,
    /// The keyed mutex, if there is one.
    pub keyed_mutex: Option<KeyedMutex>,
    /// The synchronisation object, if there is one.
    pub sync_object: Option<SyncObject>,
}

impl Resource {
    pub(crate) fn created(device: &Device, handle: u32, allocations: Vec<Allocation>) -> Self {
        let kind = Kind::Resource(device.handle());
        Self {
            allocations,
            owned: Owned::new(device.node(), handle, kind),
            device: device.clone(),
            global: None,
            runtime_data: Vec::new(),
            driver_data: Vec::new(),
        }
    }

    pub(crate) fn set_global(&mut self, handle: u32) {
        self.global = (handle != 0).then_some(GlobalHandle(handle));
    }

    pub(crate) fn add(&mut self, allocations: impl Iterator<Item = Allocation>) {
        self.allocations.extend(allocations);
    }

    /// A handle of the resource alone.
    pub(crate) fn bare(device: &Device, handle: u32) -> Self {
        Self::created(device, handle, Vec::new())
    }

    fn opened(device: &Device, opened: Opened) -> Self {
        // Only the module checks the description of another process before it lets others open it.
        let is_checked = device.node().protocol() == Protocol::Exact;
        let size = |data: &[u8]| described_size(data).filter(|_| is_checked);
        let handles = opened.allocations.iter().zip(&opened.driver_data);
        let allocations =
            handles.map(|(handle, data)| Allocation::in_open_resource(device, *handle, size(data)));
        let mut resource = Self::created(device, opened.resource, allocations.collect());
        resource.runtime_data = opened.runtime;
        resource.driver_data = opened.driver_data;
        resource
    }

    /// The device of the handle.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// The number by which any process can open it, if it was made for that.
    pub fn global_handle(&self) -> Option<GlobalHandle> {
        self.global
    }

    /// The allocations of this open resource, in order. None for a duplicate of the resource
    /// handle.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// The runtime data as they were when the resource was opened.
    pub fn runtime_data(&self) -> &[u8] {
        &self.runtime_data
    }

    /// The private driver data of each allocation as they were when the resource was opened.
    pub fn driver_data(&self) -> &[Vec<u8>] {
        &self.driver_data
    }

    /// Makes an NT handle of the resource alone.
    pub fn share(&self, access: Access) -> Result<NtHandle> {
        self.dxg()
            .share(&[self.handle()], &ShareOptions::new(access))
    }

    /// Makes an NT handle of the resource, a keyed mutex and a synchronisation object.
    pub fn share_with(
        &self,
        mutex: &KeyedMutex,
        sync: &SyncObject,
        options: &ShareOptions,
    ) -> Result<NtHandle> {
        let objects = [self.handle(), mutex.handle(), sync.handle()];
        self.dxg().share(&objects, options)
    }

    fn dxg(&self) -> Dxg {
        Dxg::from_node(self.device.node())
    }

    /// Another local handle of the resource, without handles of its allocations.
    pub fn duplicate(&self) -> Result<Self> {
        let handle = duplicate(self.device.node(), self.handle(), OPENDXG_WHOLE)?;
        let mut duplicate = Self::bare(&self.device, handle);
        duplicate.global = self.global;
        Ok(duplicate)
    }

    /// A handle of one of its allocations, a reference of its own to the resource.
    pub fn duplicate_allocation(&self, index: u32) -> Result<Allocation> {
        let handle = duplicate(self.device.node(), self.handle(), index)?;
        let opened = self.allocations.get(index as usize);
        let size = opened.and_then(Allocation::size);
        Ok(Allocation::own(&self.device, handle, size))
    }

    /// Takes an allocation out of the resource and destroys it; the resource lives on.
    ///
    /// # Panics
    ///
    /// If there is no such position.
    pub fn destroy_allocation(&mut self, position: usize) -> Result<()> {
        self.allocations.remove(position).destroy()
    }

    /// Replaces the runtime data that later opens of the resource see (the escape of existing
    /// runtimes).
    pub fn update_runtime_data(&self, data: &[u8]) -> Result<()> {
        self.escape(D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE, data)
    }

    /// Stores a present rectangle: left, top, right, bottom.
    pub fn set_present_rect(&self, rect: [i32; 4]) -> Result<()> {
        let data: Vec<u8> = rect.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.escape(D3DKMT_ESCAPE_SET_PRESENT_RECT_WINE, &data)
    }

    fn escape(&self, kind: D3DKMT_ESCAPETYPE, data: &[u8]) -> Result<()> {
        let mut arg = D3DKMT_ESCAPE::zeroed();
        arg.hAdapter = self.device.adapter().handle().0;
        arg.hDevice = self.device.handle().0;
        arg.Type = kind;
        arg.hContext = self.handle().0;
        let mut data = data.to_vec();
        calls::resource::escape(self.device.node(), arg, &mut data).map(|_| ())
    }

    /// Whether a process may open the resource by its global handle: INVALID_PARAMETER if not.
    pub fn check_access(&self, pid: u32) -> Result<()> {
        let mut arg = D3DKMT_CHECKSHAREDRESOURCEACCESS::zeroed();
        arg.hResource = self.handle().0;
        arg.ClientPid = pid;
        call(self.device.node(), &mut arg).map(|_| ())
    }

    /// Admits a process to a resource made with RestrictSharedAccess, or not any more.
    pub fn configure(&self, pidfd: impl AsFd, allow: bool) -> Result<()> {
        let mut arg = D3DKMT_CONFIGURESHAREDRESOURCE::zeroed();
        arg.hDevice = self.device.handle().0;
        arg.hResource = self.handle().0;
        arg.hProcess = slot(pidfd.as_fd());
        arg.AllowAccess = allow.into();
        call(self.device.node(), &mut arg).map(|_| ())
    }

    /// Destroys the handle of the resource and those of its allocations, and returns what the
    /// module said.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }

    /// Destroys them with `D3DDDICB_DESTROYALLOCATION2FLAGS_*`.
    pub fn destroy_with(self, flags: u32) -> Result<()> {
        let handles = (self.device.handle(), self.handle());
        let result = calls::resource::destroy(self.device.node(), handles, &[], flags);
        self.owned.into_raw();
        result.map(|_| ())
    }

    /// Gives the handles away: nobody destroys them until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}

/// Resources of other processes.
impl Device {
    /// The sizes needed to open a resource.
    pub fn query_resource<'a>(&self, name: impl Into<ResourceName<'a>>) -> Result<ResourceSizes> {
        calls::resource::query(self.node(), self.handle(), name.into().raw())
    }

    /// Opens a resource by its global handle.
    pub fn open_resource(&self, handle: GlobalHandle) -> Result<Resource> {
        let opened = self.open_attempts(Name::Global(handle.0), &[])?;
        let mut resource = Resource::opened(self, opened);
        resource.global = Some(handle);
        Ok(resource)
    }

    /// Opens what is behind an NT handle: a resource, perhaps with a keyed mutex and a
    /// synchronisation object.
    pub fn open_share(&self, handle: impl AsFd) -> Result<OpenedShare> {
        self.open_share_with(handle, &[])
    }

    /// As [`open_share`](Self::open_share); `mutex_data` becomes the private data of the keyed
    /// mutex if it has none.
    pub fn open_share_with(&self, handle: impl AsFd, mutex_data: &[u8]) -> Result<OpenedShare> {
        let opened = self.open_attempts(Name::Nt(slot(handle.as_fd())), mutex_data)?;
        let (mutex, sync) = (opened.keyed_mutex, opened.sync_object);
        let keyed_mutex = (mutex != 0).then(|| KeyedMutex::new(self.node(), mutex, 0));
        let sync_object = (sync != 0).then(|| {
            let owned = Owned::new(self.node(), sync, Kind::SyncObject);
            SyncObject::new(owned, Some(self.clone()), None)
        });
        Ok(OpenedShare {
            resource: Resource::opened(self, opened),
            keyed_mutex,
            sync_object,
        })
    }

    /// Opens, whatever the sizes are. With other drivers than ours, asks for the sizes and opens.
    /// When the runtime data changed size in between, again.
    fn open_attempts(&self, name: Name, mutex_data: &[u8]) -> Result<Opened> {
        if self.node().protocol() == Protocol::Exact {
            let (node, device) = (self.node(), self.handle());
            let opened = calls::resource::open_at_once(node, device, name, mutex_data);
            if opened.as_ref().err() != Some(&Error::Status(Status::NOT_SUPPORTED)) {
                return opened;
            }
        }
        let mut sizes = calls::resource::query(self.node(), self.handle(), name)?;
        for _ in 0..ATTEMPTS {
            let opened = calls::resource::open(self.node(), self.handle(), name, sizes, mutex_data);
            if opened.as_ref().err() != Some(&Error::Status(Status::INVALID_PARAMETER)) {
                return opened;
            }
            let now = calls::resource::query(self.node(), self.handle(), name)?;
            if now == sizes {
                return opened;
            }
            sizes = now;
        }
        Err(Error::Status(Status::INVALID_PARAMETER))
    }
}

impl Dxg {
    /// The adapter of a shared resource.
    pub fn resource_luid<'a>(&self, name: impl Into<ResourceName<'a>>) -> Result<Luid> {
        let mut arg = D3DKMT_GETSHAREDRESOURCEADAPTERLUID::zeroed();
        match name.into().raw() {
            Name::Global(handle) => arg.hGlobalShare = handle,
            Name::Nt(slot) => arg.hNtHandle = slot,
        }
        call(self.node(), &mut arg)?;
        Ok(Luid::of(arg.AdapterLuid))
    }
}

impl crate::Adapter {
    /// Reads the runtime data of a resource by its global handle into a buffer of its size.
    pub fn runtime_data(&self, handle: GlobalHandle, bytes: &mut [u8]) -> Result<()> {
        calls::resource::runtime_data(self.node(), self.handle(), handle.0, bytes).map(|_| ())
    }
}
