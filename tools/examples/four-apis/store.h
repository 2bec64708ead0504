/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The information store for a layer of a graphics API: put one description,
 * get one description. Copy it into your project.
 *
 * A place is a local handle of a resource, or an NT handle, on whose descriptor
 * the calls are made: no device is needed.
 */
#ifndef FOUR_APIS_STORE_H
#define FOUR_APIS_STORE_H

#include <opendxg.h>
#include <opendxg/metadata.h>

struct place {
	__u64 handle;
	__u32 type; /* OPENDXG_HANDLE_LOCAL or OPENDXG_HANDLE_SELF */
};

/* A description that was read. */
struct description {
	__u32 schema;
	__u32 size; /* bytes that exist, which may be more than were read */
	int fd; /* attached file, or -1; to be closed by the reader */
};

/*
 * Stores a description of schema 1; fd is attached unless it is negative.
 * flags are OPENDXG_INFO_* flags, for example CREATE_ONLY.
 */
NTSTATUS store_put(struct place place, const __u8 key[16], const void *bytes,
		   __u32 size, int fd, __u32 flags);

/*
 * Reads a description of schema 1 into a struct of the reader's own version:
 * members that the writer did not know are 0, those that the reader does not
 * know are dropped. STATUS_BUFFER_TOO_SMALL if there are fewer than minimum
 * bytes. With a NULL found no attached file is opened.
 */
NTSTATUS store_get(struct place place, const __u8 key[16], void *bytes,
		   __u32 size, __u32 minimum, struct description *found);

#endif /* FOUR_APIS_STORE_H */
