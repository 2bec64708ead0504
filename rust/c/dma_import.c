// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs of other drivers, as memory that engines reach.
 *
 * Engines are processors, so adapters have no devices of their own that memory could be mapped for.
 * One device stands for all of them. It has no IOMMU and reaches all memory, so that its addresses
 * are those of the memory.
 */
#include <linux/device/faux.h>
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/swiotlb.h>

#include "memory.h"

static struct faux_device *engines;

int dxg_engines_add(void)
{
	int ret;

	engines = faux_device_create("opendxg", NULL, NULL);
	if (!engines)
		return -ENODEV;
	ret = dma_coerce_mask_and_coherent(&engines->dev, DMA_BIT_MASK(64));
	if (ret)
		faux_device_destroy(engines);
	return ret;
}

void dxg_engines_remove(void)
{
	faux_device_destroy(engines);
}

/*
 * The first pages of a mapping, as frame numbers. -EOPNOTSUPP for what is no memory of the system,
 * or does not lie in whole pages.
 */
static int frames_of(struct sg_table *table, u64 *frames, size_t count)
{
	struct sg_dma_page_iter iter;
	size_t index = 0;

	for_each_sgtable_dma_page(table, &iter, 0) {
		phys_addr_t address;

		if (index == count)
			break;
		address = dma_to_phys(&engines->dev, sg_page_iter_dma_address(&iter));
		if (!PAGE_ALIGNED(address) || !dxg_direct_map(PHYS_PFN(address)))
			return -EOPNOTSUPP;
		frames[index++] = PHYS_PFN(address);
	}
	return index == count ? 0 : -EOPNOTSUPP;
}

/*
 * Attaches a dma-buf and maps it: from then on its pages stay where they are. Fills in the frames
 * of the first pages.
 */
int dxg_dma_buf_attach(struct dma_buf *buf, enum dma_data_direction dir, u64 *frames, size_t count,
		       struct dxg_attachment *result)
{
	struct dma_buf_attachment *attachment;
	struct sg_table *table;
	int ret;

	/* The device would get copies. */
	if (is_swiotlb_force_bounce(&engines->dev))
		return -EOPNOTSUPP;

	attachment = dma_buf_attach(buf, &engines->dev);
	if (IS_ERR(attachment))
		return PTR_ERR(attachment);

	table = dma_buf_map_attachment_unlocked(attachment, dir);
	if (IS_ERR(table)) {
		ret = PTR_ERR(table);
		goto detach;
	}

	ret = frames_of(table, frames, count);
	if (ret)
		goto unmap;

	result->attachment = attachment;
	result->table = table;
	return 0;

unmap:
	dma_buf_unmap_attachment_unlocked(attachment, table, dir);
detach:
	dma_buf_detach(buf, attachment);
	return ret;
}

void dxg_dma_buf_detach(struct dma_buf *buf, enum dma_data_direction dir,
			const struct dxg_attachment *what)
{
	dma_buf_unmap_attachment_unlocked(what->attachment, what->table, dir);
	dma_buf_detach(buf, what->attachment);
}
