// SPDX-License-Identifier: MIT OR Apache-2.0
//! What most tests begin with.

use opendxg::raw::Raw;
use opendxg::{Adapter, Device, Dxg, LocalHandle};

use crate::Outcome;

/// The first adapter of a freshly opened node.
pub fn adapter() -> Outcome<Adapter> {
    let adapters = Dxg::open()?.adapters()?;
    adapters.into_iter().next().ok_or("there is no adapter".into())
}

/// A device on the first adapter.
pub fn device() -> Outcome<Device> {
    Ok(adapter()?.create_device()?)
}

/// Permission to issue any call on a freshly opened node. Handles belong to the process, so this works with
/// handles of every typed object of this process.
pub fn raw() -> Outcome<Raw> {
    let dxg = Dxg::open()?;
    // SAFETY: the tests of this crate hand in addresses of live buffers of the right size, or addresses at
    // which nothing is mapped or nothing may be written.
    Ok(unsafe { dxg.raw() })
}

/// The local handle that the next successful call will return: the probe for "consumed no handle".
pub fn next_handle() -> Outcome<u32> {
    let adapter = adapter()?;
    let LocalHandle(last) = adapter.handle();
    Ok(last + 0x40)
}
