// SPDX-License-Identifier: MIT OR Apache-2.0
#include "fail.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("demo-c: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void fail_errno(const char *what)
{
	fail("%s: %s", what, strerror(errno));
}

void check(NTSTATUS status, const char *function)
{
	if (!NT_SUCCESS(status))
		fail("%s failed with status 0x%08X", function, (unsigned int)status);
}

static void nothing_happened(int signal)
{
	static const char text[] = "demo-c: nothing happened for 20 seconds\n";

	(void)signal;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

void still_alive(void)
{
	signal(SIGALRM, nothing_happened);
	alarm(20);
}
