/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Payloads of D3DKMTQueryAdapterInfo about displays.
 *
 * A render-only adapter reports no support in each of them.
 */
#ifndef _UAPI_DXG_ADAPTER_DISPLAY_H
#define _UAPI_DXG_ADAPTER_DISPLAY_H

#include "base.h"

/**
 * struct _D3DKMDT_DISPLAYMODE_FLAGS - properties of a display mode
 * @Validation: mask constants Validated... and Rounded... below
 * @Properties: the other mask constants below
 */
typedef struct _D3DKMDT_DISPLAYMODE_FLAGS {
	__u32 Validation;
	__u32 Properties;
} D3DKMDT_DISPLAYMODE_FLAGS;
#define D3DKMDT_DISPLAYMODE_FLAGS_ValidatedAgainstMonitorCaps	0x00000001
#define D3DKMDT_DISPLAYMODE_FLAGS_RoundedFakeMode		0x00000002
#define D3DKMDT_DISPLAYMODE_FLAGS_ModePruningReason		0x0000000f
#define D3DKMDT_DISPLAYMODE_FLAGS_Stereo			0x00000010
#define D3DKMDT_DISPLAYMODE_FLAGS_AdvancedScanCapable		0x00000020
#define D3DKMDT_DISPLAYMODE_FLAGS_PreferredTiming		0x00000040
#define D3DKMDT_DISPLAYMODE_FLAGS_PhysicalModeSupported		0x00000080
#define D3DKMDT_DISPLAYMODE_FLAGS_VirtualRefreshRate		0x00000100
#define D3DKMDT_DISPLAYMODE_FLAGS_Reserved			0xfffffe00

/**
 * struct _D3DKMT_FLIPQUEUEINFO - depth of the flip queues
 */
typedef struct _D3DKMT_FLIPQUEUEINFO {
	__u32 MaxHardwareFlipQueueLength;
	__u32 MaxSoftwareFlipQueueLength;
	__u32 FlipFlags;
} D3DKMT_FLIPQUEUEINFO;

/**
 * struct _D3DDDI_RATIONAL - a fraction
 */
typedef struct _D3DDDI_RATIONAL {
	__u32 Numerator;
	__u32 Denominator;
} D3DDDI_RATIONAL;

/**
 * struct _D3DKMT_DISPLAYMODE - a display mode
 */
typedef struct _D3DKMT_DISPLAYMODE {
	__u32 Width;
	__u32 Height;
	__u32 Format;
	__u32 IntegerRefreshRate;
	D3DDDI_RATIONAL RefreshRate;
	__u32 ScanLineOrdering;
	__u32 DisplayOrientation;
	__u32 DisplayFixedOutput;
	D3DKMDT_DISPLAYMODE_FLAGS Flags;
} D3DKMT_DISPLAYMODE;

/**
 * struct _D3DKMT_CURRENTDISPLAYMODE - the mode a source shows
 */
typedef struct _D3DKMT_CURRENTDISPLAYMODE {
	__u32 VidPnSourceId;
	D3DKMT_DISPLAYMODE DisplayMode;
} D3DKMT_CURRENTDISPLAYMODE;

/**
 * struct _D3DKMT_DISPLAYMODELIST - head of the list of modes of a source
 * @ModeCount: number of D3DKMT_DISPLAYMODE that follow this struct
 */
typedef struct _D3DKMT_DISPLAYMODELIST {
	__u32 VidPnSourceId;
	__u32 ModeCount;
} D3DKMT_DISPLAYMODELIST;

/**
 * struct _D3DKMT_OUTPUTDUPLCONTEXTSCOUNT - number of output duplications of a
 *	source
 */
typedef struct _D3DKMT_OUTPUTDUPLCONTEXTSCOUNT {
	__u32 VidPnSourceId;
	__u32 OutputDuplicationCount;
} D3DKMT_OUTPUTDUPLCONTEXTSCOUNT;

/**
 * struct _D3DKMT_DIRECTFLIP_SUPPORT - whether direct flip works
 */
typedef struct _D3DKMT_DIRECTFLIP_SUPPORT {
	__u32 Supported;
} D3DKMT_DIRECTFLIP_SUPPORT;

/**
 * struct _D3DKMT_MULTIPLANEOVERLAY_SUPPORT - whether overlays work
 */
typedef struct _D3DKMT_MULTIPLANEOVERLAY_SUPPORT {
	__u32 Supported;
} D3DKMT_MULTIPLANEOVERLAY_SUPPORT;

/**
 * struct _D3DKMT_MULTIPLANEOVERLAY_HUD_SUPPORT - whether a display above an
 *	overlay works
 */
typedef struct _D3DKMT_MULTIPLANEOVERLAY_HUD_SUPPORT {
	__u32 VidPnSourceId;
	__u32 Update;
	__u32 KernelSupported;
	__u32 HudSupported;
} D3DKMT_MULTIPLANEOVERLAY_HUD_SUPPORT;

