// SPDX-License-Identifier: MIT OR Apache-2.0
// DXCore: notifications, threads, forks, the override of the identity, and
// adapters that come and go with the module.
#include "dxcore.hpp"

#include <initializer_list>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char IDENTITY[] = "OPENDXG_DXCORE_IDENTITY";
static const char MODULE[] = "/opendxg/opendxg.ko";

static Factory factory;

static int first_adapter(Adapter &adapter)
{
	List list;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	return 0;
}

// What a callback has seen.
struct Heard {
	sem_t called, go;
	uint32_t cookie = 0, cookie_seen = 0;
	DXCoreNotificationType type = (DXCoreNotificationType)99;
	IUnknown *object = nullptr;
	unsigned int count = 0;
	bool waits = false, unregisters = false, takes_signals = true;
	HRESULT unregistered = E_FAIL;
	bool left = false;

	Heard()
	{
		sem_init(&called, 0, 0);
		sem_init(&go, 0, 0);
	}
	bool was_called() { return !sem_trywait(&called); }
};

static void hear(DXCoreNotificationType type, IUnknown *object, void *context)
{
	Heard *heard = (Heard *)context;
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
	heard->takes_signals = !sigismember(&blocked, SIGUSR1);
	heard->cookie_seen = __atomic_load_n(&heard->cookie, __ATOMIC_SEQ_CST);
	heard->type = type;
	heard->object = object;
	heard->count++;
	if (heard->unregisters)
		heard->unregistered = factory->UnregisterEventNotification(heard->cookie_seen);
	// Where it is unregistered nobody waits for the rest.
	const bool waits = heard->waits;

	sem_post(&heard->called);
	if (waits) {
		sem_wait(&heard->go);
		usleep(100000);
		__atomic_store_n(&heard->left, true, __ATOMIC_SEQ_CST);
	}
}

static HRESULT listen(IUnknown *object, DXCoreNotificationType type, Heard *heard)
{
	return factory->RegisterEventNotification(object, type, hear, heard, &heard->cookie);
}

static unsigned int threads_of_this_process()
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int count = 0;

	while (tasks && readdir(tasks))
		count++;
	closedir(tasks);
	return count - 2;
}

static int test_registering()
{
	const DXCoreNotificationType stale = DXCoreNotificationType::AdapterListStale;
	Adapter adapter;
	Heard heard;
	List list;

	REQUIRE_OK(DXCoreCreateAdapterFactory(factory.out()));
	if (first_adapter(adapter))
		return -1;
	REQUIRE_OK(list_of(factory, list));
	for (uint32_t type = 0; type < 5; type++)
		REQUIRE_EQUAL(factory->IsNotificationTypeSupported((DXCoreNotificationType)type),
			      type < 4);
	REQUIRE_RESULT(factory->RegisterEventNotification(list, stale, hear, nullptr, nullptr),
		       E_POINTER);
	heard.cookie = 7;
	REQUIRE_RESULT(factory->RegisterEventNotification(list, stale, nullptr, nullptr, &heard.cookie),
		       E_POINTER);
	REQUIRE_EQUAL(heard.cookie, 0);
	heard.cookie = 7;
	REQUIRE_RESULT(listen(list, (DXCoreNotificationType)4, &heard), DXGI_ERROR_INVALID_CALL);
	REQUIRE_EQUAL(heard.cookie, 0);
	REQUIRE_RESULT(listen(nullptr, stale, &heard), E_INVALIDARG);
	REQUIRE_RESULT(listen(adapter, stale, &heard), E_INVALIDARG);
	REQUIRE_RESULT(listen(factory, stale, &heard), E_INVALIDARG);
	for (uint32_t type = 1; type < 4; type++)
		REQUIRE_RESULT(listen(list, (DXCoreNotificationType)type, &heard), E_INVALIDARG);
	REQUIRE_RESULT(factory->UnregisterEventNotification(0), E_INVALIDARG);
	REQUIRE_EQUAL(threads_of_this_process(), 1);

	// What did not happen is not told, and a registration keeps its object.
	REQUIRE_OK(listen(list, stale, &heard));
	REQUIRE(heard.cookie != 0);
	REQUIRE(comes_to(list, 2));
	REQUIRE_EQUAL(threads_of_this_process(), 2);
	REQUIRE_OK(factory->UnregisterEventNotification(heard.cookie));
	REQUIRE_RESULT(factory->UnregisterEventNotification(heard.cookie), E_INVALIDARG);
	REQUIRE(comes_to(list, 1));
	REQUIRE_EQUAL(heard.count, 0);
	while (threads_of_this_process() != 1)
		usleep(1000);
	return 0;
}

