/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * State of a device: execution, presents, page faults.
 */
#ifndef _UAPI_DXG_DEVICE_STATE_H
#define _UAPI_DXG_DEVICE_STATE_H

#include "base.h"

/**
 * enum _D3DKMT_DEVICEEXECUTION_STATE - whether a device runs
 */
typedef __u32 D3DKMT_DEVICEEXECUTION_STATE;
enum _D3DKMT_DEVICEEXECUTION_STATE {
	D3DKMT_DEVICEEXECUTION_ACTIVE = 1,
	D3DKMT_DEVICEEXECUTION_RESET = 2,
	D3DKMT_DEVICEEXECUTION_HUNG = 3,
	D3DKMT_DEVICEEXECUTION_STOPPED = 4,
	D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY = 5,
	D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT = 6,
	D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT = 7
};

/**
 * enum _DXGK_GENERAL_ERROR_CODE - GeneralErrorCode of DXGK_FAULT_ERROR_CODE
 */
typedef __u32 DXGK_GENERAL_ERROR_CODE;
enum _DXGK_GENERAL_ERROR_CODE {
	DXGK_GENERAL_ERROR_PAGE_FAULT = 0,
	DXGK_GENERAL_ERROR_INVALID_INSTRUCTION = 1
};

/**
 * enum _D3DKMT_DEVICE_ERROR_REASON - why a device is put into the error state
 */
typedef __u32 D3DKMT_DEVICE_ERROR_REASON;
__extension__ enum _D3DKMT_DEVICE_ERROR_REASON {
	D3DKMT_DEVICE_ERROR_REASON_GENERIC = 0x80000000,
	D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR = 0x80000006
};

/**
 * struct _D3DKMT_MARKDEVICEASERROR - put a device into the error state
 * @hDevice: [in] device
 * @Reason: [in] why
 *
 * Argument of DXG_IOCTL_MARKDEVICEASERROR.
 */
typedef struct _D3DKMT_MARKDEVICEASERROR {
	D3DKMT_HANDLE hDevice;
	D3DKMT_DEVICE_ERROR_REASON Reason;
} D3DKMT_MARKDEVICEASERROR;

/**
 * enum _D3DKMT_DEVICESTATE_TYPE - states of a device that can be asked for
 */
typedef __u32 D3DKMT_DEVICESTATE_TYPE;
enum _D3DKMT_DEVICESTATE_TYPE {
	D3DKMT_DEVICESTATE_EXECUTION = 1,
	D3DKMT_DEVICESTATE_PRESENT = 2,
	D3DKMT_DEVICESTATE_RESET = 3,
	D3DKMT_DEVICESTATE_PRESENT_DWM = 4,
	D3DKMT_DEVICESTATE_PAGE_FAULT = 5,
	D3DKMT_DEVICESTATE_PRESENT_QUEUE = 6
};

/**
 * struct _D3DKMT_PRESENT_STATS - counters of presents
 * @PresentCount: [out] presents so far
 * @PresentRefreshCount: [out] refreshes at the last present
 * @SyncRefreshCount: [out] refreshes at SyncQPCTime
 * @SyncQPCTime: [out] CPU clock of the last refresh
 * @SyncGPUTime: [out] GPU clock of the last refresh
 */
typedef struct _D3DKMT_PRESENT_STATS {
	__u32 PresentCount;
	__u32 PresentRefreshCount;
	__u32 SyncRefreshCount;
	__u32 _pad0;
	__aligned_s64 SyncQPCTime;
	__aligned_s64 SyncGPUTime;
} D3DKMT_PRESENT_STATS;

/**
 * struct _D3DKMT_DEVICEPRESENT_STATE - presents of a device on a source
 * @VidPnSourceId: [in] display source
 * @PresentStats: [out] counters
 */
typedef struct _D3DKMT_DEVICEPRESENT_STATE {
	__u32 VidPnSourceId;
	__u32 _pad0;
	D3DKMT_PRESENT_STATS PresentStats;
} D3DKMT_DEVICEPRESENT_STATE;

/**
 * typedef D3DKMT_DEVICERESET_STATE - what reset the device
 */
typedef __u32 D3DKMT_DEVICERESET_STATE;
#define D3DKMT_DEVICERESET_STATE_DesktopSwitched	0x00000001
#define D3DKMT_DEVICERESET_STATE_Reserved		0xfffffffe

/**
 * struct _D3DKMT_PRESENT_STATS_DWM - counters of presents through the
 *	compositor
 * @PresentCount: [out] presents so far
 * @PresentRefreshCount: [out] refreshes at the last present
 * @PresentQPCTime: [out] CPU clock of the last present
 * @SyncRefreshCount: [out] refreshes at SyncQPCTime
 * @SyncQPCTime: [out] CPU clock of the last refresh
 * @CustomPresentDuration: [out] 100 ns units, 0 when not set
 */
typedef struct _D3DKMT_PRESENT_STATS_DWM {
	__u32 PresentCount;
	__u32 PresentRefreshCount;
	__aligned_s64 PresentQPCTime;
	__u32 SyncRefreshCount;
	__u32 _pad0;
	__aligned_s64 SyncQPCTime;
	__u32 CustomPresentDuration;
	__u32 _pad1;
} D3DKMT_PRESENT_STATS_DWM;

/**
 * struct _D3DKMT_DEVICEPRESENT_STATE_DWM - presents of a device through the
 *	compositor
 * @VidPnSourceId: [in] display source
 * @PresentStatsDWM: [out] counters
 */
