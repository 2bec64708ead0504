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
 * enum _D3DKMT_STANDARDALLOCATIONTYPE - kind of a standard allocation
 *
 * EXISTINGHEAP is memory of the caller or a file. CROSSADAPTER is new memory
 * that devices of every adapter can open; some headers have another name for
 * its number.
 */
typedef __u32 D3DKMT_STANDARDALLOCATIONTYPE;
enum _D3DKMT_STANDARDALLOCATIONTYPE {
	D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP = 1,
	D3DKMT_STANDARDALLOCATIONTYPE_INTERNALBACKINGSTORE = 2,
	D3DKMT_STANDARDALLOCATIONTYPE_CROSSADAPTER = 2,
	D3DKMT_STANDARDALLOCATIONTYPE_MAX = 3
};

/**
 * struct _D3DKMT_STANDARDALLOCATION_EXISTINGHEAP - bytes of a standard
 *	allocation of either type
 * @Size: [in] multiple of 4096
 */
typedef struct _D3DKMT_STANDARDALLOCATION_EXISTINGHEAP {
	__aligned_u64 Size;
} D3DKMT_STANDARDALLOCATION_EXISTINGHEAP;

/**
 * typedef D3DKMT_CREATESTANDARDALLOCATIONFLAGS - how to create a standard
 *	allocation
 */
typedef __u32 D3DKMT_CREATESTANDARDALLOCATIONFLAGS;
#define D3DKMT_CREATESTANDARDALLOCATIONFLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_CREATESTANDARDALLOCATION - describe an allocation without a
 *	driver
 * @Type: [in] kind
 * @ExistingHeapData: [in] for EXISTINGHEAP
 * @Flags: [in] mask constants of the type
 */
typedef struct _D3DKMT_CREATESTANDARDALLOCATION {
	D3DKMT_STANDARDALLOCATIONTYPE Type;
	__u32 _pad0;
	D3DKMT_STANDARDALLOCATION_EXISTINGHEAP ExistingHeapData;
	D3DKMT_CREATESTANDARDALLOCATIONFLAGS Flags;
	__u32 _pad1;
} D3DKMT_CREATESTANDARDALLOCATION;

/**
 * struct _D3DDDI_ALLOCATIONINFO - one allocation to create, short form
 * @hAllocation: [out] allocation
 * @pSystemMem: [in] address of page-aligned memory
 * @pPrivateDriverData: [in] address of driver data, which the driver may
 *	change
 * @PrivateDriverDataSize: [in] bytes
 * @VidPnSourceId: [in] display source
 * @Flags: [in] mask constants below
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
 * struct _D3DDDI_ALLOCATIONINFO2 - one allocation to create
 * @hAllocation: [out] allocation
 * @hSection: [in] with ExistingSection
 * @pSystemMem: [in] address of page-aligned memory, with ExistingSysMem or as
 *	the driver defines
 * @pPrivateDriverData: [in] address of driver data, which the driver may
 *	change
 * @PrivateDriverDataSize: [in] bytes
 * @VidPnSourceId: [in] display source
 * @Flags: [in] mask constants below
 * @GpuVirtualAddress: [out] GPU address, 0 when not mapped
 * @Priority: [in] residency priority, with OverridePriority
 * @Unused: not used
 * @Reserved: [in] 0
 */
typedef struct _D3DDDI_ALLOCATIONINFO2 {
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__extension__ union {
		__aligned_u64 hSection;
		__aligned_u64 pSystemMem;
	};
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 VidPnSourceId;
	__u32 Flags;
	__u32 _pad1;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
	__extension__ union {
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
 * typedef D3DKMT_CREATEALLOCATIONFLAGS - how to create allocations
 *
 * Zeroed is an output.
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
 * struct _D3DKMT_CREATEALLOCATION - create allocations, and a resource around
 *	them
 * @hDevice: [in] device
 * @hResource: [in,out] resource to add to, else 0; new resource with
 *	CreateResource. Must be 0 for a standard allocation
 * @hGlobalShare: [out] global handle when CreateShared without
 *	NtSecuritySharing, else 0
 * @pPrivateRuntimeData: [in] address of opaque bytes, stored with the resource
 * @PrivateRuntimeDataSize: [in] bytes
 * @pStandardAllocation: [in] address of a D3DKMT_CREATESTANDARDALLOCATION,
 *	with StandardAllocation
 * @pPrivateDriverData: [in] address of driver data of the resource, otherwise
 * @PrivateDriverDataSize: [in] bytes; 0 with StandardAllocation
 * @NumAllocations: [in] entries of the info array, at most 4096
 * @pAllocationInfo: pointer to D3DDDI_ALLOCATIONINFO[]; C function
 *	D3DKMTCreateAllocation only, never the ioctl
 * @pAllocationInfo2: [in] pointer to D3DDDI_ALLOCATIONINFO2[]
 * @Flags: [in,out] mask constants of the type; Zeroed is an output
 * @hPrivateRuntimeResourceHandle: [in] opaque tag for tracing, returned
 *	unchanged
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
	__extension__ union {
		__aligned_u64 pStandardAllocation;
		__aligned_u64 pPrivateDriverData;
	};
	__u32 PrivateDriverDataSize;
	__u32 NumAllocations;
	__extension__ union {
		__aligned_u64 pAllocationInfo;
		__aligned_u64 pAllocationInfo2;
	};
	D3DKMT_CREATEALLOCATIONFLAGS Flags;
	__u32 _pad2;
	__aligned_u64 hPrivateRuntimeResourceHandle;
} D3DKMT_CREATEALLOCATION;

/**
 * typedef D3DDDICB_DESTROYALLOCATION2FLAGS - how to destroy allocations
 */
typedef __u32 D3DDDICB_DESTROYALLOCATION2FLAGS;
#define D3DDDICB_DESTROYALLOCATION2FLAGS_AssumeNotInUse		0x00000001
#define D3DDDICB_DESTROYALLOCATION2FLAGS_SynchronousDestroy	0x00000002
#define D3DDDICB_DESTROYALLOCATION2FLAGS_Reserved		0x7ffffffc
#define D3DDDICB_DESTROYALLOCATION2FLAGS_SystemUseOnly		0x80000000

/**
 * struct _D3DKMT_DESTROYALLOCATION2 - destroy allocations or a resource
 * @hDevice: [in] device
 * @hResource: [in] resource to destroy with all its allocations; 0 to destroy
 *	the listed ones
 * @phAllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @AllocationCount: [in] entries of the list
 * @Flags: [in] mask constants of the type
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
 * struct _D3DKMT_DESTROYALLOCATION - destroy allocations or a resource, short
 *	form
 * @hDevice: [in] device
 * @hResource: [in] resource to destroy with all its allocations; 0 to destroy
 *	the listed ones
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

/* Alignment of allocations that several adapters use: bytes and rows. */
#define D3DKMT_CROSS_ADAPTER_RESOURCE_PITCH_ALIGNMENT	128
#define D3DKMT_CROSS_ADAPTER_RESOURCE_HEIGHT_ALIGNMENT	4

#endif /* _UAPI_DXG_ALLOCATION_H */
