// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver as this process sees it.

use core::ptr::null_mut;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bitflags::bitflags;
use rustix::io::Errno;

use crate::adapter::{Adapter, Feature, Luid};
use crate::calls::object::query;
use crate::calls::{call, enum_adapters};
use crate::counters::Counters;
use crate::error::OrOs;
use crate::handle::{slot, GlobalHandle};
use crate::ioctl;
use crate::node::{Node, Protocol};
use crate::object::{name_buffer, ObjectInfo};
use crate::owned::{Kind, Owned};
use crate::raw::{code, Argument, Raw};
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::{Result, Status};

/// Number of the call that does nothing.
pub const NO_OP: u32 = DXG_NR_NOP;

bitflags! {
    /// Which adapters to list besides those that render and display.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AdapterFilter: u64 {
        /// Adapters that only compute.
        const INCLUDE_COMPUTE_ONLY = D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly;
        /// Adapters that only display.
        const INCLUDE_DISPLAY_ONLY = D3DKMT_ENUMADAPTERS_FILTER_IncludeDisplayOnly;
    }
}

/// An open `/dev/dxg`. Cheap to clone; objects made through it keep it open.
///
/// It belongs to the process that opened it. In a forked child every call fails with an error for
/// which [`Error::is_foreign_process`](crate::Error::is_foreign_process) holds; the child opens
/// its own.
#[derive(Clone, Debug)]
pub struct Dxg {
    node: Arc<Node>,
}

/// What the kernel implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version {
    /// Version of the extensions.
    pub version: u32,
    implemented: [u64; 4],
}

impl Version {
    /// Whether call number `nr` has a handler.
    pub fn implements(&self, nr: u32) -> bool {
        let word = self.implemented.get(nr as usize / 64);
        word.is_some_and(|word| (word >> (nr % 64)) & 1 != 0)
    }

    /// The numbers of all calls that have a handler.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..256).filter(|&nr| self.implements(nr))
    }
}

impl Dxg {
    /// Opens the node named by `OPENDXG_DEVICE`, or `/dev/dxg`.
    pub fn open() -> Result<Self> {
        Self::open_node(Node::from_env())
    }

    /// Opens the node at `path`.
    pub fn open_path(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open_node(Node::at(path.into()))
    }

    fn open_node(node: Node) -> Result<Self> {
        node.open().or_os()?;
        Ok(Self {
            node: Arc::new(node),
        })
    }

