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
 * struct _D3DKMT_CREATEKEYEDMUTEX - create a keyed mutex
 * @InitialValue: [in] first key
 * @hSharedHandle: [out] global handle
 * @hKeyedMutex: [out] keyed mutex
 */
typedef struct _D3DKMT_CREATEKEYEDMUTEX {
	__aligned_u64 InitialValue;
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_CREATEKEYEDMUTEX;

/**
 * typedef D3DKMT_CREATEKEYEDMUTEX2_FLAGS - how to share a keyed mutex
 */
typedef __u32 D3DKMT_CREATEKEYEDMUTEX2_FLAGS;
#define D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing	0x00000001
#define D3DKMT_CREATEKEYEDMUTEX2_FLAGS_Reserved			0xfffffffe

/**
 * struct _D3DKMT_CREATEKEYEDMUTEX2 - create a keyed mutex with private data
 * @InitialValue: [in] first key
 * @hSharedHandle: [out] global handle; 0 with NtSecuritySharing
 * @hKeyedMutex: [out] keyed mutex
 * @pPrivateRuntimeData: [in] address of opaque bytes, or 0 with size 0
 * @PrivateRuntimeDataSize: [in] bytes
 * @Flags: [in] mask constants of the type
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
 * struct _D3DKMT_OPENKEYEDMUTEX - open a keyed mutex by global handle
 * @hSharedHandle: [in] global handle
 * @hKeyedMutex: [out] keyed mutex
 */
typedef struct _D3DKMT_OPENKEYEDMUTEX {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_OPENKEYEDMUTEX;

/**
 * struct _D3DKMT_OPENKEYEDMUTEX2 - open a keyed mutex by global handle, with
 *	private data
 * @hSharedHandle: [in] global handle
 * @hKeyedMutex: [out] keyed mutex
 * @pPrivateRuntimeData: [in] address of opaque bytes, used only when the mutex
 *	has none; nothing is copied out
 * @PrivateRuntimeDataSize: [in] bytes
 */
typedef struct _D3DKMT_OPENKEYEDMUTEX2 {
	D3DKMT_HANDLE hSharedHandle;
	D3DKMT_HANDLE hKeyedMutex;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad0;
} D3DKMT_OPENKEYEDMUTEX2;

/**
 * struct _D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE - open a keyed mutex by NT handle
 * @hNtHandle: [in] NT handle
 * @hKeyedMutex: [out] keyed mutex
 * @pPrivateRuntimeData: [in] address of opaque bytes
 * @PrivateRuntimeDataSize: [in] bytes
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
 * struct _D3DKMT_DESTROYKEYEDMUTEX - close a local handle of a keyed mutex
 * @hKeyedMutex: [in] keyed mutex
 */
typedef struct _D3DKMT_DESTROYKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
} D3DKMT_DESTROYKEYEDMUTEX;

/**
 * struct _D3DKMT_ACQUIREKEYEDMUTEX - acquire a keyed mutex at a key
 * @hKeyedMutex: [in] keyed mutex
 * @Key: [in] key
 * @pTimeout: [in] address of an __s64 in 100 ns units, negative relative,
 *	positive absolute; 0 to wait without limit
 * @FenceValue: [out] fence value; 0 on STATUS_TIMEOUT and STATUS_ABANDONED
 */
typedef struct _D3DKMT_ACQUIREKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 Key;
	__aligned_u64 pTimeout;
	__aligned_u64 FenceValue;
} D3DKMT_ACQUIREKEYEDMUTEX;

/**
 * struct _D3DKMT_ACQUIREKEYEDMUTEX2 - acquire a keyed mutex and read its
 *	private data
 * @hKeyedMutex: [in] keyed mutex
 * @Key: [in] key
 * @pTimeout: [in] address of an __s64 in 100 ns units, negative relative,
 *	positive absolute; 0 to wait without limit
 * @FenceValue: [out] fence value; 0 on STATUS_TIMEOUT and STATUS_ABANDONED
 * @pPrivateRuntimeData: [in] buffer for the private data
 * @PrivateRuntimeDataSize: [in] bytes
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
 * struct _D3DKMT_RELEASEKEYEDMUTEX - release a keyed mutex with a key
 * @hKeyedMutex: [in] keyed mutex
 * @Key: [in] key
 * @FenceValue: [in] fence value
 */
typedef struct _D3DKMT_RELEASEKEYEDMUTEX {
	D3DKMT_HANDLE hKeyedMutex;
	__u32 _pad0;
	__aligned_u64 Key;
	__aligned_u64 FenceValue;
} D3DKMT_RELEASEKEYEDMUTEX;

/**
 * struct _D3DKMT_RELEASEKEYEDMUTEX2 - release a keyed mutex and set its
 *	private data
 * @hKeyedMutex: [in] keyed mutex
 * @Key: [in] key
 * @FenceValue: [in] fence value
 * @pPrivateRuntimeData: [in] address of the new private data
 * @PrivateRuntimeDataSize: [in] bytes
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
