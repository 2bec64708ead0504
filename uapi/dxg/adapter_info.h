/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Payloads of D3DKMTQueryAdapterInfo: what the adapter is and can do.
 *
 * D3DKMT_QUERYADAPTERINFO.Type selects the payload. A buffer that is missing
 * or smaller than the payload is STATUS_INVALID_PARAMETER.
 */
#ifndef _UAPI_DXG_ADAPTER_INFO_H
#define _UAPI_DXG_ADAPTER_INFO_H

#include "base.h"
#include "adapter_names.h"

/**
 * typedef D3DKMT_ADAPTERTYPE - kind of an adapter
 */
typedef __u32 D3DKMT_ADAPTERTYPE;
#define D3DKMT_ADAPTERTYPE_RenderSupported		0x00000001
#define D3DKMT_ADAPTERTYPE_DisplaySupported		0x00000002
#define D3DKMT_ADAPTERTYPE_SoftwareDevice		0x00000004
#define D3DKMT_ADAPTERTYPE_PostDevice			0x00000008
#define D3DKMT_ADAPTERTYPE_HybridDiscrete		0x00000010
#define D3DKMT_ADAPTERTYPE_HybridIntegrated		0x00000020
#define D3DKMT_ADAPTERTYPE_IndirectDisplayDevice	0x00000040
#define D3DKMT_ADAPTERTYPE_Paravirtualized		0x00000080
#define D3DKMT_ADAPTERTYPE_ACGSupported			0x00000100
#define D3DKMT_ADAPTERTYPE_SupportSetTimingsFromVidPn	0x00000200
#define D3DKMT_ADAPTERTYPE_Detachable			0x00000400
#define D3DKMT_ADAPTERTYPE_ComputeOnly			0x00000800
#define D3DKMT_ADAPTERTYPE_Prototype			0x00001000
#define D3DKMT_ADAPTERTYPE_RuntimePowerManagement	0x00002000
#define D3DKMT_ADAPTERTYPE_Reserved			0xffffc000

/**
 * struct _D3DKMT_DEVICE_IDS - bus ids
 */
typedef struct _D3DKMT_DEVICE_IDS {
	__u32 VendorID;
	__u32 DeviceID;
	__u32 SubVendorID;
	__u32 SubSystemID;
	__u32 RevisionID;
	__u32 BusType;
} D3DKMT_DEVICE_IDS;

/**
 * struct _D3DKMT_QUERY_DEVICE_IDS - bus ids of one physical adapter
 * @PhysicalAdapterIndex: [in] physical adapter
 */
typedef struct _D3DKMT_QUERY_DEVICE_IDS {
	__u32 PhysicalAdapterIndex;
	D3DKMT_DEVICE_IDS DeviceIds;
} D3DKMT_QUERY_DEVICE_IDS;

/**
 * enum _D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY - where graphics work can be
 *	interrupted
 */
typedef __u32 D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY;
enum _D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY {
	D3DKMDT_GRAPHICS_PREEMPTION_NONE = 0,
	D3DKMDT_GRAPHICS_PREEMPTION_DMA_BUFFER_BOUNDARY = 100,
	D3DKMDT_GRAPHICS_PREEMPTION_PRIMITIVE_BOUNDARY = 200,
	D3DKMDT_GRAPHICS_PREEMPTION_TRIANGLE_BOUNDARY = 300,
	D3DKMDT_GRAPHICS_PREEMPTION_PIXEL_BOUNDARY = 400,
	D3DKMDT_GRAPHICS_PREEMPTION_SHADER_BOUNDARY = 500
};

/**
 * enum _D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY - where compute work can be
 *	interrupted
 */
typedef __u32 D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY;
enum _D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY {
	D3DKMDT_COMPUTE_PREEMPTION_NONE = 0,
	D3DKMDT_COMPUTE_PREEMPTION_DMA_BUFFER_BOUNDARY = 100,
	D3DKMDT_COMPUTE_PREEMPTION_DISPATCH_BOUNDARY = 200,
	D3DKMDT_COMPUTE_PREEMPTION_THREAD_GROUP_BOUNDARY = 300,
	D3DKMDT_COMPUTE_PREEMPTION_THREAD_BOUNDARY = 400,
	D3DKMDT_COMPUTE_PREEMPTION_SHADER_BOUNDARY = 500
};

