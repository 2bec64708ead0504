// SPDX-License-Identifier: MIT OR Apache-2.0
//! What most tests begin with.

use std::sync::OnceLock;

use opendxg::raw::Raw;
use opendxg::{Adapter, Device, Dxg, LocalHandle, Luid};

use crate::TestResult;

/// The LUID of an adapter that this program has for itself, in hexadecimal digits as configfs
/// shows it. Then it may run beside others, and its leak checks are about this adapter and the own
/// process.
pub const ADAPTER_VARIABLE: &str = "OPENDXG_TEST_ADAPTER";

/// The adapter that this program has for itself, if it has one.
pub fn own_adapter() -> TestResult<Option<Luid>> {
    let Ok(text) = std::env::var(ADAPTER_VARIABLE) else {
        return Ok(None);
    };
    let halves = text.split_once(':').and_then(|(high, low)| {
        let high = u32::from_str_radix(high, 16).ok()?;
        Some((high, u32::from_str_radix(low, 16).ok()?))
    });
    let (high, low) = halves.ok_or(format!("{ADAPTER_VARIABLE}={text} is no LUID"))?;
    // The same bits.
    let high = high as i32;
    Ok(Some(Luid { high, low }))
}

/// The adapter that the tests use: the own one, or the first. Opened by a new node; takes one
/// handle.
pub fn adapter() -> TestResult<Adapter> {
    static USED: OnceLock<Luid> = OnceLock::new();
    let dxg = Dxg::open()?;
    let luid = match USED.get() {
        Some(luid) => *luid,
        None => {
            let luid = match own_adapter()? {
                Some(own) => own,
                None => first_adapter(&dxg)?,
            };
            *USED.get_or_init(|| luid)
        }
    };
    Ok(dxg.open_adapter(luid)?)
}

fn first_adapter(dxg: &Dxg) -> TestResult<Luid> {
    let adapters = dxg.adapters()?;
    Ok(adapters.first().ok_or("there is no adapter")?.luid())
}

/// A device on that adapter.
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
