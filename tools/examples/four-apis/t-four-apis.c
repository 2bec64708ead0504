// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Four graphics APIs, each in a process of its own, describe one resource to
 * each other without knowing each other. See Documentation/metadata.md.
 *
 * The Direct3D process makes the resource and hands its NT handle on. The Vulkan
 * and OpenGL processes never open the device: they make their calls on the NT
 * handle. The OpenCL process opens the resource and uses its local handle.
 */
#define _GNU_SOURCE
#include "../fdpass.h"
#include "check.h"
#include "layers.h"

#include "../../selftests/c/tap.h"

#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

char check_text[512];

/* The runtime blob of the resource: bytes of the Direct3D runtime alone. */
static const __u8 blob[0x58] = "runtime";

/* One process with a layer in it. */
struct process {
	pid_t pid;
	int socket;
};

static struct process direct3d, vulkan, opengl, opencl;
static int nt_handle = -1;

static struct place on(int descriptor)
{
	return (struct place){ (__u64)descriptor, OPENDXG_HANDLE_SELF };
}

static struct place local(D3DKMT_HANDLE handle)
{
	return (struct place){ handle, OPENDXG_HANDLE_LOCAL };
}

/* Opens the first adapter of this process and makes a device. */
static int open_device(D3DKMT_HANDLE *device)
{
	D3DKMT_ADAPTERINFO infos[16];
	D3DKMT_ENUMADAPTERS2 enumerate = { .NumAdapters = 16, .pAdapters = (uintptr_t)infos };
	D3DKMT_CREATEDEVICE create = { 0 };

	CHECK_STATUS(D3DKMTEnumAdapters2(&enumerate), STATUS_SUCCESS);
	CHECK(enumerate.NumAdapters >= 1);
	create.hAdapter = infos[0].hAdapter;
	CHECK_STATUS(D3DKMTCreateDevice(&create), STATUS_SUCCESS);
	*device = create.hDevice;
	return 0;
}

static int create_resource(D3DKMT_HANDLE device, D3DKMT_HANDLE *resource)
{
	struct opendxg_allocation_data data = {
		.magic = OPENDXG_ALLOCATION_MAGIC,
		.version = 1,
		.size = PICTURE_BYTES,
		.width = PICTURE_WIDTH,
		.pitch = PICTURE_PITCH,
		.height = PICTURE_HEIGHT,
	};
	D3DDDI_ALLOCATIONINFO2 info = {
		.pPrivateDriverData = (uintptr_t)&data,
		.PrivateDriverDataSize = sizeof(data),
	};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device,
		.pPrivateRuntimeData = (uintptr_t)blob,
		.PrivateRuntimeDataSize = sizeof(blob),
		.NumAllocations = 1,
		.pAllocationInfo2 = (uintptr_t)&info,
		.Flags = D3DKMT_CREATEALLOCATIONFLAGS_CreateResource |
			 D3DKMT_CREATEALLOCATIONFLAGS_CreateShared |
			 D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing,
	};

	CHECK_STATUS(D3DKMTCreateAllocation2(&create), STATUS_SUCCESS);
	*resource = create.hResource;
	return 0;
}

/* Opens the resource behind the NT handle on a device of this process. */
static int open_resource(D3DKMT_HANDLE device, D3DKMT_HANDLE *resource)
{
	D3DDDI_OPENALLOCATIONINFO2 info = { 0 };
	__u8 runtime[sizeof(blob)], driver[4096], nothing[1];
	D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE query = {
		.hDevice = device,
		.hNtHandle = (__u64)nt_handle,
	};
	D3DKMT_OPENRESOURCEFROMNTHANDLE open = {
		.hDevice = device,
		.hNtHandle = (__u64)nt_handle,
		.NumAllocations = 1,
		.pOpenAllocationInfo2 = (uintptr_t)&info,
		.pPrivateRuntimeData = (uintptr_t)runtime,
		.PrivateRuntimeDataSize = sizeof(runtime),
		.pResourcePrivateDriverData = (uintptr_t)nothing,
		.pTotalPrivateDriverDataBuffer = (uintptr_t)driver,
		.TotalPrivateDriverDataBufferSize = sizeof(driver),
	};

	CHECK_STATUS(D3DKMTQueryResourceInfoFromNtHandle(&query), STATUS_SUCCESS);
	CHECK(query.PrivateRuntimeDataSize == sizeof(blob) && query.NumAllocations == 1);
	CHECK_STATUS(D3DKMTOpenResourceFromNtHandle(&open), STATUS_SUCCESS);
	CHECK(!memcmp(runtime, blob, sizeof(blob)));
	*resource = open.hResource;
	return 0;
}

/* Says that a step is done and waits until the next one may begin. */
static int next_step(int socket)
{
	char byte = 0;

	CHECK(write(socket, &byte, 1) == 1);
	CHECK(read(socket, &byte, 1) == 1);
	return 0;
}

static int direct3d_process(int socket)
{
	D3DKMT_HANDLE device, resource;
	HANDLE shared = 0;

	if (open_device(&device) || create_resource(device, &resource))
		return -1;
	/* Before anybody can see the resource, so that nobody sees it without. */
	if (direct3d_describe(local(resource)))
		return -1;
	CHECK_STATUS(D3DKMTShareObjects(1, &resource, NULL, SHARED_ALLOCATION_ALL_ACCESS, &shared),
		     STATUS_SUCCESS);
	CHECK(!send_fd(socket, (int)shared));
	close((int)shared);
	return next_step(socket) || survey(local(resource)) ? -1 : 0;
}

