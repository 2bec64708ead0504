// SPDX-License-Identifier: MIT OR Apache-2.0
/* A capture tool, which understands the descriptions of all APIs. */
#include "layers.h"
#include "check.h"

#include <stdint.h>

#define READ(place, name, info, minimum) \
	do { \
		static const __u8 key[16] = OPENDXG_KEY_##name; \
		CHECK_STATUS(store_get(place, key, &(info), sizeof(info), minimum, NULL), \
			       STATUS_SUCCESS); \
	} while (0)

/* What the OpenCL layer wrote into the file of the Vulkan layer. */
static int attached_file(struct place place)
{
	static const __u8 key[16] = OPENDXG_KEY_VULKAN;
	struct opendxg_vulkan_info info;
	struct description found;
	char text[sizeof(ANSWER)];

	CHECK_STATUS(store_get(place, key, &info, sizeof(info), OPENDXG_VULKAN_INFO_MIN,
				 &found), STATUS_SUCCESS);
	CHECK(found.fd >= 0 && found.size == sizeof(info));
	CHECK(pread(found.fd, text, sizeof(text), 2048) == sizeof(text));
	CHECK(!strcmp(text, ANSWER));
	close(found.fd);
	return 0;
}

int survey(struct place place)
{
	struct opendxg_direct3d_info direct3d;
	struct opendxg_image_layout layout;
	struct opendxg_vulkan_info vulkan;
	struct opendxg_opengl_info opengl;
	struct opendxg_opencl_info opencl;
	struct opendxg_enum_info count = {
		.handle = place.handle,
		.handle_type = place.type,
	};

	READ(place, IMAGE_LAYOUT, layout, OPENDXG_IMAGE_LAYOUT_MIN);
	READ(place, DIRECT3D, direct3d, OPENDXG_DIRECT3D_INFO_MIN);
	READ(place, VULKAN, vulkan, OPENDXG_VULKAN_INFO_MIN);
	READ(place, OPENGL, opengl, OPENDXG_OPENGL_INFO_MIN);
	READ(place, OPENCL, opencl, OPENDXG_OPENCL_INFO_MIN);
	CHECK(layout.width == PICTURE_WIDTH && layout.height == PICTURE_HEIGHT);
	CHECK(direct3d.width == PICTURE_WIDTH && direct3d.height == PICTURE_HEIGHT);
	CHECK(vulkan.width == PICTURE_WIDTH && vulkan.height == PICTURE_HEIGHT);
	CHECK(opengl.width == PICTURE_WIDTH && opengl.height == PICTURE_HEIGHT);
	CHECK(opencl.width == PICTURE_WIDTH && opencl.height == PICTURE_HEIGHT);
	CHECK(direct3d.api == 11 && vulkan.format == 44);
	CHECK(opengl.internal_format == 0x8058 && opencl.row_pitch == PICTURE_PITCH);

	/* The five, and the runtime blob of the resource. */
	CHECK_STATUS(opendxg_enum_info(&count), STATUS_BUFFER_TOO_SMALL);
	CHECK(count.count == 6);
	return attached_file(place);
}