    /// The driver behind the node of another object.
    pub(crate) fn from_node(node: &Arc<Node>) -> Self {
        Self { node: node.clone() }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Where the node is.
    pub fn path(&self) -> &Path {
        self.node.path()
    }

    /// How calls travel to the kernel. Only [`Protocol::Exact`] delivers every status exactly.
    pub fn protocol(&self) -> Protocol {
        self.node.protocol()
    }

    /// What the kernel implements. NOT_SUPPORTED on a kernel without extensions.
    pub fn version(&self) -> Result<Version> {
        let mut arg = opendxg_version::zeroed();
        call(&self.node, &mut arg)?;
        Ok(Version {
            version: arg.version,
            implemented: arg.implemented,
        })
    }

    /// All adapters, each opened once.
    pub fn adapters(&self) -> Result<Vec<Adapter>> {
        self.adapters_filtered(AdapterFilter::all())
    }

    /// The adapters that pass `filter`, each opened once.
    pub fn adapters_filtered(&self, filter: AdapterFilter) -> Result<Vec<Adapter>> {
        let filter = filter.bits();
        loop {
            let capacity = enum_adapters(&self.node, filter, &mut [])?;
            let mut infos = vec![D3DKMT_ADAPTERINFO::default(); capacity];
            match enum_adapters(&self.node, filter, &mut infos) {
                // One was added between the two calls.
                Err(error) if error.status() == Status::BUFFER_TOO_SMALL => {}
                Err(error) => return Err(error),
                Ok(filled) => {
                    let infos = infos.iter().take(filled);
                    return Ok(infos
                        .map(|info| Adapter::from_info(&self.node, info))
                        .collect());
                }
            }
        }
    }

    /// How many adapters there are, without opening them.
    pub fn adapter_count(&self) -> Result<usize> {
        let filter = AdapterFilter::all().bits();
        enum_adapters(&self.node, filter, &mut [])
    }

    /// Opens the adapter with this LUID.
    pub fn open_adapter(&self, luid: Luid) -> Result<Adapter> {
        let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
        arg.AdapterLuid = luid.raw();
        call(&self.node, &mut arg)?;
        Ok(Adapter::new(&self.node, arg.hAdapter, luid))
    }

    /// Opens a synchronisation object by its global handle.
    pub fn open_global(&self, handle: GlobalHandle) -> Result<SyncObject> {
        let mut arg = D3DKMT_OPENSYNCHRONIZATIONOBJECT::zeroed();
        arg.hSharedHandle = handle.0;
        call(&self.node, &mut arg)?;
        let owned = Owned::new(&self.node, arg.hSyncObject, Kind::SyncObject);
        Ok(SyncObject::new(owned, None, Some(handle)))
    }

    /// Opens a synchronisation object by NT handle without a device, so without a mapped value.
    ///
    /// See [`Device::open_fence`](crate::Device::open_fence) for the usual way.
    pub fn open_nt(&self, handle: impl AsFd) -> Result<SyncObject> {
        let mut arg = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE::zeroed();
        arg.hNtHandle = slot(handle.as_fd());
        call(&self.node, &mut arg)?;
        let owned = Owned::new(&self.node, arg.hSyncObject, Kind::SyncObject);
        Ok(SyncObject::new(owned, None, None))
    }

    /// What a global handle refers to, for who may open it.
    pub fn query_global(&self, handle: GlobalHandle) -> Result<ObjectInfo> {
        let mut arg = opendxg_query_object::zeroed();
        let mut name = name_buffer();
        let handle = (handle.0.into(), OPENDXG_HANDLE_GLOBAL);
        query(&self.node, handle, &mut arg, &mut name)?;
        Ok(ObjectInfo::new(&arg, &name))
    }

    /// Asks whether a feature of the system as a whole (`DXGK_FEATURE_ID` outside the category of
    /// drivers) is there; [`Adapter::feature`] asks for one of a driver.
    pub fn feature(&self, id: u32) -> Result<Feature> {
        Feature::query(&self.node, 0, id)
    }

    /// The call that does nothing: the price of reaching the driver.
    pub fn no_op(&self) -> Result<()> {
        let fd = self.node.fd().ok_or(Errno::NXIO).or_os()?;
        // SAFETY: the call has no argument.
        unsafe { ioctl::issue(fd, code(NO_OP, 0), null_mut()) }.or_os()?;
        Ok(())
    }

    /// What is alive in the driver.
    pub fn counters(&self) -> Result<Counters> {
        Counters::read(self.node.fd().ok_or(Errno::NXIO).or_os()?)
    }

    /// The calls below the typed interface.
    ///
    /// # Safety
    ///
    /// Every argument passed to a method of [`Raw`] holds only addresses that the call may read
    /// and write as the specification says, or at which nothing is mapped; and no call destroys a
    /// handle whose typed object (with its mapped value) is used afterwards.
    #[cfg(feature = "raw")]
    pub unsafe fn raw(&self) -> Raw {
        Raw::new(self.node.clone())
    }
}

impl AsFd for Dxg {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // PANIC: a `Dxg` is made from an open node and never closes it.
        self.node.fd().expect("a Dxg is open")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmap() {
        let version = Version {
            version: 1,
            implemented: [1 << 1, 0, 1 | (1 << 15), 1 << 63],
        };
        assert_eq!(
            version.numbers().collect::<Vec<_>>(),
            [0x01, 0x80, 0x8f, 0xff]
        );
        assert!(!version.implements(256));
    }
}
