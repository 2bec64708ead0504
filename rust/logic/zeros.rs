// SPDX-License-Identifier: GPL-2.0

//! Members of arguments that have to be 0.

use super::{
    invalid_if,
    Invalid, //
};

/// INVALID_PARAMETER unless a number and all bytes are 0.
pub fn check(number: u32, bytes: &[&[u8]]) -> Result<(), Invalid> {
    let mut all = bytes.iter().flat_map(|bytes| bytes.iter());

    invalid_if(number != 0 || all.any(|byte| *byte != 0))
}
