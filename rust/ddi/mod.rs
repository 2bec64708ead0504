// SPDX-License-Identifier: GPL-2.0

//! The driver interface: what is between the OS part (`dxgk`) and a kernel-mode driver (`kmd`).
//!
//! The OS part calls a KMD through [`Kmd`], and only through a [`port::Port`]. No file above this
//! one knows which KMD an adapter has (GPU-102). Everything here is pure: it sees `core` and
//! `platform`, so that the host tests run the very same code. `Documentation/ddi.md` has the whole
//! shape, with the entries that come with their first caller.
//!
//! ```text
//! class.rs   the context classes
//! types.rs   errors, ids, cookies
//! caps.rs    what a KMD says about its adapter
//! gate.rs    who is inside
//! port.rs    a started KMD, from StartDevice to RemoveDevice
//! ```

pub mod caps;
pub mod class;
mod gate;
pub mod port;
pub mod types;

use caps::{
    AdapterQuery,
    NodeMetadata,
    StartInfo, //
};
use class::Passive;
use types::KmdResult;

/// What a kernel-mode driver implements for one adapter.
///
/// AddDevice is the constructor of the implementing type, RemoveDevice is its drop. An entry whose
/// result is no [`KmdResult`] must succeed.
pub trait Kmd: Send + Sync {
    /// StartDevice, once, before anything else.
    fn start_device(&mut self, class: &Passive, info: &StartInfo) -> KmdResult;

    /// StopDevice: from now on there are only destroys. Serialised with everything.
    fn stop_device(&self, class: &Passive);

    /// QueryAdapterInfo.
    fn query_adapter_info(&self, class: &Passive, query: AdapterQuery<'_>);

    /// GetNodeMetadata of a node that there is.
    fn get_node_metadata(&self, class: &Passive, node: u32) -> NodeMetadata;

    /// QueryFeatureSupport: whether the driver has this feature (`DXGK_FEATURE_ID`).
    fn query_feature_support(&self, class: &Passive, feature: u32) -> bool;
}
