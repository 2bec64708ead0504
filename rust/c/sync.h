/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers for fences of the kernel; like helpers.h, without policy and without state.
 */
#ifndef DXG_SYNC_H
#define DXG_SYNC_H

#ifndef __BINDGEN__
#include <linux/types.h>
#endif

struct dma_fence;
struct file;

void dxg_dma_fence_get(struct dma_fence *fence);
void dxg_dma_fence_put(struct dma_fence *fence);
bool dxg_dma_fence_has_signalled(struct dma_fence *fence);
void dxg_dma_fence_signal(struct dma_fence *fence, int error);

bool dxg_signalling_begin(void);
void dxg_signalling_end(bool cookie);

struct file *dxg_sync_file_new(struct dma_fence *fence);
struct dma_fence *dxg_sync_file_fence(int fd);

#endif
