/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Adapters: enumerating, opening, memory budgets, clock, features.
 *
 * An adapter is named by its LUID system-wide and by a local handle inside a
 * process. Enumerating and opening give a fresh handle each time, which the
 * caller closes.
 */
#ifndef _UAPI_DXG_ADAPTER_H
#define _UAPI_DXG_ADAPTER_H

#include "base.h"

/**
 * struct _D3DKMT_OPENADAPTERFROMLUID - argument of a call
 * @AdapterLuid: [in]
 * @hAdapter: [out] new local handle on every call
 *
 * Argument of DXG_IOCTL_OPENADAPTERFROMLUID.
 */
typedef struct _D3DKMT_OPENADAPTERFROMLUID {
	LUID AdapterLuid;
	D3DKMT_HANDLE hAdapter;
} D3DKMT_OPENADAPTERFROMLUID;

/**
 * struct _D3DKMT_CLOSEADAPTER - argument of a call
 * @hAdapter: [in]
 *
 * Argument of DXG_IOCTL_CLOSEADAPTER.
 */
typedef struct _D3DKMT_CLOSEADAPTER {
	D3DKMT_HANDLE hAdapter;
} D3DKMT_CLOSEADAPTER;

/**
 * struct _D3DKMT_ADAPTERINFO - data of a call
 * @hAdapter: [out]
 * @AdapterLuid: [out]
 * @NumOfSources: [out] 0 for a headless adapter
 * @bPrecisePresentRegionsPreferred: [out]
 */
typedef struct _D3DKMT_ADAPTERINFO {
	D3DKMT_HANDLE hAdapter;
	LUID AdapterLuid;
	__u32 NumOfSources;
	__u32 bPrecisePresentRegionsPreferred;
} D3DKMT_ADAPTERINFO;

/**
 * struct _D3DKMT_ENUMADAPTERS2 - argument of a call
 * @NumAdapters: [in,out] in: capacity of pAdapters; out: number written
 * 	(pAdapters = 0: capacity the caller should allocate)
 * @pAdapters: [in] pointer to D3DKMT_ADAPTERINFO[]; array to fill, or 0; every
 * 	returned entry holds a fresh adapter handle the caller must close
 *
 * Argument of DXG_IOCTL_ENUMADAPTERS2.
 */
typedef struct _D3DKMT_ENUMADAPTERS2 {
	__u32 NumAdapters;
	__u32 _pad0;
	__aligned_u64 pAdapters;
} D3DKMT_ENUMADAPTERS2;

/**
 * typedef D3DKMT_ENUMADAPTERS_FILTER - data of a call
 */
typedef __u64 __attribute__((aligned(8))) D3DKMT_ENUMADAPTERS_FILTER;
enum _D3DKMT_ENUMADAPTERS_FILTER {
	D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly = 0x0000000000000001ULL,
	D3DKMT_ENUMADAPTERS_FILTER_IncludeDisplayOnly = 0x0000000000000002ULL,
	D3DKMT_ENUMADAPTERS_FILTER_Reserved = 0xfffffffffffffffcULL,
};

/**
 * struct _D3DKMT_ENUMADAPTERS3 - argument of a call
 * @Filter: [in]
 * @NumAdapters: [in,out] as ENUMADAPTERS2
 * @pAdapters: [in] pointer to D3DKMT_ADAPTERINFO[]
 *
 * Argument of DXG_IOCTL_ENUMADAPTERS3.
 */
typedef struct _D3DKMT_ENUMADAPTERS3 {
	D3DKMT_ENUMADAPTERS_FILTER Filter;
	__u32 NumAdapters;
	__u32 _pad0;
	__aligned_u64 pAdapters;
} D3DKMT_ENUMADAPTERS3;

/**
 * enum _KMTQUERYADAPTERINFOTYPE - data of a call
 */
