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
 * struct _D3DKMT_QUERYRESOURCEINFO - sizes needed to open a resource by global
 *	handle
 * @hDevice: [in] device
 * @hGlobalShare: [in] global handle
 * @pPrivateRuntimeData: [in] accepted, never written
 * @PrivateRuntimeDataSize: [out] size of the stored runtime data
 * @TotalPrivateDriverDataSize: [out] sum over all allocations
 * @ResourcePrivateDriverDataSize: [out] bytes
 * @NumAllocations: [out] number of allocations
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
 * struct _D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE - sizes needed to open a
 *	resource by NT handle
 * @hDevice: [in] device
 * @hNtHandle: [in] NT handle
 * @pPrivateRuntimeData: [in] accepted, never written
 * @PrivateRuntimeDataSize: [out] bytes
 * @TotalPrivateDriverDataSize: [out] bytes, sum over all allocations
 * @ResourcePrivateDriverDataSize: [out] bytes
 * @NumAllocations: [out] number of allocations
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
 * struct _D3DDDI_OPENALLOCATIONINFO - one opened allocation, short form
 * @hAllocation: [out] allocation
 * @pPrivateDriverData: [out] address inside the caller's total buffer
 * @PrivateDriverDataSize: [out] bytes
 */
typedef struct _D3DDDI_OPENALLOCATIONINFO {
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	__u32 _pad1;
} D3DDDI_OPENALLOCATIONINFO;

/**
 * struct _D3DDDI_OPENALLOCATIONINFO2 - one opened allocation
 * @hAllocation: [out] allocation
 * @pPrivateDriverData: [out] address inside the caller's total buffer
 * @PrivateDriverDataSize: [out] bytes
 * @GpuVirtualAddress: [out] GPU address, 0 when not mapped
 * @Reserved: not used
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
 * struct _D3DKMT_OPENRESOURCE - open a resource by global handle
 * @hDevice: [in] device
 * @hGlobalShare: [in] global handle
 * @NumAllocations: [in] must equal the resource's count
 * @pOpenAllocationInfo: pointer to D3DDDI_OPENALLOCATIONINFO[]; C function
 *	D3DKMTOpenResource only, never the ioctl
 * @pOpenAllocationInfo2: [in] pointer to D3DDDI_OPENALLOCATIONINFO2[] to fill
 * @pPrivateRuntimeData: [in] buffer for the runtime data
 * @PrivateRuntimeDataSize: [in] must equal the stored size
 * @pResourcePrivateDriverData: [in] buffer for the driver data of the resource
 * @ResourcePrivateDriverDataSize: [in] bytes
 * @pTotalPrivateDriverDataBuffer: [in] buffer for the driver data of all
 *	allocations, back to back
 * @TotalPrivateDriverDataBufferSize: [in,out] capacity / bytes written
 * @hResource: [out] resource
 *
 * Argument of DXG_IOCTL_OPENRESOURCE.
 */
typedef struct _D3DKMT_OPENRESOURCE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hGlobalShare;
	__u32 NumAllocations;
	__u32 _pad0;
	__extension__ union {
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
 * struct _D3DKMT_OPENRESOURCEFROMNTHANDLE - open a resource by NT handle
 * @hDevice: [in] device
 * @hNtHandle: [in] NT handle
 * @NumAllocations: [in] number of allocations
 * @pOpenAllocationInfo2: [in] pointer to D3DDDI_OPENALLOCATIONINFO2[] to fill
 * @PrivateRuntimeDataSize: [in,out] bytes
 * @pPrivateRuntimeData: [in] buffer for the runtime data
 * @ResourcePrivateDriverDataSize: [in,out] bytes
 * @pResourcePrivateDriverData: [in] buffer for the driver data of the resource
 * @TotalPrivateDriverDataBufferSize: [in,out] capacity / bytes written
 * @pTotalPrivateDriverDataBuffer: [in] buffer for the driver data of all
 *	allocations, back to back
 * @hResource: [out] resource
 * @hKeyedMutex: [out] 0 when the NT handle carries none
 * @pKeyedMutexPrivateRuntimeData: [in] buffer for the private data of the
 *	keyed mutex
 * @KeyedMutexPrivateRuntimeDataSize: [in,out] bytes
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
 * struct _D3DKMT_GETSHAREDRESOURCEADAPTERLUID - ask which adapter a shared
 *	resource is on
 * @hGlobalShare: [in] either this ...
 * @hNtHandle: [in] ... or this (the other 0)
 * @AdapterLuid: [out] LUID of the adapter
 *
 * Argument of DXG_IOCTL_GETSHAREDRESOURCEADAPTERLUID.
 */
typedef struct _D3DKMT_GETSHAREDRESOURCEADAPTERLUID {
	D3DKMT_HANDLE hGlobalShare;
	__u32 _pad0;
	__aligned_u64 hNtHandle;
	DXG_LUID AdapterLuid;
} D3DKMT_GETSHAREDRESOURCEADAPTERLUID;

/* Access rights of an NT handle of a resource. */
#define SHARED_ALLOCATION_WRITE			0x00000001
#define SHARED_ALLOCATION_ALL_ACCESS		0x000f0001

#endif /* _UAPI_DXG_RESOURCE_H */
