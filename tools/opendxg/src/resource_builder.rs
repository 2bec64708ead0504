// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making allocations and resources.

use std::os::fd::AsFd;

use bitflags::bitflags;

use crate::allocation::Allocation;
use crate::calls;
use crate::calls::resource::{Blobs, Memory, NewAllocation, Standard};
use crate::device::Device;
use crate::handle::slot;
use crate::pages::Pages;
use crate::raw::Argument;
use crate::resource::Resource;
use crate::uapi::*;
use crate::{Error, Result, Status};

bitflags! {
    /// Properties of new allocations and of their resource.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AllocationFlags: u32 {
        /// Make a resource around the allocations.
        const CREATE_RESOURCE = D3DKMT_CREATEALLOCATIONFLAGS_CreateResource;
        /// Other processes can open the resource.
        const CREATE_SHARED = D3DKMT_CREATEALLOCATIONFLAGS_CreateShared;
        /// Anybody may open it by global handle, where the administrator allows that.
        const NON_SECURE = D3DKMT_CREATEALLOCATIONFLAGS_NonSecure;
        /// Only processes that were admitted open it by global handle.
        const RESTRICT_SHARED_ACCESS = D3DKMT_CREATEALLOCATIONFLAGS_RestrictSharedAccess;
        /// Existing memory of this process.
        const EXISTING_SYS_MEM = D3DKMT_CREATEALLOCATIONFLAGS_ExistingSysMem;
        /// Shared by NT handles only, not by a global handle.
        const NT_SECURITY_SHARING = D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing;
        /// The GPU only reads.
        const READ_ONLY = D3DKMT_CREATEALLOCATIONFLAGS_ReadOnly;
        /// Usable by other adapters.
        const CROSS_ADAPTER = D3DKMT_CREATEALLOCATIONFLAGS_CrossAdapter;
        /// One allocation that no driver describes.
        const STANDARD_ALLOCATION = D3DKMT_CREATEALLOCATIONFLAGS_StandardAllocation;
        /// Existing memory behind a descriptor.
        const EXISTING_SECTION = D3DKMT_CREATEALLOCATIONFLAGS_ExistingSection;
        const _ = !0;
    }
}

/// What to make; see [`Device::new_resource`].
///
/// ```no_run
/// # fn main() -> opendxg::Result<()> {
/// # let dxg = opendxg::Dxg::open()?;
/// # let device = dxg.adapters()?[0].create_device()?;
/// let image = device.new_resource().image(1920, 1080, 1920 * 4).nt_shared().create()?;
/// image.allocations()[0].lock_write()?.fill(0x80);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ResourceBuilder<'a> {
    device: &'a Device,
    flags: AllocationFlags,
    runtime_data: &'a [u8],
    driver_data: Vec<u8>,
    standard: Option<Standard>,
    allocations: Vec<Item<'a>>,
}

/// One allocation to make.
#[derive(Debug)]
struct Item<'a> {
    driver_data: Vec<u8>,
    memory: Memory<'a>,
    size: Option<usize>,
    priority: Option<u32>,
}

impl<'a> ResourceBuilder<'a> {
    fn item(mut self, driver_data: Vec<u8>, memory: Memory<'a>, size: Option<usize>) -> Self {
        self.allocations.push(Item {
            driver_data,
            memory,
            size,
            priority: None,
        });
        self
    }

    /// Adds an allocation of so many bytes, a multiple of 4096, on the software adapter.
    pub fn linear(self, size: u64) -> Self {
        self.described(size, size, size, 1, 0)
    }

    /// Adds an allocation of so many bytes, a multiple of 4096, that lives in memory of the
    /// software adapter.
    pub fn local(self, size: u64) -> Self {
        self.described(size, size, size, 1, OPENDXG_ALLOCATION_LOCAL)
    }

    /// Adds an allocation of so many bytes, a multiple of 4096, that is one range to physical
    /// addresses: in memory of the software adapter, or else in its aperture.
    pub fn physical(self, size: u64, local: bool) -> Self {
        self.described(
            size,
            size,
            size,
            1,
            in_local(local) | OPENDXG_ALLOCATION_PHYSICAL,
        )
    }

