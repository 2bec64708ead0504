// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The library as a guest in somebody else's process: descriptors, environment,
 * memory, signals, children. Most tests run this program again, because the
 * library begins its life before main().
 */
#define _GNU_SOURCE
#include <d3dkmt.h>
#include <dxg/status.h>
#include <opendxg.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tap.h"

#define REQUIRE_STATUS(call, expected) \
	REQUIRE_EQUAL((__u32)(call), (__u32)(expected))
#define REQUIRE_SUCCESS(call) REQUIRE_STATUS(call, 0)

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY (1024 + 3)
#endif

#define LOG "/tmp/t-library.log"
#define FIFO "/tmp/t-library.fifo"
#define SUID "/tmp/t-library.suid"
#define NOBODY 65534

/* The heap of the whole process, which can be at its end. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static volatile int no_memory;

void *malloc(size_t size)
{
	return no_memory ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return no_memory ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
	*place = no_memory ? NULL : __libc_memalign(alignment, size);
	return *place ? 0 : ENOMEM;
}

static char self[4096];
static D3DKMT_HANDLE device;

static int make_device(D3DKMT_HANDLE *made)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = (uintptr_t)infos };
	D3DKMT_CREATEDEVICE create = { 0 };

	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&enumerate));
	REQUIRE(enumerate.NumAdapters >= 1);
	create.hAdapter = infos[0].hAdapter;
	REQUIRE_SUCCESS(D3DKMTCreateDevice(&create));
	*made = create.hDevice;
	return 0;
}

static D3DKMT_HANDLE make_fence(D3DKMT_HANDLE on)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = on };

	create.Info.Type = D3DDDI_MONITORED_FENCE;
	return D3DKMTCreateSynchronizationObject2(&create) ? 0 : create.hSyncObject;
}

static NTSTATUS destroy_fence(D3DKMT_HANDLE fence)
{
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = { .hSyncObject = fence };

	return D3DKMTDestroySynchronizationObject(&destroy);
}

static NTSTATUS count_adapters(void)
{
	D3DKMT_ENUMADAPTERS2 count = { 0 };

	return D3DKMTEnumAdapters2(&count);
}

/* The number under which the library has the device open, or -1. */
static int node(void)
{
	char path[64], target[64];
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		ssize_t size;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		size = readlink(path, target, sizeof(target) - 1);
		if (size > 0 && (target[size] = 0, !strcmp(target, "/dev/dxg")))
			return fd;
	}
	return -1;
}

