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
 * enum _D3DKMT_VIDPNSOURCEOWNER_TYPE - data of a call
 */
typedef __u32 D3DKMT_VIDPNSOURCEOWNER_TYPE;
enum _D3DKMT_VIDPNSOURCEOWNER_TYPE {
	D3DKMT_VIDPNSOURCEOWNER_UNOWNED = 0,
	D3DKMT_VIDPNSOURCEOWNER_SHARED = 1,
	D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVE = 2,
	D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVEGDI = 3,
	D3DKMT_VIDPNSOURCEOWNER_EMULATED = 4,
};

/**
 * struct _D3DKMT_SETVIDPNSOURCEOWNER - data of a call
 * @hDevice: [in]
 * @pType: [in] pointer to D3DKMT_VIDPNSOURCEOWNER_TYPE[]; one per source
 * @pVidPnSourceId: [in] pointer to __u32[]
 * @VidPnSourceCount: [in] 0 = release every source this device owns
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
 * typedef D3DKMT_VIDPNSOURCEOWNER_FLAGS - data of a call
 */
typedef __u32 D3DKMT_VIDPNSOURCEOWNER_FLAGS;
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_AllowOutputDuplication	0x00000001
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_DisableDWMVirtualMode	0x00000002
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_UseNtHandles		0x00000004
#define D3DKMT_VIDPNSOURCEOWNER_FLAGS_Reserved			0xfffffff8

/**
 * struct _D3DKMT_SETVIDPNSOURCEOWNER1 - data of a call
 * @Version0: [in] the struct above
 * @Flags: [in]
 */
typedef struct _D3DKMT_SETVIDPNSOURCEOWNER1 {
	D3DKMT_SETVIDPNSOURCEOWNER Version0;
	D3DKMT_VIDPNSOURCEOWNER_FLAGS Flags;
	__u32 _pad0;
} D3DKMT_SETVIDPNSOURCEOWNER1;

/**
 * struct _D3DKMT_PTR_TYPE - data of a call
 */
typedef struct _D3DKMT_PTR_TYPE {
	__aligned_u64 Ptr;
} D3DKMT_PTR_TYPE;

/**
 * struct _D3DKMT_SETVIDPNSOURCEOWNER2 - data of a call
 * @Version1: [in] the struct above
 * @pVidPnSourceNtHandles: [in] pointer to D3DKMT_PTR_TYPE[]; 8-byte handles
 */
typedef struct _D3DKMT_SETVIDPNSOURCEOWNER2 {
	D3DKMT_SETVIDPNSOURCEOWNER1 Version1;
	__aligned_u64 pVidPnSourceNtHandles;
} D3DKMT_SETVIDPNSOURCEOWNER2;

/**
 * struct _D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP - data of a call
 * @hAdapter: [in]
 * @VidPnSourceId: [in]
 */
typedef struct _D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP {
	D3DKMT_HANDLE hAdapter;
	__u32 VidPnSourceId;
} D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP;

/**
 * struct _D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP - data of a call
 * @hProcess: [in] NT handle
 * @hWindow: [in]
 * @VidPnSourceId: [out]
 * @AdapterLuid: [out]
 * @OwnerType: [out]
 */
typedef struct _D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP {
	__aligned_u64 hProcess;
	__u32 hWindow;
	__u32 _pad0;
	__u32 VidPnSourceId;
	LUID AdapterLuid;
	D3DKMT_VIDPNSOURCEOWNER_TYPE OwnerType;
} D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP;

/**
 * struct _D3DKMT_CHECKOCCLUSION - data of a call
 * @hWindow: [in]
 */
typedef struct _D3DKMT_CHECKOCCLUSION {
	__u32 hWindow;
	__u32 _pad0;
} D3DKMT_CHECKOCCLUSION;

#endif /* _UAPI_DXG_VIDPN_H */