typedef __u32 KMTQUERYADAPTERINFOTYPE;
enum _KMTQUERYADAPTERINFOTYPE {
	KMTQAITYPE_UMDRIVERPRIVATE = 0,
	KMTQAITYPE_UMDRIVERNAME = 1,
	KMTQAITYPE_UMOPENGLINFO = 2,
	KMTQAITYPE_GETSEGMENTSIZE = 3,
	KMTQAITYPE_ADAPTERGUID = 4,
	KMTQAITYPE_FLIPQUEUEINFO = 5,
	KMTQAITYPE_ADAPTERADDRESS = 6,
	KMTQAITYPE_SETWORKINGSETINFO = 7,
	KMTQAITYPE_ADAPTERREGISTRYINFO = 8,
	KMTQAITYPE_CURRENTDISPLAYMODE = 9,
	KMTQAITYPE_MODELIST = 10,
	KMTQAITYPE_CHECKDRIVERUPDATESTATUS = 11,
	KMTQAITYPE_VIRTUALADDRESSINFO = 12,
	KMTQAITYPE_DRIVERVERSION = 13,
	KMTQAITYPE_ADAPTERTYPE = 15,
	KMTQAITYPE_OUTPUTDUPLCONTEXTSCOUNT = 16,
	KMTQAITYPE_WDDM_1_2_CAPS = 17,
	KMTQAITYPE_UMD_DRIVER_VERSION = 18,
	KMTQAITYPE_DIRECTFLIP_SUPPORT = 19,
	KMTQAITYPE_MULTIPLANEOVERLAY_SUPPORT = 20,
	KMTQAITYPE_DLIST_DRIVER_NAME = 21,
	KMTQAITYPE_WDDM_1_3_CAPS = 22,
	KMTQAITYPE_MULTIPLANEOVERLAY_HUD_SUPPORT = 23,
	KMTQAITYPE_WDDM_2_0_CAPS = 24,
	KMTQAITYPE_NODEMETADATA = 25,
	KMTQAITYPE_CPDRIVERNAME = 26,
	KMTQAITYPE_XBOX = 27,
	KMTQAITYPE_INDEPENDENTFLIP_SUPPORT = 28,
	KMTQAITYPE_MIRACASTCOMPANIONDRIVERNAME = 29,
	KMTQAITYPE_PHYSICALADAPTERCOUNT = 30,
	KMTQAITYPE_PHYSICALADAPTERDEVICEIDS = 31,
	KMTQAITYPE_DRIVERCAPS_EXT = 32,
	KMTQAITYPE_QUERY_MIRACAST_DRIVER_TYPE = 33,
	KMTQAITYPE_QUERY_GPUMMU_CAPS = 34,
	KMTQAITYPE_QUERY_MULTIPLANEOVERLAY_DECODE_SUPPORT = 35,
	KMTQAITYPE_QUERY_HW_PROTECTION_TEARDOWN_COUNT = 36,
	KMTQAITYPE_QUERY_ISBADDRIVERFORHWPROTECTIONDISABLED = 37,
	KMTQAITYPE_MULTIPLANEOVERLAY_SECONDARY_SUPPORT = 38,
	KMTQAITYPE_INDEPENDENTFLIP_SECONDARY_SUPPORT = 39,
	KMTQAITYPE_PANELFITTER_SUPPORT = 40,
	KMTQAITYPE_PHYSICALADAPTERPNPKEY = 41,
	KMTQAITYPE_GETSEGMENTGROUPSIZE = 42,
	KMTQAITYPE_MPO3DDI_SUPPORT = 43,
	KMTQAITYPE_HWDRM_SUPPORT = 44,
	KMTQAITYPE_MPOKERNELCAPS_SUPPORT = 45,
	KMTQAITYPE_MULTIPLANEOVERLAY_STRETCH_SUPPORT = 46,
	KMTQAITYPE_GET_DEVICE_VIDPN_OWNERSHIP_INFO = 47,
	KMTQAITYPE_QUERYREGISTRY = 48,
	KMTQAITYPE_KMD_DRIVER_VERSION = 49,
	KMTQAITYPE_BLOCKLIST_KERNEL = 50,
	KMTQAITYPE_BLOCKLIST_RUNTIME = 51,
	KMTQAITYPE_ADAPTERGUID_RENDER = 52,
	KMTQAITYPE_ADAPTERADDRESS_RENDER = 53,
	KMTQAITYPE_ADAPTERREGISTRYINFO_RENDER = 54,
	KMTQAITYPE_CHECKDRIVERUPDATESTATUS_RENDER = 55,
	KMTQAITYPE_DRIVERVERSION_RENDER = 56,
	KMTQAITYPE_ADAPTERTYPE_RENDER = 57,
	KMTQAITYPE_WDDM_1_2_CAPS_RENDER = 58,
	KMTQAITYPE_WDDM_1_3_CAPS_RENDER = 59,
	KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID = 60,
	KMTQAITYPE_NODEPERFDATA = 61,
	KMTQAITYPE_ADAPTERPERFDATA = 62,
	KMTQAITYPE_ADAPTERPERFDATA_CAPS = 63,
	KMTQUITYPE_GPUVERSION = 64,
	KMTQAITYPE_DRIVER_DESCRIPTION = 65,
	KMTQAITYPE_DRIVER_DESCRIPTION_RENDER = 66,
	KMTQAITYPE_SCANOUT_CAPS = 67,
	KMTQAITYPE_PARAVIRTUALIZATION_RENDER = 68,
	KMTQAITYPE_SERVICENAME = 69,
	KMTQAITYPE_WDDM_2_7_CAPS = 70,
	KMTQAITYPE_DISPLAY_UMDRIVERNAME = 71,
	KMTQAITYPE_TRACKEDWORKLOAD_SUPPORT = 72,
	KMTQAITYPE_HYBRID_DLIST_DLL_SUPPORT = 73,
	KMTQAITYPE_DISPLAY_CAPS = 74,
	KMTQAITYPE_WDDM_2_9_CAPS = 75,
	KMTQAITYPE_CROSSADAPTERRESOURCE_SUPPORT = 76,
	KMTQAITYPE_WDDM_3_0_CAPS = 77,
	KMTQAITYPE_WSAUMDIMAGENAME = 78,
	KMTQAITYPE_VGPUINTERFACEID = 79,
	KMTQAITYPE_WDDM_3_1_CAPS = 80,
	KMTQAITYPE_HYBRID_DLIST_DLL_MUX_SUPPORT = 81,
};

