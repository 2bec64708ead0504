// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A client in C: only the installed header and -ld3dkmt. Every status is the
 * exact NTSTATUS.
 */
#include <d3dkmt.h>
#include <dxg/status.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../examples/fdpass.h"
#include "d3dkmt-tap.h"

/* Where test_device_names makes an adapter. */
#define COMPUTE_ONLY "/sys/kernel/config/opendxg/c-client"

static D3DKMT_HANDLE adapter, device;

/* Opens the first adapter and makes a device. */
static int open_device(void)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { 0 };
	D3DKMT_OPENADAPTERFROMLUID open = { 0 };
	D3DKMT_CREATEDEVICE create = { 0 };
	D3DKMT_CLOSEADAPTER close = { 0 };
	unsigned int i;

	enumerate.NumAdapters = 16;
	enumerate.pAdapters = (__u64)(uintptr_t)infos;
	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&enumerate));
	REQUIRE(enumerate.NumAdapters >= 1);
	open.AdapterLuid = infos[0].AdapterLuid;
	REQUIRE_SUCCESS(D3DKMTOpenAdapterFromLuid(&open));
	for (i = 0; i < enumerate.NumAdapters; i++) {
		close.hAdapter = infos[i].hAdapter;
		REQUIRE_SUCCESS(D3DKMTCloseAdapter(&close));
	}
	adapter = open.hAdapter;
	create.hAdapter = adapter;
	REQUIRE_SUCCESS(D3DKMTCreateDevice(&create));
	device = create.hDevice;
	return 0;
}

static int test_enumerate(void)
{
	D3DKMT_ENUMADAPTERS2 count = { 0 };
	D3DKMT_ENUMADAPTERS3 count3 = { 0 };

	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&count));
	REQUIRE(count.NumAdapters >= 1 && count.NumAdapters <= 16);
	count3.Filter = D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly;
	REQUIRE_SUCCESS(D3DKMTEnumAdapters3(&count3));
	REQUIRE_EQUAL(count3.NumAdapters, count.NumAdapters);
	REQUIRE_STATUS(D3DKMTEnumAdapters2(NULL), STATUS_INVALID_PARAMETER);
	return open_device();
}

/* Writes a word to an attribute of the software adapter of test_device_names. */
static int configure(const char *attribute, const char *word)
{
	char path[96];
	FILE *file;
	int bad;

	snprintf(path, sizeof(path), "%s/%s", COMPUTE_ONLY, attribute);
	file = fopen(path, "w");
	REQUIRE(file);
	bad = fputs(word, file) < 0;
	REQUIRE(!fclose(file) && !bad);
	return 0;
}

/* The name of an adapter is its GUID, with or without a prefix. */
static int open_by_guid(const D3DKMT_ADAPTERINFO *info)
{
	D3DKMT_QUERY_ADAPTER_UNIQUE_GUID guid = { 0 };
	D3DKMT_QUERYADAPTERINFO query = {
		.hAdapter = info->hAdapter,
		.Type = KMTQAITYPE_QUERY_ADAPTER_UNIQUE_GUID,
		.pPrivateDriverData = (uintptr_t)&guid,
		.PrivateDriverDataSize = sizeof(guid),
	};
	__u16 name[48] = { '\\', '\\', '?', '\\' };
	int prefix;

	REQUIRE_SUCCESS(D3DKMTQueryAdapterInfo(&query));
	memcpy(name + 4, guid.AdapterUniqueGUID, sizeof(guid.AdapterUniqueGUID));
	for (prefix = 0; prefix <= 4; prefix += 4) {
		D3DKMT_OPENADAPTERFROMDEVICENAME open = { .pDeviceName = (uintptr_t)(name + prefix) };
		D3DKMT_CLOSEADAPTER close = { 0 };

		REQUIRE_SUCCESS(D3DKMTOpenAdapterFromDeviceName(&open));
		REQUIRE(!memcmp(&open.AdapterLuid, &info->AdapterLuid, sizeof(open.AdapterLuid)));
		close.hAdapter = open.hAdapter;
		REQUIRE_SUCCESS(D3DKMTCloseAdapter(&close));
	}
	return 0;
}

