/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the two programs tell each other besides frames: short messages over a
 * Unix socket, which can carry file descriptors. tools/demo/src/link.rs is the
 * same thing in Rust.
 */
#ifndef DEMO_LINK_H
#define DEMO_LINK_H

#include <stdint.h>

enum message_kind {
	HELLO = 1,         /* C: value is the adapter's LUID; carries the fence and the board */
	START = 2,         /* Rust: hand over frames in way number `value` */
	FINISHED = 3,      /* C: the last frame arrived */
	NUMBER_PLEASE = 4, /* Rust: make a semaphore */
	NUMBER = 5,        /* C: value is its global handle */
	OPENED = 6,        /* Rust: the number works here */
	DROPPED = 7,       /* C: its own handle is destroyed */
	GOODBYE = 8,       /* Rust: all done */
};

struct message {
	uint64_t kind;
	uint64_t value;
};

/* Wait at `path` for the other program; returns the socket. */
int link_accept(const char *path);

/* Send a message with `count` descriptors, at most 2. */
void link_send(int link, enum message_kind kind, uint64_t value, const int *fds, int count);

/* Receive a message, which must be of this kind; returns its value. */
uint64_t link_expect(int link, enum message_kind kind);

#endif
