// SPDX-License-Identifier: MIT OR Apache-2.0
//! A local handle that is destroyed when its owner is dropped.

use core::fmt;
use std::sync::Arc;

use crate::calls::call;
use crate::calls::resource::destroy;
use crate::handle::LocalHandle;
use crate::node::Node;
use crate::raw::Argument;
use crate::uapi::*;
use crate::Result;

/// What kind of object a handle refers to: each kind is destroyed by another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Adapter,
    Device,
    Context,
    HwContext,
    HwQueue,
    Doorbell,
    PagingQueue,
    SyncObject,
    KeyedMutex,
    /// Holds the device that the destroying call names.
    Resource(LocalHandle),
    /// Holds the device that the destroying call names.
    Allocation(LocalHandle),
    /// Destroyed with the open resource that it is part of.
    InOpenResource,
    /// The fence of a queue, which is destroyed with the queue.
    InQueue,
}

/// A local handle with the duty to destroy it.
pub(crate) struct Owned {
    node: Arc<Node>,
    handle: LocalHandle,
    kind: Kind,
}

impl Owned {
    pub(crate) fn new(node: &Arc<Node>, handle: u32, kind: Kind) -> Self {
        let node = node.clone();
        let handle = LocalHandle(handle);
        Self { node, handle, kind }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    pub(crate) fn handle(&self) -> LocalHandle {
        self.handle
    }

    /// Gives the handle away without destroying it.
    pub(crate) fn into_raw(mut self) -> LocalHandle {
        core::mem::replace(&mut self.handle, LocalHandle::NONE)
    }

    /// Destroys the handle and reports what the driver said.
    pub(crate) fn destroy(mut self) -> Result<()> {
        let result = self.destroy_in_place();
        self.handle = LocalHandle::NONE;
        result
    }

    fn destroy_in_place(&self) -> Result<()> {
        macro_rules! destroy {
            ($name:ident $member:ident) => {{
                let mut arg = $name::zeroed();
                arg.$member = self.handle.0;
                call(&self.node, &mut arg).map(|_| ())
            }};
        }
        match self.kind {
            Kind::Adapter => destroy!(D3DKMT_CLOSEADAPTER hAdapter),
            Kind::Device => destroy!(D3DKMT_DESTROYDEVICE hDevice),
            Kind::Context => destroy!(D3DKMT_DESTROYCONTEXT hContext),
            Kind::HwContext => destroy!(D3DKMT_DESTROYHWCONTEXT hHwContext),
            Kind::HwQueue => destroy!(D3DKMT_DESTROYHWQUEUE hHwQueue),
            Kind::Doorbell => destroy!(D3DKMT_DESTROY_DOORBELL hDoorbell),
            Kind::PagingQueue => destroy!(D3DDDI_DESTROYPAGINGQUEUE hPagingQueue),
            Kind::SyncObject => destroy!(D3DKMT_DESTROYSYNCHRONIZATIONOBJECT hSyncObject),
            Kind::KeyedMutex => destroy!(D3DKMT_DESTROYKEYEDMUTEX hKeyedMutex),
            Kind::Resource(device) => {
                destroy(&self.node, (device, self.handle), &[], 0).map(|_| ())
            }
            Kind::Allocation(device) => {
                let list = [self.handle.0];
                destroy(&self.node, (device, LocalHandle::NONE), &list, 0).map(|_| ())
            }
            Kind::InOpenResource | Kind::InQueue => Ok(()),
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.handle != LocalHandle::NONE {
            // Not in a forked child: the handle was never valid there, and the node asks nobody.
            let _ = self.destroy_in_place();
        }
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:#010x})", self.kind, self.handle.0)
    }
}
