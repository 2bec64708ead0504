/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Four layers of graphics APIs. Each runs in a process of its own and knows its
 * own description and the API-independent image layout, not the other layers.
 */
#ifndef FOUR_APIS_LAYERS_H
#define FOUR_APIS_LAYERS_H

#include "store.h"

/* The picture all of them use. */
enum {
	PICTURE_WIDTH = 64,
	PICTURE_HEIGHT = 32,
	PICTURE_PITCH = 256,
	PICTURE_BYTES = PICTURE_PITCH * PICTURE_HEIGHT,
};

/* What the Vulkan layer attaches, and how the OpenCL layer answers in it. */
#define GREETING "memory of the Vulkan driver"
#define ANSWER "seen by OpenCL"

/* Describes the picture in the terms of the API; 0, or -1 and why in check_text. */
int direct3d_describe(struct place place);
int vulkan_describe(struct place place);
int opengl_describe(struct place place);
int opencl_describe(struct place place);

/* Reads what everybody wrote, as a capture tool would. */
int survey(struct place place);

#endif /* FOUR_APIS_LAYERS_H */