static int vulkan_process(int socket)
{
	return vulkan_describe(on(nt_handle)) || next_step(socket) || survey(on(nt_handle)) ? -1 : 0;
}

static int opengl_process(int socket)
{
	return opengl_describe(on(nt_handle)) || next_step(socket) || survey(on(nt_handle)) ? -1 : 0;
}

static int opencl_process(int socket)
{
	D3DKMT_HANDLE device, resource;

	if (open_device(&device) || open_resource(device, &resource))
		return -1;
	return opencl_describe(local(resource)) || next_step(socket) || survey(local(resource)) ? -1 : 0;
}

static int start(struct process *process, int (*run)(int))
{
	int sockets[2];

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	fflush(stdout);
	process->pid = fork();
	REQUIRE(process->pid >= 0);
	if (!process->pid) {
		close(sockets[0]);
		if (!run(sockets[1]))
			_exit(0);
		fprintf(stderr, "# %s\n", check_text);
		_exit(1);
	}
	close(sockets[1]);
	process->socket = sockets[0];
	return 0;
}

/* The process has done its step; it may be gone if it failed. */
static int is_done(struct process *process)
{
	char byte;

	REQUIRE(read(process->socket, &byte, 1) == 1);
	return 0;
}

/* Lets the process do its last step, and waits for it. */
static int finish(struct process *process)
{
	char byte = 0;
	int status;

	REQUIRE(write(process->socket, &byte, 1) == 1);
	close(process->socket);
	REQUIRE(waitpid(process->pid, &status, 0) == process->pid);
	REQUIRE(status == 0);
	return 0;
}

static int test_first(void)
{
	static const __u8 key[16] = OPENDXG_KEY_DIRECT3D;
	struct opendxg_direct3d_info info;

	if (start(&direct3d, direct3d_process))
		return -1;
	nt_handle = receive_fd(direct3d.socket);
	REQUIRE(nt_handle > 0);
	REQUIRE(!store_get(on(nt_handle), key, &info, sizeof(info), OPENDXG_DIRECT3D_INFO_MIN, NULL));
	REQUIRE(info.width == PICTURE_WIDTH);
	return is_done(&direct3d);
}

static int test_others(void)
{
	if (start(&vulkan, vulkan_process) || is_done(&vulkan))
		return -1;
	if (start(&opengl, opengl_process) || start(&opencl, opencl_process))
		return -1;
	return is_done(&opengl) || is_done(&opencl) ? -1 : 0;
}

static int test_survey(void)
{
	return finish(&vulkan) || finish(&opengl) || finish(&opencl) || finish(&direct3d) ? -1 : 0;
}

/* The memory of the layers is gone, their descriptions are not. */
static int test_writers_gone(void)
{
	if (survey(on(nt_handle)))
		TAP_FAIL("%.400s", check_text);
	return 0;
}

/* A second version of a description does not disturb readers of the first. */
static int test_schemas(void)
{
	static const __u8 key[16] = OPENDXG_KEY_OPENGL;
	static const char later[] = "another layout";
	struct opendxg_info_item item = {
		.key = OPENDXG_KEY_OPENGL,
		.schema = 2,
		.data = (uintptr_t)later,
		.size = sizeof(later),
	};
	struct opendxg_set_info set = {
		.handle = (__u64)nt_handle,
		.handle_type = OPENDXG_HANDLE_SELF,
		.item_count = 1,
		.items = (uintptr_t)&item,
	};
	struct opendxg_opengl_info info;
	char short_buffer[4];

	REQUIRE(!opendxg_set_info(&set));
	REQUIRE(!store_get(on(nt_handle), key, &info, sizeof(info), OPENDXG_OPENGL_INFO_MIN, NULL));
	REQUIRE(info.width == PICTURE_WIDTH);
	/* A reader that knows fewer members than the writer. */
	REQUIRE(!store_get(on(nt_handle), key, short_buffer, sizeof(short_buffer), 4, NULL));
	return 0;
}

static int test_end(void)
{
	struct opendxg_watch watch = {
		.handle = (__u64)nt_handle,
		.handle_type = OPENDXG_HANDLE_SELF,
		.events = OPENDXG_WATCH_DESTROY,
		.cookie = 7,
		.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	struct opendxg_watch_state state = { 0 };
	struct pollfd event = { .fd = watch.event_fd, .events = POLLIN };

	REQUIRE(watch.event_fd >= 0);
	REQUIRE(!opendxg_watch(&watch));
	REQUIRE(poll(&event, 1, 0) == 0);
	close(nt_handle);
	REQUIRE(poll(&event, 1, 5000) == 1);
	REQUIRE(!opendxg_watch_state(watch.fd, &state));
	REQUIRE(state.cookie == 7 && state.events == OPENDXG_WATCH_DESTROY);
	close(watch.fd);
	close(watch.event_fd);
	return 0;
}

static const struct tap_test tests[] = {
	{ "RES-55 the description is there as soon as the resource is shared", test_first },
	{ "RES-62 RES-90 three other APIs describe it, two without the device", test_others },
	{ "RES-61 RES-62 RES-90 each process reads all descriptions and the same file", test_survey },
	{ "RES-66 descriptions outlive their writers", test_writers_gone },
	{ "RES-60 a later schema does not disturb readers of the first", test_schemas },
	{ "RES-74 the end of the resource is told", test_end },
};

int main(void)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
