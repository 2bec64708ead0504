// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How a user-mode driver hears that its work has crashed, and tells the user
 * why: it waits for a CPU event, and nobody asks again and again. The work of
 * this program stores to an address where nothing is; then it goes on with a
 * new device. See Documentation/cpu-events.md. Build it with -ld3dkmt.
 */
#include <d3dkmt.h>
#include <dxg.h>
#include <dxg/status.h>

#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
/* Where nobody maps anything. */
#define NOWHERE 0x600000000000ULL
/* Longer than this, in milliseconds, the reason of a crash does not take. */
#define SOON 10000
/* What the fence has when the work is done. */
#define DONE 1

/* Packets: one word that does nothing, and WRITE_DATA of one word to memory. */
#define NOP 0xffff1000u
#define WRITE_DATA 0xc0033700u
#define TO_MEMORY 0x00100500u

/* Classes of the software GPU: Usage[0] of the usage escape. */
enum { ANY = 1, PAGE_FAULT, RESET, TRAP, BAD_OBJECT, PREEMPTION, INTERNAL };

/* What has happened, as the software GPU keeps it for an event. */
struct record {
	__u32 class;
	__u32 node;
	__u64 number;
	__u64 time_ns;
	__u64 queue;
	__u64 detail;
	__u32 cookie;
	__u32 reason;
};

/* A request for records, and its answer. */
struct records {
	char magic[4];
	__u32 version;
	__u64 event;
	__u32 count;
	__u32 lost;
	struct record records[16];
};

_Static_assert(sizeof(struct records) == 792, "as the driver has it");

/* What a driver has of a GPU. */
struct driver {
	D3DKMT_HANDLE adapter;
	D3DKMT_HANDLE device;
	D3DKMT_HANDLE queue;
	D3DKMT_HANDLE context;
	/* The event, and what the kernel-mode driver calls it. */
	D3DKMT_HANDLE event;
	__u64 name;
	int crashed;
	/* The fence, and where its value is. */
	D3DKMT_HANDLE done;
	const volatile __u64 *value;
	/* Memory for commands. */
	__u32 *commands;
	D3DKMT_HANDLE allocation;
	__u64 address;
};

/* Ends the program unless a call has succeeded. */
static void check(const char *call, NTSTATUS status)
{
	if (status == STATUS_SUCCESS)
		return;
	fprintf(stderr, "%s: %#x\n", call, (unsigned int)status);
	exit(1);
}

static void require(const char *what, int is_so)
{
	if (is_so)
		return;
	perror(what);
	exit(1);
}

static D3DKMT_HANDLE first_adapter(void)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = (uintptr_t)infos };

	check("D3DKMTEnumAdapters2", D3DKMTEnumAdapters2(&enumerate));
	require("no adapter", enumerate.NumAdapters != 0);
	return infos[0].hAdapter;
}

static NTSTATUS escape(const struct driver *driver, __u32 flags, D3DKMT_HANDLE device,
		       void *data, __u32 size)
{
	D3DKMT_ESCAPE call = {
		.hAdapter = driver->adapter,
		.hDevice = device,
		.Type = D3DKMT_ESCAPE_DRIVERPRIVATE,
		.Flags = flags,
		.pPrivateDriverData = (uintptr_t)data,
		.PrivateDriverDataSize = size,
	};

	return D3DKMTEscape(&call);
}

/* An eventfd that the kernel-mode driver signals when something happens to the device. */
static void create_event(struct driver *driver)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = driver->device };
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE usage = {
		.EscapeType = D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE,
		.Usage = { ANY },
	};

	driver->crashed = eventfd(0, EFD_CLOEXEC);
	require("eventfd", driver->crashed >= 0);
	create.Info.Type = D3DDDI_CPU_NOTIFICATION;
	create.Info.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
	create.Info.CPUNotification.Event = (__u64)driver->crashed;
	check("D3DKMTCreateSynchronizationObject2", D3DKMTCreateSynchronizationObject2(&create));
	driver->event = create.hSyncObject;

	usage.hSyncObject = driver->event;
	check("D3DKMTEscape, what the event is for",
	      escape(driver, D3DDDI_ESCAPEFLAGS_DriverKnownEscape |
			     D3DDDI_ESCAPEFLAGS_NoAdapterSynchronization,
		     0, &usage, sizeof(usage)));
	driver->name = usage.hKmdCpuEvent;
}

