// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a client does to run work on the GPU, call by call: memory of its own
 * with private data of another vendor, a paging queue, GPU addresses,
 * residency, a context, a command buffer, a signal. Then a fork. Only the
 * installed header and -ld3dkmt.
 */
#include <d3dkmt.h>
#include <dxg/status.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "d3dkmt-tap.h"

#define PAGE 4096
/* The value that the work ends with. */
#define DONE 0x1234
/* A packet of one word that does nothing. */
#define NOP 0xffff1000u
/* DMA_DATA, 6 words after the header, from memory to memory. */
#define DMA_DATA 0xc0055000u
/* What the work copies. */
#define PATTERN 0x0123456789abcdefULL

static D3DKMT_HANDLE adapter, device, queue, paging_fence;
static const volatile __u64 *paged;

/* A page of this process and what the GPU knows it by. */
struct page {
	volatile __u64 *memory;
	D3DKMT_HANDLE allocation;
	__u64 address;
};

static struct page commands, source, target;

static D3DKMT_HANDLE context, fence;
static const volatile __u64 *fence_value;

static NTSTATUS wait_fence(D3DKMT_HANDLE handle, __u64 value)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.hDevice = device,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&handle,
		.FenceValueArray = (uintptr_t)&value,
	};

	return D3DKMTWaitForSynchronizationObjectFromCpu(&wait);
}

/* A call on the paging queue is done. */
static int until_paged(NTSTATUS status, __u64 value)
{
	REQUIRE(status == 0 || status == STATUS_PENDING);
	REQUIRE_EQUAL(status == STATUS_PENDING, value != 0);
	REQUIRE_SUCCESS(wait_fence(paging_fence, value));
	REQUIRE(*paged >= value);
	return 0;
}

static int test_device(void)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = (uintptr_t)infos };
	D3DKMT_CREATEDEVICE create = { 0 };

	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&enumerate));
	REQUIRE(enumerate.NumAdapters >= 1);
	adapter = infos[0].hAdapter;
	create.hAdapter = adapter;
	REQUIRE_SUCCESS(D3DKMTCreateDevice(&create));
	device = create.hDevice;
	return 0;
}

static int test_paging_queue(void)
{
	D3DKMT_CREATEPAGINGQUEUE create = {
		.hDevice = device,
		.Priority = D3DDDI_PAGINGQUEUE_PRIORITY_NORMAL,
	};

	REQUIRE_SUCCESS(D3DKMTCreatePagingQueue(&create));
	REQUIRE(create.hPagingQueue && create.hSyncObject);
	REQUIRE(create.FenceValueCPUVirtualAddress);
	queue = create.hPagingQueue;
	paging_fence = create.hSyncObject;
	paged = (const volatile __u64 *)(uintptr_t)create.FenceValueCPUVirtualAddress;
	REQUIRE_EQUAL(*paged, 0);
	return 0;
}

/* An allocation over a page of this process, described by data nobody here knows. */
static int allocate(struct page *page, int sharing, __u32 flags)
{
	unsigned char data[72];
	D3DDDI_ALLOCATIONINFO2 info = { 0 };
	D3DKMT_CREATEALLOCATION create = { 0 };
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);

	REQUIRE(memory != MAP_FAILED);
	memset(data, 0xa5, sizeof(data));
	page->memory = memory;
	info.pSystemMem = (uintptr_t)memory;
	info.pPrivateDriverData = (uintptr_t)data;
	info.PrivateDriverDataSize = sizeof(data);
	create.hDevice = device;
	create.Flags = flags;
	create.NumAllocations = 1;
	create.pAllocationInfo2 = (uintptr_t)&info;
	REQUIRE_SUCCESS(D3DKMTCreateAllocation2(&create));
	REQUIRE(info.hAllocation);
	page->allocation = info.hAllocation;
	return 0;
}

