// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking for the sizes of shared resources, and opening them.

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, Status};

use super::OpenResource;
use crate::call::{refused, succeeds};
use crate::{ensure, fixture, TestResult};

/// The sizes of what a resource consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of private runtime data.
    pub runtime: u32,
    /// Bytes of private driver data of all allocations.
    pub total: u32,
    /// Bytes of private driver data of the resource.
    pub resource_driver: u32,
    /// Number of allocations.
    pub allocations: u32,
}

/// QueryResourceInfo.
#[track_caller]
pub fn query_global(device: &Device, global: u32) -> TestResult<Shape> {
    let mut arg = D3DKMT_QUERYRESOURCEINFO::zeroed();
    (arg.hDevice, arg.hGlobalShare) = (device.handle().0, global);
    succeeds(&fixture::raw()?, &mut arg)?;
    Ok(Shape {
        runtime: arg.PrivateRuntimeDataSize,
        total: arg.TotalPrivateDriverDataSize,
        resource_driver: arg.ResourcePrivateDriverDataSize,
        allocations: arg.NumAllocations,
    })
}

/// QueryResourceInfoFromNtHandle.
#[track_caller]
pub fn query_nt(device: &Device, fd: impl AsFd) -> TestResult<Shape> {
    let mut arg = D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE::zeroed();
    arg.hDevice = device.handle().0;
    arg.hNtHandle = fd.as_fd().as_raw_fd() as u64;
    succeeds(&fixture::raw()?, &mut arg)?;
    Ok(Shape {
        runtime: arg.PrivateRuntimeDataSize,
        total: arg.TotalPrivateDriverDataSize,
        resource_driver: arg.ResourcePrivateDriverDataSize,
        allocations: arg.NumAllocations,
    })
}

/// The buffers of an opening.
pub struct Buffers {
    /// The allocations.
    pub infos: Vec<D3DDDI_OPENALLOCATIONINFO2>,
    /// Receives the runtime data.
    pub runtime: Vec<u8>,
    /// Receives the driver data of the resource.
    pub resource_driver: Vec<u8>,
    /// Receives the driver data of the allocations.
    pub total: Vec<u64>,
}

/// What is in a buffer that a call has not written.
pub const UNTOUCHED: u8 = 0xa7;

impl Buffers {
    fn new(shape: Shape) -> Self {
        let words = (shape.total as usize).div_ceil(8);
        Self {
            infos: vec![D3DDDI_OPENALLOCATIONINFO2::default(); shape.allocations as usize],
            runtime: vec![UNTOUCHED; shape.runtime as usize],
            resource_driver: vec![UNTOUCHED; shape.resource_driver as usize],
            total: vec![u64::from_ne_bytes([UNTOUCHED; 8]); words.max(1)],
        }
    }

    /// The driver data of an allocation, where its element points.
    pub fn driver_data(&self, index: usize) -> TestResult<&[u8]> {
        let info = &self.infos[index];
        let start = self.total.as_ptr() as u64;
        let space = size_of_val(self.total.as_slice());
        let offset = info
            .pPrivateDriverData
            .checked_sub(start)
            .ok_or("before the buffer")? as usize;
        let size = info.PrivateDriverDataSize as usize;
        ensure!(offset + size <= space, "{offset:#x}+{size:#x} outside");
        // SAFETY: inside `total`, as just checked.
        Ok(unsafe {
            core::slice::from_raw_parts(self.total.as_ptr().cast::<u8>().add(offset), size)
        })
    }

    /// Whether nothing was written.
    pub fn untouched(&self) -> bool {
        let same = |bytes: &[u8]| bytes.iter().all(|&byte| byte == UNTOUCHED);
        let word = u64::from_ne_bytes([UNTOUCHED; 8]);
        same(&self.runtime)
            && same(&self.resource_driver)
            && self.total.iter().all(|&got| got == word)
            && self.infos.iter().all(|info| info.hAllocation == 0)
    }

