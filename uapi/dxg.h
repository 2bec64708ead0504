/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Additions of opendxg to the /dev/dxg contract: ioctls 0x81 and up.
 *
 * Members are __u32, __u64, __s32 and arrays of them; padding is explicit;
 * members called reserved, and flag bits without a meaning, must be 0 or the
 * call fails with STATUS_INVALID_PARAMETER. Numbers and sizes once published
 * stay.
 */
#ifndef _UAPI_DXG_H
#define _UAPI_DXG_H

#include "dxg/base.h"
#include "dxg/status.h"
#ifndef DXG_NO_D3DKMT
#include "dxg/d3dkmthk.h"
#endif
#include "dxg/info.h"
#include "dxg/object.h"

/**
 * DXG_EXACT - the code of the same call that returns its exact NTSTATUS
 * @code: a DXG_IOCTL_ code, of a legacy call or of an addition
 *
 * A plain ioctl can only return an errno, which does not tell all statuses
 * apart. With this code the ioctl does the same and returns the NTSTATUS
 * itself, all 32 bits of it: the int that ioctl() returns is the status, in
 * 32-bit programs, too. No NTSTATUS is what C libraries take for an errno.
 *
 * A result of -1 means that no call ran, and errno says why: ENOTTY for an
 * unknown number, a wrong size or a descriptor of another process, EINTR when a
 * wait was interrupted (nothing was consumed). Other results below 0 are
 * statuses.
 */
#define DXG_EXACT(code) ((code) | (DXG_IOCTL_TYPE ^ DXG_IOCTL_TYPE_EXACT) << 8)

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
#define OPENDXG_VERSION					2

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
 * struct opendxg_fence_stream - make a descriptor that reads the values of a
 *	fence
 * @sync_object: [in] local handle of a monitored fence
 * @flags: [in] 0
 * @value: [in] the value that counts as read
 * @fd: [out] new file descriptor, close-on-exec
 * @reserved: [in] 0
 *
 * The descriptor is readable while CurrentValue is another than the value that
 * was read last. A read of at least 8 bytes returns CurrentValue as a __u64;
 * changes between two reads coalesce. A change wakes pollers once, then not
 * again until they have read or polled. A read waits while nothing has changed,
 * or fails with EAGAIN if the descriptor has O_NONBLOCK. When nobody is left
 * who could signal the fence, the descriptor hangs up and a read returns 0
 * bytes. It keeps no local handle alive and can be passed to another process;
 * all who have it read from one stream.
 */
struct opendxg_fence_stream {
	__u32 sync_object;
	__u32 flags;
	__aligned_u64 value;
	__s32 fd;
	__u32 reserved;
};

/* Kinds of struct opendxg_memory_notice. */
#define OPENDXG_NOTICE_TRIM	1
#define OPENDXG_NOTICE_BUDGET	2
#define OPENDXG_NOTICE_PAGING_LOG	3

/* Bits of a record of OPENDXG_NOTICE_TRIM that are not bytes. */
#define OPENDXG_TRIM_PERIODIC	0x1
#define OPENDXG_TRIM_RESTART	0x2
#define OPENDXG_TRIM_TO_BUDGET	0x4
#define OPENDXG_TRIM_FLAGS	0xfff

