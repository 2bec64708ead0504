// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that engines reach, and the work that is in it.

use crate::Result;
use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, Device, FenceValues, GpuMap, GpuProtection, PagingQueue, Resident, ResidentFlags,
    ResourceBuilder,
};

/// Bytes of a page of the GPU.
const PAGE: u64 = 4096;
/// Bytes of a pixel, XRGB.
pub const PIXEL: u64 = 4;

/// So many bytes in whole pages.
pub fn in_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// Makes an allocation resident, maps all of it for the engines and waits until that is done;
/// returns its address.
pub fn map(paging: &PagingQueue, allocation: &Allocation, bytes: u64) -> Result<u64> {
    let resident = paging.make_resident(&[allocation], ResidentFlags::empty());
    let resident = match resident.map_err(|error| format!("make resident: {error}"))? {
        Resident::At(value) => value,
        Resident::TooMuch { bytes_to_trim } => {
            return Err(format!("there is no room: {bytes_to_trim} bytes too much").into());
        }
    };
    let map = GpuMap {
        pages: in_pages(bytes) / PAGE,
        protection: GpuProtection::WRITE,
        ..GpuMap::default()
    };
    let range = paging.map(Some(allocation), &map);
    let range = range.map_err(|error| format!("map for the GPU: {error}"))?;
    paging.wait(resident)?;
    paging.wait(range.value)?;
    Ok(range.address)
}

fn bytes_of(pixels: &[u32]) -> u64 {
    pixels.len() as u64 * PIXEL
}

/// Pixels of this process alone.
pub struct Pixels {
    allocation: Allocation,
    address: u64,
}

impl Pixels {
    /// Zeroed pixels in the memory of the GPU.
    pub fn local(paging: &PagingQueue, count: u64) -> Result<Self> {
        let bytes = in_pages(count * PIXEL);
        let allocation = paging.device().new_resource().local(bytes).create_one()?;
        let address = map(paging, &allocation, bytes)?;
        Ok(Self {
            allocation,
            address,
        })
    }

    /// Pixels in the memory of the system, drawn by the processor.
    pub fn drawn(paging: &PagingQueue, pixels: &[u32]) -> Result<Self> {
        Self::with(
            paging,
            pixels,
            paging
                .device()
                .new_resource()
                .linear(in_pages(bytes_of(pixels))),
        )
    }

    /// The same in the memory of the GPU.
    pub fn drawn_locally(paging: &PagingQueue, pixels: &[u32]) -> Result<Self> {
        Self::with(
            paging,
            pixels,
            paging
                .device()
                .new_resource()
                .local(in_pages(bytes_of(pixels))),
        )
    }

    fn with(paging: &PagingQueue, pixels: &[u32], resource: ResourceBuilder<'_>) -> Result<Self> {
        let bytes: Vec<u8> = pixels.iter().flat_map(|one| one.to_le_bytes()).collect();
        let size = in_pages(bytes.len() as u64);
        let allocation = resource.create_one()?;
        allocation.lock_write()?.write(0, &bytes);
        let address = map(paging, &allocation, size)?;
        Ok(Self {
            allocation,
            address,
        })
    }

    /// Where engines find them.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// So many of them, as they are now.
    pub fn read(&self, count: u64) -> Result<Vec<u32>> {
        read(&self.allocation, count)
    }
}

/// The first pixels of an allocation.
pub fn read(allocation: &Allocation, count: u64) -> Result<Vec<u32>> {
    let mut bytes = vec![0; (count * PIXEL) as usize];
    allocation.lock()?.read(0, &mut bytes);
    let words = bytes.chunks_exact(4);
    Ok(words
        .map(|word| u32::from_le_bytes(std::array::from_fn(|at| word[at])))
        .collect())
}

/// Command buffers, one after the other in one allocation.
pub struct Commands {
    _allocation: Allocation,
    address: u64,
    /// Where each begins, and its bytes.
    buffers: Vec<(u64, u32)>,
}

impl Commands {
    /// Puts them into memory.
    pub fn new(paging: &PagingQueue, all: &[Pm4]) -> Result<Self> {
        let mut buffers = Vec::new();
        let mut bytes = Vec::new();
        for commands in all {
            let begin = bytes.len() as u64;
            bytes.extend(commands.bytes());
            buffers.push((begin, (bytes.len() as u64 - begin).try_into()?));
        }
        let size = in_pages(bytes.len() as u64);
        let allocation = paging.device().new_resource().linear(size).create_one()?;
        allocation.lock_write()?.write(0, &bytes);
        let address = map(paging, &allocation, size)?;
        Ok(Self {
            _allocation: allocation,
            address,
            buffers,
        })
    }

    /// Address and length of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let buffers = self.buffers.iter();
        buffers.map(|(begin, bytes)| (self.address + begin, *bytes))
    }
}

/// A list of one fence and its value.
pub fn one(fence: &opendxg::SyncObject, value: u64) -> FenceValues {
    FenceValues::new().with(fence, value)
}

/// Fails if the engines have put the device in error.
pub fn check(device: &Device) -> Result {
    match device.execution_state()? {
        opendxg::ExecutionState::Active => Ok(()),
        state => Err(format!("the device is {state:?}: {:x?}", device.page_fault()).into()),
    }
}
