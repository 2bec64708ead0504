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
 * struct _D3DKMT_REGISTERTRIMNOTIFICATION - data of a call
 * @AdapterLuid: [in]
 * @hDevice: [in]
 * @Callback: [in] pointer to a function; void (*)(D3DKMT_TRIMNOTIFICATION *)
 * @Context: [in] pointer
 * @Handle: [out] pointer; registration, opaque
 */
typedef struct _D3DKMT_REGISTERTRIMNOTIFICATION {
	LUID AdapterLuid;
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 Callback;
	__aligned_u64 Context;
	__aligned_u64 Handle;
} D3DKMT_REGISTERTRIMNOTIFICATION;

/**
 * struct _D3DKMT_UNREGISTERTRIMNOTIFICATION - data of a call
 * @Handle: [in] pointer
 * @Callback: [in] pointer to a function
 */
typedef struct _D3DKMT_UNREGISTERTRIMNOTIFICATION {
	__aligned_u64 Handle;
	__aligned_u64 Callback;
} D3DKMT_UNREGISTERTRIMNOTIFICATION;

/**
 * typedef D3DDDI_TRIMRESIDENCYSET_FLAGS - data of a call
 */
typedef __u32 D3DDDI_TRIMRESIDENCYSET_FLAGS;
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_PeriodicTrim		0x00000001
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_RestartPeriodicTrim	0x00000002
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_TrimToBudget		0x00000004
#define D3DDDI_TRIMRESIDENCYSET_FLAGS_Reserved			0xfffffff8

/**
 * struct _D3DKMT_TRIMNOTIFICATION - data of a call
 * @Context: [in] pointer; what was registered
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
 * struct _D3DKMT_REGISTERBUDGETCHANGENOTIFICATION - data of a call
 * @hDevice: [in]
 * @Callback: [in] pointer to a function; void
 * 	(*)(D3DKMT_BUDGETCHANGENOTIFICATION *)
 * @Context: [in] pointer
 * @Handle: [out] pointer
 */
typedef struct _D3DKMT_REGISTERBUDGETCHANGENOTIFICATION {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 Callback;
	__aligned_u64 Context;
	__aligned_u64 Handle;
} D3DKMT_REGISTERBUDGETCHANGENOTIFICATION;

/**
 * struct _D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION - data of a call
 * @Handle: [in] pointer
 */
typedef struct _D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION {
	__aligned_u64 Handle;
} D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION;

/**
 * struct _D3DKMT_BUDGETCHANGENOTIFICATION - data of a call
 * @Context: [in] pointer
 * @Budget: [in]
 */
typedef struct _D3DKMT_BUDGETCHANGENOTIFICATION {
	__aligned_u64 Context;
	__aligned_u64 Budget;
} D3DKMT_BUDGETCHANGENOTIFICATION;

#endif /* _UAPI_DXG_NOTIFICATION_H */
