// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A DRM timeline that signals a fence, by opendxg/timeline.h (FEN-175).
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

static const struct tap_test tests[] = {
	{ "FEN-175 opendxg/timeline.h: a timeline signals a fence", test_timeline },
};

int main(void)
{
	if (find_drm() < 0) {
		printf("TAP version 13\n1..1\nok 1 - %s # SKIP no DRM device with timelines\n",
		       tests[0].name);
		return EXIT_SUCCESS;
	}
	if (make_device(&device)) {
		printf("Bail out! %s\n", tap_text);
		return EXIT_FAILURE;
	}
	return tap_run(tests, 1);
}
