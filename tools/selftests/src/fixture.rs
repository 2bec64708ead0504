// SPDX-License-Identifier: MIT OR Apache-2.0
//! What most tests begin with.

use std::sync::OnceLock;

use opendxg::raw::Raw;
use opendxg::{Adapter, Device, Dxg, LocalHandle, Luid};

use crate::TestResult;

/// The first adapter of a freshly opened node. Takes one handle.
pub fn adapter() -> TestResult<Adapter> {
    static FIRST: OnceLock<Luid> = OnceLock::new();
    let dxg = Dxg::open()?;
    let luid = match FIRST.get() {
        Some(luid) => *luid,
        None => {
            let adapters = dxg.adapters()?;
            let first = adapters.first().ok_or("there is no adapter")?.luid();
            *FIRST.get_or_init(|| first)
        }
    };
    Ok(dxg.open_adapter(luid)?)
}

/// A device on the first adapter.
pub fn device() -> TestResult<Device> {
    Ok(adapter()?.create_device()?)
}

/// Permission to issue any call on a freshly opened node. Handles belong to the process, so this
/// works with handles of every typed object of this process.
pub fn raw() -> TestResult<Raw> {
    let dxg = Dxg::open()?;
    // SAFETY: the tests of this crate hand in addresses of live buffers of the right size, or
    // addresses at which nothing is mapped or nothing may be written.
    Ok(unsafe { dxg.raw() })
}

/// The local handle that the next successful call will return: the probe for "consumed no handle".
/// Takes one handle itself.
pub fn next_handle() -> TestResult<u32> {
    let adapter = adapter()?;
    let LocalHandle(last) = adapter.handle();
    Ok(last + 0x40)
}
