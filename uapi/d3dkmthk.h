/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The /dev/dxg contract: data types and ioctls 0x01 to 0x4b.
 *
 * Binary compatible with what existing Linux programs send to /dev/dxg. The
 * headers below dxg/ hold one subject each and can be included alone.
 * Additions of this project are in dxg.h.
 */
#ifndef _UAPI_D3DKMTHK_H
#define _UAPI_D3DKMTHK_H

#include "dxg/base.h"
#include "dxg/status.h"
#include "dxg/adapter.h"
#include "dxg/adapter_info.h"
#include "dxg/adapter_display.h"
#include "dxg/adapter_names.h"
#include "dxg/device.h"
#include "dxg/device_state.h"
#include "dxg/submit.h"
#include "dxg/allocation.h"
#include "dxg/allocation_use.h"
#include "dxg/resource.h"
#include "dxg/paging.h"
#include "dxg/sync.h"
#include "dxg/sync_ops.h"
#include "dxg/share.h"
#include "dxg/keyed_mutex.h"
#include "dxg/native_fence.h"
#include "dxg/escape.h"
#include "dxg/statistics_counters.h"
#include "dxg/statistics.h"
#include "dxg/process.h"
#include "dxg/notification.h"
#include "dxg/vidpn.h"
#include "dxg/ioctl.h"

#endif /* _UAPI_D3DKMTHK_H */