/**
 * struct _D3DKMT_QUERYADAPTERINFO - argument of a call
 * @hAdapter: [in]
 * @Type: [in]
 * @pPrivateDriverData: [in] pointer; payload buffer, contents in/out (6.10)
 * @PrivateDriverDataSize: [in]
 *
 * Argument of DXG_IOCTL_QUERYADAPTERINFO.
 */
typedef struct _D3DKMT_QUERYADAPTERINFO {
	D3DKMT_HANDLE hAdapter;
	KMTQUERYADAPTERINFOTYPE Type;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 _pad0;
} D3DKMT_QUERYADAPTERINFO;

/**
 * enum _D3DKMT_MEMORY_SEGMENT_GROUP - data of a call
 */
typedef __u32 D3DKMT_MEMORY_SEGMENT_GROUP;
enum _D3DKMT_MEMORY_SEGMENT_GROUP {
	D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL = 0,
	D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL = 1,
};

/**
 * struct _D3DKMT_QUERYVIDEOMEMORYINFO - argument of a call
 * @hProcess: [in] 0 = calling process (WSL kernels refuse anything else with
 * 	EINVAL)
 * @hAdapter: [in]
 * @MemorySegmentGroup: [in]
 * @Budget: [out]
 * @CurrentUsage: [out]
 * @CurrentReservation: [out]
 * @AvailableForReservation: [out]
 * @PhysicalAdapterIndex: [in]
 *
 * Argument of DXG_IOCTL_QUERYVIDEOMEMORYINFO.
 */
