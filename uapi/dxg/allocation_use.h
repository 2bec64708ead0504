/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Using allocations: CPU access, priority, offer and reclaim.
 */
#ifndef _UAPI_DXG_ALLOCATION_USE_H
#define _UAPI_DXG_ALLOCATION_USE_H

#include "base.h"

/**
 * struct _D3DKMT_SETALLOCATIONPRIORITY - set the residency priority of
 *	allocations
 * @hDevice: [in] device
 * @hResource: [in] resource, or 0 to use the list
 * @phAllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @AllocationCount: [in] entries of the list
 * @pPriorities: [in] pointer to __u32[], one per allocation
 *
 * Argument of DXG_IOCTL_SETALLOCATIONPRIORITY.
 */
typedef struct _D3DKMT_SETALLOCATIONPRIORITY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	__aligned_u64 phAllocationList;
	__u32 AllocationCount;
	__u32 _pad0;
	__aligned_u64 pPriorities;
} D3DKMT_SETALLOCATIONPRIORITY;

/**
 * struct _D3DKMT_GETALLOCATIONPRIORITY - get the residency priority of
 *	allocations
 * @hDevice: [in] device
 * @hResource: [in] resource
 * @phAllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @AllocationCount: [in] entries of the list
 * @pPriorities: [in] pointer to __u32[] to fill, one per allocation
 *
 * Argument of DXG_IOCTL_GETALLOCATIONPRIORITY.
 */
typedef struct _D3DKMT_GETALLOCATIONPRIORITY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	__aligned_u64 phAllocationList;
	__u32 AllocationCount;
	__u32 _pad0;
	__aligned_u64 pPriorities;
} D3DKMT_GETALLOCATIONPRIORITY;

/**
 * enum _D3DKMT_ALLOCATIONRESIDENCYSTATUS - where an allocation is
 */
typedef __u32 D3DKMT_ALLOCATIONRESIDENCYSTATUS;
enum _D3DKMT_ALLOCATIONRESIDENCYSTATUS {
	D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY = 1,
	D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINSHAREDMEMORY = 2,
	D3DKMT_ALLOCATIONRESIDENCYSTATUS_NOTRESIDENT = 3
};

/**
 * struct _D3DKMT_QUERYALLOCATIONRESIDENCY - ask where allocations are
 * @hDevice: [in] device
 * @hResource: [in] resource
 * @phAllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @AllocationCount: [in] entries of the list
 * @pResidencyStatus: [in] pointer to D3DKMT_ALLOCATIONRESIDENCYSTATUS[] to
 *	fill; one element for a resource
 *
 * Argument of DXG_IOCTL_QUERYALLOCATIONRESIDENCY.
 */
typedef struct _D3DKMT_QUERYALLOCATIONRESIDENCY {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	__aligned_u64 phAllocationList;
	__u32 AllocationCount;
	__u32 _pad0;
	__aligned_u64 pResidencyStatus;
} D3DKMT_QUERYALLOCATIONRESIDENCY;

/**
 * enum _D3DKMT_OFFER_PRIORITY - how soon offered memory may be taken
 */
typedef __u32 D3DKMT_OFFER_PRIORITY;
enum _D3DKMT_OFFER_PRIORITY {
	D3DKMT_OFFER_PRIORITY_LOW = 1,
	D3DKMT_OFFER_PRIORITY_NORMAL = 2,
	D3DKMT_OFFER_PRIORITY_HIGH = 3,
	D3DKMT_OFFER_PRIORITY_AUTO = 4
};

/**
 * typedef D3DKMT_OFFER_FLAGS - how to offer memory
 */
typedef __u32 D3DKMT_OFFER_FLAGS;
#define D3DKMT_OFFER_FLAGS_OfferImmediately	0x00000001
#define D3DKMT_OFFER_FLAGS_AllowDecommit	0x00000002
#define D3DKMT_OFFER_FLAGS_Reserved		0xfffffffc

/**
 * struct _D3DKMT_OFFERALLOCATIONS - let the system take memory that is not in
 *	use
 * @hDevice: [in] device
 * @pResources: [in] pointer to D3DKMT_HANDLE[]; either this or @HandleList is
 *	0
 * @HandleList: [in] pointer to D3DKMT_HANDLE[]
 * @NumAllocations: [in] number of allocations
 * @Priority: [in] priority
 * @Flags: [in] mask constants of the type
 *
 * Argument of DXG_IOCTL_OFFERALLOCATIONS.
 */
typedef struct _D3DKMT_OFFERALLOCATIONS {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 pResources;
	__aligned_u64 HandleList;
	__u32 NumAllocations;
	D3DKMT_OFFER_PRIORITY Priority;
	D3DKMT_OFFER_FLAGS Flags;
	__u32 _pad1;
} D3DKMT_OFFERALLOCATIONS;

