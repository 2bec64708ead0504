/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What tests of D3DKMT calls need: statuses, and a device. */
#ifndef D3DKMT_TAP_H
#define D3DKMT_TAP_H

#include <d3dkmt.h>
#include <stdint.h>

#include "tap.h"

#define REQUIRE_STATUS(call, expected) \
	REQUIRE_EQUAL((__u32)(call), (__u32)(expected))
#define REQUIRE_SUCCESS(call) REQUIRE_STATUS(call, 0)

/* A device on the first adapter. */
static inline int make_device(D3DKMT_HANDLE *made)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = (uintptr_t)infos };
	D3DKMT_CREATEDEVICE create = { 0 };

	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&enumerate));
	REQUIRE(enumerate.NumAdapters >= 1);
	create.hAdapter = infos[0].hAdapter;
	REQUIRE_SUCCESS(D3DKMTCreateDevice(&create));
	*made = create.hDevice;
	return 0;
}

#endif
