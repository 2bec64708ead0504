// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Every call about the GPU without a library: the headers and ioctl(2). Built
 * for 64 and for 32 bits; a 32-bit process sends the same bytes, but for the
 * upper half of a bare pointer in a union (abi.md section 2.3).
 */
#include <dxg/d3dkmthk.h>
#include <dxg.h>
#include <dxg/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "tap.h"

#define ADDRESS(pointer) ((__u64)(uintptr_t)(pointer))
/* What a 32-bit program may have in a union of bare pointers. */
#define BARE(pointer) (ADDRESS(pointer) | (sizeof(void *) == 4 ? 0xdead5a5aULL << 32 : 0))
#define CALL(code, args) ioctl(node, code, args)
#define REQUIRE_CALL(code, args) REQUIRE_EQUAL(CALL(code, args), 0)

#define PAGE 4096
#define BLOCK 0x10000
/* A packet of one word that does nothing, and a copy of 8 bytes. */
#define NOP 0xffff1000u
#define DMA_DATA 0xc0055000u
/* Values that do not fit 32 bits. */
#define PATTERN 0x0123456789abcdefULL
#define FIRST 0x100000001ULL

static int node;
static D3DKMT_HANDLE adapter, device, queue, memory, context, other, fence;
static DXG_LUID luid;
static volatile __u64 *words;
static __u64 address;
static const volatile __u64 *value;

static int wait_for(D3DKMT_HANDLE handle, __u64 number)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.hDevice = device,
		.ObjectCount = 1,
		.ObjectHandleArray = ADDRESS(&handle),
		.FenceValueArray = ADDRESS(&number),
	};

	REQUIRE_CALL(DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU, &wait);
	return 0;
}

/* The positive result of a call is STATUS_PENDING. */
static int done(int result)
{
	REQUIRE(result == 0 || result == STATUS_PENDING);
	return 0;
}

static int test_device(void)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = ADDRESS(infos) };
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 sync = { 0 };
	D3DKMT_CREATEDEVICE create = { 0 };
	const char *path = getenv("OPENDXG_DEVICE");

	node = open(path ? path : "/dev/dxg", O_RDONLY | O_CLOEXEC);
	REQUIRE(node >= 0);
	REQUIRE_CALL(DXG_IOCTL_ENUMADAPTERS2, &enumerate);
	REQUIRE(enumerate.NumAdapters >= 1);
	adapter = infos[0].hAdapter;
	luid = infos[0].AdapterLuid;
	create.hAdapter = adapter;
	REQUIRE_CALL(DXG_IOCTL_CREATEDEVICE, &create);
	device = create.hDevice;
	sync.hDevice = device;
	sync.Info.Type = D3DDDI_MONITORED_FENCE;
	REQUIRE_CALL(DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2, &sync);
	fence = sync.hSyncObject;
	value = (const volatile __u64 *)(uintptr_t)
			sync.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	return 0;
}

static int test_contexts(void)
{
	D3DKMT_CREATECONTEXTVIRTUAL create = { .hDevice = device };
	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY set = { .Priority = -7 };
	D3DKMT_GETCONTEXTSCHEDULINGPRIORITY get = { .Priority = 0x55 };
	D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY set_own = { .Priority = -3 };
	D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY get_own = { .Priority = 0x55 };

	REQUIRE_CALL(DXG_IOCTL_CREATECONTEXTVIRTUAL, &create);
	context = create.hContext;
	create.NodeOrdinal = 1;
	REQUIRE_CALL(DXG_IOCTL_CREATECONTEXTVIRTUAL, &create);
	other = create.hContext;

	set.hContext = get.hContext = set_own.hContext = get_own.hContext = context;
	REQUIRE_CALL(DXG_IOCTL_SETCONTEXTSCHEDULINGPRIORITY, &set);
	REQUIRE_CALL(DXG_IOCTL_GETCONTEXTSCHEDULINGPRIORITY, &get);
	REQUIRE_EQUAL((__u32)get.Priority, (__u32)-7);
	REQUIRE_CALL(DXG_IOCTL_SETCONTEXTINPROCESSSCHEDULINGPRIORITY, &set_own);
	REQUIRE_CALL(DXG_IOCTL_GETCONTEXTINPROCESSSCHEDULINGPRIORITY, &get_own);
	REQUIRE_EQUAL((__u32)get_own.Priority, (__u32)-3);
	return 0;
}

