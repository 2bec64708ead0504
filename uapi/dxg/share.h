/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Sharing: NT handles, object names, sync files.
 *
 * An NT handle is a file descriptor in an 8-byte slot.
 */
#ifndef _UAPI_DXG_SHARE_H
#define _UAPI_DXG_SHARE_H

#include "base.h"

/**
 * struct _D3DKMT_SHAREOBJECTS - argument of a call
 * @ObjectCount: [in] WSL: exactly 1. Windows: 1 (resource or sync object) or 3
 * 	(resource, keyed mutex, sync object)
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @pObjectAttributes: [in] pointer; OBJECT_ATTRIBUTES or 0; WSL ignores it
 * @DesiredAccess: [in]
 * @pSharedNtHandle: [in] pointer to one 8-byte handle; pointer to one 8-byte
 * 	slot that receives the fd
 *
 * Argument of DXG_IOCTL_SHAREOBJECTS.
 */
typedef struct _D3DKMT_SHAREOBJECTS {
	__u32 ObjectCount;
	__u32 _pad0;
	__aligned_u64 ObjectHandleArray;
	__aligned_u64 pObjectAttributes;
	__u32 DesiredAccess;
	__u32 _pad1;
	__aligned_u64 pSharedNtHandle;
} D3DKMT_SHAREOBJECTS;

/**
 * struct _UNICODE_STRING - data of a call
 * @Length: [in] bytes, even, without terminator
 * @MaximumLength: [in] bytes
 * @Buffer: [in] pointer to __u16[]; 16-bit code units
 */
typedef struct _UNICODE_STRING {
	__u16 Length;
	__u16 MaximumLength;
	__u32 _pad0;
	__aligned_u64 Buffer;
} UNICODE_STRING;

/**
 * struct _OBJECT_ATTRIBUTES - data of a call
 * @Length: [in] 48
 * @RootDirectory: [in] nt64
 * @ObjectName: [in] pointer to UNICODE_STRING; 0 or pointer to UNICODE_STRING
 * @Attributes: [in] OBJ_* bits
 * @SecurityDescriptor: [in] pointer
 * @SecurityQualityOfService: [in] pointer
 */
typedef struct _OBJECT_ATTRIBUTES {
	__u32 Length;
	__u32 _pad0;
	__aligned_u64 RootDirectory;
	__aligned_u64 ObjectName;
	__u32 Attributes;
	__u32 _pad1;
	__aligned_u64 SecurityDescriptor;
	__aligned_u64 SecurityQualityOfService;
} OBJECT_ATTRIBUTES;

/**
 * struct _D3DKMT_OPENNTHANDLEFROMNAME - data of a call
 * @dwDesiredAccess: [in]
 * @pObjAttrib: [in] pointer to OBJECT_ATTRIBUTES
 * @hNtHandle: [out] a value in the struct, not a pointer; zeroed first
 */
typedef struct _D3DKMT_OPENNTHANDLEFROMNAME {
	__u32 dwDesiredAccess;
	__u32 _pad0;
	__aligned_u64 pObjAttrib;
	__aligned_u64 hNtHandle;
} D3DKMT_OPENNTHANDLEFROMNAME;

/**
 * struct _D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME - data of a call
 * @dwDesiredAccess: [in]
 * @pObjAttrib: [in] pointer to OBJECT_ATTRIBUTES
 * @hNtHandle: [out] NT handle
 */
typedef struct _D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME {
	__u32 dwDesiredAccess;
	__u32 _pad0;
	__aligned_u64 pObjAttrib;
	__aligned_u64 hNtHandle;
} D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME;

/**
 * struct _D3DKMT_SHAREOBJECTWITHHOST - argument of a call
 * @hDevice: [in]
 * @hObject: [in]
 * @Reserved: [in] zero
 * @hVailProcessNtHandle: [out]
 *
 * Argument of DXG_IOCTL_SHAREOBJECTWITHHOST.
 */
typedef struct _D3DKMT_SHAREOBJECTWITHHOST {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hObject;
	__aligned_u64 Reserved;
	__aligned_u64 hVailProcessNtHandle;
} D3DKMT_SHAREOBJECTWITHHOST;

/**
 * struct _D3DKMT_CREATESYNCFILE - argument of a call
 * @hDevice: [in]
 * @hMonitoredFence: [in]
 * @FenceValue: [in]
 * @hSyncFile: [out] fd of a Linux sync_file that signals when fence >=
 * 	FenceValue
 *
 * Argument of DXG_IOCTL_CREATESYNCFILE.
 */
typedef struct _D3DKMT_CREATESYNCFILE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hMonitoredFence;
	__aligned_u64 FenceValue;
	__aligned_u64 hSyncFile;
} D3DKMT_CREATESYNCFILE;

/**
 * struct d3dkmt_waitsyncfile - argument of a call
 * @sync_file_handle: [in] fd
 * @context: [in] GPU-side wait on this context
 * @reserved: [in] zero
 *
 * Argument of DXG_IOCTL_WAITSYNCFILE.
 */
struct d3dkmt_waitsyncfile {
	__aligned_u64 sync_file_handle;
	D3DKMT_HANDLE context;
	__u32 reserved;
};

/**
 * struct d3dkmt_opensyncobjectfromsyncfile - argument of a call
 * @sync_file_handle: [in] fd made by 0x45
 * @device: [in]
 * @syncobj: [out] new local handle of the monitored fence behind the file
 * @fence_value: [out]
 * @fence_value_cpu_va: [out]
 * @fence_value_gpu_va: [out]
 *
 * Argument of DXG_IOCTL_OPENSYNCOBJECTFROMSYNCFILE.
 */
struct d3dkmt_opensyncobjectfromsyncfile {
	__aligned_u64 sync_file_handle;
	D3DKMT_HANDLE device;
	D3DKMT_HANDLE syncobj;
	__aligned_u64 fence_value;
	__aligned_u64 fence_value_cpu_va;
	__aligned_u64 fence_value_gpu_va;
};

#endif /* _UAPI_DXG_SHARE_H */
