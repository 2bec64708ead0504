// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Names through the C library: security descriptors become modes, and the
 * OBJECT_ATTRIBUTES of 32-bit programs are understood.
 */
#define _GNU_SOURCE
#include <d3dkmt.h>
#include <dxg/status.h>

#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "d3dkmt-tap.h"

enum { WAIT = 0x1, SIGNAL = 0x2, ALL = 0x1f0003, OTHER_USER = 1000 };

static D3DKMT_HANDLE device, fence;

static int test_fence(void)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = (uintptr_t)infos };
	D3DKMT_CREATEDEVICE create = { 0 };
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 sync = { 0 };

	REQUIRE_SUCCESS(D3DKMTEnumAdapters2(&enumerate));
	REQUIRE(enumerate.NumAdapters >= 1);
	create.hAdapter = infos[0].hAdapter;
	REQUIRE_SUCCESS(D3DKMTCreateDevice(&create));
	device = create.hDevice;
	sync.hDevice = device;
	sync.Info.Type = D3DDDI_MONITORED_FENCE;
	sync.Info.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared |
			  D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing;
	REQUIRE_SUCCESS(D3DKMTCreateSynchronizationObject2(&sync));
	fence = sync.hSyncObject;
	return 0;
}

/* \BaseNamedObjects\c-names */
static const __u16 name[] = {
	'\\', 'B', 'a', 's', 'e', 'N', 'a', 'm', 'e', 'd', 'O', 'b', 'j', 'e', 'c', 't', 's',
	'\\', 'c', '-', 'n', 'a', 'm', 'e', 's',
};

static UNICODE_STRING string = { sizeof(name), sizeof(name), 0, 0 };

static OBJECT_ATTRIBUTES attributes(const void *descriptor)
{
	string.Buffer = (uintptr_t)name;
	return (OBJECT_ATTRIBUTES){
		.Length = sizeof(OBJECT_ATTRIBUTES),
		.ObjectName = (uintptr_t)&string,
		.SecurityDescriptor = (uintptr_t)descriptor,
	};
}

static NTSTATUS open_name(__u32 access)
{
	OBJECT_ATTRIBUTES wanted = attributes(NULL);
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME open = {
		.dwDesiredAccess = access,
		.pObjAttrib = (uintptr_t)&wanted,
	};
	NTSTATUS status = D3DKMTOpenSyncObjectNtHandleFromName(&open);

	if (NT_SUCCESS(status))
		close((int)open.hNtHandle);
	return status;
}

