// SPDX-License-Identifier: MIT OR Apache-2.0
// DXCore: objects, lists, attributes, properties and states of the adapters that
// are there.
#include "dxcore.hpp"

// How many more allocations of this thread succeed; negative: all.
static thread_local int allocations = -1;

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_realloc(void *memory, size_t size);

static bool refuse()
{
	if (allocations > 0)
		allocations--;
	else if (allocations == 0)
		return true;
	return false;
}

void *malloc(size_t size)
{
	return refuse() ? nullptr : __libc_malloc(size);
}

void *realloc(void *memory, size_t size)
{
	return refuse() ? nullptr : __libc_realloc(memory, size);
}
}

static Factory factory;

static int test_factory()
{
	Com<IUnknown> unknown;
	Com<IDXCoreAdapterFactory> old;
	void *out = &out;

	REQUIRE_RESULT(DXCoreCreateAdapterFactory(IID_IDXCoreAdapterFactory, nullptr), E_POINTER);
	REQUIRE_RESULT(DXCoreCreateAdapterFactory(IID_IDXCoreAdapter, &out), E_NOINTERFACE);
	REQUIRE(!out);
	REQUIRE_OK(DXCoreCreateAdapterFactory(factory.out()));
	REQUIRE_OK(DXCoreCreateAdapterFactory(old.out()));
	REQUIRE((void *)old.it == (void *)factory.it);
	REQUIRE_OK(old->QueryInterface(IID_IUnknown, (void **)unknown.out()));
	REQUIRE((void *)unknown.it == (void *)factory.it);
	REQUIRE_EQUAL(references(factory), 3);
	REQUIRE_RESULT(unknown->QueryInterface(IID_IDXCoreAdapterList, &out), E_NOINTERFACE);
	REQUIRE(!out);
	REQUIRE_RESULT(unknown->QueryInterface(IID_IUnknown, nullptr), E_POINTER);
	old.reset();
	REQUIRE_EQUAL(unknown->AddRef(), 3);
	REQUIRE_EQUAL(unknown->Release(), 2);
	return 0;
}

static int test_lists()
{
	static const GUID supported[] = {
		DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS,
		DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
		DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
		DXCORE_HARDWARE_TYPE_ATTRIBUTE_GPU,
	};
	static const GUID missing[] = {
		DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML,
		DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_MEDIA,
		DXCORE_HARDWARE_TYPE_ATTRIBUTE_COMPUTE_ACCELERATOR,
		DXCORE_HARDWARE_TYPE_ATTRIBUTE_NPU,
		DXCORE_HARDWARE_TYPE_ATTRIBUTE_MEDIA_ACCELERATOR,
		IID_IUnknown,
	};
	D3DKMT_ENUMADAPTERS2 count = {};
	Adapter adapter;
	List list, again;
	void *out = &out;

	D3DKMTEnumAdapters2(&count);
	REQUIRE_OK(factory->CreateAdapterList(4, supported, list.out()));
	REQUIRE_EQUAL(list->GetAdapterCount(), count.NumAdapters);
	REQUIRE(list->GetAdapterCount() >= 1);
	REQUIRE(!list->IsStale());
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	for (const GUID &attribute : supported) {
		REQUIRE(adapter->IsAttributeSupported(attribute));
		REQUIRE_OK(list_of(factory, again, attribute));
		REQUIRE_EQUAL(again->GetAdapterCount(), count.NumAdapters);
		REQUIRE(again.it != list.it);
	}
	for (const GUID &attribute : missing) {
		const GUID both[] = { supported[0], attribute };

		REQUIRE(!adapter->IsAttributeSupported(attribute));
		REQUIRE_OK(factory->CreateAdapterList(2, both, again.out()));
		REQUIRE_EQUAL(again->GetAdapterCount(), 0);
		REQUIRE(!again->IsStale());
	}
	REQUIRE_RESULT(factory->CreateAdapterList(1, supported, IID_IDXCoreAdapterList, nullptr),
		       E_POINTER);
	REQUIRE_RESULT(factory->CreateAdapterList(0, supported, IID_IDXCoreAdapterList, &out),
		       E_INVALIDARG);
	REQUIRE(!out);
	REQUIRE_RESULT(factory->CreateAdapterList(1, nullptr, IID_IDXCoreAdapterList, &out),
		       E_INVALIDARG);
	REQUIRE_RESULT(factory->CreateAdapterList(1, supported, IID_IDXCoreAdapter, &out),
		       E_NOINTERFACE);
	REQUIRE_RESULT(list->GetAdapter(count.NumAdapters, IID_IDXCoreAdapter, &out), E_INVALIDARG);
	REQUIRE_RESULT(list->GetAdapter(0, IID_IDXCoreAdapterList, &out), E_NOINTERFACE);
	REQUIRE_RESULT(list->GetAdapter(0, IID_IDXCoreAdapter, nullptr), E_POINTER);
	return 0;
}

