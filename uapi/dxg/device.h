/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Devices, contexts and hardware queues.
 *
 * A device belongs to an adapter, a context to a device, a hardware queue to a
 * context. NodeOrdinal selects the engine node; EngineAffinity is a bit mask
 * of physical adapters, 0 for the default.
 */
#ifndef _UAPI_DXG_DEVICE_H
#define _UAPI_DXG_DEVICE_H

#include "base.h"
#include "submit.h"

/**
 * typedef D3DKMT_CREATEDEVICEFLAGS - how to create a device
 */
typedef __u32 D3DKMT_CREATEDEVICEFLAGS;
#define D3DKMT_CREATEDEVICEFLAGS_LegacyMode		0x00000001
#define D3DKMT_CREATEDEVICEFLAGS_RequestVSync		0x00000002
#define D3DKMT_CREATEDEVICEFLAGS_DisableGpuTimeout	0x00000004
#define D3DKMT_CREATEDEVICEFLAGS_Reserved		0xfffffff8

/**
 * struct _D3DKMT_CREATEDEVICE - create a device
 * @hAdapter: [in] adapter
 * @pAdapter: only for callers in a kernel
 * @Flags: [in] mask constants of the type
 * @hDevice: [out] device
 * @pCommandBuffer: [out] 0
 * @CommandBufferSize: [out] 0
 * @pAllocationList: [out] 0
 * @AllocationListSize: [out] 0
 * @pPatchLocationList: [out] 0
 * @PatchLocationListSize: [out] 0
 *
 * Argument of DXG_IOCTL_CREATEDEVICE.
 */
typedef struct _D3DKMT_CREATEDEVICE {
	__extension__ union {
		D3DKMT_HANDLE hAdapter;
		__aligned_u64 pAdapter;
	};
	D3DKMT_CREATEDEVICEFLAGS Flags;
	D3DKMT_HANDLE hDevice;
	__aligned_u64 pCommandBuffer;
	__u32 CommandBufferSize;
	__u32 _pad0;
	__aligned_u64 pAllocationList;
	__u32 AllocationListSize;
	__u32 _pad1;
	__aligned_u64 pPatchLocationList;
	__u32 PatchLocationListSize;
	__u32 _pad2;
} D3DKMT_CREATEDEVICE;

/**
 * struct _D3DKMT_DESTROYDEVICE - destroy a device and everything created on it
 * @hDevice: [in] device
 *
 * Argument of DXG_IOCTL_DESTROYDEVICE.
 */
typedef struct _D3DKMT_DESTROYDEVICE {
	D3DKMT_HANDLE hDevice;
} D3DKMT_DESTROYDEVICE;

/**
 * typedef D3DDDI_CREATECONTEXTFLAGS - how to create a context
 */
typedef __u32 D3DDDI_CREATECONTEXTFLAGS;
#define D3DDDI_CREATECONTEXTFLAGS_NullRendering		0x00000001
#define D3DDDI_CREATECONTEXTFLAGS_InitialData		0x00000002
#define D3DDDI_CREATECONTEXTFLAGS_DisableGpuTimeout	0x00000004
#define D3DDDI_CREATECONTEXTFLAGS_SynchronizationOnly	0x00000008
#define D3DDDI_CREATECONTEXTFLAGS_HwQueueSupported	0x00000010
#define D3DDDI_CREATECONTEXTFLAGS_NoKmdAccess		0x00000020
#define D3DDDI_CREATECONTEXTFLAGS_Reserved		0xffffffc0

/**
 * enum _D3DKMT_CLIENTHINT - API that runs in a context
 */
typedef __u32 D3DKMT_CLIENTHINT;
enum _D3DKMT_CLIENTHINT {
	D3DKMT_CLIENTHINT_UNKNOWN = 0,
	D3DKMT_CLIENTHINT_OPENGL = 1,
	D3DKMT_CLIENTHINT_CDD = 2,
	D3DKMT_CLIENTHINT_OPENCL = 3,
	D3DKMT_CLIENTHINT_VULKAN = 4,
	D3DKMT_CLIENTHINT_CUDA = 5,
	D3DKMT_CLIENTHINT_RESERVED = 6,
	D3DKMT_CLIENTHINT_DX7 = 7,
	D3DKMT_CLIENTHINT_DX8 = 8,
	D3DKMT_CLIENTHINT_DX9 = 9,
	D3DKMT_CLIENTHINT_DX10 = 10,
	D3DKMT_CLIENTHINT_DX11 = 11,
	D3DKMT_CLIENTHINT_DX12 = 12,
	D3DKMT_CLIENTHINT_9ON12 = 13,
	D3DKMT_CLIENTHINT_11ON12 = 14,
	D3DKMT_CLIENTHINT_MFT_ENCODE = 15,
	D3DKMT_CLIENTHINT_GLON12 = 16,
	D3DKMT_CLIENTHINT_CLON12 = 17,
	D3DKMT_CLIENTHINT_DML_TENSORFLOW = 18,
	D3DKMT_CLIENTHINT_ONEAPI_LEVEL0 = 19,
	D3DKMT_CLIENTHINT_MAX = 20
};

