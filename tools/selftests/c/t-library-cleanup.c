// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Cleanup functions of the library, beside what its host does: few descriptors,
 * no memory, signal handlers, namespaces.
 */
#include "library.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

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

static D3DKMT_HANDLE device;

static int descriptors(void)
{
	int fd, count = 0;

	for (fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Modes. Each is a program of its own. */

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

static const struct tap_test modes[] = {
	{ "enumerate-without-memory", mode_enumerate_without_memory },
	{ "query-without-memory", mode_query_without_memory },
	{ "cleanups-without-memory", mode_cleanups_without_memory },
	{ "handler", mode_handler },
	{ "pid-namespace", mode_pid_namespace },
	{ "descriptors", mode_descriptors },
	{ NULL, NULL },
};

/* Tests. */

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
	{ "RES-76 thousands of cleanup functions need no descriptor", test_descriptors },
	{ "RES-76 destroying costs the same beside ten functions and hundreds", test_calls },
	{ "RES-76 the first process of a namespace has none of its parent's functions", test_pid_namespace },
	{ "a signal handler destroys objects", test_handler },
	{ "without memory functions return, and say so", test_memory },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return library_main(argc, argv, modes, tests);
}