/* What another user is told, in a process of its own. */
static int as_other_user(__u32 access, NTSTATUS *status)
{
	int ends[2];
	pid_t child;

	REQUIRE(!pipe(ends));
	child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		D3DKMT_ENUMADAPTERS2 reopen = { 0 };
		NTSTATUS answer;

		if (setresgid(OTHER_USER, OTHER_USER, OTHER_USER) ||
		    setresuid(OTHER_USER, OTHER_USER, OTHER_USER) || D3DKMTEnumAdapters2(&reopen))
			_exit(1);
		answer = open_name(access);
		_exit(write(ends[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(ends[1]);
	REQUIRE(read(ends[0], status, sizeof(*status)) == sizeof(*status));
	close(ends[0]);
	REQUIRE(waitpid(child, NULL, 0) == child);
	return 0;
}

/* Shares with a descriptor and compares what another user is told. */
static int check(const void *descriptor, NTSTATUS wait, NTSTATUS signal)
{
	OBJECT_ATTRIBUTES named = attributes(descriptor);
	HANDLE shared = 0;
	NTSTATUS status;

	REQUIRE_SUCCESS(D3DKMTShareObjects(1, &fence, &named, ALL, &shared));
	REQUIRE_SUCCESS(open_name(ALL));
	if (as_other_user(WAIT, &status))
		return -1;
	REQUIRE_STATUS(status, wait);
	if (as_other_user(WAIT | SIGNAL, &status))
		return -1;
	REQUIRE_STATUS(status, signal);
	close((int)shared);
	return 0;
}

/* A self-relative descriptor whose list has one entry for Everyone. */
struct everyone {
	__u8 revision, reserved;
	__u16 control;
	__u32 owner, group, system_list, list;
	__u8 list_revision, list_reserved;
	__u16 list_size, count, list_reserved2;
	__u8 kind, flags;
	__u16 size;
	__u32 mask;
	__u8 sid[12];
};

static const struct everyone read_only = {
	.revision = 1,
	.control = 0x8004, /* self-relative, with a list */
	.list = 20,
	.list_revision = 2,
	.list_size = 28,
	.count = 1,
	.size = 20,
	.mask = WAIT,
	.sid = { 1, 1, 0, 0, 0, 0, 0, 1 },
};

static int test_private(void)
{
	static const __u32 no_list[5] = { 1 | 0x80000000u };

	if (check(NULL, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_NAME_NOT_FOUND))
		return -1;
	return check(no_list, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_NAME_NOT_FOUND);
}

static int test_public(void)
{
	/* Absolute, the list is present and NULL. */
	static const __u64 absolute[5] = { 1 | 0x40000 };
	static const __u32 relative[5] = { 1 | 0x80040000u };

	return check(absolute, STATUS_SUCCESS, STATUS_SUCCESS) ||
	       check(relative, STATUS_SUCCESS, STATUS_SUCCESS) ? -1 : 0;
}

static int test_everyone(void)
{
	struct everyone write = read_only;

	if (check(&read_only, STATUS_SUCCESS, STATUS_ACCESS_DENIED))
		return -1;
	write.mask = 0x10000000;
	return check(&write, STATUS_SUCCESS, STATUS_SUCCESS);
}

static int test_revision(void)
{
	static const __u32 wrong[5] = { 2 | 0x80040000u };
	OBJECT_ATTRIBUTES named = attributes(wrong);
	HANDLE shared = 7;

	REQUIRE_STATUS(D3DKMTShareObjects(1, &fence, &named, ALL, &shared), STATUS_UNKNOWN_REVISION);
	REQUIRE_EQUAL(shared, 7);
	REQUIRE_STATUS(open_name(WAIT), STATUS_OBJECT_NAME_NOT_FOUND);
	return 0;
}

/* Everything a 32-bit program would have, at addresses it could have. */
struct short_form {
	__u32 attributes[6];
	struct {
		__u16 length, maximum;
		__u32 buffer;
	} string;
	__u16 name[sizeof(name) / sizeof(name[0])];
};

static int test_short(void)
{
	struct short_form *form = mmap(NULL, sizeof(*form), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME open = { .dwDesiredAccess = ALL };
	HANDLE shared = 0;

	REQUIRE(form != MAP_FAILED);
	form->attributes[0] = 24;
	form->attributes[2] = (__u32)(uintptr_t)&form->string;
	form->string.length = sizeof(name);
	form->string.maximum = sizeof(name);
	form->string.buffer = (__u32)(uintptr_t)form->name;
	memcpy(form->name, name, sizeof(name));

	REQUIRE_SUCCESS(D3DKMTShareObjects(1, &fence, (OBJECT_ATTRIBUTES *)form, ALL, &shared));
	REQUIRE_SUCCESS(open_name(ALL));
	open.pObjAttrib = (uintptr_t)form;
	REQUIRE_SUCCESS(D3DKMTOpenSyncObjectNtHandleFromName(&open));
	REQUIRE_EQUAL(open.pObjAttrib, (uintptr_t)form);
	close((int)open.hNtHandle);
	close((int)shared);
	REQUIRE_STATUS(D3DKMTOpenSyncObjectNtHandleFromName(&open), STATUS_OBJECT_NAME_NOT_FOUND);
	munmap(form, sizeof(*form));
	return 0;
}

static const struct tap_test tests[] = {
	{ "a fence to share", test_fence },
	{ "RES-45 no descriptor, or one without a list: for the owner alone", test_private },
	{ "RES-45 a NULL list: for everyone", test_public },
	{ "RES-45 RES-109 an entry for Everyone: what it grants", test_everyone },
	{ "RES-38 another revision is refused", test_revision },
	{ "RES-38 the attributes of 32-bit programs", test_short },
};

int main(void)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
