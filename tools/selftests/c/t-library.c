// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The library as a guest in somebody else's process: descriptors, environment,
 * streams, children.
 */
#include "library.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY (1024 + 3)
#endif

#define LOG "/tmp/t-library.log"
#define FIFO "/tmp/t-library.fifo"
#define SUID "/tmp/t-library.suid"
#define NOBODY 65534

static D3DKMT_HANDLE device;

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

/* What programs do that become daemons. */
static void close_all(void)
{
	syscall(SYS_close_range, 3, ~0U, 0);
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

static const struct tap_test modes[] = {
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
	{ NULL, NULL },
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

static const struct tap_test tests[] = {
	{ "a log under the number of the node keeps its bytes, at exit and when the device is closed", test_log },
	{ "a device of the program under that number is neither closed nor replaced", test_own_device },
	{ "the environment names the device, an empty value does not", test_environment },
	{ "a FIFO for a device is not opened, and stops nobody", test_fifo },
	{ "a set-user-ID program does not ask the environment", test_secure },
	{ "the node is none of the standard streams", test_streams },
	{ "closing all descriptors, fork and vfork are survived", test_closefrom },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return library_main(argc, argv, modes, tests);
}