/* The GPU may use the page. */
static int map(struct page *page)
{
	D3DDDI_MAPGPUVIRTUALADDRESS map = {
		.hPagingQueue = queue,
		.hAllocation = page->allocation,
		.SizeInPages = 1,
		.Protection = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Write,
	};
	D3DDDI_MAKERESIDENT resident = {
		.hPagingQueue = queue,
		.NumAllocations = 1,
		.AllocationList = (uintptr_t)&page->allocation,
	};
	NTSTATUS status;

	status = D3DKMTMapGpuVirtualAddress(&map);
	if (until_paged(status, map.PagingFenceValue))
		return -1;
	REQUIRE(map.VirtualAddress >= 0x10000 && map.VirtualAddress % PAGE == 0);
	page->address = map.VirtualAddress;
	status = D3DKMTMakeResident(&resident);
	REQUIRE_EQUAL(resident.NumAllocations, 1);
	REQUIRE_EQUAL(resident.NumBytesToTrim, 0);
	return until_paged(status, resident.PagingFenceValue);
}

static int test_allocations(void)
{
	return allocate(&commands, MAP_PRIVATE, 0) || allocate(&source, MAP_PRIVATE, 0) ||
	       allocate(&target, MAP_PRIVATE, D3DKMT_CREATEALLOCATIONFLAGS_ExistingSysMem) ? -1 : 0;
}

static int test_map(void)
{
	return map(&commands) || map(&source) || map(&target) ? -1 : 0;
}

static int test_context(void)
{
	unsigned char data[72];
	D3DKMT_CREATECONTEXTVIRTUAL create = {
		.hDevice = device,
		.NodeOrdinal = 1,
		.EngineAffinity = 1,
		.pPrivateDriverData = (uintptr_t)data,
		.PrivateDriverDataSize = sizeof(data),
		.ClientHint = D3DKMT_CLIENTHINT_CUDA,
	};

	memset(data, 0x5a, sizeof(data));
	REQUIRE_SUCCESS(D3DKMTCreateContextVirtual(&create));
	REQUIRE(create.hContext);
	context = create.hContext;
	return 0;
}

static int test_fence(void)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = device };

	create.Info.Type = D3DDDI_MONITORED_FENCE;
	REQUIRE_SUCCESS(D3DKMTCreateSynchronizationObject2(&create));
	REQUIRE(create.Info.MonitoredFence.FenceValueGPUVirtualAddress);
	fence = create.hSyncObject;
	fence_value = (const volatile __u64 *)(uintptr_t)
			      create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	REQUIRE_EQUAL(*fence_value, 0);
	return 0;
}

/* 4 KiB of NOPs with one DMA_DATA of 8 bytes in them. */
static void write_commands(void)
{
	volatile __u32 *words = (volatile __u32 *)commands.memory;
	const __u32 dma[7] = {
		DMA_DATA, 1u << 31,
		(__u32)source.address, (__u32)(source.address >> 32),
		(__u32)target.address, (__u32)(target.address >> 32), 8,
	};
	unsigned int i;

	for (i = 0; i < PAGE / sizeof(*words); i++)
		words[i] = NOP;
	for (i = 0; i < 7; i++)
		words[16 + i] = dma[i];
}

static NTSTATUS submit(void)
{
	unsigned char data[72];
	D3DKMT_SUBMITCOMMAND submit = {
		.Commands = commands.address,
		.CommandLength = PAGE,
		.BroadcastContextCount = 1,
		.pPrivateDriverData = (uintptr_t)data,
		.PrivateDriverDataSize = sizeof(data),
	};

	submit.BroadcastContext[0] = context;
	memset(data, 0xc3, sizeof(data));
	return D3DKMTSubmitCommand(&submit);
}

static NTSTATUS signal_from_gpu(__u64 value)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = context,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&fence,
		.MonitoredFenceValueArray = (uintptr_t)&value,
	};

	return D3DKMTSignalSynchronizationObjectFromGpu(&signal);
}

static int is_active(void)
{
	D3DKMT_GETDEVICESTATE state = {
		.hDevice = device,
		.StateType = D3DKMT_DEVICESTATE_EXECUTION,
	};

	REQUIRE_SUCCESS(D3DKMTGetDeviceState(&state));
	REQUIRE_EQUAL(state.ExecutionState, D3DKMT_DEVICEEXECUTION_ACTIVE);
	return 0;
}

static int test_submit(void)
{
	*source.memory = PATTERN;
	*target.memory = 0;
	write_commands();
	REQUIRE_SUCCESS(submit());
	REQUIRE_SUCCESS(signal_from_gpu(DONE));
	REQUIRE_SUCCESS(wait_fence(fence, DONE));
	if (is_active())
		return -1;
	REQUIRE_EQUAL(*fence_value, DONE);
	REQUIRE_EQUAL(*target.memory, PATTERN);
	REQUIRE_EQUAL(target.memory[1], 0);
	return 0;
}

