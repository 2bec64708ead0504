/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Native fences (WDDM 3.2) and their logs.
 *
 * Created and opened by calls of their own, destroyed like every other
 * synchronisation object.
 */
#ifndef _UAPI_DXG_NATIVE_FENCE_H
#define _UAPI_DXG_NATIVE_FENCE_H

#include "base.h"
#include "sync.h"

/* Bytes of private driver data of a native fence. */
#define D3DDDI_NATIVE_FENCE_PDD_SIZE		64

/**
 * enum _D3DDDI_NATIVEFENCE_TYPE - reach of a native fence
 *
 * An INTRA_GPU fence has no CPU mapping and stays on its adapter.
 */
typedef __u32 D3DDDI_NATIVEFENCE_TYPE;
enum _D3DDDI_NATIVEFENCE_TYPE {
	D3DDDI_NATIVEFENCE_TYPE_DEFAULT = 0,
	D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU = 1
};

/**
 * struct _D3DDDI_NATIVEFENCEMAPPING - where a native fence is mapped
 * @CurrentValueCpuVa: [out] address of the value, mapped read-only; 0 for
 *	INTRA_GPU
 * @CurrentValueGpuVa: [out] GPU address of the value
 * @MonitoredValueGpuVa: [out] GPU address of the value waited for
 * @Reserved: [out] zero
 */
typedef struct _D3DDDI_NATIVEFENCEMAPPING {
	__aligned_u64 CurrentValueCpuVa;
	D3DGPU_VIRTUAL_ADDRESS CurrentValueGpuVa;
	D3DGPU_VIRTUAL_ADDRESS MonitoredValueGpuVa;
	__u8 Reserved[32];
} D3DDDI_NATIVEFENCEMAPPING;

/**
 * struct _D3DDDI_NATIVEFENCEINFO - describe a native fence
 * @InitialFenceValue: [in] first value
 * @EngineAffinity: [in] bit mask of physical adapters; 0 is accepted
 * @Type: [in] kind
 * @Flags: [in] mask constants of the type
 * @NativeFenceMapping: [out] where the fence is mapped
 * @PhysicalAdapterIndex: [in] physical adapter; older programs leave it 0
 * @Reserved: [in] zero
 */
typedef struct _D3DDDI_NATIVEFENCEINFO {
	__aligned_u64 InitialFenceValue;
	__u32 EngineAffinity;
	D3DDDI_NATIVEFENCE_TYPE Type;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	__u32 _pad0;
	D3DDDI_NATIVEFENCEMAPPING NativeFenceMapping;
	__u32 PhysicalAdapterIndex;
	__u8 Reserved[24];
	__u32 _pad1;
} D3DDDI_NATIVEFENCEINFO;

/**
 * typedef D3DKMT_CREATENATIVEFENCE_FLAGS - how to create a native fence
 */
typedef __u32 D3DKMT_CREATENATIVEFENCE_FLAGS;
#define D3DKMT_CREATENATIVEFENCE_FLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_CREATENATIVEFENCE - create a native fence
 * @hDevice: [in] device
 * @hSyncObject: [out] synchronisation object
 * @PrivateDriverData: [in,out] driver-defined
 * @Info: [in,out] description
 * @Flags: [in] mask constants of the type
 * @Reserved: [in] zero
 *
 * Argument of DXG_IOCTL_CREATENATIVEFENCE.
 */
typedef struct _D3DKMT_CREATENATIVEFENCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hSyncObject;
	__u8 PrivateDriverData[D3DDDI_NATIVE_FENCE_PDD_SIZE];
	D3DDDI_NATIVEFENCEINFO Info;
	D3DKMT_CREATENATIVEFENCE_FLAGS Flags;
	__u8 Reserved[28];
} D3DKMT_CREATENATIVEFENCE;

/**
 * struct _D3DKMT_OPENNATIVEFENCEFROMNTHANDLE - open a native fence by NT
 *	handle
 * @hNtHandle: [in] NT handle
 * @hDevice: [in] device
 * @EngineAffinity: [in] bit mask of physical adapters, not 0
 * @Flags: [in] mask constants of the type
 * @hSyncObject: [out] synchronisation object
 * @NativeFenceMapping: [out] where the fence is mapped
 * @PrivateDriverData: [in,out] driver-defined
 * @Reserved: [in] zero
 *
 * Argument of DXG_IOCTL_OPENNATIVEFENCEFROMNTHANDLE.
 */
typedef struct _D3DKMT_OPENNATIVEFENCEFROMNTHANDLE {
	__aligned_u64 hNtHandle;
	D3DKMT_HANDLE hDevice;
	__u32 EngineAffinity;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	D3DKMT_HANDLE hSyncObject;
	D3DDDI_NATIVEFENCEMAPPING NativeFenceMapping;
	__u8 PrivateDriverData[D3DDDI_NATIVE_FENCE_PDD_SIZE];
	__u8 Reserved[32];
} D3DKMT_OPENNATIVEFENCEFROMNTHANDLE;

/**
 * typedef D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS - how to ask for the fence logs
 */
