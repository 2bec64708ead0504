/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Base types, handles and limits of the /dev/dxg interface.
 *
 * Rules that hold for every struct of these headers:
 *
 *  - little-endian, one layout for 32-bit and 64-bit callers;
 *  - 64-bit members are aligned to 8 bytes, user pointers and NT handles sit
 *    in 64-bit slots;
 *  - all padding is explicit (_pad0, _pad1, ...) and ignored unless a struct
 *    says otherwise;
 *  - flags are plain integers with one mask constant TYPE_Member per bit
 *    field; TYPE_Reserved covers the bits without a meaning;
 *  - in the comments [in] is read and [out] written by the kernel; outputs are
 *    written when the status is a success (>= 0).
 */
#ifndef _UAPI_DXG_BASE_H
#define _UAPI_DXG_BASE_H

#include <linux/types.h>

/*
 * Other headers of the same world. Wine's, Windows' and DirectX-Headers' declare
 * LUID, UNICODE_STRING, STATUS_SUCCESS and more. A file may include both:
 *
 *  - Theirs first: they are recognised by DECLARE_HANDLE, which all of them
 *    define, and their types are used.
 *  - Ours first: the file defines DXG_NO_WINDOWS_TYPES before.
 *
 * In both cases these headers declare none of Windows' types. They define
 * those of the STATUS_ and OBJ_ constants that are no macros yet.
 *
 * A d3dkmthk.h of the WDK or of Wine declares the same D3DKMT types: next to
 * it, or with DXG_NO_D3DKMT, dxg.h and opendxg.h declare the additions only.
 */
#if !defined(DXG_NO_WINDOWS_TYPES) && !defined(DECLARE_HANDLE)
#define DXG_WINDOWS_TYPES
#endif
#if defined(__WINE_D3DKMTHK_H) || defined(_D3DKMTHK_H_)
#define DXG_NO_D3DKMT
#endif

#ifndef __aligned_s64
#define __aligned_s64 __s64 __attribute__((aligned(8)))
#endif

#ifndef DXG_NO_D3DKMT
/**
 * typedef D3DKMT_HANDLE - name of an object
 *
 * A local handle is (index << 6) | 0x40000000 and means something in one
 * process only. A global handle has 2 in its low six bits; it is a name and
 * holds no reference. 0 is never a handle.
 */
typedef __u32 D3DKMT_HANDLE;

/* Low bits that tell a global handle from a local one. */
#define D3DKMT_GDI_STYLE_HANDLE_DECORATION		2

/** typedef D3DGPU_VIRTUAL_ADDRESS - address in a GPU address space */
typedef __u64 __attribute__((aligned(8))) D3DGPU_VIRTUAL_ADDRESS;

/*
 * DXG_LUID is the type of the system-wide name of an adapter: LUID, or struct
 * dxg_luid where LUID belongs to a header that comes later.
 */
#ifdef DXG_WINDOWS_TYPES
/**
 * struct _LUID - system-wide name of an adapter
 * @LowPart: low 32 bits
 * @HighPart: high 32 bits, signed
 */
typedef struct _LUID {
	__u32 LowPart;
	__s32 HighPart;
} LUID;
#define DXG_LUID LUID
#elif defined(DECLARE_HANDLE)
#define DXG_LUID LUID
#elif !defined(DXG_LUID)
struct dxg_luid {
	__u32 LowPart;
	__s32 HighPart;
};
#define DXG_LUID struct dxg_luid
#endif

/* Limits of the arrays that lie inside argument structs. */
#define D3DDDI_MAX_BROADCAST_CONTEXT			64
#define D3DDDI_MAX_OBJECT_WAITED_ON			32
#define D3DDDI_MAX_OBJECT_SIGNALED			32
#define D3DDDI_MAX_WRITTEN_PRIMARIES			16
#define MAX_ENUM_ADAPTERS				16
#define D3DKMT_MAX_OBJECTS_PER_HANDLE			3
#define D3DKMT_MAX_PATH					260
#define DXGK_MAX_METADATA_NAME_LENGTH			32
#define DXGK_MAX_GPUVERSION_NAME_LENGTH			32

/* Interface version whose layouts these headers carry (WDDM 3.0). */
#define DXGKDDI_INTERFACE_VERSION_WDDM3_0		0xf003
#define DXGKDDI_INTERFACE_VERSION_WDDM3_1		0x10004
#define DXGKDDI_INTERFACE_VERSION_WDDM3_2		0x11007
#endif /* DXG_NO_D3DKMT */

#endif /* _UAPI_DXG_BASE_H */
