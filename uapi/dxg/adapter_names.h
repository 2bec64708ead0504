/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Payloads of D3DKMTQueryAdapterInfo that carry text.
 *
 * Text is UTF-16LE in arrays of __u16, the form the kernel sees. A program
 * whose wchar_t has four bytes is converted in its library.
 */
#ifndef _UAPI_DXG_ADAPTER_NAMES_H
#define _UAPI_DXG_ADAPTER_NAMES_H

#include "base.h"

/**
 * enum _KMTUMDVERSION - API of a user-mode driver
 */
typedef __u32 KMTUMDVERSION;
enum _KMTUMDVERSION {
	KMTUMDVERSION_DX9 = 0,
	KMTUMDVERSION_DX10 = 1,
	KMTUMDVERSION_DX11 = 2,
	KMTUMDVERSION_DX12 = 3,
	NUM_KMTUMDVERSIONS = 4
};

/**
 * struct _D3DKMT_UMDFILENAMEINFO - file name of the user-mode driver
 * @Version: [in] API whose driver is asked for
 */
typedef struct _D3DKMT_UMDFILENAMEINFO {
	KMTUMDVERSION Version;
	__u16 UmdFileName[D3DKMT_MAX_PATH];
} D3DKMT_UMDFILENAMEINFO;

/**
 * struct _D3DKMT_OPENGLINFO - file name of the OpenGL driver
 */
typedef struct _D3DKMT_OPENGLINFO {
	__u16 UmdOpenGlIcdFileName[D3DKMT_MAX_PATH];
	__u32 Version;
	__u32 Flags;
} D3DKMT_OPENGLINFO;

/**
 * struct _D3DKMT_ADAPTERREGISTRYINFO - names of the adapter in the registry
 */
typedef struct _D3DKMT_ADAPTERREGISTRYINFO {
	__u16 AdapterString[D3DKMT_MAX_PATH];
	__u16 BiosString[D3DKMT_MAX_PATH];
	__u16 DacType[D3DKMT_MAX_PATH];
	__u16 ChipType[D3DKMT_MAX_PATH];
} D3DKMT_ADAPTERREGISTRYINFO;

/**
 * struct _D3DKMT_DLIST_DRIVER_NAME - file name of the device-list driver
 */
typedef struct _D3DKMT_DLIST_DRIVER_NAME {
	__u16 DListFileName[D3DKMT_MAX_PATH];
} D3DKMT_DLIST_DRIVER_NAME;

/**
 * struct _D3DKMT_CPDRIVERNAME - file name of the content-protection driver
 */
typedef struct _D3DKMT_CPDRIVERNAME {
	__u16 ContentProtectionFileName[D3DKMT_MAX_PATH];
} D3DKMT_CPDRIVERNAME;

/**
 * struct _D3DKMT_MIRACASTCOMPANIONDRIVERNAME - file name of the wireless-
 *	display driver
 */
typedef struct _D3DKMT_MIRACASTCOMPANIONDRIVERNAME {
	__u16 MiracastCompanionDriverName[D3DKMT_MAX_PATH];
} D3DKMT_MIRACASTCOMPANIONDRIVERNAME;

/**
 * struct _D3DKMT_DISPLAY_UMD_FILENAMEINFO - file name of the user-mode display
 *	driver
 * @Version: [in] API whose driver is asked for
 */
typedef struct _D3DKMT_DISPLAY_UMD_FILENAMEINFO {
	KMTUMDVERSION Version;
	__u16 UmdFileName[D3DKMT_MAX_PATH];
} D3DKMT_DISPLAY_UMD_FILENAMEINFO;

/**
 * struct _D3DKMT_DRIVER_DESCRIPTION - name of the adapter for people
 */
typedef struct _D3DKMT_DRIVER_DESCRIPTION {
	__u16 DriverDescription[4096];
} D3DKMT_DRIVER_DESCRIPTION;

/**
 * struct _D3DKMT_QUERY_ADAPTER_UNIQUE_GUID - id of the adapter in text form
 */
