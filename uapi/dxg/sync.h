/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Synchronisation objects: creating, opening, destroying.
 */
#ifndef _UAPI_DXG_SYNC_H
#define _UAPI_DXG_SYNC_H

#include "base.h"

/**
 * enum _D3DDDI_SYNCHRONIZATIONOBJECT_TYPE - kind of a synchronisation object
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
	D3DDDI_SYNCHRONIZATION_TYPE_LIMIT = 8
};

/**
 * typedef D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS - how a synchronisation object
 *	may be used
 *
 * NtSecuritySharing needs Shared; SignalByKmd is for CPU notifications
 * only; NoSignal together with NoWait is invalid.
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
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_SynchronizationMutex - arm of a
 *	mutex
 * @InitialState: [in] boolean
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_SynchronizationMutex {
	__u32 InitialState;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore - arm of a semaphore
 * @MaxCount: [in] largest count
 * @InitialCount: [in] first count
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Semaphore {
	__u32 MaxCount;
	__u32 InitialCount;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Fence - arm of a legacy fence
 * @FenceValue: [in] fence value
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Fence {
	__aligned_u64 FenceValue;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_CPUNotification - arm of a CPU
 *	notification
 * @Event: [in] eventfd number; 0 is STATUS_INVALID_HANDLE
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_CPUNotification {
	__aligned_u64 Event;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_MonitoredFence - arm of a monitored
 *	fence
 * @InitialFenceValue: [in] first value
 * @FenceValueCPUVirtualAddress: [out] address of the value, mapped read-only
 * @FenceValueGPUVirtualAddress: [out] GPU address of the value
 * @EngineAffinity: [in] bit mask of physical adapters
 * @Padding: not used
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_MonitoredFence {
	__aligned_u64 InitialFenceValue;
	__aligned_u64 FenceValueCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
	__u32 EngineAffinity;
	__u32 Padding;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_PeriodicMonitoredFence - arm of a
 *	periodic fence
 * @hAdapter: [in] adapter
 * @VidPnTargetId: [in] display target
 * @Time: [in] 100 ns units before vsync
 * @FenceValueCPUVirtualAddress: [out] address of the value, mapped read-only
 * @FenceValueGPUVirtualAddress: [out] GPU address of the value
 * @EngineAffinity: [in] bit mask of physical adapters
 * @Padding: not used
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
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Reserved - size of all arms
 * @Reserved: not used
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2_Reserved {
	__aligned_u64 Reserved[8];
};

/**
 * struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO2 - describe a synchronisation
 *	object
 * @Type: [in] kind; selects the arm
 * @Flags: [in] mask constants of the type
 * @SynchronizationMutex: [in] arm of a mutex
 * @Semaphore: [in] arm of a semaphore
 * @Fence: [in] arm of a legacy fence
 * @CPUNotification: [in] arm of a CPU notification
 * @MonitoredFence: [in,out] arm of a monitored fence
 * @PeriodicMonitoredFence: [in,out] arm of a periodic fence
 * @Reserved: size of all arms
 * @SharedHandle: [out] global handle with Shared; 0 with NtSecuritySharing;
 *	untouched otherwise
 */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO2 {
	D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	__extension__ union {
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
 * struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT2 - create a synchronisation
 *	object
 * @hDevice: [in] device
 * @Info: [in,out] kind, flags and the arm of the kind
 * @hSyncObject: [out] synchronisation object
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
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_SynchronizationMutex - arm of a
 *	mutex
 * @InitialState: [in] boolean
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_SynchronizationMutex {
	__u32 InitialState;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Semaphore - arm of a semaphore
 * @MaxCount: [in] largest count
 * @InitialCount: [in] first count
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Semaphore {
	__u32 MaxCount;
	__u32 InitialCount;
};

/**
 * struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Reserved - size of all arms
 * @Reserved: not used
 */
struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Reserved {
	__u32 Reserved[16];
};

/**
 * struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO - describe a mutex or a semaphore,
 *	older form
 * @Type: [in] mutex or semaphore; selects the arm
 * @SynchronizationMutex: [in] arm of a mutex
 * @Semaphore: [in] arm of a semaphore
 * @Reserved: size of all arms
 */
typedef struct _D3DDDI_SYNCHRONIZATIONOBJECTINFO {
	D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
	__extension__ union {
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_SynchronizationMutex SynchronizationMutex;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Semaphore Semaphore;
		struct D3DDDI_SYNCHRONIZATIONOBJECTINFO_Reserved Reserved;
	};
} D3DDDI_SYNCHRONIZATIONOBJECTINFO;

/**
 * struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT - create a mutex or a semaphore,
 *	older form
 * @hDevice: [in] device
 * @Info: [in] kind and first state
 * @hSyncObject: [out] synchronisation object
 *
 * A program-side form of D3DKMT_CREATESYNCHRONIZATIONOBJECT2; never reaches
 * the kernel.
 */
typedef struct _D3DKMT_CREATESYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECTINFO Info;
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_CREATESYNCHRONIZATIONOBJECT;

/**
 * struct _D3DKMT_DESTROYSYNCHRONIZATIONOBJECT - close a local handle of a
 *	synchronisation object
 * @hSyncObject: [in] local handle of any sync object kind, native fences
 *	included
 *
 * Argument of DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT.
 */
typedef struct _D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_DESTROYSYNCHRONIZATIONOBJECT;

/**
 * struct _D3DKMT_OPENSYNCHRONIZATIONOBJECT - open a synchronisation object by
 *	global handle
 * @hSharedHandle: [in] global handle
 * @hSyncObject: [out] synchronisation object
 * @Reserved: not used
 *
 * Argument of DXG_IOCTL_OPENSYNCHRONIZATIONOBJECT.
 */
typedef struct _D3DKMT_OPENSYNCHRONIZATIONOBJECT {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hSyncObject;
	__aligned_u64 Reserved[8];
} D3DKMT_OPENSYNCHRONIZATIONOBJECT;

/**
 * struct D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2_MonitoredFence - where the opened
 *	fence is mapped
 * @FenceValueCPUVirtualAddress: [out] address of the value, mapped read-only
 * @FenceValueGPUVirtualAddress: [out] GPU address of the value
 * @EngineAffinity: [in] bit mask of physical adapters
 */
struct D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2_MonitoredFence {
	__aligned_u64 FenceValueCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
	__u32 EngineAffinity;
	__u32 _pad0;
};

/**
 * struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 - open a synchronisation object
 *	by NT handle
 * @hNtHandle: [in] NT handle
 * @hDevice: [in] device
 * @Flags: [in] NoSignal, NoWait, NoGPUAccess ... for this opening
 * @hSyncObject: [out] synchronisation object
 * @MonitoredFence: [in,out] arm of a monitored fence
 * @Reserved: not used
 *
 * Argument of DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE2.
 */
typedef struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 {
	__aligned_u64 hNtHandle;
	D3DKMT_HANDLE hDevice;
	D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
	D3DKMT_HANDLE hSyncObject;
	__u32 _pad0;
	__extension__ union {
		struct D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2_MonitoredFence MonitoredFence;
		__aligned_u64 Reserved[8];
	};
} D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2;

/**
 * struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE - open a synchronisation object by
 *	NT handle, no device
 * @hNtHandle: [in] NT handle
 * @hSyncObject: [out] synchronisation object
 */
typedef struct _D3DKMT_OPENSYNCOBJECTFROMNTHANDLE {
	__aligned_u64 hNtHandle;
	D3DKMT_HANDLE hSyncObject;
	__u32 _pad0;
} D3DKMT_OPENSYNCOBJECTFROMNTHANDLE;

/* Later system versions give these meanings to bits of the reserved range. */
#define D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_UnwaitCpuWaitersOnlyOnDestroy	0x00000400

/* Access rights of an NT handle of a synchronisation object. */
#define D3DDDI_SYNC_OBJECT_WAIT			0x00000001
#define D3DDDI_SYNC_OBJECT_SIGNAL		0x00000002
#define D3DDDI_SYNC_OBJECT_ALL_ACCESS		0x001f0003

#endif /* _UAPI_DXG_SYNC_H */
