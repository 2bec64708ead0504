// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Objects of a program that wrap a resource of the driver: their cleanup
 * functions run once, when the last local handle of the container is gone.
 */
#include <dxg/status.h>
#include <opendxg.h>

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

#include "d3dkmt-tap.h"

enum { LEVELS = 3, SIZE = 4096 };

static D3DKMT_HANDLE device;

/* A texture of an API: the outer object. Its references are handles. */
struct texture {
	D3DKMT_HANDLE resource, levels[LEVELS];
	int cleaned;
};

static void clean(void *context)
{
	struct texture *texture = context;

	__atomic_add_fetch(&texture->cleaned, 1, __ATOMIC_SEQ_CST);
}

static int cleaned(struct texture *texture)
{
	return __atomic_load_n(&texture->cleaned, __ATOMIC_SEQ_CST);
}

/* A texture on a device, whose handles come back in the same call. */
static int create(struct texture *texture, D3DKMT_HANDLE on)
{
	struct opendxg_allocation_data data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = SIZE,
		.width = SIZE,
		.pitch = SIZE,
		.height = 1,
	};
	D3DDDI_ALLOCATIONINFO2 infos[LEVELS] = { 0 };
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = on,
		.NumAllocations = LEVELS,
		.pAllocationInfo2 = (uintptr_t)infos,
		.Flags = D3DKMT_CREATEALLOCATIONFLAGS_CreateResource |
			 D3DKMT_CREATEALLOCATIONFLAGS_CreateShared |
			 D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing,
	};
	int i;

	for (i = 0; i < LEVELS; i++) {
		infos[i].pPrivateDriverData = (uintptr_t)&data;
		infos[i].PrivateDriverDataSize = sizeof(data);
	}
	memset(texture, 0, sizeof(*texture));
	REQUIRE_SUCCESS(D3DKMTCreateAllocation2(&create));
	texture->resource = create.hResource;
	for (i = 0; i < LEVELS; i++)
		texture->levels[i] = infos[i].hAllocation;
	return 0;
}

static NTSTATUS destroy_resource(D3DKMT_HANDLE resource)
{
	D3DKMT_DESTROYALLOCATION2 destroy = { .hDevice = device, .hResource = resource };

	return D3DKMTDestroyAllocation2(&destroy);
}

static NTSTATUS destroy_allocation(D3DKMT_HANDLE allocation)
{
	D3DKMT_DESTROYALLOCATION2 destroy = {
		.hDevice = device,
		.phAllocationList = (uintptr_t)&allocation,
		.AllocationCount = 1,
	};

	return D3DKMTDestroyAllocation2(&destroy);
}

/* A reference to a level, and one to its container by way of the level. */
static int more_references(struct texture *texture, D3DKMT_HANDLE *level, D3DKMT_HANDLE *container)
{
	struct opendxg_dup_local dup = { .handle = texture->levels[1], .index = OPENDXG_WHOLE };
	struct opendxg_get_container get = { 0 };

	REQUIRE_SUCCESS(opendxg_dup_local(&dup));
	get.allocation = dup.new_handle;
	REQUIRE_SUCCESS(opendxg_get_container(&get));
	*level = dup.new_handle;
	*container = get.container;
	return 0;
}

static int test_open(void)
{
	return make_device(&device);
}

static int test_refused(void)
{
	struct texture texture;

	if (create(&texture, device))
		return -1;
	REQUIRE_STATUS(opendxg_set_cleanup(texture.resource, NULL, &texture), STATUS_INVALID_PARAMETER);
	REQUIRE_STATUS(opendxg_set_cleanup(0, clean, &texture), STATUS_INVALID_PARAMETER);
	REQUIRE_STATUS(opendxg_set_cleanup(texture.resource | 1, clean, &texture),
		       STATUS_INVALID_PARAMETER);
	REQUIRE_SUCCESS(destroy_resource(texture.resource));
	REQUIRE_EQUAL(cleaned(&texture), 0);
	return 0;
}