/* Every adapter has a name, also one that D3DKMTEnumAdapters2 leaves out, if root makes one. */
static int device_names(void)
{
	static const __u16 unknown[] = { '\\', '\\', '?', '\\', 'x', 0 };
	D3DKMT_OPENADAPTERFROMDEVICENAME open = { .pDeviceName = (uintptr_t)unknown };
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS3 enumerate = {
		.Filter = D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly,
		.NumAdapters = 16,
		.pAdapters = (uintptr_t)infos,
	};
	D3DKMT_ENUMADAPTERS2 graphics = { 0 };
	D3DKMT_CLOSEADAPTER close = { 0 };
	unsigned int i;

	REQUIRE_STATUS(D3DKMTOpenAdapterFromDeviceName(&open), STATUS_INVALID_PARAMETER);
	if (!geteuid()) {
		REQUIRE(!mkdir(COMPUTE_ONLY, 0755));
		if (configure("compute_only", "1") || configure("enabled", "1"))
			return -1;
	}
	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&graphics));
	REQUIRE_SUCCESS(D3DKMTEnumAdapters3(&enumerate));
	REQUIRE_EQUAL(enumerate.NumAdapters, graphics.NumAdapters + !geteuid());
	for (i = 0; i < enumerate.NumAdapters; i++) {
		if (open_by_guid(&infos[i]))
			return -1;
		close.hAdapter = infos[i].hAdapter;
		REQUIRE_SUCCESS(D3DKMTCloseAdapter(&close));
	}
	return 0;
}

static int test_device_names(void)
{
	int result = device_names();

	rmdir(COMPUTE_ONLY);
	return result;
}

/* There are no displays: whatever is asked for is not there. */
static int test_display_names(void)
{
	static const char *const names[] = {
		"", "DISPLAY1", "\\\\.\\DISPLAY1", "\\\\.\\DISPLAY99",
	};
	D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME open;
	size_t i, j;

	REQUIRE_STATUS(D3DKMTOpenAdapterFromGdiDisplayName(NULL), STATUS_UNSUCCESSFUL);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		memset(&open, 0, sizeof(open));
		for (j = 0; names[i][j]; j++)
			open.DeviceName[j] = (unsigned char)names[i][j];
		open.hAdapter = 7;
		REQUIRE_STATUS(D3DKMTOpenAdapterFromGdiDisplayName(&open), STATUS_UNSUCCESSFUL);
		REQUIRE_EQUAL(open.hAdapter, 7);
	}
	return 0;
}

static int test_query(void)
{
	__u32 version = 0, ids[7] = { 0 };
	D3DKMT_QUERYADAPTERINFO query = { 0 };

	query.hAdapter = adapter;
	query.Type = KMTQAITYPE_DRIVERVERSION;
	query.pPrivateDriverData = (__u64)(uintptr_t)&version;
	query.PrivateDriverDataSize = sizeof(version);
	REQUIRE_SUCCESS(D3DKMTQueryAdapterInfo(&query));
	REQUIRE(version >= 2800);
	query.Type = KMTQAITYPE_PHYSICALADAPTERDEVICEIDS;
	query.pPrivateDriverData = (__u64)(uintptr_t)ids;
	query.PrivateDriverDataSize = sizeof(ids);
	REQUIRE_SUCCESS(D3DKMTQueryAdapterInfo(&query));
	REQUIRE(ids[1] != 0);
	query.PrivateDriverDataSize = sizeof(ids) - 1;
	REQUIRE_STATUS(D3DKMTQueryAdapterInfo(&query), STATUS_INVALID_PARAMETER);
	return 0;
}