/**
 * struct _D3DKMDT_PREEMPTION_CAPS - where work can be interrupted
 */
typedef struct _D3DKMDT_PREEMPTION_CAPS {
	D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY GraphicsPreemptionGranularity;
	D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY ComputePreemptionGranularity;
} D3DKMDT_PREEMPTION_CAPS;

/**
 * struct _D3DKMT_WDDM_1_2_CAPS - capabilities that came with WDDM 1.2
 * @Value: mask constants below
 */
typedef struct _D3DKMT_WDDM_1_2_CAPS {
	D3DKMDT_PREEMPTION_CAPS PreemptionCaps;
	__u32 Value;
} D3DKMT_WDDM_1_2_CAPS;
#define D3DKMT_WDDM_1_2_CAPS_SupportNonVGA				0x00000001
#define D3DKMT_WDDM_1_2_CAPS_SupportSmoothRotation			0x00000002
#define D3DKMT_WDDM_1_2_CAPS_SupportPerEngineTDR			0x00000004
#define D3DKMT_WDDM_1_2_CAPS_SupportKernelModeCommandBuffer		0x00000008
#define D3DKMT_WDDM_1_2_CAPS_SupportCCD					0x00000010
#define D3DKMT_WDDM_1_2_CAPS_SupportSoftwareDeviceBitmaps		0x00000020
#define D3DKMT_WDDM_1_2_CAPS_SupportGammaRamp				0x00000040
#define D3DKMT_WDDM_1_2_CAPS_SupportHWCursor				0x00000080
#define D3DKMT_WDDM_1_2_CAPS_SupportHWVSync				0x00000100
#define D3DKMT_WDDM_1_2_CAPS_SupportSurpriseRemovalInHibernation	0x00000200
#define D3DKMT_WDDM_1_2_CAPS_Reserved					0xfffffc00

/**
 * typedef D3DKMT_WDDM_1_3_CAPS - capabilities that came with WDDM 1.3
 */
typedef __u32 D3DKMT_WDDM_1_3_CAPS;
#define D3DKMT_WDDM_1_3_CAPS_SupportMiracast			0x00000001
#define D3DKMT_WDDM_1_3_CAPS_IsHybridIntegratedGPU		0x00000002
#define D3DKMT_WDDM_1_3_CAPS_IsHybridDiscreteGPU		0x00000004
#define D3DKMT_WDDM_1_3_CAPS_SupportPowerManagementPStates	0x00000008
#define D3DKMT_WDDM_1_3_CAPS_SupportVirtualModes		0x00000010
#define D3DKMT_WDDM_1_3_CAPS_SupportCrossAdapterResource	0x00000020
#define D3DKMT_WDDM_1_3_CAPS_Reserved				0xffffffc0

/**
 * typedef D3DKMT_WDDM_2_0_CAPS - capabilities that came with WDDM 2.0
 */
typedef __u32 D3DKMT_WDDM_2_0_CAPS;
#define D3DKMT_WDDM_2_0_CAPS_Support64BitAtomics	0x00000001
#define D3DKMT_WDDM_2_0_CAPS_GpuMmuSupported		0x00000002
#define D3DKMT_WDDM_2_0_CAPS_IoMmuSupported		0x00000004
#define D3DKMT_WDDM_2_0_CAPS_FlipOverwriteSupported	0x00000008
#define D3DKMT_WDDM_2_0_CAPS_SupportContextlessPresent	0x00000010
#define D3DKMT_WDDM_2_0_CAPS_SupportSurpriseRemoval	0x00000020
#define D3DKMT_WDDM_2_0_CAPS_Reserved			0xffffffc0

/**
 * typedef D3DKMT_WDDM_2_7_CAPS - capabilities that came with WDDM 2.7
 */