static int test_initial_callbacks()
{
	static const DXCoreNotificationType types[] = {
		DXCoreNotificationType::AdapterBudgetChange,
		DXCoreNotificationType::AdapterHardwareContentProtectionTeardown,
	};
	Adapter adapter;

	if (first_adapter(adapter))
		return -1;
	for (DXCoreNotificationType type : types) {
		Heard heard;

		REQUIRE_OK(listen(adapter, type, &heard));
		sem_wait(&heard.called);
		REQUIRE(heard.type == type);
		REQUIRE((void *)heard.object == (void *)adapter.it);
		REQUIRE_EQUAL(heard.cookie_seen, heard.cookie);
		REQUIRE(!heard.takes_signals);
		REQUIRE_OK(factory->UnregisterEventNotification(heard.cookie));
		REQUIRE_EQUAL(heard.count, 1);
	}
	return 0;
}

static void *unregister(void *argument)
{
	Heard *heard = (Heard *)argument;

	heard->unregistered = factory->UnregisterEventNotification(heard->cookie);
	return (void *)(uintptr_t)__atomic_load_n(&heard->left, __ATOMIC_SEQ_CST);
}

static int test_unregistering()
{
	Adapter adapter;
	Heard waits, inside;
	void *had_left;
	pthread_t thread;

	if (first_adapter(adapter))
		return -1;
	waits.waits = true;
	REQUIRE_OK(listen(adapter, DXCoreNotificationType::AdapterBudgetChange, &waits));
	sem_wait(&waits.called);
	REQUIRE(!pthread_create(&thread, nullptr, unregister, &waits));
	sem_post(&waits.go);
	pthread_join(thread, &had_left);
	REQUIRE_OK(waits.unregistered);
	REQUIRE(had_left);

	inside.unregisters = true;
	REQUIRE_OK(listen(adapter, DXCoreNotificationType::AdapterBudgetChange, &inside));
	sem_wait(&inside.called);
	REQUIRE_OK(inside.unregistered);
	REQUIRE_RESULT(factory->UnregisterEventNotification(inside.cookie), E_INVALIDARG);
	REQUIRE(comes_to(adapter, 1));
	return 0;
}

// Everything at once; the first thing that is wrong is returned.
static void *hammer(void *expected)
{
	for (int i = 0; i < 30; i++) {
		DXCoreAdapterPreference preference = DXCoreAdapterPreference::HighPerformance;
		Adapter adapter, same;
		Heard heard;
		List list;

		if (list_of(factory, list) || list->Sort(1, &preference) ||
		    list->GetAdapter(0, adapter.out()) || list->IsStale())
			return (void *)"list";
		if (expected && adapter.it != expected)
			return (void *)"another object";
		if (factory->GetAdapterByLuid(luid_of(adapter), same.out()) || same.it != adapter.it)
			return (void *)"not the same object";
		if (!adapter->IsValid())
			return (void *)"not valid";
		if (i % 8 == 0) {
			if (listen(adapter, DXCoreNotificationType::AdapterBudgetChange, &heard))
				return (void *)"register";
			sem_wait(&heard.called);
			if (factory->UnregisterEventNotification(heard.cookie) || heard.count != 1)
				return (void *)"unregister";
		}
	}
	return nullptr;
}

static int test_threads()
{
	for (int held = 0; held < 2; held++) {
		pthread_t threads[6];
		Adapter adapter;

		// Without anybody who holds it the object comes and goes all the time.
		if (held && first_adapter(adapter))
			return -1;
		for (pthread_t &thread : threads)
			REQUIRE(!pthread_create(&thread, nullptr, hammer, adapter.it));
		for (pthread_t &thread : threads) {
			void *wrong;

			pthread_join(thread, &wrong);
			if (wrong)
				TAP_FAIL("%s", (char *)wrong);
		}
		if (held)
			REQUIRE(comes_to(adapter, 1));
	}
	return 0;
}

static int in_child(IDXCoreAdapter *inherited, const Heard &of_parent)
{
	Adapter adapter;
	Heard heard;
	List list;
	LUID luid = luid_of(inherited);

	REQUIRE_RESULT(factory->UnregisterEventNotification(of_parent.cookie), E_INVALIDARG);
	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	LUID own = luid_of(adapter);
	REQUIRE(!memcmp(&luid, &own, sizeof(own)));
	REQUIRE(inherited->IsValid());
	REQUIRE_OK(listen(adapter, DXCoreNotificationType::AdapterBudgetChange, &heard));
	sem_wait(&heard.called);
	REQUIRE_OK(factory->UnregisterEventNotification(heard.cookie));
	inherited->Release();
	return 0;
}

