// SPDX-License-Identifier: GPL-2.0

//! Calls about the interface itself.

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    error::DxgResult,
    uapi::{
        opendxg_version,
        OPENDXG_VERSION, //
    }, //
};

/// DXG_IOCTL_VERSION (0x81): which numbers this kernel implements.
///
/// INVALID_PARAMETER if `reserved` is not 0.
pub(super) fn version(
    args: &mut opendxg_version,
    is_implemented: impl Fn(u32) -> bool,
) -> DxgResult {
    invalid_if(args.reserved != 0)?;

    args.version = OPENDXG_VERSION;
    for (word, numbers) in args.implemented.iter_mut().zip((0u32..).step_by(64)) {
        *word = (0..64)
            .filter(|bit| is_implemented(numbers + bit))
            .fold(0, |word, bit| word | 1 << bit);
    }
    Ok(())
}

/// DXG_IOCTL_NOP (0x8f): does nothing; the lower limit for measurements.
pub(super) fn nop(_call: Call<'_>, _nothing: &()) -> DxgResult {
    Ok(())
}
