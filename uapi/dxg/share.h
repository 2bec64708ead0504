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
 * struct _D3DKMT_SHAREOBJECTS - make an NT handle for objects
 * @ObjectCount: [in] 1 for a resource or a synchronisation object, 3 for
 *	resource, keyed mutex and synchronisation object in this order
 * @ObjectHandleArray: [in] pointer to D3DKMT_HANDLE[]
 * @pObjectAttributes: [in] pointer to OBJECT_ATTRIBUTES, or 0 for an unnamed
 *	handle
 * @DesiredAccess: [in] access mask
 * @pSharedNtHandle: [in] pointer to one 8-byte slot that receives the file
 *	descriptor
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
 * struct dxg_unicode_string - a counted string: UNICODE_STRING
 * @Length: [in] bytes, even, without terminator
 * @MaximumLength: [in] bytes
 * @Buffer: [in] pointer to __u16[], UTF-16LE
 */
struct dxg_unicode_string {
	__u16 Length;
	__u16 MaximumLength;
	__u32 _pad0;
	__aligned_u64 Buffer;
};

/**
 * struct dxg_object_attributes - name and inheritance of an NT handle:
 *	OBJECT_ATTRIBUTES
 * @Length: [in] 48
 * @RootDirectory: [in] nt64
 * @ObjectName: [in] pointer to UNICODE_STRING, or 0
 * @Attributes: [in] OBJ_* bits
 * @SecurityDescriptor: [in] address of a security descriptor, or 0
 * @SecurityQualityOfService: [in] address, not used
 */
struct dxg_object_attributes {
	__u32 Length;
	__u32 _pad0;
	__aligned_u64 RootDirectory;
	__aligned_u64 ObjectName;
	__u32 Attributes;
	__u32 _pad1;
	__aligned_u64 SecurityDescriptor;
	__aligned_u64 SecurityQualityOfService;
};

#ifdef DXG_WINDOWS_TYPES
typedef struct dxg_unicode_string UNICODE_STRING;
typedef struct dxg_object_attributes OBJECT_ATTRIBUTES;
#endif

/**
 * struct _D3DKMT_OPENNTHANDLEFROMNAME - get an NT handle of a named resource
 * @dwDesiredAccess: [in] access mask
 * @pObjAttrib: [in] pointer to OBJECT_ATTRIBUTES
 * @hNtHandle: [out] NT handle; 0 on failure
 */
typedef struct _D3DKMT_OPENNTHANDLEFROMNAME {
	__u32 dwDesiredAccess;
	__u32 _pad0;
	__aligned_u64 pObjAttrib;
	__aligned_u64 hNtHandle;
} D3DKMT_OPENNTHANDLEFROMNAME;

/**
 * struct _D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME - get an NT handle of a named
 *	synchronisation object
 * @dwDesiredAccess: [in] access mask
 * @pObjAttrib: [in] pointer to OBJECT_ATTRIBUTES
 * @hNtHandle: [out] NT handle; 0 on failure
 */
typedef struct _D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME {
	__u32 dwDesiredAccess;
	__u32 _pad0;
	__aligned_u64 pObjAttrib;
	__aligned_u64 hNtHandle;
} D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME;

/**
 * struct _D3DKMT_SHAREOBJECTWITHHOST - give an object to the host of a virtual
 *	machine
 * @hDevice: [in] device
 * @hObject: [in] object to give
 * @Reserved: [in] zero
 * @hVailProcessNtHandle: [out] handle in the host
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
 * struct _D3DKMT_CREATESYNCFILE - make a sync file for a fence value
 * @hDevice: [in] device
 * @hMonitoredFence: [in] monitored fence
 * @FenceValue: [in] fence value
 * @hSyncFile: [out] descriptor of a sync_file that signals when the fence
 *	reaches FenceValue
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
 * struct d3dkmt_waitsyncfile - make a context wait for a sync file
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
 * struct d3dkmt_opensyncobjectfromsyncfile - open the fence behind a sync file
 * @sync_file_handle: [in] fd made by 0x45
 * @device: [in] device
 * @syncobj: [out] new local handle of the monitored fence behind the file
 * @fence_value: [out] value that signals the file
 * @fence_value_cpu_va: [out] address of the value, mapped read-only
 * @fence_value_gpu_va: [out] GPU address of the value
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

/* Attributes of OBJECT_ATTRIBUTES. */
#if !defined(DXG_NO_WINDOWS_TYPES) && !defined(OBJ_INHERIT)
#define OBJ_INHERIT				0x00000002
#define OBJ_PERMANENT				0x00000010
#define OBJ_CASE_INSENSITIVE			0x00000040
#define OBJ_OPENIF				0x00000080
#endif

#endif /* _UAPI_DXG_SHARE_H */