static NTSTATUS wait_for(const struct driver *driver, D3DKMT_HANDLE fence, __u64 value)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.hDevice = driver->device,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&fence,
		.FenceValueArray = (uintptr_t)&value,
	};

	return D3DKMTWaitForSynchronizationObjectFromCpu(&wait);
}

/* A page for commands that the GPU reaches. */
static void create_memory(struct driver *driver)
{
	D3DKMT_CREATEPAGINGQUEUE paging = { .hDevice = driver->device };
	struct opendxg_allocation_data data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = PAGE,
	};
	D3DDDI_ALLOCATIONINFO2 info = {
		.pPrivateDriverData = (uintptr_t)&data,
		.PrivateDriverDataSize = sizeof(data),
	};
	D3DKMT_CREATEALLOCATION create = { .hDevice = driver->device, .NumAllocations = 1 };
	D3DDDI_MAPGPUVIRTUALADDRESS map = { .SizeInPages = 1 };
	D3DDDI_MAKERESIDENT resident = { .NumAllocations = 1 };
	NTSTATUS status;

	check("D3DKMTCreatePagingQueue", D3DKMTCreatePagingQueue(&paging));
	driver->queue = paging.hPagingQueue;
	driver->commands = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require("mmap", driver->commands != MAP_FAILED);
	info.pSystemMem = (uintptr_t)driver->commands;
	create.pAllocationInfo2 = (uintptr_t)&info;
	check("D3DKMTCreateAllocation2", D3DKMTCreateAllocation2(&create));
	driver->allocation = info.hAllocation;

	map.hPagingQueue = driver->queue;
	map.hAllocation = driver->allocation;
	resident.hPagingQueue = driver->queue;
	resident.AllocationList = (uintptr_t)&driver->allocation;
	status = D3DKMTMapGpuVirtualAddress(&map);
	if (status != STATUS_PENDING)
		check("D3DKMTMapGpuVirtualAddress", status);
	driver->address = map.VirtualAddress;
	status = D3DKMTMakeResident(&resident);
	if (status != STATUS_PENDING)
		check("D3DKMTMakeResident", status);
	check("memory", wait_for(driver, paging.hSyncObject, map.PagingFenceValue));
	check("memory", wait_for(driver, paging.hSyncObject, resident.PagingFenceValue));
}

static void create_driver(struct driver *driver, D3DKMT_HANDLE adapter)
{
	D3DKMT_CREATEDEVICE device = { .hAdapter = adapter };
	D3DKMT_CREATECONTEXTVIRTUAL context = { .EngineAffinity = 1 };
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = { 0 };

	memset(driver, 0, sizeof(*driver));
	driver->adapter = adapter;
	check("D3DKMTCreateDevice", D3DKMTCreateDevice(&device));
	driver->device = device.hDevice;
	create_event(driver);
	create_memory(driver);
	context.hDevice = driver->device;
	check("D3DKMTCreateContextVirtual", D3DKMTCreateContextVirtual(&context));
	driver->context = context.hContext;
	fence.hDevice = driver->device;
	fence.Info.Type = D3DDDI_MONITORED_FENCE;
	check("D3DKMTCreateSynchronizationObject2", D3DKMTCreateSynchronizationObject2(&fence));
	driver->done = fence.hSyncObject;
	driver->value = (const volatile __u64 *)(uintptr_t)
				fence.Info.MonitoredFence.FenceValueCPUVirtualAddress;
}