static int test_context(void)
{
	D3DKMT_CREATECONTEXTVIRTUAL create = { 0 };
	D3DKMT_DESTROYCONTEXT destroy = { 0 };
	D3DKMT_GETDEVICESTATE state = { 0 };

	create.hDevice = device;
	REQUIRE_SUCCESS(D3DKMTCreateContextVirtual(&create));
	destroy.hContext = create.hContext;
	REQUIRE_SUCCESS(D3DKMTDestroyContext(&destroy));
	REQUIRE_STATUS(D3DKMTDestroyContext(&destroy), STATUS_INVALID_PARAMETER);
	state.hDevice = device;
	state.StateType = D3DKMT_DEVICESTATE_EXECUTION;
	REQUIRE_SUCCESS(D3DKMTGetDeviceState(&state));
	REQUIRE_EQUAL(state.ExecutionState, D3DKMT_DEVICEEXECUTION_ACTIVE);
	return 0;
}

/* A monitored fence as this program sees it. */
struct fence {
	D3DKMT_HANDLE handle;
	const volatile __u64 *value;
};

static int create_fence(struct fence *fence, __u64 value, __u32 flags)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { 0 };

	create.hDevice = device;
	create.Info.Type = D3DDDI_MONITORED_FENCE;
	create.Info.Flags = flags;
	create.Info.MonitoredFence.InitialFenceValue = value;
	REQUIRE_SUCCESS(D3DKMTCreateSynchronizationObject2(&create));
	fence->handle = create.hSyncObject;
	fence->value = (const volatile __u64 *)(uintptr_t)
			       create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	return 0;
}

static int destroy(D3DKMT_HANDLE handle)
{
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = { .hSyncObject = handle };

	REQUIRE_SUCCESS(D3DKMTDestroySynchronizationObject(&destroy));
	return 0;
}

static NTSTATUS signal_fences(const D3DKMT_HANDLE *handles, const __u64 *values,
			      unsigned int count, __u32 flags)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = { 0 };

	args.hDevice = device;
	args.ObjectCount = count;
	args.ObjectHandleArray = (__u64)(uintptr_t)handles;
	args.FenceValueArray = (__u64)(uintptr_t)values;
	args.Flags = flags;
	return D3DKMTSignalSynchronizationObjectFromCpu(&args);
}

static NTSTATUS signal_fence(D3DKMT_HANDLE handle, __u64 value)
{
	return signal_fences(&handle, &value, 1, 0);
}

static NTSTATUS wait_fences(const D3DKMT_HANDLE *handles, const __u64 *values,
			    unsigned int count, __u32 flags, int event)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = { 0 };

	args.hDevice = device;
	args.ObjectCount = count;
	args.ObjectHandleArray = (__u64)(uintptr_t)handles;
	args.FenceValueArray = (__u64)(uintptr_t)values;
	args.hAsyncEvent = event;
	args.Flags = flags;
	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

static NTSTATUS wait_fence(D3DKMT_HANDLE handle, __u64 value, int event)
{
	return wait_fences(&handle, &value, 1, 0, event);
}

