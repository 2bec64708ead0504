// SPDX-License-Identifier: GPL-2.0

//! Which kinds of adapters an enumeration lists (abi.md section 6.1).

use crate::{
    ddi::caps::AdapterType,
    logic::{
        invalid_if,
        Invalid, //
    }, //
};

// Bits of `D3DKMT_ENUMADAPTERS_FILTER`.

/// Those that only compute, too.
pub const INCLUDE_COMPUTE_ONLY: u64 = 1 << 0;
/// Those that only display, too.
pub const INCLUDE_DISPLAY_ONLY: u64 = 1 << 1;

/// What is listed besides the adapters that render.
#[derive(Clone, Copy)]
pub struct Filter {
    compute_only: bool,
    display_only: bool,
}

impl Filter {
    /// What D3DKMTEnumAdapters2 lists. It is older than adapters that only compute, and its callers
    /// expect that each can render or display.
    pub const GRAPHICS: Self = Self {
        compute_only: false,
        display_only: true,
    };

    /// The filter of D3DKMTEnumAdapters3.
    pub fn decode(bits: u64) -> Result<Self, Invalid> {
        invalid_if(bits & !(INCLUDE_COMPUTE_ONLY | INCLUDE_DISPLAY_ONLY) != 0)?;
        Ok(Self {
            compute_only: bits & INCLUDE_COMPUTE_ONLY != 0,
            display_only: bits & INCLUDE_DISPLAY_ONLY != 0,
        })
    }

    /// Whether an adapter of this type is listed.
    pub fn includes(self, ty: &AdapterType) -> bool {
        let is_display_only = ty.display && !ty.render && !ty.compute_only;

        (self.compute_only || !ty.compute_only) && (self.display_only || !is_display_only)
    }
}