typedef __u32 D3DKMT_WDDM_2_7_CAPS;
#define D3DKMT_WDDM_2_7_CAPS_HwSchSupported			0x00000001
#define D3DKMT_WDDM_2_7_CAPS_HwSchEnabled			0x00000002
#define D3DKMT_WDDM_2_7_CAPS_HwSchEnabledByDefault		0x00000004
#define D3DKMT_WDDM_2_7_CAPS_IndependentVidPnVSyncControl	0x00000008
#define D3DKMT_WDDM_2_7_CAPS_Reserved				0xfffffff0

/**
 * typedef D3DKMT_WDDM_2_9_CAPS - capabilities that came with WDDM 2.9
 */
typedef __u32 D3DKMT_WDDM_2_9_CAPS;
#define D3DKMT_WDDM_2_9_CAPS_HwSchSupportState		0x00000003
#define D3DKMT_WDDM_2_9_CAPS_HwSchEnabled		0x00000004
#define D3DKMT_WDDM_2_9_CAPS_SelfRefreshMemorySupported	0x00000008
#define D3DKMT_WDDM_2_9_CAPS_Reserved			0xfffffff0

/**
 * typedef D3DKMT_WDDM_3_0_CAPS - capabilities that came with WDDM 3.0
 */
typedef __u32 D3DKMT_WDDM_3_0_CAPS;
#define D3DKMT_WDDM_3_0_CAPS_HwFlipQueueSupportState	0x00000003
#define D3DKMT_WDDM_3_0_CAPS_HwFlipQueueEnabled		0x00000004
#define D3DKMT_WDDM_3_0_CAPS_DisplayableSupported	0x00000008
#define D3DKMT_WDDM_3_0_CAPS_Reserved			0xfffffff0

/**
 * typedef D3DKMT_WDDM_3_1_CAPS - capabilities that came with WDDM 3.1
 */
typedef __u32 D3DKMT_WDDM_3_1_CAPS;
#define D3DKMT_WDDM_3_1_CAPS_NativeGpuFenceSupported	0x00000001
#define D3DKMT_WDDM_3_1_CAPS_Reserved			0xfffffffe

/**
 * struct _D3DKMT_SEGMENTSIZEINFO - amount of memory of each kind
 */
typedef struct _D3DKMT_SEGMENTSIZEINFO {
	__aligned_u64 DedicatedVideoMemorySize;
	__aligned_u64 DedicatedSystemMemorySize;
	__aligned_u64 SharedSystemMemorySize;
} D3DKMT_SEGMENTSIZEINFO;

/**
 * struct _D3DKMT_SEGMENTGROUPSIZEINFO - amount of memory of each segment group
 * @PhysicalAdapterIndex: [in] physical adapter
 */
typedef struct _D3DKMT_SEGMENTGROUPSIZEINFO {
	__u32 PhysicalAdapterIndex;
	__u32 _pad0;
	D3DKMT_SEGMENTSIZEINFO LegacyInfo;
	__aligned_u64 LocalMemory;
	__aligned_u64 NonLocalMemory;
	__aligned_u64 NonBudgetMemory;
} D3DKMT_SEGMENTGROUPSIZEINFO;

/**
 * struct _D3DKMT_ADAPTERADDRESS - address on the bus
 */
typedef struct _D3DKMT_ADAPTERADDRESS {
	__u32 BusNumber;
	__u32 DeviceNumber;
	__u32 FunctionNumber;
} D3DKMT_ADAPTERADDRESS;

/**
 * struct _D3DKMT_UMD_DRIVER_VERSION - version of the user-mode driver
 * @DriverVersion: four 16-bit parts, the most significant first
 */
typedef struct _D3DKMT_UMD_DRIVER_VERSION {
	__aligned_s64 DriverVersion;
} D3DKMT_UMD_DRIVER_VERSION;

/**
 * enum _DXGK_ENGINE_TYPE - kind of an engine node
 */
typedef __u32 DXGK_ENGINE_TYPE;
enum _DXGK_ENGINE_TYPE {
	DXGK_ENGINE_TYPE_OTHER = 0,
	DXGK_ENGINE_TYPE_3D = 1,
	DXGK_ENGINE_TYPE_VIDEO_DECODE = 2,
	DXGK_ENGINE_TYPE_VIDEO_ENCODE = 3,
	DXGK_ENGINE_TYPE_VIDEO_PROCESSING = 4,
	DXGK_ENGINE_TYPE_SCENE_ASSEMBLY = 5,
	DXGK_ENGINE_TYPE_COPY = 6,
	DXGK_ENGINE_TYPE_OVERLAY = 7,
	DXGK_ENGINE_TYPE_CRYPTO = 8,
	DXGK_ENGINE_TYPE_MAX = 9
};