/* The count of an eventfd, 0 if it has none. */
static __u64 take(int event)
{
	__u64 count = 0;

	return read(event, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static int test_values(void)
{
	static const __u64 initial[] = { 0, 1, 1ULL << 63, ~0ULL };
	struct fence fence;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		if (create_fence(&fence, initial[i], 0))
			return -1;
		REQUIRE_EQUAL(*fence.value, initial[i]);
		if (destroy(fence.handle))
			return -1;
	}
	if (create_fence(&fence, 5, 0))
		return -1;
	REQUIRE_STATUS(signal_fence(fence.handle, 4), STATUS_INVALID_PARAMETER);
	REQUIRE_EQUAL(*fence.value, 5);
	REQUIRE_SUCCESS(signal_fence(fence.handle, 6));
	REQUIRE_EQUAL(*fence.value, 6);
	REQUIRE_SUCCESS(wait_fence(fence.handle, 6, 0));
	return destroy(fence.handle);
}

static int test_events(void)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), memory;
	struct fence fences[2];
	D3DKMT_HANDLE handles[2];
	__u64 values[2] = { 1, 1 };

	if (create_fence(&fences[0], 0, 0) || create_fence(&fences[1], 0, 0))
		return -1;
	handles[0] = fences[0].handle;
	handles[1] = fences[1].handle;
	REQUIRE_SUCCESS(wait_fence(handles[0], 0, event));
	REQUIRE_EQUAL(take(event), 1);
	REQUIRE_SUCCESS(wait_fences(handles, values, 2, 0, event));
	REQUIRE_SUCCESS(wait_fences(handles, values, 2,
				    D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS_WaitAny,
				    event));
	REQUIRE_EQUAL(take(event), 0);
	REQUIRE_SUCCESS(signal_fence(handles[1], 1));
	REQUIRE_EQUAL(take(event), 1);
	REQUIRE_SUCCESS(signal_fence(handles[0], 1));
	REQUIRE_EQUAL(take(event), 1);
	values[0] = values[1] = 9;
	REQUIRE_SUCCESS(signal_fences(handles, values, 2, 0));
	REQUIRE_EQUAL(*fences[0].value + *fences[1].value, 18);

	memory = open("/dev/null", O_RDONLY | O_CLOEXEC);
	REQUIRE_STATUS(wait_fence(handles[0], 99, memory), STATUS_OBJECT_TYPE_MISMATCH);
	close(memory);
	REQUIRE_STATUS(wait_fence(handles[0], 99, memory), STATUS_INVALID_HANDLE);
	close(event);
	return destroy(handles[0]) || destroy(handles[1]) ? -1 : 0;
}

static void *wait_in_thread(void *argument)
{
	struct fence *fence = argument;

	return (void *)(uintptr_t)(wait_fence(fence->handle, 2, 0) == 0 && *fence->value == 2);
}

static int test_blocking(void)
{
	struct fence fence;
	pthread_t thread;
	void *good;

	if (create_fence(&fence, 0, 0))
		return -1;
	REQUIRE(!pthread_create(&thread, NULL, wait_in_thread, &fence));
	REQUIRE_SUCCESS(signal_fence(fence.handle, 1));
	REQUIRE_SUCCESS(signal_fence(fence.handle, 2));
	REQUIRE(!pthread_join(thread, &good));
	REQUIRE(good != NULL);
	return destroy(fence.handle);
}

/* The other process: opens the fence it is sent and answers with values. */
static int answer(int socket)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = { 0 };
	int fd = receive_fd(socket);

	REQUIRE(fd >= 0);
	if (open_device())
		return -1;
	open.hNtHandle = fd;
	open.hDevice = device;
	REQUIRE_SUCCESS(D3DKMTOpenSyncObjectFromNtHandle2(&open));
	close(fd);
	REQUIRE_SUCCESS(wait_fence(open.hSyncObject, 11, 0));
	REQUIRE_SUCCESS(signal_fence(open.hSyncObject, 12));
	return destroy(open.hSyncObject);
}

static int test_share(void)
{
	__u32 flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared |
		      D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing;
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = { 0 };
	int sockets[2], status, event;
	struct fence fence;
	HANDLE shared = 0;
	pid_t child;

	if (create_fence(&fence, 10, flags))
		return -1;
	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets));
	child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		if (answer(sockets[1])) {
			fprintf(stderr, "%s\n", tap_text);
			_exit(1);
		}
		_exit(0);
	}
	REQUIRE_SUCCESS(D3DKMTShareObjects(1, &fence.handle, NULL, 0x1f0003, &shared));
	REQUIRE(shared > 0 && fcntl((int)shared, F_GETFD) == FD_CLOEXEC);
	REQUIRE(!send_fd(sockets[0], (int)shared));
	REQUIRE_SUCCESS(signal_fence(fence.handle, 11));
	REQUIRE_SUCCESS(wait_fence(fence.handle, 12, 0));
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);

	event = eventfd(0, EFD_CLOEXEC);
	open.hDevice = device;
	open.hNtHandle = event;
	REQUIRE_STATUS(D3DKMTOpenSyncObjectFromNtHandle2(&open), STATUS_OBJECT_TYPE_MISMATCH);
	close(event);
	REQUIRE_STATUS(D3DKMTOpenSyncObjectFromNtHandle2(&open), STATUS_INVALID_HANDLE);
	close((int)shared);
	close(sockets[0]);
	close(sockets[1]);
	return destroy(fence.handle);
}

