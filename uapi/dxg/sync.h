/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Synchronisation objects: creating, opening, destroying.
 */
#ifndef _UAPI_DXG_SYNC_H
#define _UAPI_DXG_SYNC_H

#include "base.h"

/**
 * enum _D3DDDI_SYNCHRONIZATIONOBJECT_TYPE - data of a call
 */
typedef __u32 D3DDDI_SYNCHRONIZATIONOBJECT_TYPE;
enum _D3DDDI_SYNCHRONIZATIONOBJECT_TYPE {
	D3DDDI_SYNCHRONIZATION_MUTEX = 1,
	D3DDDI_SEMAPHORE = 2,
	D3DDDI_FENCE = 3,
	D3DDDI_CPU_NOTIFICATION = 4,
	D3DDDI_MONITORED_FENCE = 5,
	D3DDDI_PERIODIC_MONITORED_FENCE = 6,
	D3DDDI_NATIVE_FENCE = 7,
	D3DDDI_SYNCHRONIZATION_TYPE_LIMIT = 8,
};

/**
 * typedef D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS - data of a call
 */
typedef __u32 D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS;
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared			0x00000001
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing		0x00000002
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_CrossAdapter			0x00000004
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_TopOfPipeline		0x00000008
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignal			0x00000010
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoWait			0x00000020
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignalMaxValueOnTdr	0x00000040
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoGPUAccess			0x00000080
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd			0x00000100
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Reserved			0x7ffffe00
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Reserved0			0x80000000

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_SynchronizationMutex - the SynchronizationMutex arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @InitialState: [in]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_SynchronizationMutex {
	__u32 InitialState;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore - the Semaphore arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @MaxCount: [in]
 * @InitialCount: [in]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore {
	__u32 MaxCount;
	__u32 InitialCount;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Fence - the Fence arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @FenceValue: [in]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Fence {
	__aligned_u64 FenceValue;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_CPUNotification - the CPUNotification arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @Event: [in] eventfd number; 0 gives INVALID_HANDLE
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_CPUNotification {
	__aligned_u64 Event;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_MonitoredFence - the MonitoredFence arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @InitialFenceValue: [in]
 * @FenceValueCPUVirtualAddress: [out] pointer; read-only user mapping
 * @FenceValueGPUVirtualAddress: [out]
 * @EngineAffinity: [in]
 * @Padding: [unused]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_MonitoredFence {
	__aligned_u64 InitialFenceValue;
	__aligned_u64 FenceValueCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
	__u32 EngineAffinity;
	__u32 Padding;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_PeriodicMonitoredFence - the PeriodicMonitoredFence arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @hAdapter: [in]
 * @VidPnTargetId: [in]
 * @Time: [in] 100 ns units before vsync
 * @FenceValueCPUVirtualAddress: [out] pointer
 * @FenceValueGPUVirtualAddress: [out]
 * @EngineAffinity: [in]
 * @Padding: [unused]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_PeriodicMonitoredFence {
	D3DKMT_HANDLE hAdapter;
	__u32 VidPnTargetId;
	__aligned_u64 Time;
	__aligned_u64 FenceValueCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
	__u32 EngineAffinity;
	__u32 Padding;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Reserved - the Reserved arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO2
 * @Reserved: [unused]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Reserved {
	__aligned_u64 Reserved[8];
};

/**
 * struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO2 - data of a call
 * @Type: [in]
 * @Flags: [in]
 * @SynchronizationMutex: [in]
 * @Semaphore: [in]
 * @Fence: [in]
 * @CPUNotification: [in]
 * @MonitoredFence: [in,out]
 * @PeriodicMonitoredFence: [in,out]
 * @Reserved: [unused]
 * @SharedHandle: [out] global handle with Shared; 0 with NtSecuritySharing;
 * 	untouched otherwise
 */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO2 {
	D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	union {
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_SynchronizationMutex SynchronizationMutex;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore Semaphore;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Fence Fence;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_CPUNotification CPUNotification;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_MonitoredFence MonitoredFence;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_PeriodicMonitoredFence PeriodicMonitoredFence;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Reserved Reserved;
	};
	D3DKMT_HANDLE SharedHandle;
	__u32 _pad0;
} D3DDDI_SYNCHRONIZATIONOBJECTINFO2;

/**
 * struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT2 - argument of a call
 * @hDevice: [in]
 * @Info: [in,out]
 * @hSyncObject: [out]
 *
 * Argument of DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2.
 */
typedef struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	D3DDDI_SYNCHRONIZATIONOBJECTINFO2 Info;
	D3DKMT_HANDLE hSyncObject;
	__u32 _pad1;
} D3DKMT_CREATESYNCHRONIZATIONOBJECT2;

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_SynchronizationMutex - the SynchronizationMutex arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO
 * @InitialState: [in]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_SynchronizationMutex {
	__u32 InitialState;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Semaphore - the Semaphore arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO
 * @MaxCount: [in]
 * @InitialCount: [in]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Semaphore {
	__u32 MaxCount;
	__u32 InitialCount;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Reserved - the Reserved arm of D3DDDI_SYNCHRONIZATIONOBJECTINFO
 * @Reserved: [unused]
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Reserved {
	__u32 Reserved[16];
};

/**
 * struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO - data of a call
 * @Type: [in]
 * @SynchronizationMutex: [in]
 * @Semaphore: [in]
 * @Reserved: [unused]
 */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO {
	D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
	union {
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_SynchronizationMutex SynchronizationMutex;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Semaphore Semaphore;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Reserved Reserved;
	};
} D3DDDI_SYNCHRONIZATIONOBJECTINFO;

/**
 * struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT - data of a call
 * @hDevice: [in]
 * @Info: [in] C function only (no ioctl)
 * @hSyncObject: [out]
 */
typedef struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECTINFO Info;
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_CREATESYNCHRONIZATIONOBJECT;

/**
 * struct _D3DKMT_DESTROYSYNCHRONIZATIONOBJECT - argument of a call
 * @hSyncObject: [in] local handle of any sync object kind, native fences
 * 	included
 *
 * Argument of DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT.
 */
typedef struct _D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_DESTROYSYNCHRONIZATIONOBJECT;

/**
 * struct _D3DKMT_OPENSYNCHRONIZATIONOBJECT - argument of a call
 * @hSharedHandle: [in] global handle
 * @hSyncObject: [out]
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_OPENSYNCHRONIZATIONOBJECT.
 */
typedef struct _D3DKMT_OPENSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hSyncObject;
	__aligned_u64 Reserved[8];
} D3DKMT_OPENSYNCHRONIZATIONOBJECT;

/**
 * struct D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2_MonitoredFence - the MonitoredFence arm of D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2
 * @FenceValueCPUVirtualAddress: [out] pointer
 * @FenceValueGPUVirtualAddress: [out]
 * @EngineAffinity: [in]
 */
struct D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2_MonitoredFence {
	__aligned_u64 FenceValueCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
	__u32 EngineAffinity;
	__u32 _pad0;
};

/**
 * struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 - argument of a call
 * @hNtHandle: [in] NT handle
 * @hDevice: [in]
 * @Flags: [in] NoSignal, NoWait, NoGPUAccess ... for this opening
 * @hSyncObject: [out]
 * @MonitoredFence: [in,out]
 * @Reserved: [unused]
 *
 * Argument of DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE2.
 */
typedef struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 {
	__aligned_u64 hNtHandle;
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	D3DKMT_HANDLE hSyncObject;
	__u32 _pad0;
	union {
		struct D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2_MonitoredFence MonitoredFence;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2;

/**
 * struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE - data of a call
 * @hNtHandle: [in] C function only (no ioctl)
 * @hSyncObject: [out]
 */
typedef struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE {
	__aligned_u64 hNtHandle;
	D3DKMT_HANDLE hSyncObject;
	__u32 _pad0;
} D3DKMT_OPENSYNCOBJECTFROMNTHANDLE;

#endif /* _UAPI_DXG_SYNC_H */