/**
 * struct opendxg_memory_notice - make a descriptor that tells about memory
 * @adapter_luid_low: [in] adapter of the device, or 0 in both halves
 * @adapter_luid_high: [in] its other half
 * @device: [in] device
 * @kind: [in] OPENDXG_NOTICE_TRIM, _BUDGET or _PAGING_LOG
 * @fd: [out] new file descriptor, close-on-exec
 * @reserved: [in] 0
 *
 * Of the first two kinds, the descriptor is readable while there is something
 * that was not told. A read of at least 8 bytes returns a record as a __u64; what
 * was not read is replaced by what comes later. A read waits while there is
 * nothing, or fails with EAGAIN if the descriptor has O_NONBLOCK.
 *
 * Of OPENDXG_NOTICE_TRIM, a record has OPENDXG_TRIM_TO_BUDGET with the bytes that
 * the process uses above its budgets, whole pages, when that has changed; at most
 * every 10 ms. It has OPENDXG_TRIM_RESTART when memory of the adapter has become
 * short, and OPENDXG_TRIM_PERIODIC every 10 s while it is. Of
 * OPENDXG_NOTICE_BUDGET, a record is the budget of the process in local memory,
 * or in the rest where the adapter has none, when it has changed.
 *
 * When the process has no device on the adapter any more, or the adapter is
 * gone, the descriptor hangs up and a read returns 0 bytes.
 *
 * Of OPENDXG_NOTICE_PAGING_LOG, a read returns whole lines of text, as many as
 * fit: what the memory manager has done for the process since the call, in the
 * form of the operation log in debugfs. It returns 0 bytes if there is nothing
 * now, and fails with EINVAL if the next line does not fit; 4096 bytes are
 * enough. The last 1024 records are kept. A line "log lost=N" comes in the place
 * of N that are not. When the process has no device on the adapter any more,
 * nothing is added.
 *
 * Each descriptor counts as a wait for one value.
 */
