// SPDX-License-Identifier: MIT OR Apache-2.0
/* The Direct3D layer makes the picture, so it also says how it lies in memory. */
#include "layers.h"
#include "check.h"

#include <stdint.h>

static const struct opendxg_image_layout layout = {
	.fourcc = 0x34325241, /* DRM_FORMAT_ARGB8888 */
	.width = PICTURE_WIDTH,
	.height = PICTURE_HEIGHT,
	.depth = 1,
	.layers = 1,
	.levels = 1,
	.samples = 1,
	.plane_count = 1,
	.planes[0] = { .row_pitch = PICTURE_PITCH, .layer_pitch = PICTURE_BYTES },
};

static const struct opendxg_direct3d_info direct3d = {
	.api = 11,
	.dimension = 3, /* D3D12_RESOURCE_DIMENSION_TEXTURE2D */
	.width = PICTURE_WIDTH,
	.height = PICTURE_HEIGHT,
	.depth_or_layers = 1,
	.levels = 1,
	.format = 87, /* DXGI_FORMAT_B8G8R8A8_UNORM */
	.sample_count = 1,
	.bind_flags = 0x28, /* shader resource and render target */
};

/* Both at once: nobody sees one without the other. */
int direct3d_describe(struct place place)
{
	struct opendxg_info_item items[2] = {
		{
			.key = OPENDXG_KEY_IMAGE_LAYOUT,
			.schema = 1,
			.flags = OPENDXG_INFO_CREATE_ONLY | OPENDXG_INFO_SEALED,
			.data = (uintptr_t)&layout,
			.size = sizeof(layout),
		},
		{
			.key = OPENDXG_KEY_DIRECT3D,
			.schema = 1,
			.data = (uintptr_t)&direct3d,
			.size = sizeof(direct3d),
		},
	};
	struct opendxg_set_info set = {
		.handle = place.handle,
		.handle_type = place.type,
		.item_count = 2,
		.items = (uintptr_t)items,
	};

	CHECK_STATUS(opendxg_set_info(&set), STATUS_SUCCESS);
	return 0;
}
