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
 * struct _D3DKMT_OPENADAPTERFROMLUID - open an adapter by its LUID
 * @AdapterLuid: [in] LUID of the adapter
 * @hAdapter: [out] new local handle on every call
 *
 * Argument of DXG_IOCTL_OPENADAPTERFROMLUID.
 */
typedef struct _D3DKMT_OPENADAPTERFROMLUID {
	DXG_LUID AdapterLuid;
	D3DKMT_HANDLE hAdapter;
} D3DKMT_OPENADAPTERFROMLUID;

/**
 * struct _D3DKMT_CLOSEADAPTER - close a handle of an adapter
 * @hAdapter: [in] adapter
 *
 * Argument of DXG_IOCTL_CLOSEADAPTER.
 */
typedef struct _D3DKMT_CLOSEADAPTER {
	D3DKMT_HANDLE hAdapter;
} D3DKMT_CLOSEADAPTER;

/**
 * struct _D3DKMT_ADAPTERINFO - one entry of an adapter enumeration
 * @hAdapter: [out] adapter
 * @AdapterLuid: [out] LUID of the adapter
 * @NumOfSources: [out] 0 for a headless adapter
 * @bPrecisePresentRegionsPreferred: [out] boolean
 */
typedef struct _D3DKMT_ADAPTERINFO {
	D3DKMT_HANDLE hAdapter;
	DXG_LUID AdapterLuid;
	__u32 NumOfSources;
	__u32 bPrecisePresentRegionsPreferred;
} D3DKMT_ADAPTERINFO;

/**
 * struct _D3DKMT_ENUMADAPTERS2 - enumerate the adapters
 * @NumAdapters: [in,out] capacity of @pAdapters; number written, or with no
 *	array the capacity to allocate
 * @pAdapters: [in] pointer to D3DKMT_ADAPTERINFO[] to fill, or 0; every entry
 *	holds a fresh handle which the caller closes
 *
 * Argument of DXG_IOCTL_ENUMADAPTERS2.
 */
typedef struct _D3DKMT_ENUMADAPTERS2 {
	__u32 NumAdapters;
	__u32 _pad0;
	__aligned_u64 pAdapters;
} D3DKMT_ENUMADAPTERS2;

/**
 * typedef D3DKMT_ENUMADAPTERS_FILTER - which adapters to enumerate besides the
 *	usual ones
 *
 * With neither bit, compute-only and display-only adapters are left out.
 */
typedef __u64 __attribute__((aligned(8))) D3DKMT_ENUMADAPTERS_FILTER;
__extension__ enum _D3DKMT_ENUMADAPTERS_FILTER {
	D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly = 0x00000001,
	D3DKMT_ENUMADAPTERS_FILTER_IncludeDisplayOnly = 0x00000002,
	D3DKMT_ENUMADAPTERS_FILTER_Reserved = ~(__u64)3
};

/**
 * struct _D3DKMT_ENUMADAPTERS3 - enumerate the adapters of a kind
 * @Filter: [in] which adapters
 * @NumAdapters: [in,out] as in D3DKMT_ENUMADAPTERS2
 * @pAdapters: [in] as in D3DKMT_ENUMADAPTERS2
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
 * enum _KMTQUERYADAPTERINFOTYPE - what to ask an adapter
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
	KMTQAITYPE_HYBRID_DLIST_DLL_MUX_SUPPORT = 81
};

/**
 * struct _D3DKMT_QUERYADAPTERINFO - ask for one of the payloads of
 *	adapter_info.h
 * @hAdapter: [in] adapter
 * @Type: [in] which payload
 * @pPrivateDriverData: [in] address of the payload, some members of which are
 *	inputs
 * @PrivateDriverDataSize: [in] bytes of the payload
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
 * enum _D3DKMT_MEMORY_SEGMENT_GROUP - memory of the adapter or memory of the
 *	system
 */
typedef __u32 D3DKMT_MEMORY_SEGMENT_GROUP;
enum _D3DKMT_MEMORY_SEGMENT_GROUP {
	D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL = 0,
	D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL = 1
};