    /// The same, of which the software adapter is told where it is while it is resident.
    pub fn physical_notified(self, size: u64, local: bool) -> Self {
        let flags = OPENDXG_ALLOCATION_PHYSICAL | OPENDXG_ALLOCATION_NOTIFY_RESIDENCY;
        self.described(size, size, size, 1, in_local(local) | flags)
    }

    /// Adds an allocation for rows of `pitch` bytes on the software adapter, rounded up to whole
    /// pages.
    pub fn image(self, width: u32, height: u32, pitch: u64) -> Self {
        let size = (pitch * u64::from(height)).next_multiple_of(4096);
        self.described(size, width.into(), pitch, height, 0)
    }

    fn described(self, size: u64, width: u64, pitch: u64, height: u32, flags: u32) -> Self {
        let data = opendxg_allocation_data {
            magic: OPENDXG_ALLOCATION_MAGIC,
            version: 1,
            size,
            width,
            pitch,
            height,
            flags,
            ..opendxg_allocation_data::default()
        };
        self.item(bytes_of(&data), Memory::New, usize::try_from(size).ok())
    }

    /// Adds an allocation that private driver data describe.
    pub fn with_driver_data(self, data: &[u8]) -> Self {
        let size = crate::allocation::described_size(data);
        self.item(data.to_vec(), Memory::New, size)
    }

    /// Makes one standard allocation of pages of this process.
    pub fn existing_pages(mut self, pages: &'a Pages) -> Self {
        self.standard = Some(Standard::Existing(pages.len() as u64));
        let flags = AllocationFlags::STANDARD_ALLOCATION | AllocationFlags::EXISTING_SYS_MEM;
        self.flags(flags)
            .item(Vec::new(), Memory::Existing(pages), Some(pages.len()))
    }

    /// Adds an allocation of pages of this process that private driver data describe. If the driver
    /// does not know them, the first mapping for the GPU says how many pages there are.
    pub fn pages_with_driver_data(self, pages: &'a Pages, data: &[u8]) -> Self {
        self.item(data.to_vec(), Memory::Existing(pages), None)
    }

    /// Makes one standard allocation of a memfd or a dma-buf, of `size` bytes.
    pub fn existing_section(mut self, file: &'a impl AsFd, size: u64) -> Self {
        self.standard = Some(Standard::Existing(size));
        let flags = AllocationFlags::STANDARD_ALLOCATION | AllocationFlags::EXISTING_SECTION;
        let memory = Memory::Section(slot(file.as_fd()));
        self.flags(flags)
            .item(Vec::new(), memory, usize::try_from(size).ok())
    }

    /// Makes one standard allocation of new memory, of `size` bytes, that devices of every adapter
    /// can open.
    pub fn cross_adapter_memory(mut self, size: u64) -> Self {
        self.standard = Some(Standard::CrossAdapter(size));
        self.flags(AllocationFlags::STANDARD_ALLOCATION).item(
            Vec::new(),
            Memory::New,
            usize::try_from(size).ok(),
        )
    }

