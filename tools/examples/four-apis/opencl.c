// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The OpenCL layer describes the picture and uses a file that somebody attached:
 * it looks at all entries for one, without knowing whose it is.
 */
#include "layers.h"
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>

/* Answers in the first attached file that holds the greeting. */
static int answer(struct place place)
{
	struct opendxg_info_entry entries[64];
	struct opendxg_enum_info list = {
		.handle = place.handle,
		.handle_type = place.type,
		.count = 64,
		.entries = (uintptr_t)entries,
	};
	__u32 i;

	CHECK_STATUS(opendxg_enum_info(&list), STATUS_SUCCESS);
	for (i = 0; i < list.count; i++) {
		struct description found;
		char *memory, byte;

		if (!(entries[i].flags & OPENDXG_INFO_HAS_FD))
			continue;
		CHECK_STATUS(store_get(place, entries[i].key, &byte, 1, 0, &found),
			       STATUS_SUCCESS);
		CHECK(found.fd >= 0);
		CHECK(!ftruncate(found.fd, 4096));
		memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, found.fd, 0);
		CHECK(memory != MAP_FAILED);
		close(found.fd);
		CHECK(!strcmp(memory, GREETING));
		memcpy(memory + 2048, ANSWER, sizeof(ANSWER));
		munmap(memory, 4096);
		return 0;
	}
	CHECK_FAIL("no entry has a file");
}

int opencl_describe(struct place place)
{
	static const __u8 layout_key[16] = OPENDXG_KEY_IMAGE_LAYOUT;
	static const __u8 own_key[16] = OPENDXG_KEY_OPENCL;
	struct opendxg_opencl_info info = {
		.flags = 1, /* CL_MEM_READ_WRITE */
		.type = 0x10f1, /* CL_MEM_OBJECT_IMAGE2D */
		.channel_order = 0x10b6, /* CL_BGRA */
		.channel_type = 0x10d2, /* CL_UNORM_INT8 */
		.depth = 1,
	};
	struct opendxg_image_layout layout;

	CHECK_STATUS(store_get(place, layout_key, &layout, sizeof(layout),
				 OPENDXG_IMAGE_LAYOUT_MIN, NULL), STATUS_SUCCESS);
	CHECK(layout.width <= 16384 && layout.height <= 16384);
	info.width = layout.width;
	info.height = layout.height;
	info.layers = layout.layers;
	info.row_pitch = layout.planes[0].row_pitch;
	info.size = info.row_pitch * info.height;
	CHECK_STATUS(store_put(place, own_key, &info, sizeof(info), -1, 0), STATUS_SUCCESS);
	return answer(place);
}
