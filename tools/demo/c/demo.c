// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The C half of the demo: an ordinary program on <d3dkmt.h> and -ld3dkmt. It
 * makes the fence and draws every frame with an odd number.
 *
 *   demo-c SOCKET [FRAME]
 *
 * The other half (tools/demo/src) connects to SOCKET and tells what happens.
 * FRAME is the number of a frame to damage, to show that the demo would notice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "board.h"
#include "fail.h"
#include "fence.h"
#include "link.h"

static void say(const char *text)
{
	printf("  C    %s\n", text);
	fflush(stdout);
}

static D3DKMT_ADAPTERINFO first_adapter(void)
{
	D3DKMT_ADAPTERINFO adapters[16];
	D3DKMT_ENUMADAPTERS2 list = { .NumAdapters = 16, .pAdapters = (uintptr_t)adapters };

	check(D3DKMTEnumAdapters2(&list), "D3DKMTEnumAdapters2");
	if (list.NumAdapters == 0)
		fail("there is no adapter");
	/* Every entry is a handle of its own. One is enough here. */
	for (unsigned int i = 1; i < list.NumAdapters; i++) {
		D3DKMT_CLOSEADAPTER close = { adapters[i].hAdapter };

		check(D3DKMTCloseAdapter(&close), "D3DKMTCloseAdapter");
	}
	return adapters[0];
}

/* Draw the odd frames of a way and check the even ones. */
static void hand_over(const struct fence *fence, struct board *board, uint64_t way, uint64_t spoil)
{
	uint64_t first = way * FRAMES_PER_WAY + 1;

	for (uint64_t number = first; number < first + FRAMES_PER_WAY; number += 2) {
		still_alive();
		frame_draw(&board->frame, number, number == spoil);
		fence_signal(fence, number);
		fence_wait[way](fence, number + 1);
		frame_check(board, number + 1);
	}
}

/* The semaphore lives as long as an NT handle of it is open. Its number keeps nothing alive. */
static void pass_number(int link, D3DKMT_HANDLE device)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device,
		.Info = {
			.Type = D3DDDI_SEMAPHORE,
			.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared,
			.Semaphore = { .MaxCount = 1, .InitialCount = 1 },
		},
	};
	D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy;

	link_expect(link, NUMBER_PLEASE);
	check(D3DKMTCreateSynchronizationObject2(&create), "D3DKMTCreateSynchronizationObject2");
	printf("  C    made a shared semaphore; every program can open it by the number 0x%08x\n",
	       create.Info.SharedHandle);
	fflush(stdout);
	link_send(link, NUMBER, create.Info.SharedHandle, NULL, 0);
	link_expect(link, OPENED);

	destroy.hSyncObject = create.hSyncObject;
	check(D3DKMTDestroySynchronizationObject(&destroy), "D3DKMTDestroySynchronizationObject");
	say("destroyed its own handle of the semaphore");
	link_send(link, DROPPED, 0, NULL, 0);
}

int main(int argc, char **argv)
{
	D3DKMT_ADAPTERINFO adapter;
	D3DKMT_CREATEDEVICE device = { 0 };
	D3DKMT_DESTROYDEVICE destroy;
	D3DKMT_CLOSEADAPTER close_adapter;
	struct fence fence;
	struct board *board;
	uint64_t spoil = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	int link, shared[2];

	if (argc < 2)
		fail("usage: demo-c SOCKET [FRAME]");
	still_alive();
	adapter = first_adapter();
	device.hAdapter = adapter.hAdapter;
	check(D3DKMTCreateDevice(&device), "D3DKMTCreateDevice");
	fence_create(&fence, device.hDevice);
	board = board_create(&shared[1]);
	shared[0] = fence_share(&fence);

	link = link_accept(argv[1]);
	printf("  C    is process %d; it found adapter %08x:%08x, made a fence with value 0, and sends it over\n",
	       getpid(), adapter.AdapterLuid.HighPart, adapter.AdapterLuid.LowPart);
	fflush(stdout);
	link_send(link, HELLO, (uint64_t)(uint32_t)adapter.AdapterLuid.HighPart << 32 | adapter.AdapterLuid.LowPart,
		  shared, 2);
	close(shared[0]);
	close(shared[1]);

	for (uint64_t way = 0; way < WAYS; way++) {
		if (link_expect(link, START) != way)
			fail("the other program starts with the wrong way");
		hand_over(&fence, board, way, spoil);
		link_send(link, FINISHED, 0, NULL, 0);
	}
	still_alive();
	pass_number(link, device.hDevice);
	link_expect(link, GOODBYE);

	fence_destroy(&fence);
	destroy.hDevice = device.hDevice;
	check(D3DKMTDestroyDevice(&destroy), "D3DKMTDestroyDevice");
	close_adapter.hAdapter = adapter.hAdapter;
	check(D3DKMTCloseAdapter(&close_adapter), "D3DKMTCloseAdapter");
	return 0;
}