static int test_rights(void)
{
	struct fence no_signal, no_wait;

	if (create_fence(&no_signal, 1, D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignal) ||
	    create_fence(&no_wait, 1, D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoWait))
		return -1;
	REQUIRE_STATUS(signal_fence(no_signal.handle, 2), STATUS_ACCESS_DENIED);
	REQUIRE_STATUS(wait_fence(no_wait.handle, 1, 0), STATUS_ACCESS_DENIED);
	return destroy(no_signal.handle) || destroy(no_wait.handle) ? -1 : 0;
}

static int test_global(void)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { 0 };
	D3DKMT_OPENSYNCHRONIZATIONOBJECT open = { 0 };

	create.hDevice = device;
	create.Info.Type = D3DDDI_SEMAPHORE;
	create.Info.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared;
	create.Info.Semaphore.MaxCount = 4;
	REQUIRE_SUCCESS(D3DKMTCreateSynchronizationObject2(&create));
	open.hSharedHandle = create.Info.SharedHandle;
	REQUIRE_SUCCESS(D3DKMTOpenSynchronizationObject(&open));
	if (destroy(create.hSyncObject) || destroy(open.hSyncObject))
		return -1;
	REQUIRE_STATUS(D3DKMTOpenSynchronizationObject(&open), STATUS_INVALID_PARAMETER);
	return 0;
}

static int test_fork(void)
{
	int status;
	pid_t child = fork();

	REQUIRE(child >= 0);
	if (!child) {
		D3DKMT_GETDEVICESTATE state = { 0 };

		state.hDevice = device;
		state.StateType = D3DKMT_DEVICESTATE_EXECUTION;
		/* The parent's handle means nothing, before and after opening again. */
		if (D3DKMTGetDeviceState(&state) == 0 || open_device())
			_exit(1);
		state.hDevice = device;
		_exit(D3DKMTGetDeviceState(&state) == 0 ? 0 : 2);
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE_EQUAL(status, 0);
	return test_context();
}

static int test_close(void)
{
	D3DKMT_DESTROYDEVICE destroy_device = { .hDevice = device };
	D3DKMT_CLOSEADAPTER close_adapter = { .hAdapter = adapter };

	REQUIRE_SUCCESS(D3DKMTDestroyDevice(&destroy_device));
	REQUIRE_STATUS(D3DKMTDestroyDevice(&destroy_device), STATUS_INVALID_PARAMETER);
	REQUIRE_SUCCESS(D3DKMTCloseAdapter(&close_adapter));
	REQUIRE_STATUS(D3DKMTCloseAdapter(&close_adapter), STATUS_INVALID_PARAMETER);
	REQUIRE_STATUS(D3DKMTCloseAdapter(NULL), STATUS_INVALID_PARAMETER);
	return 0;
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "ABI-7 C: adapters and a device", test_enumerate },
		{ "ABI-7 C: what an adapter tells", test_query },
		{ "ABI-7 C: displays that do not exist", test_display_names },
		{ "ABI-7 C: the names of all adapters", test_device_names },
		{ "ABI-7 C: a context and the state of the device", test_context },
		{ "FEN-1 FEN-31 C: values are read through the address", test_values },
		{ "FEN-20 FEN-21 C: waits with an event, any and all", test_events },
		{ "FEN-19 C: a blocking wait", test_blocking },
		{ "RES-14 C: a fence shared with another process", test_share },
		{ "FEN-25 FEN-37 C: rights of an opening", test_rights },
		{ "RES-9 RES-10 C: a global handle", test_global },
		{ "RES-8 C: after a fork", test_fork },
		{ "FEN-52 C: closing everything", test_close },
	};

	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
