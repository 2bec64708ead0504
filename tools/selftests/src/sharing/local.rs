// SPDX-License-Identifier: MIT OR Apache-2.0
//! One local handle of an object.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Result, Status};

use super::{Client, Target};

/// What a local handle refers to, as far as destroying it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Synchronisation object.
    Sync,
    /// Resource.
    Resource,
    /// Allocation.
    Allocation,
    /// Keyed mutex.
    KeyedMutex,
}

/// A local handle. Destroyed when dropped.
pub struct Local {
    client: Client,
    what: What,
    handle: u32,
    global: u32,
    allocations: Vec<u32>,
}

impl Local {
    /// Takes over a handle.
    pub fn new(client: &Client, what: What, handle: u32) -> Self {
        let (client, allocations) = (client.clone(), Vec::new());
        let global = 0;
        Self {
            client,
            what,
            handle,
            global,
            allocations,
        }
    }

    pub(super) fn with_global(mut self, global: u32) -> Self {
        self.global = global;
        self
    }

    pub(super) fn with_allocations(mut self, allocations: Vec<u32>) -> Self {
        self.allocations = allocations;
        self
    }

    /// What it refers to.
    pub fn what(&self) -> What {
        self.what
    }

    /// The number.
    pub fn handle(&self) -> u32 {
        self.handle
    }

    /// The global handle of the object, if this one came with its creation; otherwise 0.
    pub fn global(&self) -> u32 {
        self.global
    }

    /// The allocations of the open resource, for a resource.
    pub fn allocations(&self) -> &[u32] {
        &self.allocations
    }

    /// The handle for calls that take one of any kind.
    pub fn target(&self) -> Target<'static> {
        Target::Local(self.handle)
    }

    /// Destroys the handle.
    pub fn destroy(mut self) -> Result<()> {
        let handle = core::mem::take(&mut self.handle);
        self.client.destroy(self.what, handle)
    }

    /// Gives the number away; nobody destroys it.
    pub fn into_raw(mut self) -> u32 {
        core::mem::take(&mut self.handle)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.handle != 0 {
            // Fails in a forked child, where the handle was never valid; nothing is lost then.
            let _ = self.client.destroy(self.what, self.handle);
        }
    }
}

impl Client {
    /// Destroys a local handle by its number.
    pub fn destroy(&self, what: What, handle: u32) -> Result<()> {
        match what {
            What::Sync => {
                let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
                arg.hSyncObject = handle;
                self.call(&mut arg)
            }
            What::KeyedMutex => {
                let mut arg = D3DKMT_DESTROYKEYEDMUTEX::zeroed();
                arg.hKeyedMutex = handle;
                self.call(&mut arg)
            }
            What::Resource => {
                let mut arg = D3DKMT_DESTROYALLOCATION2::zeroed();
                arg.hDevice = self.device_handle();
                arg.hResource = handle;
                self.call(&mut arg)
            }
            What::Allocation => {
                let list = [handle];
                let mut arg = D3DKMT_DESTROYALLOCATION2::zeroed();
                arg.hDevice = self.device_handle();
                arg.AllocationCount = 1;
                arg.phAllocationList = list.as_ptr() as u64;
                self.call(&mut arg)
            }
        }
        .map(|_: Status| ())
    }
}
