/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Additions of opendxg to the /dev/dxg contract: ioctls 0x80 and up.
 *
 * Members are __u32, __u64, __s32 and arrays of them; padding is explicit;
 * members called reserved, and flag bits without a meaning, must be 0 or the
 * call fails with STATUS_INVALID_PARAMETER. Numbers and sizes once published
 * stay.
 */
#ifndef _UAPI_DXG_H
#define _UAPI_DXG_H

#include "d3dkmthk.h"

/**
 * struct opendxg_exec - run another call and get its exact NTSTATUS
 * @nr: [in] number of the call: a legacy number or an addition other than
 *	DXG_NR_EXEC
 * @size: [in] size of the argument struct of that call
 * @arg: [in] address of the argument struct
 * @ntstatus: [out] the NTSTATUS of the call, all 32 bits
 * @reserved: [in] 0
 *
 * A plain ioctl can only return an errno, which does not tell all statuses
 * apart. This one returns 0 whenever the call ran, successfully or not, and
 * stores its status in @ntstatus; STATUS_ACCESS_VIOLATION means that the
 * struct at @arg is not accessible.
 *
 * A negative return means that no call ran: ENOTTY for an unknown @nr, a wrong
 * @size or a descriptor of another process, EINVAL for @reserved not 0 or for
 * nesting, EFAULT when this struct is not accessible, EINTR when a wait was
 * interrupted (nothing was consumed).
 */
struct opendxg_exec {
	__u32 nr;
	__u32 size;
	__aligned_u64 arg;
	__s32 ntstatus;
	__u32 reserved;
};

/**
 * struct opendxg_version - what this kernel offers
 * @version: [out] OPENDXG_VERSION of the kernel
 * @reserved: [in] 0
 * @implemented: [out] bit (nr & 63) of word nr / 64 is set for each number the
 *	kernel implements, legacy numbers included
 */
struct opendxg_version {
	__u32 version;
	__u32 reserved;
	__aligned_u64 implemented[4];
};

/* Version of the additions in this header. */
#define OPENDXG_VERSION					1

/**
 * struct opendxg_fence_point - make a descriptor that polls readable at a value
 * @sync_object: [in] local handle of a monitored fence
 * @flags: [in] 0
 * @value: [in] fence value to wait for
 * @fd: [out] new file descriptor, close-on-exec
 * @reserved: [in] 0
 *
 * The descriptor becomes readable for poll once the fence reaches @value and
 * stays so, even if the fence is rewound later. It keeps no local handle
 * alive and can be passed to another process.
 */
struct opendxg_fence_point {
	__u32 sync_object;
	__u32 flags;
	__aligned_u64 value;
	__s32 fd;
	__u32 reserved;
};

/**
 * enum dxg_ext_nr - numbers of the additions
 * @DXG_NR_EXEC: struct opendxg_exec
 * @DXG_NR_VERSION: struct opendxg_version
 * @DXG_NR_NOP: no argument, does nothing; the cost of a call
 * @DXG_NR_OPENSYNCOBJECTFROMNTHANDLE: D3DKMT_OPENSYNCOBJECTFROMNTHANDLE, which
 *	names no device
 * @DXG_NR_FENCE_POINT: struct opendxg_fence_point
 *
 * 0x4c to 0x7f stay free for the legacy range.
 */
enum dxg_ext_nr {
	DXG_NR_EXEC = 0x80,
	DXG_NR_VERSION = 0x81,
	DXG_NR_NOP = 0x8f,
	DXG_NR_OPENSYNCOBJECTFROMNTHANDLE = 0xa2,
	DXG_NR_FENCE_POINT = 0xb8,
};

/** enum dxg_ext_ioctl - ioctl codes of the additions */
enum dxg_ext_ioctl {
	DXG_IOCTL_EXEC =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_EXEC, struct opendxg_exec),
	DXG_IOCTL_VERSION =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_VERSION, struct opendxg_version),
	DXG_IOCTL_NOP =
		_IOC(_IOC_READ | _IOC_WRITE, DXG_IOCTL_TYPE, DXG_NR_NOP, 0),
	DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENSYNCOBJECTFROMNTHANDLE,
		      D3DKMT_OPENSYNCOBJECTFROMNTHANDLE),
	DXG_IOCTL_FENCE_POINT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_FENCE_POINT,
		      struct opendxg_fence_point),
};

#endif /* _UAPI_DXG_H */
