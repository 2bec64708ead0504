/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Opening shared resources and asking about them.
 *
 * Private runtime data are opaque bytes of the API runtime.
 */
#ifndef _UAPI_DXG_RESOURCE_H
#define _UAPI_DXG_RESOURCE_H

#include "base.h"

/**
 * struct _D3DKMT_QUERYRESOURCEINFO - argument of a call
 * @hDevice: [in]
 * @hGlobalShare: [in] global handle
 * @pPrivateRuntimeData: [in] pointer; accepted, never written (Windows
 * 	behaviour observed by the Wine tests)
 * @PrivateRuntimeDataSize: [out] size of the stored runtime data
 * @TotalPrivateDriverDataSize: [out] sum over all allocations
 * @ResourcePrivateDriverDataSize: [out]
 * @NumAllocations: [out]
 *
 * Argument of DXG_IOCTL_QUERYRESOURCEINFO.
 */
typedef struct _D3DKMT_QUERYRESOURCEINFO {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hGlobalShare;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 TotalPrivateDriverDataSize;
	__u32 ResourcePrivateDriverDataSize;
	__u32 NumAllocations;
} D3DKMT_QUERYRESOURCEINFO;

/**
 * struct _D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE - argument of a call
 * @hDevice: [in]
 * @hNtHandle: [in] NT handle
 * @pPrivateRuntimeData: [in] pointer; accepted, never written
 * @PrivateRuntimeDataSize: [out]
 * @TotalPrivateDriverDataSize: [out]
 * @ResourcePrivateDriverDataSize: [out]
 * @NumAllocations: [out]
 *
 * Argument of DXG_IOCTL_QUERYRESOURCEINFOFROMNTHANDLE.
 */
typedef struct _D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 hNtHandle;
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 TotalPrivateDriverDataSize;
	__u32 ResourcePrivateDriverDataSize;
	__u32 NumAllocations;
} D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE;

/**
 * struct _D3DDDI_OPENALLOCATIONINFO - data of a call
 * @hAllocation: [out]
 * @pPrivateDriverData: [out] pointer
 * @PrivateDriverDataSize: [out]
 */
typedef struct _D3DDDI_OPENALLOCATIONINFO {
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 _pad1;
} D3DDDI_OPENALLOCATIONINFO;

/**
 * struct _D3DDDI_OPENALLOCATIONINFO2 - data of a call
 * @hAllocation: [out]
 * @pPrivateDriverData: [out] pointer; points into the caller's total buffer
 * @PrivateDriverDataSize: [out]
 * @GpuVirtualAddress: [out]
 * @Reserved: [unused]
 */
typedef struct _D3DDDI_OPENALLOCATIONINFO2 {
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 _pad1;
	D3DGPU_VIRTUAL_ADDRESS GpuVirtualAddress;
	__aligned_u64 Reserved[6];
} D3DDDI_OPENALLOCATIONINFO2;

/**
 * struct _D3DKMT_OPENRESOURCE - argument of a call
 * @hDevice: [in]
 * @hGlobalShare: [in] global handle
 * @NumAllocations: [in] must equal the resource's count
 * @pOpenAllocationInfo: [unused] pointer to D3DDDI_OPENALLOCATIONINFO[];
 * 	24-byte entries: C function D3DKMTOpenResource only
 * @pOpenAllocationInfo2: [in] pointer to D3DDDI_OPENALLOCATIONINFO2[]; 80-byte
 * 	entries, filled by the call
 * @pPrivateRuntimeData: [in] pointer; receives the runtime data
 * @PrivateRuntimeDataSize: [in] must equal the stored size
 * @pResourcePrivateDriverData: [in] pointer
 * @ResourcePrivateDriverDataSize: [in]
 * @pTotalPrivateDriverDataBuffer: [in] pointer; receives all per-allocation
 * 	driver data, back to back
 * @TotalPrivateDriverDataBufferSize: [in,out] capacity / bytes written
 * @hResource: [out]
 *
 * Argument of DXG_IOCTL_OPENRESOURCE.
 */
typedef struct _D3DKMT_OPENRESOURCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hGlobalShare;
	__u32 NumAllocations;
	__u32 _pad0;
	union {
		__aligned_u64 pOpenAllocationInfo;
		__aligned_u64 pOpenAllocationInfo2;
	};
	__aligned_u64 pPrivateRuntimeData;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad1;
	__aligned_u64 pResourcePrivateDriverData;
	__u32 ResourcePrivateDriverDataSize;
	__u32 _pad2;
	__aligned_u64 pTotalPrivateDriverDataBuffer;
	__u32 TotalPrivateDriverDataBufferSize;
	D3DKMT_HANDLE hResource;
} D3DKMT_OPENRESOURCE;

/**
 * struct _D3DKMT_OPENRESOURCEFROMNTHANDLE - argument of a call
 * @hDevice: [in]
 * @hNtHandle: [in] NT handle
 * @NumAllocations: [in]
 * @pOpenAllocationInfo2: [in] pointer to D3DDDI_OPENALLOCATIONINFO2[]; filled
 * 	by the call
 * @PrivateRuntimeDataSize: [in,out]
 * @pPrivateRuntimeData: [in] pointer; receives the runtime data
 * @ResourcePrivateDriverDataSize: [in,out]
 * @pResourcePrivateDriverData: [in] pointer
 * @TotalPrivateDriverDataBufferSize: [in,out] capacity / bytes written
 * @pTotalPrivateDriverDataBuffer: [in] pointer
 * @hResource: [out]
 * @hKeyedMutex: [out] 0 when the NT handle carries none
 * @pKeyedMutexPrivateRuntimeData: [in] pointer
 * @KeyedMutexPrivateRuntimeDataSize: [in,out]
 * @hSyncObject: [out] 0 when the NT handle carries none
 *
 * Argument of DXG_IOCTL_OPENRESOURCEFROMNTHANDLE.
 */
typedef struct _D3DKMT_OPENRESOURCEFROMNTHANDLE {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 hNtHandle;
	__u32 NumAllocations;
	__u32 _pad1;
	__aligned_u64 pOpenAllocationInfo2;
	__u32 PrivateRuntimeDataSize;
	__u32 _pad2;
	__aligned_u64 pPrivateRuntimeData;
	__u32 ResourcePrivateDriverDataSize;
	__u32 _pad3;
	__aligned_u64 pResourcePrivateDriverData;
	__u32 TotalPrivateDriverDataBufferSize;
	__u32 _pad4;
	__aligned_u64 pTotalPrivateDriverDataBuffer;
	D3DKMT_HANDLE hResource;
	D3DKMT_HANDLE hKeyedMutex;
	__aligned_u64 pKeyedMutexPrivateRuntimeData;
	__u32 KeyedMutexPrivateRuntimeDataSize;
	D3DKMT_HANDLE hSyncObject;
} D3DKMT_OPENRESOURCEFROMNTHANDLE;

/**
 * struct _D3DKMT_GETSHAREDRESOURCEADAPTERLUID - argument of a call
 * @hGlobalShare: [in] either this ...
 * @hNtHandle: [in] ... or this (the other 0)
 * @AdapterLuid: [out]
 *
 * Argument of DXG_IOCTL_GETSHAREDRESOURCEADAPTERLUID.
 */
typedef struct _D3DKMT_GETSHAREDRESOURCEADAPTERLUID {
	D3DKMT_HANDLE hGlobalShare;
	__u32 _pad0;
	__aligned_u64 hNtHandle;
	LUID AdapterLuid;
} D3DKMT_GETSHAREDRESOURCEADAPTERLUID;

#endif /* _UAPI_DXG_RESOURCE_H */
