// SPDX-License-Identifier: MIT OR Apache-2.0
#include "store.h"

#include <dxg/status.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

NTSTATUS store_put(struct place place, const __u8 key[16], const void *bytes,
		   __u32 size, int fd, __u32 flags)
{
	struct opendxg_info_item item = {
		.schema = 1,
		.flags = flags,
		.data = (uintptr_t)bytes,
		.size = size,
	};
	struct opendxg_set_info set = {
		.handle = place.handle,
		.handle_type = place.type,
		.item_count = 1,
		.items = (uintptr_t)&item,
	};

	memcpy(item.key, key, sizeof(item.key));
	if (fd >= 0) {
		item.flags |= OPENDXG_INFO_ATTACH_FD;
		item.fd = fd;
	}
	return opendxg_set_info(&set);
}

NTSTATUS store_get(struct place place, const __u8 key[16], void *bytes,
		   __u32 size, __u32 minimum, struct description *found)
{
	struct opendxg_get_info get = {
		.handle = place.handle,
		.handle_type = place.type,
		.flags = found ? OPENDXG_GET_FD : 0,
		.max_schema = 1,
		.fd = -1,
	};
	__u32 room = size;
	void *buffer = NULL;
	NTSTATUS status;

	memcpy(get.key, key, sizeof(get.key));
	/* Usually once. The entry may grow while its size is being asked for. */
	do {
		void *larger = realloc(buffer, room);

		if (!larger) {
			free(buffer);
			return STATUS_NO_MEMORY;
		}
		buffer = larger;
		get.data = (uintptr_t)buffer;
		get.size = room;
		status = opendxg_get_info(&get);
		room = get.size;
	} while (status == STATUS_BUFFER_TOO_SMALL);

	if (NT_SUCCESS(status) && get.size < minimum) {
		if (get.fd >= 0)
			close(get.fd);
		status = STATUS_BUFFER_TOO_SMALL;
	}
	if (NT_SUCCESS(status)) {
		memset(bytes, 0, size);
		memcpy(bytes, buffer, get.size < size ? get.size : size);
		if (found) {
			found->schema = get.schema;
			found->size = get.size;
			found->fd = get.fd;
		}
	}
	free(buffer);
	return status;
}