static int test_workloads()
{
	static const DXCoreRuntimeFilterFlags none = DXCoreRuntimeFilterFlags::None;
	static const DXCoreHardwareTypeFilterFlags any = DXCoreHardwareTypeFilterFlags::None;
	List list;
	void *out = &out;

	for (uint32_t workload = 0; workload < 4; workload++) {
		DXCoreWorkload kind = (DXCoreWorkload)workload;

		REQUIRE_OK(factory->CreateAdapterListByWorkload(kind, none, any, list.out()));
		REQUIRE(list->GetAdapterCount() >= 1);
		REQUIRE_OK(factory->CreateAdapterListByWorkload(
			kind, DXCoreRuntimeFilterFlags::D3D12, DXCoreHardwareTypeFilterFlags::GPU,
			list.out()));
		REQUIRE(list->GetAdapterCount() >= 1);
		REQUIRE_OK(factory->CreateAdapterListByWorkload(
			kind, none, DXCoreHardwareTypeFilterFlags::NPU, list.out()));
		REQUIRE_EQUAL(list->GetAdapterCount(), 0);
	}
	const DXCoreWorkload graphics = DXCoreWorkload::Graphics;

	REQUIRE_RESULT(factory->CreateAdapterListByWorkload((DXCoreWorkload)4, none, any,
							    IID_IDXCoreAdapterList, &out),
		       E_INVALIDARG);
	REQUIRE(!out);
	REQUIRE_RESULT(factory->CreateAdapterListByWorkload(graphics, (DXCoreRuntimeFilterFlags)4,
							    any, IID_IDXCoreAdapterList, &out),
		       E_INVALIDARG);
	REQUIRE_RESULT(factory->CreateAdapterListByWorkload(
			       graphics, none, (DXCoreHardwareTypeFilterFlags)0x10,
			       IID_IDXCoreAdapterList, &out),
		       E_INVALIDARG);
	REQUIRE_RESULT(factory->CreateAdapterListByWorkload(graphics, none, any,
							    IID_IDXCoreAdapter, &out),
		       E_NOINTERFACE);
	REQUIRE_RESULT(factory->CreateAdapterListByWorkload(graphics, none, any,
							    IID_IDXCoreAdapterList, nullptr),
		       E_POINTER);
	return 0;
}

