// SPDX-License-Identifier: MIT OR Apache-2.0
/* The OpenGL layer: like the others, from the image layout to its own terms. */
#include "layers.h"
#include "check.h"

int opengl_describe(struct place place)
{
	static const __u8 layout_key[16] = OPENDXG_KEY_IMAGE_LAYOUT;
	static const __u8 own_key[16] = OPENDXG_KEY_OPENGL;
	struct opendxg_opengl_info info = {
		.target = 0x0de1, /* GL_TEXTURE_2D */
		.internal_format = 0x8058, /* GL_RGBA8 */
		.depth = 1,
		.tiling = 0x9585, /* GL_LINEAR_TILING_EXT */
	};
	struct opendxg_image_layout layout;

	CHECK_STATUS(store_get(place, layout_key, &layout, sizeof(layout),
				 OPENDXG_IMAGE_LAYOUT_MIN, NULL), STATUS_SUCCESS);
	CHECK(layout.width <= 16384 && layout.height <= 16384);
	info.width = layout.width;
	info.height = layout.height;
	info.levels = layout.levels;
	info.size = layout.planes[0].row_pitch * layout.height;
	CHECK_STATUS(store_put(place, own_key, &info, sizeof(info), -1, 0), STATUS_SUCCESS);
	return 0;
}
