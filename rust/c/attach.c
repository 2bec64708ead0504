// SPDX-License-Identifier: GPL-2.0
/*
 * Which files may be attached to an object, see sys/file/attach.rs. Only the operations of a
 * file tell its kind, and those of the kinds that we accept are private to their owners.
 */
#include <drm/drm_accel.h>
#include <drm/drm_ioctl.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/err.h>
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/shmem_fs.h>
#include <linux/string.h>
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

static bool is_eventfd(struct file *file)
{
	struct eventfd_ctx *ctx = eventfd_ctx_fileget(file);

	if (IS_ERR(ctx))
		return false;
	eventfd_ctx_put(ctx);
	return true;
}

/*
 * A drm_syncobj, which holds fences of the kernel and contexts of eventfds. DRM has no function
 * that tells. A sample, as of sync files, would keep the DRM module loaded, and be in the table of
 * a process for a moment. So the name tells, which is the kernel's and which /proc shows as
 * anon_inode:syncobj_file. Some names of such files end as a user likes, but none begins so. And
 * whatever another file was called, users could put nothing into it: no call, no write.
 */
static bool is_syncobj(struct file *file)
{
	const struct file_operations *fops = file->f_op;

	return file_inode(file)->i_sb->s_magic == ANON_INODE_FS_MAGIC && !fops->unlocked_ioctl &&
	       !fops->write && !fops->write_iter &&
	       !strcmp(file->f_path.dentry->d_name.name, "syncobj_file");
}

/*
 * The driver of a character device: the name of its module, which stays as long as the file. NULL
 * for other files, for drivers of the kernel image, and for those whose files are known to hold
 * what others have exported: this module, and DRM.
 */
static const char *device_driver(struct file *file)
{
	const struct module *driver = file->f_op->owner;
	struct inode *inode = file_inode(file);

	if (!S_ISCHR(inode->i_mode) || !driver || driver == THIS_MODULE)
		return NULL;
	if (imajor(inode) == DRM_MAJOR || imajor(inode) == ACCEL_MAJOR)
		return NULL;
	return driver->name;
}

/*
 * A reference to the file behind a descriptor. -EBADF if there is none. -EPROTOTYPE if it is
 * of a kind that could hold one of our objects: then objects could keep each other alive in a
 * circle. Nobody knows that of a character device; *driver is its driver, and NULL for all others.
 */
struct file *dxg_attachable(int fd, const char **driver)
{
	const struct file_operations *sync_ops = sync_file_operations();
	struct dma_buf *buf;
	struct file *file;

	*driver = NULL;
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
	if (file->f_op == sync_ops || is_memory(file) || is_eventfd(file) || is_syncobj(file))
		return file;
	*driver = device_driver(file);
	if (*driver)
		return file;
	fput(file);
	return ERR_PTR(-EPROTOTYPE);
}