/**
 * typedef DXGK_NODEMETADATA_FLAGS - abilities of an engine node
 */
typedef __u32 DXGK_NODEMETADATA_FLAGS;
#define DXGK_NODEMETADATA_FLAGS_ContextSchedulingSupported	0x00000001
#define DXGK_NODEMETADATA_FLAGS_RingBufferFenceRelease		0x00000002
#define DXGK_NODEMETADATA_FLAGS_SupportTrackedWorkload		0x00000004
#define DXGK_NODEMETADATA_FLAGS_Reserved			0x0000fff8
#define DXGK_NODEMETADATA_FLAGS_MaxInFlightHwQueueBuffers	0xffff0000
/* Later system versions give this meaning to a bit of the reserved range. */
#define DXGK_NODEMETADATA_FLAGS_UserModeSubmission		0x00000008

/**
 * struct _DXGK_NODEMETADATA - kind, name and abilities of an engine node
 */
typedef struct _DXGK_NODEMETADATA {
	DXGK_ENGINE_TYPE EngineType;
	__u16 FriendlyName[DXGK_MAX_METADATA_NAME_LENGTH];
	DXGK_NODEMETADATA_FLAGS Flags;
	__u8 GpuMmuSupported;
	__u8 IoMmuSupported;
} __attribute__((packed)) DXGK_NODEMETADATA;

/**
 * struct _D3DKMT_NODEMETADATA - what an engine node is
 * @NodeOrdinalAndAdapterIndex: [in] node in the low, physical adapter in the
 *	high 16 bits
 *
 * Packed, like the struct in it.
 */
typedef struct _D3DKMT_NODEMETADATA {
	__u32 NodeOrdinalAndAdapterIndex;
	DXGK_NODEMETADATA NodeData;
} __attribute__((packed)) D3DKMT_NODEMETADATA;

/**
 * struct _D3DKMT_GPUMMU_CAPS - abilities of a GPU MMU
 * @Flags: mask constants below
 */
typedef struct _D3DKMT_GPUMMU_CAPS {
	__u32 Flags;
	__u32 VirtualAddressBitCount;
} D3DKMT_GPUMMU_CAPS;
#define D3DKMT_GPUMMU_CAPS_Flags_ReadOnlyMemorySupported	0x00000001
#define D3DKMT_GPUMMU_CAPS_Flags_NoExecuteMemorySupported	0x00000002
#define D3DKMT_GPUMMU_CAPS_Flags_CacheCoherentMemorySupported	0x00000004
#define D3DKMT_GPUMMU_CAPS_Flags_Reserved			0xfffffff8

/**
 * struct _D3DKMT_QUERY_GPUMMU_CAPS - abilities of the MMU of a physical
 *	adapter
 * @PhysicalAdapterIndex: [in] physical adapter
 */
typedef struct _D3DKMT_QUERY_GPUMMU_CAPS {
	__u32 PhysicalAdapterIndex;
	D3DKMT_GPUMMU_CAPS Caps;
} D3DKMT_QUERY_GPUMMU_CAPS;

/**
 * struct _D3DKMT_PHYSICAL_ADAPTER_COUNT - number of physical adapters behind
 *	an adapter
 */
typedef struct _D3DKMT_PHYSICAL_ADAPTER_COUNT {
	__u32 Count;
} D3DKMT_PHYSICAL_ADAPTER_COUNT;

/**
 * enum _D3DKMT_DRIVERVERSION - WDDM version of the driver model
 */
