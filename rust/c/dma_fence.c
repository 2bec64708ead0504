// SPDX-License-Identifier: GPL-2.0
/*
 * Fences of the kernel and the files that stand for them: inlines that Rust cannot call, and
 * functions that the kernel crate has no bindings of.
 */
#include <linux/dma-fence.h>
#include <linux/file.h>
#include <linux/sync_file.h>

#include "sync.h"

void dxg_dma_fence_get(struct dma_fence *fence)
{
	dma_fence_get(fence);
}

void dxg_dma_fence_put(struct dma_fence *fence)
{
	dma_fence_put(fence);
}

/* Whether it has signalled. Does not ask its driver, so that it may be called in any context. */
bool dxg_dma_fence_has_signalled(struct dma_fence *fence)
{
	return test_bit_acquire(DMA_FENCE_FLAG_SIGNALED_BIT, &fence->flags);
}

/* Signals a fence of this module, which has not signalled, with 0 or an error. */
void dxg_dma_fence_signal(struct dma_fence *fence, int error)
{
	if (error)
		dma_fence_set_error(fence, error);
	dma_fence_signal(fence);
}

/* What is between these is on the way to the signal of a fence. */
bool dxg_signalling_begin(void)
{
	return dma_fence_begin_signalling();
}

void dxg_signalling_end(bool cookie)
{
	dma_fence_end_signalling(cookie);
}

/* A new sync_file of a fence: a reference to its file, or NULL. */
struct file *dxg_sync_file_new(struct dma_fence *fence)
{
	struct sync_file *made = sync_file_create(fence);

	return made ? made->file : NULL;
}

/* A reference to the fence behind a descriptor, or NULL if that is no sync_file. */
struct dma_fence *dxg_sync_file_fence(int fd)
{
	return sync_file_get_fence(fd);
}
