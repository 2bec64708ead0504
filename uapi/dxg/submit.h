/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Submission of work and scheduling priorities.
 */
#ifndef _UAPI_DXG_SUBMIT_H
#define _UAPI_DXG_SUBMIT_H

#include "base.h"

/**
 * enum _D3DDDI_OFFER_PRIORITY - OfferPriority of D3DDDI_ALLOCATIONLIST
 */
typedef __u32 D3DDDI_OFFER_PRIORITY;
enum _D3DDDI_OFFER_PRIORITY {
	D3DDDI_OFFER_PRIORITY_NONE = 0,
	D3DDDI_OFFER_PRIORITY_LOW = 1,
	D3DDDI_OFFER_PRIORITY_NORMAL = 2,
	D3DDDI_OFFER_PRIORITY_HIGH = 3,
	D3DDDI_OFFER_PRIORITY_AUTO = 4
};

/**
 * struct _D3DDDI_ALLOCATIONLIST - one allocation that a packet uses
 * @hAllocation: [in] allocation
 * @Value: [in] mask constants below
 */
typedef struct _D3DDDI_ALLOCATIONLIST {
	D3DKMT_HANDLE hAllocation;
	__u32 Value;
} D3DDDI_ALLOCATIONLIST;
#define D3DDDI_ALLOCATIONLIST_WriteOperation		0x00000001
#define D3DDDI_ALLOCATIONLIST_DoNotRetireInstance	0x00000002
#define D3DDDI_ALLOCATIONLIST_OfferPriority		0x0000001c
#define D3DDDI_ALLOCATIONLIST_Reserved			0xffffffe0

/**
 * struct _D3DDDI_PATCHLOCATIONLIST - one place where a packet names an
 *	allocation
 * @AllocationIndex: [in] index into the allocation list
 * @Value: [in] mask constants below
 * @DriverId: [in] driver-defined
 * @AllocationOffset: [in] bytes
 * @PatchOffset: [in] bytes
 * @SplitOffset: [in] bytes
 */
typedef struct _D3DDDI_PATCHLOCATIONLIST {
	__u32 AllocationIndex;
	__u32 Value;
	__u32 DriverId;
	__u32 AllocationOffset;
	__u32 PatchOffset;
	__u32 SplitOffset;
} D3DDDI_PATCHLOCATIONLIST;
#define D3DDDI_PATCHLOCATIONLIST_SlotId		0x00ffffff
#define D3DDDI_PATCHLOCATIONLIST_Reserved	0xff000000

/**
 * typedef D3DKMT_SUBMITCOMMANDFLAGS - how to submit work
 */
typedef __u32 D3DKMT_SUBMITCOMMANDFLAGS;
#define D3DKMT_SUBMITCOMMANDFLAGS_NullRendering		0x00000001
#define D3DKMT_SUBMITCOMMANDFLAGS_PresentRedirected	0x00000002
#define D3DKMT_SUBMITCOMMANDFLAGS_NoKmdAccess		0x00000004
#define D3DKMT_SUBMITCOMMANDFLAGS_Reserved		0xfffffff8

/**
 * struct _D3DKMT_SUBMITCOMMAND - submit work to a context with virtual
 *	addresses
 * @Commands: [in] GPU address of the commands
 * @CommandLength: [in] bytes
 * @Flags: [in] mask constants of the type
 * @PresentHistoryToken: [in] driver-defined
 * @BroadcastContextCount: [in] 1..64; BroadcastContext[0] is the submitting
 *	context
 * @BroadcastContext: [in] contexts
 * @pPrivateDriverData: [in] address of driver data
 * @PrivateDriverDataSize: [in] bytes
 * @NumPrimaries: [in] 0..16
 * @WrittenPrimaries: [in] allocation handles
 * @NumHistoryBuffers: [in] entries of HistoryBufferArray
 * @HistoryBufferArray: [in] pointer to D3DKMT_HANDLE[]
 *
 * Argument of DXG_IOCTL_SUBMITCOMMAND.
 */
typedef struct _D3DKMT_SUBMITCOMMAND {
	D3DGPU_VIRTUAL_ADDRESS Commands;
	__u32 CommandLength;
	D3DKMT_SUBMITCOMMANDFLAGS Flags;
	__aligned_u64 PresentHistoryToken;
	__u32 BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
	__u32 _pad0;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 NumPrimaries;
	D3DKMT_HANDLE WrittenPrimaries[D3DDDI_MAX_WRITTEN_PRIMARIES];
	__u32 NumHistoryBuffers;
	__u32 _pad1;
	__aligned_u64 HistoryBufferArray;
} D3DKMT_SUBMITCOMMAND;

/**
 * struct _D3DKMT_SUBMITCOMMANDTOHWQUEUE - submit work to a hardware queue
 * @hHwQueue: [in] hardware queue
 * @HwQueueProgressFenceId: [in] value the progress fence takes when this
 *	command is done
 * @CommandBuffer: [in] GPU address of the commands
 * @CommandLength: [in] bytes
 * @PrivateDriverDataSize: [in] bytes
 * @pPrivateDriverData: [in] address of driver data
 * @NumPrimaries: [in] entries of WrittenPrimaries
 * @WrittenPrimaries: [in] pointer to D3DKMT_HANDLE[], allocations
 *
 * Argument of DXG_IOCTL_SUBMITCOMMANDTOHWQUEUE.
 */
