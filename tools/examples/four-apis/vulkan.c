// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The Vulkan layer learns what the picture is from the image layout, no
 * matter who wrote it, and attaches the descriptor of its memory to its own description.
 */
#define _GNU_SOURCE
#include "layers.h"
#include "check.h"

#include <sys/mman.h>

int vulkan_describe(struct place place)
{
	static const __u8 layout_key[16] = OPENDXG_KEY_IMAGE_LAYOUT;
	static const __u8 own_key[16] = OPENDXG_KEY_VULKAN;
	struct opendxg_vulkan_info info = {
		.driver_uuid = "example driver",
		.handle_type = 1, /* opaque descriptor */
		.image_type = 1, /* VK_IMAGE_TYPE_2D */
		.format = 44, /* VK_FORMAT_B8G8R8A8_UNORM */
		.depth = 1,
		.samples = 1,
		.tiling = 1, /* VK_IMAGE_TILING_LINEAR */
		.dedicated = 1,
	};
	struct opendxg_image_layout layout;
	int memory;

	CHECK_STATUS(store_get(place, layout_key, &layout, sizeof(layout),
				 OPENDXG_IMAGE_LAYOUT_MIN, NULL), STATUS_SUCCESS);
	/* Numbers of another process. */
	CHECK(layout.plane_count == 1 && layout.width <= 16384 && layout.height <= 16384);
	info.width = layout.width;
	info.height = layout.height;
	info.layers = layout.layers;
	info.levels = layout.levels;
	info.allocation_size = layout.planes[0].row_pitch * layout.height;

	/* Stands for the descriptor that vkGetMemoryFdKHR would give. */
	memory = memfd_create("vulkan", MFD_CLOEXEC);
	CHECK(memory >= 0);
	CHECK(write(memory, GREETING, sizeof(GREETING)) == sizeof(GREETING));
	CHECK_STATUS(store_put(place, own_key, &info, sizeof(info), memory, 0), STATUS_SUCCESS);
	/* The store has a reference of its own. */
	close(memory);
	return 0;
}
