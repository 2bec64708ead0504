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

/**
 * enum _D3DDDI_NATIVEFENCE_TYPE - data of a call
 */
typedef __u32 D3DDDI_NATIVEFENCE_TYPE;
enum _D3DDDI_NATIVEFENCE_TYPE {
	D3DDDI_NATIVEFENCE_TYPE_DEFAULT = 0,
	D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU = 1,
};

/**
 * struct _D3DDDI_NATIVEFENCEMAPPING - data of a call
 * @CurrentValueCpuVa: [out] pointer; read-only user mapping; 0 for INTRA_GPU
 * @CurrentValueGpuVa: [out]
 * @MonitoredValueGpuVa: [out]
 * @Reserved: [out] zero
 */
typedef struct _D3DDDI_NATIVEFENCEMAPPING {
	__aligned_u64 CurrentValueCpuVa;
	D3DGPU_VIRTUAL_ADDRESS CurrentValueGpuVa;
	D3DGPU_VIRTUAL_ADDRESS MonitoredValueGpuVa;
	__u8 Reserved[32];
} D3DDDI_NATIVEFENCEMAPPING;

/**
 * struct _D3DDDI_NATIVEFENCEINFO - data of a call
 * @InitialFenceValue: [in]
 * @EngineAffinity: [in] a known client leaves it 0 on create: accept
 * @Type: [in]
 * @Flags: [in]
 * @NativeFenceMapping: [out]
 * @PhysicalAdapterIndex: [in] newest SDK; older: part of Reserved[28]
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
 * typedef D3DKMT_CREATENATIVEFENCE_FLAGS - data of a call
 */
typedef __u32 D3DKMT_CREATENATIVEFENCE_FLAGS;
#define D3DKMT_CREATENATIVEFENCE_FLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_CREATENATIVEFENCE - argument of a call
 * @hDevice: [in]
 * @hSyncObject: [out]
 * @PrivateDriverData: [in,out]
 * @Info: [in,out]
 * @Flags: [in]
 * @Reserved: [in] zero
 *
 * Argument of DXG_IOCTL_CREATENATIVEFENCE.
 */
typedef struct _D3DKMT_CREATENATIVEFENCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hSyncObject;
	__u8 PrivateDriverData[64];
	D3DDDI_NATIVEFENCEINFO Info;
	D3DKMT_CREATENATIVEFENCE_FLAGS Flags;
	__u8 Reserved[28];
} D3DKMT_CREATENATIVEFENCE;

/**
 * struct _D3DKMT_OPENNATIVEFENCEFROMNTHANDLE - argument of a call
 * @hNtHandle: [in] NT handle
 * @hDevice: [in]
 * @EngineAffinity: [in] WSL: must not be 0
 * @Flags: [in]
 * @hSyncObject: [out]
 * @NativeFenceMapping: [out]
 * @PrivateDriverData: [in,out]
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
	__u8 PrivateDriverData[64];
	__u8 Reserved[32];
} D3DKMT_OPENNATIVEFENCEFROMNTHANDLE;

/**
 * typedef D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS - data of a call
 */
typedef __u32 D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS;
#define D3DKMT_GETNATIVEFENCELOGDETAIL_FLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_GETNATIVEFENCELOGDETAIL - data of a call
 * @hHwQueue: [in]
 * @Flags: [in]
 * @WaitLogNumberOfEntries: [out]
 * @SignalLogNumberOfEntries: [out]
 * @WaitLogGpuBaseAddress: [out]
 * @SignalLogGpuBaseAddress: [out]
 * @Reserved: [unused]
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
 * struct _D3DDDI_NATIVEFENCELOGDETAIL - data of a call
 * @WaitLogNumberOfEntries: [out]
 * @SignalLogNumberOfEntries: [out]
 * @WaitLogGpuBaseAddress: [out]
 * @SignalLogGpuBaseAddress: [out]
 * @Reserved: [unused]
 */
typedef struct _D3DDDI_NATIVEFENCELOGDETAIL {
	__u32 WaitLogNumberOfEntries;
	__u32 SignalLogNumberOfEntries;
	D3DGPU_VIRTUAL_ADDRESS WaitLogGpuBaseAddress;
	D3DGPU_VIRTUAL_ADDRESS SignalLogGpuBaseAddress;
	__u8 Reserved[64];
} D3DDDI_NATIVEFENCELOGDETAIL;

/**
 * enum _DXGK_NATIVE_FENCE_LOG_TYPE - data of a call
 */
typedef __u32 DXGK_NATIVE_FENCE_LOG_TYPE;
enum _DXGK_NATIVE_FENCE_LOG_TYPE {
	DXGK_NATIVE_FENCE_LOG_TYPE_WAITS = 1,
	DXGK_NATIVE_FENCE_LOG_TYPE_SIGNALS = 2,
};

/**
 * struct _DXGK_NATIVE_FENCE_LOG_HEADER - data of a call
 * @FirstFreeEntryIndex: [unused]
 * @WraparoundCount: [unused]
 * @AtomicWraparoundAndEntryIndex: [unused] index in the low, wrap count in the
 * 	high half: update with one 64-bit store
 * @Type: [unused]
 * @NumberOfEntries: [unused]
 * @Reserved: [unused]
 */
typedef struct _DXGK_NATIVE_FENCE_LOG_HEADER {
	union {
		struct {
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
 * struct _DXGK_NATIVE_FENCE_LOG_ENTRY - data of a call
 * @FenceValue: [unused]
 * @hNativeFence: [unused] user-mode local handle
 * @OperationType: [unused]
 * @Reserved0: [unused]
 * @FenceObservedGpuTimestamp: [unused] WAIT_UNBLOCKED only: when the engine
 * 	first stalled on the wait
 * @Reserved1: [unused]
 * @FenceEndGpuTimestamp: [unused]
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
 * struct _DXGK_NATIVE_FENCE_LOG_BUFFER - data of a call
 * @Header: [unused]
 * @Entries: [unused] as many as fit
 */
typedef struct _DXGK_NATIVE_FENCE_LOG_BUFFER {
	DXGK_NATIVE_FENCE_LOG_HEADER Header;
	DXGK_NATIVE_FENCE_LOG_ENTRY Entries[1];
} DXGK_NATIVE_FENCE_LOG_BUFFER;

/**
 * enum _DXGK_NATIVE_FENCE_LOG_OPERATION - data of a call
 */
typedef __u32 DXGK_NATIVE_FENCE_LOG_OPERATION;
enum _DXGK_NATIVE_FENCE_LOG_OPERATION {
	DXGK_NATIVE_FENCE_LOG_OPERATION_SIGNAL_EXECUTED = 0,
	DXGK_NATIVE_FENCE_LOG_OPERATION_WAIT_UNBLOCKED = 1,
};

#endif /* _UAPI_DXG_NATIVE_FENCE_H */