/**
 * enum _D3DDDI_RECLAIM_RESULT - what became of an offered allocation
 */
typedef __u32 D3DDDI_RECLAIM_RESULT;
enum _D3DDDI_RECLAIM_RESULT {
	D3DDDI_RECLAIM_RESULT_OK = 0,
	D3DDDI_RECLAIM_RESULT_DISCARDED = 1,
	D3DDDI_RECLAIM_RESULT_NOT_COMMITTED = 2
};

/**
 * struct _D3DKMT_RECLAIMALLOCATIONS2 - take offered memory back
 * @hPagingQueue: [in] paging queue
 * @NumAllocations: [in] number of allocations
 * @pResources: [in] pointer to D3DKMT_HANDLE[]; either this or @HandleList is
 *	0
 * @HandleList: [in] pointer to D3DKMT_HANDLE[]
 * @pDiscarded: [in] pointer to __u32[] to fill with booleans; shares the slot
 *	of @pResults
 * @pResults: [in] pointer to D3DDDI_RECLAIM_RESULT[] to fill
 * @PagingFenceValue: [out] value of the fence of the paging queue at
 *	completion
 *
 * Argument of DXG_IOCTL_RECLAIMALLOCATIONS2.
 */
typedef struct _D3DKMT_RECLAIMALLOCATIONS2 {
	D3DKMT_HANDLE hPagingQueue;
	__u32 NumAllocations;
	__aligned_u64 pResources;
	__aligned_u64 HandleList;
	__extension__ union {
		__aligned_u64 pDiscarded;
		__aligned_u64 pResults;
	};
	__aligned_u64 PagingFenceValue;
} D3DKMT_RECLAIMALLOCATIONS2;

/**
 * typedef D3DDDICB_LOCK2FLAGS - how to map an allocation
 */
typedef __u32 D3DDDICB_LOCK2FLAGS;
#define D3DDDICB_LOCK2FLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_LOCK2 - map an allocation for the CPU
 * @hDevice: [in] device
 * @hAllocation: [in] allocation
 * @Flags: [in] mask constants of the type
 * @pData: [out] address of the mapping that the call made
 *
 * Argument of DXG_IOCTL_LOCK2.
 */
typedef struct _D3DKMT_LOCK2 {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
	D3DDDICB_LOCK2FLAGS Flags;
	__u32 _pad0;
	__aligned_u64 pData;
} D3DKMT_LOCK2;

/**
 * struct _D3DKMT_UNLOCK2 - undo D3DKMT_LOCK2
 * @hDevice: [in] device
 * @hAllocation: [in] allocation
 *
 * Argument of DXG_IOCTL_UNLOCK2.
 */
typedef struct _D3DKMT_UNLOCK2 {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
} D3DKMT_UNLOCK2;

/**
 * struct _D3DKMT_INVALIDATECACHE - make CPU writes of a range visible
 * @hDevice: [in] device
 * @hAllocation: [in] allocation
 * @Offset: [in] bytes
 * @Length: [in] bytes
 *
 * Argument of DXG_IOCTL_INVALIDATECACHE.
 */
typedef struct _D3DKMT_INVALIDATECACHE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
	__aligned_u64 Offset;
	__aligned_u64 Length;
} D3DKMT_INVALIDATECACHE;

/**
 * typedef D3DDDI_SEGMENTPREFERENCE - up to five memory segments in order of
 *	preference
 */
typedef __u32 D3DDDI_SEGMENTPREFERENCE;
#define D3DDDI_SEGMENTPREFERENCE_SegmentId0	0x0000001f
#define D3DDDI_SEGMENTPREFERENCE_Direction0	0x00000020
#define D3DDDI_SEGMENTPREFERENCE_SegmentId1	0x000007c0
#define D3DDDI_SEGMENTPREFERENCE_Direction1	0x00000800
#define D3DDDI_SEGMENTPREFERENCE_SegmentId2	0x0001f000
#define D3DDDI_SEGMENTPREFERENCE_Direction2	0x00020000
#define D3DDDI_SEGMENTPREFERENCE_SegmentId3	0x007c0000
#define D3DDDI_SEGMENTPREFERENCE_Direction3	0x00800000
#define D3DDDI_SEGMENTPREFERENCE_SegmentId4	0x1f000000
#define D3DDDI_SEGMENTPREFERENCE_Direction4	0x20000000
#define D3DDDI_SEGMENTPREFERENCE_Reserved	0xc0000000

/**
 * typedef D3DDDI_UPDATEALLOCPROPERTY_FLAGS - new properties of an allocation
 */
