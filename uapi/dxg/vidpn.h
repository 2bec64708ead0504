/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Ownership of display sources, and occlusion.
 *
 * hWindow sits in an 8-byte slot of which the low 4 bytes are used.
 */
#ifndef _UAPI_DXG_VIDPN_H
#define _UAPI_DXG_VIDPN_H

#include "base.h"

/**
 * enum _D3DKMT_VIDPNSOURCEOWNER_TYPE - how a display source is owned
 */
typedef __u32 D3DKMT_VIDPNSOURCEOWNER_TYPE;
enum _D3DKMT_VIDPNSOURCEOWNER_TYPE {
	D3DKMT_VIDPNSOURCEOWNER_UNOWNED = 0,
	D3DKMT_VIDPNSOURCEOWNER_SHARED = 1,
	D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVE = 2,
	D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVEGDI = 3,
	D3DKMT_VIDPNSOURCEOWNER_EMULATED = 4
};

/**
 * struct _D3DKMT_SETVIDPNSOURCEOWNER - take or release display sources
 * @hDevice: [in] device
 * @pType: [in] pointer to D3DKMT_VIDPNSOURCEOWNER_TYPE[], one per source
 * @pVidPnSourceId: [in] pointer to __u32[]
 * @VidPnSourceCount: [in] entries of the arrays; 0 releases every source of
 *	the device
 */
typedef struct _D3DKMT_SETVIDPNSOURCEOWNER {
	D3DKMT_HANDLE hDevice;
	__u32 _pad0;
	__aligned_u64 pType;
	__aligned_u64 pVidPnSourceId;
	__u32 VidPnSourceCount;
	__u32 _pad1;
} D3DKMT_SETVIDPNSOURCEOWNER;

/**
 * typedef D3DKMT_VIDPNSOURCEOWNER_FLAGS - how to own display sources
 */
typedef __u32 D3DKMT_VIDPNSOURCEOWNER_FLAGS;
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_AllowOutputDuplication	0x00000001
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_DisableDWMVirtualMode	0x00000002
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_UseNtHandles		0x00000004
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_Reserved			0xfffffff8

/**
 * struct _D3DKMT_SETVIDPNSOURCEOWNER1 - take or release display sources, with
 *	flags
 * @Version0: [in] the form without flags
 * @Flags: [in] mask constants of the type
 */
typedef struct _D3DKMT_SETVIDPNSOURCEOWNER1 {
	D3DKMT_SETVIDPNSOURCEOWNER Version0;
	D3DKMT_VIDPNSOURCEOWNER_FLAGS Flags;
	__u32 _pad0;
} D3DKMT_SETVIDPNSOURCEOWNER1;

/**
 * struct _D3DKMT_PTR_TYPE - an 8-byte handle
 */
typedef struct _D3DKMT_PTR_TYPE {
	__aligned_u64 Ptr;
} D3DKMT_PTR_TYPE;

/**
 * struct _D3DKMT_SETVIDPNSOURCEOWNER2 - take or release display sources, with
 *	NT handles
 * @Version1: [in] the form with flags
 * @pVidPnSourceNtHandles: [in] pointer to D3DKMT_PTR_TYPE[]
 */
typedef struct _D3DKMT_SETVIDPNSOURCEOWNER2 {
	D3DKMT_SETVIDPNSOURCEOWNER1 Version1;
	__aligned_u64 pVidPnSourceNtHandles;
} D3DKMT_SETVIDPNSOURCEOWNER2;

/**
 * struct _D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP - ask whether a source is owned
 *	exclusively
 * @hAdapter: [in] adapter
 * @VidPnSourceId: [in] display source
 */
typedef struct _D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP {
	D3DKMT_HANDLE hAdapter;
	__u32 VidPnSourceId;
} D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP;

/**
 * struct _D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP - ask which source a process
 *	owns
 * @hProcess: [in] NT handle
 * @hWindow: [in] window
 * @VidPnSourceId: [out] display source
 * @AdapterLuid: [out] LUID of the adapter
 * @OwnerType: [out] how it is owned
 */
typedef struct _D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP {
	__aligned_u64 hProcess;
	__u32 hWindow;
	__u32 _pad0;
	__u32 VidPnSourceId;
	DXG_LUID AdapterLuid;
	D3DKMT_VIDPNSOURCEOWNER_TYPE OwnerType;
} D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP;

/**
 * struct _D3DKMT_CHECKOCCLUSION - ask whether a window is hidden
 * @hWindow: [in] window
 */
typedef struct _D3DKMT_CHECKOCCLUSION {
	__u32 hWindow;
	__u32 _pad0;
} D3DKMT_CHECKOCCLUSION;

#endif /* _UAPI_DXG_VIDPN_H */
