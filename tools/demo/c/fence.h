/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fence of this program, and the four ways to wait for it. */
#ifndef DEMO_FENCE_H
#define DEMO_FENCE_H

#include <stdint.h>

#include <d3dkmt.h>

struct fence {
	D3DKMT_HANDLE device;
	D3DKMT_HANDLE handle;
	const uint64_t *value; /* mapped by the driver, read-only */
	int event;             /* eventfd of asynchronous waits */
	int epoll;             /* watches `event` */
	int node;              /* /dev/dxg, for the pollable descriptor */
};

/* Make a fence that can be shared by NT handle. */
void fence_create(struct fence *fence, D3DKMT_HANDLE device);
void fence_destroy(struct fence *fence);

/* The NT handle of the fence: a file descriptor that another process can open. */
int fence_share(const struct fence *fence);

/* Set the value, which wakes all that wait for it. */
void fence_signal(const struct fence *fence, uint64_t value);

/* Wait until the fence has reached `value`. The order is that of ways in way.rs. */
extern void (*const fence_wait[])(const struct fence *fence, uint64_t value);

#endif
