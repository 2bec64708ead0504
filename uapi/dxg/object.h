/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Additions of opendxg: handles, references and watches of all kinds of objects.
 */
#ifndef _UAPI_DXG_OBJECT_H
#define _UAPI_DXG_OBJECT_H

#include "base.h"

/**
 * enum opendxg_handle_type - what the member handle of a call is
 * @OPENDXG_HANDLE_SELF: 0; the call is made on the descriptor of an NT handle
 *	itself and is about its object
 * @OPENDXG_HANDLE_LOCAL: local handle of the calling process
 * @OPENDXG_HANDLE_NT: descriptor of an NT handle
 * @OPENDXG_HANDLE_GLOBAL: global handle, only for DXG_NR_QUERY_OBJECT and
 *	DXG_NR_OPEN_RESOURCE
 * @OPENDXG_HANDLE_WEAK: descriptor of a weak reference, only for
 *	DXG_NR_QUERY_OBJECT
 */
enum opendxg_handle_type {
	OPENDXG_HANDLE_SELF = 0,
	OPENDXG_HANDLE_LOCAL = 1,
	OPENDXG_HANDLE_NT = 2,
	OPENDXG_HANDLE_GLOBAL = 3,
	OPENDXG_HANDLE_WEAK = 4
};

/**
 * enum opendxg_object_type - the object type that a handle has, or would have
 *	as an NT handle
 * @OPENDXG_TYPE_RESOURCE: "DxgkSharedResource"
 * @OPENDXG_TYPE_SYNC_OBJECT: "DxgkSharedSyncObject"
 * @OPENDXG_TYPE_KEYED_MUTEX: "DxgkKeyedMutex", which no NT handle is alone
 */
enum opendxg_object_type {
	OPENDXG_TYPE_RESOURCE = 1,
	OPENDXG_TYPE_SYNC_OBJECT = 2,
	OPENDXG_TYPE_KEYED_MUTEX = 3
};

/**
 * enum opendxg_object_kind - what an object is
 *
 * Synchronisation objects have their D3DDDI_SYNCHRONIZATIONOBJECT_TYPE.
 *
 * @OPENDXG_KIND_RESOURCE: resource
 * @OPENDXG_KIND_ALLOCATION: allocation, in a resource or by itself
 * @OPENDXG_KIND_KEYED_MUTEX: keyed mutex
 */
enum opendxg_object_kind {
	OPENDXG_KIND_RESOURCE = 32,
	OPENDXG_KIND_ALLOCATION = 33,
	OPENDXG_KIND_KEYED_MUTEX = 34
};

/**
 * struct opendxg_query_object - what is behind a handle of any kind
 * @handle: [in] the handle
 * @handle_type: [in] enum opendxg_handle_type
 * @flags: [in] 0
 * @name: [in] address of a buffer for the object name, UTF-16LE, or 0
 * @name_size: [in] bytes of the buffer; [out] bytes of the name, 0 without one
 * @type: [out] enum opendxg_object_type
 * @kind: [out] kind of the object, of the first one of an NT handle for three
 * @member_count: [out] objects behind the handle: 1 or 3
 * @member_kinds: [out] their kinds
 * @access: [out] access mask of the handle
 * @object_id: [out] never used for another object; equal ids: same object. An
 *	allocation has the id of its resource, also if it is standalone
 * @generation: [out] number of changes of the information store
 * @references: [out] strong references to the object or the resource
 * @local_references: [out] those that local handles of the caller hold
 * @creator_uid: [out] effective user id of the creator, as the caller sees it
 * @alive: [out] 0 for a weak reference to a dead object, otherwise 1
 * @adapter_luid_low: [out] LUID of the adapter, 0 for a keyed mutex
 * @adapter_luid_high: [out] LUID of the adapter
 * @allocation_count: [out] allocations of a resource
 * @reserved: [in] 0
 *
 * STATUS_BUFFER_TOO_SMALL: only @name_size was written.
 */
struct opendxg_query_object {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 flags;
	__aligned_u64 name;
	__u32 name_size;
	__u32 type;
	__u32 kind;
	__u32 member_count;
	__u32 member_kinds[3];
	__u32 access;
	__aligned_u64 object_id;
	__aligned_u64 generation;
	__u32 references;
	__u32 local_references;
	__u32 creator_uid;
	__u32 alive;
	__u32 adapter_luid_low;
	__s32 adapter_luid_high;
	__u32 allocation_count;
	__u32 reserved;
};

