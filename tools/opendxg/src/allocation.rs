// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations: memory that devices and processes use.

use core::ops::Deref;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mm::{mprotect, MprotectFlags};

use crate::calls::{self, call};
use crate::device::Device;
use crate::handle::{adopt_checked, LocalHandle};
use crate::object::{duplicate, AnyObject};
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::shared_bytes::{SharedBytes, SharedBytesMut};
use crate::uapi::*;
use crate::{Error, Result, Status};

/// Where an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Residency {
    /// In memory of the GPU.
    GpuMemory,
    /// In system memory.
    SharedMemory,
    /// Nowhere that the GPU reaches.
    NotResident,
    /// A value this crate does not know.
    Other(u32),
}

/// An allocation with a local handle.
///
/// One that came with a [`Resource`](crate::Resource) is destroyed with it. One made by
/// [`duplicate`](Allocation::duplicate) is a reference of its own and keeps the whole resource
/// alive.
#[derive(Debug)]
pub struct Allocation {
    owned: Owned,
    device: Device,
    size: Option<usize>,
}

impl Allocation {
    /// An allocation whose handle is destroyed when it is dropped.
    pub(crate) fn own(device: &Device, handle: u32, size: Option<usize>) -> Self {
        Self::with_kind(device, handle, size, Kind::Allocation(device.handle()))
    }

    /// An allocation whose handle is part of an open resource.
    pub(crate) fn in_open_resource(device: &Device, handle: u32, size: Option<usize>) -> Self {
        Self::with_kind(device, handle, size, Kind::InOpenResource)
    }

    fn with_kind(device: &Device, handle: u32, size: Option<usize>, kind: Kind) -> Self {
        Self {
            owned: Owned::new(device.node(), handle, kind),
            device: device.clone(),
            size,
        }
    }

    /// The device of the handle.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The local handle. Stays owned by this object, or by the open resource.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// How many bytes there are, where that is known: made here, or described by its maker.
    pub fn size(&self) -> Option<usize> {
        self.size
    }

    /// Maps the memory for the CPU, to read it until the guard is dropped.
    ///
    /// INVALID_PARAMETER when the size is not known: use [`lock_size`](Self::lock_size).
    pub fn lock(&self) -> Result<Mapping<'_>> {
        // SAFETY: the size of the allocation.
        unsafe { self.lock_size(self.known_size()?) }
    }

    /// As [`lock`](Self::lock), to write as well. ACCESS_DENIED when the allocation is read-only,
    /// or was opened read-only.
    pub fn lock_write(&self) -> Result<MappingMut<'_>> {
        // SAFETY: the size of the allocation.
        unsafe { self.lock_write_size(self.known_size()?) }
    }

    /// As [`lock`](Self::lock), for the first `size` bytes of an allocation of unknown size.
    ///
    /// # Safety
    ///
    /// The allocation has at least so many bytes.
    pub unsafe fn lock_size(&self, size: usize) -> Result<Mapping<'_>> {
        let (start, locked) = self.locked()?;
        // SAFETY: mapped until it is unlocked, which ends the guard.
        let bytes = unsafe { SharedBytes::at(start, size) }.ok_or(NO_ADDRESS)?;
        Ok(Mapping {
            bytes,
            _locked: locked,
        })
    }

    /// As [`lock_write`](Self::lock_write), for the first `size` bytes of an allocation of unknown
    /// size.
    ///
    /// # Safety
    ///
    /// The allocation has at least so many bytes.
    pub unsafe fn lock_write_size(&self, size: usize) -> Result<MappingMut<'_>> {
        let (start, locked) = self.locked()?;
        // A mapping that is not to be written cannot be made writable. The other ones are already.
        let protection = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the mapping of this lock; nothing is taken away.
        match unsafe { mprotect(start.cast(), size, protection) } {
            Ok(()) => {}
            Err(Errno::ACCESS) => return Err(Error::Status(Status::ACCESS_DENIED)),
            Err(errno) => return Err(Error::os(errno)),
        }
        // SAFETY: mapped and writable until it is unlocked, which ends the guard.
        let bytes = unsafe { SharedBytesMut::at(start, size) }.ok_or(NO_ADDRESS)?;
        Ok(MappingMut {
            bytes,
            _locked: locked,
        })
    }

    fn known_size(&self) -> Result<usize> {
        self.size.ok_or(Error::Status(Status::INVALID_PARAMETER))
    }

    /// Maps the memory: where, and what undoes it.
    fn locked(&self) -> Result<(*mut u8, Locked<'_>)> {
        Ok((self.lock_raw()?, Locked(self)))
    }

    /// Maps the memory and leaves it mapped: the address, to be given back with
    /// [`unlock_raw`](Self::unlock_raw).
    pub fn lock_raw(&self) -> Result<*mut u8> {
        calls::resource::lock(self.device.node(), self.device.handle(), self.handle())
    }

    /// Undoes one lock.
    ///
    /// # Safety
    ///
    /// Nobody uses the address of that lock any more.
    pub unsafe fn unlock_raw(&self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { calls::resource::unlock(self.device.node(), self.device.handle(), self.handle()) }
    }

    /// A dma-buf of the memory, which other drivers and processes can use. It keeps the allocation
    /// alive.
    pub fn export_dmabuf(&self) -> Result<OwnedFd> {
        self.export(0)
    }

    /// A dma-buf that cannot be written.
    pub fn export_dmabuf_read_only(&self) -> Result<OwnedFd> {
        self.export(OPENDXG_EXPORT_READ_ONLY)
    }

    fn export(&self, flags: u32) -> Result<OwnedFd> {
        let mut arg = opendxg_export_dmabuf::zeroed();
        arg.allocation = self.handle().0;
        arg.flags = flags;
        call(self.device.node(), &mut arg)?;
        adopt_checked(arg.fd)
    }

    /// Another local handle, with a reference of its own to the container.
    pub fn duplicate(&self) -> Result<Self> {
        let handle = duplicate(self.device.node(), self.handle(), OPENDXG_WHOLE)?;
        Ok(Self::own(&self.device, handle, self.size))
    }

    /// The resource that the allocation is part of, or the allocation itself if it is part of
    /// none, as a new local handle.
    pub fn container(&self) -> Result<AnyObject> {
        let mut arg = opendxg_get_container::zeroed();
        arg.allocation = self.handle().0;
        call(self.device.node(), &mut arg)?;
        AnyObject::adopt(&self.device, arg.container)
    }

    /// Sets the residency priority (`D3DDDI_ALLOCATIONPRIORITY_*`).
    pub fn set_priority(&self, priority: u32) -> Result<()> {
        let (node, device) = (self.device.node(), self.device.handle());
        calls::resource::set_priority(node, device, self.handle(), priority)
    }

    /// The residency priority.
    pub fn priority(&self) -> Result<u32> {
        calls::resource::priority(self.device.node(), self.device.handle(), self.handle())
    }

    /// Where the memory is.
    pub fn residency(&self) -> Result<Residency> {
        let (node, device) = (self.device.node(), self.device.handle());
        let status = calls::resource::residency(node, device, self.handle())?;
        Ok(match status {
            D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY => Residency::GpuMemory,
            D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINSHAREDMEMORY => Residency::SharedMemory,
            D3DKMT_ALLOCATIONRESIDENCYSTATUS_NOTRESIDENT => Residency::NotResident,
            other => Residency::Other(other),
        })
    }

    /// Destroys the local handle and reports what the module said. If the handle came with a
    /// resource, this takes the allocation out of that resource.
    pub fn destroy(self) -> Result<()> {
        let (node, device) = (self.device.node(), self.device.handle());
        let none = (device, LocalHandle::NONE);
        let result = calls::resource::destroy(node, none, &[self.handle().0], 0);
        self.owned.into_raw();
        result.map(|_| ())
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}