static int test_identity()
{
	Com<IDXCoreAdapterFactory> of_adapter, of_list;
	Com<IDXCoreAdapter> old;
	Com<IUnknown> unknown;
	Adapter adapter, same;
	List list, other;
	void *out = &out;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list_of(factory, other, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	const LUID luid = luid_of(adapter);

	// One object for all who ask, and one address for all interfaces.
	REQUIRE_OK(other->GetAdapter(0, same.out()));
	REQUIRE(same.it == adapter.it);
	REQUIRE_OK(factory->GetAdapterByLuid(luid, same.out()));
	REQUIRE(same.it == adapter.it);
	REQUIRE_OK(list->GetAdapter(0, IID_IUnknown, (void **)unknown.out()));
	REQUIRE((void *)unknown.it == (void *)adapter.it);
	REQUIRE_OK(unknown->QueryInterface(IID_IDXCoreAdapter, (void **)old.out()));
	REQUIRE((void *)old.it == (void *)adapter.it);
	REQUIRE_OK(old->QueryInterface(IID_IDXCoreAdapter1, (void **)same.out()));
	REQUIRE(same.it == adapter.it);
	REQUIRE_RESULT(unknown->QueryInterface(IID_IDXCoreAdapterFactory, &out), E_NOINTERFACE);
	REQUIRE(!out);
	REQUIRE_OK(list->QueryInterface(IID_IUnknown, (void **)unknown.out()));
	REQUIRE((void *)unknown.it == (void *)list.it);

	REQUIRE_OK(adapter->GetFactory(of_adapter.out()));
	REQUIRE_OK(list->GetFactory(of_list.out()));
	REQUIRE((void *)of_adapter.it == (void *)factory.it);
	REQUIRE((void *)of_list.it == (void *)factory.it);
	REQUIRE_RESULT(adapter->GetFactory(IID_IDXCoreAdapter, &out), E_NOINTERFACE);
	REQUIRE_RESULT(list->GetFactory(IID_IDXCoreAdapterFactory, nullptr), E_POINTER);

	// Two lists and this program refer to the adapter, and it outlives the lists.
	old.reset();
	same.reset();
	unknown.reset();
	REQUIRE_EQUAL(references(adapter), 3);
	other.reset();
	REQUIRE_EQUAL(references(adapter), 2);
	REQUIRE_EQUAL(list->Release(), 0);
	list.it = nullptr;
	REQUIRE_EQUAL(references(adapter), 1);
	REQUIRE(adapter->IsValid());

	LUID stranger = luid;
	stranger.HighPart = ~stranger.HighPart;
	REQUIRE_RESULT(factory->GetAdapterByLuid(stranger, IID_IDXCoreAdapter, &out), E_INVALIDARG);
	REQUIRE(!out);
	REQUIRE_RESULT(factory->GetAdapterByLuid(luid, IID_IDXCoreAdapterList, &out), E_NOINTERFACE);
	REQUIRE_RESULT(factory->GetAdapterByLuid(luid, IID_IDXCoreAdapter, nullptr), E_POINTER);

	Kmt kmt(luid);
	REQUIRE(kmt.handle);
	return 0;
}

static size_t size_of(DXCoreAdapterProperty property)
{
	switch (property) {
	case DXCoreAdapterProperty::InstanceLuid:
		return sizeof(LUID);
	case DXCoreAdapterProperty::DriverDescription:
		return sizeof("opendxg software GPU");
	case DXCoreAdapterProperty::HardwareID:
		return sizeof(DXCoreHardwareID);
	case DXCoreAdapterProperty::HardwareIDParts:
		return sizeof(DXCoreHardwareIDParts);
	case DXCoreAdapterProperty::ComputePreemptionGranularity:
	case DXCoreAdapterProperty::GraphicsPreemptionGranularity:
		return sizeof(uint16_t);
	case DXCoreAdapterProperty::AcgCompatible:
	case DXCoreAdapterProperty::IsHardware:
	case DXCoreAdapterProperty::IsIntegrated:
	case DXCoreAdapterProperty::IsDetachable:
		return sizeof(bool);
	case DXCoreAdapterProperty::KmdModelVersion:
	case DXCoreAdapterProperty::PhysicalAdapterCount:
	case DXCoreAdapterProperty::AdapterEngineCount:
		return sizeof(uint32_t);
	case DXCoreAdapterProperty::AdapterEngineName:
		return sizeof(DXCoreEngineNamePropertyOutput);
	default:
		return sizeof(uint64_t);
	}
}

static int test_property_sizes()
{
	Adapter adapter;
	List list;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	for (uint32_t number = 0; number <= 17; number++) {
		DXCoreAdapterProperty property = (DXCoreAdapterProperty)number;
		const bool takes_input = number >= 16;
		unsigned char exact[64], large[64];
		size_t size = 0;

		REQUIRE(adapter->IsPropertySupported(property));
		REQUIRE_RESULT(adapter->GetPropertySize(property, nullptr), E_POINTER);
		REQUIRE_OK(adapter->GetPropertySize(property, &size));
		REQUIRE_EQUAL(size, size_of(property));
		if (takes_input) {
			REQUIRE_RESULT(adapter->GetProperty(property, size, exact), E_INVALIDARG);
			REQUIRE_RESULT(adapter->GetPropertyWithInput(property, 64, nullptr, size, exact),
				       E_POINTER);
			continue;
		}
		memset(exact, 0xa5, sizeof(exact));
		memset(large, 0xa5, sizeof(large));
		REQUIRE_RESULT(adapter->GetProperty(property, size, nullptr), E_POINTER);
		REQUIRE_RESULT(adapter->GetProperty(property, size - 1, exact), E_INVALIDARG);
		REQUIRE_RESULT(adapter->GetProperty(property, 0, exact), E_INVALIDARG);
		for (unsigned char byte : exact)
			REQUIRE_EQUAL(byte, 0xa5);
		REQUIRE_OK(adapter->GetProperty(property, size, exact));
		REQUIRE_EQUAL(exact[size], 0xa5);
		REQUIRE_OK(adapter->GetProperty(property, sizeof(large), large));
		REQUIRE(!memcmp(exact, large, size));
		for (size_t i = size; i < sizeof(large); i++)
			REQUIRE_EQUAL(large[i], 0);
		memset(large, 0xa5, sizeof(large));
		REQUIRE_OK(adapter->GetPropertyWithInput(property, 0, nullptr, size, large));
		REQUIRE(!memcmp(exact, large, size));
	}
	size_t size = 77;
	DXCoreAdapterProperty unknown = (DXCoreAdapterProperty)18;

	REQUIRE(!adapter->IsPropertySupported(unknown));
	REQUIRE_RESULT(adapter->GetPropertySize(unknown, &size), DXGI_ERROR_INVALID_CALL);
	REQUIRE_RESULT(adapter->GetProperty(unknown, sizeof(size), &size), DXGI_ERROR_INVALID_CALL);
	REQUIRE_RESULT(adapter->GetPropertyWithInput(unknown, 0, nullptr, sizeof(size), &size),
		       DXGI_ERROR_INVALID_CALL);
	REQUIRE_EQUAL(size, 77);
	return 0;
}

// The answers are those of D3DKMTQueryAdapterInfo.
static int test_property_values()
{
	D3DKMT_QUERY_DEVICE_IDS ids = {};
	DXCoreHardwareIDParts parts;
	DXCoreHardwareID id;
	uint64_t memory[3], value64, version = 0;
	uint32_t type = 0, model = 0, value;
	static uint16_t units[4096];
	char description[64];
	Adapter adapter;
	List list;
	bool flag;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	Kmt kmt(luid_of(adapter));
	REQUIRE(kmt.ask(31, &ids, sizeof(ids)));
	REQUIRE(kmt.ask(15, &type, sizeof(type)));
	REQUIRE(kmt.ask(13, &model, sizeof(model)));
	REQUIRE(kmt.ask(3, memory, sizeof(memory)));
	REQUIRE(kmt.ask(49, &version, sizeof(version)));
	REQUIRE(kmt.ask(65, units, sizeof(units)));

	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::HardwareIDParts, &parts));
	REQUIRE_EQUAL(parts.vendorID, ids.DeviceIds.VendorID);
	REQUIRE(parts.vendorID != 0);
	REQUIRE_EQUAL(parts.deviceID, ids.DeviceIds.DeviceID);
	REQUIRE_EQUAL(parts.subSystemID, ids.DeviceIds.SubSystemID);
	REQUIRE_EQUAL(parts.subVendorID, ids.DeviceIds.SubVendorID);
	REQUIRE_EQUAL(parts.revisionID, ids.DeviceIds.RevisionID);
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::HardwareID, &id));
	REQUIRE_EQUAL(id.vendorID, parts.vendorID);
	REQUIRE_EQUAL(id.deviceID, parts.deviceID);
	REQUIRE_EQUAL(id.revision, parts.revisionID);
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::DriverVersion, &value64));
	REQUIRE_EQUAL(value64, version);
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::KmdModelVersion, &value));
	REQUIRE_EQUAL(value, model);
	for (uint32_t i = 0; i < 3; i++) {
		DXCoreAdapterProperty property = (DXCoreAdapterProperty)(7 + i);

		REQUIRE_OK(adapter->GetProperty(property, &value64));
		REQUIRE_EQUAL(value64, memory[i]);
	}
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::DriverDescription,
					sizeof(description), description));
	for (size_t i = 0; i <= strlen(description); i++)
		REQUIRE_EQUAL((unsigned char)description[i], units[i]);
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::IsHardware, &flag));
	REQUIRE_EQUAL(flag, !(type & 4));
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::AcgCompatible, &flag));
	REQUIRE_EQUAL(flag, type >> 8 & 1);
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::IsDetachable, &flag));
	REQUIRE_EQUAL(flag, type >> 10 & 1);
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::PhysicalAdapterCount, &value));
	REQUIRE_EQUAL(value, 1);
	return 0;
}