static int descriptors(void)
{
	int fd, count = 0;

	for (fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* What programs do that become daemons. */
static void close_all(void)
{
	syscall(SYS_close_range, 3, ~0U, 0);
}

/* Runs this program again in a mode; its exit status, or -1 for a signal. */
static int run_mode(const char *program, const char *mode, const char *setting, uid_t uid)
{
	char *argv[] = { (char *)program, (char *)mode, NULL };
	char *envp[] = { (char *)setting, NULL };
	int status;
	pid_t child = fork();

	if (!child) {
		if (uid && (setgid(uid) || setuid(uid)))
			_exit(120);
		alarm(tap_limit(20));
		execve(program, argv, envp);
		_exit(121);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int mode(const char *name)
{
	return run_mode(self, name, NULL, 0);
}

/* Runs a function in a child; its result, or -1 for a signal. */
static int in_child(int (*run)(void))
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(run());
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long size_of_log(void)
{
	struct stat stat_buffer;

	return stat(LOG, &stat_buffer) ? -1 : stat_buffer.st_size;
}

/* Modes. Each is a program of its own. */

/* A daemon that opens its log, which gets the number of the node. */
static FILE *open_log(int *number)
{
	int fd;

	*number = node();
	if (*number < 0)
		return NULL;
	close_all();
	fd = open(LOG, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, *number) != *number)
		return NULL;
	if (fd != *number)
		close(fd);
	return fdopen(*number, "w");
}

static int mode_log(void)
{
	int number;
	FILE *log = open_log(&number);

	return log && fputs("fifteen bytes.\n", log) >= 0 ? 0 : 1;
}

static int mode_log_close(void)
{
	int number;
	FILE *log = open_log(&number);

	if (!log)
		return 1;
	D3DKMTCloseDxCoreDevice();
	return fputs("fifteen bytes.\n", log) < 0 || fclose(log) ? 2 : 0;
}

/* A device of the program itself under the number of the library's. */
static int own_device(int *number)
{
	int own, copy;

	*number = node();
	if (*number < 0)
		return -1;
	close_all();
	own = open("/dev/dxg", O_RDONLY | O_CLOEXEC);
	if (own < 0 || dup2(own, *number) != *number)
		return -1;
	copy = fcntl(own, F_DUPFD_CLOEXEC, 300);
	if (own != *number)
		close(own);
	return copy;
}

static int is_untouched(int number, int copy)
{
	return fcntl(number, F_DUPFD_QUERY, copy) == 1;
}

static int mode_own_close(void)
{
	int number, copy = own_device(&number);

	if (copy < 0)
		return 1;
	D3DKMTCloseDxCoreDevice();
	return is_untouched(number, copy) ? 0 : 2;
}

static int own_number, own_copy;

static int child_of_own_device(void)
{
	if (count_adapters())
		return 1;
	return is_untouched(own_number, own_copy) ? 0 : 2;
}

static int mode_own_fork(void)
{
	own_copy = own_device(&own_number);
	return own_copy < 0 ? 1 : in_child(child_of_own_device);
}

static int mode_adapters(void)
{
	return count_adapters() ? 1 : 0;
}

static int mode_unsuccessful(void)
{
	return (__u32)count_adapters() == (__u32)STATUS_UNSUCCESSFUL ? 0 : 1;
}

static int mode_secure(void)
{
	if (!getauxval(AT_SECURE))
		return 77;
	return count_adapters() ? 1 : 0;
}

static int mode_number(void)
{
	return node();
}

static int mode_after_close_all(void)
{
	close_all();
	if (count_adapters() || make_device(&device) || !make_fence(device))
		return 1;
	return 0;
}

/* The memory is that of the parent, which must still find its node. */
static int mode_vfork(void)
{
	pid_t child;
	int status;

	if (make_device(&device))
		return 1;
	child = vfork();
	if (!child) {
		close_all();
		count_adapters();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	return make_fence(device) && !count_adapters() ? 0 : 3;
}

static int mode_enumerate_without_memory(void)
{
	D3DKMT_ENUMADAPTERS all = { 0 };
	NTSTATUS status;

	no_memory = 1;
	status = D3DKMTEnumAdapters(&all);
	no_memory = 0;
	return !status && all.NumAdapters >= 1 ? 0 : 1;
}

/* The form for a WCHAR of four bytes, which the header leads past. */
NTSTATUS query_wide(D3DKMT_QUERYADAPTERINFO *args) __asm__("D3DKMTQueryAdapterInfo");

static int mode_query_without_memory(void)
{
	static __u32 text[4096];
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 1, .pAdapters = (uintptr_t)&info };
	D3DKMT_QUERYADAPTERINFO query = {
		.Type = KMTQAITYPE_DRIVER_DESCRIPTION,
		.pPrivateDriverData = (uintptr_t)text,
		.PrivateDriverDataSize = sizeof(text),
	};
	NTSTATUS status;

	if (D3DKMTEnumAdapters2(&enumerate))
		return 1;
	query.hAdapter = info.hAdapter;
	no_memory = 1;
	status = query_wide(&query);
	no_memory = 0;
	if ((__u32)status != (__u32)STATUS_NO_MEMORY)
		return 2;
	return query_wide(&query) || !text[0] ? 3 : 0;
}

static int cleaned;

static void clean(void *context)
{
	(void)context;
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static int mode_cleanups_without_memory(void)
{
	D3DKMT_HANDLE fences[2000];
	NTSTATUS status = 0;
	int made = 0, set = 0, i;

	if (make_device(&device))
		return 1;
	for (made = 0; made < 2000; made++)
		fences[made] = make_fence(device);
	no_memory = 1;
	while (set < made && !(status = opendxg_set_cleanup(fences[set], clean, NULL)))
		set++;
	no_memory = 0;
	if (set < made && (__u32)status != (__u32)STATUS_NO_MEMORY)
		return 2;
	for (i = 0; i < made; i++)
		if (destroy_fence(fences[i]))
			return 3;
	return cleaned == set ? 0 : 4;
}

static D3DKMT_HANDLE of_handler[400];
static volatile int handled;

static void on_alarm(int number)
{
	(void)number;
	if (handled < 400 && !destroy_fence(of_handler[handled]))
		handled++;
}

/* Destroying with functions set, in the program and in its signal handler. */
static int mode_handler(void)
{
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	int i;

	if (make_device(&device))
		return 1;
	for (i = 0; i < 300; i++)
		if (opendxg_set_cleanup(make_fence(device), clean, NULL))
			return 2;
	for (i = 0; i < 400; i++) {
		of_handler[i] = make_fence(device);
		if (i % 2 && opendxg_set_cleanup(of_handler[i], clean, NULL))
			return 3;
	}
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 100) {
		D3DKMT_HANDLE fence = make_fence(device);
		int before = handled;

		if (opendxg_set_cleanup(fence, clean, NULL) || destroy_fence(fence))
			return 4;
		(void)before;
	}
	signal(SIGALRM, SIG_IGN);
	return cleaned >= handled / 2 ? 0 : 5;
}

static int destroys_a_fence(void)
{
	D3DKMT_HANDLE fence, here;

	if (getpid() != 1)
		return 1;
	if (make_device(&here) || !(fence = make_fence(here)) || destroy_fence(fence))
		return 2;
	return cleaned ? 3 : 0;
}

/* The first process of a PID namespace, as in a container, forks into another. */
static int first_process(void)
{
	D3DKMT_HANDLE fence;

	if (getpid() != 1 || make_device(&device) || !(fence = make_fence(device)))
		return 11;
	if (opendxg_set_cleanup(fence, clean, NULL) || unshare(CLONE_NEWPID))
		return 12;
	if (in_child(destroys_a_fence))
		return 13;
	return !destroy_fence(fence) && cleaned == 1 ? 0 : 14;
}

static int mode_pid_namespace(void)
{
	return unshare(CLONE_NEWPID) ? 10 : in_child(first_process);
}

/* With as few descriptors as a shell may give, and thousands of functions. */
static int mode_descriptors(void)
{
	enum { MANY = 3000 };
	static D3DKMT_HANDLE fences[MANY];
	int i, before;

	if (make_device(&device))
		return 1;
	before = descriptors();
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ before + 8, before + 8 });
	for (i = 0; i < MANY; i++)
		if (!(fences[i] = make_fence(device)) ||
		    opendxg_set_cleanup(fences[i], clean, NULL))
			return 2;
	if (descriptors() != before)
		return 3;
	for (i = 0; i < MANY; i++)
		if (destroy_fence(fences[i]) || cleaned != i + 1)
			return 4;
	return descriptors() == before ? 0 : 5;
}

/* System calls of one destruction, beside so many functions; -1 if it fails. */
static int calls_beside(int functions)
{
	int status, counting = 0, calls = 0;
	pid_t child = fork();

	if (!child) {
		D3DKMT_HANDLE fence;
		int i;

		if (make_device(&device))
			_exit(1);
		for (i = 0; i < functions; i++)
			if (opendxg_set_cleanup(make_fence(device), clean, NULL))
				_exit(2);
		fence = make_fence(device);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		syscall(SYS_getppid);
		destroy_fence(fence);
		syscall(SYS_getppid);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return -1;
	ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		struct __ptrace_syscall_info info;

		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) || waitpid(child, &status, 0) != child)
			return -1;
		if (WIFEXITED(status))
			return WEXITSTATUS(status) ? -1 : calls;
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info);
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == SYS_getppid)
			counting = !counting;
		else
			calls += counting;
	}
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
	{ "log", mode_log },
	{ "log-close", mode_log_close },
	{ "own-close", mode_own_close },
	{ "own-fork", mode_own_fork },
	{ "adapters", mode_adapters },
	{ "unsuccessful", mode_unsuccessful },
	{ "secure", mode_secure },
	{ "number", mode_number },
	{ "after-close-all", mode_after_close_all },
	{ "vfork", mode_vfork },
	{ "enumerate-without-memory", mode_enumerate_without_memory },
	{ "query-without-memory", mode_query_without_memory },
	{ "cleanups-without-memory", mode_cleanups_without_memory },
	{ "handler", mode_handler },
	{ "pid-namespace", mode_pid_namespace },
	{ "descriptors", mode_descriptors },
};

