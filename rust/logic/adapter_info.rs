// SPDX-License-Identifier: GPL-2.0

//! What an adapter says about itself: the answers of D3DKMTQueryAdapterInfo, made of what its KMD
//! says.
//!
//! Types, payload layouts and sizes are those of abi.md section 6.10, always with 16-bit WCHAR; the
//! client library converts for programs with a 4-byte `wchar_t`. They are the same for all
//! adapters, and no KMD knows them. Three rules decide every answer:
//!
//! - What an adapter is comes from its KMD. What the OS part cannot do is absent, whatever the KMD
//!   can do: a cap is 0, a name is the empty string.
//! - A payload that names a video present source, a node or a physical adapter that is not there is
//!   an invalid parameter.
//! - A refused query leaves the payload as it was. An answered one writes every output of the
//!   payload, and nothing beyond [`Size::max`].
//!
//! ```text
//! adapter_info.rs             the table: type -> size and answer; the fixed-size answers
//! adapter_info/payload.rs     bounds-checked access to the caller's buffer
//! adapter_info/caps.rs        its type, and the caps of the WDDM versions
//! adapter_info/filter.rs      which adapters an enumeration lists
//! adapter_info/identity.rs    names, GUIDs, IDs, versions
//! adapter_info/registry.rs    QUERYREGISTRY and its two-step size protocol
//! ```

mod caps;
pub(crate) mod filter;
mod identity;
mod payload;
mod registry;

pub use self::payload::Refusal;

use self::payload::Payload;
use super::feature::FeatureSet;
use crate::ddi::{
    caps::{
        AdapterQuery,
        DriverCaps,
        UMD_VERSIONS, //
    },
    class::Passive,
    types::Text,
    Kmd, //
};

/// An adapter that is asked.
pub struct Asked<'a> {
    /// What its KMD says about it.
    pub caps: &'a DriverCaps,
    /// The driver features in use.
    pub features: FeatureSet,
    /// The KMD itself, for what is not in the caps.
    pub kmd: &'a dyn Kmd,
    /// Where the question is asked.
    pub class: &'a Passive,
}

/// How much of the caller's payload a query type uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// A shorter payload is refused.
    pub min: usize,
    /// Bytes from here on are neither read nor written, so that the caller need not copy them.
    pub max: usize,
}

/// Bytes of a 260-character name.
const PATH_BYTES: usize = 2 * 260;

type AnswerFn = fn(&Asked<'_>, &mut Payload<'_>) -> Result<(), Refusal>;

/// The payload size of the query type `ty`; `None` if there is no such type.
pub fn payload_size(caps: &DriverCaps, ty: u32) -> Option<Size> {
    row(caps, ty).map(|(size, _)| size)
}

/// Answers the query `ty` in place.
///
/// `buf` holds what the caller passed, inputs included. It may be cut off at [`Size::max`].
pub fn query(asked: &Asked<'_>, ty: u32, buf: &mut [u8]) -> Result<(), Refusal> {
    let (size, answer) = row(asked.caps, ty).ok_or(Refusal::InvalidParameter)?;

    if buf.len() < size.min {
        return Err(Refusal::InvalidParameter);
    }

    let used = buf.len().min(size.max);
    let bytes = buf.get_mut(..used).ok_or(Refusal::InvalidParameter)?;

    answer(asked, &mut Payload::new(bytes))
}

const fn fixed(bytes: usize, answer: AnswerFn) -> (Size, AnswerFn) {
    (
        Size {
            min: bytes,
            max: bytes,
        },
        answer,
    )
}