/* Four pages that the process and the GPU see. */
static int test_memory(void)
{
	struct opendxg_allocation_data data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = 4 * PAGE,
	};
	D3DDDI_ALLOCATIONINFO2 info = {
		.pPrivateDriverData = ADDRESS(&data),
		.PrivateDriverDataSize = sizeof(data),
	};
	D3DKMT_CREATEALLOCATION create = { .hDevice = device, .NumAllocations = 1 };
	D3DKMT_CREATEPAGINGQUEUE paging = { .hDevice = device };
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = { .Size = BLOCK };
	D3DDDI_MAPGPUVIRTUALADDRESS map = {
		.SizeInPages = 4,
		.Protection = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Write,
	};
	D3DDDI_MAKERESIDENT resident = { .NumAllocations = 1, .AllocationList = ADDRESS(&memory) };
	D3DKMT_LOCK2 lock = { .hDevice = device };

	create.pAllocationInfo2 = ADDRESS(&info);
	REQUIRE_CALL(DXG_IOCTL_CREATEALLOCATION, &create);
	memory = info.hAllocation;
	lock.hAllocation = memory;
	REQUIRE_CALL(DXG_IOCTL_LOCK2, &lock);
	words = (volatile __u64 *)(uintptr_t)lock.pData;
	REQUIRE_EQUAL(ADDRESS(words), lock.pData);

	REQUIRE_CALL(DXG_IOCTL_CREATEPAGINGQUEUE, &paging);
	REQUIRE(paging.hSyncObject);
	REQUIRE_EQUAL(paging.FenceValueCPUVirtualAddress,
		      (uintptr_t)paging.FenceValueCPUVirtualAddress);
	queue = paging.hPagingQueue;

	/* GPU addresses have more than 32 bits in every process. */
	reserve.hPagingQueue = map.hPagingQueue = resident.hPagingQueue = queue;
	reserve.BaseAddress = 5ULL << 32;
	if (done(CALL(DXG_IOCTL_RESERVEGPUVIRTUALADDRESS, &reserve)))
		return -1;
	REQUIRE_EQUAL(reserve.VirtualAddress, 5ULL << 32);
	map.BaseAddress = reserve.VirtualAddress;
	map.hAllocation = memory;
	if (done(CALL(DXG_IOCTL_MAPGPUVIRTUALADDRESS, &map)))
		return -1;
	address = map.VirtualAddress;
	REQUIRE_EQUAL(address, 5ULL << 32);
	if (done(CALL(DXG_IOCTL_MAKERESIDENT, &resident)))
		return -1;
	REQUIRE_EQUAL(resident.NumBytesToTrim, 0);
	return wait_for(paging.hSyncObject, resident.PagingFenceValue);
}

static int test_statistics(void)
{
	D3DKMT_QUERYVIDEOMEMORYINFO info = {
		.hAdapter = adapter,
		.MemorySegmentGroup = D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL,
	};
	D3DKMT_FLUSHHEAPTRANSITIONS flush = { .hAdapter = adapter };
	D3DKMT_QUERYSTATISTICS ask = { .Type = D3DKMT_QUERYSTATISTICS_ADAPTER };

	/* i386 has another layout of this struct in headers that do not say where members are. */
	REQUIRE_EQUAL(sizeof(ask), 808);
	ask.AdapterLuid = luid;
	REQUIRE_CALL(DXG_IOCTL_QUERYSTATISTICS, &ask);
	REQUIRE(ask.QueryResult.AdapterInformation.NodeCount >= 2);
	REQUIRE(ask.QueryResult.AdapterInformation.NbSegments >= 1);
	REQUIRE_CALL(DXG_IOCTL_QUERYVIDEOMEMORYINFO, &info);
	REQUIRE(info.Budget > 0);
	REQUIRE_EQUAL(info.CurrentUsage, 4 * PAGE);
	REQUIRE_CALL(DXG_IOCTL_FLUSHHEAPTRANSITIONS, &flush);
	return 0;
}

/* Commands that copy the first word of the second page to the third page. */
static void write_commands(void)
{
	const __u64 from = address + PAGE, to = address + 2 * PAGE;
	const __u32 dma[8] = {
		DMA_DATA, 1u << 31, (__u32)from, (__u32)(from >> 32),
		(__u32)to, (__u32)(to >> 32), 8, NOP,
	};
	volatile __u32 *commands = (volatile __u32 *)words;
	unsigned int i;

	for (i = 0; i < 8; i++)
		commands[i] = dma[i];
	words[PAGE / 8] = PATTERN;
	words[2 * PAGE / 8] = 0;
}

static int test_submit(void)
{
	D3DKMT_SUBMITCOMMAND submit = {
		.Commands = address,
		.CommandLength = 32,
		.BroadcastContextCount = 1,
	};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.ObjectCount = 1,
		.ObjectHandleArray = ADDRESS(&fence),
	};
	const __u64 number = FIRST;

	write_commands();
	submit.BroadcastContext[0] = context;
	REQUIRE_CALL(DXG_IOCTL_SUBMITCOMMAND, &submit);
	signal.hContext = context;
	signal.MonitoredFenceValueArray = BARE(&number);
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU, &signal);
	if (wait_for(fence, FIRST))
		return -1;
	REQUIRE_EQUAL(*value, FIRST);
	REQUIRE_EQUAL(words[2 * PAGE / 8], PATTERN);
	return 0;
}

