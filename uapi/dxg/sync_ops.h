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
 * typedef D3DDDICB_SIGNALFLAGS - how to signal
 */
typedef __u32 D3DDDICB_SIGNALFLAGS;
#define D3DDDICB_SIGNALFLAGS_SignalAtSubmission		0x00000001
#define D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent		0x00000002
#define D3DDDICB_SIGNALFLAGS_AllowFenceRewind		0x00000004
#define D3DDDICB_SIGNALFLAGS_Reserved			0x7ffffff8
#define D3DDDICB_SIGNALFLAGS_DXGK_SIGNAL_FLAG_INTERNAL0	0x80000000

/**
 * struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2_Fence - value of a legacy fence
 * @FenceValue: [in] fence value
 */
struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2_Fence {
	__aligned_u64 FenceValue;
};

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 - signal in contexts
 * @hContext: [in] context
 * @ObjectCount: [in] 1..32
 * @ObjectHandleArray: [in] handles, ObjectCount of them
 * @Flags: [in] mask constants of the type
 * @BroadcastContextCount: [in] 0..64
 * @BroadcastContext: [in] contexts
 * @Fence: [in] arm of a legacy fence
 * @CpuEventHandle: [in] eventfd, with Flags.EnqueueCpuEvent
 * @Reserved: not used
 *
 * Argument of DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECT2.
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_SIGNALED];
	D3DDDICB_SIGNALFLAGS Flags;
	__u32 BroadcastContextCount;
	D3DKMT_HANDLE BroadcastContext[D3DDDI_MAX_BROADCAST_CONTEXT];
	__extension__ union {
		struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2_Fence Fence;
		__aligned_u64 CpuEventHandle;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT - signal in a context, older form
 * @hContext: [in] context
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] handles, ObjectCount of them
 * @Flags: [in] mask constants of the type
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_SIGNALED];
	D3DDDICB_SIGNALFLAGS Flags;
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECT;

/**
 * struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2_Fence - value of a legacy fence
 * @FenceValue: [in] fence value
 */
struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2_Fence {
	__aligned_u64 FenceValue;
};

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 - wait in a context
 * @hContext: [in] context
 * @ObjectCount: [in] 1..32
 * @ObjectHandleArray: [in] handles, ObjectCount of them
 * @Fence: [in] arm of a legacy fence
 * @Reserved: not used
 *
 * Argument of DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECT2.
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_WAITED_ON];
	__extension__ union {
		struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2_Fence Fence;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2;

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT - wait in a context, older form
 * @hContext: [in] context
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] handles, ObjectCount of them
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	D3DKMT_HANDLE ObjectHandleArray[D3DDDI_MAX_OBJECT_WAITED_ON];
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECT;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU - set monitored fences
 *	from the CPU
 * @hDevice: [in] device
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValueArray: [in] pointer to __u64[]
 * @Flags: [in] mask constants of the type
 *
 * A lower value than the current one needs AllowFenceRewind.
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
 * typedef D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS - whether one
 *	object is enough
 */
typedef __u32 D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS;
#define D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny	0x00000001
#define D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_Reserved	0xfffffffe

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU - wait for monitored
 *	fences on the CPU
 * @hDevice: [in] device
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValueArray: [in] pointer to __u64[]
 * @hAsyncEvent: [in] eventfd, or 0 to block in the call
 * @Flags: [in] mask constants of the type
 *
 * Without an event the call blocks until all objects, or any with WaitAny,
 * have reached their value. With an event it returns at once and the eventfd
 * is signalled instead.
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
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU - signal monitored fences
 *	in a context
 * @hContext: [in] context
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @MonitoredFenceValueArray: [in] pointer to __u64[]
 * @Reserved: not used
 *
 * Argument of DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU.
 */
typedef struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	__extension__ union {
		__aligned_u64 MonitoredFenceValueArray;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU;

/**
 * struct _D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 - signal objects in
 *	several contexts
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @Flags: [in] mask constants of the type
 * @BroadcastContextCount: [in] contexts in BroadcastContext
 * @BroadcastContextArray: [in] pointer to D3DKMT_HANDLE[]
 * @FenceValue: [in] the value itself, for legacy fences
 * @CpuEventHandle: [in] eventfd, with Flags.EnqueueCpuEvent
 * @MonitoredFenceValueArray: [in] pointer to __u64[], for monitored and native
 *	fences
 * @Reserved: not used
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
	__extension__ union {
		__aligned_u64 FenceValue;
		__aligned_u64 CpuEventHandle;
		__aligned_u64 MonitoredFenceValueArray;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2;

/**
 * struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU - make a context wait
 * @hContext: [in] context
 * @ObjectCount: [in] entries of the arrays
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @MonitoredFenceValueArray: [in] pointer to __u64[], for monitored and native
 *	fences
 * @FenceValue: [in] the value itself, for legacy fences
 * @Reserved: not used
 *
 * Argument of DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMGPU.
 */
typedef struct _D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU {
	D3DKMT_HANDLE hContext;
	__u32 ObjectCount;
	__aligned_u64 ObjectHandleArray;
	__extension__ union {
		__aligned_u64 MonitoredFenceValueArray;
		__aligned_u64 FenceValue;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU;

/**
 * struct _D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE - signal fences in hardware
 *	queues
 * @Flags: [in] mask constants of the type
 * @BroadcastHwQueueCount: [in] queues in the array
 * @BroadcastHwQueueArray: [in] pointer to D3DKMT_HANDLE[]
 * @ObjectCount: [in] entries of the arrays
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
 * struct _D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE - make a hardware queue
 *	wait
 * @hHwQueue: [in] hardware queue
 * @ObjectCount: [in] entries of the arrays
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
