/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The memory that the two programs share, and how a frame is drawn and checked.
 * tools/demo/src/board.rs is the same thing in Rust.
 */
#ifndef DEMO_BOARD_H
#define DEMO_BOARD_H

#include <stdint.h>

#define FRAMES_PER_WAY 1000
#define WAYS 4
#define PIXELS 512

/* The fence value that announces a frame is its number: 1, 2, 3 ... */
struct frame {
	uint64_t number;
	uint64_t sent_ns; /* CLOCK_MONOTONIC, read just before the signal */
	uint64_t checksum;
	uint64_t pixels[PIXELS];
};

/* Nothing here is locked: whose turn it is, is what the fence says. */
struct board {
	struct frame frame;
	uint64_t latency_ns[WAYS * FRAMES_PER_WAY]; /* by the receiver of each frame */
};

_Static_assert(sizeof(struct frame) == 4120, "as in board.rs");
_Static_assert(sizeof(struct board) == 36120, "as in board.rs");

/* A fresh board of shared memory; its descriptor goes to *fd. */
struct board *board_create(int *fd);

uint64_t now_ns(void);

/* Draw frame `number`. With `spoil` one pixel is wrong, to show that checks work. */
void frame_draw(struct frame *frame, uint64_t number, int spoil);

/* Check that this is frame `number`, complete and undamaged; note how long it took. */
void frame_check(struct board *board, uint64_t number);

#endif
