/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Conventions for the information store: the reserved keys and the layouts of
 * their bytes, all schema 1. Documentation/metadata.md explains how to use them.
 *
 * These are conventions between user programs. The kernel stores bytes and knows
 * none of the layouts. The key of a layout says which API described the object;
 * an object may carry the descriptions of several.
 *
 * Rules of every layout:
 *  - Members are little-endian and have their natural alignment; there is no
 *    padding. Members called reserved are 0.
 *  - A later version of schema 1 only appends members. A reader takes what it
 *    knows and treats missing bytes as 0; it refuses fewer bytes than a layout
 *    had at first: OPENDXG_*_MIN.
 *  - Anything incompatible is schema 2, stored beside schema 1.
 *  - The bytes come from another process: check every number before using it.
 *  - Constants of an API (formats, flags) have the values of its headers.
 */
#ifndef _OPENDXG_METADATA_H
#define _OPENDXG_METADATA_H

#include <linux/types.h>

/* GUIDs in memory order, as the member key of struct opendxg_info_item. */

/* 00000000-...: the legacy runtime blob, schema 0; its layout is the runtime's. */
#define OPENDXG_KEY_LEGACY \
	{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* 1ad4fdb7-7c6c-4b4f-ae9d-f6a39ab932dd: struct opendxg_image_layout */
#define OPENDXG_KEY_IMAGE_LAYOUT \
	{ 0xb7, 0xfd, 0xd4, 0x1a, 0x6c, 0x7c, 0x4f, 0x4b, \
	  0xae, 0x9d, 0xf6, 0xa3, 0x9a, 0xb9, 0x32, 0xdd }
/* 98fb6f47-3e6a-46bd-bb3f-2e1890bb948c: struct opendxg_direct3d_info */
#define OPENDXG_KEY_DIRECT3D \
	{ 0x47, 0x6f, 0xfb, 0x98, 0x6a, 0x3e, 0xbd, 0x46, \
	  0xbb, 0x3f, 0x2e, 0x18, 0x90, 0xbb, 0x94, 0x8c }
/* 15cc3245-8dcd-4c21-8037-4c0defd1cf3c: struct opendxg_vulkan_info */
#define OPENDXG_KEY_VULKAN \
	{ 0x45, 0x32, 0xcc, 0x15, 0xcd, 0x8d, 0x21, 0x4c, \
	  0x80, 0x37, 0x4c, 0x0d, 0xef, 0xd1, 0xcf, 0x3c }
/* a04c6e50-5c2c-429b-9d7b-3246c8b33517: struct opendxg_opengl_info */
#define OPENDXG_KEY_OPENGL \
	{ 0x50, 0x6e, 0x4c, 0xa0, 0x2c, 0x5c, 0x9b, 0x42, \
	  0x9d, 0x7b, 0x32, 0x46, 0xc8, 0xb3, 0x35, 0x17 }
/* b7953b58-9e7d-49b4-b0ea-149e70dc5bc6: struct opendxg_opencl_info */
#define OPENDXG_KEY_OPENCL \
	{ 0x58, 0x3b, 0x95, 0xb7, 0x7d, 0x9e, 0xb4, 0x49, \
	  0xb0, 0xea, 0x14, 0x9e, 0x70, 0xdc, 0x5b, 0xc6 }
/* 29bf82fe-390f-4cbf-b950-7fa03bf6a7e7: struct opendxg_sync_payload */
#define OPENDXG_KEY_SYNC_PAYLOAD \
	{ 0xfe, 0x82, 0xbf, 0x29, 0x0f, 0x39, 0xbf, 0x4c, \
	  0xb9, 0x50, 0x7f, 0xa0, 0x3b, 0xf6, 0xa7, 0xe7 }

/**
 * struct opendxg_image_plane - where one plane of an image is
 * @offset: bytes from the start of the allocation
 * @row_pitch: bytes from row to row
 * @layer_pitch: bytes from layer to layer, or from slice to slice
 * @allocation: index of the allocation in the resource
 * @reserved: 0
 */
struct opendxg_image_plane {
	__aligned_u64 offset;
	__aligned_u64 row_pitch;
	__aligned_u64 layer_pitch;
	__u32 allocation;
	__u32 reserved;
};

/**
 * struct opendxg_image_layout - how the bytes of an image lie in memory
 * @modifier: DRM_FORMAT_MOD_*; 0 is linear
 * @fourcc: DRM_FORMAT_*
 * @width: texels
 * @height: texels
 * @depth: texels, 1 unless it is a volume
 * @layers: array layers, at least 1
 * @levels: mip levels, at least 1. Those after the first follow it as the
 *	modifier says
 * @samples: samples of a texel, at least 1
 * @plane_count: 1 to 4
 * @planes: the planes of the first level
 */
struct opendxg_image_layout {
	__aligned_u64 modifier;
	__u32 fourcc;
	__u32 width;
	__u32 height;
	__u32 depth;
	__u32 layers;
	__u32 levels;
	__u32 samples;
	__u32 plane_count;
	struct opendxg_image_plane planes[4];
};
#define OPENDXG_IMAGE_LAYOUT_MIN	168

/**
 * struct opendxg_direct3d_info - a Direct3D resource
 * @api: major version that made it: 9, 10, 11 or 12
 * @dimension: D3D12_RESOURCE_DIMENSION
 * @width: texels, or bytes of a buffer
 * @height: texels
 * @depth_or_layers: depth of a volume, else array layers
 * @levels: mip levels
 * @format: DXGI_FORMAT
 * @sample_count: DXGI_SAMPLE_DESC
 * @sample_quality: DXGI_SAMPLE_DESC
 * @texture_layout: D3D12_TEXTURE_LAYOUT or D3D11_TEXTURE_LAYOUT
 * @usage: D3D11_USAGE; 0 for version 12
 * @bind_flags: D3D11_BIND_FLAG; D3D12_RESOURCE_FLAGS for version 12
 * @cpu_access: D3D11_CPU_ACCESS_FLAG; D3D12_HEAP_TYPE for version 12
 * @misc_flags: D3D11_RESOURCE_MISC_FLAG; D3D12_HEAP_FLAGS for version 12
 * @state: D3D12_RESOURCE_STATES at hand-over
 * @reserved: 0
 */
struct opendxg_direct3d_info {
	__u32 api;
	__u32 dimension;
	__aligned_u64 width;
	__u32 height;
	__u32 depth_or_layers;
	__u32 levels;
	__u32 format;
	__u32 sample_count;
	__u32 sample_quality;
	__u32 texture_layout;
	__u32 usage;
	__u32 bind_flags;
	__u32 cpu_access;
	__u32 misc_flags;
	__u32 state;
	__u32 reserved[2];
};
#define OPENDXG_DIRECT3D_INFO_MIN	72

/**
 * struct opendxg_vulkan_info - a Vulkan image or buffer and its memory
 * @device_uuid: VkPhysicalDeviceIDProperties
 * @driver_uuid: VkPhysicalDeviceIDProperties
 * @allocation_size: VkMemoryAllocateInfo
 * @usage: VkImageUsageFlags or VkBufferUsageFlags
 * @memory_type: index of the memory type
 * @handle_type: VkExternalMemoryHandleTypeFlagBits the memory can be imported as
 * @image_type: VkImageType; 0xffffffff for a buffer
 * @format: VkFormat
 * @create_flags: VkImageCreateFlags or VkBufferCreateFlags
 * @width: texels, or bytes of a buffer
 * @height: texels
 * @depth: texels
 * @layers: array layers
 * @levels: mip levels
 * @samples: VkSampleCountFlagBits
 * @tiling: VkImageTiling
 * @layout: VkImageLayout at hand-over
 * @queue_family: VK_QUEUE_FAMILY_* at hand-over
 * @dedicated: 1 if the memory was allocated for this image or buffer alone
 */
struct opendxg_vulkan_info {
	__u8 device_uuid[16];
	__u8 driver_uuid[16];
	__aligned_u64 allocation_size;
	__aligned_u64 usage;
	__u32 memory_type;
	__u32 handle_type;
	__u32 image_type;
	__u32 format;
	__u32 create_flags;
	__u32 width;
	__u32 height;
	__u32 depth;
	__u32 layers;
	__u32 levels;
	__u32 samples;
	__u32 tiling;
	__u32 layout;
	__u32 queue_family;
	__u32 dedicated;
	__u32 reserved;
};
#define OPENDXG_VULKAN_INFO_MIN		112

/**
 * struct opendxg_opengl_info - an OpenGL texture, renderbuffer or buffer
 * @device_uuid: GL_DEVICE_UUID_EXT
 * @driver_uuid: GL_DRIVER_UUID_EXT
 * @size: bytes of the memory object
 * @target: GL_TEXTURE_2D, GL_BUFFER, ...
 * @internal_format: sized internal format
 * @width: texels, or bytes of a buffer
 * @height: texels
 * @depth: texels of a volume, layers of an array
 * @levels: mip levels
 * @samples: samples, 0 for none
 * @tiling: GL_OPTIMAL_TILING_EXT or GL_LINEAR_TILING_EXT
 * @layout: GL_LAYOUT_*_EXT at hand-over
 * @dedicated: GL_DEDICATED_MEMORY_OBJECT_EXT
 */
struct opendxg_opengl_info {
	__u8 device_uuid[16];
	__u8 driver_uuid[16];
	__aligned_u64 size;
	__u32 target;
	__u32 internal_format;
	__u32 width;
	__u32 height;
	__u32 depth;
	__u32 levels;
	__u32 samples;
	__u32 tiling;
	__u32 layout;
	__u32 dedicated;
};
#define OPENDXG_OPENGL_INFO_MIN		80

/**
 * struct opendxg_opencl_info - an OpenCL memory object
 * @device_uuid: CL_DEVICE_UUID_KHR
 * @driver_uuid: CL_DRIVER_UUID_KHR
 * @flags: cl_mem_flags
 * @size: bytes
 * @row_pitch: cl_image_desc
 * @slice_pitch: cl_image_desc
 * @type: cl_mem_object_type
 * @channel_order: cl_image_format
 * @channel_type: cl_image_format
 * @width: texels
 * @height: texels
 * @depth: texels
 * @layers: array layers
 * @handle_type: cl_external_memory_handle_type_khr
 */
struct opendxg_opencl_info {
	__u8 device_uuid[16];
	__u8 driver_uuid[16];
	__aligned_u64 flags;
	__aligned_u64 size;
	__aligned_u64 row_pitch;
	__aligned_u64 slice_pitch;
	__u32 type;
	__u32 channel_order;
	__u32 channel_type;
	__u32 width;
	__u32 height;
	__u32 depth;
	__u32 layers;
	__u32 handle_type;
};
#define OPENDXG_OPENCL_INFO_MIN		96

/**
 * enum opendxg_sync_role - what the values of a synchronisation object mean
 * @OPENDXG_SYNC_TIMELINE: a timeline: each user raises it
 * @OPENDXG_SYNC_FRAMES: frame n is finished at value 2n and taken at 2n + 1
 */
enum opendxg_sync_role {
	OPENDXG_SYNC_TIMELINE = 1,
	OPENDXG_SYNC_FRAMES = 2
};

/**
 * struct opendxg_sync_payload - what waits and signals of an object are about
 * @resource_id: object id of the resource it goes with, 0 for none
 * @ready_value: value from which on the content may be read
 * @role: enum opendxg_sync_role
 * @handle_type: how the API that made it exports it:
 *	VkExternalSemaphoreHandleTypeFlagBits, or 0
 * @producer_key: key of the API that signals
 */
struct opendxg_sync_payload {
	__aligned_u64 resource_id;
	__aligned_u64 ready_value;
	__u32 role;
	__u32 handle_type;
	__u8 producer_key[16];
};
#define OPENDXG_SYNC_PAYLOAD_MIN	40

#endif /* _OPENDXG_METADATA_H */
