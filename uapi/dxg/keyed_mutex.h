/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Keyed mutexes.
 *
 * These have no number in the legacy range; extension calls take the structs
 * unchanged.
 */
#ifndef _UAPI_DXG_KEYED_MUTEX_H
#define _UAPI_DXG_KEYED_MUTEX_H

#include "base.h"

/**
 * struct _D3DKMT_CREATEKEYEDMUTEX - data of a call
 * @InitialValue: [in]
 * @hSharedHandle: [out]
 * @hKeyedMutex: [out]
 */
typedef struct _D3DKMT_CREATEKEYEDMUTEX {
	__aligned_u64 InitialValue;
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_CREATEKEYEDMUTEX;

/**
 * typedef D3DKMT_CREATEKEYEDMUTEX2_FLAGS - data of a call
 */
typedef __u32 D3DKMT_CREATEKEYEDMUTEX2_FLAGS;
#define D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing	0x00000001
#define D3DKMT_CREATEKEYEDMUTEX2_FLAGS_Reserved			0xfffffffe

/**
 * struct _D3DKMT_CREATEKEYEDMUTEX2 - data of a call
 * @InitialValue: [in]
 * @hSharedHandle: [out] global handle; 0 with NtSecuritySharing
 * @hKeyedMutex: [out]
 * @pPrivateRuntimeData: [in] pointer; size must be 0 when 0
 * @PrivateRuntimeDataSize: [in]
 * @Flags: [in]
 */
typedef struct _D3DKMT_CREATEKEYEDMUTEX2 {
	__aligned_u64 InitialValue;
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	D3DKMT_CREATEKEYEDMUTEX2_FLAGS Flags;
} D3DKMT_CREATEKEYEDMUTEX2;

/**
 * struct _D3DKMT_OPENKEYEDMUTEX - data of a call
 * @hSharedHandle: [in]
 * @hKeyedMutex: [out]
 */
typedef struct _D3DKMT_OPENKEYEDMUTEX {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_OPENKEYEDMUTEX;

/**
 * struct _D3DKMT_OPENKEYEDMUTEX2 - data of a call
 * @hSharedHandle: [in]
 * @hKeyedMutex: [out]
 * @pPrivateRuntimeData: [in] pointer; initial data, used only when the mutex
 * 	has none; nothing is copied out
 * @PrivateRuntimeDataSize: [in]
 */
typedef struct _D3DKMT_OPENKEYEDMUTEX2 {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad0;
} D3DKMT_OPENKEYEDMUTEX2;

/**
 * struct _D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE - data of a call
 * @hNtHandle: [in] NT handle
 * @hKeyedMutex: [out]
 * @pPrivateRuntimeData: [in] pointer
 * @PrivateRuntimeDataSize: [in]
 */
typedef struct _D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE {
	__aligned_u64 hNtHandle;
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad1;
} D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE;

/**
 * struct _D3DKMT_DESTROYKEYEDMUTEX - data of a call
 * @hKeyedMutex: [in]
 */
typedef struct _D3DKMT_DESTROYKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_DESTROYKEYEDMUTEX;

/**
 * struct _D3DKMT_ACQUIREKEYEDMUTEX - data of a call
 * @hKeyedMutex: [in]
 * @Key: [in]
 * @pTimeout: [in] pointer to __s64; pointer to s64: negative = relative,
 * 	positive = absolute, 100 ns units; 0 pointer = infinite
 * @FenceValue: [out] 0 is written on TIMEOUT and ABANDONED
 */
typedef struct _D3DKMT_ACQUIREKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 Key;
	__aligned_u64 pTimeout;
	__aligned_u64 FenceValue;
} D3DKMT_ACQUIREKEYEDMUTEX;

/**
 * struct _D3DKMT_ACQUIREKEYEDMUTEX2 - data of a call
 * @hKeyedMutex: [in]
 * @Key: [in]
 * @pTimeout: [in] pointer to __s64
 * @FenceValue: [out]
 * @pPrivateRuntimeData: [in] pointer; filled
 * @PrivateRuntimeDataSize: [in]
 */
typedef struct _D3DKMT_ACQUIREKEYEDMUTEX2 {
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 Key;
	__aligned_u64 pTimeout;
	__aligned_u64 FenceValue;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad1;
} D3DKMT_ACQUIREKEYEDMUTEX2;

/**
 * struct _D3DKMT_RELEASEKEYEDMUTEX - data of a call
 * @hKeyedMutex: [in]
 * @Key: [in]
 * @FenceValue: [in]
 */
typedef struct _D3DKMT_RELEASEKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 Key;
	__aligned_u64 FenceValue;
} D3DKMT_RELEASEKEYEDMUTEX;

/**
 * struct _D3DKMT_RELEASEKEYEDMUTEX2 - data of a call
 * @hKeyedMutex: [in]
 * @Key: [in]
 * @FenceValue: [in]
 * @pPrivateRuntimeData: [in] pointer; replaces the stored data
 * @PrivateRuntimeDataSize: [in]
 */
typedef struct _D3DKMT_RELEASEKEYEDMUTEX2 {
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 Key;
	__aligned_u64 FenceValue;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad1;
} D3DKMT_RELEASEKEYEDMUTEX2;

#endif /* _UAPI_DXG_KEYED_MUTEX_H */