typedef struct _D3DKMT_QUERY_ADAPTER_UNIQUE_GUID {
	__u16 AdapterUniqueGUID[40];
} D3DKMT_QUERY_ADAPTER_UNIQUE_GUID;

/**
 * struct _D3DKMT_BLOCKLIST_INFO - block list of the driver
 * @Size: bytes
 * @BlockList: the text starts here and runs past the struct
 */
typedef struct _D3DKMT_BLOCKLIST_INFO {
	__u32 Size;
	__u16 BlockList[1];
	__u16 _pad0;
} D3DKMT_BLOCKLIST_INFO;

/**
 * enum _D3DDDI_QUERYREGISTRY_TYPE - where to look for a value
 */
typedef __u32 D3DDDI_QUERYREGISTRY_TYPE;
enum _D3DDDI_QUERYREGISTRY_TYPE {
	D3DDDI_QUERYREGISTRY_SERVICEKEY = 0,
	D3DDDI_QUERYREGISTRY_ADAPTERKEY = 1,
	D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH = 2,
	D3DDDI_QUERYREGISTRY_DRIVERIMAGEPATH = 3,
	D3DDDI_QUERYREGISTRY_MAX = 4
};

/**
 * typedef D3DDDI_QUERYREGISTRY_FLAGS - how to look for a value
 */
typedef __u32 D3DDDI_QUERYREGISTRY_FLAGS;
#define D3DDDI_QUERYREGISTRY_FLAGS_TranslatePath	0x00000001
#define D3DDDI_QUERYREGISTRY_FLAGS_MutableValue		0x00000002
#define D3DDDI_QUERYREGISTRY_FLAGS_Reserved		0xfffffffc

/**
 * enum _D3DDDI_QUERYREGISTRY_STATUS - outcome of reading a value
 */
typedef __u32 D3DDDI_QUERYREGISTRY_STATUS;
enum _D3DDDI_QUERYREGISTRY_STATUS {
	D3DDDI_QUERYREGISTRY_STATUS_SUCCESS = 0,
	D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW = 1,
	D3DDDI_QUERYREGISTRY_STATUS_FAIL = 2,
	D3DDDI_QUERYREGISTRY_STATUS_MAX = 3
};

/**
 * struct _D3DDDI_QUERYREGISTRY_INFO - read a value of the driver's settings
 * @QueryType: [in] where to look
 * @QueryFlags: [in] mask constants of the type
 * @ValueName: [in] name of the value
 * @ValueType: [in] REG_ number of the type of the value
 * @PhysicalAdapterIndex: [in] physical adapter
 * @OutputValueSize: [out] bytes written, or needed when the buffer is too
 *	small
 * @Status: [out] outcome
 * @OutputDword: [out] number
 * @OutputQword: [out] number
 * @OutputString: [out] text; starts here and runs past the struct
 * @OutputBinary: [out] bytes; start here and run past the struct
 *
 * The buffer holds this struct and the value behind it. A value that does not
 * fit gives STATUS_SUCCESS with @Status BUFFER_OVERFLOW and the size needed.
 */
typedef struct _D3DDDI_QUERYREGISTRY_INFO {
	D3DDDI_QUERYREGISTRY_TYPE QueryType;
	D3DDDI_QUERYREGISTRY_FLAGS QueryFlags;
	__u16 ValueName[D3DKMT_MAX_PATH];
	__u32 ValueType;
	__u32 PhysicalAdapterIndex;
	__u32 OutputValueSize;
	D3DDDI_QUERYREGISTRY_STATUS Status;
	__extension__ union {
		__u32 OutputDword;
		__aligned_u64 OutputQword;
		__u16 OutputString[1];
		__u8 OutputBinary[1];
	};
} D3DDDI_QUERYREGISTRY_INFO;

/**
 * struct _D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY - name of a key of the plug-
 *	and-play settings
 */
typedef struct _D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY {
	__u32 PhysicalAdapterIndex;
	__u32 PnPKeyType;
	__aligned_u64 pDest;
	__aligned_u64 pCchDest;
} D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY;

#endif /* _UAPI_DXG_ADAPTER_NAMES_H */