static int test_engines()
{
	const DXCoreAdapterProperty count_of = DXCoreAdapterProperty::AdapterEngineCount;
	const DXCoreAdapterProperty name_of = DXCoreAdapterProperty::AdapterEngineName;
	static const wchar_t *const names[] = { L"3D", L"Compute", L"Copy", L"Paging" };
	uint32_t index = 0, count = 0;
	Adapter adapter;
	List list;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	REQUIRE_OK(adapter->GetPropertyWithInput(count_of, &index, &count));
	REQUIRE_EQUAL(count, 4);
	REQUIRE_RESULT(adapter->GetPropertyWithInput(count_of, 3, &index, 4, &count), E_INVALIDARG);
	REQUIRE_RESULT(adapter->GetPropertyWithInput(count_of, 4, &index, 3, &count), E_INVALIDARG);
	REQUIRE_RESULT(adapter->GetPropertyWithInput(count_of, 4, &index, 4, nullptr), E_POINTER);
	index = 1;
	REQUIRE_RESULT(adapter->GetPropertyWithInput(count_of, &index, &count), E_INVALIDARG);
	for (uint32_t engine = 0; engine < 4; engine++) {
		DXCoreEngineNamePropertyInput input = { { 0, engine }, 0, nullptr };
		DXCoreEngineNamePropertyOutput output = {};
		wchar_t name[16];

		REQUIRE_OK(adapter->GetPropertyWithInput(name_of, &input, &output));
		REQUIRE_EQUAL(output.engineNameLength, wcslen(names[engine]) + 1);
		wmemset(name, L'?', 16);
		input.engineName = name;
		input.engineNameLength = output.engineNameLength - 1;
		REQUIRE_RESULT(adapter->GetPropertyWithInput(name_of, &input, &output), E_INVALIDARG);
		REQUIRE_EQUAL(name[0], L'?');
		input.engineNameLength++;
		REQUIRE_OK(adapter->GetPropertyWithInput(name_of, &input, &output));
		REQUIRE(!wcscmp(name, names[engine]));
		REQUIRE_EQUAL(name[output.engineNameLength], L'?');
		input.adapterEngineIndex.engineIndex += 4;
		REQUIRE_RESULT(adapter->GetPropertyWithInput(name_of, &input, &output), E_INVALIDARG);
	}
	return 0;
}

