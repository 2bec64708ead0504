// SPDX-License-Identifier: MIT OR Apache-2.0
//! CreateAllocation.

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Device, Status};

use super::{destroy, flags, lock, Locked, PAGE_SIZE};
use crate::call::{refused, succeeds};
use crate::poison::POISON;
use crate::sharing::share_raw;
use crate::{ensure, ensure_eq, fixture, TestResult};

/// A call of CreateAllocation and all it points to.
///
/// The members may be changed; [`Create::argument`] makes the argument from what they are then.
pub struct Create {
    device: Device,
    /// Flags of the call.
    pub flags: u32,
    /// Existing resource to add to, or 0.
    pub resource: u32,
    /// Description of a standard allocation, used with its flag.
    pub standard: Box<D3DKMT_CREATESTANDARDALLOCATION>,
    /// The allocations.
    pub infos: Vec<D3DDDI_ALLOCATIONINFO2>,
    /// Private driver data, one for each allocation that has some.
    pub driver: Vec<opendxg_allocation_data>,
    /// Private driver data of the resource.
    pub resource_driver: Vec<u8>,
    /// Private runtime data.
    pub runtime: Vec<u8>,
    sizes: Vec<u64>,
}

/// Private driver data of a linear allocation on the software adapter.
pub fn driver_data(size: u64) -> opendxg_allocation_data {
    opendxg_allocation_data {
        magic: OPENDXG_ALLOCATION_MAGIC,
        version: 1,
        size,
        width: size,
        pitch: size,
        height: 1,
        ..Default::default()
    }
}