typedef __u32 D3DDDI_UPDATEALLOCPROPERTY_FLAGS;
#define D3DDDI_UPDATEALLOCPROPERTY_FLAGS_AccessedPhysically	0x00000001
#define D3DDDI_UPDATEALLOCPROPERTY_FLAGS_Unmoveable		0x00000002
#define D3DDDI_UPDATEALLOCPROPERTY_FLAGS_Reserved		0xfffffffc

/**
 * struct _D3DDDI_UPDATEALLOCPROPERTY - change where an allocation may live
 * @hPagingQueue: [in] paging queue
 * @hAllocation: [in] allocation
 * @SupportedSegmentSet: [in] bit mask of memory segments
 * @PreferredSegment: [in] segments in order of preference
 * @Flags: [in] mask constants of the type
 * @PagingFenceValue: [out] value of the fence of the paging queue at
 *	completion
 * @PropertyMaskValue: [in] which properties to change, mask constants below
 *
 * Argument of DXG_IOCTL_UPDATEALLOCPROPERTY.
 */
typedef struct _D3DDDI_UPDATEALLOCPROPERTY {
	D3DKMT_HANDLE hPagingQueue;
	D3DKMT_HANDLE hAllocation;
	__u32 SupportedSegmentSet;
	D3DDDI_SEGMENTPREFERENCE PreferredSegment;
	D3DDDI_UPDATEALLOCPROPERTY_FLAGS Flags;
	__u32 _pad0;
	__aligned_u64 PagingFenceValue;
	__u32 PropertyMaskValue;
	__u32 _pad1;
} D3DDDI_UPDATEALLOCPROPERTY;
#define D3DDDI_UPDATEALLOCPROPERTY_SetAccessedPhysically	0x00000001
#define D3DDDI_UPDATEALLOCPROPERTY_SetSupportedSegmentSet	0x00000002
#define D3DDDI_UPDATEALLOCPROPERTY_SetPreferredSegment		0x00000004
#define D3DDDI_UPDATEALLOCPROPERTY_SetUnmoveable		0x00000008
#define D3DDDI_UPDATEALLOCPROPERTY_Reserved			0xfffffff0

/**
 * typedef D3DDDICB_LOCKFLAGS - how to map an allocation, older form
 */
typedef __u32 D3DDDICB_LOCKFLAGS;
#define D3DDDICB_LOCKFLAGS_ReadOnly		0x00000001
#define D3DDDICB_LOCKFLAGS_WriteOnly		0x00000002
#define D3DDDICB_LOCKFLAGS_DonotWait		0x00000004
#define D3DDDICB_LOCKFLAGS_IgnoreSync		0x00000008
#define D3DDDICB_LOCKFLAGS_LockEntire		0x00000010
#define D3DDDICB_LOCKFLAGS_DonotEvict		0x00000020
#define D3DDDICB_LOCKFLAGS_AcquireAperture	0x00000040
#define D3DDDICB_LOCKFLAGS_Discard		0x00000080
#define D3DDDICB_LOCKFLAGS_NoExistingReference	0x00000100
#define D3DDDICB_LOCKFLAGS_UseAlternateVA	0x00000200
#define D3DDDICB_LOCKFLAGS_IgnoreReadSync	0x00000400
#define D3DDDICB_LOCKFLAGS_Reserved		0xfffff800

/**
 * struct _D3DKMT_LOCK - map an allocation for the CPU, older form
 * @hDevice: [in] device
 * @hAllocation: [in,out] may be replaced when the lock discards and renames
 * @PrivateDriverData: [in] driver-defined
 * @NumPages: [in] entries of pPages
 * @pPages: [in] pointer to __u32[], page numbers of a partial lock
 * @pData: [out] address of the mapping
 * @Flags: [in] mask constants of the type
 * @GpuVirtualAddress: [out] GPU address, 0 when not mapped
 */
typedef struct _D3DKMT_LOCK {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hAllocation;
	__u32 PrivateDriverData;
	__u32 NumPages;
	__aligned_u64 pPages;
	__aligned_u64 pData;
	D3DDDICB_LOCKFLAGS Flags;
	__u32 _pad0;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
} D3DKMT_LOCK;

/**
 * struct _D3DKMT_UNLOCK - undo D3DKMT_LOCK
 * @hDevice: [in] device
 * @NumAllocations: [in] number of allocations
 * @phAllocations: [in] pointer to D3DKMT_HANDLE[]
 */
typedef struct _D3DKMT_UNLOCK {
	D3DKMT_HANDLE hDevice;
	__u32 NumAllocations;
	__aligned_u64 phAllocations;
} D3DKMT_UNLOCK;