static int test_states()
{
	static const size_t sizes[] = { 1, 32, 16, 24, 8, 16, 4, 4, 8, 24, 24 };
	unsigned char input[64] = {}, output[64];
	Adapter adapter;
	List list;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	for (uint32_t number = 0; number < 11; number++) {
		DXCoreAdapterState state = (DXCoreAdapterState)number;
		const bool supported = adapter->IsQueryStateSupported(state);
		const size_t size = sizes[number];

		memset(output, 0xa5, sizeof(output));
		REQUIRE_RESULT(adapter->QueryState(state, 64, input, size, nullptr), E_POINTER);
		REQUIRE_RESULT(adapter->QueryState(state, 64, input, size - 1, output), E_INVALIDARG);
		if (number != 0 && number != 7) {
			REQUIRE_RESULT(adapter->QueryState(state, 64, nullptr, size, output), E_POINTER);
			REQUIRE_RESULT(adapter->QueryState(state, 3, input, size, output), E_INVALIDARG);
		}
		for (unsigned char byte : output)
			REQUIRE_EQUAL(byte, 0xa5);
		REQUIRE_RESULT(adapter->QueryState(state, 64, input, size, output),
			       supported ? S_OK : DXGI_ERROR_UNSUPPORTED);
		REQUIRE_EQUAL(output[size], 0xa5);
		if (number != 1) {
			REQUIRE(!adapter->IsSetStateSupported(state));
			REQUIRE_RESULT(adapter->SetState(state, 64, input, 64, input),
				       DXGI_ERROR_UNSUPPORTED);
		}
	}
	uint8_t updating = 1;

	REQUIRE(adapter->IsQueryStateSupported(DXCoreAdapterState::IsDriverUpdateInProgress));
	REQUIRE_OK(adapter->QueryState(DXCoreAdapterState::IsDriverUpdateInProgress, &updating));
	REQUIRE_EQUAL(updating, 0);

	// Who can reserve has a budget.
	const DXCoreAdapterState budget = DXCoreAdapterState::AdapterMemoryBudget;
	const bool supported = adapter->IsSetStateSupported(budget);

	REQUIRE(!supported || adapter->IsQueryStateSupported(budget));
	REQUIRE_RESULT(adapter->SetState(budget, 8, input, 8, nullptr), E_POINTER);
	REQUIRE_RESULT(adapter->SetState(budget, 8, nullptr, 8, input), E_POINTER);
	REQUIRE_RESULT(adapter->SetState(budget, 8, input, 7, input), E_INVALIDARG);
	REQUIRE_RESULT(adapter->SetState(budget, 7, input, 8, input), E_INVALIDARG);
	REQUIRE_RESULT(adapter->SetState(budget, 8, input, 8, input),
		       supported ? S_OK : DXGI_ERROR_UNSUPPORTED);

	DXCoreAdapterState unknown = (DXCoreAdapterState)11;
	REQUIRE(!adapter->IsQueryStateSupported(unknown) && !adapter->IsSetStateSupported(unknown));
	REQUIRE_RESULT(adapter->QueryState(unknown, 64, input, 64, output), DXGI_ERROR_INVALID_CALL);
	REQUIRE_RESULT(adapter->SetState(unknown, 64, input, 64, input), DXGI_ERROR_INVALID_CALL);
	return 0;
}

