/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Doorbells of hardware queues that a process fills by itself (user-mode
 * submission, WDDM 3.2).
 *
 * A queue that was made with UserModeSubmission takes no submissions. Its
 * process writes packets to a ring buffer, then the write pointer to the ring
 * buffer control, then any value to the doorbell. After a full barrier it reads
 * the status: if that is DISCONNECTED_RETRY it connects the doorbell and rings
 * again.
 */
#ifndef _UAPI_DXG_DOORBELL_H
#define _UAPI_DXG_DOORBELL_H

#include "base.h"

/**
 * typedef D3DKMT_CREATE_DOORBELL_FLAGS - how to create a doorbell
 */
typedef __u32 D3DKMT_CREATE_DOORBELL_FLAGS;
#define D3DKMT_CREATE_DOORBELL_FLAGS_RequireSecondaryCpuVA	0x00000001
#define D3DKMT_CREATE_DOORBELL_FLAGS_ResizeRingBufferOperation	0x00000002
#define D3DKMT_CREATE_DOORBELL_FLAGS_Reserved			0xfffffffc

/**
 * enum _D3DDDI_DOORBELLSTATUS - what the status of a doorbell says
 * @D3DDDI_DOORBELLSTATUS_CONNECTED: ringing it reaches the GPU
 * @D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD: and the process calls
 *	NotifyWorkSubmission after each ring
 * @D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY: it can be connected
 * @D3DDDI_DOORBELLSTATUS_DISCONNECTED_ABORT: it cannot; the queue will not run
 *	any more
 *
 * The status is 64 bits wide.
 */
typedef __u32 D3DDDI_DOORBELLSTATUS;
enum _D3DDDI_DOORBELLSTATUS {
	D3DDDI_DOORBELLSTATUS_CONNECTED = 0,
	D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD = 1,
	D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY = 2,
	D3DDDI_DOORBELLSTATUS_DISCONNECTED_ABORT = 3
};

/* Bytes of the ring buffer control where the pointers are, in dwords. */
#define OPENDXG_RING_WRITE_POINTER	0
#define OPENDXG_RING_READ_POINTER	64

/**
 * struct _D3DKMT_CREATE_DOORBELL - create the doorbell of a hardware queue
 * @hHwQueue: [in] hardware queue with UserModeSubmission, without a doorbell
 * @hRingBuffer: [in] allocation of the ring buffer: a power of two of bytes,
 *	from 4 KiB to 16 MiB, resident, and mapped to GPU addresses as a whole
 * @hRingBufferControl: [in] allocation of the ring buffer control, resident and
 *	mapped likewise
 * @Flags: [in] mask constants of the type
 * @PrivateDriverDataSize: [in] bytes
 * @PrivateDriverData: [in] address of driver data
 * @DoorbellCPUVirtualAddress: [out] where the doorbell is rung
 * @DoorbellSecondaryCPUVirtualAddress: [out] second address of the doorbell; 0
 *	without RequireSecondaryCpuVA
 * @DoorbellStatusCPUVirtualAddress: [out] address of the status, mapped
 *	read-only
 * @HwQueueProgressFenceLastQueuedValueCPUVirtualAddress: [out] where the
 *	process says which progress value the last work will store
 * @hDoorbell: [out] doorbell, disconnected
 *
 * Argument of DXG_IOCTL_CREATE_DOORBELL. All addresses stay the same as long as
 * the doorbell is there.
 */
typedef struct _D3DKMT_CREATE_DOORBELL {
	D3DKMT_HANDLE hHwQueue;
	D3DKMT_HANDLE hRingBuffer;
	D3DKMT_HANDLE hRingBufferControl;
	D3DKMT_CREATE_DOORBELL_FLAGS Flags;
	__u32 PrivateDriverDataSize;
	__u32 _pad0;
	__aligned_u64 PrivateDriverData;
	__aligned_u64 DoorbellCPUVirtualAddress;
	__aligned_u64 DoorbellSecondaryCPUVirtualAddress;
	__aligned_u64 DoorbellStatusCPUVirtualAddress;
	__aligned_u64 HwQueueProgressFenceLastQueuedValueCPUVirtualAddress;
	D3DKMT_HANDLE hDoorbell;
	__u32 _pad1;
} D3DKMT_CREATE_DOORBELL;

/**
 * struct _D3DKMT_CONNECT_DOORBELL - connect a doorbell to the GPU
 * @hDoorbell: [in] doorbell
 * @Flags: [in] 0
 *
 * Argument of DXG_IOCTL_CONNECT_DOORBELL. The doorbell may be disconnected again
 * by the time the call returns: the status tells.
 */
typedef struct _D3DKMT_CONNECT_DOORBELL {
	D3DKMT_HANDLE hDoorbell;
	__u32 Flags;
} D3DKMT_CONNECT_DOORBELL;

/**
 * struct _D3DKMT_DESTROY_DOORBELL - destroy a doorbell
 * @hDoorbell: [in] doorbell
 * @Flags: [in] 0
 *
 * Argument of DXG_IOCTL_DESTROY_DOORBELL. What is in the ring and was not run is
 * not run.
 */
typedef struct _D3DKMT_DESTROY_DOORBELL {
	D3DKMT_HANDLE hDoorbell;
	__u32 Flags;
} D3DKMT_DESTROY_DOORBELL;

/**
 * struct _D3DKMT_NOTIFY_WORK_SUBMISSION - tell the driver of work
 * @hDoorbell: [in] doorbell that was rung
 * @Flags: [in] 0
 *
 * Argument of DXG_IOCTL_NOTIFY_WORK_SUBMISSION.
 */
typedef struct _D3DKMT_NOTIFY_WORK_SUBMISSION {
	D3DKMT_HANDLE hDoorbell;
	__u32 Flags;
} D3DKMT_NOTIFY_WORK_SUBMISSION;

#endif /* _UAPI_DXG_DOORBELL_H */
