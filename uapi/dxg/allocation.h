/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Creating and destroying allocations and resources.
 *
 * One struct serves two C functions: D3DKMTCreateAllocation passes 40-byte
 * D3DDDI_ALLOCATIONINFO entries, D3DKMTCreateAllocation2 and the ioctl 96-byte
 * D3DDDI_ALLOCATIONINFO2.
 */
#ifndef _UAPI_DXG_ALLOCATION_H
#define _UAPI_DXG_ALLOCATION_H

#include "base.h"

/**
 * enum _D3DKMT_STANDARDALLOCATIONTYPE - data of a call
 */
typedef __u32 D3DKMT_STANDARDALLOCATIONTYPE;
enum _D3DKMT_STANDARDALLOCATIONTYPE {
	D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP = 1,
	D3DKMT_STANDARDALLOCATIONTYPE_INTERNALBACKINGSTORE = 2,
	D3DKMT_STANDARDALLOCATIONTYPE_MAX = 3,
};

/**
 * struct _D3DKMT_STANDARDALLOCATION_EXISTINGHEAP - data of a call
 * @Size: [in] multiple of 4096
 */
typedef struct _D3DKMT_STANDARDALLOCATION_EXISTINGHEAP {
	__aligned_u64 Size;
} D3DKMT_STANDARDALLOCATION_EXISTINGHEAP;

/**
 * typedef D3DKMT_CREATESTANDARDALLOCATIONFLAGS - data of a call
 */
typedef __u32 D3DKMT_CREATESTANDARDALLOCATIONFLAGS;
#define D3DKMT_CREATESTANDARDALLOCATIONFLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_CREATESTANDARDALLOCATION - data of a call
 * @Type: [in]
 * @ExistingHeapData: [in]
 * @Flags: [in]
 */
typedef struct _D3DKMT_CREATESTANDARDALLOCATION {
	D3DKMT_STANDARDALLOCATIONTYPE Type;
	__u32 _pad0;
	D3DKMT_STANDARDALLOCATION_EXISTINGHEAP ExistingHeapData;
	D3DKMT_CREATESTANDARDALLOCATIONFLAGS Flags;
	__u32 _pad1;
} D3DKMT_CREATESTANDARDALLOCATION;

/**
 * struct _D3DDDI_ALLOCATIONINFO - data of a call
 * @hAllocation: [out]
 * @pSystemMem: [in] pointer
 * @pPrivateDriverData: [in,out] pointer
 * @PrivateDriverDataSize: [in]
 * @VidPnSourceId: [in]
 * @Flags: [in]
 */
typedef struct _D3DDDI_ALLOCATIONINFO {
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__aligned_u64 pSystemMem;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 VidPnSourceId;
	__u32 Flags;
	__u32 _pad1;
} D3DDDI_ALLOCATIONINFO;
#define D3DDDI_ALLOCATIONINFO_Flags_Primary	0x00000001
#define D3DDDI_ALLOCATIONINFO_Flags_Stereo	0x00000002
#define D3DDDI_ALLOCATIONINFO_Flags_Reserved	0xfffffffc

/**
 * struct _D3DDDI_ALLOCATIONINFO2 - data of a call
 * @hAllocation: [out]
 * @hSection: [in] with Flags.ExistingSection
 * @pSystemMem: [in] pointer; page-aligned user memory (with ExistingSysMem, or
 * 	driver-defined use)
 * @pPrivateDriverData: [in,out] pointer
 * @PrivateDriverDataSize: [in]
 * @VidPnSourceId: [in]
 * @Flags: [in]
 * @GpuVirtualAddress: [out]
 * @Priority: [in] with Flags.OverridePriority
 * @Unused: [unused]
 * @Reserved: [in] zero
 */
typedef struct _D3DDDI_ALLOCATIONINFO2 {
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	union {
		__aligned_u64 hSection;
		__aligned_u64 pSystemMem;
	};
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 VidPnSourceId;
	__u32 Flags;
	__u32 _pad1;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
	union {
		__u32 Priority;
		__aligned_u64 Unused;
	};
	__aligned_u64 Reserved[5];
} D3DDDI_ALLOCATIONINFO2;
#define D3DDDI_ALLOCATIONINFO2_Flags_Primary		0x00000001
#define D3DDDI_ALLOCATIONINFO2_Flags_Stereo		0x00000002
#define D3DDDI_ALLOCATIONINFO2_Flags_OverridePriority	0x00000004
#define D3DDDI_ALLOCATIONINFO2_Flags_Reserved		0xfffffff8

/**
 * typedef D3DKMT_CREATEALLOCATIONFLAGS - data of a call
 */