/**
 * struct _D3DKMT_INDEPENDENTFLIP_SUPPORT - whether independent flip works
 */
typedef struct _D3DKMT_INDEPENDENTFLIP_SUPPORT {
	__u32 Supported;
} D3DKMT_INDEPENDENTFLIP_SUPPORT;

/**
 * struct _D3DKMT_QUERY_MIRACAST_DRIVER_TYPE - kind of the wireless-display
 *	driver
 */
typedef struct _D3DKMT_QUERY_MIRACAST_DRIVER_TYPE {
	__u32 MiracastDriverType;
} D3DKMT_QUERY_MIRACAST_DRIVER_TYPE;

/**
 * struct _D3DKMT_MULTIPLANEOVERLAY_DECODE_SUPPORT - whether decoding into an
 *	overlay works
 */
typedef struct _D3DKMT_MULTIPLANEOVERLAY_DECODE_SUPPORT {
	__u32 Supported;
} D3DKMT_MULTIPLANEOVERLAY_DECODE_SUPPORT;

/**
 * struct _D3DKMT_ISBADDRIVERFORHWPROTECTIONDISABLED - whether hardware
 *	protection is disabled
 */
typedef struct _D3DKMT_ISBADDRIVERFORHWPROTECTIONDISABLED {
	__u32 Disabled;
} D3DKMT_ISBADDRIVERFORHWPROTECTIONDISABLED;

/**
 * struct _D3DKMT_MULTIPLANEOVERLAY_SECONDARY_SUPPORT - whether overlays work
 *	on other displays
 */
typedef struct _D3DKMT_MULTIPLANEOVERLAY_SECONDARY_SUPPORT {
	__u32 Supported;
} D3DKMT_MULTIPLANEOVERLAY_SECONDARY_SUPPORT;

/**
 * struct _D3DKMT_INDEPENDENTFLIP_SECONDARY_SUPPORT - whether independent flip
 *	works on other displays
 */
typedef struct _D3DKMT_INDEPENDENTFLIP_SECONDARY_SUPPORT {
	__u32 Supported;
} D3DKMT_INDEPENDENTFLIP_SECONDARY_SUPPORT;

/**
 * struct _D3DKMT_PANELFITTER_SUPPORT - whether the panel can scale
 */
typedef struct _D3DKMT_PANELFITTER_SUPPORT {
	__u32 Supported;
} D3DKMT_PANELFITTER_SUPPORT;

/**
 * struct _D3DKMT_MPO3DDI_SUPPORT - whether the third overlay interface works
 */
typedef struct _D3DKMT_MPO3DDI_SUPPORT {
	__u32 Supported;
} D3DKMT_MPO3DDI_SUPPORT;

/**
 * struct _D3DKMT_HWDRM_SUPPORT - whether content protection in hardware works
 */
typedef struct _D3DKMT_HWDRM_SUPPORT {
	__u8 Supported;
} D3DKMT_HWDRM_SUPPORT;

/**
 * struct _D3DKMT_MPOKERNELCAPS_SUPPORT - whether the kernel reports overlay
 *	abilities
 */
typedef struct _D3DKMT_MPOKERNELCAPS_SUPPORT {
	__u32 Supported;
} D3DKMT_MPOKERNELCAPS_SUPPORT;

/**
 * struct _D3DKMT_MULTIPLANEOVERLAY_STRETCH_SUPPORT - whether overlays can be
 *	scaled
 */
typedef struct _D3DKMT_MULTIPLANEOVERLAY_STRETCH_SUPPORT {
	__u32 VidPnSourceId;
	__u32 Update;
	__u32 Supported;
} D3DKMT_MULTIPLANEOVERLAY_STRETCH_SUPPORT;

/**
 * struct _D3DKMT_GET_DEVICE_VIDPN_OWNERSHIP_INFO - whether the compositor lost
 *	a source to a device
 */
typedef struct _D3DKMT_GET_DEVICE_VIDPN_OWNERSHIP_INFO {
	__u32 hDevice;
	__u8 bFailedDwmAcquireVidPn;
	__u8 _pad0[3];
} D3DKMT_GET_DEVICE_VIDPN_OWNERSHIP_INFO;

/**
 * struct _D3DKMT_QUERY_SCANOUT_CAPS - abilities of scanning out
 */
typedef struct _D3DKMT_QUERY_SCANOUT_CAPS {
	__u32 VidPnSourceId;
	__u32 Caps;
} D3DKMT_QUERY_SCANOUT_CAPS;

/**
 * typedef D3DKMT_DISPLAY_CAPS - abilities of displaying
 */
typedef __u64 __attribute__((aligned(8))) D3DKMT_DISPLAY_CAPS;
__extension__ enum _D3DKMT_DISPLAY_CAPS {
	D3DKMT_DISPLAY_CAPS_PreferPhysicallyContiguous = 0x00000001,
	D3DKMT_DISPLAY_CAPS_Reserved = ~(__u64)1
};

#endif /* _UAPI_DXG_ADAPTER_DISPLAY_H */