impl Create {
    fn new(device: &Device, flags: u32, allocations: usize) -> Self {
        Self {
            device: device.clone(),
            flags,
            resource: 0,
            standard: Box::default(),
            infos: vec![NO_INFO; allocations],
            driver: Vec::new(),
            resource_driver: Vec::new(),
            runtime: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Allocations of these sizes, with memory from the driver.
    pub fn sized(device: &Device, flags: u32, sizes: &[u64]) -> Self {
        let mut create = Self::new(device, flags, sizes.len());
        create.driver = sizes.iter().copied().map(driver_data).collect();
        create.sizes = sizes.to_vec();
        create
    }

    /// A standard allocation over memory of this process.
    pub fn over(device: &Device, flags: u32, address: u64, size: u64) -> Self {
        let kind = flags::STANDARD | flags::SYSTEM_MEMORY;
        let mut create = Self::existing(device, flags | kind, size);
        create.infos[0].__bindgen_anon_1.pSystemMem = address;
        create
    }

    /// A standard allocation over a file or dma-buf.
    pub fn section(device: &Device, flags: u32, fd: u64, size: u64) -> Self {
        let kind = flags::STANDARD | flags::SECTION;
        let mut create = Self::existing(device, flags | kind, size);
        create.infos[0].__bindgen_anon_1.hSection = fd;
        create
    }

    /// Allocations of these sizes in memory of this process, without any flag that says so.
    pub fn sized_over(device: &Device, flags: u32, parts: &[(u64, u64)]) -> Self {
        let sizes: Vec<u64> = parts.iter().map(|&(_, size)| size).collect();
        let mut create = Self::sized(device, flags, &sizes);
        for (info, &(address, _)) in create.infos.iter_mut().zip(parts) {
            info.__bindgen_anon_1.pSystemMem = address;
        }
        create
    }

    /// A standard allocation in new memory that devices of every adapter can open.
    pub fn cross_adapter(device: &Device, flags: u32, size: u64) -> Self {
        let mut create = Self::existing(device, flags | flags::STANDARD, size);
        create.standard.Type = D3DKMT_STANDARDALLOCATIONTYPE_CROSSADAPTER;
        create
    }

    fn existing(device: &Device, flags: u32, size: u64) -> Self {
        let mut create = Self::new(device, flags, 1);
        create.standard.Type = D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP;
        create.standard.ExistingHeapData.Size = size;
        create.sizes = vec![size];
        create
    }

    /// The same with private runtime data.
    pub fn with_runtime(mut self, runtime: &[u8]) -> Self {
        self.runtime = runtime.to_vec();
        self
    }

    /// The argument. Outputs of the allocations hold a pattern.
    pub fn argument(&mut self) -> D3DKMT_CREATEALLOCATION {
        for (index, info) in self.infos.iter_mut().enumerate() {
            info.hAllocation = POISON;
            if let Some(data) = self.driver.get_mut(index) {
                info.pPrivateDriverData = (&raw mut *data) as u64;
                info.PrivateDriverDataSize = size_of_val(data) as u32;
            }
        }
        let mut arg = D3DKMT_CREATEALLOCATION::zeroed();
        arg.hDevice = self.device.handle().0;
        arg.hResource = self.resource;
        arg.hGlobalShare = POISON;
        arg.hPrivateRuntimeResourceHandle = u64::from(POISON);
        arg.Flags = self.flags;
        (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = bytes_of(&self.runtime);
        if self.flags & flags::STANDARD != 0 {
            arg.__bindgen_anon_1.pStandardAllocation = (&raw const *self.standard) as u64;
        } else {
            let (address, size) = bytes_of(&self.resource_driver);
            arg.__bindgen_anon_1.pPrivateDriverData = address;
            arg.PrivateDriverDataSize = size;
        }
        arg.NumAllocations = self.infos.len() as u32;
        if !self.infos.is_empty() {
            arg.__bindgen_anon_2.pAllocationInfo2 = self.infos.as_mut_ptr() as u64;
        }
        arg
    }

    /// Runs the call, which has to succeed.
    #[track_caller]
    pub fn run(&mut self) -> TestResult<OpenResource> {
        let mut arg = self.argument();
        self.run_argument(&mut arg)
    }

    /// Runs the call with an argument of [`Create::argument`] that was changed.
    #[track_caller]
    pub fn run_argument(&mut self, arg: &mut D3DKMT_CREATEALLOCATION) -> TestResult<OpenResource> {
        let raw = fixture::raw()?;
        succeeds(&raw, arg)?;
        Ok(self.adopt(&raw, arg))
    }

    /// What a call with this argument has made.
    pub fn adopt(&self, raw: &Raw, arg: &D3DKMT_CREATEALLOCATION) -> OpenResource {
        OpenResource {
            raw: raw.clone(),
            keep: self.device.clone(),
            device: self.device.handle().0,
            resource: if self.flags & flags::RESOURCE != 0 {
                arg.hResource
            } else {
                0
            },
            global: arg.hGlobalShare,
            allocations: self.infos.iter().map(|info| info.hAllocation).collect(),
            sizes: self.sizes.clone(),
        }
    }

    /// Runs the call, which has to be refused without an effect on the outputs.
    #[track_caller]
    pub fn is_refused(&mut self, status: Status) -> TestResult {
        let mut arg = self.argument();
        self.is_refused_with(&mut arg, status)
    }

    /// The same with a changed argument.
    #[track_caller]
    pub fn is_refused_with(
        &mut self,
        arg: &mut D3DKMT_CREATEALLOCATION,
        status: Status,
    ) -> TestResult {
        refused(&fixture::raw()?, arg, status)?;
        for info in &self.infos {
            ensure_eq!(info.hAllocation, POISON, "hAllocation after a refusal");
        }
        Ok(())
    }
}

const NO_INFO: D3DDDI_ALLOCATIONINFO2 =
    // SAFETY: a struct of integers.
    unsafe { core::mem::zeroed() };

fn bytes_of(bytes: &[u8]) -> (u64, u32) {
    let address = if bytes.is_empty() {
        0
    } else {
        bytes.as_ptr() as u64
    };
    (address, bytes.len() as u32)
}

/// What one call created or opened: a resource with its allocations, or allocations alone.
/// Destroyed when dropped.
pub struct OpenResource {
    pub(super) raw: Raw,
    /// Destroyed after the handles that go with it.
    pub(super) keep: Device,
    /// The device.
    pub device: u32,
    /// The resource, or 0.
    pub resource: u32,
    /// Its global handle, or 0.
    pub global: u32,
    /// The allocations.
    pub allocations: Vec<u32>,
    pub(super) sizes: Vec<u64>,
}

impl OpenResource {
    /// The device it is destroyed with.
    pub fn owner(&self) -> &Device {
        &self.keep
    }

    /// The calls by which it was made.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The first allocation.
    pub fn first(&self) -> u32 {
        self.allocations[0]
    }

    /// Maps the first allocation.
    pub fn lock(&self) -> TestResult<Locked> {
        self.lock_nth(0)
    }

    /// Maps an allocation.
    pub fn lock_nth(&self, index: usize) -> TestResult<Locked> {
        let size = self.sizes[index] as usize;
        lock(&self.raw, self.device, self.allocations[index], size)
    }

    /// Makes an NT handle with all access.
    pub fn share(&self) -> TestResult<std::os::fd::OwnedFd> {
        share_raw(&self.raw, &[self.resource], super::ALL_ACCESS, 0)
    }

    /// Destroys it, which has to succeed.
    pub fn destroy(mut self) -> TestResult {
        let status = self.release();
        ensure_eq!(status, Ok(Status::SUCCESS));
        Ok(())
    }

    /// Gives the handles away.
    pub fn leak(mut self) -> (u32, Vec<u32>) {
        let resource = core::mem::take(&mut self.resource);
        (resource, core::mem::take(&mut self.allocations))
    }

    /// The handles are in the order RES-6 demands: resource, then allocations, with equal
    /// distances.
    pub fn is_in_order(&self) -> TestResult {
        let all = [self.resource].into_iter().chain(self.allocations.clone());
        let all: Vec<u32> = all.filter(|&handle| handle != 0).collect();
        for pair in all.windows(2) {
            ensure!(pair[1] == pair[0] + 0x40, "handles {all:x?}");
        }
        Ok(())
    }

    fn release(&mut self) -> rustix::io::Result<Status> {
        let resource = core::mem::take(&mut self.resource);
        let list = core::mem::take(&mut self.allocations);
        if resource != 0 {
            return destroy(&self.raw, self.device, resource, &[], 0);
        }
        if list.is_empty() {
            return Ok(Status::SUCCESS);
        }
        destroy(&self.raw, self.device, 0, &list, 0)
    }
}

impl Drop for OpenResource {
    fn drop(&mut self) {
        let _ = self.release();
    }
}

/// A resource with one allocation of a page.
pub fn page_resource(device: &Device, flags: u32) -> TestResult<OpenResource> {
    Create::sized(device, flags, &[PAGE_SIZE]).run()
}
