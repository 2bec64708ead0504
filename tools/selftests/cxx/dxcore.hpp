// SPDX-License-Identifier: MIT OR Apache-2.0
// What the tests of DXCore share. They see DXCore as any program does: through
// the headers of directx-headers-dev.
#ifndef DXCORE_HPP
#define DXCORE_HPP

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#define INITGUID
#include <wsl/winadapter.h>
#include <directx/dxcore.h>
#include <dxguids/dxguids.h>

#include <d3dkmt.h>

#include "../c/tap.h"

#define REQUIRE_RESULT(call, expected) \
	REQUIRE_EQUAL((uint32_t)(call), (uint32_t)(expected))
#define REQUIRE_OK(call) REQUIRE_RESULT(call, S_OK)

// A counted pointer that lets go by itself, whatever the test returns.
template <class T> struct Com {
	T *it = nullptr;

	Com() = default;
	Com(const Com &) = delete;
	Com &operator=(const Com &) = delete;
	~Com() { reset(); }
	void reset()
	{
		if (it)
			it->Release();
		it = nullptr;
	}
	T **out()
	{
		reset();
		return &it;
	}
	T *operator->() const { return it; }
	operator T *() const { return it; }
};

using Factory = Com<IDXCoreAdapterFactory1>;
using List = Com<IDXCoreAdapterList>;
using Adapter = Com<IDXCoreAdapter1>;

static inline HRESULT list_of(IDXCoreAdapterFactory *factory, List &list,
			      const GUID &attribute = DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS)
{
	return factory->CreateAdapterList(1, &attribute, list.out());
}

// How many references there are; harmless where the caller has one.
static inline ULONG references(IUnknown *object)
{
	object->AddRef();
	return object->Release();
}

// Whether an object comes to have so many references. The thread of the library that looks for
// changes holds one for a moment.
static inline bool comes_to(IUnknown *object, ULONG count)
{
	for (int turn = 0; turn < 1000; turn++) {
		if (references(object) == count)
			return true;
		usleep(10000);
	}
	return false;
}

static inline LUID luid_of(IDXCoreAdapter *adapter)
{
	LUID luid = {};

	adapter->GetProperty(DXCoreAdapterProperty::InstanceLuid, &luid);
	return luid;
}

// An adapter opened as D3DKMT programs do.
struct Kmt {
	D3DKMT_HANDLE handle = 0;

	explicit Kmt(const LUID &luid)
	{
		D3DKMT_OPENADAPTERFROMLUID open = {};

		memcpy(&open.AdapterLuid, &luid, sizeof(luid));
		if (D3DKMTOpenAdapterFromLuid(&open) == 0)
			handle = open.hAdapter;
	}
	~Kmt()
	{
		D3DKMT_CLOSEADAPTER close = {};

		close.hAdapter = handle;
		D3DKMTCloseAdapter(&close);
	}
	bool ask(uint32_t type, void *payload, uint32_t size) const
	{
		D3DKMT_QUERYADAPTERINFO query = {};

		query.hAdapter = handle;
		query.Type = (__typeof__(query.Type))type;
		query.pPrivateDriverData = (__u64)(uintptr_t)payload;
		query.PrivateDriverDataSize = size;
		return D3DKMTQueryAdapterInfo(&query) == 0;
	}
};

#endif