static int test_sort()
{
	DXCoreAdapterPreference preferences[] = {
		DXCoreAdapterPreference::Hardware,
		(DXCoreAdapterPreference)77,
		DXCoreAdapterPreference::HighPerformance,
	};
	Adapter first, again;
	List list;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, first.out()));
	for (uint32_t preference = 0; preference < 4; preference++)
		REQUIRE_EQUAL(list->IsAdapterPreferenceSupported((DXCoreAdapterPreference)preference),
			      preference < 3);
	REQUIRE_RESULT(list->Sort(0, preferences), E_INVALIDARG);
	REQUIRE_RESULT(list->Sort(1, nullptr), E_INVALIDARG);
	REQUIRE_OK(list->Sort(3, preferences));
	REQUIRE_OK(list->Sort(1, preferences + 1));
	// Adapters that are equally good keep their places.
	REQUIRE_OK(list->GetAdapter(0, again.out()));
	REQUIRE(again.it == first.it);
	return 0;
}

static int test_out_of_memory()
{
	int succeed = 0;

	for (;; succeed++) {
		List list;

		list.it = (IDXCoreAdapterList *)&list;
		const GUID attribute = DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS;
		allocations = succeed;
		HRESULT result = factory->CreateAdapterList(1, &attribute, IID_IDXCoreAdapterList,
							    (void **)&list.it);
		allocations = -1;
		if (result == S_OK) {
			REQUIRE(list->GetAdapterCount() >= 1);
			break;
		}
		REQUIRE_RESULT(result, E_OUTOFMEMORY);
		REQUIRE(!list.it);
	}
	// The list, its array, the adapter, its description, and its engines.
	REQUIRE(succeed >= 5);
	return 0;
}

static const struct tap_test tests[] = {
	{ "there is one factory, and it follows the rules of COM", test_factory },
	{ "lists hold the adapters with all attributes", test_lists },
	{ "lists by workload", test_workloads },
	{ "an adapter is one object; D3DKMTOpenAdapterFromLuid takes its LUID", test_identity },
	{ "every property with right and wrong sizes", test_property_sizes },
	{ "properties are what the driver says", test_property_values },
	{ "engines are counted and named", test_engines },
	{ "every state with right and wrong sizes", test_states },
	{ "sorting", test_sort },
	{ "memory that is not there is E_OUTOFMEMORY", test_out_of_memory },
};

int main()
{
	return tap_run(tests, sizeof(tests) / sizeof(*tests));
}
