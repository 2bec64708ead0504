/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Additions of opendxg: the information store of shareable objects.
 */
#ifndef _UAPI_DXG_INFO_H
#define _UAPI_DXG_INFO_H

#include "base.h"

/**
 * struct opendxg_info_item - one entry to store
 * @key: [in] GUID in memory order: whose convention the bytes follow
 * @schema: [in] layout of the bytes within that convention
 * @flags: [in] OPENDXG_INFO_* mask
 * @expected_generation: [in] 0, or the generation that the entry must have
 * @data: [in] address of the bytes
 * @size: [in] number of bytes
 * @fd: [in] descriptor to attach with OPENDXG_INFO_ATTACH_FD, otherwise 0
 */
struct opendxg_info_item {
	__u8 key[16];
	__u32 schema;
	__u32 flags;
	__aligned_u64 expected_generation;
	__aligned_u64 data;
	__u32 size;
	__s32 fd;
};

/* Fail with STATUS_OBJECT_NAME_COLLISION if the entry exists. */
#define OPENDXG_INFO_CREATE_ONLY			0x00000001
/* No later set or delete of the entry. */
#define OPENDXG_INFO_SEALED				0x00000002
/* Detach the file; without this and ATTACH_FD an attached file stays. */
#define OPENDXG_INFO_REMOVE_FD				0x00000004
/* Attach the file behind fd. */
#define OPENDXG_INFO_ATTACH_FD				0x00000008
/* Output only: a file is attached. */
#define OPENDXG_INFO_HAS_FD				0x00000010

/**
 * struct opendxg_set_info - store entries, all of them or none
 * @handle: [in] local or NT handle
 * @handle_type: [in] enum opendxg_handle_type
 * @item_count: [in] 1 to 8
 * @items: [in] address of struct opendxg_info_item[]
 * @generation: [out] new generation; with STATUS_REVISION_MISMATCH the present
 *	generation of the entry that did not match, 0 if it does not exist
 */
struct opendxg_set_info {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 item_count;
	__aligned_u64 items;
	__aligned_u64 generation;
};

/**
 * struct opendxg_get_info - read the entry with the highest schema that the
 *	caller understands
 * @handle: [in] local or NT handle
 * @handle_type: [in] enum opendxg_handle_type
 * @flags: [in] OPENDXG_GET_FD or 0
 * @key: [in] GUID
 * @max_schema: [in] highest schema wanted
 * @schema: [out] schema of the entry; with STATUS_REVISION_MISMATCH the lowest
 *	one that exists
 * @data: [in] address of a buffer
 * @size: [in] its bytes; [out] bytes of the entry, also with
 *	STATUS_BUFFER_TOO_SMALL
 * @writer_uid: [out] effective user id of the writer, as the caller sees it
 * @generation: [out] generation of the object when the entry was set
 * @fd: [out] with OPENDXG_GET_FD a new close-on-exec descriptor of the attached
 *	file; -1 otherwise
 * @entry_flags: [out] OPENDXG_INFO_SEALED, OPENDXG_INFO_HAS_FD
 */
struct opendxg_get_info {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 flags;
	__u8 key[16];
	__u32 max_schema;
	__u32 schema;
	__aligned_u64 data;
	__u32 size;
	__u32 writer_uid;
	__aligned_u64 generation;
	__s32 fd;
	__u32 entry_flags;
};

/* Return the attached file, if there is one. */
#define OPENDXG_GET_FD					0x00000001

/**
 * struct opendxg_info_entry - one line of the list of entries
 * @key: GUID
 * @schema: schema
 * @size: bytes
 * @generation: generation of the object when the entry was set
 * @flags: OPENDXG_INFO_SEALED, OPENDXG_INFO_HAS_FD
 * @writer_uid: effective user id of the writer, as the caller sees it
 */
struct opendxg_info_entry {
	__u8 key[16];
	__u32 schema;
	__u32 size;
	__aligned_u64 generation;
	__u32 flags;
	__u32 writer_uid;
};

/**
 * struct opendxg_enum_info - list the entries at one moment
 * @handle: [in] local or NT handle
 * @handle_type: [in] enum opendxg_handle_type
 * @count: [in] entries the array has room for; [out] entries that exist, also
 *	with STATUS_BUFFER_TOO_SMALL
 * @entries: [in] address of struct opendxg_info_entry[], ordered by key and
 *	schema when filled
 * @generation: [out] generation of the object
 */
struct opendxg_enum_info {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 count;
	__aligned_u64 entries;
	__aligned_u64 generation;
};

/**
 * struct opendxg_delete_info - remove one entry
 * @handle: [in] local or NT handle
 * @handle_type: [in] enum opendxg_handle_type
 * @schema: [in] schema
 * @key: [in] GUID
 * @expected_generation: [in] 0, or the generation that the entry must have
 * @generation: [out] as for struct opendxg_set_info
 */
struct opendxg_delete_info {
	__aligned_u64 handle;
	__u32 handle_type;
	__u32 schema;
	__u8 key[16];
	__aligned_u64 expected_generation;
	__aligned_u64 generation;
};

#endif /* _UAPI_DXG_INFO_H */
