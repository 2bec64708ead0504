// SPDX-License-Identifier: GPL-2.0

//! Who an adapter is: names, GUIDs, device IDs, versions.

use super::{
    check_physical_adapter,
    payload::Payload,
    Asked,
    Refusal,
    PATH_BYTES, //
};

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
    check_physical_adapter(asked, out, 0)?;
    out.put_u32(4, asked.caps.vendor_id)?;
    out.put_u32(8, asked.caps.device_id)?;
    out.put_u32(12, 0)?;
    out.put_u32(16, 0)?;
    out.put_u32(20, asked.caps.revision_id)?;
    out.put_u32(24, asked.caps.bus_type)
}

/// DRIVERVERSION.
pub(super) fn wddm_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u32(0, asked.caps.wddm_version)
}

/// `D3DKMT_KMD_DRIVER_VERSION`: four 16-bit parts, the major version on top.
pub(super) fn kmd_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let version = asked
        .caps
        .driver_version
        .into_iter()
        .fold(0, |all, part| (all << 16) | u64::from(part));

    out.put_u64(0, version)
}

/// `D3DKMT_ADAPTERREGISTRYINFO`: AdapterString and ChipType; no BIOS, no DAC.
pub(super) fn strings(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.clear_from(0);
    out.put_text(0, PATH_BYTES / 2, asked.caps.name.characters())?;
    out.put_text(3 * PATH_BYTES, PATH_BYTES / 2, asked.caps.name.characters())
}

/// `D3DKMT_GPUVERSION`: no BiosVersion; GpuArchitecture at 68.
pub(super) fn gpu_version(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    check_physical_adapter(asked, out, 0)?;
    out.clear_from(4);
    out.put_text(68, 32, asked.caps.name.characters())
}

/// `D3DKMT_DRIVER_DESCRIPTION`.
pub(super) fn description(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_text(0, DESCRIPTION_BYTES / 2, asked.caps.name.characters())
}
