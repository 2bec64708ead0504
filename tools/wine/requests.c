// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A Windows program that times operations on named objects. It says how fast its clock is, and
 * what a look at it costs. Then it reads lines such as `set 100` and answers each with one line
 * of as many times, in ticks of that clock. It ends with its input.
 *
 * As `requests.exe return` it is the other side of `ping-pong`.
 */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME(what) L"opendxg-bench-" what

enum { MOST = 100000, LOOKS = 1001 };

static HANDLE event, happened, mutex, ping, pong;
static LONGLONG times[MOST];

/* check(...): a failed operation ends the program, which fails the run. */
static void check(BOOL done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "requests.exe: %s: error %lu\n", what, GetLastError());
	exit(1);
}

static LONGLONG now(void)
{
	LARGE_INTEGER ticks;

	QueryPerformanceCounter(&ticks);
	return ticks.QuadPart;
}

static void wait_for(HANDLE object, const char *what)
{
	check(WaitForSingleObject(object, INFINITE) == WAIT_OBJECT_0, what);
}

static void set_event(void)
{
	check(SetEvent(event), "SetEvent");
}

static void wait_happened(void)
{
	wait_for(happened, "wait for an event that is set");
}

static void open_event(void)
{
	HANDLE opened = OpenEventW(EVENT_ALL_ACCESS, FALSE, NAME("event"));

	check(opened != NULL, "OpenEvent");
	check(CloseHandle(opened), "CloseHandle");
}

static void open_mapping(void)
{
	HANDLE opened = OpenFileMappingW(FILE_MAP_ALL_ACCESS, FALSE, NAME("mapping"));

	check(opened != NULL, "OpenFileMapping");
	check(CloseHandle(opened), "CloseHandle");
}

static void duplicate(void)
{
	HANDLE self = GetCurrentProcess(), copy;

	check(DuplicateHandle(self, event, self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS), "DuplicateHandle");
	check(CloseHandle(copy), "CloseHandle");
}

static void create_event(void)
{
	HANDLE created = CreateEventW(NULL, TRUE, FALSE, NULL);

	check(created != NULL, "CreateEvent");
	check(CloseHandle(created), "CloseHandle");
}

static void take_mutex(void)
{
	wait_for(mutex, "wait for a free mutex");
	check(ReleaseMutex(mutex), "ReleaseMutex");
}

static void ping_pong(void)
{
	check(SetEvent(ping), "SetEvent");
	wait_for(pong, "wait for the other process");
}

static const struct {
	const char *name;
	void (*run)(void);
} operations[] = {
	{ "set", set_event },
	{ "wait", wait_happened },
	{ "open-event", open_event },
	{ "open-mapping", open_mapping },
	{ "duplicate", duplicate },
	{ "create", create_event },
	{ "mutex", take_mutex },
	{ "ping-pong", ping_pong },
};

static void run(const char *name, int count)
{
	size_t number = 0;

	while (strcmp(operations[number].name, name))
		check(++number < ARRAYSIZE(operations), "no such operation");
	for (int i = 0; i < count; i++) {
		LONGLONG began = now();

		operations[number].run();
		times[i] = now() - began;
	}
	for (int i = 0; i < count; i++)
		printf(i ? " %lld" : "%lld", times[i]);
	printf("\n");
	fflush(stdout);
}

static int compare(const void *a, const void *b)
{
	LONGLONG x = *(const LONGLONG *)a, y = *(const LONGLONG *)b;

	return (x > y) - (x < y);
}

static void describe_clock(void)
{
	LARGE_INTEGER frequency;

	QueryPerformanceFrequency(&frequency);
	for (int i = 0; i < LOOKS; i++) {
		LONGLONG began = now();

		times[i] = now() - began;
	}
	qsort(times, LOOKS, sizeof(*times), compare);
	printf("clock %lld %lld\n", frequency.QuadPart, times[LOOKS / 2]);
	fflush(stdout);
}

/* The events of both sides: whoever is first makes them. */
static void make_events(void)
{
	ping = CreateEventW(NULL, FALSE, FALSE, NAME("ping"));
	pong = CreateEventW(NULL, FALSE, FALSE, NAME("pong"));
	check(ping && pong, "CreateEvent");
}

static HANDLE start_other_side(void)
{
	STARTUPINFOW startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION process;
	WCHAR path[MAX_PATH], command[] = L"requests return";

	check(GetModuleFileNameW(NULL, path, ARRAYSIZE(path)) != 0, "GetModuleFileName");
	check(CreateProcessW(path, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process), "CreateProcess");
	CloseHandle(process.hThread);
	return process.hProcess;
}

int main(int argc, char **argv)
{
	HANDLE other_side, mapping;
	char name[32];
	int count;

	make_events();
	if (argc > 1 && !strcmp(argv[1], "return")) {
		for (;;) {
			wait_for(ping, "wait for the first process");
			check(SetEvent(pong), "SetEvent");
		}
	}
	event = CreateEventW(NULL, TRUE, FALSE, NAME("event"));
	happened = CreateEventW(NULL, TRUE, TRUE, NAME("happened"));
	mutex = CreateMutexW(NULL, FALSE, NAME("mutex"));
	mapping = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 4096, NAME("mapping"));
	check(event && happened && mutex && mapping, "create named objects");
	other_side = start_other_side();
	ping_pong();
	describe_clock();
	while (scanf("%31s %d", name, &count) == 2) {
		check(count >= 0 && count <= MOST, "as many times do not fit");
		run(name, count);
	}
	TerminateProcess(other_side, 0);
	return 0;
}
