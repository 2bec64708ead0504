// SPDX-License-Identifier: GPL-2.0
/*
 * Which files may be attached to an object, see sys/file/attach.rs. Only the operations of a
 * file tell its kind, and those of the kinds that we accept are private to their owners.
 */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/module.h>
#include <linux/shmem_fs.h>
#include <linux/sync_file.h>

#include "helpers.h"

MODULE_IMPORT_NS("DMA_BUF");

/*
 * The operations of every sync file, learned from one that is made for this. sync_file_get_fence()
 * would tell, but takes a descriptor: by the time it looks, that may mean another file than the one
 * that is kept. A sync file made of the fence would be another file than the one that was attached.
 */
static const struct file_operations *sync_file_operations(void)
{
	static const struct file_operations *known;
	const struct file_operations *fops = READ_ONCE(known);
	struct sync_file *sample;
	struct dma_fence *fence;

	if (fops)
		return fops;

	fence = dma_fence_get_stub();
	sample = sync_file_create(fence);
	dma_fence_put(fence);
	if (!sample)
		return ERR_PTR(-ENOMEM);

	fops = sample->file->f_op;
	fput(sample->file);
	WRITE_ONCE(known, fops);
	return fops;
}

/* A memfd or another file of tmpfs, in huge pages or not. */
static bool is_memory(struct file *file)
{
	return S_ISREG(file_inode(file)->i_mode) &&
	       (shmem_mapping(file->f_mapping) || is_file_hugepages(file));
}

/*
 * A reference to the file behind a descriptor. -EBADF if there is none. -EPROTOTYPE if it is
 * of a kind that could hold one of our objects: then objects could keep each other alive in a
 * circle.
 */
struct file *dxg_attachable(int fd)
{
	const struct file_operations *sync_ops = sync_file_operations();
	struct dma_buf *buf;
	struct file *file;

	if (IS_ERR(sync_ops))
		return ERR_CAST(sync_ops);

	buf = dma_buf_get(fd);
	if (!IS_ERR(buf)) {
		if (buf->owner != THIS_MODULE)
			return buf->file;
		/* Exported by this module: it holds its object. */
		dma_buf_put(buf);
		return ERR_PTR(-EPROTOTYPE);
	}

	/* The descriptor may name another file by now; check and keep the file itself. */
	file = fget(fd);
	if (!file)
		return ERR_PTR(-EBADF);
	if (file->f_op == sync_ops || is_memory(file))
		return file;
	fput(file);
	return ERR_PTR(-EPROTOTYPE);
}