/* Two layers wrap the same resource: both are cleaned up, once. */
static int test_orders(void)
{
	static const int orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	int order, step;

	for (order = 0; order < 6; order++) {
		struct texture outer, outermost = { 0 };
		D3DKMT_HANDLE level, container;

		if (create(&outer, device) || more_references(&outer, &level, &container))
			return -1;
		/* One layer knows the texture, the other one a level of it. */
		REQUIRE_SUCCESS(opendxg_set_cleanup(outer.resource, clean, &outer));
		REQUIRE_SUCCESS(opendxg_set_cleanup(level, clean, &outermost));
		for (step = 0; step < 3; step++) {
			REQUIRE_EQUAL(cleaned(&outer), 0);
			REQUIRE_EQUAL(cleaned(&outermost), 0);
			if (orders[order][step] == 0)
				REQUIRE_SUCCESS(destroy_resource(outer.resource));
			else if (orders[order][step] == 1)
				REQUIRE_SUCCESS(destroy_allocation(level));
			else
				REQUIRE_SUCCESS(destroy_resource(container));
		}
		REQUIRE_EQUAL(cleaned(&outer), 1);
		REQUIRE_EQUAL(cleaned(&outermost), 1);
	}
	return 0;
}

static int test_descriptors(void)
{
	struct opendxg_open_weak weak = { .handle_type = OPENDXG_HANDLE_LOCAL };
	struct texture texture;
	HANDLE shared = 0;

	if (create(&texture, device))
		return -1;
	REQUIRE_SUCCESS(D3DKMTShareObjects(1, &texture.resource, NULL,
					   SHARED_ALLOCATION_ALL_ACCESS, &shared));
	weak.handle = texture.resource;
	REQUIRE_SUCCESS(opendxg_open_weak(&weak));
	REQUIRE_SUCCESS(opendxg_set_cleanup(texture.resource, clean, &texture));
	REQUIRE_SUCCESS(destroy_resource(texture.resource));
	REQUIRE_EQUAL(cleaned(&texture), 1);
	close(weak.fd);
	close((int)shared);
	return 0;
}

/* The function may use the library: it makes and destroys another texture. */
static void clean_and_create(void *context)
{
	struct texture other;

	if (create(&other, device) || opendxg_set_cleanup(other.resource, clean, context) ||
	    destroy_resource(other.resource))
		abort();
	clean(context);
}

static int test_reentry(void)
{
	struct texture texture;

	if (create(&texture, device))
		return -1;
	REQUIRE_SUCCESS(opendxg_set_cleanup(texture.resource, clean_and_create, &texture));
	REQUIRE_SUCCESS(destroy_resource(texture.resource));
	REQUIRE_EQUAL(cleaned(&texture), 2);
	return 0;
}

static int test_device(void)
{
	D3DKMT_DESTROYDEVICE destroy = { 0 };
	struct texture texture;

	if (make_device(&destroy.hDevice) || create(&texture, destroy.hDevice))
		return -1;
	REQUIRE_SUCCESS(opendxg_set_cleanup(texture.levels[2], clean, &texture));
	REQUIRE_SUCCESS(D3DKMTDestroyDevice(&destroy));
	REQUIRE_EQUAL(cleaned(&texture), 1);
	return 0;
}

/* Handles on two devices, one of which ends: before and after the handle that was set. */
static int test_two_devices(void)
{
	int last;

	for (last = 0; last < 2; last++) {
		struct opendxg_open_weak weak = { .handle_type = OPENDXG_HANDLE_LOCAL };
		struct opendxg_resolve_weak resolve = { 0 };
		D3DKMT_DESTROYDEVICE destroy = { 0 };
		D3DKMT_HANDLE other;
		struct texture texture;

		if (make_device(&other) || create(&texture, device))
			return -1;
		weak.handle = texture.resource;
		REQUIRE_SUCCESS(opendxg_open_weak(&weak));
		resolve.fd = weak.fd;
		resolve.device = other;
		REQUIRE_SUCCESS(opendxg_resolve_weak(&resolve));
		REQUIRE_SUCCESS(opendxg_set_cleanup(texture.resource, clean, &texture));
		destroy.hDevice = other;
		if (last) {
			REQUIRE_SUCCESS(destroy_resource(texture.resource));
			REQUIRE_EQUAL(cleaned(&texture), 0);
			REQUIRE_SUCCESS(D3DKMTDestroyDevice(&destroy));
		} else {
			REQUIRE_SUCCESS(D3DKMTDestroyDevice(&destroy));
			REQUIRE_EQUAL(cleaned(&texture), 0);
			REQUIRE_SUCCESS(destroy_resource(texture.resource));
		}
		REQUIRE_EQUAL(cleaned(&texture), 1);
		close(weak.fd);
	}
	return 0;
}