/* Tests. */

static int test_log(void)
{
	REQUIRE_EQUAL(mode("log"), 0);
	REQUIRE_EQUAL(size_of_log(), 15);
	REQUIRE_EQUAL(mode("log-close"), 0);
	REQUIRE_EQUAL(size_of_log(), 15);
	return 0;
}

static int test_own_device(void)
{
	REQUIRE_EQUAL(mode("own-close"), 0);
	REQUIRE_EQUAL(mode("own-fork"), 0);
	return 0;
}

static int test_environment(void)
{
	REQUIRE_EQUAL(run_mode(self, "adapters", "OPENDXG_DEVICE=", 0), 0);
	REQUIRE_EQUAL(run_mode(self, "adapters", "OPENDXG_DEVICE=/dev/dxg", 0), 0);
	REQUIRE_EQUAL(run_mode(self, "unsuccessful", "OPENDXG_DEVICE=/dev/null", 0), 0);
	REQUIRE_EQUAL(run_mode(self, "unsuccessful", "OPENDXG_DEVICE=/tmp", 0), 0);
	return 0;
}

/* Whether somebody has the FIFO open for reading, or waits for a writer. */
static int has_reader(void)
{
	int fd = open(FIFO, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Runs a mode with the FIFO for a device; whether the FIFO was opened. */
static int opens_fifo(const char *program, const char *name, uid_t uid, int *result)
{
	int status, opened = 0;
	pid_t child = fork();

	if (!child)
		_exit(run_mode(program, name, "OPENDXG_DEVICE=" FIFO, uid));
	while (!waitpid(child, &status, WNOHANG)) {
		opened |= has_reader();
		usleep(1000);
	}
	*result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return opened;
}

static int make_fifo(void)
{
	unlink(FIFO);
	return mkfifo(FIFO, 0600);
}

static int test_fifo(void)
{
	int result;

	REQUIRE(!make_fifo());
	REQUIRE_EQUAL(opens_fifo(self, "unsuccessful", 0, &result), 0);
	REQUIRE_EQUAL(result, 0);
	return 0;
}

static int test_secure(void)
{
	char command[8192];
	int result;

	snprintf(command, sizeof(command), "cp %s " SUID " && chmod 4755 " SUID, self);
	REQUIRE(!system(command));
	REQUIRE(!make_fifo());
	REQUIRE_EQUAL(opens_fifo(SUID, "secure", NOBODY, &result), 0);
	REQUIRE_EQUAL(result, 0);
	unlink(SUID);
	return 0;
}

static int numbers_without_streams(void)
{
	int number;

	syscall(SYS_close_range, 0, 2, 0);
	number = mode("number");
	return number > 2 && number < 250 ? 0 : 1;
}

static int test_streams(void)
{
	REQUIRE_EQUAL(in_child(numbers_without_streams), 0);
	return 0;
}

static int test_closefrom(void)
{
	REQUIRE_EQUAL(mode("after-close-all"), 0);
	REQUIRE_EQUAL(in_child(mode_after_close_all), 0);
	REQUIRE_EQUAL(mode("vfork"), 0);
	return 0;
}

static int test_memory(void)
{
	REQUIRE_EQUAL(mode("enumerate-without-memory"), 0);
	REQUIRE_EQUAL(mode("query-without-memory"), 0);
	REQUIRE_EQUAL(mode("cleanups-without-memory"), 0);
	return 0;
}

static int test_handler(void)
{
	REQUIRE_EQUAL(mode("handler"), 0);
	return 0;
}

static int test_pid_namespace(void)
{
	REQUIRE_EQUAL(mode("pid-namespace"), 0);
	return 0;
}

static int test_descriptors(void)
{
	REQUIRE_EQUAL(mode("descriptors"), 0);
	return 0;
}

static int test_calls(void)
{
	int few = calls_beside(10), many = calls_beside(400);

	REQUIRE(few >= 1);
	REQUIRE_EQUAL(few, many);
	/* Without any function it is the call itself. */
	REQUIRE_EQUAL(calls_beside(0), 1);
	return 0;
}

static const struct tap_test tests[] = {
	{ "H1 a log under the number of the node keeps its bytes, at exit and when the device is closed", test_log },
	{ "H1 L15 a device of the program under that number is neither closed nor replaced", test_own_device },
	{ "H2 the environment names the device, an empty value does not", test_environment },
	{ "H2 a FIFO for a device is not opened, and stops nobody", test_fifo },
	{ "H2 a set-user-ID program does not ask the environment", test_secure },
	{ "H3 RES-76 thousands of cleanup functions need no descriptor", test_descriptors },
	{ "H3 RES-76 destroying costs the same beside ten functions and hundreds", test_calls },
	{ "M4 RES-76 the first process of a namespace has none of its parent's functions", test_pid_namespace },
	{ "M5 a signal handler destroys objects", test_handler },
	{ "M6 without memory functions return, and say so", test_memory },
	{ "M7 the node is none of the standard streams", test_streams },
	{ "M7 closing all descriptors, fork and vfork are survived", test_closefrom },
};

int main(int argc, char **argv)
{
	unsigned int i;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 100;
	if (argc < 2)
		return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run();
	return 101;
}
