// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A client without a library: the headers and ioctl(2). Built for 64 and for
 * 32 bits; a 32-bit process sends the same bytes (abi.md section 2.3).
 */
#include <dxg/d3dkmthk.h>
#include <dxg.h>
#include <dxg/status.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "tap.h"

_Static_assert(sizeof(D3DKMT_CREATESYNCHRONIZATIONOBJECT2) == 96, "layout");
_Static_assert(sizeof(D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU) == 40, "layout");
_Static_assert(sizeof(D3DKMT_SHAREOBJECTS) == 40, "layout");
_Static_assert((unsigned int)DXG_EXACT(DXG_IOCTL_CLOSEADAPTER) == 0xc0046715, "code");
_Static_assert(sizeof(struct opendxg_fence_point) == 24, "layout");
_Static_assert(sizeof(struct opendxg_fence_stream) == 24, "layout");

#define ADDRESS(pointer) ((__u64)(uintptr_t)(pointer))
#define CALL(code, args) ioctl(node, code, args)
#define REQUIRE_CALL(code, args) REQUIRE_EQUAL(CALL(code, args), 0)

static int node;
static D3DKMT_HANDLE adapter, device;

static int test_open(void)
{
	struct opendxg_version version = { 0 };
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = ADDRESS(infos) };
	D3DKMT_CREATEDEVICE create = { 0 };
	const char *path = getenv("OPENDXG_DEVICE");

	node = open(path ? path : "/dev/dxg", O_RDONLY | O_CLOEXEC);
	REQUIRE(node >= 0);
	REQUIRE_CALL(DXG_IOCTL_VERSION, &version);
	REQUIRE_EQUAL(version.version, OPENDXG_VERSION);
	REQUIRE_CALL(DXG_IOCTL_NOP, NULL);
	REQUIRE_CALL(DXG_IOCTL_ENUMADAPTERS2, &enumerate);
	REQUIRE(enumerate.NumAdapters >= 1 && infos[0].hAdapter);
	adapter = infos[0].hAdapter;
	create.hAdapter = adapter;
	REQUIRE_CALL(DXG_IOCTL_CREATEDEVICE, &create);
	device = create.hDevice;
	return 0;
}

/* Makes a monitored fence that can be shared. */
static int create_fence(D3DKMT_HANDLE *handle, const volatile __u64 **value, __u64 first)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = device };

	create.Info.Type = D3DDDI_MONITORED_FENCE;
	create.Info.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared |
			    D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing;
	create.Info.MonitoredFence.InitialFenceValue = first;
	REQUIRE_CALL(DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2, &create);
	/* The address fits a pointer of this process. */
	REQUIRE_EQUAL(create.Info.MonitoredFence.FenceValueCPUVirtualAddress,
		      (uintptr_t)create.Info.MonitoredFence.FenceValueCPUVirtualAddress);
	*handle = create.hSyncObject;
	*value = (const volatile __u64 *)(uintptr_t)
			 create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	return 0;
}

static int test_fence(void)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = { .hDevice = device, .ObjectCount = 1 };
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = { .hDevice = device, .ObjectCount = 1 };
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	__u64 number = 0xffffffff00000001ULL, count = 0;
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy;
	const volatile __u64 *value;
	D3DKMT_HANDLE handle;

	if (create_fence(&handle, &value, 0x8000000000000001ULL))
		return -1;
	REQUIRE_EQUAL(*value, 0x8000000000000001ULL);
	signal.ObjectHandleArray = wait.ObjectHandleArray = ADDRESS(&handle);
	signal.FenceValueArray = wait.FenceValueArray = ADDRESS(&number);
	wait.hAsyncEvent = event;
	REQUIRE_CALL(DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU, &wait);
	REQUIRE(read(event, &count, 8) == -1 && errno == EAGAIN);
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU, &signal);
	REQUIRE_EQUAL(*value, number);
	REQUIRE(read(event, &count, 8) == 8 && count == 1);
	wait.hAsyncEvent = 0;
	REQUIRE_CALL(DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU, &wait);
	number--;
	REQUIRE(CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU, &signal) == -1 && errno == EINVAL);
	close(event);
	destroy.hSyncObject = handle;
	REQUIRE_CALL(DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT, &destroy);
	return 0;
}

