// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include "fence.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fail.h"

void fence_create(struct fence *fence, D3DKMT_HANDLE device)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device,
		.Info = {
			.Type = D3DDDI_MONITORED_FENCE,
			.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared |
				 D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing,
		},
	};
	struct epoll_event interest = { .events = EPOLLIN };
	const char *node = getenv("OPENDXG_DEVICE");

	check(D3DKMTCreateSynchronizationObject2(&create), "D3DKMTCreateSynchronizationObject2");
	fence->device = device;
	fence->handle = create.hSyncObject;
	fence->value = (const uint64_t *)(uintptr_t)create.Info.MonitoredFence.FenceValueCPUVirtualAddress;

	fence->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fence->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(fence->epoll, EPOLL_CTL_ADD, fence->event, &interest))
		fail_errno("epoll_ctl");

	/* The handles belong to the process, so the shim's fence is known here. */
	fence->node = open(node ? node : "/dev/dxg", O_RDONLY | O_CLOEXEC);
	if (fence->node < 0)
		fail_errno("/dev/dxg");
}

void fence_destroy(struct fence *fence)
{
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = { fence->handle };

	check(D3DKMTDestroySynchronizationObject(&destroy), "D3DKMTDestroySynchronizationObject");
	close(fence->event);
	close(fence->epoll);
	close(fence->node);
}

int fence_share(const struct fence *fence)
{
	OBJECT_ATTRIBUTES attributes = { .Length = sizeof(attributes) };
	HANDLE nt_handle;

	check(D3DKMTShareObjects(1, &fence->handle, &attributes, D3DDDI_SYNC_OBJECT_ALL_ACCESS, &nt_handle),
	      "D3DKMTShareObjects");
	return (int)nt_handle;
}

void fence_signal(const struct fence *fence, uint64_t value)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {
		.hDevice = fence->device,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&fence->handle,
		.FenceValueArray = (uintptr_t)&value,
	};

	check(D3DKMTSignalSynchronizationObjectFromCpu(&signal), "D3DKMTSignalSynchronizationObjectFromCpu");
}

static uint64_t current(const struct fence *fence)
{
	return __atomic_load_n(fence->value, __ATOMIC_ACQUIRE);
}

/* One wait call. It blocks, or with an event returns at once. */
static void wait_from_cpu(const struct fence *fence, uint64_t value, int event)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.hDevice = fence->device,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&fence->handle,
		.FenceValueArray = (uintptr_t)&value,
		.hAsyncEvent = event,
	};

	check(D3DKMTWaitForSynchronizationObjectFromCpu(&wait), "D3DKMTWaitForSynchronizationObjectFromCpu");
}

/* (a) Sleep inside the call. */
static void wait_blocking(const struct fence *fence, uint64_t value)
{
	wait_from_cpu(fence, value, 0);
}

/* (b) Ask for an event and sleep in the program's own event loop. */
static void wait_in_event_loop(const struct fence *fence, uint64_t value)
{
	struct epoll_event ready;
	uint64_t count;

	wait_from_cpu(fence, value, fence->event);
	if (epoll_wait(fence->epoll, &ready, 1, -1) != 1)
		fail_errno("epoll_wait");
	if (read(fence->event, &count, sizeof(count)) != sizeof(count) || count != 1)
		fail("the event of one wait was not signalled exactly once");
}

/* (c) Make a descriptor that becomes readable at the value, and poll it. */
static void wait_for_descriptor(const struct fence *fence, uint64_t value)
{
	struct opendxg_fence_point point = { .sync_object = fence->handle, .value = value };
	struct pollfd ready = { .events = POLLIN };

	if (ioctl(fence->node, DXG_IOCTL_FENCE_POINT, &point))
		fail_errno("DXG_IOCTL_FENCE_POINT");
	ready.fd = point.fd;
	if (poll(&ready, 1, -1) != 1)
		fail_errno("poll");
	close(point.fd);
}

/* (d) Look at the mapped value until it is there. No system call. */
static void wait_polling(const struct fence *fence, uint64_t value)
{
	for (unsigned int looks = 1; current(fence) < value; looks++)
		if (looks % 4096 == 0)
			sched_yield(); /* perhaps there is only one processor */
}

void (*const fence_wait[])(const struct fence *fence, uint64_t value) = {
	wait_blocking,
	wait_in_event_loop,
	wait_for_descriptor,
	wait_polling,
};
