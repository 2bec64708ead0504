// SPDX-License-Identifier: MIT OR Apache-2.0
// DXCore for programs that open the library and close it again: nothing of it
// runs or piles up then. This program is not linked with it.
#include "dxcore.hpp"

#include <dirent.h>
#include <dlfcn.h>

typedef HRESULT create_factory(REFIID iid, void **factory);

static void *library;

static int open_library(Factory &factory)
{
	library = dlopen("libdxcore.so", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		TAP_FAIL("%s", dlerror());
	create_factory *create = (create_factory *)dlsym(library, "DXCoreCreateAdapterFactory");
	REQUIRE(create);
	REQUIRE_OK(create(IID_IDXCoreAdapterFactory1, (void **)factory.out()));
	return 0;
}

static unsigned int descriptors()
{
	DIR *all = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (all && readdir(all))
		count++;
	closedir(all);
	return count;
}

// A child that gets through the functions that libraries have for forks.
static int fork_once()
{
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(0);
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE_EQUAL(status, 0);
	return 0;
}

static int test_unloading()
{
	const unsigned int before = descriptors();

	for (int i = 0; i < 20; i++) {
		Factory factory;
		List list;
		Adapter adapter;

		if (open_library(factory))
			return -1;
		REQUIRE_OK(list_of(factory, list));
		REQUIRE_OK(list->GetAdapter(0, adapter.out()));
		REQUIRE(adapter->IsValid());
		if (fork_once())
			return -1;
		adapter.reset();
		list.reset();
		factory.reset();
		REQUIRE(!dlclose(library));
		// The device, if the library stays loaded.
		REQUIRE(descriptors() <= before + 1);
		if (fork_once())
			return -1;
	}
	return 0;
}

struct Heard {
	IDXCoreAdapterFactory1 *factory;
	sem_t called;
	uint32_t cookie = 0;
};

static void hear(DXCoreNotificationType, IUnknown *, void *context)
{
	Heard *heard = (Heard *)context;

	heard->factory->UnregisterEventNotification(heard->cookie);
	sem_post(&heard->called);
}

// The library may be closed right after the last callback is unregistered, though
// its thread has a few instructions to go.
static int test_closing_at_once()
{
	for (int i = 0; i < 100; i++) {
		Factory factory;
		List list;
		Adapter adapter;
		Heard heard;

		sem_init(&heard.called, 0, 0);
		if (open_library(factory))
			return -1;
		heard.factory = factory;
		REQUIRE_OK(list_of(factory, list));
		REQUIRE_OK(list->GetAdapter(0, adapter.out()));
		REQUIRE_OK(factory->RegisterEventNotification(
			adapter, DXCoreNotificationType::AdapterBudgetChange, hear, &heard,
			&heard.cookie));
		sem_wait(&heard.called);
		adapter.reset();
		list.reset();
		factory.reset();
		REQUIRE(!dlclose(library));
	}
	return fork_once();
}

static const struct tap_test tests[] = {
	{ "the library can be opened and closed again and again", test_unloading },
	{ "it may be closed as soon as nothing is registered", test_closing_at_once },
};

int main()
{
	return tap_run(tests, sizeof(tests) / sizeof(*tests));
}
