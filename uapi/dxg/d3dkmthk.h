/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The /dev/dxg contract: data types and ioctls 0x01 to 0x4b.
 *
 * Binary compatible with what existing Linux programs send to /dev/dxg. The
 * headers beside this one hold one subject each and can be included alone.
 * Additions of this project are in dxg.h.
 *
 * The header of this name in the WDK and in Wine declares the same types with
 * pointers of the compiler's size, and functions: a file includes one of the
 * two. This one is found as <dxg/d3dkmthk.h>, whatever the order of the
 * include directories is.
 */
#ifndef _UAPI_DXG_D3DKMTHK_H
#define _UAPI_DXG_D3DKMTHK_H

#include "base.h"
#include "status.h"
#include "adapter.h"
#include "adapter_info.h"
#include "adapter_display.h"
#include "adapter_names.h"
#include "device.h"
#include "device_state.h"
#include "doorbell.h"
#include "submit.h"
#include "allocation.h"
#include "allocation_use.h"
#include "resource.h"
#include "paging.h"
#include "sync.h"
#include "sync_ops.h"
#include "share.h"
#include "keyed_mutex.h"
#include "native_fence.h"
#include "escape.h"
#include "statistics_counters.h"
#include "statistics.h"
#include "process.h"
#include "notification.h"
#include "vidpn.h"
#include "ioctl.h"

#endif /* _UAPI_DXG_D3DKMTHK_H */