/* A context waits for a value with an upper half, and then signals an event. */
static int test_waits(void)
{
	const __u64 number = FIRST + 1;
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.ObjectCount = 1,
		.ObjectHandleArray = ADDRESS(&fence),
	};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 signal = {
		.Flags = D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent,
		.BroadcastContextCount = 1,
		.BroadcastContextArray = ADDRESS(&context),
	};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU go = {
		.hDevice = device,
		.ObjectCount = 1,
		.ObjectHandleArray = ADDRESS(&fence),
		.FenceValueArray = ADDRESS(&number),
	};
	int event = eventfd(0, EFD_CLOEXEC);
	__u64 count;

	wait.hContext = context;
	wait.MonitoredFenceValueArray = BARE(&number);
	REQUIRE_CALL(DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMGPU, &wait);
	signal.CpuEventHandle = BARE((uintptr_t)event);
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2, &signal);
	REQUIRE_EQUAL(fcntl(event, F_SETFL, O_NONBLOCK), 0);
	REQUIRE(read(event, &count, 8) == -1 && errno == EAGAIN);
	REQUIRE_EQUAL(fcntl(event, F_SETFL, 0), 0);
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU, &go);
	REQUIRE(read(event, &count, 8) == 8 && count == 1);
	close(event);

	/* The values in the same place. */
	signal.Flags = 0;
	signal.ObjectCount = 1;
	signal.ObjectHandleArray = ADDRESS(&fence);
	signal.MonitoredFenceValueArray = BARE(&(__u64){ FIRST + 2 });
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2, &signal);
	return wait_for(fence, FIRST + 2);
}

/* A legacy fence has its value in that place: all of it counts. */
static int test_legacy(void)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = device };
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = { .ObjectCount = 1 };
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 wait = { .ObjectCount = 1 };
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU mark = {
		.ObjectCount = 1,
		.ObjectHandleArray = ADDRESS(&fence),
	};
	const __u64 number = FIRST + 3;
	int event = eventfd(0, EFD_CLOEXEC);
	__u64 count;

	create.Info.Type = D3DDDI_FENCE;
	REQUIRE_CALL(DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2, &create);
	signal.ObjectHandleArray[0] = wait.ObjectHandleArray[0] = create.hSyncObject;

	/* With the lower half alone it would not wait. */
	wait.hContext = context;
	wait.Fence.FenceValue = 2ULL << 32;
	REQUIRE_CALL(DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECT2, &wait);
	mark.hContext = context;
	mark.MonitoredFenceValueArray = BARE(&number);
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU, &mark);
	signal.hContext = other;
	signal.Fence.FenceValue = FIRST;
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECT2, &signal);

	/* What the other context has done by now shows that it has signalled. */
	signal.ObjectCount = 0;
	signal.Flags = D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent;
	signal.CpuEventHandle = BARE((uintptr_t)event);
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECT2, &signal);
	REQUIRE(read(event, &count, 8) == 8 && count == 1);
	close(event);
	REQUIRE_EQUAL(*value, FIRST + 2);

	signal.ObjectCount = 1;
	signal.Flags = 0;
	signal.Fence.FenceValue = 2ULL << 32;
	REQUIRE_CALL(DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECT2, &signal);
	return wait_for(fence, number);
}