/**
 * struct _D3DKMT_QUERYVIDEOMEMORYINFO - budget and usage of a memory segment
 *	group
 * @hProcess: [in] 0 for the calling process
 * @hAdapter: [in] adapter
 * @MemorySegmentGroup: [in] segment group
 * @Budget: [out] bytes
 * @CurrentUsage: [out] bytes
 * @CurrentReservation: [out] bytes
 * @AvailableForReservation: [out] bytes
 * @PhysicalAdapterIndex: [in] physical adapter
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
 * struct _D3DKMT_CHANGEVIDEOMEMORYRESERVATION - reserve a part of the budget
 * @hProcess: [in] 0 for the calling process
 * @hAdapter: [in] adapter
 * @MemorySegmentGroup: [in] segment group
 * @Reservation: [in] bytes, at most AvailableForReservation
 * @PhysicalAdapterIndex: [in] physical adapter
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
 * struct _D3DKMT_FLUSHHEAPTRANSITIONS - finish pending changes of memory
 *	segments
 * @hAdapter: [in] adapter
 *
 * Argument of DXG_IOCTL_FLUSHHEAPTRANSITIONS.
 */
typedef struct _D3DKMT_FLUSHHEAPTRANSITIONS {
	D3DKMT_HANDLE hAdapter;
} D3DKMT_FLUSHHEAPTRANSITIONS;

/**
 * typedef DXGK_GPUCLOCKDATA_FLAGS - where the GPU clock was read
 */
typedef __u32 DXGK_GPUCLOCKDATA_FLAGS;
#define DXGK_GPUCLOCKDATA_FLAGS_ContextManagementProcessor	0x00000001
#define DXGK_GPUCLOCKDATA_FLAGS_Reserved			0xfffffffe

/**
 * struct _DXGK_GPUCLOCKDATA - a pair of clock readings
 * @GpuFrequency: [out] Hz
 * @GpuClockCounter: [out] ticks of the GPU clock
 * @CpuClockCounter: [out] reading of the CPU clock
 * @Flags: mask constants of the type
 *
 * Packed: it lies at a 4-byte boundary in D3DKMT_QUERYCLOCKCALIBRATION.
 */
typedef struct _DXGK_GPUCLOCKDATA {
	__u64 GpuFrequency;
	__u64 GpuClockCounter;
	__u64 CpuClockCounter;
	DXGK_GPUCLOCKDATA_FLAGS Flags;
} __attribute__((packed)) DXGK_GPUCLOCKDATA;

/**
 * struct _D3DKMT_QUERYCLOCKCALIBRATION - read GPU and CPU clocks at one moment
 * @hAdapter: [in] adapter
 * @NodeOrdinal: [in] engine node
 * @PhysicalAdapterIndex: [in] physical adapter
 * @ClockData: [out] the readings
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
 * struct d3dkmt_enumprocesses - list the processes that use an adapter
 * @adapter_luid: [in] LUID of the adapter
 * @buffer: [in] address of __u32[], filled with process ids of the pid
 *	namespace of the caller
 * @buffer_count: [in,out] capacity; number written. The number needed, with
 *	STATUS_BUFFER_TOO_SMALL, when @buffer is 0 or too small
 *
 * Argument of DXG_IOCTL_ENUMPROCESSES.
 */
struct d3dkmt_enumprocesses {
	DXG_LUID adapter_luid;
	__aligned_u64 buffer;
	__aligned_u64 buffer_count;
};

/**
 * struct _DXGK_ISFEATUREENABLED_RESULT - state of a feature
 * @Version: [out] version of the feature
 * @Value: [out] mask constants below
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
 * enum _DXGK_FEATURE_ID - features of driver and system
 *
 * Bits 28 to 31 are the category: 0 driver, 1 system, 3 test.
 */