typedef __u32 D3DKMT_CREATEALLOCATIONFLAGS;
#define D3DKMT_CREATEALLOCATIONFLAGS_CreateResource		0x00000001
#define D3DKMT_CREATEALLOCATIONFLAGS_CreateShared		0x00000002
#define D3DKMT_CREATEALLOCATIONFLAGS_NonSecure			0x00000004
#define D3DKMT_CREATEALLOCATIONFLAGS_CreateProtected		0x00000008
#define D3DKMT_CREATEALLOCATIONFLAGS_RestrictSharedAccess	0x00000010
#define D3DKMT_CREATEALLOCATIONFLAGS_ExistingSysMem		0x00000020
#define D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing		0x00000040
#define D3DKMT_CREATEALLOCATIONFLAGS_ReadOnly			0x00000080
#define D3DKMT_CREATEALLOCATIONFLAGS_CreateWriteCombined	0x00000100
#define D3DKMT_CREATEALLOCATIONFLAGS_CreateCached		0x00000200
#define D3DKMT_CREATEALLOCATIONFLAGS_SwapChainBackBuffer	0x00000400
#define D3DKMT_CREATEALLOCATIONFLAGS_CrossAdapter		0x00000800
#define D3DKMT_CREATEALLOCATIONFLAGS_OpenCrossAdapter		0x00001000
#define D3DKMT_CREATEALLOCATIONFLAGS_PartialSharedCreation	0x00002000
#define D3DKMT_CREATEALLOCATIONFLAGS_Zeroed			0x00004000
#define D3DKMT_CREATEALLOCATIONFLAGS_WriteWatch			0x00008000
#define D3DKMT_CREATEALLOCATIONFLAGS_StandardAllocation		0x00010000
#define D3DKMT_CREATEALLOCATIONFLAGS_ExistingSection		0x00020000
#define D3DKMT_CREATEALLOCATIONFLAGS_AllowNotZeroed		0x00040000
#define D3DKMT_CREATEALLOCATIONFLAGS_PhysicallyContiguous	0x00080000
#define D3DKMT_CREATEALLOCATIONFLAGS_NoKmdAccess		0x00100000
#define D3DKMT_CREATEALLOCATIONFLAGS_SharedDisplayable		0x00200000
#define D3DKMT_CREATEALLOCATIONFLAGS_Reserved			0xffc00000

/**
 * struct _D3DKMT_CREATEALLOCATION - argument of a call
 * @hDevice: [in]
 * @hResource: [in,out] in: existing resource to add to, else 0 (standard
 * 	allocations: must be 0; a bogus value is INVALID_HANDLE); out: new resource
 * 	when CreateResource
 * @hGlobalShare: [out] global handle when CreateShared without
 * 	NtSecuritySharing, else 0
 * @pPrivateRuntimeData: [in] pointer; opaque; stored with the resource
 * @PrivateRuntimeDataSize: [in]
 * @pStandardAllocation: [in] pointer to D3DKMT_CREATESTANDARDALLOCATION[];
 * 	when Flags.StandardAllocation
 * @pPrivateDriverData: [in] pointer; resource-level driver data otherwise
 * @PrivateDriverDataSize: [in] must be 0 with StandardAllocation
 * @NumAllocations: [in] WSL limit 1024
 * @pAllocationInfo: [unused] pointer to D3DDDI_ALLOCATIONINFO[]; 40-byte
 * 	entries: C function D3DKMTCreateAllocation only, never the ioctl
 * @pAllocationInfo2: [in] pointer to D3DDDI_ALLOCATIONINFO2[]; 96-byte entries
 * @Flags: [in] Zeroed is an output bit
 * @hPrivateRuntimeResourceHandle: [in] opaque tag for tracing, returned
 * 	unchanged
 *
 * Argument of DXG_IOCTL_CREATEALLOCATION.
 */
typedef struct _D3DKMT_CREATEALLOCATION {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	D3DKMT_HANDLE hGlobalShare;
	__u32 _pad0;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad1;
	union {
		__aligned_u64 pStandardAllocation;
		__aligned_u64 pPrivateDriverData;
	};
	__u32 PrivateDriverDataSize;
	__u32 NumAllocations;
	union {
		__aligned_u64 pAllocationInfo;
		__aligned_u64 pAllocationInfo2;
	};
	D3DKMT_CREATEALLOCATIONFLAGS Flags;
	__u32 _pad2;
	__aligned_u64 hPrivateRuntimeResourceHandle;
} D3DKMT_CREATEALLOCATION;

/**
 * typedef D3DDDICB_DESTROYALLOCATION2FLAGS - data of a call
 */
typedef __u32 D3DDDICB_DESTROYALLOCATION2FLAGS;
#define D3DDDICB_DESTROYALLOCATION2FLAGS_AssumeNotInUse		0x00000001
#define D3DDDICB_DESTROYALLOCATION2FLAGS_SynchronousDestroy	0x00000002
#define D3DDDICB_DESTROYALLOCATION2FLAGS_Reserved		0x7ffffffc
#define D3DDDICB_DESTROYALLOCATION2FLAGS_SystemUseOnly		0x80000000

/**
 * struct _D3DKMT_DESTROYALLOCATION2 - argument of a call
 * @hDevice: [in]
 * @hResource: [in] 0 = destroy the listed allocations; else destroy the
 * 	resource with all its allocations
 * @phAllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @AllocationCount: [in]
 * @Flags: [in]
 *
 * Argument of DXG_IOCTL_DESTROYALLOCATION2.
 */
typedef struct _D3DKMT_DESTROYALLOCATION2 {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	__aligned_u64 phAllocationList;
	__u32 AllocationCount;
	D3DDDICB_DESTROYALLOCATION2FLAGS Flags;
} D3DKMT_DESTROYALLOCATION2;

/**
 * struct _D3DKMT_DESTROYALLOCATION - data of a call
 * @hDevice: [in]
 * @hResource: [in]
 * @phAllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @AllocationCount: [in] prefix of DESTROYALLOCATION2; the shim zero-extends
 */
typedef struct _D3DKMT_DESTROYALLOCATION {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	__aligned_u64 phAllocationList;
	__u32 AllocationCount;
	__u32 _pad0;
} D3DKMT_DESTROYALLOCATION;

#endif /* _UAPI_DXG_ALLOCATION_H */