/// The table of abi.md section 6.10. The second number of a row is the `_RENDER` variant. Missing
/// numbers have no known payload.
#[rustfmt::skip]
fn row(caps: &DriverCaps, ty: u32) -> Option<(Size, AnswerFn)> {
    Some(match ty {
        // CAST: 32 bits fit a usize.
        0       => fixed(caps.umd_private_size as usize, umd_driver_private), // UMDRIVERPRIVATE
        1       => fixed(4 + PATH_BYTES, umd_file_name),    // UMDRIVERNAME
        2       => fixed(8 + PATH_BYTES, absent),           // UMOPENGLINFO
        3       => fixed(24, segment_size),                 // GETSEGMENTSIZE
        4 | 52  => fixed(16, identity::guid),               // ADAPTERGUID
        5       => fixed(12, absent),                       // FLIPQUEUEINFO
        6 | 53  => fixed(12, identity::bus_address),        // ADAPTERADDRESS
        7       => fixed(12, not_supported),                // SETWORKINGSETINFO
        8 | 54  => fixed(4 * PATH_BYTES, identity::strings), // ADAPTERREGISTRYINFO
        9       => fixed(48, source),                       // CURRENTDISPLAYMODE
        10      => fixed(8, source),                        // MODELIST
        11 | 55 => fixed(4, absent),                        // CHECKDRIVERUPDATESTATUS
        12      => fixed(4, absent),                        // VIRTUALADDRESSINFO
        13 | 56 => fixed(4, identity::wddm_version),        // DRIVERVERSION
        15 | 57 => fixed(4, caps::adapter_type),            // ADAPTERTYPE
        16      => fixed(8, source),                        // OUTPUTDUPLCONTEXTSCOUNT
        17 | 58 => fixed(12, caps::wddm_1_2_caps),          // WDDM_1_2_CAPS
        18      => fixed(8, identity::umd_version),         // UMD_DRIVER_VERSION
        19      => fixed(4, absent),                        // DIRECTFLIP_SUPPORT
        20      => fixed(4, absent),                        // MULTIPLANEOVERLAY_SUPPORT
        21      => fixed(PATH_BYTES, absent),               // DLIST_DRIVER_NAME
        22 | 59 => fixed(4, caps::wddm_1_3_caps),           // WDDM_1_3_CAPS
        23      => fixed(16, source),                       // MULTIPLANEOVERLAY_HUD_SUPPORT
        24      => fixed(4, caps::wddm_2_0_caps),           // WDDM_2_0_CAPS
        25      => fixed(78, node_metadata),                // NODEMETADATA
        26      => fixed(PATH_BYTES, absent),               // CPDRIVERNAME
        27      => fixed(4, absent),                        // XBOX
        28      => fixed(4, absent),                        // INDEPENDENTFLIP_SUPPORT
        29      => fixed(PATH_BYTES, absent),               // MIRACASTCOMPANIONDRIVERNAME
        30      => fixed(4, physical_adapter_count),        // PHYSICALADAPTERCOUNT
        31      => fixed(28, identity::device_ids),         // PHYSICALADAPTERDEVICEIDS
        32      => fixed(4, absent),                        // DRIVERCAPS_EXT
        33      => fixed(4, absent),                        // QUERY_MIRACAST_DRIVER_TYPE
        34      => fixed(12, caps::gpu_mmu_caps),           // QUERY_GPUMMU_CAPS
        35      => fixed(4, absent),                        // MULTIPLANEOVERLAY_DECODE_SUPPORT
        37      => fixed(4, absent),                        // ISBADDRIVERFORHWPROTECTIONDISABLED
        38      => fixed(4, absent),                        // MULTIPLANEOVERLAY_SECONDARY_SUPPORT
        39      => fixed(4, absent),                        // INDEPENDENTFLIP_SECONDARY_SUPPORT
        40      => fixed(4, absent),                        // PANELFITTER_SUPPORT
        41      => fixed(24, not_supported),                // PHYSICALADAPTERPNPKEY
        42      => fixed(56, segment_group_size),           // GETSEGMENTGROUPSIZE
        43      => fixed(4, absent),                        // MPO3DDI_SUPPORT
        44      => fixed(1, absent),                        // HWDRM_SUPPORT
        45      => fixed(4, absent),                        // MPOKERNELCAPS_SUPPORT
        46      => fixed(12, source),                       // MULTIPLANEOVERLAY_STRETCH_SUPPORT
        47      => fixed(8, not_supported),                 // GET_DEVICE_VIDPN_OWNERSHIP_INFO
        48      => (registry::size(caps), registry::query), // QUERYREGISTRY
        49      => fixed(8, identity::kmd_version),         // KMD_DRIVER_VERSION
        50      => fixed(8, absent),                        // BLOCKLIST_KERNEL
        51      => fixed(8, absent),                        // BLOCKLIST_RUNTIME
        60      => fixed(80, identity::guid_text),          // QUERY_ADAPTER_UNIQUE_GUID
        61      => fixed(56, not_supported),                // NODEPERFDATA
        62      => fixed(64, not_supported),                // ADAPTERPERFDATA
        63      => fixed(40, not_supported),                // ADAPTERPERFDATA_CAPS
        64      => fixed(132, identity::gpu_version),       // GPUVERSION
        65 | 66 => fixed(identity::DESCRIPTION_BYTES, identity::description), // DRIVER_DESCRIPTION
        67      => fixed(8, source),                        // SCANOUT_CAPS
        68      => fixed(1, caps::paravirtualization),      // PARAVIRTUALIZATION
        70      => fixed(4, caps::wddm_2_7_caps),           // WDDM_2_7_CAPS
        71      => fixed(4 + PATH_BYTES, no_display_umd),   // DISPLAY_UMDRIVERNAME
        72      => fixed(12, tracked_workload),             // TRACKEDWORKLOAD_SUPPORT
        73      => fixed(4, absent),                        // HYBRID_DLIST_DLL_SUPPORT
        74      => fixed(8, absent),                        // DISPLAY_CAPS
        75      => fixed(4, caps::wddm_2_9_caps),           // WDDM_2_9_CAPS
        76      => fixed(4, caps::cross_adapter_resource),  // CROSSADAPTERRESOURCE_SUPPORT
        77      => fixed(4, absent),                        // WDDM_3_0_CAPS
        80      => fixed(4, caps::wddm_3_1_caps),           // WDDM_3_1_CAPS
        _ => return None,
    })
}