/* Runs a part of a test in a child. */
static pid_t in_child(int (*run)(void))
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(tap_limit(60));
		if (run()) {
			fprintf(stderr, "# in a child: %s\n", tap_text);
			_exit(1);
		}
		_exit(0);
	}
	return child;
}

static int ended_well(pid_t child)
{
	int status;

	REQUIRE(child > 0);
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE_EQUAL(status, 0);
	return 0;
}

static int sees_the_end(void)
{
	REQUIRE_EQUAL(*fence_value, DONE);
	REQUIRE_EQUAL(*target.memory, PATTERN);
	return 0;
}

static int test_fork(void)
{
	if (ended_well(in_child(sees_the_end)))
		return -1;
	return sees_the_end();
}

/* Waits for a value that the parent's GPU signals later. */
static int sees_later(void)
{
	while (*fence_value != 2 * DONE)
		sched_yield();
	/* ORDERING: what was written before the signal is read after it. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* A copy from the time of the fork: neither the parent nor its GPU writes to it. */
	REQUIRE_EQUAL(*target.memory, PATTERN);
	REQUIRE_EQUAL(*source.memory, PATTERN);
	*source.memory = 7;
	return 0;
}

static int test_copy_on_write(void)
{
	pid_t child = in_child(sees_later);

	REQUIRE(child > 0);
	*source.memory = ~PATTERN;
	REQUIRE_SUCCESS(submit());
	REQUIRE_SUCCESS(signal_from_gpu(2 * DONE));
	REQUIRE_SUCCESS(wait_fence(fence, 2 * DONE));
	if (ended_well(child))
		return -1;
	REQUIRE_EQUAL(*source.memory, ~PATTERN);
	REQUIRE_EQUAL(*target.memory, ~PATTERN);
	return is_active();
}

static struct page shared;

static int sees_shared(void)
{
	while (*fence_value != 3 * DONE)
		sched_yield();
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	REQUIRE_EQUAL(*shared.memory, ~PATTERN);
	return 0;
}

/* The same with memory that parent and child share: both see what the GPU copies. */
static int test_shared_memory(void)
{
	const struct page private = target;
	pid_t child;

	if (allocate(&shared, MAP_SHARED, 0) || map(&shared))
		return -1;
	child = in_child(sees_shared);
	REQUIRE(child > 0);
	target = shared;
	write_commands();
	target = private;
	REQUIRE_SUCCESS(submit());
	REQUIRE_SUCCESS(signal_from_gpu(3 * DONE));
	REQUIRE_SUCCESS(wait_fence(fence, 3 * DONE));
	REQUIRE_EQUAL(*shared.memory, ~PATTERN);
	return ended_well(child);
}

static int test_unknown_size(void)
{
	struct page page;
	D3DKMT_LOCK2 lock = { .hDevice = device };
	D3DDDI_MAPGPUVIRTUALADDRESS beyond = {
		.hPagingQueue = queue,
		.SizeInPages = 2,
	};

	if (allocate(&page, MAP_PRIVATE, 0))
		return -1;
	lock.hAllocation = page.allocation;
	REQUIRE_STATUS(D3DKMTLock2(&lock), STATUS_INVALID_PARAMETER);
	if (map(&page))
		return -1;
	beyond.hAllocation = page.allocation;
	REQUIRE_STATUS(D3DKMTMapGpuVirtualAddress(&beyond), STATUS_INVALID_PARAMETER);
	beyond.SizeInPages = 1;
	beyond.OffsetInPages = 1;
	REQUIRE_STATUS(D3DKMTMapGpuVirtualAddress(&beyond), STATUS_INVALID_PARAMETER);
	/* Now there is a size. */
	REQUIRE_SUCCESS(D3DKMTLock2(&lock));
	return 0;
}

/* Unknown data without memory: there is no size. */
static int test_unknown_data(void)
{
	unsigned char data[72] = { 1 };
	D3DDDI_ALLOCATIONINFO2 info = {
		.pPrivateDriverData = (uintptr_t)data,
		.PrivateDriverDataSize = sizeof(data),
	};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device,
		.NumAllocations = 1,
		.pAllocationInfo2 = (uintptr_t)&info,
	};

	REQUIRE_STATUS(D3DKMTCreateAllocation2(&create), STATUS_INVALID_PARAMETER);
	REQUIRE_EQUAL(info.hAllocation, 0);
	return 0;
}

