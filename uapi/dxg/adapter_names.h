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
 * enum _KMTUMDVERSION - data of a call
 */
typedef __u32 KMTUMDVERSION;
enum _KMTUMDVERSION {
	KMTUMDVERSION_DX9 = 0,
	KMTUMDVERSION_DX10 = 1,
	KMTUMDVERSION_DX11 = 2,
	KMTUMDVERSION_DX12 = 3,
	NUM_KMTUMDVERSIONS = 4,
};

/**
 * struct _D3DKMT_UMDFILENAMEINFO - data of a call
 * @Version: input
 */
typedef struct _D3DKMT_UMDFILENAMEINFO {
	KMTUMDVERSION Version;
	__u16 UmdFileName[260];
} D3DKMT_UMDFILENAMEINFO;

/**
 * struct _D3DKMT_OPENGLINFO - data of a call
 */
typedef struct _D3DKMT_OPENGLINFO {
	__u16 UmdOpenGlIcdFileName[260];
	__u32 Version;
	__u32 Flags;
} D3DKMT_OPENGLINFO;

/**
 * struct _D3DKMT_ADAPTERREGISTRYINFO - data of a call
 */
typedef struct _D3DKMT_ADAPTERREGISTRYINFO {
	__u16 AdapterString[260];
	__u16 BiosString[260];
	__u16 DacType[260];
	__u16 ChipType[260];
} D3DKMT_ADAPTERREGISTRYINFO;

/**
 * struct _D3DKMT_DLIST_DRIVER_NAME - data of a call
 */
typedef struct _D3DKMT_DLIST_DRIVER_NAME {
	__u16 DListFileName[260];
} D3DKMT_DLIST_DRIVER_NAME;

/**
 * struct _D3DKMT_CPDRIVERNAME - data of a call
 */
typedef struct _D3DKMT_CPDRIVERNAME {
	__u16 ContentProtectionFileName[260];
} D3DKMT_CPDRIVERNAME;

/**
 * struct _D3DKMT_MIRACASTCOMPANIONDRIVERNAME - data of a call
 */
typedef struct _D3DKMT_MIRACASTCOMPANIONDRIVERNAME {
	__u16 MiracastCompanionDriverName[260];
} D3DKMT_MIRACASTCOMPANIONDRIVERNAME;

/**
 * struct _D3DKMT_DISPLAY_UMD_FILENAMEINFO - data of a call
 */
typedef struct _D3DKMT_DISPLAY_UMD_FILENAMEINFO {
	KMTUMDVERSION Version;
	__u16 UmdFileName[260];
} D3DKMT_DISPLAY_UMD_FILENAMEINFO;

/**
 * struct _D3DKMT_DRIVER_DESCRIPTION - data of a call
 */
typedef struct _D3DKMT_DRIVER_DESCRIPTION {
	__u16 DriverDescription[4096];
} D3DKMT_DRIVER_DESCRIPTION;

/**
 * struct _D3DKMT_QUERY_ADAPTER_UNIQUE_GUID - data of a call
 */
typedef struct _D3DKMT_QUERY_ADAPTER_UNIQUE_GUID {
	__u16 AdapterUniqueGUID[40];
} D3DKMT_QUERY_ADAPTER_UNIQUE_GUID;

/**
 * struct _D3DKMT_BLOCKLIST_INFO - data of a call
 */
typedef struct _D3DKMT_BLOCKLIST_INFO {
	__u32 Size;
	__u16 BlockList[1];
	__u16 _pad0;
} D3DKMT_BLOCKLIST_INFO;

/**
 * enum _D3DDDI_QUERYREGISTRY_TYPE - data of a call
 */
typedef __u32 D3DDDI_QUERYREGISTRY_TYPE;
enum _D3DDDI_QUERYREGISTRY_TYPE {
	D3DDDI_QUERYREGISTRY_SERVICEKEY = 0,
	D3DDDI_QUERYREGISTRY_ADAPTERKEY = 1,
	D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH = 2,
	D3DDDI_QUERYREGISTRY_DRIVERIMAGEPATH = 3,
	D3DDDI_QUERYREGISTRY_MAX = 4,
};

/**
 * typedef D3DDDI_QUERYREGISTRY_FLAGS - data of a call
 */
typedef __u32 D3DDDI_QUERYREGISTRY_FLAGS;
#define D3DDDI_QUERYREGISTRY_FLAGS_TranslatePath	0x00000001
#define D3DDDI_QUERYREGISTRY_FLAGS_MutableValue		0x00000002
#define D3DDDI_QUERYREGISTRY_FLAGS_Reserved		0xfffffffc

/**
 * enum _D3DDDI_QUERYREGISTRY_STATUS - data of a call
 */
typedef __u32 D3DDDI_QUERYREGISTRY_STATUS;
enum _D3DDDI_QUERYREGISTRY_STATUS {
	D3DDDI_QUERYREGISTRY_STATUS_SUCCESS = 0,
	D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW = 1,
	D3DDDI_QUERYREGISTRY_STATUS_FAIL = 2,
	D3DDDI_QUERYREGISTRY_STATUS_MAX = 3,
};

/**
 * struct _D3DDDI_QUERYREGISTRY_INFO - data of a call
 * @QueryType: input
 * @QueryFlags: input: TranslatePath 0, MutableValue 1
 * @ValueName: input
 * @ValueType: input: REG_* number
 * @PhysicalAdapterIndex: input
 * @OutputValueSize: bytes written, or needed when Status = BUFFER_OVERFLOW
 * @OutputString: value starts here and runs past the struct
 */
typedef struct _D3DDDI_QUERYREGISTRY_INFO {
	D3DDDI_QUERYREGISTRY_TYPE QueryType;
	D3DDDI_QUERYREGISTRY_FLAGS QueryFlags;
	__u16 ValueName[260];
	__u32 ValueType;
	__u32 PhysicalAdapterIndex;
	__u32 OutputValueSize;
	D3DDDI_QUERYREGISTRY_STATUS Status;
	union {
		__u32 OutputDword;
		__aligned_u64 OutputQword;
		__u16 OutputString[1];
		__u8 OutputBinary[1];
	};
} D3DDDI_QUERYREGISTRY_INFO;

/**
 * struct _D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY - data of a call
 */
typedef struct _D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY {
	__u32 PhysicalAdapterIndex;
	__u32 PnPKeyType;
	__aligned_u64 pDest;
	__aligned_u64 pCchDest;
} D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY;

#endif /* _UAPI_DXG_ADAPTER_NAMES_H */