typedef __u32 D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS;
#define D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_GETNATIVEFENCELOGDETAIL - ask for the fence logs of a
 *	hardware queue
 * @hHwQueue: [in] hardware queue that its process fills
 * @Flags: [in] 0
 * @WaitLogNumberOfEntries: [out] entries of the log of waits
 * @SignalLogNumberOfEntries: [out] entries of the log of signals
 * @WaitLogGpuBaseAddress: [out] GPU address of the log of waits
 * @SignalLogGpuBaseAddress: [out] GPU address of the log of signals
 * @Reserved: [in] 0
 *
 * Argument of DXG_IOCTL_GETNATIVEFENCELOGDETAIL. Each log is a
 * DXGK_NATIVE_FENCE_LOG_BUFFER, which packets of the process write.
 */
typedef struct _D3DKMT_GETNATIVEFENCELOGDETAIL {
	D3DKMT_HANDLE hHwQueue;
	D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS Flags;
	__u32 WaitLogNumberOfEntries;
	__u32 SignalLogNumberOfEntries;
	D3DGPU_VIRTUAL_ADDRESS WaitLogGpuBaseAddress;
	D3DGPU_VIRTUAL_ADDRESS SignalLogGpuBaseAddress;
	__u8 Reserved[64];
} D3DKMT_GETNATIVEFENCELOGDETAIL;

/**
 * struct _D3DDDI_NATIVEFENCELOGDETAIL - where the fence logs are
 * @WaitLogNumberOfEntries: [out] entries of the log of waits
 * @SignalLogNumberOfEntries: [out] entries of the log of signals
 * @WaitLogGpuBaseAddress: [out] GPU address of the log of waits
 * @SignalLogGpuBaseAddress: [out] GPU address of the log of signals
 * @Reserved: not used
 */
typedef struct _D3DDDI_NATIVEFENCELOGDETAIL {
	__u32 WaitLogNumberOfEntries;
	__u32 SignalLogNumberOfEntries;
	D3DGPU_VIRTUAL_ADDRESS WaitLogGpuBaseAddress;
	D3DGPU_VIRTUAL_ADDRESS SignalLogGpuBaseAddress;
	__u8 Reserved[64];
} D3DDDI_NATIVEFENCELOGDETAIL;

/**
 * enum _DXGK_NATIVE_FENCE_LOG_TYPE - what a fence log records
 */
typedef __u32 DXGK_NATIVE_FENCE_LOG_TYPE;
enum _DXGK_NATIVE_FENCE_LOG_TYPE {
	DXGK_NATIVE_FENCE_LOG_TYPE_WAITS = 1,
	DXGK_NATIVE_FENCE_LOG_TYPE_SIGNALS = 2
};

/**
 * struct _DXGK_NATIVE_FENCE_LOG_HEADER - head of a fence log
 * @AtomicWraparoundAndEntryIndex: index in the low, wrap count in the high
 *	half: update with one 64-bit store
 * @Reserved: not used
 *
 * Index and wraparound count are updated by one 64-bit store.
 */
typedef struct _DXGK_NATIVE_FENCE_LOG_HEADER {
	__extension__ union {
		__extension__ struct {
			__u32 FirstFreeEntryIndex;
			__u32 WraparoundCount;
		};
		__aligned_u64 AtomicWraparoundAndEntryIndex;
	};
	DXGK_NATIVE_FENCE_LOG_TYPE Type;
	__u32 _pad0;
	__aligned_u64 NumberOfEntries;
	__aligned_u64 Reserved[2];
} DXGK_NATIVE_FENCE_LOG_HEADER;

/**
 * struct _DXGK_NATIVE_FENCE_LOG_ENTRY - one event of a fence log
 * @hNativeFence: user-mode local handle
 * @Reserved0: not used
 * @FenceObservedGpuTimestamp: WAIT_UNBLOCKED only: when the engine first
 *	stalled on the wait
 * @Reserved1: not used
 */
typedef struct _DXGK_NATIVE_FENCE_LOG_ENTRY {
	__aligned_u64 FenceValue;
	D3DKMT_HANDLE hNativeFence;
	__u32 OperationType;
	__aligned_u64 Reserved0;
	__aligned_u64 FenceObservedGpuTimestamp;
	__aligned_u64 Reserved1;
	__aligned_u64 FenceEndGpuTimestamp;
} DXGK_NATIVE_FENCE_LOG_ENTRY;

/**
 * struct _DXGK_NATIVE_FENCE_LOG_BUFFER - a fence log
 * @Entries: as many as fit
 *
 * One page: the head and as many entries as fit. The writer stores fence
 * value, entry, then raises its interrupt; a reader sees an overflow by a
 * changed WraparoundCount.
 */
typedef struct _DXGK_NATIVE_FENCE_LOG_BUFFER {
	DXGK_NATIVE_FENCE_LOG_HEADER Header;
	DXGK_NATIVE_FENCE_LOG_ENTRY Entries[1];
} DXGK_NATIVE_FENCE_LOG_BUFFER;

/**
 * enum _DXGK_NATIVE_FENCE_LOG_OPERATION - what happened
 */
typedef __u32 DXGK_NATIVE_FENCE_LOG_OPERATION;
enum _DXGK_NATIVE_FENCE_LOG_OPERATION {
	DXGK_NATIVE_FENCE_LOG_OPERATION_SIGNAL_EXECUTED = 0,
	DXGK_NATIVE_FENCE_LOG_OPERATION_WAIT_UNBLOCKED = 1
};

#endif /* _UAPI_DXG_NATIVE_FENCE_H */