static int test_fork()
{
	Adapter adapter;
	Heard heard;
	int status;

	if (first_adapter(adapter))
		return -1;
	REQUIRE_OK(listen(adapter, DXCoreNotificationType::AdapterNoLongerValid, &heard));
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		REQUIRE(child >= 0);
		if (!child) {
			alarm(30);
			if (in_child(adapter, heard))
				fprintf(stderr, "# child: %s\n", tap_text);
			_exit(tap_text[0] != 0);
		}
		REQUIRE(waitpid(child, &status, 0) == child);
		REQUIRE_EQUAL(status, 0);
	}
	REQUIRE_OK(factory->UnregisterEventNotification(heard.cookie));
	REQUIRE_EQUAL(heard.count, 0);
	return 0;
}

static int identity_is(uint32_t vendor, uint32_t device, bool is_hardware, const char *text)
{
	DXCoreHardwareIDParts parts;
	DXCoreHardwareID id;
	char description[300];
	Adapter adapter;
	bool hardware;

	if (first_adapter(adapter))
		return -1;
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::HardwareIDParts, &parts));
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::HardwareID, &id));
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::IsHardware, &hardware));
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::DriverDescription,
					sizeof(description), description));
	REQUIRE_EQUAL(parts.vendorID, vendor);
	REQUIRE_EQUAL(parts.deviceID, device);
	REQUIRE_EQUAL(id.vendorID, vendor);
	REQUIRE_EQUAL(id.deviceID, device);
	REQUIRE_EQUAL(hardware, is_hardware);
	if (strcmp(description, text))
		TAP_FAIL("description is %s", description);
	return 0;
}

static int test_override()
{
	static const uint32_t odxg = 0x4758444f;
	static const char own[] = "opendxg software GPU";
	D3DKMT_QUERY_DEVICE_IDS ids = {};
	Adapter adapter;
	int result;

	setenv(IDENTITY, "vendor=0x8086,device=22176,is-hardware=1,description=Arc, the \xc3\xa9th", 1);
	result = identity_is(0x8086, 22176, true, "Arc, the \xc3\xa9th");
	// Only DXCore looks different, and an adapter that is held does not change.
	if (!result)
		result = first_adapter(adapter);
	setenv(IDENTITY, "vendor=1", 1);
	if (!result)
		result = identity_is(0x8086, 22176, true, "Arc, the \xc3\xa9th");
	if (!result) {
		Kmt kmt(luid_of(adapter));

		REQUIRE(kmt.ask(31, &ids, sizeof(ids)));
		REQUIRE_EQUAL(ids.DeviceIds.VendorID, odxg);
	}
	adapter.reset();
	if (!result)
		result = identity_is(1, 1, false, own);
	setenv(IDENTITY, "vendor=1,luid=2", 1);
	if (!result)
		result = identity_is(odxg, 1, false, own);
	unsetenv(IDENTITY);
	return result ? result : identity_is(odxg, 1, false, own);
}

// Runs `program` as an ordinary user: its exit status.
static int identity_seen_by(const char *program)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		if (setgid(1000) || setuid(1000))
			_exit(100);
		setenv(IDENTITY, "vendor=0x8086", 1);
		execl(program, program, "--identity", (char *)nullptr);
		_exit(101);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int copy_program(const char *to, mode_t mode)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int copy = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	char buffer[4096];
	ssize_t bytes;

	REQUIRE(from >= 0 && copy >= 0);
	while ((bytes = read(from, buffer, sizeof(buffer))) > 0)
		REQUIRE(write(copy, buffer, bytes) == bytes);
	REQUIRE(!fchmod(copy, mode));
	close(from);
	close(copy);
	return 0;
}

static int test_setuid()
{
	static const char plain[] = "/dxcore-plain", special[] = "/dxcore-setuid";
	int seen_plain, seen_special;

	if (geteuid())
		return 0;
	if (copy_program(plain, 0755) || copy_program(special, 04755))
		return -1;
	seen_plain = identity_seen_by(plain);
	seen_special = identity_seen_by(special);
	unlink(plain);
	unlink(special);
	REQUIRE_EQUAL(seen_plain, 1);
	REQUIRE_EQUAL(seen_special, 0);
	return 0;
}