const NO_ADDRESS: Error = Error::Protocol("lock without an address");

/// One lock of an allocation, which is undone when it is dropped.
#[derive(Debug)]
struct Locked<'a>(&'a Allocation);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: the bytes of this lock are borrowed from the mapping, which is going away.
        // Refused in a forked child, where the memory stays mapped.
        let _ = unsafe { self.0.unlock_raw() };
    }
}

/// A mapped allocation to read; unmapped when dropped. When somebody destroys the allocation all
/// the same, the next access raises SIGBUS.
#[derive(Debug)]
pub struct Mapping<'a> {
    bytes: SharedBytes,
    _locked: Locked<'a>,
}

impl Deref for Mapping<'_> {
    type Target = SharedBytes;

    fn deref(&self) -> &SharedBytes {
        &self.bytes
    }
}

/// A mapped allocation to read and write; otherwise as [`Mapping`].
#[derive(Debug)]
pub struct MappingMut<'a> {
    bytes: SharedBytesMut,
    _locked: Locked<'a>,
}

impl Deref for MappingMut<'_> {
    type Target = SharedBytesMut;

    fn deref(&self) -> &SharedBytesMut {
        &self.bytes
    }
}

/// The size that the creator of an allocation on the software adapter stored with it.
pub(crate) fn described_size(driver_data: &[u8]) -> Option<usize> {
    let word = |offset| driver_data.get(offset..)?.first_chunk().copied();
    let magic = u32::from_ne_bytes(word(0)?);
    if magic != OPENDXG_ALLOCATION_MAGIC {
        return None;
    }
    let size = driver_data.get(8..)?.first_chunk().copied();
    usize::try_from(u64::from_ne_bytes(size?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_in_the_driver_data() {
        let mut data = OPENDXG_ALLOCATION_MAGIC.to_ne_bytes().to_vec();
        data.extend(1u32.to_ne_bytes());
        assert_eq!(described_size(&data), None);
        data.extend(8192u64.to_ne_bytes());
        assert_eq!(described_size(&data), Some(8192));
        data[0] ^= 1;
        assert_eq!(described_size(&data), None);
        assert_eq!(described_size(&[]), None);
    }
}
