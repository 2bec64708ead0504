// SPDX-License-Identifier: GPL-2.0

//! QUERYREGISTRY: there is no registry, but clients ask it for one path, DRIVERSTOREPATH.
//!
//! The value follows the fixed part of `D3DDDI_QUERYREGISTRY_INFO`. A client calls twice: with the
//! struct alone it learns the size (the call succeeds, `Status` is BUFFER_OVERFLOW), then it calls
//! again with struct and value. A key or value that does not exist is `Status` FAIL, not an error
//! of the call.

use super::{
    check_physical_adapter,
    payload::Payload,
    Asked,
    Refusal,
    Size, //
};
use crate::ddi::caps::DriverCaps;

/// Characters of DRIVERSTOREPATH and its NUL.
fn path_units(caps: &DriverCaps) -> usize {
    // OVERFLOW: a short text.
    caps.driver_store.characters().len().saturating_add(1)
}

/// What `OutputValueSize` says.
fn value_size(caps: &DriverCaps) -> u32 {
    // CAST: a short text of two bytes each.
    path_units(caps).saturating_mul(2) as u32
}

/// `sizeof(D3DDDI_QUERYREGISTRY_INFO)`.
const STRUCT_BYTES: usize = 552;

/// The struct alone, and the struct with the longest value.
pub(super) fn size(caps: &DriverCaps) -> Size {
    Size {
        min: STRUCT_BYTES,
        // CAST: 32 bits fit a usize.
        max: STRUCT_BYTES.saturating_add(value_size(caps) as usize),
    }
}

/// Offsets of `D3DDDI_QUERYREGISTRY_INFO`.
const QUERY_TYPE: usize = 0;
const QUERY_FLAGS: usize = 4;
const PHYSICAL_ADAPTER_INDEX: usize = 532;
const OUTPUT_VALUE_SIZE: usize = 536;
const STATUS: usize = 540;
const OUTPUT: usize = 544;

/// `D3DDDI_QUERYREGISTRY_TYPE`.
const SERVICE_KEY: u32 = 0;
const ADAPTER_KEY: u32 = 1;
const DRIVER_STORE: u32 = 2;
const DRIVER_IMAGE: u32 = 3;

/// `D3DDDI_QUERYREGISTRY_FLAGS`: TranslatePath and MutableValue. Neither changes anything here.
const KNOWN_FLAGS: u32 = (1 << 0) | (1 << 1);

/// `D3DDDI_QUERYREGISTRY_STATUS`.
const SUCCESS: u32 = 0;
const BUFFER_OVERFLOW: u32 = 1;
const FAIL: u32 = 2;

/// Answers QUERYREGISTRY.
pub(super) fn query(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let query_type = out.u32_at(QUERY_TYPE)?;

    if out.u32_at(QUERY_FLAGS)? & !KNOWN_FLAGS != 0 {
        return Err(Refusal::InvalidParameter);
    }
    check_physical_adapter(asked, out, PHYSICAL_ADAPTER_INDEX)?;

    let (status, value_size) = match query_type {
        DRIVER_STORE if out.len() < size(asked.caps).max => {
            (BUFFER_OVERFLOW, value_size(asked.caps))
        }
        DRIVER_STORE => (SUCCESS, value_size(asked.caps)),
        SERVICE_KEY | ADAPTER_KEY | DRIVER_IMAGE => (FAIL, 0),
        _ => return Err(Refusal::InvalidParameter),
    };

    out.clear_from(OUTPUT_VALUE_SIZE);
    out.put_u32(OUTPUT_VALUE_SIZE, value_size)?;
    out.put_u32(STATUS, status)?;
    if status == SUCCESS {
        out.put_text(
            OUTPUT,
            path_units(asked.caps),
            asked.caps.driver_store.characters(),
        )?;
    }
    Ok(())
}
