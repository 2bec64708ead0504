// SPDX-License-Identifier: GPL-2.0

//! What a KMD may ask of context allocations (MEM-82, MEM-84 to MEM-86).

use super::{
    gpu_ranges::PAGE,
    gpu_va_rules::{
        self,
        ClientSpace,
        Map,
        Protection,
        Wish, //
    },
    invalid_if,
    Invalid, //
};
use crate::ddi::{
    context_allocation::{
        flags,
        CreateContextAllocationArgs,
        MapContextAllocationArgs,
        UsedBy,
        MAX_SIZE, //
    },
    types::{
        ContextId,
        DeviceId, //
    }, //
};

/// Where allocations may be on an adapter: bit n is segment n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Those with memory of their own.
    pub memory: u32,
    /// The aperture, which stands for system memory.
    pub aperture: u32,
}

/// The bit of a segment.
fn bit(segment: u32) -> u32 {
    1_u32.checked_shl(segment).unwrap_or(0)
}

/// Whose a new one is to be. `SharedAcrossContexts` needs a device and no context, and anything
/// else a context alone.
pub fn used_by(args: &CreateContextAllocationArgs) -> Result<UsedBy, Invalid> {
    invalid_if(args.flags & !flags::KNOWN != 0)?;
    match (
        args.has(flags::SHARED_ACROSS_CONTEXTS),
        args.context,
        args.device,
    ) {
        (true, ContextId(0), DeviceId(1..)) => Ok(UsedBy::Device(args.device)),
        (false, ContextId(1..), DeviceId(0)) => Ok(UsedBy::Context(args.context)),
        _ => Err(Invalid),
    }
}

/// Where a new one may be: its segments, the best one first.
pub fn check_create(
    args: &CreateContextAllocationArgs,
    segments: Segments,
) -> Result<impl Iterator<Item = u32>, Invalid> {
    let Segments { memory, aperture } = segments;
    let supported = args.supported_segments;
    let preferred = args.preferred_segment;
    let alignment = u64::from(args.alignment);

    invalid_if(args.size == 0 || args.size % PAGE != 0 || args.size > MAX_SIZE)?;
    invalid_if(!alignment.is_power_of_two() || alignment < PAGE)?;
    invalid_if((supported | args.eviction_segments) & !(memory | aperture) != 0)?;
    invalid_if(supported & bit(preferred) == 0)?;
    Ok(core::iter::once(preferred)
        .chain((0..u32::BITS).filter(move |segment| *segment != preferred))
        .filter(move |segment| supported & bit(*segment) != 0))
}

/// Whether clients may see it (MEM-86).
pub fn may_map(args: &CreateContextAllocationArgs) -> bool {
    args.has(flags::USER_VISIBLE) || !args.has(flags::PROTECTED | flags::ACCESSED_PHYSICALLY)
}

/// What a map shows of one, and where.
pub fn check_map(
    args: &CreateContextAllocationArgs,
    map: &MapContextAllocationArgs,
    space: ClientSpace,
) -> Result<Map, Invalid> {
    let wish = Wish {
        base: map.base,
        minimum: map.minimum,
        maximum: map.maximum,
    };

    invalid_if(!may_map(args))?;
    gpu_va_rules::check_part(map.offset, map.pages, args.size / PAGE)?;

    let checked = Map::new(space, wish, (map.offset, map.pages), map.protection, true)?;

    invalid_if(!matches!(checked.protection, Protection::Pages { .. }))?;
    Ok(Map {
        driver_protection: map.driver_protection,
        ..checked
    })
}

/// A checksum by which the operation log tells private data from others: FNV-1a.
pub fn checksum(data: &[u8]) -> u32 {
    data.iter().fold(0x811c_9dc5, |sum: u32, byte| {
        // OVERFLOW: it is meant modulo 2^32.
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