typedef __u32 D3DKMT_DRIVERVERSION;
enum _D3DKMT_DRIVERVERSION {
	KMT_DRIVERVERSION_WDDM_1_0 = 1000,
	KMT_DRIVERVERSION_WDDM_1_1_PRERELEASE = 1102,
	KMT_DRIVERVERSION_WDDM_1_1 = 1105,
	KMT_DRIVERVERSION_WDDM_1_2 = 1200,
	KMT_DRIVERVERSION_WDDM_1_3 = 1300,
	KMT_DRIVERVERSION_WDDM_2_0 = 2000,
	KMT_DRIVERVERSION_WDDM_2_1 = 2100,
	KMT_DRIVERVERSION_WDDM_2_2 = 2200,
	KMT_DRIVERVERSION_WDDM_2_3 = 2300,
	KMT_DRIVERVERSION_WDDM_2_4 = 2400,
	KMT_DRIVERVERSION_WDDM_2_5 = 2500,
	KMT_DRIVERVERSION_WDDM_2_6 = 2600,
	KMT_DRIVERVERSION_WDDM_2_7 = 2700,
	KMT_DRIVERVERSION_WDDM_2_8 = 2800,
	KMT_DRIVERVERSION_WDDM_2_9 = 2900,
	KMT_DRIVERVERSION_WDDM_3_0 = 3000,
	KMT_DRIVERVERSION_WDDM_3_1 = 3100,
	KMT_DRIVERVERSION_WDDM_3_2 = 3200
};

/**
 * typedef D3DKMT_WORKINGSETFLAGS - whether the limits of the working set are
 *	the default
 */
typedef __u32 D3DKMT_WORKINGSETFLAGS;
#define D3DKMT_WORKINGSETFLAGS_UseDefault	0x00000001
#define D3DKMT_WORKINGSETFLAGS_Reserved		0xfffffffe

/**
 * struct _D3DKMT_WORKINGSETINFO - limits of the working set
 */
typedef struct _D3DKMT_WORKINGSETINFO {
	D3DKMT_WORKINGSETFLAGS Flags;
	__u32 MinimumWorkingSetPercentile;
	__u32 MaximumWorkingSetPercentile;
} D3DKMT_WORKINGSETINFO;

/**
 * typedef D3DKMT_VIRTUALADDRESSFLAGS - abilities of virtual addressing
 */
typedef __u32 D3DKMT_VIRTUALADDRESSFLAGS;
#define D3DKMT_VIRTUALADDRESSFLAGS_VirtualAddressSupported	0x00000001
#define D3DKMT_VIRTUALADDRESSFLAGS_Reserved			0xfffffffe

/**
 * struct _D3DKMT_VIRTUALADDRESSINFO - abilities of virtual addressing
 */
typedef struct _D3DKMT_VIRTUALADDRESSINFO {
	D3DKMT_VIRTUALADDRESSFLAGS VirtualAddressFlags;
} D3DKMT_VIRTUALADDRESSINFO;

/**
 * struct _D3DKMT_XBOX - whether the machine is a console
 */
typedef struct _D3DKMT_XBOX {
	__u32 IsXBOX;
} D3DKMT_XBOX;

/**
 * typedef D3DKMT_DRIVERCAPS_EXT - further abilities of the driver
 */
typedef __u32 D3DKMT_DRIVERCAPS_EXT;
#define D3DKMT_DRIVERCAPS_EXT_VirtualModeSupport	0x00000001
#define D3DKMT_DRIVERCAPS_EXT_Usb4MonitorSupport	0x00000002
#define D3DKMT_DRIVERCAPS_EXT_Reserved			0xfffffffc

/**
 * struct _D3DKMT_KMD_DRIVER_VERSION - version of the kernel driver
 * @DriverVersion: four 16-bit parts, the most significant first
 */
typedef struct _D3DKMT_KMD_DRIVER_VERSION {
	__aligned_s64 DriverVersion;
} D3DKMT_KMD_DRIVER_VERSION;

/**
 * struct _D3DKMT_PARAVIRTUALIZATION - whether the adapter lives in a secure
 *	container
 */
typedef struct _D3DKMT_PARAVIRTUALIZATION {
	__u8 SecureContainer;
} D3DKMT_PARAVIRTUALIZATION;

/**
 * struct _D3DKMT_TRACKEDWORKLOAD_SUPPORT - whether an engine supports tracked
 *	workloads
 */
typedef struct _D3DKMT_TRACKEDWORKLOAD_SUPPORT {
	__u32 PhysicalAdapterIndex;
	DXGK_ENGINE_TYPE EngineType;
	__u32 Support;
} D3DKMT_TRACKEDWORKLOAD_SUPPORT;