/* Everything that was made on the device goes with it. */
static void destroy_driver(struct driver *driver)
{
	D3DKMT_DESTROYDEVICE device = { .hDevice = driver->device };

	check("D3DKMTDestroyDevice", D3DKMTDestroyDevice(&device));
	munmap(driver->commands, PAGE);
	close(driver->crashed);
}

/* Runs commands; whether they have crashed. */
static int run(struct driver *driver, const __u32 *words, unsigned int count)
{
	__u64 value = DONE;
	D3DKMT_SUBMITCOMMAND submit = {
		.Commands = driver->address,
		.CommandLength = count * sizeof(*words),
		.BroadcastContextCount = 1,
	};
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = driver->context,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&driver->done,
		.MonitoredFenceValueArray = (uintptr_t)&value,
	};
	NTSTATUS status;

	memcpy(driver->commands, words, count * sizeof(*words));
	submit.BroadcastContext[0] = driver->context;
	check("D3DKMTSubmitCommand", D3DKMTSubmitCommand(&submit));
	status = D3DKMTSignalSynchronizationObjectFromGpu(&signal);
	/* It may have crashed already. */
	if (status != STATUS_DEVICE_REMOVED)
		check("D3DKMTSignalSynchronizationObjectFromGpu", status);
	/* It ends either way. */
	check("wait", wait_for(driver, driver->done, DONE));
	return *driver->value != DONE;
}

static const char *name_of(const struct record *record)
{
	switch (record->class) {
	case PAGE_FAULT:
		return record->reason ? "page fault of a store" : "page fault of a load";
	case RESET:
		return "reset";
	case TRAP:
		return "trap";
	case BAD_OBJECT:
		return "illegal packet";
	case PREEMPTION:
		return "queue that does not yield";
	case INTERNAL:
		return "change of the adapter";
	default:
		return "something that this program does not know";
	}
}

/* Waits for the event and prints what it tells of. */
static void report(const struct driver *driver)
{
	struct pollfd event = { .fd = driver->crashed, .events = POLLIN };
	struct records request = { .magic = "ODXR", .version = 1, .event = driver->name };
	D3DKMT_GETDEVICESTATE state = {
		.hDevice = driver->device,
		.StateType = D3DKMT_DEVICESTATE_EXECUTION,
	};
	__u64 signals;
	__u32 i;

	require("nobody has told why", poll(&event, 1, SOON) == 1);
	require("read", read(driver->crashed, &signals, sizeof(signals)) == sizeof(signals));
	check("D3DKMTEscape, the records",
	      escape(driver, 0, driver->device, &request, sizeof(request)));
	check("D3DKMTGetDeviceState", D3DKMTGetDeviceState(&state));
	for (i = 0; i < request.count && i < 16; i++) {
		const struct record *record = &request.records[i];

		printf("the GPU has crashed: %s at %#" PRIx64 "\n", name_of(record),
		       (uint64_t)record->detail);
		printf("  node %u, queue %" PRIu64 "\n", record->node, (uint64_t)record->queue);
		printf("  %" PRIu64 " ns after the start of the machine\n",
		       (uint64_t)record->time_ns);
		printf("  the state of the device is %u\n", (unsigned int)state.ExecutionState);
	}
}

int main(void)
{
	const __u32 crash[] = { WRITE_DATA, TO_MEMORY, (__u32)NOWHERE, NOWHERE >> 32, 1 };
	const __u32 nothing[] = { NOP };
	D3DKMT_HANDLE adapter = first_adapter();
	struct driver driver;
	int has_crashed;

	create_driver(&driver, adapter);
	has_crashed = run(&driver, crash, 5);
	if (has_crashed)
		report(&driver);
	destroy_driver(&driver);
	if (!has_crashed) {
		fprintf(stderr, "a store to nowhere has not crashed\n");
		return 1;
	}

	create_driver(&driver, adapter);
	has_crashed = run(&driver, nothing, 1);
	printf("a new device %s\n", has_crashed ? "has crashed" : "works");
	destroy_driver(&driver);
	return has_crashed;
}