static int test_figures(void)
{
	D3DKMT_QUERYVIDEOMEMORYINFO memory = {
		.hAdapter = adapter,
		.MemorySegmentGroup = D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL,
	};
	D3DKMT_FLUSHHEAPTRANSITIONS flush = { .hAdapter = adapter };

	REQUIRE_SUCCESS(D3DKMTQueryVideoMemoryInfo(&memory));
	REQUIRE(memory.CurrentUsage <= memory.Budget);
	REQUIRE(memory.AvailableForReservation <= memory.Budget);
	REQUIRE_SUCCESS(D3DKMTFlushHeapTransitions(&flush));
	return 0;
}

static int release(struct page *page)
{
	D3DKMT_HANDLE list = page->allocation;
	D3DKMT_EVICT evict = {
		.hDevice = device,
		.NumAllocations = 1,
		.AllocationList = (uintptr_t)&list,
	};
	D3DKMT_FREEGPUVIRTUALADDRESS free_address = {
		.hAdapter = adapter,
		.BaseAddress = page->address,
		.Size = PAGE,
	};
	D3DKMT_DESTROYALLOCATION2 destroy = {
		.hDevice = device,
		.AllocationCount = 1,
		.phAllocationList = (uintptr_t)&list,
	};

	REQUIRE_SUCCESS(D3DKMTEvict(&evict));
	REQUIRE_STATUS(D3DKMTEvict(&evict), STATUS_INVALID_PARAMETER);
	REQUIRE_SUCCESS(D3DKMTFreeGpuVirtualAddress(&free_address));
	REQUIRE_STATUS(D3DKMTFreeGpuVirtualAddress(&free_address), STATUS_INVALID_PARAMETER);
	REQUIRE_SUCCESS(D3DKMTDestroyAllocation2(&destroy));
	return 0;
}

static int test_end(void)
{
	D3DKMT_DESTROYCONTEXT destroy_context = { .hContext = context };
	D3DDDI_DESTROYPAGINGQUEUE destroy_queue = { .hPagingQueue = queue };
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy_fence = { .hSyncObject = fence };
	D3DKMT_DESTROYDEVICE destroy_device = { .hDevice = device };
	D3DKMT_CLOSEADAPTER close_adapter = { .hAdapter = adapter };

	REQUIRE_SUCCESS(D3DKMTDestroyContext(&destroy_context));
	if (release(&commands) || release(&source) || release(&target) || release(&shared))
		return -1;
	REQUIRE_SUCCESS(D3DKMTDestroySynchronizationObject(&destroy_fence));
	REQUIRE_SUCCESS(D3DKMTDestroyPagingQueue(&destroy_queue));
	REQUIRE_SUCCESS(D3DKMTDestroyDevice(&destroy_device));
	REQUIRE_SUCCESS(D3DKMTCloseAdapter(&close_adapter));
	return 0;
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "GPU-115 1 an adapter and a device", test_device },
		{ "GPU-115 RES-23 2 allocations over the caller's memory", test_allocations },
		{ "GPU-115 MEM-10 3 a paging queue", test_paging_queue },
		{ "GPU-115 MEM-43 MEM-20 4 GPU addresses and residency", test_map },
		{ "GPU-115 GPU-2 5 a context on node 1", test_context },
		{ "GPU-115 FEN-1 6 a fence", test_fence },
		{ "GPU-115 GPU-6 FEN-41 7 NOPs with one DMA_DATA, and a signal", test_submit },
		{ "GPU-115 8 after a fork both see value and data", test_fork },
		{ "GPU-70 RES-21 FEN-11 9 copy on write", test_copy_on_write },
		{ "GPU-115 FEN-11 10 memory that both share", test_shared_memory },
		{ "RES-23 the first mapping says how large it is", test_unknown_size },
		{ "RES-23 unknown data without memory have no size", test_unknown_data },
		{ "MEM-35 MEM-98 memory that is used", test_figures },
		{ "GPU-115 MEM-23 MEM-49 11 the end of everything", test_end },
	};

	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
