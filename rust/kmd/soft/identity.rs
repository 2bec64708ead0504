// SPDX-License-Identifier: GPL-2.0

//! Who the software adapter is: GUID, IDs, versions, and its data for user-mode drivers.

use super::config::Config;
use crate::ddi::caps::{
    DeviceIds,
    Luid, //
};

/// `D3DKMT_DRIVERVERSION`: WDDM 3.2, which has native fences and queues that processes fill.
/// Clients ask for at least 2800.
pub(super) const WDDM_VERSION: u32 = 3200;

/// The first version that has what this driver cannot do without: monitored fences.
const OLDEST_WDDM_VERSION: u32 = 2000;

/// Whether this is a version of WDDM, from the oldest to the newest that the driver can be.
pub(super) fn is_wddm_version(version: u32) -> bool {
    (OLDEST_WDDM_VERSION..=WDDM_VERSION).contains(&version) && version % 100 == 0
}

/// Version of this driver: major, minor, revision, build.
pub(super) const DRIVER_VERSION: [u16; 4] = [0, 1, 0, 0];

/// "ODXG", read as a little-endian number.
///
/// Adapters that are not on a PCI bus put four letters where others have their 16-bit PCI vendor.
/// So this collides with no PCI vendor, and not with 0x1414 either, whose drivers a client may
/// want to treat in its own way.
const VENDOR_ID: u32 = u32::from_le_bytes(*b"ODXG");
/// The first revision of the one device of that vendor. It is on no bus: it lives in the kernel.
pub(super) const DEVICE_IDS: DeviceIds = DeviceIds {
    vendor: VENDOR_ID,
    device: 1,
    sub_vendor: 0,
    sub_system: 0,
    revision: 1,
    bus_type: 0,
};

/// The directory in which clients look for files of the driver. It has to exist.
pub(super) const DRIVER_STORE: &str = "/usr/lib";

/// What all adapters' GUIDs begin with; the adapter's index follows. A UUID of version 8 (free
/// form), whose digits spell "opendxg". It names an adapter of a machine, not the machine.
const GUID_BASE: [u8; 12] = *b"opendx\x87g\x80\0\0\0";

/// An adapter's GUID, its bytes in the order of the text form.
pub(super) fn guid(index: u32) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = GUID_BASE;
    let [m, n, o, p] = index.to_be_bytes();

    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// Bytes of the data for user-mode drivers.
pub(super) const UMD_PRIVATE_SIZE: u32 = 32;

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
pub(super) fn umd_driver_private(config: &Config, luid: Luid, out: &mut [u8]) {
    let words = [
        VENDOR_ID,
        1,
        UMD_PRIVATE_SIZE,
        config.nodes,
        config.index,
        luid.low,
        // CAST: the bits.
        luid.high as u32,
        0,
    ];

    for (place, word) in out.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
