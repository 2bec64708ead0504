/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Waiting for and signalling synchronisation objects.
 *
 * The arrays of a call run in parallel: entry i of the value array belongs to
 * entry i of the handle array.
 */
#ifndef _UAPI_DXG_SYNC_OPS_H
#define _UAPI_DXG_SYNC_OPS_H

#include "base.h"

/**
 * typedef D3DDDICB_SIGNALFLAGS - data of a call
 */
typedef __u32 D3DDDICB_SIGNALFLAGS;
#define D3DDDICB_SIGNALFLAGS_SignalAtSubmission		0x00000001
#define D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent		0x00000002
#define D3DDDICB_SIGNALFLAGS_AllowFenceRewind		0x00000004
#define D3DDDICB_SIGNALFLAGS_Reserved			0x7ffffff8
#define D3DDDICB_SIGNALFLAGS_DXGK_SIGNAL_FLAG_INTERNAL0	0x80000000

/**
 * struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2_Fence - the Fence arm of D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2
 * @FenceValue: [in]
 */
struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2_Fence {
	__aligned_u64 FenceValue;
};

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 - argument of a call
 * @hContext: [in]
 * @ObjectCount: [in] 1..32
 * @ObjectHandleArray: [in]
 * @Flags: [in]
 * @BroadcastContextCount: [in] 0..64
 * @BroadcastContext: [in]
 * @Fence: [in]
 * @CpuEventHandle: [in] eventfd, with Flags.EnqueueCpuEvent
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECT2.
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
	D3DDDICB_SIGNALFLAGS Flags;
	__u32 BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[64];
	union {
		struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2_Fence Fence;
		__aligned_u64 CpuEventHandle;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT - data of a call
 * @hContext: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in]
 * @Flags: [in]
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
	D3DDDICB_SIGNALFLAGS Flags;
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECT;

/**
 * struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2_Fence - the Fence arm of D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2
 * @FenceValue: [in]
 */
struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2_Fence {
	__aligned_u64 FenceValue;
};

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 - argument of a call
 * @hContext: [in]
 * @ObjectCount: [in] 1..32
 * @ObjectHandleArray: [in]
 * @Fence: [in]
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECT2.
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
	union {
		struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2_Fence Fence;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2;

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT - data of a call
 * @hContext: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in]
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[32];
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECT;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU - argument of a call
 * @hDevice: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValueArray: [in] pointer to __u64[]; u64[ObjectCount]
 * @Flags: [in]
 *
 * Argument of DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU.
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
	D3DKMT_HANDLE hDevice;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	__aligned_u64 FenceValueArray;
	D3DDDICB_SIGNALFLAGS Flags;
	__u32 _pad0;
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU;

/**
 * typedef D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS - data of a call
 */
typedef __u32 D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS;
#define D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny	0x00000001
#define D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_Reserved	0xfffffffe

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU - argument of a call
 * @hDevice: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValueArray: [in] pointer to __u64[]; u64[ObjectCount]
 * @hAsyncEvent: [in] eventfd, or 0 = block in the call
 * @Flags: [in]
 *
 * Argument of DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU.
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
	D3DKMT_HANDLE hDevice;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	__aligned_u64 FenceValueArray;
	__aligned_u64 hAsyncEvent;
	D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS Flags;
	__u32 _pad0;
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU - argument of a call
 * @hContext: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @MonitoredFenceValueArray: [in] pointer to __u64[]; pointer to
 * 	u64[ObjectCount]
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU.
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	union {
		__aligned_u64 MonitoredFenceValueArray;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 - argument of a call
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @Flags: [in]
 * @BroadcastContextCount: [in]
 * @BroadcastContextArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValue: [in] legacy FENCE objects
 * @CpuEventHandle: [in] eventfd, with Flags.EnqueueCpuEvent
 * @MonitoredFenceValueArray: [in] pointer to __u64[]; pointer, monitored and
 * 	native fences
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2.
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 {
	__u32 ObjectCount;
	__u32 _pad0;
	__aligned_u64 ObjectHandleArray;
	D3DDDICB_SIGNALFLAGS Flags;
	__u32 BroadcastContextCount;
	__aligned_u64 BroadcastContextArray;
	union {
		__aligned_u64 FenceValue;
		__aligned_u64 CpuEventHandle;
		__aligned_u64 MonitoredFenceValueArray;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2;

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU - argument of a call
 * @hContext: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @MonitoredFenceValueArray: [in] pointer to __u64[]; pointer, monitored and
 * 	native fences
 * @FenceValue: [in] the value itself, legacy FENCE objects
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMGPU.
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	union {
		__aligned_u64 MonitoredFenceValueArray;
		__aligned_u64 FenceValue;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU;

/**
 * struct _D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE - argument of a call
 * @Flags: [in]
 * @BroadcastHwQueueCount: [in]
 * @BroadcastHwQueueArray: [in] pointer to D3DKMT_HANDLE[]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValueArray: [in] pointer to __u64[]
 *
 * Argument of DXG_IOCTL_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE.
 */
typedef struct _D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE {
	D3DDDICB_SIGNALFLAGS Flags;
	__u32 BroadcastHwQueueCount;
	__aligned_u64 BroadcastHwQueueArray;
	__u32 ObjectCount;
	__u32 _pad0;
	__aligned_u64 ObjectHandleArray;
	__aligned_u64 FenceValueArray;
} D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE;

/**
 * struct _D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE - argument of a call
 * @hHwQueue: [in]
 * @ObjectCount: [in]
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValueArray: [in] pointer to __u64[]
 *
 * Argument of DXG_IOCTL_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE.
 */
typedef struct _D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	__aligned_u64 FenceValueArray;
} D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE;

#endif /* _UAPI_DXG_SYNC_OPS_H */
