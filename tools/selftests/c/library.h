/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests of the library that run their program again, in a mode, because the
 * library begins its life before main(). Included once by a program.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#define _GNU_SOURCE
#include <d3dkmt.h>
#include <dxg/status.h>
#include <opendxg.h>

#include <errno.h>
#include <stdint.h>
#include <sys/wait.h>

#include "d3dkmt-tap.h"

/* The path of this program. */
static char self[4096];

static inline D3DKMT_HANDLE make_fence(D3DKMT_HANDLE on)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = { .hDevice = on };

	create.Info.Type = D3DDDI_MONITORED_FENCE;
	return D3DKMTCreateSynchronizationObject2(&create) ? 0 : create.hSyncObject;
}

static inline NTSTATUS destroy_fence(D3DKMT_HANDLE fence)
{
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = { .hSyncObject = fence };

	return D3DKMTDestroySynchronizationObject(&destroy);
}

/* How a child ends: its exit status, or -1 for a signal. */
static inline int end_of(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		return -2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs this program again in a mode; its exit status, or -1 for a signal. */
static inline int run_mode(const char *program, const char *mode, const char *setting, uid_t uid)
{
	char *argv[] = { (char *)program, (char *)mode, NULL };
	char *envp[] = { (char *)setting, NULL };
	pid_t child = fork();

	if (!child) {
		if (uid && (setgid(uid) || setuid(uid)))
			_exit(120);
		alarm(tap_limit(20));
		execve(program, argv, envp);
		_exit(121);
	}
	return end_of(child);
}

static inline int mode(const char *name)
{
	return run_mode(self, name, NULL, 0);
}

/* Runs a function in a child; its result, or -1 for a signal. */
static inline int in_child(int (*run)(void))
{
	pid_t child = fork();

	if (!child)
		_exit(run());
	return end_of(child);
}

/* Runs a mode, or without one all tests. The lists end with an empty entry. */
static inline int library_main(int argc, char **argv, const struct tap_test *modes,
			       const struct tap_test *tests)
{
	unsigned int count = 0;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 100;
	if (argc < 2) {
		while (tests[count].name)
			count++;
		return tap_run(tests, count);
	}
	for (; modes->name; modes++)
		if (!strcmp(argv[1], modes->name))
			return modes->run();
	return 101;
}

#endif
