// SPDX-License-Identifier: GPL-2.0

//! What an adapter can do: its type, and the caps of the WDDM versions.

use super::{
    check_physical_adapter,
    payload::Payload,
    Asked,
    Refusal, //
};
use crate::logic::feature;

/// `D3DKMT_ADAPTERTYPE`. Nothing sets timings from a VidPN (bit 9) or manages power at run time
/// (bit 13).
pub(super) fn adapter_type(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let ty = &asked.caps.adapter_type;

    out.put_bits(
        0,
        [
            ty.render,
            ty.display,
            ty.software,
            ty.post,
            ty.hybrid_discrete,
            ty.hybrid_integrated,
            ty.indirect_display,
            ty.paravirtualized,
            ty.acg,
            false,
            ty.detachable,
            ty.compute_only,
            ty.prototype,
        ],
    )
}

/// `D3DKMT_PARAVIRTUALIZATION`: SecureContainer.
pub(super) fn paravirtualization(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put(0, [u8::from(asked.caps.secure_container)])
}

/// `D3DKMT_WDDM_1_2_CAPS`: the granularities of preemption. The flags are about display, recovery
/// and sleep, which are not there.
pub(super) fn wddm_1_2_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_u32(0, asked.caps.preemption.graphics)?;
    out.put_u32(4, asked.caps.preemption.compute)?;
    out.put_u32(8, 0)
}

/// `D3DKMT_WDDM_1_3_CAPS`: IsHybridIntegratedGPU, IsHybridDiscreteGPU (bits 1 and 2) and
/// SupportCrossAdapterResource (bit 5).
pub(super) fn wddm_1_3_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let ty = &asked.caps.adapter_type;
    let crosses = asked.caps.cross_adapter_tier != 0;

    out.put_bits(
        0,
        [
            false,
            ty.hybrid_integrated,
            ty.hybrid_discrete,
            false,
            false,
            crosses,
        ],
    )
}

/// `D3DKMT_CROSSADAPTERRESOURCE_SUPPORT`.
pub(super) fn cross_adapter_resource(
    asked: &Asked<'_>,
    out: &mut Payload<'_>,
) -> Result<(), Refusal> {
    out.put_u32(0, asked.caps.cross_adapter_tier)
}

/// `D3DKMT_WDDM_2_0_CAPS`: Support64BitAtomics, GpuMmuSupported, IoMmuSupported (bits 0 to 2) and
/// SupportSurpriseRemoval (bit 5). The bits between are about presentation.
pub(super) fn wddm_2_0_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let caps = asked.caps;

    out.put_bits(
        0,
        [
            !caps.no_64_bit_atomics,
            caps.gpu_mmu.address_bits != 0,
            caps.io_mmu,
            false,
            false,
            caps.surprise_removal,
        ],
    )
}

/// `D3DKMT_QUERY_GPUMMU_CAPS`: what the flags of a page can be, and the width of an address.
pub(super) fn gpu_mmu_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let mmu = &asked.caps.gpu_mmu;

    check_physical_adapter(asked, out, 0)?;
    out.put_bits(4, [mmu.read_only, mmu.no_execute, mmu.cache_coherent])?;
    out.put_u32(8, mmu.address_bits)
}

/// `D3DKMT_WDDM_2_7_CAPS`: HwSchSupported and HwSchEnabled (bits 0 and 1).
pub(super) fn wddm_2_7_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let hwsch = asked.features.has(feature::HWSCH);

    out.put_bits(0, [hwsch, hwsch])
}

/// `D3DKMT_WDDM_2_9_CAPS`: HwSchSupportState is stable (bit 1), and HwSchEnabled (bit 2).
pub(super) fn wddm_2_9_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    let hwsch = asked.features.has(feature::HWSCH);

    out.put_bits(0, [false, hwsch, hwsch])
}

/// `D3DKMT_WDDM_3_1_CAPS`: NativeGpuFenceSupported (bit 0, FEN-113).
pub(super) fn wddm_3_1_caps(asked: &Asked<'_>, out: &mut Payload<'_>) -> Result<(), Refusal> {
    out.put_bits(0, [asked.features.has(feature::NATIVE_FENCE)])
}