/**
 * struct _D3DKMT_CREATECONTEXT - create a context that is addressed by packets
 * @hDevice: [in] device
 * @NodeOrdinal: [in] engine node
 * @EngineAffinity: [in] bit mask of physical adapters
 * @Flags: [in] mask constants of the type
 * @pPrivateDriverData: [in] address of driver data
 * @PrivateDriverDataSize: [in] bytes
 * @ClientHint: [in] API that uses the context
 * @hContext: [out] context
 * @pCommandBuffer: [out] address of the command buffer
 * @CommandBufferSize: [out] bytes
 * @pAllocationList: [out] pointer to D3DDDI_ALLOCATIONLIST[]
 * @AllocationListSize: [out] entries
 * @pPatchLocationList: [out] pointer to D3DDDI_PATCHLOCATIONLIST[]
 * @PatchLocationListSize: [out] entries
 * @CommandBuffer: [out] GPU address of the command buffer
 *
 * Argument of DXG_IOCTL_CREATECONTEXT.
 */
typedef struct _D3DKMT_CREATECONTEXT {
	D3DKMT_HANDLE hDevice;
	__u32 NodeOrdinal;
	__u32 EngineAffinity;
	D3DDDI_CREATECONTEXTFLAGS Flags;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	D3DKMT_CLIENTHINT ClientHint;
	D3DKMT_HANDLE hContext;
	__u32 _pad0;
	__aligned_u64 pCommandBuffer;
	__u32 CommandBufferSize;
	__u32 _pad1;
	__aligned_u64 pAllocationList;
	__u32 AllocationListSize;
	__u32 _pad2;
	__aligned_u64 pPatchLocationList;
	__u32 PatchLocationListSize;
	__u32 _pad3;
	D3DGPU_VIRTUAL_ADDRESS CommandBuffer;
} D3DKMT_CREATECONTEXT;

/**
 * struct _D3DKMT_CREATECONTEXTVIRTUAL - create a context with virtual
 *	addresses
 * @hDevice: [in] device
 * @NodeOrdinal: [in] engine node
 * @EngineAffinity: [in] bit mask of physical adapters
 * @Flags: [in] mask constants of the type
 * @pPrivateDriverData: [in] address of driver data, which the driver may change
 * @PrivateDriverDataSize: [in] bytes
 * @ClientHint: [in] API that uses the context
 * @hContext: [out] context
 *
 * Argument of DXG_IOCTL_CREATECONTEXTVIRTUAL.
 */
typedef struct _D3DKMT_CREATECONTEXTVIRTUAL {
	D3DKMT_HANDLE hDevice;
	__u32 NodeOrdinal;
	__u32 EngineAffinity;
	D3DDDI_CREATECONTEXTFLAGS Flags;
	__aligned_u64 pPrivateDriverData;
	__u32 PrivateDriverDataSize;
	D3DKMT_CLIENTHINT ClientHint;
	D3DKMT_HANDLE hContext;
	__u32 _pad0;
} D3DKMT_CREATECONTEXTVIRTUAL;

/**
 * struct _D3DKMT_DESTROYCONTEXT - destroy a context
 * @hContext: [in] context
 *
 * Argument of DXG_IOCTL_DESTROYCONTEXT.
 */
typedef struct _D3DKMT_DESTROYCONTEXT {
	D3DKMT_HANDLE hContext;
} D3DKMT_DESTROYCONTEXT;

/**
 * typedef D3DDDI_CREATEHWCONTEXTFLAGS - how to create a hardware context
 */
typedef __u32 D3DDDI_CREATEHWCONTEXTFLAGS;
#define D3DDDI_CREATEHWCONTEXTFLAGS_Reserved	0xffffffff