typedef struct _D3DKMT_QUERYVIDEOMEMORYINFO {
	__aligned_u64 hProcess;
	D3DKMT_HANDLE hAdapter;
	D3DKMT_MEMORY_SEGMENT_GROUP MemorySegmentGroup;
	__aligned_u64 Budget;
	__aligned_u64 CurrentUsage;
	__aligned_u64 CurrentReservation;
	__aligned_u64 AvailableForReservation;
	__u32 PhysicalAdapterIndex;
	__u32 _pad0;
} D3DKMT_QUERYVIDEOMEMORYINFO;

/**
 * struct _D3DKMT_CHANGEVIDEOMEMORYRESERVATION - argument of a call
 * @hProcess: [in] 0 = calling process
 * @hAdapter: [in]
 * @MemorySegmentGroup: [in]
 * @Reservation: [in] 0..AvailableForReservation
 * @PhysicalAdapterIndex: [in]
 *
 * Argument of DXG_IOCTL_CHANGEVIDEOMEMORYRESERVATION.
 */
typedef struct _D3DKMT_CHANGEVIDEOMEMORYRESERVATION {
	__aligned_u64 hProcess;
	D3DKMT_HANDLE hAdapter;
	D3DKMT_MEMORY_SEGMENT_GROUP MemorySegmentGroup;
	__aligned_u64 Reservation;
	__u32 PhysicalAdapterIndex;
	__u32 _pad0;
} D3DKMT_CHANGEVIDEOMEMORYRESERVATION;

/**
 * struct _D3DKMT_FLUSHHEAPTRANSITIONS - argument of a call
 * @hAdapter: [in]
 *
 * Argument of DXG_IOCTL_FLUSHHEAPTRANSITIONS.
 */
typedef struct _D3DKMT_FLUSHHEAPTRANSITIONS {
	D3DKMT_HANDLE hAdapter;
} D3DKMT_FLUSHHEAPTRANSITIONS;

/**
 * typedef DXGK_GPUCLOCKDATA_FLAGS - data of a call
 */
typedef __u32 DXGK_GPUCLOCKDATA_FLAGS;
#define DXGK_GPUCLOCKDATA_FLAGS_ContextManagementProcessor	0x00000001
#define DXGK_GPUCLOCKDATA_FLAGS_Reserved			0xfffffffe

/**
 * struct _DXGK_GPUCLOCKDATA - data of a call
 * @GpuFrequency: [out] Hz
 * @GpuClockCounter: [out]
 * @CpuClockCounter: [out]
 * @Flags: [out]
 */
typedef struct _DXGK_GPUCLOCKDATA {
	__u64 GpuFrequency;
	__u64 GpuClockCounter;
	__u64 CpuClockCounter;
	DXGK_GPUCLOCKDATA_FLAGS Flags;
} __attribute__((packed)) DXGK_GPUCLOCKDATA;

/**
 * struct _D3DKMT_QUERYCLOCKCALIBRATION - argument of a call
 * @hAdapter: [in]
 * @NodeOrdinal: [in]
 * @PhysicalAdapterIndex: [in]
 * @ClockData: [out] packed struct at an offset that is only 4-aligned
 *
 * Argument of DXG_IOCTL_QUERYCLOCKCALIBRATION.
 */
typedef struct _D3DKMT_QUERYCLOCKCALIBRATION {
	D3DKMT_HANDLE hAdapter;
	__u32 NodeOrdinal;
	__u32 PhysicalAdapterIndex;
	DXGK_GPUCLOCKDATA ClockData;
} D3DKMT_QUERYCLOCKCALIBRATION;

/**
 * struct d3dkmt_enumprocesses - argument of a call
 * @adapter_luid: [in]
 * @buffer: [in] u32[] receiving process ids of the caller's pid namespace
 * @buffer_count: [in,out] capacity in elements / number written; buffer = 0 or
 * 	too small: count needed is written and the status is BUFFER_TOO_SMALL. WSL
 * 	writes back only the low 32 bits
 *
 * Argument of DXG_IOCTL_ENUMPROCESSES.
 */