/**
 * struct _D3DKMT_HYBRID_DLIST_DLL_SUPPORT - whether a hybrid list library is
 *	supported
 */
typedef struct _D3DKMT_HYBRID_DLIST_DLL_SUPPORT {
	__u32 Supported;
} D3DKMT_HYBRID_DLIST_DLL_SUPPORT;

/**
 * enum _D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER - how resources can be used
 *	across adapters
 */
typedef __u32 D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER;
enum _D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER {
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_NONE = 0,
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_COPY = 1,
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_TEXTURE = 2,
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_SCANOUT = 3
};

/**
 * struct _D3DKMT_CROSSADAPTERRESOURCE_SUPPORT - how resources can be used
 *	across adapters
 */
typedef struct _D3DKMT_CROSSADAPTERRESOURCE_SUPPORT {
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER SupportTier;
} D3DKMT_CROSSADAPTERRESOURCE_SUPPORT;

/**
 * struct _D3DKMT_NODE_PERFDATA - clock and voltage of an engine node
 * @NodeOrdinal: [in] engine node
 * @PhysicalAdapterIndex: [in] physical adapter
 * @Frequency: Hz
 * @Voltage: mV
 * @MaxTransitionLatency: 100 ns units
 */
typedef struct _D3DKMT_NODE_PERFDATA {
	__u32 NodeOrdinal;
	__u32 PhysicalAdapterIndex;
	__aligned_u64 Frequency;
	__aligned_u64 MaxFrequency;
	__aligned_u64 MaxFrequencyOC;
	__u32 Voltage;
	__u32 VoltageMax;
	__u32 VoltageMaxOC;
	__u32 _pad0;
	__aligned_u64 MaxTransitionLatency;
} D3DKMT_NODE_PERFDATA;

/**
 * struct _D3DKMT_ADAPTER_PERFDATA - clocks, bandwidth, power and temperature
 *	of an adapter
 * @PhysicalAdapterIndex: [in] physical adapter
 * @MemoryFrequency: Hz
 * @MemoryBandwidth: bytes per second
 * @PCIEBandwidth: bytes per second
 * @Power: tenths of a percent of the maximum
 * @Temperature: tenths of a degree Celsius
 */
typedef struct _D3DKMT_ADAPTER_PERFDATA {
	__u32 PhysicalAdapterIndex;
	__u32 _pad0;
	__aligned_u64 MemoryFrequency;
	__aligned_u64 MaxMemoryFrequency;
	__aligned_u64 MaxMemoryFrequencyOC;
	__aligned_u64 MemoryBandwidth;
	__aligned_u64 PCIEBandwidth;
	__u32 FanRPM;
	__u32 Power;
	__u32 Temperature;
	__u8 PowerStateOverride;
	__u8 _pad1[3];
} D3DKMT_ADAPTER_PERFDATA;

/**
 * struct _D3DKMT_ADAPTER_PERFDATACAPS - upper bounds of the performance data
 * @PhysicalAdapterIndex: [in] physical adapter
 */
typedef struct _D3DKMT_ADAPTER_PERFDATACAPS {
	__u32 PhysicalAdapterIndex;
	__u32 _pad0;
	__aligned_u64 MaxMemoryBandwidth;
	__aligned_u64 MaxPCIEBandwidth;
	__u32 MaxFanRPM;
	__u32 TemperatureMax;
	__u32 TemperatureWarning;
	__u32 _pad1;
} D3DKMT_ADAPTER_PERFDATACAPS;

/**
 * struct _D3DKMT_GPUVERSION - names of the GPU and its firmware
 * @PhysicalAdapterIndex: [in] physical adapter
 */
typedef struct _D3DKMT_GPUVERSION {
	__u32 PhysicalAdapterIndex;
	__u16 BiosVersion[DXGK_MAX_GPUVERSION_NAME_LENGTH];
	__u16 GpuArchitecture[DXGK_MAX_GPUVERSION_NAME_LENGTH];
} D3DKMT_GPUVERSION;

#endif /* _UAPI_DXG_ADAPTER_INFO_H */