static int test_hw_queue(void)
{
	D3DKMT_CREATEHWCONTEXT hw_context = { .hDevice = device };
	D3DKMT_CREATEHWQUEUE create = { 0 };
	D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE wait = { .ObjectCount = 1 };
	D3DKMT_SUBMITCOMMANDTOHWQUEUE submit = {
		.HwQueueProgressFenceId = 7 * FIRST,
		.CommandLength = 32,
	};
	D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE signal = {
		.BroadcastHwQueueCount = 1,
		.ObjectCount = 1,
		.ObjectHandleArray = ADDRESS(&fence),
	};
	const __u64 before = FIRST + 3, after = FIRST + 4;
	D3DKMT_DESTROYHWQUEUE destroy = { 0 };

	REQUIRE_CALL(DXG_IOCTL_CREATEHWCONTEXT, &hw_context);
	create.hHwContext = hw_context.hHwContext;
	REQUIRE_CALL(DXG_IOCTL_CREATEHWQUEUE, &create);
	REQUIRE(create.HwQueueProgressFenceGPUVirtualAddress);

	write_commands();
	wait.hHwQueue = submit.hHwQueue = create.hHwQueue;
	wait.ObjectHandleArray = ADDRESS(&fence);
	wait.FenceValueArray = ADDRESS(&before);
	REQUIRE_CALL(DXG_IOCTL_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE, &wait);
	submit.CommandBuffer = address;
	REQUIRE_CALL(DXG_IOCTL_SUBMITCOMMANDTOHWQUEUE, &submit);
	signal.BroadcastHwQueueArray = ADDRESS(&create.hHwQueue);
	signal.FenceValueArray = ADDRESS(&after);
	REQUIRE_CALL(DXG_IOCTL_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE, &signal);
	if (wait_for(fence, after) || wait_for(create.hHwQueueProgressFence, 7 * FIRST))
		return -1;
	REQUIRE_EQUAL(*(const volatile __u64 *)(uintptr_t)
			      create.HwQueueProgressFenceCPUVirtualAddress,
		      7 * FIRST);
	REQUIRE_EQUAL(words[2 * PAGE / 8], PATTERN);
	/* These are no bare pointers in a union: all of the slot counts. */
	signal.FenceValueArray |= 1ULL << 63;
	REQUIRE(CALL(DXG_IOCTL_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE, &signal) == -1 && errno == EFAULT);
	destroy.hHwQueue = create.hHwQueue;
	REQUIRE_CALL(DXG_IOCTL_DESTROYHWQUEUE, &destroy);
	return 0;
}

static int test_update(void)
{
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = { .Size = BLOCK };
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION operation = {
		.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP,
	};
	D3DKMT_UPDATEGPUVIRTUALADDRESS update = {
		.NumOperations = 1,
		.FenceValue = FIRST + 4,
	};
	D3DKMT_FREEGPUVIRTUALADDRESS release = { .hAdapter = adapter, .Size = BLOCK };

	reserve.hPagingQueue = queue;
	reserve.ReservationType = D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO;
	if (done(CALL(DXG_IOCTL_RESERVEGPUVIRTUALADDRESS, &reserve)))
		return -1;
	operation.Map.BaseAddress = reserve.VirtualAddress;
	operation.Map.SizeInBytes = 4 * PAGE;
	operation.Map.hAllocation = memory;
	update.hDevice = device;
	update.hContext = context;
	update.hFenceObject = fence;
	update.Operations = ADDRESS(&operation);
	REQUIRE_CALL(DXG_IOCTL_UPDATEGPUVIRTUALADDRESS, &update);
	if (wait_for(fence, FIRST + 5))
		return -1;
	release.BaseAddress = reserve.VirtualAddress;
	REQUIRE_CALL(DXG_IOCTL_FREEGPUVIRTUALADDRESS, &release);
	return 0;
}

static int test_end(void)
{
	D3DKMT_EVICT evict = { .NumAllocations = 1, .AllocationList = ADDRESS(&memory) };
	D3DDDI_DESTROYPAGINGQUEUE destroy = { .hPagingQueue = queue };
	D3DKMT_MARKDEVICEASERROR mark = { .Reason = D3DKMT_DEVICE_ERROR_REASON_GENERIC };
	D3DKMT_GETDEVICESTATE state = { .StateType = D3DKMT_DEVICESTATE_EXECUTION };
	D3DKMT_DESTROYDEVICE end = { .hDevice = device };

	evict.hDevice = mark.hDevice = state.hDevice = device;
	REQUIRE_CALL(DXG_IOCTL_EVICT, &evict);
	REQUIRE_CALL(DXG_IOCTL_DESTROYPAGINGQUEUE, &destroy);
	REQUIRE_CALL(DXG_IOCTL_MARKDEVICEASERROR, &mark);
	REQUIRE_CALL(DXG_IOCTL_GETDEVICESTATE, &state);
	REQUIRE(state.ExecutionState != D3DKMT_DEVICEEXECUTION_ACTIVE);
	REQUIRE_CALL(DXG_IOCTL_DESTROYDEVICE, &end);
	close(node);
	return 0;
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "ABI-2.3 ioctl: device and fence", test_device },
		{ "ABI-2.3 ioctl: contexts and their priorities", test_contexts },
		{ "ABI-2.3 ioctl: memory at a GPU address of more than 32 bits", test_memory },
		{ "ABI-2.3 ioctl: budgets and statistics", test_statistics },
		{ "ABI-2.3 ioctl: commands and a signal", test_submit },
		{ "ABI-2.3 ioctl: queued waits and events behind bare pointers", test_waits },
		{ "ABI-2.3 ioctl: a legacy fence has a value of 64 bits", test_legacy },
		{ "ABI-2.3 ioctl: a HW queue", test_hw_queue },
		{ "ABI-2.3 ioctl: an update behind a fence", test_update },
		{ "ABI-2.3 ioctl: eviction, and the end of the device", test_end },
	};

	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