static int test_share(void)
{
	D3DKMT_SHAREOBJECTS share = { .ObjectCount = 1, .DesiredAccess = 0x1f0003 };
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = { .hDevice = device };
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy;
	struct opendxg_fence_point point = { .value = 7 };
	struct opendxg_fence_stream stream = { .value = 6 };
	__u64 present = 0;
	const volatile __u64 *value;
	struct pollfd poll_point;
	D3DKMT_HANDLE handle;
	__u64 shared = 0;

	if (create_fence(&handle, &value, 7))
		return -1;
	share.ObjectHandleArray = ADDRESS(&handle);
	share.pSharedNtHandle = ADDRESS(&shared);
	REQUIRE_CALL(DXG_IOCTL_SHAREOBJECTS, &share);
	REQUIRE(shared > 0 && shared < 1024);
	open.hNtHandle = shared;
	REQUIRE_CALL(DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE2, &open);
	REQUIRE_EQUAL(*(const volatile __u64 *)(uintptr_t)
			       open.MonitoredFence.FenceValueCPUVirtualAddress, 7);
	point.sync_object = open.hSyncObject;
	REQUIRE_CALL(DXG_IOCTL_FENCE_POINT, &point);
	poll_point.fd = point.fd;
	poll_point.events = POLLIN;
	REQUIRE(poll(&poll_point, 1, 0) == 1 && poll_point.revents == POLLIN);
	close(point.fd);
	stream.sync_object = open.hSyncObject;
	REQUIRE_CALL(DXG_IOCTL_FENCE_STREAM, &stream);
	REQUIRE_EQUAL(read(stream.fd, &present, sizeof(present)), 8);
	REQUIRE_EQUAL(present, 7);
	close(stream.fd);
	close((int)shared);
	destroy.hSyncObject = open.hSyncObject;
	REQUIRE_CALL(DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT, &destroy);
	destroy.hSyncObject = handle;
	REQUIRE_CALL(DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT, &destroy);
	return 0;
}

static int test_nt_fence(void)
{
	D3DKMT_SHAREOBJECTS share = { .ObjectCount = 1, .DesiredAccess = 0x1f0003 };
	struct opendxg_signal_nt signal = { .value = 0x8000000000000002ULL };
	struct opendxg_wait_nt wait = { .value = 0x8000000000000002ULL };
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy;
	struct opendxg_value_nt now;
	const volatile __u64 *value;
	D3DKMT_HANDLE handle;
	__u64 shared = 0;
	int fd;

	if (create_fence(&handle, &value, 0x8000000000000001ULL))
		return -1;
	share.ObjectHandleArray = ADDRESS(&handle);
	share.pSharedNtHandle = ADDRESS(&shared);
	REQUIRE_CALL(DXG_IOCTL_SHAREOBJECTS, &share);
	fd = (int)shared;
	REQUIRE_EQUAL(ioctl(fd, DXG_EXACT(DXG_IOCTL_WAIT_NT), &wait), STATUS_TIMEOUT);
	/* Past the first second of the clock, and halfway through what it can tell. */
	wait.deadline = 1000000000ULL;
	REQUIRE_EQUAL(ioctl(fd, DXG_IOCTL_WAIT_NT, &wait), STATUS_TIMEOUT);
	wait.deadline = 0x4000000000000000ULL;
	REQUIRE_EQUAL(ioctl(fd, DXG_EXACT(DXG_IOCTL_SIGNAL_NT), &signal), 0);
	REQUIRE_EQUAL(*value, 0x8000000000000002ULL);
	REQUIRE_EQUAL(ioctl(fd, DXG_EXACT(DXG_IOCTL_WAIT_NT), &wait), 0);
	REQUIRE_EQUAL(ioctl(fd, DXG_IOCTL_VALUE_NT, &now), 0);
	REQUIRE_EQUAL(now.value, 0x8000000000000002ULL);
	signal.value = 2;
	errno = 0;
	REQUIRE(ioctl(fd, DXG_EXACT(DXG_IOCTL_SIGNAL_NT), &signal) == STATUS_INVALID_PARAMETER);
	REQUIRE_EQUAL(errno, 0);
	REQUIRE(ioctl(fd, DXG_IOCTL_SIGNAL_NT, &signal) == -1 && errno == EINVAL);
	signal.flags = OPENDXG_SIGNAL_ALLOW_REWIND;
	REQUIRE_EQUAL(ioctl(fd, DXG_IOCTL_SIGNAL_NT, &signal), 0);
	REQUIRE_EQUAL(*value, 2);
	REQUIRE(ioctl(fd, DXG_IOCTL_SIGNAL_NT, NULL) == -1 && errno == EFAULT);
	close(fd);
	destroy.hSyncObject = handle;
	REQUIRE_CALL(DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT, &destroy);
	return 0;
}

