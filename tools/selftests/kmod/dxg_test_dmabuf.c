// SPDX-License-Identifier: GPL-2.0
/*
 * The other side of dma-bufs, for tests: an exporter like the drivers of graphics cards, and an
 * importer that reports its result. Not for use outside of a test machine.
 */
#include <linux/device/faux.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* What a buffer cannot do. */
#define NO_VMAP		1	/* has no such operation */
#define REFUSES_VMAP	2	/* has one that fails, as objects of DRM without vmap */
#define NO_MMAP		4	/* is out of reach of processors */
#define READ_ONLY	8	/* descriptors are for reading only */
#define ALL_AT_ONCE	16	/* maps without faults, as the heaps */
#define REFUSES_DEVICES	32	/* cannot be attached to */

struct create {
	u64 size;
	u32 flags;
	s32 fd;
};

/* How often it was used, since it was made. */
struct state {
	s32 fd;
	u32 attached;
	u32 mapped;
	u32 vmapped;
	u32 mmapped;
	u32 begun;
	u32 ended;
	u32 detached;
	u32 unmapped;
};

/* Attaches to a dma-buf of anybody, maps it in a device for this direction, and ends. */
struct import {
	s32 fd;
	u32 direction;
};

#define CREATE	_IOWR('x', 1, struct create)
#define STATE	_IOWR('x', 2, struct state)
#define IMPORT	_IOW('x', 3, struct import)

struct buffer {
	struct state state;
	u32 flags;
	unsigned int count;
	struct page *pages[] __counted_by(count);
};

static struct faux_device *device;

static int attach(struct dma_buf *buf, struct dma_buf_attachment *attachment)
{
	struct buffer *buffer = buf->priv;

	buffer->state.attached++;
	return buffer->flags & REFUSES_DEVICES ? -EBUSY : 0;
}

static void detach(struct dma_buf *buf, struct dma_buf_attachment *attachment)
{
	((struct buffer *)buf->priv)->state.detached++;
}

static struct sg_table *map(struct dma_buf_attachment *attachment, enum dma_data_direction dir)
{
	struct buffer *buffer = attachment->dmabuf->priv;
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	int ret;

	if (!table)
		return ERR_PTR(-ENOMEM);
	buffer->state.mapped++;
	ret = sg_alloc_table_from_pages(table, buffer->pages, buffer->count, 0,
					(size_t)buffer->count << PAGE_SHIFT, GFP_KERNEL);
	if (ret)
		goto free;
	ret = dma_map_sgtable(attachment->dev, table, dir, 0);
	if (!ret)
		return table;
	sg_free_table(table);
free:
	kfree(table);
	return ERR_PTR(ret);
}

static void unmap(struct dma_buf_attachment *attachment, struct sg_table *table,
		  enum dma_data_direction dir)
{
	((struct buffer *)attachment->dmabuf->priv)->state.unmapped++;
	dma_unmap_sgtable(attachment->dev, table, dir, 0);
	sg_free_table(table);
	kfree(table);
}

static void release_pages_of(struct buffer *buffer)
{
	while (buffer->count)
		__free_page(buffer->pages[--buffer->count]);
	kfree(buffer);
}

static void release(struct dma_buf *buf)
{
	release_pages_of(buf->priv);
}

static int begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	((struct buffer *)buf->priv)->state.begun++;
	return 0;
}

static int end(struct dma_buf *buf, enum dma_data_direction dir)
{
	((struct buffer *)buf->priv)->state.ended++;
	return 0;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct buffer *buffer = vmf->vma->vm_private_data;

	if (vmf->pgoff >= buffer->count)
		return VM_FAULT_SIGBUS;
	return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(buffer->pages[vmf->pgoff]));
}

static const struct vm_operations_struct faults = { .fault = fault };

static int map_in_process(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct buffer *buffer = buf->priv;
	unsigned long addr = vma->vm_start, index = vma->vm_pgoff;
	int ret = 0;

	buffer->state.mmapped++;
	if (!(buffer->flags & ALL_AT_ONCE)) {
		vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
		vma->vm_ops = &faults;
		vma->vm_private_data = buffer;
		return 0;
	}
	for (; !ret && addr < vma->vm_end; addr += PAGE_SIZE)
		ret = remap_pfn_range(vma, addr, page_to_pfn(buffer->pages[index++]), PAGE_SIZE,
				      vma->vm_page_prot);
	return ret;
}

