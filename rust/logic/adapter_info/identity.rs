// SPDX-License-Identifier: GPL-2.0

//! Who the software adapter is: names, GUIDs, device IDs, versions, and its private data.

use super::{
    check_physical_adapter,
    payload::Payload,
    AdapterCaps,
    Refusal,
    NODE_COUNT,
    PATH_BYTES, //
};

/// The name people see.
const NAME: &str = "opendxg software GPU";

/// Bytes of `D3DKMT_DRIVER_DESCRIPTION`, the largest payload.
pub(super) const DESCRIPTION_BYTES: usize = 8192;

/// Bytes of the private data.
pub(super) const PRIVATE_BYTES: usize = 32;

/// `D3DKMT_DRIVERVERSION`: WDDM 3.0, the revision whose structures the legacy interface has.
///
/// Clients ask for at least 2800. WDDM 3.1 and 3.2 brought native fences and user-mode submission,
/// which this driver does not have; a client that sees 3000 does not look for them.
const WDDM_VERSION: u32 = 3000;

/// Version of this driver: major, minor, revision, build.
const DRIVER_VERSION: [u16; 4] = [0, 1, 0, 0];

/// "ODXG", read as a little-endian number.
///
/// Adapters that are not on a PCI bus put four letters where others have their 16-bit PCI vendor.
/// So this collides with no PCI vendor, and not with 0x1414 either, whose drivers a client may
/// want to treat in its own way.
const VENDOR_ID: u32 = u32::from_le_bytes(*b"ODXG");
/// The software GPU.
const DEVICE_ID: u32 = 1;
const REVISION_ID: u32 = 1;
/// No bus: the adapter lives in the kernel.
const BUS_INTERNAL: u32 = 0;

/// What all adapters' GUIDs begin with; the adapter's index follows. A UUID of version 8 (free
/// form), whose digits spell "opendxg". It names an adapter of a machine, not the machine.
const GUID_BASE: [u8; 12] = *b"opendx\x87g\x80\0\0\0";

/// An adapter's GUID, its bytes in the order of the text form.
fn guid_bytes(caps: &AdapterCaps) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = GUID_BASE;
    let [m, n, o, p] = caps.index.to_be_bytes();

    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// ADAPTERGUID: first three parts as numbers, the rest as bytes.
pub(super) fn guid(caps: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = guid_bytes(caps);

    out.put(0, [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p])
}

/// `D3DKMT_QUERY_ADAPTER_UNIQUE_GUID`: the same GUID as text in braces.
pub(super) fn guid_text(caps: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let mut at = 0;
    let mut put = |unit: u8| {
        let written = out.put(at, [unit, 0]);

        // OVERFLOW: 40 characters are written in all; saturating is total.
        at = at.saturating_add(2);
        written
    };

    put(b'{')?;
    for (position, byte) in guid_bytes(caps).into_iter().enumerate() {
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

/// UMDRIVERPRIVATE: how a program recognises the software GPU. All fields are little-endian u32.
///
/// ```text
///  0  "ODXG"                    16  adapter index
///  4  version of this layout: 1 20  LuidLowPart
///  8  bytes written: 32         24  LuidHighPart
/// 12  number of nodes           28  0
/// ```
///
/// Later versions only append, so a reader checks the first field and that the third covers what
/// it wants.
pub(super) fn driver_private(caps: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u32(0, VENDOR_ID)?;
    out.put_u32(4, 1)?;
    // CAST: 32.
    out.put_u32(8, PRIVATE_BYTES as u32)?;
    out.put_u32(12, NODE_COUNT)?;
    out.put_u32(16, caps.index)?;
    out.put_u32(20, caps.luid_low)?;
    out.put(24, caps.luid_high.to_le_bytes())?;
    out.put_u32(28, 0)
}

/// `D3DKMT_QUERY_DEVICE_IDS`.
pub(super) fn device_ids(_: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    check_physical_adapter(out, 0)?;
    out.put_u32(4, VENDOR_ID)?;
    out.put_u32(8, DEVICE_ID)?;
    out.put_u32(12, 0)?;
    out.put_u32(16, 0)?;
    out.put_u32(20, REVISION_ID)?;
    out.put_u32(24, BUS_INTERNAL)
}

/// DRIVERVERSION.
pub(super) fn wddm_version(_: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u32(0, WDDM_VERSION)
}

/// `D3DKMT_KMD_DRIVER_VERSION`: four 16-bit parts, the major version on top.
pub(super) fn kmd_version(_: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let version = DRIVER_VERSION
        .into_iter()
        .fold(0, |all, part| (all << 16) | u64::from(part));

    out.put_u64(0, version)
}

/// `D3DKMT_ADAPTERREGISTRYINFO`: AdapterString and ChipType; no BIOS, no DAC.
pub(super) fn strings(_: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.clear_from(0);
    out.put_text(0, PATH_BYTES / 2, NAME)?;
    out.put_text(3 * PATH_BYTES, PATH_BYTES / 2, NAME)
}

/// `D3DKMT_GPUVERSION`: no BiosVersion; GpuArchitecture at 68.
pub(super) fn gpu_version(_: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    check_physical_adapter(out, 0)?;
    out.clear_from(4);
    out.put_text(68, 32, NAME)
}

/// `D3DKMT_DRIVER_DESCRIPTION`.
pub(super) fn description(_: &AdapterCaps, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_text(0, DESCRIPTION_BYTES / 2, NAME)
}