/**
 * struct opendxg_dup_nt - another NT handle with at most the same access
 * @handle: [in] NT handle
 * @handle_type: [in] OPENDXG_HANDLE_NT or OPENDXG_HANDLE_SELF
 * @access: [in] access wanted; STATUS_ACCESS_DENIED if it is more
 * @flags: [in] OPENDXG_DUP_* mask
 * @reserved: [in] 0
 * @new_handle: [out] new descriptor: another open file description
 */
struct opendxg_dup_nt {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 access;
	__u32 flags;
	__u32 reserved;
	__aligned_u64 new_handle;
};

/* Same access; the member access must be 0. */
#define OPENDXG_DUP_SAME_ACCESS				0x00000001
/* Not close-on-exec, like OBJ_INHERIT. */
#define OPENDXG_DUP_INHERIT				0x00000002

/**
 * struct opendxg_open_weak - a weak reference to an object
 * @handle: [in] local or NT handle
 * @handle_type: [in] enum opendxg_handle_type
 * @flags: [in] 0
 * @fd: [out] new descriptor, close-on-exec. It does not keep the object; poll
 *	reports POLLHUP once the object is dead
 * @reserved: [in] 0
 */
struct opendxg_open_weak {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct opendxg_resolve_weak - a local handle through a weak reference
 * @fd: [in] descriptor of a weak reference
 * @flags: [in] 0
 * @device: [in] device, the parent of the new handle, or 0
 * @handle: [out] new local handle; STATUS_NOT_FOUND if the object is dead
 */
struct opendxg_resolve_weak {
	__s32 fd;
	__u32 flags;
	__u32 device;
	__u32 handle;
};

/**
 * struct opendxg_watch - hear of changes and of the end of an object
 * @handle: [in] local or NT handle
 * @handle_type: [in] enum opendxg_handle_type
 * @events: [in] OPENDXG_WATCH_* mask, not 0
 * @cookie: [in] returned by DXG_NR_WATCH_STATE
 * @event_fd: [in] eventfd that is signalled
 * @flags: [in] 0
 * @fd: [out] new descriptor of the watch, close-on-exec; closing it ends the
 *	watch. It polls like a weak reference
 * @reserved: [in] 0
 */
struct opendxg_watch {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 events;
	__aligned_u64 cookie;
	__s32 event_fd;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

/* The object is dead and resolves nowhere any more. */
#define OPENDXG_WATCH_DESTROY				0x00000001
/* The information store has changed. */
#define OPENDXG_WATCH_CHANGE				0x00000002

/**
 * struct opendxg_watch_state - what a watch has seen; on its own descriptor
 * @cookie: [out] of the watch
 * @object_id: [out] of the object
 * @generation: [out] generation of its store at the last change that was seen
 * @events: [out] events since the last call
 * @reserved: [in] 0
 */
struct opendxg_watch_state {
	__aligned_u64 cookie;
	__aligned_u64 object_id;
	__aligned_u64 generation;
	__u32 events;
	__u32 reserved;
};

/**
 * struct opendxg_dup_local - another local handle of an object, on its own
 * @handle: [in] local handle of a resource, allocation, synchronisation object
 *	or keyed mutex
 * @index: [in] OPENDXG_WHOLE for the object itself, or with a resource the
 *	index of one of its allocations
 * @new_handle: [out] new local handle, with the same device as its parent
 * @reserved: [in] 0
 */
struct opendxg_dup_local {
	__u32 handle;
	__u32 index;
	__u32 new_handle;
	__u32 reserved;
};

#define OPENDXG_WHOLE					0xffffffff

/**
 * struct opendxg_get_container - the resource that an allocation is part of
 * @allocation: [in] local handle
 * @container: [out] new local handle; of the allocation itself if it is not
 *	part of a resource
 */
struct opendxg_get_container {
	__u32 allocation;
	__u32 container;
};

/**
 * struct opendxg_export_dmabuf - a dma-buf of an allocation
 * @allocation: [in] local handle
 * @flags: [in] OPENDXG_EXPORT_READ_ONLY or 0
 * @fd: [out] new descriptor, close-on-exec
 * @reserved: [in] 0
 *
 * A handle that was opened read-only exports read-only.
 */
struct opendxg_export_dmabuf {
	__u32 allocation;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

#define OPENDXG_EXPORT_READ_ONLY			0x00000001

#endif /* _UAPI_DXG_OBJECT_H */