static int vmap_refused(struct dma_buf *buf, struct iosys_map *map)
{
	((struct buffer *)buf->priv)->state.vmapped++;
	return -EOPNOTSUPP;
}

#define COMMON						\
	.attach = attach,				\
	.detach = detach,				\
	.map_dma_buf = map,				\
	.unmap_dma_buf = unmap,				\
	.release = release,				\
	.begin_cpu_access = begin,			\
	.end_cpu_access = end

static const struct dma_buf_ops without_vmap = { COMMON, .mmap = map_in_process };
static const struct dma_buf_ops refusing_vmap = {
	COMMON, .mmap = map_in_process, .vmap = vmap_refused
};
static const struct dma_buf_ops without_mmap = { COMMON };

static long create(struct create __user *arg)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct buffer *buffer;
	struct create args;
	struct dma_buf *buf;
	unsigned int count;
	int fd;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (!args.size || args.size > SZ_16M || args.size % PAGE_SIZE)
		return -EINVAL;

	count = args.size >> PAGE_SHIFT;
	buffer = kzalloc(struct_size(buffer, pages, count), GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	buffer->flags = args.flags;
	while (buffer->count < count) {
		struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

		if (!page) {
			release_pages_of(buffer);
			return -ENOMEM;
		}
		buffer->pages[buffer->count++] = page;
	}

	info.ops = args.flags & NO_MMAP ? &without_mmap :
		   args.flags & REFUSES_VMAP ? &refusing_vmap : &without_vmap;
	info.size = args.size;
	info.flags = args.flags & READ_ONLY ? O_RDONLY : O_RDWR;
	info.priv = buffer;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		release_pages_of(buffer);
		return PTR_ERR(buf);
	}
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(buf);
		return fd;
	}
	return put_user(fd, &arg->fd);
}

static long state(struct state __user *arg)
{
	struct state state;
	struct dma_buf *buf;
	long ret = 0;
	s32 fd;

	if (get_user(fd, &arg->fd))
		return -EFAULT;
	buf = dma_buf_get(fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (buf->owner == THIS_MODULE) {
		state = ((struct buffer *)buf->priv)->state;
		state.fd = fd;
		if (copy_to_user(arg, &state, sizeof(state)))
			ret = -EFAULT;
	} else {
		ret = -EINVAL;
	}
	dma_buf_put(buf);
	return ret;
}

static long import(struct import __user *arg)
{
	struct dma_buf_attachment *attachment;
	struct sg_table *table;
	struct dma_buf *buf;
	struct import args;
	long ret = 0;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (args.direction > DMA_FROM_DEVICE)
		return -EINVAL;
	buf = dma_buf_get(args.fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	attachment = dma_buf_attach(buf, &device->dev);
	if (IS_ERR(attachment)) {
		ret = PTR_ERR(attachment);
		goto put;
	}
	table = dma_buf_map_attachment_unlocked(attachment, args.direction);
	if (IS_ERR(table))
		ret = PTR_ERR(table);
	else
		dma_buf_unmap_attachment_unlocked(attachment, table, args.direction);
	dma_buf_detach(buf, attachment);
put:
	dma_buf_put(buf);
	return ret;
}

static long ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *to = (void __user *)arg;

	switch (cmd) {
	case CREATE: return create(to);
	case STATE: return state(to);
	case IMPORT: return import(to);
	}
	return -ENOTTY;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = ioctl,
};

static struct miscdevice misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dxg_test_dmabuf",
	.fops = &operations,
	.mode = 0600,
};

static int __init dxg_test_init(void)
{
	int ret;

	device = faux_device_create("dxg_test_dmabuf", NULL, NULL);
	if (!device)
		return -ENODEV;
	ret = dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = misc_register(&misc);
	if (ret)
		faux_device_destroy(device);
	return ret;
}

static void __exit dxg_test_exit(void)
{
	misc_deregister(&misc);
	faux_device_destroy(device);
}

module_init(dxg_test_init);
module_exit(dxg_test_exit);
MODULE_DESCRIPTION("dma-bufs for the tests of opendxg");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("DMA_BUF");