/**
 * struct _D3DKMT_RECLAIMALLOCATIONS - take offered memory back, without a
 *	paging queue
 * @hDevice: [in] device
 * @pResources: [in] pointer to D3DKMT_HANDLE[]; either this or @HandleList is
 *	0
 * @HandleList: [in] pointer to D3DKMT_HANDLE[]
 * @pDiscarded: [in] pointer to __u32[] to fill with booleans, or 0
 * @NumAllocations: [in] number of allocations
 */
typedef struct _D3DKMT_RECLAIMALLOCATIONS {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 pResources;
	__aligned_u64 HandleList;
	__aligned_u64 pDiscarded;
	__u32 NumAllocations;
	__u32 _pad1;
} D3DKMT_RECLAIMALLOCATIONS;

/**
 * struct _D3DKMT_GETRUNTIMEDATA - read the private runtime data of a resource
 * @hAdapter: [in] adapter
 * @hGlobalShare: [in] global KMT handle of the resource
 * @pRuntimeData: [in] buffer to fill
 * @RuntimeDataSize: [in] bytes
 */
typedef struct _D3DKMT_GETRUNTIMEDATA {
	D3DKMT_HANDLE hAdapter;
	D3DKMT_HANDLE hGlobalShare;
	__aligned_u64 pRuntimeData;
	__u32 RuntimeDataSize;
	__u32 _pad0;
} D3DKMT_GETRUNTIMEDATA;

/**
 * struct _D3DKMT_CHECKSHAREDRESOURCEACCESS - ask whether a process may open a
 *	resource
 * @hResource: [in] resource
 * @ClientPid: [in] process id
 */
typedef struct _D3DKMT_CHECKSHAREDRESOURCEACCESS {
	D3DKMT_HANDLE hResource;
	__u32 ClientPid;
} D3DKMT_CHECKSHAREDRESOURCEACCESS;

/**
 * struct _D3DKMT_CONFIGURESHAREDRESOURCE - admit a process to a resource that
 *	was created with RestrictSharedAccess
 * @hDevice: [in] device
 * @hResource: [in] resource
 * @IsDwm: [in] 0: there is no window system
 * @hProcess: [in] process: a pidfd
 * @AllowAccess: [in] 1 admits the process, 0 stops admitting it
 */
typedef struct _D3DKMT_CONFIGURESHAREDRESOURCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hResource;
	__u8 IsDwm;
	__u8 _pad0[7];
	__aligned_u64 hProcess;
	__u8 AllowAccess;
	__u8 _pad1[7];
} D3DKMT_CONFIGURESHAREDRESOURCE;

/**
 * struct _D3DKMT_QUERYPROCESSOFFERINFO - ask how much offered memory can be
 *	decommitted
 * @cbSize: [in] 32
 * @hProcess: [in] NT handle
 * @DecommitUniqueness: [out] changes when offered memory changes
 * @DecommittableBytes: [out] bytes
 */
typedef struct _D3DKMT_QUERYPROCESSOFFERINFO {
	__u32 cbSize;
	__u32 _pad0;
	__aligned_u64 hProcess;
	__aligned_u64 DecommitUniqueness;
	__aligned_u64 DecommittableBytes;
} D3DKMT_QUERYPROCESSOFFERINFO;

/**
 * typedef D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS - which offered memory to
 *	decommit
 */
typedef __u32 D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS;
#define D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS_Lazy			0x00000001
#define D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS_OnlyRepurposed	0x00000002
#define D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS_Reserved		0xfffffffc

/**
 * struct _D3DKMT_TRIMPROCESSCOMMITMENT - decommit offered memory of a process
 * @cbSize: [in] 40
 * @hProcess: [in] NT handle
 * @Flags: [in] mask constants of the type
 * @DecommitRequested: [in] bytes
 * @NumBytesDecommitted: [out] bytes
 */
typedef struct _D3DKMT_TRIMPROCESSCOMMITMENT {
	__u32 cbSize;
	__u32 _pad0;
	__aligned_u64 hProcess;
	D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS Flags;
	__u32 _pad1;
	__aligned_u64 DecommitRequested;
	__aligned_u64 NumBytesDecommitted;
} D3DKMT_TRIMPROCESSCOMMITMENT;

/* Residency priorities of D3DKMT_SETALLOCATIONPRIORITY. */
#define D3DDDI_ALLOCATIONPRIORITY_MINIMUM	0x28000000
#define D3DDDI_ALLOCATIONPRIORITY_LOW		0x50000000
#define D3DDDI_ALLOCATIONPRIORITY_NORMAL	0x78000000
#define D3DDDI_ALLOCATIONPRIORITY_HIGH		0xa0000000
#define D3DDDI_ALLOCATIONPRIORITY_MAXIMUM	0xc8000000

#endif /* _UAPI_DXG_ALLOCATION_USE_H */
