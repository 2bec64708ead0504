// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include "board.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"

struct board *board_create(int *fd)
{
	void *memory;

	*fd = memfd_create("frames", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, sizeof(struct board)))
		fail_errno("no shared memory");
	memory = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (memory == MAP_FAILED)
		fail_errno("no shared memory");
	return memory;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The picture: a different 64-bit value for every pixel of every frame. */
static uint64_t pixel(uint64_t number, uint64_t index)
{
	uint64_t x = number * PIXELS + index;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t add_to_checksum(uint64_t checksum, uint64_t value)
{
	return (checksum ^ value) * 0x100000001b3;
}

void frame_draw(struct frame *frame, uint64_t number, int spoil)
{
	uint64_t checksum = number;

	frame->number = number;
	for (int i = 0; i < PIXELS; i++) {
		frame->pixels[i] = pixel(number, i);
		checksum = add_to_checksum(checksum, frame->pixels[i]);
	}
	frame->checksum = checksum;
	if (spoil)
		frame->pixels[PIXELS / 2] ^= 1;
	frame->sent_ns = now_ns();
}

void frame_check(struct board *board, uint64_t number)
{
	const struct frame *frame = &board->frame;
	uint64_t arrived = now_ns();
	uint64_t checksum = number;

	if (frame->number != number)
		fail("frame %llu was due, but frame %llu is there", (unsigned long long)number,
		     (unsigned long long)frame->number);
	for (int i = 0; i < PIXELS; i++) {
		if (frame->pixels[i] != pixel(number, i))
			fail("pixel %d of frame %llu is wrong", i, (unsigned long long)number);
		checksum = add_to_checksum(checksum, frame->pixels[i]);
	}
	if (frame->checksum != checksum)
		fail("checksum of frame %llu is wrong", (unsigned long long)number);
	board->latency_ns[number - 1] = arrived - frame->sent_ns;
}