/* Makes a keyed mutex that a global handle leads to, with key 0xffffffff00000001. */
static int create_mutex(D3DKMT_CREATEKEYEDMUTEX2 *create)
{
	create->InitialValue = 0xffffffff00000001ULL;
	REQUIRE_CALL(DXG_IOCTL_CREATEKEYEDMUTEX2, create);
	REQUIRE(create->hKeyedMutex && create->hSharedHandle);
	return 0;
}

static int test_keyed_mutex(void)
{
	D3DKMT_CREATEKEYEDMUTEX2 create = { 0 };
	D3DKMT_OPENKEYEDMUTEX2 open = { 0 };
	D3DKMT_ACQUIREKEYEDMUTEX2 acquire = { 0 };
	D3DKMT_RELEASEKEYEDMUTEX2 release = { .FenceValue = 0x8000000000000005ULL };
	D3DKMT_DESTROYKEYEDMUTEX destroy;
	__s64 none = 0;

	if (create_mutex(&create))
		return -1;
	open.hSharedHandle = create.hSharedHandle;
	REQUIRE_CALL(DXG_IOCTL_OPENKEYEDMUTEX2, &open);
	acquire.hKeyedMutex = release.hKeyedMutex = open.hKeyedMutex;
	acquire.pTimeout = ADDRESS(&none);
	/* Half of the key is not the key. */
	acquire.Key = 1;
	REQUIRE_EQUAL(CALL(DXG_EXACT(DXG_IOCTL_ACQUIREKEYEDMUTEX2), &acquire), STATUS_TIMEOUT);
	acquire.Key = create.InitialValue;
	REQUIRE_CALL(DXG_EXACT(DXG_IOCTL_ACQUIREKEYEDMUTEX2), &acquire);
	release.Key = 1ULL << 32;
	REQUIRE_CALL(DXG_IOCTL_RELEASEKEYEDMUTEX2, &release);
	acquire.hKeyedMutex = release.hKeyedMutex = create.hKeyedMutex;
	acquire.Key = release.Key;
	REQUIRE_CALL(DXG_EXACT(DXG_IOCTL_ACQUIREKEYEDMUTEX2), &acquire);
	REQUIRE_EQUAL(acquire.FenceValue, 0x8000000000000005ULL);
	REQUIRE_CALL(DXG_IOCTL_RELEASEKEYEDMUTEX2, &release);
	destroy.hKeyedMutex = open.hKeyedMutex;
	REQUIRE_CALL(DXG_IOCTL_DESTROYKEYEDMUTEX, &destroy);
	destroy.hKeyedMutex = create.hKeyedMutex;
	REQUIRE_CALL(DXG_IOCTL_DESTROYKEYEDMUTEX, &destroy);
	return 0;
}

static int test_info(void)
{
	D3DKMT_CREATEKEYEDMUTEX2 create = { 0 };
	D3DKMT_DESTROYKEYEDMUTEX destroy;
	struct opendxg_info_item item = { .key = { 1, 2, 3 }, .schema = 1, .size = 6 };
	struct opendxg_set_info set = { .handle_type = OPENDXG_HANDLE_LOCAL, .item_count = 1 };
	struct opendxg_get_info get = { .handle_type = OPENDXG_HANDLE_LOCAL, .max_schema = 9 };
	int event = eventfd(7, EFD_CLOEXEC);
	char bytes[8] = { 0 };
	__u64 count = 0;

	if (create_mutex(&create))
		return -1;
	item.data = ADDRESS("hello");
	item.flags = OPENDXG_INFO_ATTACH_FD;
	item.fd = event;
	set.handle = get.handle = create.hKeyedMutex;
	set.items = ADDRESS(&item);
	REQUIRE_CALL(DXG_IOCTL_SET_INFO, &set);
	close(event);
	memcpy(get.key, item.key, sizeof(get.key));
	get.data = ADDRESS(bytes);
	get.size = sizeof(bytes);
	get.flags = OPENDXG_GET_FD;
	REQUIRE_CALL(DXG_IOCTL_GET_INFO, &get);
	REQUIRE(get.size == 6 && get.schema == 1 && !strcmp(bytes, "hello"));
	REQUIRE_EQUAL(get.generation, set.generation);
	REQUIRE(read(get.fd, &count, 8) == 8 && count == 7);
	close(get.fd);
	destroy.hKeyedMutex = create.hKeyedMutex;
	REQUIRE_CALL(DXG_IOCTL_DESTROYKEYEDMUTEX, &destroy);
	return 0;
}