    /// Sets the priority of the allocation that was added last.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn priority(mut self, priority: u32) -> Self {
        let last = self.allocations.last_mut();
        last.expect("an allocation was added").priority = Some(priority);
        self
    }

    /// Adds flags.
    pub fn flags(mut self, flags: AllocationFlags) -> Self {
        self.flags |= flags;
        self
    }

    /// Shared by global handle.
    pub fn shared(self) -> Self {
        self.flags(AllocationFlags::CREATE_SHARED)
    }

    /// Shared by NT handles.
    pub fn nt_shared(self) -> Self {
        self.flags(AllocationFlags::CREATE_SHARED | AllocationFlags::NT_SECURITY_SHARING)
    }

    /// Private runtime data of the resource.
    pub fn runtime_data(mut self, data: &'a [u8]) -> Self {
        self.runtime_data = data;
        self
    }

    /// Private driver data of the resource.
    pub fn resource_driver_data(mut self, data: &[u8]) -> Self {
        self.driver_data = data.to_vec();
        self
    }

    /// Makes a resource with the allocations, of which there may be none.
    pub fn create(mut self) -> Result<Resource> {
        self.flags |= AllocationFlags::CREATE_RESOURCE;
        let device = self.device;
        let (arg, handles) = self.run(0)?;
        let allocations = handles.zip(self.sizes());
        let allocations =
            allocations.map(|(handle, size)| Allocation::in_open_resource(device, handle, size));
        let mut resource = Resource::created(device, arg.hResource, allocations.collect());
        resource.set_global(arg.hGlobalShare);
        Ok(resource)
    }

    /// Makes the allocations without a resource: each is a container by itself.
    pub fn create_alone(mut self) -> Result<Vec<Allocation>> {
        let device = self.device;
        let (_, handles) = self.run(0)?;
        Ok(handles
            .zip(self.sizes())
            .map(|(handle, size)| Allocation::own(device, handle, size))
            .collect())
    }

    /// Makes one allocation without a resource.
    pub fn create_one(self) -> Result<Allocation> {
        let mut made = self.create_alone()?;
        made.pop().ok_or(Error::Status(Status::INVALID_PARAMETER))
    }

    /// Adds the allocations to an existing resource.
    pub fn add_to(mut self, resource: &mut Resource) -> Result<()> {
        let device = self.device;
        let (_, handles) = self.run(resource.handle().0)?;
        let pairs = handles.zip(self.sizes());
        resource
            .add(pairs.map(|(handle, size)| Allocation::in_open_resource(device, handle, size)));
        Ok(())
    }

    fn sizes(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        self.allocations.iter().map(|item| item.size)
    }

    /// Makes the allocations. Returns the outputs, and the handles of the allocations.
    fn run(
        &mut self,
        resource: u32,
    ) -> Result<(D3DKMT_CREATEALLOCATION, impl Iterator<Item = u32>)> {
        let mut arg = D3DKMT_CREATEALLOCATION::zeroed();
        arg.hDevice = self.device.handle().0;
        arg.hResource = resource;
        arg.Flags = self.flags.bits();
        let mut blobs = Blobs {
            runtime: self.runtime_data,
            driver: &mut self.driver_data,
            standard: self.standard,
        };
        let new = self.allocations.iter_mut().map(|item| NewAllocation {
            driver: &mut item.driver_data,
            memory: item.memory,
            priority: item.priority,
        });
        let made = calls::resource::create(self.device.node(), &mut arg, &mut blobs, new)?;
        Ok((arg, made.into_iter().map(|info| info.hAllocation)))
    }
}

/// The bytes of a description, member by member.
fn in_local(local: bool) -> u32 {
    match local {
        true => OPENDXG_ALLOCATION_LOCAL,
        false => 0,
    }
}

fn bytes_of(data: &opendxg_allocation_data) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<opendxg_allocation_data>());
    bytes.extend(data.magic.to_ne_bytes());
    bytes.extend(data.version.to_ne_bytes());
    bytes.extend(data.size.to_ne_bytes());
    bytes.extend(data.width.to_ne_bytes());
    bytes.extend(data.pitch.to_ne_bytes());
    bytes.extend(data.height.to_ne_bytes());
    bytes.extend(data.alignment.to_ne_bytes());
    bytes.extend(data.flags.to_ne_bytes());
    bytes.extend(data.reserved.to_ne_bytes());
    bytes
}

impl Device {
    /// Begins to describe a resource, or allocations without one.
    pub fn new_resource(&self) -> ResourceBuilder<'_> {
        ResourceBuilder {
            device: self,
            flags: AllocationFlags::empty(),
            runtime_data: &[],
            driver_data: Vec::new(),
            standard: None,
            allocations: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_has_the_layout_of_the_header() {
        let data = opendxg_allocation_data {
            magic: OPENDXG_ALLOCATION_MAGIC,
            version: 1,
            size: 2,
            width: 3,
            pitch: 4,
            height: 5,
            alignment: 6,
            flags: 7,
            reserved: 8,
        };
        let bytes = bytes_of(&data);
        assert_eq!(bytes.len(), size_of::<opendxg_allocation_data>());
        let offset = core::mem::offset_of!(opendxg_allocation_data, height);
        assert_eq!(bytes[offset..][..4], 5u32.to_ne_bytes());
        assert_eq!(crate::allocation::described_size(&bytes), Some(2));
    }
}