/// Nothing of the kind exists: every output is 0.
fn absent(_: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.clear_from(0);
    Ok(())
}

/// The payload begins with a VidPnSourceId. The OS part does nothing with those that there are.
fn source(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    Err(if out.u32_at(0)? < asked.caps.video_present_sources {
        Refusal::NotSupported
    } else {
        Refusal::InvalidParameter
    })
}

fn not_supported(_: &Asked<'_>, _: &mut Payload<'_>) -> Result<(), Refusal> {
    Err(Refusal::NotSupported)
}

/// UMDRIVERPRIVATE.
fn umd_driver_private(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let query = AdapterQuery::UmdDriverPrivate(out.all());

    asked.kmd.query_adapter_info(asked.class, query);
    Ok(())
}

/// `D3DKMT_PHYSICAL_ADAPTER_COUNT`.
fn physical_adapter_count(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u32(0, asked.caps.physical_adapters)
}

/// Checks the PhysicalAdapterIndex that lies at offset `at` of the payload.
fn check_physical_adapter(
    asked: &Asked<'_>,
    payload: &Payload<'_>,
    at: usize,
) -> Result<(), Refusal> {
    if payload.u32_at(at)? < asked.caps.physical_adapters {
        Ok(())
    } else {
        Err(Refusal::InvalidParameter)
    }
}

/// The name for the version of Direct3D that a payload begins with.
fn umd_name(out: &Payload<'_>, names: &[Text<64>; UMD_VERSIONS]) -> Result<Text<64>, Refusal> {
    // CAST: 32 bits fit a usize.
    names
        .get(out.u32_at(0)? as usize)
        .copied()
        .ok_or(Refusal::InvalidParameter)
}

/// `D3DKMT_UMDFILENAMEINFO`.
fn umd_file_name(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let name = umd_name(out, &asked.caps.umd_file_names)?;

    out.put_text(4, PATH_BYTES / 2, name.characters())
}

/// `D3DKMT_DISPLAY_UMD_FILENAMEINFO`: nothing is displayed, so an empty name for every version.
fn no_display_umd(_: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    umd_name(out, &[Text::default(); UMD_VERSIONS])?;
    out.clear_from(4);
    Ok(())
}

/// `D3DKMT_SEGMENTSIZEINFO`.
fn segment_size(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u64(0, asked.caps.local_memory)?;
    out.put_u64(8, asked.caps.dedicated_system_memory)?;
    out.put_u64(16, asked.caps.system_memory)
}

/// `D3DKMT_SEGMENTGROUPSIZEINFO`.
fn segment_group_size(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    check_physical_adapter(asked, out, 0)?;
    out.clear_from(4);
    out.put_u64(8, asked.caps.local_memory)?;
    out.put_u64(16, asked.caps.dedicated_system_memory)?;
    out.put_u64(24, asked.caps.system_memory)?;
    out.put_u64(32, asked.caps.local_memory)?;
    out.put_u64(40, asked.caps.system_memory)
}

/// `D3DKMT_TRACKEDWORKLOAD_SUPPORT`: physical adapter and engine type in, Support out. There are no
/// tracked workloads.
fn tracked_workload(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    check_physical_adapter(asked, out, 0)?;
    out.put_u32(8, 0)
}

/// `D3DKMT_NODEMETADATA`, packed: the low word of the input is the node, the high word the
/// physical adapter. No node has SupportTrackedWorkload (bit 2 of the flags).
fn node_metadata(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let input = out.u32_at(0)?;
    let (ordinal, adapter) = (input & 0xffff, input >> 16);

    if adapter >= asked.caps.physical_adapters || ordinal >= asked.caps.nodes {
        return Err(Refusal::InvalidParameter);
    }

    let node = asked.kmd.get_node_metadata(asked.class, ordinal);

    // CAST: the number of the variant.
    out.put_u32(4, node.engine_type as u32)?;
    out.put_text(8, 32, node.name.characters())?;
    out.put_bits(
        72,
        [
            node.context_scheduling,
            node.ring_buffer_fence_release,
            false,
            node.user_mode_submission,
        ],
    )?;
    out.put(74, node.max_in_flight_hw_queue_buffers.to_le_bytes())?;
    out.put(76, [u8::from(node.gpu_mmu), u8::from(node.io_mmu)])
}
