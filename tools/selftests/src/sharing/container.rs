// SPDX-License-Identifier: MIT OR Apache-2.0
//! Containers and their parts: duplicates, containers, the memory of an allocation.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Result;

use super::local::{Local, What};
use super::Client;

impl Client {
    /// DUP_LOCAL of the object itself.
    pub fn dup_local(&self, what: What, handle: u32) -> Result<Local> {
        self.dup_part(what, handle, OPENDXG_WHOLE)
    }

    /// DUP_LOCAL with an index.
    pub fn dup_part(&self, what: What, handle: u32, index: u32) -> Result<Local> {
        let mut arg = opendxg_dup_local::zeroed();
        (arg.handle, arg.index) = (handle, index);
        self.call(&mut arg)?;
        Ok(Local::new(self, what, arg.new_handle))
    }

    /// GET_CONTAINER of an allocation in a resource.
    pub fn container(&self, allocation: u32) -> Result<Local> {
        let mut arg = opendxg_get_container::zeroed();
        arg.allocation = allocation;
        self.call(&mut arg)?;
        Ok(Local::new(self, What::Resource, arg.container))
    }

    /// Maps an allocation, hands its first `length` bytes to `use_bytes`, and unmaps it.
    pub fn locked<R>(
        &self,
        allocation: u32,
        length: usize,
        use_bytes: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let mut arg = D3DKMT_LOCK2::zeroed();
        (arg.hDevice, arg.hAllocation) = (self.device_handle(), allocation);
        self.call(&mut arg)?;
        // SAFETY: mapped by the call, with at least this many bytes, until it is unlocked below.
        let bytes = unsafe { core::slice::from_raw_parts_mut(arg.pData as *mut u8, length) };
        let result = use_bytes(bytes);
        let mut arg = D3DKMT_UNLOCK2::zeroed();
        (arg.hDevice, arg.hAllocation) = (self.device_handle(), allocation);
        self.call(&mut arg)?;
        Ok(result)
    }

    /// The first byte of an allocation.
    pub fn peek(&self, allocation: u32) -> Result<u8> {
        self.locked(allocation, 1, |bytes| bytes[0])
    }

    /// Writes the first byte of an allocation.
    pub fn poke(&self, allocation: u32, value: u8) -> Result<()> {
        self.locked(allocation, 1, |bytes| bytes[0] = value)
    }
}