// 1 if the vendor is the one of the environment, 0 if it is the driver's.
static int tell_identity()
{
	DXCoreHardwareID id;
	Adapter adapter;

	if (DXCoreCreateAdapterFactory(factory.out()) || first_adapter(adapter) ||
	    adapter->GetProperty(DXCoreAdapterProperty::HardwareID, &id))
		return 2;
	return id.vendorID == 0x8086;
}

// Want of descriptors says nothing about adapters.
static int test_no_descriptors()
{
	struct rlimit limit, none;
	Adapter adapter;
	List list, other;
	bool valid, stale;
	HRESULT refused;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, adapter.out()));
	D3DKMTCloseDxCoreDevice();
	REQUIRE(!getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	REQUIRE(!setrlimit(RLIMIT_NOFILE, &none));
	valid = adapter->IsValid();
	stale = list->IsStale();
	refused = list_of(factory, other);
	REQUIRE(!setrlimit(RLIMIT_NOFILE, &limit));
	REQUIRE(valid);
	REQUIRE(!stale);
	REQUIRE_RESULT(refused, E_OUTOFMEMORY);
	REQUIRE(!other.it);
	REQUIRE(adapter->IsValid());
	REQUIRE(!list->IsStale());
	REQUIRE_OK(list_of(factory, other));
	REQUIRE_EQUAL(other->GetAdapterCount(), list->GetAdapterCount());
	return 0;
}

static char parameters[1024];

// All parameters, in the form that loading takes.
static void remember_parameters()
{
	static const char directory[] = "/sys/module/opendxg/parameters";
	DIR *all = opendir(directory);
	struct dirent *entry;
	size_t used = 0;

	while (all && (entry = readdir(all))) {
		char path[512], value[64];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (entry->d_name[0] == '.' || !(file = fopen(path, "re")))
			continue;
		if (fscanf(file, "%63s", value) == 1)
			used += snprintf(parameters + used, sizeof(parameters) - used, "%s=%s ",
					 entry->d_name, value);
		fclose(file);
	}
	if (all)
		closedir(all);
}

static int load(const char *more)
{
	char all[sizeof(parameters) + 64];
	int file = open(MODULE, O_RDONLY | O_CLOEXEC);
	long result;

	snprintf(all, sizeof(all), "%s%s", parameters, more);
	result = syscall(SYS_finit_module, file, all, 0);
	close(file);
	REQUIRE(!result);
	return 0;
}

// The thread of the callbacks has the device open for a moment now and then.
static int unload()
{
	while (syscall(SYS_delete_module, "opendxg", O_NONBLOCK)) {
		REQUIRE(errno == EAGAIN || errno == EWOULDBLOCK);
		usleep(5000);
	}
	return 0;
}

