// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A DRM timeline that signals a fence, and one that follows a fence, by opendxg/timeline.h
 * (FEN-175, FEN-161).
 */
#include "library.h"

#include <fcntl.h>
#include <opendxg/timeline.h>
#include <poll.h>

static D3DKMT_HANDLE device;

/* A device with timelines, or -1. */
static int find_drm(void)
{
	char path[32];
	int number, fd;

	for (number = 128; number < 144; number++) {
		struct drm_get_cap cap = { .capability = DRM_CAP_SYNCOBJ_TIMELINE };

		snprintf(path, sizeof(path), "/dev/dri/renderD%d", number);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!ioctl(fd, DRM_IOCTL_GET_CAP, &cap) && cap.value)
			return fd;
		close(fd);
	}
	return -1;
}

static int signal_point(int drm, __u32 timeline, __u64 point)
{
	struct drm_syncobj_timeline_array array = {
		.handles = (uintptr_t)&timeline,
		.points = (uintptr_t)&point,
		.count_handles = 1,
	};

	return ioctl(drm, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &array);
}

static NTSTATUS wait_for(D3DKMT_HANDLE fence, __u64 value)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.hDevice = device,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&fence,
		.FenceValueArray = (uintptr_t)&value,
	};

	return D3DKMTWaitForSynchronizationObjectFromCpu(&wait);
}

static int test_timeline(void)
{
	struct drm_syncobj_create create = { 0 };
	D3DKMT_HANDLE fence = make_fence(device);
	struct pollfd early, late;
	int drm = find_drm();

	REQUIRE(fence);
	REQUIRE(!ioctl(drm, DRM_IOCTL_SYNCOBJ_CREATE, &create));
	early.fd = opendxg_timeline_signals(drm, create.handle, 2, fence, 20);
	early.events = POLLIN;
	REQUIRE(early.fd >= 0);
	REQUIRE_EQUAL(poll(&early, 1, 0), 0);
	REQUIRE(!signal_point(drm, create.handle, 2));
	REQUIRE_EQUAL(wait_for(fence, 20), STATUS_SUCCESS);
	REQUIRE(poll(&early, 1, -1) == 1 && early.revents == POLLIN);
	late.fd = opendxg_timeline_signals(drm, create.handle, 1, fence, 21);
	REQUIRE(late.fd >= 0);
	REQUIRE_EQUAL(wait_for(fence, 21), STATUS_SUCCESS);
	REQUIRE(opendxg_timeline_signals(drm, 0x7fff, 1, fence, 22) == -1);
	REQUIRE(opendxg_timeline_signals(drm, create.handle, 1, 0, 22) == -1 && errno == EINVAL);
	close(early.fd);
	close(late.fd);
	close(drm);
	REQUIRE_EQUAL(destroy_fence(fence), STATUS_SUCCESS);
	return 0;
}

static NTSTATUS signal_to(D3DKMT_HANDLE fence, __u64 value)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {
		.hDevice = device,
		.ObjectCount = 1,
		.ObjectHandleArray = (uintptr_t)&fence,
		.FenceValueArray = (uintptr_t)&value,
	};

	return D3DKMTSignalSynchronizationObjectFromCpu(&signal);
}

/* Whether somebody who has waited since before is told of a point. */
static int test_follows(void)
{
	struct drm_syncobj_create create = { 0 };
	struct drm_syncobj_eventfd notify = { .point = 7 };
	D3DKMT_HANDLE fence = make_fence(device);
	struct pollfd event = { .events = POLLIN };
	int drm = find_drm();

	REQUIRE(fence);
	REQUIRE(!ioctl(drm, DRM_IOCTL_SYNCOBJ_CREATE, &create));
	notify.handle = create.handle;
	notify.fd = event.fd = eventfd(0, EFD_CLOEXEC);
	REQUIRE(!ioctl(drm, DRM_IOCTL_SYNCOBJ_EVENTFD, &notify));
	/* A signal of a CPU, which may never come. */
	REQUIRE(opendxg_timeline_follows(drm, create.handle, 7, device, fence, 70) == -1);
	REQUIRE_EQUAL(errno, EAGAIN);
	REQUIRE_EQUAL(poll(&event, 1, 0), 0);
	REQUIRE_EQUAL(signal_to(fence, 70), STATUS_SUCCESS);
	REQUIRE_EQUAL(opendxg_timeline_follows(drm, create.handle, 7, device, fence, 70), 0);
	REQUIRE(poll(&event, 1, -1) == 1 && event.revents == POLLIN);
	REQUIRE(opendxg_timeline_follows(drm, 0x7fff, 8, device, fence, 70) == -1);
	REQUIRE_EQUAL(errno, ENOENT);
	REQUIRE(opendxg_timeline_follows(drm, create.handle, 8, device, 0, 70) == -1);
	REQUIRE_EQUAL(errno, EINVAL);
	close(event.fd);
	close(drm);
	REQUIRE_EQUAL(destroy_fence(fence), STATUS_SUCCESS);
	return 0;
}

static const struct tap_test tests[] = {
	{ "FEN-175 opendxg/timeline.h: a timeline signals a fence", test_timeline },
	{ "FEN-161 opendxg/timeline.h: a timeline follows a fence", test_follows },
};

enum { TESTS = sizeof(tests) / sizeof(tests[0]) };

int main(void)
{
	if (find_drm() < 0) {
		printf("TAP version 13\n1..%d\n", TESTS);
		for (int number = 0; number < TESTS; number++)
			printf("ok %d - %s # SKIP no DRM device with timelines\n", number + 1,
			       tests[number].name);
		return EXIT_SUCCESS;
	}
	if (make_device(&device)) {
		printf("Bail out! %s\n", tap_text);
		return EXIT_FAILURE;
	}
	return tap_run(tests, TESTS);
}