struct opendxg_memory_notice {
	__u32 adapter_luid_low;
	__s32 adapter_luid_high;
	__u32 device;
	__u32 kind;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct opendxg_signal_on_event - signal a fence when an eventfd is signalled
 * @sync_object: [in] local handle of a monitored fence
 * @flags: [in] 0 or OPENDXG_SIGNAL_ALLOW_REWIND
 * @value: [in] value to signal
 * @event: [in] file descriptor of an eventfd, not 0
 *
 * When the counter of the eventfd is not 0 the fence is signalled, once, as by
 * SignalSynchronizationObjectFromCpu: before the return if that is so already.
 * The counter is left as it is. Rights are checked by the call. A value below
 * CurrentValue is refused when the event comes, unless
 * OPENDXG_SIGNAL_ALLOW_REWIND is set; fdinfo of the device counts these.
 *
 * This ends when the fence was signalled, when the fence or the calling process
 * ends, or when the last descriptor of the eventfd is closed. It does not keep
 * the fence alive, and counts as a wait for one value.
 */
struct opendxg_signal_on_event {
	__u32 sync_object;
	__u32 flags;
	__aligned_u64 value;
	__aligned_u64 event;
};

#define OPENDXG_SIGNAL_ALLOW_REWIND			0x1

/**
 * struct opendxg_signal_nt - signal the fence of an NT handle, on its descriptor
 * @value: [in] new CurrentValue
 * @flags: [in] 0 or OPENDXG_SIGNAL_ALLOW_REWIND
 * @reserved: [in] 0
 *
 * As SignalSynchronizationObjectFromCpu. STATUS_ACCESS_DENIED without the right
 * to signal; STATUS_INVALID_PARAMETER if @value is below CurrentValue and
 * OPENDXG_SIGNAL_ALLOW_REWIND is not set, or if the NT handle is no monitored or
 * native fence.
 */
struct opendxg_signal_nt {
	__aligned_u64 value;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct opendxg_wait_nt - wait for the fence of an NT handle, on its descriptor
 * @value: [in] fence value to wait for
 * @deadline: [in] nanoseconds of CLOCK_MONOTONIC, or OPENDXG_NO_DEADLINE. One
 *	that has passed, as 0 has, only tests
 * @flags: [in] 0 or OPENDXG_WAIT_REALTIME, if @deadline is of CLOCK_REALTIME
 * @reserved: [in] 0
 *
 * As WaitForSynchronizationObjectFromCpu, in the call. STATUS_TIMEOUT, a result
 * above 0, at the deadline; STATUS_ACCESS_DENIED without the right to wait;
 * STATUS_INVALID_PARAMETER if the NT handle is no monitored or native fence.
 */
struct opendxg_wait_nt {
	__aligned_u64 value;
	__aligned_u64 deadline;
	__u32 flags;
	__u32 reserved;
};

#define OPENDXG_NO_DEADLINE				0xffffffffffffffffULL
#define OPENDXG_WAIT_REALTIME				0x1

/**
 * struct opendxg_value_nt - the value of the fence of an NT handle, on its
 *	descriptor
 * @value: [out] CurrentValue
 *
 * Needs no right. STATUS_INVALID_PARAMETER if the NT handle is no monitored or
 * native fence.
 */
struct opendxg_value_nt {
	__aligned_u64 value;
};

#ifndef DXG_NO_D3DKMT
/**
 * struct opendxg_share_objects - ShareObjects with the mode of the name
 * @share: [in] as for DXG_NR_SHAREOBJECTS, which gives names the mode 0600; its
 *	SecurityDescriptor is only checked for its revision
 * @mode: [in] who may open the name: some of 0666, as for a file
 * @reserved: [in] 0
 */
struct opendxg_share_objects {
	D3DKMT_SHAREOBJECTS share;
	__u32 mode;
	__u32 reserved;
};
#endif

/**
 * struct opendxg_open_resource - QueryResourceInfo and OpenResource in one call
 * @device: [in] device
 * @handle_type: [in] OPENDXG_HANDLE_GLOBAL or OPENDXG_HANDLE_NT
 * @handle: [in] global handle, or descriptor of an NT handle
 * @allocations: [in] address of a D3DDDI_OPENALLOCATIONINFO2[] to fill, or 0
 * @runtime_data: [in] address of a buffer for the private runtime data, or 0
 * @driver_data: [in] address of a buffer for the private driver data of the
 *	resource, or 0
 * @total_driver_data: [in] address of a buffer for the private driver data of
 *	all allocations, back to back, or 0
 * @keyed_mutex_data: [in] address of private data for the keyed mutex, which it
 *	gets if it has none, or 0
 * @allocation_count: [in] entries of the array; [out] allocations
 * @runtime_data_size: [in] bytes of the buffer; [out] bytes of the data
 * @driver_data_size: [in] bytes of the buffer; [out] bytes of the data
 * @total_driver_data_size: [in] bytes of the buffer; [out] bytes of the data
 * @keyed_mutex_data_size: [in] bytes of the data for the keyed mutex
 * @flags: [in] 0
 * @resource: [out] resource
 * @keyed_mutex: [out] 0 when the handle carries none
 * @sync_object: [out] 0 when the handle carries none
 * @reserved: [in] 0
 *
 * Handles are made in the order of OpenResourceFromNtHandle, and all is as it is
 * there and for OpenResource, but for the sizes: any room that is large enough
 * will do. STATUS_BUFFER_TOO_SMALL: nothing was opened, and only the four sizes
 * were written. Ask again, since others may change the runtime data meanwhile.
 */
struct opendxg_open_resource {
	__u32 device;
	__u32 handle_type;
	__aligned_u64 handle;
	__aligned_u64 allocations;
	__aligned_u64 runtime_data;
	__aligned_u64 driver_data;
	__aligned_u64 total_driver_data;
	__aligned_u64 keyed_mutex_data;
	__u32 allocation_count;
	__u32 runtime_data_size;
	__u32 driver_data_size;
	__u32 total_driver_data_size;
	__u32 keyed_mutex_data_size;
	__u32 flags;
	__u32 resource;
	__u32 keyed_mutex;
	__u32 sync_object;
	__u32 reserved;
};

/**
 * struct opendxg_allocation_data - private driver data of an allocation on the
 *	software adapter
 * @magic: OPENDXG_ALLOCATION_MAGIC
 * @version: 1
 * @size: bytes, a multiple of 4096
 * @width: elements of a row, for those who open the resource
 * @pitch: bytes of a row, for those who open the resource
 * @height: rows, for those who open the resource
 * @alignment: 0 or a power of two up to 65536
 * @flags: OPENDXG_ALLOCATION_LOCAL for memory of the adapter instead of system
 *	memory, OPENDXG_ALLOCATION_PHYSICAL for memory that is one range to
 *	physical addresses, OPENDXG_ALLOCATION_NOTIFY_RESIDENCY together with that
 *	if the driver is told where it is
 * @reserved: 0
 *
 * Clients of the software adapter pass it to CreateAllocation. The kernel makes
 * it for standard allocations: linear, @width and @pitch the size, @height 1.
 */
struct opendxg_allocation_data {
	__u32 magic;
	__u32 version;
	__aligned_u64 size;
	__aligned_u64 width;
	__aligned_u64 pitch;
	__u32 height;
	__u32 alignment;
	__u32 flags;
	__u32 reserved;
};

#define OPENDXG_ALLOCATION_MAGIC			0x41475844

#define OPENDXG_ALLOCATION_LOCAL			0x1
#define OPENDXG_ALLOCATION_PHYSICAL			0x2
#define OPENDXG_ALLOCATION_NOTIFY_RESIDENCY		0x4

/**
 * enum dxg_ext_nr - numbers of the additions
 * @DXG_NR_VERSION: struct opendxg_version
 * @DXG_NR_QUERY_OBJECT: struct opendxg_query_object; also on an NT handle
 * @DXG_NR_NOP: no argument, does nothing; the cost of a call
 * @DXG_NR_CREATEKEYEDMUTEX: D3DKMT_CREATEKEYEDMUTEX
 * @DXG_NR_CREATEKEYEDMUTEX2: D3DKMT_CREATEKEYEDMUTEX2
 * @DXG_NR_OPENKEYEDMUTEX: D3DKMT_OPENKEYEDMUTEX
 * @DXG_NR_OPENKEYEDMUTEX2: D3DKMT_OPENKEYEDMUTEX2
 * @DXG_NR_OPENKEYEDMUTEXFROMNTHANDLE: D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE
 * @DXG_NR_DESTROYKEYEDMUTEX: D3DKMT_DESTROYKEYEDMUTEX
 * @DXG_NR_ACQUIREKEYEDMUTEX: D3DKMT_ACQUIREKEYEDMUTEX
 * @DXG_NR_ACQUIREKEYEDMUTEX2: D3DKMT_ACQUIREKEYEDMUTEX2
 * @DXG_NR_RELEASEKEYEDMUTEX: D3DKMT_RELEASEKEYEDMUTEX
 * @DXG_NR_RELEASEKEYEDMUTEX2: D3DKMT_RELEASEKEYEDMUTEX2
 * @DXG_NR_OPENNTHANDLEFROMNAME: D3DKMT_OPENNTHANDLEFROMNAME
 * @DXG_NR_OPENSYNCOBJECTNTHANDLEFROMNAME: D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME
 * @DXG_NR_OPENSYNCOBJECTFROMNTHANDLE: D3DKMT_OPENSYNCOBJECTFROMNTHANDLE, which
 *	names no device
 * @DXG_NR_DUP_NT: struct opendxg_dup_nt; also on an NT handle
 * @DXG_NR_SET_INFO: struct opendxg_set_info; also on an NT handle
 * @DXG_NR_GET_INFO: struct opendxg_get_info; also on an NT handle
 * @DXG_NR_ENUM_INFO: struct opendxg_enum_info; also on an NT handle
 * @DXG_NR_DELETE_INFO: struct opendxg_delete_info; also on an NT handle
 * @DXG_NR_OPEN_WEAK: struct opendxg_open_weak; also on an NT handle
 * @DXG_NR_RESOLVE_WEAK: struct opendxg_resolve_weak
 * @DXG_NR_WATCH: struct opendxg_watch; also on an NT handle
 * @DXG_NR_WATCH_STATE: struct opendxg_watch_state; only on a watch
 * @DXG_NR_DUP_LOCAL: struct opendxg_dup_local
 * @DXG_NR_GET_CONTAINER: struct opendxg_get_container
 * @DXG_NR_EXPORT_DMABUF: struct opendxg_export_dmabuf
 * @DXG_NR_SHARE_OBJECTS: struct opendxg_share_objects
 * @DXG_NR_GETNATIVEFENCELOGDETAIL: D3DKMT_GETNATIVEFENCELOGDETAIL
 * @DXG_NR_FENCE_POINT: struct opendxg_fence_point
 * @DXG_NR_FENCE_STREAM: struct opendxg_fence_stream
 * @DXG_NR_SIGNAL_ON_EVENT: struct opendxg_signal_on_event
 * @DXG_NR_SIGNAL_NT: struct opendxg_signal_nt; only on an NT handle
 * @DXG_NR_WAIT_NT: struct opendxg_wait_nt; only on an NT handle
 * @DXG_NR_VALUE_NT: struct opendxg_value_nt; only on an NT handle
 * @DXG_NR_MEMORY_NOTICE: struct opendxg_memory_notice
 * @DXG_NR_CHECKSHAREDRESOURCEACCESS: D3DKMT_CHECKSHAREDRESOURCEACCESS
 * @DXG_NR_CONFIGURESHAREDRESOURCE: D3DKMT_CONFIGURESHAREDRESOURCE
 * @DXG_NR_GETRUNTIMEDATA: D3DKMT_GETRUNTIMEDATA
 * @DXG_NR_RECLAIMALLOCATIONS: D3DKMT_RECLAIMALLOCATIONS
 * @DXG_NR_QUERYPROCESSOFFERINFO: D3DKMT_QUERYPROCESSOFFERINFO
 * @DXG_NR_TRIMPROCESSCOMMITMENT: D3DKMT_TRIMPROCESSCOMMITMENT
 * @DXG_NR_OPEN_RESOURCE: struct opendxg_open_resource
 * @DXG_NR_CREATE_DOORBELL: D3DKMT_CREATE_DOORBELL
 * @DXG_NR_CONNECT_DOORBELL: D3DKMT_CONNECT_DOORBELL
 * @DXG_NR_DESTROY_DOORBELL: D3DKMT_DESTROY_DOORBELL
 * @DXG_NR_NOTIFY_WORK_SUBMISSION: D3DKMT_NOTIFY_WORK_SUBMISSION
 *
 * "Also on an NT handle" means that the ioctl may be made on the descriptor of
 * an NT handle, by any process and without opening the device; DXG_EXACT()
 * works there too. What is "only" there is no call of the device.
 *
 * 0x4c to 0x7f stay free for the legacy range.
 */
enum dxg_ext_nr {
	DXG_NR_VERSION = 0x81,
	DXG_NR_QUERY_OBJECT = 0x82,
	DXG_NR_NOP = 0x8f,
	DXG_NR_CREATEKEYEDMUTEX = 0x90,
	DXG_NR_CREATEKEYEDMUTEX2 = 0x91,
	DXG_NR_OPENKEYEDMUTEX = 0x92,
	DXG_NR_OPENKEYEDMUTEX2 = 0x93,
	DXG_NR_OPENKEYEDMUTEXFROMNTHANDLE = 0x94,
	DXG_NR_DESTROYKEYEDMUTEX = 0x95,
	DXG_NR_ACQUIREKEYEDMUTEX = 0x96,
	DXG_NR_ACQUIREKEYEDMUTEX2 = 0x97,
	DXG_NR_RELEASEKEYEDMUTEX = 0x98,
	DXG_NR_RELEASEKEYEDMUTEX2 = 0x99,
	DXG_NR_OPENNTHANDLEFROMNAME = 0xa0,
	DXG_NR_OPENSYNCOBJECTNTHANDLEFROMNAME = 0xa1,
	DXG_NR_OPENSYNCOBJECTFROMNTHANDLE = 0xa2,
	DXG_NR_DUP_NT = 0xa3,
	DXG_NR_SET_INFO = 0xa4,
	DXG_NR_GET_INFO = 0xa5,
	DXG_NR_ENUM_INFO = 0xa6,
	DXG_NR_DELETE_INFO = 0xa7,
	DXG_NR_OPEN_WEAK = 0xa8,
	DXG_NR_RESOLVE_WEAK = 0xa9,
	DXG_NR_WATCH = 0xaa,
	DXG_NR_WATCH_STATE = 0xab,
	DXG_NR_DUP_LOCAL = 0xac,
	DXG_NR_GET_CONTAINER = 0xad,
	DXG_NR_EXPORT_DMABUF = 0xae,
	DXG_NR_SHARE_OBJECTS = 0xaf,
	DXG_NR_GETNATIVEFENCELOGDETAIL = 0xb0,
	DXG_NR_FENCE_POINT = 0xb8,
	DXG_NR_FENCE_STREAM = 0xb9,
	DXG_NR_SIGNAL_ON_EVENT = 0xba,
	DXG_NR_SIGNAL_NT = 0xbb,
	DXG_NR_WAIT_NT = 0xbc,
	DXG_NR_VALUE_NT = 0xbd,
	DXG_NR_MEMORY_NOTICE = 0xc0,
	DXG_NR_CHECKSHAREDRESOURCEACCESS = 0xc8,
	DXG_NR_CONFIGURESHAREDRESOURCE = 0xc9,
	DXG_NR_GETRUNTIMEDATA = 0xca,
	DXG_NR_RECLAIMALLOCATIONS = 0xcb,
	DXG_NR_QUERYPROCESSOFFERINFO = 0xcc,
	DXG_NR_TRIMPROCESSCOMMITMENT = 0xcd,
	DXG_NR_OPEN_RESOURCE = 0xce,
	DXG_NR_CREATE_DOORBELL = 0xe0,
	DXG_NR_CONNECT_DOORBELL = 0xe1,
	DXG_NR_DESTROY_DOORBELL = 0xe2,
	DXG_NR_NOTIFY_WORK_SUBMISSION = 0xe3
};

#ifndef DXG_NO_D3DKMT
/** enum dxg_ext_ioctl - ioctl codes of the additions */
__extension__ enum dxg_ext_ioctl {
	DXG_IOCTL_VERSION =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_VERSION, struct opendxg_version),
	DXG_IOCTL_QUERY_OBJECT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_QUERY_OBJECT,
		      struct opendxg_query_object),
	DXG_IOCTL_NOP =
		_IOC(_IOC_READ | _IOC_WRITE, DXG_IOCTL_TYPE, DXG_NR_NOP, 0),
	DXG_IOCTL_CREATEKEYEDMUTEX =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_CREATEKEYEDMUTEX,
		      D3DKMT_CREATEKEYEDMUTEX),
	DXG_IOCTL_CREATEKEYEDMUTEX2 =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_CREATEKEYEDMUTEX2,
		      D3DKMT_CREATEKEYEDMUTEX2),
	DXG_IOCTL_OPENKEYEDMUTEX =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENKEYEDMUTEX,
		      D3DKMT_OPENKEYEDMUTEX),
	DXG_IOCTL_OPENKEYEDMUTEX2 =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENKEYEDMUTEX2,
		      D3DKMT_OPENKEYEDMUTEX2),
	DXG_IOCTL_OPENKEYEDMUTEXFROMNTHANDLE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENKEYEDMUTEXFROMNTHANDLE,
		      D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE),
	DXG_IOCTL_DESTROYKEYEDMUTEX =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_DESTROYKEYEDMUTEX,
		      D3DKMT_DESTROYKEYEDMUTEX),
	DXG_IOCTL_ACQUIREKEYEDMUTEX =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_ACQUIREKEYEDMUTEX,
		      D3DKMT_ACQUIREKEYEDMUTEX),
	DXG_IOCTL_ACQUIREKEYEDMUTEX2 =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_ACQUIREKEYEDMUTEX2,
		      D3DKMT_ACQUIREKEYEDMUTEX2),
	DXG_IOCTL_RELEASEKEYEDMUTEX =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_RELEASEKEYEDMUTEX,
		      D3DKMT_RELEASEKEYEDMUTEX),
	DXG_IOCTL_RELEASEKEYEDMUTEX2 =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_RELEASEKEYEDMUTEX2,
		      D3DKMT_RELEASEKEYEDMUTEX2),
	DXG_IOCTL_OPENNTHANDLEFROMNAME =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENNTHANDLEFROMNAME,
		      D3DKMT_OPENNTHANDLEFROMNAME),
	DXG_IOCTL_OPENSYNCOBJECTNTHANDLEFROMNAME =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENSYNCOBJECTNTHANDLEFROMNAME,
		      D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME),
	DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPENSYNCOBJECTFROMNTHANDLE,
		      D3DKMT_OPENSYNCOBJECTFROMNTHANDLE),
	DXG_IOCTL_DUP_NT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_DUP_NT, struct opendxg_dup_nt),
	DXG_IOCTL_SET_INFO =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_SET_INFO, struct opendxg_set_info),
	DXG_IOCTL_GET_INFO =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_GET_INFO, struct opendxg_get_info),
	DXG_IOCTL_ENUM_INFO =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_ENUM_INFO,
		      struct opendxg_enum_info),
	DXG_IOCTL_DELETE_INFO =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_DELETE_INFO,
		      struct opendxg_delete_info),
	DXG_IOCTL_OPEN_WEAK =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPEN_WEAK,
		      struct opendxg_open_weak),
	DXG_IOCTL_RESOLVE_WEAK =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_RESOLVE_WEAK,
		      struct opendxg_resolve_weak),
	DXG_IOCTL_WATCH =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_WATCH, struct opendxg_watch),
	DXG_IOCTL_WATCH_STATE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_WATCH_STATE,
		      struct opendxg_watch_state),
	DXG_IOCTL_DUP_LOCAL =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_DUP_LOCAL,
		      struct opendxg_dup_local),
	DXG_IOCTL_GET_CONTAINER =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_GET_CONTAINER,
		      struct opendxg_get_container),
	DXG_IOCTL_EXPORT_DMABUF =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_EXPORT_DMABUF,
		      struct opendxg_export_dmabuf),
	DXG_IOCTL_SHARE_OBJECTS =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_SHARE_OBJECTS,
		      struct opendxg_share_objects),
	DXG_IOCTL_GETNATIVEFENCELOGDETAIL =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_GETNATIVEFENCELOGDETAIL,
		      D3DKMT_GETNATIVEFENCELOGDETAIL),
	DXG_IOCTL_FENCE_POINT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_FENCE_POINT,
		      struct opendxg_fence_point),
	DXG_IOCTL_FENCE_STREAM =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_FENCE_STREAM,
		      struct opendxg_fence_stream),
	DXG_IOCTL_SIGNAL_ON_EVENT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_SIGNAL_ON_EVENT,
		      struct opendxg_signal_on_event),
	DXG_IOCTL_SIGNAL_NT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_SIGNAL_NT,
		      struct opendxg_signal_nt),
	DXG_IOCTL_WAIT_NT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_WAIT_NT, struct opendxg_wait_nt),
	DXG_IOCTL_VALUE_NT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_VALUE_NT,
		      struct opendxg_value_nt),
	DXG_IOCTL_MEMORY_NOTICE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_MEMORY_NOTICE,
		      struct opendxg_memory_notice),
	DXG_IOCTL_CHECKSHAREDRESOURCEACCESS =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_CHECKSHAREDRESOURCEACCESS,
		      D3DKMT_CHECKSHAREDRESOURCEACCESS),
	DXG_IOCTL_CONFIGURESHAREDRESOURCE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_CONFIGURESHAREDRESOURCE,
		      D3DKMT_CONFIGURESHAREDRESOURCE),
	DXG_IOCTL_GETRUNTIMEDATA =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_GETRUNTIMEDATA,
		      D3DKMT_GETRUNTIMEDATA),
	DXG_IOCTL_RECLAIMALLOCATIONS =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_RECLAIMALLOCATIONS,
		      D3DKMT_RECLAIMALLOCATIONS),
	DXG_IOCTL_QUERYPROCESSOFFERINFO =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_QUERYPROCESSOFFERINFO,
		      D3DKMT_QUERYPROCESSOFFERINFO),
	DXG_IOCTL_TRIMPROCESSCOMMITMENT =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_TRIMPROCESSCOMMITMENT,
		      D3DKMT_TRIMPROCESSCOMMITMENT),
	DXG_IOCTL_OPEN_RESOURCE =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_OPEN_RESOURCE,
		      struct opendxg_open_resource),
	DXG_IOCTL_CREATE_DOORBELL =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_CREATE_DOORBELL,
		      D3DKMT_CREATE_DOORBELL),
	DXG_IOCTL_CONNECT_DOORBELL =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_CONNECT_DOORBELL,
		      D3DKMT_CONNECT_DOORBELL),
	DXG_IOCTL_DESTROY_DOORBELL =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_DESTROY_DOORBELL,
		      D3DKMT_DESTROY_DOORBELL),
	DXG_IOCTL_NOTIFY_WORK_SUBMISSION =
		_IOWR(DXG_IOCTL_TYPE, DXG_NR_NOTIFY_WORK_SUBMISSION,
		      D3DKMT_NOTIFY_WORK_SUBMISSION)
};
#endif /* DXG_NO_D3DKMT */

#endif /* _UAPI_DXG_H */