typedef struct _D3DKMT_DEVICEPRESENT_STATE_DWM {
	__u32 VidPnSourceId;
	__u32 _pad0;
	D3DKMT_PRESENT_STATS_DWM PresentStatsDWM;
} D3DKMT_DEVICEPRESENT_STATE_DWM;

/**
 * enum _DXGK_RENDER_PIPELINE_STAGE - stage of the pipeline that faulted
 */
typedef __u32 DXGK_RENDER_PIPELINE_STAGE;
enum _DXGK_RENDER_PIPELINE_STAGE {
	DXGK_RENDER_PIPELINE_STAGE_UNKNOWN = 0,
	DXGK_RENDER_PIPELINE_STAGE_INPUT_ASSEMBLER = 1,
	DXGK_RENDER_PIPELINE_STAGE_VERTEX_SHADER = 2,
	DXGK_RENDER_PIPELINE_STAGE_GEOMETRY_SHADER = 3,
	DXGK_RENDER_PIPELINE_STAGE_STREAM_OUTPUT = 4,
	DXGK_RENDER_PIPELINE_STAGE_RASTERIZER = 5,
	DXGK_RENDER_PIPELINE_STAGE_PIXEL_SHADER = 6,
	DXGK_RENDER_PIPELINE_STAGE_OUTPUT_MERGER = 7
};

/**
 * enum _DXGK_PAGE_FAULT_FLAGS - bits that describe a page fault
 */
typedef __u32 DXGK_PAGE_FAULT_FLAGS;
enum _DXGK_PAGE_FAULT_FLAGS {
	DXGK_PAGE_FAULT_WRITE = 1,
	DXGK_PAGE_FAULT_FENCE_INVALID = 2,
	DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED = 4,
	DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED = 8,
	DXGK_PAGE_FAULT_FATAL_HARDWARE_ERROR = 16,
	DXGK_PAGE_FAULT_IOMMU = 32,
	DXGK_PAGE_FAULT_HW_CONTEXT_VALID = 64,
	DXGK_PAGE_FAULT_PROCESS_HANDLE_VALID = 128
};

/**
 * typedef DXGK_FAULT_ERROR_CODE - why an engine faulted
 *
 * Bit 0 tells which of the two readings of bits 1 to 31 holds.
 */
typedef __u32 DXGK_FAULT_ERROR_CODE;
#define DXGK_FAULT_ERROR_CODE_IsDeviceSpecificCode		0x00000001
#define DXGK_FAULT_ERROR_CODE_GeneralErrorCode			0xfffffffe
#define DXGK_FAULT_ERROR_CODE_IsDeviceSpecificCodeReservedBit	0x00000001
#define DXGK_FAULT_ERROR_CODE_DeviceSpecificCode		0xfffffffe

/**
 * struct _D3DKMT_DEVICEPAGEFAULT_STATE - the page fault that stopped a device
 * @FaultedPrimitiveAPISequenceNumber: [out] driver-defined
 * @FaultedPipelineStage: [out] stage
 * @FaultedBindTableEntry: [out] entry of the bind table
 * @PageFaultFlags: [out] DXGK_PAGE_FAULT_ bits
 * @FaultErrorCode: [out] reason
 * @FaultedVirtualAddress: [out] GPU address
 */
typedef struct _D3DKMT_DEVICEPAGEFAULT_STATE {
	__aligned_u64 FaultedPrimitiveAPISequenceNumber;
	DXGK_RENDER_PIPELINE_STAGE FaultedPipelineStage;
	__u32 FaultedBindTableEntry;
	DXGK_PAGE_FAULT_FLAGS PageFaultFlags;
	DXGK_FAULT_ERROR_CODE FaultErrorCode;
	D3DGPU_VIRTUAL_ADDRESS FaultedVirtualAddress;
} D3DKMT_DEVICEPAGEFAULT_STATE;

/**
 * struct _D3DKMT_DEVICEPRESENT_QUEUE_STATE - whether the present queue is full
 * @VidPnSourceId: [in] display source
 * @bQueuedPresentLimitReached: [out] boolean
 */
typedef struct _D3DKMT_DEVICEPRESENT_QUEUE_STATE {
	__u32 VidPnSourceId;
	__u8 bQueuedPresentLimitReached;
	__u8 _pad0[3];
} D3DKMT_DEVICEPRESENT_QUEUE_STATE;

/**
 * struct _D3DKMT_GETDEVICESTATE - ask for one of the states of a device
 * @hDevice: [in] device
 * @StateType: [in] selects the union arm
 * @ExecutionState: [out] arm of EXECUTION
 * @PresentState: [in,out] arm of PRESENT
 * @ResetState: [out] arm of RESET
 * @PresentStateDWM: [in,out] arm of PRESENT_DWM
 * @PageFaultState: [out] arm of PAGE_FAULT
 * @PresentQueueState: [in,out] arm of PRESENT_QUEUE
 *
 * Argument of DXG_IOCTL_GETDEVICESTATE.
 */
typedef struct _D3DKMT_GETDEVICESTATE {
	D3DKMT_HANDLE hDevice;
	D3DKMT_DEVICESTATE_TYPE StateType;
	__extension__ union {
		D3DKMT_DEVICEEXECUTION_STATE ExecutionState;
		D3DKMT_DEVICEPRESENT_STATE PresentState;
		D3DKMT_DEVICERESET_STATE ResetState;
		D3DKMT_DEVICEPRESENT_STATE_DWM PresentStateDWM;
		D3DKMT_DEVICEPAGEFAULT_STATE PageFaultState;
		D3DKMT_DEVICEPRESENT_QUEUE_STATE PresentQueueState;
	};
} D3DKMT_GETDEVICESTATE;

#endif /* _UAPI_DXG_DEVICE_STATE_H */
