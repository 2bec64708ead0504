/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers for the memory of allocations; like helpers.h, without policy and without state.
 */
#ifndef DXG_MEMORY_H
#define DXG_MEMORY_H

#ifndef __BINDGEN__
#include <linux/dma-direction.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#endif

struct device;
struct dma_buf;
struct dma_buf_attachment;
struct sg_table;
struct user_struct;

/* What the machine has: pages, and how many files there may be. */
u64 dxg_total_pages(void);
u64 dxg_max_files(void);

/* Pages of a shmem file. */
struct file *dxg_shmem_new(u64 size);
bool dxg_is_shmem(struct file *file);
u64 dxg_file_size(struct file *file);
int dxg_shmem_get_write(struct file *file);
void dxg_shmem_put_write(struct file *file);
struct page *dxg_shmem_get_page(struct file *file, pgoff_t index);
void dxg_shmem_put_pages(struct page **pages, unsigned int count);
void dxg_shmem_set_unevictable(struct file *file, bool unevictable);
long dxg_shmem_next_used(struct file *file, pgoff_t index);
void dxg_shmem_drop(struct file *file);

/* Pages of the caller, and what they are charged to: references to both. */
struct dxg_payer {
	struct user_struct *user;	/* NULL: not charged, the caller was privileged */
	struct mm_struct *mm;
};

int dxg_check_ordinary(unsigned long addr, unsigned long end);
int dxg_pin_user(unsigned long addr, unsigned long count, bool write, struct page **pages);
void dxg_unpin_user(struct page **pages, unsigned long count, bool dirty);
int dxg_pins_charge(struct dxg_payer *payer, unsigned long count);
void dxg_pins_uncharge(const struct dxg_payer *payer, unsigned long count);

/* Showing pages to processes. */
struct file *dxg_revocable_file(const char *name, const struct file_operations *fops,
			     void *priv, int flags);
unsigned long dxg_map_file(struct file *file, unsigned long size, bool write);
void dxg_unmap_file(struct file *file, unsigned long addr, unsigned long size);
void dxg_cover_file(struct file *file, struct file *cover, unsigned long addr, unsigned long size,
		    bool write);
void dxg_zap_file(struct file *file, unsigned long first, unsigned long count);
int dxg_show_pages(struct vm_area_struct *vma, unsigned long count, bool write,
		   const struct vm_operations_struct *ops, void *priv);
int dxg_show_dma_buf(struct vm_area_struct *vma, unsigned long count, bool write,
		     struct dma_buf *buf);
unsigned long dxg_page_number(const struct page *page);

/* Pages as processors use them. */
void *dxg_direct_map(unsigned long frame);
unsigned long dxg_direct_map_count(unsigned long frame, unsigned long count);
size_t dxg_following_pages(struct page *const *slots, size_t count);
u64 dxg_memory_end(void);
struct page *dxg_segment_page(void);
void dxg_page_clear(struct page *page);
void dxg_page_copy(struct page *to, struct page *from);
void dxg_fill_words32(u32 *to, u32 word, size_t count);
void dxg_fill_words64(u64 *to, u64 word, size_t count);
void dxg_copy_words32(u32 *to, const u32 *from, size_t count);
void dxg_copy_words64(u64 *to, const u64 *from, size_t count);
void dxg_copy_bytes(void *to, const void *from, size_t count);

/* How a frame is cached. */
enum dxg_caching {
	DXG_CACHED,
	DXG_WRITE_COMBINED,
	DXG_UNCACHED,
};

void dxg_fault_prepare(struct vm_fault *vmf);
vm_fault_t dxg_fault_frame(struct vm_fault *vmf, unsigned long number, enum dxg_caching caching);
bool dxg_fault_ahead(struct vm_fault *vmf, unsigned long ahead, unsigned long number,
		     enum dxg_caching caching);
vm_fault_t dxg_fault_error(int error);

/* dma-bufs of other drivers that engines use. */
struct dxg_attachment {
	struct dma_buf_attachment *attachment;
	struct sg_table *table;
};

int dxg_engines_add(void);
void dxg_engines_remove(void);
int dxg_dma_buf_attach(struct dma_buf *buf, enum dma_data_direction dir, u64 *frames, size_t count,
		       struct dxg_attachment *result);
void dxg_dma_buf_detach(struct dma_buf *buf, enum dma_data_direction dir,
			const struct dxg_attachment *what);

/* dma-bufs that this module exports. */
bool dxg_file_is_alone(struct file *file);
struct sg_table *dxg_sg_map(struct device *dev, struct page **pages, unsigned int count,
			    enum dma_data_direction dir);
void dxg_sg_unmap(struct device *dev, struct sg_table *sgt, enum dma_data_direction dir);
void dxg_sg_sync(struct device *dev, struct sg_table *sgt, enum dma_data_direction dir,
		 bool for_device);
void *dxg_vmap(struct page **pages, unsigned int count);
void dxg_vunmap(void *addr);

#endif
