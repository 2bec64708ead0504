// SPDX-License-Identifier: GPL-2.0

//! Who an adapter is: names, GUIDs, device IDs, versions.

use super::{
    check_physical_adapter,
    payload::Payload,
    Asked,
    Refusal,
    PATH_BYTES, //
};
use crate::ddi::caps::BusAddress;

/// Bytes of `D3DKMT_DRIVER_DESCRIPTION`, the largest payload.
pub(super) const DESCRIPTION_BYTES: usize = 8192;

/// ADAPTERGUID: first three parts as numbers, the rest as bytes.
pub(super) fn guid(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = asked.caps.guid;

    out.put(0, [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p])
}

/// `D3DKMT_QUERY_ADAPTER_UNIQUE_GUID`: the same GUID as text in braces.
pub(super) fn guid_text(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let mut at = 0;
    let mut put = |unit: u8| {
        let written = out.put(at, [unit, 0]);

        // OVERFLOW: 40 characters are written in all; saturating is total.
        at = at.saturating_add(2);
        written
    };

    put(b'{')?;
    for (position, byte) in asked.caps.guid.into_iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            put(b'-')?;
        }
        put(hex_digit(byte >> 4))?;
        put(hex_digit(byte & 0xf))?;
    }
    put(b'}')?;
    put(0)?;
    put(0)
}

fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' | nibble,
        _ => b'A'.wrapping_add(nibble.wrapping_sub(10)),
    }
}

/// `D3DKMT_QUERY_DEVICE_IDS`.
pub(super) fn device_ids(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let ids = &asked.caps.device_ids;

    check_physical_adapter(asked, out, 0)?;
    out.put_u32(4, ids.vendor)?;
    out.put_u32(8, ids.device)?;
    out.put_u32(12, ids.sub_vendor)?;
    out.put_u32(16, ids.sub_system)?;
    out.put_u32(20, ids.revision)?;
    out.put_u32(24, ids.bus_type)
}

/// `D3DKMT_ADAPTERADDRESS`. All ones is what a bus driver reports for an address it does not know;
/// zeroes would be the address of a real PCI function.
pub(super) fn bus_address(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let address = asked.caps.bus_address.unwrap_or(BusAddress {
        bus: u32::MAX,
        device: u32::MAX,
        function: u32::MAX,
    });

    out.put_u32(0, address.bus)?;
    out.put_u32(4, address.device)?;
    out.put_u32(8, address.function)
}

/// DRIVERVERSION.
pub(super) fn wddm_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u32(0, asked.caps.wddm_version)
}

/// `D3DKMT_KMD_DRIVER_VERSION`.
pub(super) fn kmd_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u64(0, version(asked.caps.driver_version))
}

/// `D3DKMT_UMD_DRIVER_VERSION`.
pub(super) fn umd_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u64(0, version(asked.caps.umd_version))
}

/// Four 16-bit parts, the major version on top.
fn version(parts: [u16; 4]) -> u64 {
    parts
        .into_iter()
        .fold(0, |all, part| (all << 16) | u64::from(part))
}

/// `D3DKMT_ADAPTERREGISTRYINFO`: AdapterString, BiosString, DacType, ChipType.
pub(super) fn strings(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    const UNITS: usize = PATH_BYTES / 2;

    let hardware = &asked.caps.hardware;

    out.put_text(0, UNITS, asked.caps.name.characters())?;
    out.put_text(PATH_BYTES, UNITS, hardware.bios_string.characters())?;
    out.put_text(2 * PATH_BYTES, UNITS, hardware.dac_type.characters())?;
    out.put_text(3 * PATH_BYTES, UNITS, hardware.chip_type.characters())
}

/// `D3DKMT_GPUVERSION`: BiosVersion and GpuArchitecture.
pub(super) fn gpu_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let hardware = &asked.caps.hardware;

    check_physical_adapter(asked, out, 0)?;
    out.put_text(4, 32, hardware.bios_version.characters())?;
    out.put_text(68, 32, hardware.gpu_architecture.characters())
}

/// `D3DKMT_DRIVER_DESCRIPTION`.
pub(super) fn description(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_text(0, DESCRIPTION_BYTES / 2, asked.caps.name.characters())
}
