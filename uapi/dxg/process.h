/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Calls about the whole process and older per-device calls.
 */
#ifndef _UAPI_DXG_PROCESS_H
#define _UAPI_DXG_PROCESS_H

#include "base.h"

/**
 * struct _D3DKMT_WAITFORIDLE - wait until a device has no work
 * @hDevice: [in] device
 */
typedef struct _D3DKMT_WAITFORIDLE {
	D3DKMT_HANDLE hDevice;
} D3DKMT_WAITFORIDLE;

/**
 * enum _D3DKMT_QUEUEDLIMIT_TYPE - whether to set or get
 */
typedef __u32 D3DKMT_QUEUEDLIMIT_TYPE;
enum _D3DKMT_QUEUEDLIMIT_TYPE {
	D3DKMT_SET_QUEUEDLIMIT_PRESENT = 1,
	D3DKMT_GET_QUEUEDLIMIT_PRESENT = 2
};

/**
 * struct _D3DKMT_SETQUEUEDLIMIT - set or get the limits of queued presents
 * @hDevice: [in] device
 * @Type: [in] kind
 * @QueuedPresentLimit: [in,out] union with VidPnSourceId; read for SET_,
 *	written for GET_
 * @VidPnSourceId: [in] display source
 * @QueuedPendingFlipLimit: [in,out] limit
 */
typedef struct _D3DKMT_SETQUEUEDLIMIT {
	D3DKMT_HANDLE hDevice;
	D3DKMT_QUEUEDLIMIT_TYPE Type;
	__extension__ union {
		__u32 QueuedPresentLimit;
		__u32 VidPnSourceId;
	};
	__u32 QueuedPendingFlipLimit;
} D3DKMT_SETQUEUEDLIMIT;

/**
 * struct _D3DKMT_GETPROCESSDEVICEREMOVALSUPPORT - ask whether a process copes
 *	with device removal
 * @hProcess: [in] NT handle
 * @AdapterLuid: [in] LUID of the adapter
 * @Support: [out] boolean
 */
typedef struct _D3DKMT_GETPROCESSDEVICEREMOVALSUPPORT {
	__aligned_u64 hProcess;
	DXG_LUID AdapterLuid;
	__u8 Support;
	__u8 _pad0[7];
} D3DKMT_GETPROCESSDEVICEREMOVALSUPPORT;

/**
 * struct _D3DKMT_SETSTABLEPOWERSTATE - fix the clocks of an adapter for
 *	measurements
 * @hAdapter: [in] adapter
 * @Enabled: [in] boolean
 */
typedef struct _D3DKMT_SETSTABLEPOWERSTATE {
	D3DKMT_HANDLE hAdapter;
	__u32 Enabled;
} D3DKMT_SETSTABLEPOWERSTATE;

/**
 * enum _D3DKMT_SCHEDULINGPRIORITYCLASS - GPU priority of a process
 */
typedef __u32 D3DKMT_SCHEDULINGPRIORITYCLASS;
enum _D3DKMT_SCHEDULINGPRIORITYCLASS {
	D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE = 0,
	D3DKMT_SCHEDULINGPRIORITYCLASS_BELOW_NORMAL = 1,
	D3DKMT_SCHEDULINGPRIORITYCLASS_NORMAL = 2,
	D3DKMT_SCHEDULINGPRIORITYCLASS_ABOVE_NORMAL = 3,
	D3DKMT_SCHEDULINGPRIORITYCLASS_HIGH = 4,
	D3DKMT_SCHEDULINGPRIORITYCLASS_REALTIME = 5
};

#endif /* _UAPI_DXG_PROCESS_H */