typedef struct _D3DKMT_SUBMITCOMMANDTOHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
	__u32 _pad0;
	__aligned_u64 HwQueueProgressFenceId;
	D3DGPU_VIRTUAL_ADDRESS CommandBuffer;
	__u32 CommandLength;
	__u32 PrivateDriverDataSize;
	__aligned_u64 pPrivateDriverData;
	__u32 NumPrimaries;
	__u32 _pad1;
	__aligned_u64 WrittenPrimaries;
} D3DKMT_SUBMITCOMMANDTOHWQUEUE;

/**
 * typedef D3DKMT_RENDERFLAGS - how to submit a packet
 */
typedef __u32 D3DKMT_RENDERFLAGS;
#define D3DKMT_RENDERFLAGS_ResizeCommandBuffer		0x00000001
#define D3DKMT_RENDERFLAGS_ResizeAllocationList		0x00000002
#define D3DKMT_RENDERFLAGS_ResizePatchLocationList	0x00000004
#define D3DKMT_RENDERFLAGS_NullRendering		0x00000008
#define D3DKMT_RENDERFLAGS_PresentRedirected		0x00000010
#define D3DKMT_RENDERFLAGS_RenderKm			0x00000020
#define D3DKMT_RENDERFLAGS_RenderKmReadback		0x00000040
#define D3DKMT_RENDERFLAGS_Reserved			0xffffff80

/**
 * struct _D3DKMT_RENDER - submit a packet to a context addressed by packets
 * @hDevice: [in] device
 * @hContext: [in] context
 * @CommandOffset: [in] bytes
 * @CommandLength: [in] bytes
 * @AllocationCount: [in] entries of the list
 * @PatchLocationCount: [in] entries
 * @pNewCommandBuffer: [in,out] address of the next command buffer
 * @NewCommandBufferSize: [in,out] bytes
 * @pNewAllocationList: [in,out] pointer to D3DDDI_ALLOCATIONLIST[]
 * @NewAllocationListSize: [in,out] entries
 * @pNewPatchLocationList: [in,out] pointer to D3DDDI_PATCHLOCATIONLIST[]
 * @NewPatchLocationListSize: [in,out] entries
 * @Flags: [in] mask constants of the type
 * @PresentHistoryToken: [in] driver-defined
 * @BroadcastContextCount: [in] contexts in BroadcastContext
 * @BroadcastContext: [in] contexts
 * @QueuedBufferCount: [out] packets in the queue
 * @NewCommandBuffer: [out] GPU address of the next command buffer
 * @pPrivateDriverData: [in] address of driver data
 * @PrivateDriverDataSize: [in] bytes
 *
 * Argument of DXG_IOCTL_RENDER.
 */
typedef struct _D3DKMT_RENDER {
	__extension__ union {
		D3DKMT_HANDLE hDevice;
		D3DKMT_HANDLE hContext;
	};
	__u32 CommandOffset;
	__u32 CommandLength;
	__u32 AllocationCount;
	__u32 PatchLocationCount;
	__u32 _pad0;
	__aligned_u64 pNewCommandBuffer;
	__u32 NewCommandBufferSize;
	__u32 _pad1;
	__aligned_u64 pNewAllocationList;
	__u32 NewAllocationListSize;
	__u32 _pad2;
	__aligned_u64 pNewPatchLocationList;
	__u32 NewPatchLocationListSize;
	D3DKMT_RENDERFLAGS Flags;
	__aligned_u64 PresentHistoryToken;
	__u32 BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
	__u32 QueuedBufferCount;
	D3DGPU_VIRTUAL_ADDRESS NewCommandBuffer;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 _pad3;
} D3DKMT_RENDER;

/**
 * struct _D3DKMT_SETCONTEXTSCHEDULINGPRIORITY - set the priority of a context
 *	among all contexts
 * @hContext: [in] context
 * @Priority: [in] -7 to 7, relative; absolute with
 *	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY_ABSOLUTE
 *
 * Argument of DXG_IOCTL_SETCONTEXTSCHEDULINGPRIORITY.
 */
typedef struct _D3DKMT_SETCONTEXTSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	__s32 Priority;
} D3DKMT_SETCONTEXTSCHEDULINGPRIORITY;

/**
 * struct _D3DKMT_GETCONTEXTSCHEDULINGPRIORITY - get the priority of a context
 *	among all contexts
 * @hContext: [in] context
 * @Priority: [out] priority
 *
 * Argument of DXG_IOCTL_GETCONTEXTSCHEDULINGPRIORITY.
 */
typedef struct _D3DKMT_GETCONTEXTSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	__s32 Priority;
} D3DKMT_GETCONTEXTSCHEDULINGPRIORITY;

/**
 * struct _D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY - set the priority of a
 *	context in its process
 * @hContext: [in] context
 * @Priority: [in] priority
 *
 * Argument of DXG_IOCTL_SETCONTEXTINPROCESSSCHEDULINGPRIORITY.
 */
typedef struct _D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	__s32 Priority;
} D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY;

/**
 * struct _D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY - get the priority of a
 *	context in its process
 * @hContext: [in] context
 * @Priority: [out] priority
 *
 * Argument of DXG_IOCTL_GETCONTEXTINPROCESSSCHEDULINGPRIORITY.
 */
typedef struct _D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY {
	D3DKMT_HANDLE hContext;
	__s32 Priority;
} D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY;

/* In a scheduling priority: the value is absolute, not relative to the process. */
#define D3DKMT_SETCONTEXTSCHEDULINGPRIORITY_ABSOLUTE	0x40000000

#endif /* _UAPI_DXG_SUBMIT_H */