/* More containers in one call than are looked after one by one. */
static int test_many(void)
{
	enum { MANY = 100 };
	struct opendxg_allocation_data data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = SIZE,
		.width = SIZE,
		.pitch = SIZE,
		.height = 1,
	};
	D3DDDI_ALLOCATIONINFO2 infos[MANY] = { 0 };
	D3DKMT_HANDLE handles[MANY];
	struct texture textures[MANY] = { 0 };
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device,
		.NumAllocations = MANY,
		.pAllocationInfo2 = (uintptr_t)infos,
	};
	D3DKMT_DESTROYALLOCATION2 destroy = {
		.hDevice = device,
		.phAllocationList = (uintptr_t)handles,
		.AllocationCount = MANY,
	};
	int i;

	for (i = 0; i < MANY; i++) {
		infos[i].pPrivateDriverData = (uintptr_t)&data;
		infos[i].PrivateDriverDataSize = sizeof(data);
	}
	REQUIRE_SUCCESS(D3DKMTCreateAllocation2(&create));
	for (i = 0; i < MANY; i++) {
		handles[i] = infos[i].hAllocation;
		REQUIRE_SUCCESS(opendxg_set_cleanup(handles[i], clean, &textures[i]));
	}
	REQUIRE_SUCCESS(D3DKMTDestroyAllocation2(&destroy));
	for (i = 0; i < MANY; i++)
		REQUIRE_EQUAL(cleaned(&textures[i]), 1);
	return 0;
}

/* A forked child has handles of its own and no cleanup functions. */
static int test_fork(void)
{
	struct texture texture;
	int status;
	pid_t child;

	if (create(&texture, device))
		return -1;
	REQUIRE_SUCCESS(opendxg_set_cleanup(texture.resource, clean, &texture));
	child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		struct texture own;
		D3DKMT_HANDLE here;

		if (make_device(&here) || create(&own, here))
			_exit(1);
		device = here;
		if (destroy_resource(own.resource))
			_exit(2);
		_exit(cleaned(&texture) == 0 ? 0 : 3);
	}
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	REQUIRE_EQUAL(cleaned(&texture), 0);
	REQUIRE_SUCCESS(destroy_resource(texture.resource));
	REQUIRE_EQUAL(cleaned(&texture), 1);
	return 0;
}

static pthread_barrier_t barrier;

static void *destroy_level(void *handle)
{
	pthread_barrier_wait(&barrier);
	return (void *)(intptr_t)destroy_allocation(*(D3DKMT_HANDLE *)handle);
}

/* The last two handles go at the same time in two threads. */
static int test_race(void)
{
	int round;

	REQUIRE(!pthread_barrier_init(&barrier, NULL, 2));
	for (round = 0; round < 300; round++) {
		D3DKMT_HANDLE level, container;
		struct texture texture;
		pthread_t thread;
		void *result;

		if (create(&texture, device) || more_references(&texture, &level, &container))
			return -1;
		REQUIRE_SUCCESS(opendxg_set_cleanup(container, clean, &texture));
		REQUIRE_SUCCESS(destroy_resource(texture.resource));
		REQUIRE(!pthread_create(&thread, NULL, destroy_level, &level));
		pthread_barrier_wait(&barrier);
		REQUIRE_SUCCESS(destroy_resource(container));
		REQUIRE(!pthread_join(thread, &result));
		REQUIRE_SUCCESS((intptr_t)result);
		REQUIRE_EQUAL(cleaned(&texture), 1);
	}
	pthread_barrier_destroy(&barrier);
	return 0;
}

static const struct tap_test tests[] = {
	{ "a device to work with", test_open },
	{ "RES-76 no function, no handle", test_refused },
	{ "RES-76 RES-85 two layers of wrappers, every order of release, one cleanup each", test_orders },
	{ "RES-76 descriptors do not count", test_descriptors },
	{ "RES-76 a cleanup function may use the library", test_reentry },
	{ "RES-76 the end of the device is the end of its handles", test_device },
	{ "RES-76 handles on two devices, one device ends", test_two_devices },
	{ "RES-76 a hundred containers end in one call", test_many },
	{ "RES-76 a forked child has no cleanup functions", test_fork },
	{ "RES-76 RES-85 the last two handles at once, one cleanup", test_race },
};

int main(void)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
