/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Notifications about memory pressure.
 *
 * Callback and Context belong to the library: the kernel never calls back.
 */
#ifndef _UAPI_DXG_NOTIFICATION_H
#define _UAPI_DXG_NOTIFICATION_H

#include "base.h"

/**
 * struct _D3DKMT_REGISTERTRIMNOTIFICATION - ask to be told to release memory
 * @AdapterLuid: [in] LUID of the adapter
 * @hDevice: [in] device
 * @Callback: [in] void (*)(D3DKMT_TRIMNOTIFICATION *)
 * @Context: [in] passed to the callback
 * @Handle: [out] registration, opaque
 */
typedef struct _D3DKMT_REGISTERTRIMNOTIFICATION {
	DXG_LUID AdapterLuid;
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 Callback;
	__aligned_u64 Context;
	__aligned_u64 Handle;
} D3DKMT_REGISTERTRIMNOTIFICATION;

/**
 * struct _D3DKMT_UNREGISTERTRIMNOTIFICATION - undo
 *	D3DKMT_REGISTERTRIMNOTIFICATION
 * @Handle: [in] registration
 * @Callback: [in] function of the registration
 */
typedef struct _D3DKMT_UNREGISTERTRIMNOTIFICATION {
	__aligned_u64 Handle;
	__aligned_u64 Callback;
} D3DKMT_UNREGISTERTRIMNOTIFICATION;

/**
 * typedef D3DDDI_TRIMRESIDENCYSET_FLAGS - why memory should be released
 */
typedef __u32 D3DDDI_TRIMRESIDENCYSET_FLAGS;
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_PeriodicTrim		0x00000001
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_RestartPeriodicTrim	0x00000002
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_TrimToBudget		0x00000004
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_Reserved			0xfffffff8

/**
 * struct _D3DKMT_TRIMNOTIFICATION - a request to release memory
 * @Context: [in] Context of the registration
 * @Flags: [in] PeriodicTrim, RestartPeriodicTrim, TrimToBudget
 * @NumBytesToTrim: [in] with TrimToBudget
 */
typedef struct _D3DKMT_TRIMNOTIFICATION {
	__aligned_u64 Context;
	D3DDDI_TRIMRESIDENCYSET_FLAGS Flags;
	__u32 _pad0;
	__aligned_u64 NumBytesToTrim;
} D3DKMT_TRIMNOTIFICATION;

/**
 * struct _D3DKMT_REGISTERBUDGETCHANGENOTIFICATION - ask to be told about a new
 *	budget
 * @hDevice: [in] device
 * @Callback: [in] void (*)(D3DKMT_BUDGETCHANGENOTIFICATION *)
 * @Context: [in] passed to the callback
 * @Handle: [out] registration, opaque
 */
typedef struct _D3DKMT_REGISTERBUDGETCHANGENOTIFICATION {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 Callback;
	__aligned_u64 Context;
	__aligned_u64 Handle;
} D3DKMT_REGISTERBUDGETCHANGENOTIFICATION;

/**
 * struct _D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION - undo
 *	D3DKMT_REGISTERBUDGETCHANGENOTIFICATION
 * @Handle: [in] registration
 */
typedef struct _D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION {
	__aligned_u64 Handle;
} D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION;

/**
 * struct _D3DKMT_BUDGETCHANGENOTIFICATION - a new budget
 * @Context: [in] passed to the callback
 * @Budget: [in] bytes
 */
typedef struct _D3DKMT_BUDGETCHANGENOTIFICATION {
	__aligned_u64 Context;
	__aligned_u64 Budget;
} D3DKMT_BUDGETCHANGENOTIFICATION;

#endif /* _UAPI_DXG_NOTIFICATION_H */