struct d3dkmt_enumprocesses {
	LUID adapter_luid;
	__aligned_u64 buffer;
	__aligned_u64 buffer_count;
};

/**
 * struct _DXGK_ISFEATUREENABLED_RESULT - data of a call
 * @Version: [out]
 * @Value: [out]
 */
typedef struct _DXGK_ISFEATUREENABLED_RESULT {
	__u16 Version;
	__u16 Value;
} DXGK_ISFEATUREENABLED_RESULT;
#define DXGK_ISFEATUREENABLED_RESULT_Enabled			0x00000001
#define DXGK_ISFEATUREENABLED_RESULT_KnownFeature		0x00000002
#define DXGK_ISFEATUREENABLED_RESULT_SupportedByDriver		0x00000004
#define DXGK_ISFEATUREENABLED_RESULT_SupportedOnCurrentConfig	0x00000008
#define DXGK_ISFEATUREENABLED_RESULT_Reserved			0x0000fff0

/**
 * struct _D3DKMT_ISFEATUREENABLED - argument of a call
 * @hAdapter: [in] SDK: may be 0 for an adapter-independent feature; WSL:
 * 	EINVAL without an adapter
 * @FeatureId: [in] DXGK_FEATURE_ID
 * @Result: [out]
 *
 * Argument of DXG_IOCTL_ISFEATUREENABLED.
 */
typedef struct _D3DKMT_ISFEATUREENABLED {
	D3DKMT_HANDLE hAdapter;
	__u32 FeatureId;
	DXGK_ISFEATUREENABLED_RESULT Result;
} D3DKMT_ISFEATUREENABLED;

/**
 * struct _D3DKMT_ENUMADAPTERS - data of a call
 * @NumAdapters: [out]
 * @Adapters: [out] 16 entries of D3DKMT_ADAPTERINFO (20 bytes each), fresh
 * 	handles as in ENUMADAPTERS2
 */
typedef struct _D3DKMT_ENUMADAPTERS {
	__u32 NumAdapters;
	D3DKMT_ADAPTERINFO Adapters[16];
} D3DKMT_ENUMADAPTERS;

/**
 * struct _D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME - data of a call
 * @DeviceName: [in] display name; offsets for 4-byte WCHAR, with 16-bit WCHAR:
 * 	hAdapter 64, AdapterLuid 68, VidPnSourceId 76, size 80
 * @hAdapter: [out]
 * @AdapterLuid: [out]
 * @VidPnSourceId: [out]
 */
typedef struct _D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME {
	__u16 DeviceName[32];
	D3DKMT_HANDLE hAdapter;
	LUID AdapterLuid;
	__u32 VidPnSourceId;
} D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME;

/**
 * struct _D3DKMT_OPENADAPTERFROMDEVICENAME - data of a call
 * @pDeviceName: [in] pointer to __u16[]; zero-terminated; WCHAR width of the
 * 	caller
 * @hAdapter: [out]
 * @AdapterLuid: [out]
 */
typedef struct _D3DKMT_OPENADAPTERFROMDEVICENAME {
	__aligned_u64 pDeviceName;
	D3DKMT_HANDLE hAdapter;
	LUID AdapterLuid;
	__u32 _pad0;
} D3DKMT_OPENADAPTERFROMDEVICENAME;

/**
 * struct _D3DKMT_OPENADAPTERFROMHDC - data of a call
 * @hDc: [in]
 * @hAdapter: [out]
 * @AdapterLuid: [out]
 * @VidPnSourceId: [out]
 */
typedef struct _D3DKMT_OPENADAPTERFROMHDC {
	__u32 hDc;
	__u32 _pad0;
	D3DKMT_HANDLE hAdapter;
	LUID AdapterLuid;
	__u32 VidPnSourceId;
} D3DKMT_OPENADAPTERFROMHDC;

#endif /* _UAPI_DXG_ADAPTER_H */