static int test_global_handle(void)
{
	struct opendxg_allocation_data opened = { 0 }, data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = 8192,
	};
	D3DDDI_ALLOCATIONINFO2 info = { .PrivateDriverDataSize = sizeof(data) };
	D3DKMT_CREATEALLOCATION create = { .hDevice = device, .NumAllocations = 1 };
	D3DKMT_QUERYRESOURCEINFO query = { .hDevice = device };
	D3DDDI_OPENALLOCATIONINFO2 found = { 0 };
	D3DKMT_OPENRESOURCE open = { .hDevice = device, .NumAllocations = 1 };
	D3DKMT_DESTROYALLOCATION2 destroy = { .hDevice = device };

	info.pPrivateDriverData = ADDRESS(&data);
	create.pAllocationInfo2 = ADDRESS(&info);
	create.Flags = D3DKMT_CREATEALLOCATIONFLAGS_CreateResource |
		       D3DKMT_CREATEALLOCATIONFLAGS_CreateShared;
	REQUIRE_CALL(DXG_IOCTL_CREATEALLOCATION, &create);
	REQUIRE(create.hGlobalShare);
	query.hGlobalShare = open.hGlobalShare = create.hGlobalShare;
	REQUIRE_CALL(DXG_IOCTL_QUERYRESOURCEINFO, &query);
	REQUIRE_EQUAL(query.NumAllocations, 1);
	REQUIRE_EQUAL(query.TotalPrivateDriverDataSize, sizeof(data));
	open.pOpenAllocationInfo2 = ADDRESS(&found);
	open.pTotalPrivateDriverDataBuffer = ADDRESS(&opened);
	open.TotalPrivateDriverDataBufferSize = sizeof(opened);
	REQUIRE_CALL(DXG_IOCTL_OPENRESOURCE, &open);
	REQUIRE(open.hResource && open.hResource != create.hResource && found.hAllocation);
	REQUIRE_EQUAL(found.pPrivateDriverData, ADDRESS(&opened));
	REQUIRE_EQUAL(opened.size, 8192);
	destroy.hResource = open.hResource;
	REQUIRE_CALL(DXG_IOCTL_DESTROYALLOCATION2, &destroy);
	destroy.hResource = create.hResource;
	REQUIRE_CALL(DXG_IOCTL_DESTROYALLOCATION2, &destroy);
	return 0;
}

static int test_sync_file(void)
{
	D3DKMT_CREATESYNCFILE file = { .hDevice = device, .FenceValue = 0x8000000000000007ULL };
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy;
	const volatile __u64 *value;
	struct pollfd poll_file;

	if (create_fence(&file.hMonitoredFence, &value, 0x8000000000000007ULL))
		return -1;
	REQUIRE_CALL(DXG_IOCTL_CREATESYNCFILE, &file);
	REQUIRE(file.hSyncFile > 0 && file.hSyncFile < 1024);
	poll_file.fd = (int)file.hSyncFile;
	poll_file.events = POLLIN;
	REQUIRE(poll(&poll_file, 1, 0) == 1 && poll_file.revents == POLLIN);
	close(poll_file.fd);
	/* Nobody has promised that. */
	file.FenceValue++;
	REQUIRE(CALL(DXG_EXACT(DXG_IOCTL_CREATESYNCFILE), &file) == STATUS_NOT_SUPPORTED);
	destroy.hSyncObject = file.hMonitoredFence;
	REQUIRE_CALL(DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT, &destroy);
	return 0;
}

static int test_cpu_event(void)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = device };
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy;
	int event = eventfd(0, EFD_CLOEXEC);

	create.Info.Type = D3DDDI_CPU_NOTIFICATION;
	create.Info.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
	create.Info.CPUNotification.Event = (__u64)event;
	REQUIRE_CALL(DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2, &create);
	close(event);
	destroy.hSyncObject = create.hSyncObject;
	REQUIRE_CALL(DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT, &destroy);
	/* The descriptor is none any more. */
	REQUIRE(CALL(DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2, &create) == -1);
	return 0;
}