/**
 * struct _D3DKMT_CREATEHWCONTEXT - create a context scheduled by hardware
 * @hDevice: [in] device
 * @NodeOrdinal: [in] engine node
 * @EngineAffinity: [in] bit mask of physical adapters
 * @Flags: [in] mask constants of the type
 * @PrivateDriverDataSize: [in] bytes
 * @pPrivateDriverData: [in] address of driver data, which the driver may
 *	change
 * @hHwContext: [out] hardware context
 *
 * Argument of DXG_IOCTL_CREATEHWCONTEXT.
 */
typedef struct _D3DKMT_CREATEHWCONTEXT {
	D3DKMT_HANDLE hDevice;
	__u32 NodeOrdinal;
	__u32 EngineAffinity;
	D3DDDI_CREATEHWCONTEXTFLAGS Flags;
	__u32 PrivateDriverDataSize;
	__u32 _pad0;
	__aligned_u64 pPrivateDriverData;
	D3DKMT_HANDLE hHwContext;
	__u32 _pad1;
} D3DKMT_CREATEHWCONTEXT;

/**
 * struct _D3DKMT_DESTROYHWCONTEXT - destroy a hardware context
 * @hHwContext: [in] hardware context
 *
 * Argument of DXG_IOCTL_DESTROYHWCONTEXT.
 */
typedef struct _D3DKMT_DESTROYHWCONTEXT {
	D3DKMT_HANDLE hHwContext;
} D3DKMT_DESTROYHWCONTEXT;

/**
 * typedef D3DDDI_CREATEHWQUEUEFLAGS - how to create a hardware queue
 */
typedef __u32 D3DDDI_CREATEHWQUEUEFLAGS;
#define D3DDDI_CREATEHWQUEUEFLAGS_DisableGpuTimeout	0x00000001
#define D3DDDI_CREATEHWQUEUEFLAGS_NoBroadcastSignal	0x00000002
#define D3DDDI_CREATEHWQUEUEFLAGS_NoBroadcastWait	0x00000004
#define D3DDDI_CREATEHWQUEUEFLAGS_NoKmdAccess		0x00000008
#define D3DDDI_CREATEHWQUEUEFLAGS_Reserved		0xfffffff0

/**
 * struct _D3DKMT_CREATEHWQUEUE - create a hardware queue
 * @hHwContext: [in] hardware context, or a context made by
 *	D3DKMT_CREATECONTEXTVIRTUAL
 * @Flags: [in] mask constants of the type
 * @PrivateDriverDataSize: [in] bytes
 * @pPrivateDriverData: [in] address of driver data, which the driver may
 *	change
 * @hHwQueue: [out] hardware queue
 * @hHwQueueProgressFence: [out] monitored fence (native fence when
 *	Flags.NativeProgressFence)
 * @HwQueueProgressFenceCPUVirtualAddress: [out] address of the value, mapped
 *	read-only
 * @HwQueueProgressFenceGPUVirtualAddress: [out] GPU address of the value
 *
 * Argument of DXG_IOCTL_CREATEHWQUEUE.
 */
typedef struct _D3DKMT_CREATEHWQUEUE {
	D3DKMT_HANDLE hHwContext;
	D3DDDI_CREATEHWQUEUEFLAGS Flags;
	__u32 PrivateDriverDataSize;
	__u32 _pad0;
	__aligned_u64 pPrivateDriverData;
	D3DKMT_HANDLE hHwQueue;
	D3DKMT_HANDLE hHwQueueProgressFence;
	__aligned_u64 HwQueueProgressFenceCPUVirtualAddress;
	D3DGPU_VIRTUAL_ADDRESS HwQueueProgressFenceGPUVirtualAddress;
} D3DKMT_CREATEHWQUEUE;

/**
 * struct _D3DKMT_DESTROYHWQUEUE - destroy a hardware queue
 * @hHwQueue: [in] hardware queue
 *
 * Argument of DXG_IOCTL_DESTROYHWQUEUE.
 */
typedef struct _D3DKMT_DESTROYHWQUEUE {
	D3DKMT_HANDLE hHwQueue;
} D3DKMT_DESTROYHWQUEUE;

/* Later system versions give these meanings to bits of the reserved range. */
#define D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission	0x00000010
#define D3DDDI_CREATEHWQUEUEFLAGS_NativeProgressFence	0x00000020
#define D3DDDI_CREATEHWQUEUEFLAGS_TestQueue		0x00000040

#endif /* _UAPI_DXG_DEVICE_H */