    fn opened(&self, device: &Device, resource: u32) -> TestResult<OpenResource> {
        let mut sizes = Vec::new();
        for index in 0..self.infos.len() {
            sizes.push(described_size(self.driver_data(index)?));
        }
        Ok(OpenResource {
            raw: fixture::raw()?,
            keep: device.clone(),
            device: device.handle().0,
            resource,
            global: 0,
            allocations: self.infos.iter().map(|info| info.hAllocation).collect(),
            sizes,
        })
    }
}

/// The size of an allocation, as its driver data say.
fn described_size(data: &[u8]) -> u64 {
    let offset = core::mem::offset_of!(opendxg_allocation_data, size);
    let bytes = data.get(offset..offset + 8).map(<[u8; 8]>::try_from);
    bytes.and_then(Result::ok).map_or(0, u64::from_ne_bytes)
}

/// An address, or 0 for an empty buffer.
fn address<T>(buffer: &mut [T]) -> u64 {
    if buffer.is_empty() {
        0
    } else {
        buffer.as_mut_ptr() as u64
    }
}

/// OpenResource, with buffers of the right sizes until a test changes them.
pub struct OpenGlobal {
    device: Device,
    /// The argument.
    pub arg: D3DKMT_OPENRESOURCE,
    /// What it points to.
    pub buffers: Buffers,
}

impl OpenGlobal {
    /// An opening that should succeed.
    pub fn new(device: &Device, global: u32) -> TestResult<Self> {
        let shape = query_global(device, global)?;
        let mut buffers = Buffers::new(shape);
        let mut arg = D3DKMT_OPENRESOURCE::zeroed();
        (arg.hDevice, arg.hGlobalShare) = (device.handle().0, global);
        arg.NumAllocations = shape.allocations;
        arg.__bindgen_anon_1.pOpenAllocationInfo2 = address(&mut buffers.infos);
        arg.pPrivateRuntimeData = address(&mut buffers.runtime);
        arg.PrivateRuntimeDataSize = shape.runtime;
        arg.pResourcePrivateDriverData = address(&mut buffers.resource_driver);
        arg.ResourcePrivateDriverDataSize = shape.resource_driver;
        arg.pTotalPrivateDriverDataBuffer = address(&mut buffers.total);
        arg.TotalPrivateDriverDataBufferSize = shape.total;
        let device = device.clone();
        Ok(Self {
            device,
            arg,
            buffers,
        })
    }

    /// Opens.
    #[track_caller]
    pub fn run(&mut self) -> TestResult<OpenResource> {
        succeeds(&fixture::raw()?, &mut self.arg)?;
        let mut opened = self.buffers.opened(&self.device, self.arg.hResource)?;
        opened.global = self.arg.hGlobalShare;
        Ok(opened)
    }

    /// Has to be refused, with nothing written anywhere.
    #[track_caller]
    pub fn is_refused(&mut self, status: Status) -> TestResult {
        refused(&fixture::raw()?, &mut self.arg, status)?;
        ensure!(self.buffers.untouched(), "a refused opening wrote");
        Ok(())
    }
}

/// OpenResourceFromNtHandle, with buffers of the right sizes until a test changes them.
pub struct OpenNt {
    device: Device,
    /// The argument.
    pub arg: D3DKMT_OPENRESOURCEFROMNTHANDLE,
    /// What it points to.
    pub buffers: Buffers,
}