typedef __u32 DXGK_FEATURE_ID;
enum _DXGK_FEATURE_ID {
	DXGK_FEATURE_HWSCH = 0,
	DXGK_FEATURE_HWFLIPQUEUE = 1,
	DXGK_FEATURE_LDA_GPUPV = 2,
	DXGK_FEATURE_KMD_SIGNAL_CPU_EVENT = 3,
	DXGK_FEATURE_USER_MODE_SUBMISSION = 4,
	DXGK_FEATURE_SHARE_BACKING_STORE_WITH_KMD = 5,
	DXGK_FEATURE_SAMPLE = 31,
	DXGK_FEATURE_PAGE_BASED_MEMORY_MANAGER = 32,
	DXGK_FEATURE_KERNEL_MODE_TESTING = 33,
	DXGK_FEATURE_GPUPV_PRESENT_HWQUEUE = 35,
	DXGK_FEATURE_GPUVAIOMMU = 36,
	DXGK_FEATURE_NATIVE_FENCE = 37,
	DXGK_FEATURE_EXTENDED_SEGMENT_FLAGS = 38,
	DXGK_FEATURE_FAULT_AND_STALL = 39,
	DXGK_FEATURE_SINGLE_ADAPTER_HYBRID_MODE = 40,
	DXGK_FEATURE_SYNC_PRESENT_RENDER_HWQ_ONLY = 41,
	DXGK_FEATURE_UNIFIED_SCHEDULING_MODEL = 42,
	DXGK_FEATURE_NOTIFY_RESIDENCY2 = 43,
	DXGK_FEATURE_PROCESS_DEBUG_BLOB_COLLECTION = 45,
	DXGK_FEATURE_PANEL_BUFFER_CONTROL = 46
};

/**
 * struct _D3DKMT_ISFEATUREENABLED - ask whether a feature is supported and
 *	enabled
 * @hAdapter: [in] adapter
 * @FeatureId: [in] feature
 * @Result: [out] state of the feature
 *
 * Argument of DXG_IOCTL_ISFEATUREENABLED.
 */
typedef struct _D3DKMT_ISFEATUREENABLED {
	D3DKMT_HANDLE hAdapter;
	DXGK_FEATURE_ID FeatureId;
	DXGK_ISFEATUREENABLED_RESULT Result;
} D3DKMT_ISFEATUREENABLED;

/**
 * struct _D3DKMT_ENUMADAPTERS - enumerate at most 16 adapters
 * @NumAdapters: [out] number of entries
 * @Adapters: [out] entries with fresh handles
 */
typedef struct _D3DKMT_ENUMADAPTERS {
	__u32 NumAdapters;
	D3DKMT_ADAPTERINFO Adapters[MAX_ENUM_ADAPTERS];
} D3DKMT_ENUMADAPTERS;

/**
 * struct _D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME - open the adapter of a display
 * @DeviceName: [in] name of the display, zero-terminated
 * @hAdapter: [out] adapter
 * @AdapterLuid: [out] LUID of the adapter
 * @VidPnSourceId: [out] display source
 */
typedef struct _D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME {
	__u16 DeviceName[32];
	D3DKMT_HANDLE hAdapter;
	DXG_LUID AdapterLuid;
	__u32 VidPnSourceId;
} D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME;

/**
 * struct _D3DKMT_OPENADAPTERFROMDEVICENAME - open an adapter by the name of
 *	its device
 * @pDeviceName: [in] pointer to __u16[], zero-terminated
 * @hAdapter: [out] adapter
 * @AdapterLuid: [out] LUID of the adapter
 */
typedef struct _D3DKMT_OPENADAPTERFROMDEVICENAME {
	__aligned_u64 pDeviceName;
	D3DKMT_HANDLE hAdapter;
	DXG_LUID AdapterLuid;
	__u32 _pad0;
} D3DKMT_OPENADAPTERFROMDEVICENAME;

/**
 * struct _D3DKMT_OPENADAPTERFROMHDC - open the adapter of a device context
 * @hDc: [in] device context
 * @hAdapter: [out] adapter
 * @AdapterLuid: [out] LUID of the adapter
 * @VidPnSourceId: [out] display source
 */
typedef struct _D3DKMT_OPENADAPTERFROMHDC {
	__u32 hDc;
	__u32 _pad0;
	D3DKMT_HANDLE hAdapter;
	DXG_LUID AdapterLuid;
	__u32 VidPnSourceId;
} D3DKMT_OPENADAPTERFROMHDC;

#endif /* _UAPI_DXG_ADAPTER_H */