/* A 32-bit client need not have cleared the other half of a union of bare pointers. */
static int test_bare_pointer(void)
{
	struct opendxg_allocation_data data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = 4096,
	};
	D3DDDI_ALLOCATIONINFO2 info = { .PrivateDriverDataSize = sizeof(data) };
	D3DKMT_CREATEALLOCATION create = { .hDevice = device, .NumAllocations = 1 };
	D3DKMT_DESTROYALLOCATION2 destroy = { .hDevice = device, .AllocationCount = 1 };
	int answer;

	info.pPrivateDriverData = ADDRESS(&data);
	create.pAllocationInfo2 = ADDRESS(&info) | 0xdead5a5aULL << 32;
	answer = CALL(DXG_IOCTL_CREATEALLOCATION, &create);
	if (sizeof(void *) == 8) {
		REQUIRE(answer == -1 && errno == EFAULT);
		return 0;
	}
	REQUIRE_EQUAL(answer, 0);
	destroy.phAllocationList = ADDRESS(&info.hAllocation);
	REQUIRE_CALL(DXG_IOCTL_DESTROYALLOCATION2, &destroy);
	/* Other members are whole. */
	create.pAllocationInfo2 = ADDRESS(&info);
	info.pPrivateDriverData |= 1ULL << 63;
	REQUIRE(CALL(DXG_IOCTL_CREATEALLOCATION, &create) == -1 && errno == EFAULT);
	return 0;
}

static int test_exact(void)
{
	D3DKMT_DESTROYDEVICE destroy = { .hDevice = device };
	int event = eventfd(0, EFD_CLOEXEC);

	REQUIRE_CALL(DXG_EXACT(DXG_IOCTL_NOP), NULL);
	REQUIRE_CALL(DXG_EXACT(DXG_IOCTL_DESTROYDEVICE), &destroy);
	/* A status is no errno. */
	errno = 0;
	REQUIRE(CALL(DXG_EXACT(DXG_IOCTL_DESTROYDEVICE), &destroy) == STATUS_INVALID_PARAMETER);
	REQUIRE(CALL(DXG_EXACT(DXG_IOCTL_DESTROYDEVICE), NULL) == STATUS_ACCESS_VIOLATION);
	REQUIRE_EQUAL(errno, 0);
	REQUIRE(CALL(DXG_IOCTL_DESTROYDEVICE, &destroy) == -1 && errno == EINVAL);
	REQUIRE(CALL(DXG_IOCTL_DESTROYDEVICE, NULL) == -1 && errno == EFAULT);
	/* What is no call is an errno. */
	REQUIRE(CALL(DXG_IOCTL_DESTROYDEVICE + 0x10000, &destroy) == -1 && errno == ENOTTY);
	errno = 0;
	REQUIRE(CALL(DXG_EXACT(DXG_IOCTL_DESTROYDEVICE + 0x10000), &destroy) == -1 && errno == ENOTTY);
	errno = 0;
	REQUIRE(ioctl(event, DXG_EXACT(DXG_IOCTL_NOP), NULL) == -1 && errno == ENOTTY);
	close(event);
	close(node);
	return 0;
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "ABI-2.3 ioctl: node, version, adapters, device", test_open },
		{ "ABI-2.3 ioctl: a fence with values of 64 bits", test_fence },
		{ "ABI-2.3 ioctl: sharing and a fence point", test_share },
		{ "ABI-2.3 ioctl: the fence of an NT handle, on its descriptor", test_nt_fence },
		{ "ABI-2.3 ioctl: a keyed mutex with keys of 64 bits", test_keyed_mutex },
		{ "ABI-2.3 ioctl: the information store, with a file", test_info },
		{ "ABI-2.3 ioctl: a resource by its global handle", test_global_handle },
		{ "ABI-2.3 ioctl: a sync file", test_sync_file },
		{ "ABI-2.3 ioctl: a CPU event", test_cpu_event },
		{ "ABI-2.3 ioctl: a bare pointer has 32 bits in a 32-bit program", test_bare_pointer },
		{ "ABI-3.2 ioctl: exact statuses, and codes and addresses that are wrong", test_exact },
	};

	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