impl OpenNt {
    /// An opening that should succeed.
    pub fn new(device: &Device, fd: impl AsFd) -> TestResult<Self> {
        let shape = query_nt(device, &fd)?;
        let mut buffers = Buffers::new(shape);
        // These may not be NULL, whatever the size.
        buffers.runtime.reserve(1);
        let mut arg = D3DKMT_OPENRESOURCEFROMNTHANDLE::zeroed();
        arg.hDevice = device.handle().0;
        arg.hNtHandle = fd.as_fd().as_raw_fd() as u64;
        arg.NumAllocations = shape.allocations;
        arg.pOpenAllocationInfo2 = address(&mut buffers.infos);
        arg.PrivateRuntimeDataSize = shape.runtime;
        arg.pPrivateRuntimeData = buffers.runtime.as_mut_ptr() as u64;
        arg.pResourcePrivateDriverData = address(&mut buffers.resource_driver);
        arg.ResourcePrivateDriverDataSize = shape.resource_driver;
        arg.pTotalPrivateDriverDataBuffer = address(&mut buffers.total);
        arg.TotalPrivateDriverDataBufferSize = shape.total;
        let device = device.clone();
        Ok(Self {
            device,
            arg,
            buffers,
        })
    }

    /// Opens.
    #[track_caller]
    pub fn run(&mut self) -> TestResult<OpenResource> {
        succeeds(&fixture::raw()?, &mut self.arg)?;
        self.buffers.opened(&self.device, self.arg.hResource)
    }

    /// Has to be refused, with nothing written anywhere.
    #[track_caller]
    pub fn is_refused(&mut self, status: Status) -> TestResult {
        refused(&fixture::raw()?, &mut self.arg, status)?;
        ensure!(self.buffers.untouched(), "a refused opening wrote");
        Ok(())
    }
}

/// `opendxg_open_resource`, with buffers of the right sizes until a test changes them.
pub struct OpenAtOnce {
    device: Device,
    /// The argument.
    pub arg: opendxg_open_resource,
    /// What it points to.
    pub buffers: Buffers,
}

impl OpenAtOnce {
    fn new(device: &Device, shape: Shape, handle_type: u32, handle: u64) -> Self {
        let mut buffers = Buffers::new(shape);
        let mut arg = opendxg_open_resource::zeroed();
        arg.device = device.handle().0;
        (arg.handle_type, arg.handle) = (handle_type, handle);
        arg.allocations = address(&mut buffers.infos);
        arg.allocation_count = shape.allocations;
        arg.runtime_data = address(&mut buffers.runtime);
        arg.runtime_data_size = shape.runtime;
        arg.driver_data = address(&mut buffers.resource_driver);
        arg.driver_data_size = shape.resource_driver;
        arg.total_driver_data = address(&mut buffers.total);
        arg.total_driver_data_size = shape.total;
        let device = device.clone();
        Self {
            device,
            arg,
            buffers,
        }
    }

    /// An opening by global handle that should succeed.
    pub fn global(device: &Device, global: u32) -> TestResult<Self> {
        let shape = query_global(device, global)?;
        Ok(Self::new(
            device,
            shape,
            OPENDXG_HANDLE_GLOBAL,
            global.into(),
        ))
    }

    /// An opening by NT handle that should succeed.
    pub fn nt(device: &Device, fd: impl AsFd) -> TestResult<Self> {
        let shape = query_nt(device, &fd)?;
        let slot = fd.as_fd().as_raw_fd() as u64;
        Ok(Self::new(device, shape, OPENDXG_HANDLE_NT, slot))
    }

    /// The sizes that the argument has.
    pub fn shape(&self) -> Shape {
        Shape {
            runtime: self.arg.runtime_data_size,
            total: self.arg.total_driver_data_size,
            resource_driver: self.arg.driver_data_size,
            allocations: self.arg.allocation_count,
        }
    }

    /// Opens.
    #[track_caller]
    pub fn run(&mut self) -> TestResult<OpenResource> {
        succeeds(&fixture::raw()?, &mut self.arg)?;
        self.buffers
            .infos
            .truncate(self.arg.allocation_count as usize);
        self.buffers.opened(&self.device, self.arg.resource)
    }

    /// Has to be refused, with nothing written anywhere.
    #[track_caller]
    pub fn is_refused(&mut self, status: Status) -> TestResult {
        refused(&fixture::raw()?, &mut self.arg, status)?;
        ensure!(self.buffers.untouched(), "a refused opening wrote");
        Ok(())
    }
}