static int come_and_go()
{
	const DXCoreNotificationType stale_type = DXCoreNotificationType::AdapterListStale;
	const DXCoreNotificationType gone_type = DXCoreNotificationType::AdapterNoLongerValid;
	List before, without, after;
	Heard stale, gone, arrived, late_stale, late_gone;
	uint8_t updating;
	Adapter adapter, held;
	bool hardware;
	void *out;

	REQUIRE_OK(list_of(factory, before));
	REQUIRE_OK(before->GetAdapter(0, adapter.out()));
	const LUID luid = luid_of(adapter);
	REQUIRE_OK(listen(before, stale_type, &stale));
	REQUIRE_OK(listen(adapter, gone_type, &gone));

	// The adapter goes. The registrations do not keep the module.
	D3DKMTCloseDxCoreDevice();
	if (unload())
		return -1;
	sem_wait(&stale.called);
	sem_wait(&gone.called);
	REQUIRE(stale.type == stale_type && gone.type == gone_type);
	REQUIRE((void *)stale.object == (void *)before.it);
	REQUIRE((void *)gone.object == (void *)adapter.it);
	REQUIRE(before->IsStale());
	REQUIRE(!adapter->IsValid());
	REQUIRE_EQUAL(before->GetAdapterCount(), 1);
	REQUIRE_RESULT(before->GetAdapter(0, IID_IDXCoreAdapter, &out), DXGI_ERROR_DEVICE_REMOVED);
	REQUIRE(!out);
	REQUIRE_RESULT(factory->GetAdapterByLuid(luid, IID_IDXCoreAdapter, &out),
		       DXGI_ERROR_DEVICE_REMOVED);
	// Properties stay, states do not.
	REQUIRE_OK(adapter->GetProperty(DXCoreAdapterProperty::IsHardware, &hardware));
	REQUIRE(adapter->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS));
	REQUIRE_RESULT(adapter->QueryState(DXCoreAdapterState::IsDriverUpdateInProgress, &updating),
		       DXGI_ERROR_DEVICE_REMOVED);
	REQUIRE(!adapter->IsQueryStateSupported(DXCoreAdapterState::IsDriverUpdateInProgress));

	// Who registers too late hears it at once.
	REQUIRE_OK(listen(before, stale_type, &late_stale));
	REQUIRE_OK(listen(adapter, gone_type, &late_gone));
	sem_wait(&late_stale.called);
	sem_wait(&late_gone.called);

	// Three adapters come; one of them has the LUID of the old one, and is another.
	REQUIRE_OK(list_of(factory, without));
	REQUIRE_EQUAL(without->GetAdapterCount(), 0);
	REQUIRE(!without->IsStale());
	REQUIRE_OK(listen(without, stale_type, &arrived));
	if (load("adapters=3"))
		return -1;
	sem_wait(&arrived.called);
	REQUIRE(without->IsStale());
	REQUIRE_EQUAL(without->GetAdapterCount(), 0);
	REQUIRE_OK(list_of(factory, after));
	REQUIRE_EQUAL(after->GetAdapterCount(), 3);
	REQUIRE(!after->IsStale());
	REQUIRE(before->IsStale());
	REQUIRE(!adapter->IsValid());
	REQUIRE_OK(factory->GetAdapterByLuid(luid, held.out()));
	REQUIRE(held.it != adapter.it);
	REQUIRE(held->IsValid());

	// Everything was told once.
	for (Heard *heard : { &stale, &gone, &arrived, &late_stale, &late_gone }) {
		REQUIRE_OK(factory->UnregisterEventNotification(heard->cookie));
		REQUIRE_EQUAL(heard->count, 1);
	}
	held.reset();
	adapter.reset();
	before.reset();

	// An adapter that nobody holds any more is forgotten.
	after.reset();
	without.reset();
	D3DKMTCloseDxCoreDevice();
	if (unload())
		return -1;
	REQUIRE_RESULT(factory->GetAdapterByLuid(luid, IID_IDXCoreAdapter, &out), E_INVALIDARG);
	return load("adapters=3");
}

// Adapters are what they were when they were first seen: the second and third are
// hardware, the first is not.
static int sort_three()
{
	DXCoreAdapterPreference hardware = DXCoreAdapterPreference::Hardware;
	Adapter software, adapters[3];
	List list;

	REQUIRE_OK(list_of(factory, list));
	REQUIRE_OK(list->GetAdapter(0, software.out()));
	list.reset();
	setenv(IDENTITY, "is-hardware=1", 1);
	HRESULT created = list_of(factory, list);
	unsetenv(IDENTITY);
	REQUIRE_OK(created);
	for (int i = 0; i < 3; i++)
		REQUIRE_OK(list->GetAdapter(i, adapters[i].out()));
	REQUIRE(adapters[0].it == software.it);
	REQUIRE_OK(list->Sort(1, &hardware));
	for (int i = 0; i < 3; i++) {
		Adapter sorted;

		REQUIRE_OK(list->GetAdapter(i, sorted.out()));
		REQUIRE(sorted.it == adapters[(i + 1) % 3].it);
	}
	return 0;
}

// In a child, so that the module is put back however that ends.
static int test_come_and_go()
{
	int status = -1, restored;
	pid_t child;

	if (geteuid() || access(MODULE, R_OK))
		return 0;
	remember_parameters();
	D3DKMTCloseDxCoreDevice();
	child = fork();
	if (!child) {
		alarm(tap_limit(50));
		if (come_and_go() || sort_three())
			fprintf(stderr, "# child: %s\n", tap_text);
		_exit(tap_text[0] != 0);
	}
	waitpid(child, &status, 0);
	syscall(SYS_delete_module, "opendxg", O_NONBLOCK);
	restored = load("");
	REQUIRE_EQUAL(status, 0);
	return restored;
}

static const struct tap_test tests[] = {
	{ "registering, and what is refused", test_registering },
	{ "some notifications begin with a callback", test_initial_callbacks },
	{ "unregistering waits for the callback, except inside it", test_unregistering },
	{ "threads", test_threads },
	{ "forked children begin anew", test_fork },
	{ "the environment changes the identity and nothing else", test_override },
	{ "setuid programs do not look at the environment", test_setuid },
	{ "want of descriptors says nothing about adapters", test_no_descriptors },
	{ "adapters come and go, and who registered hears it once", test_come_and_go },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--identity"))
		return tell_identity();
	return tap_run(tests, sizeof(tests) / sizeof(*tests));
}
