// SPDX-License-Identifier: GPL-2.0
/*
 * C helpers for the memory of allocations, see memory.h.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/folio_batch.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/memfd.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pageblock-flags.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>

#include "memory.h"

u64 dxg_total_pages(void)
{
	return totalram_pages();
}

u64 dxg_max_files(void)
{
	return get_max_files();
}

/* A file of zeros without a descriptor. Reserves its size, takes no pages yet. */
struct file *dxg_shmem_new(u64 size)
{
	struct file *file;

	if (size > MAX_LFS_FILESIZE)
		return ERR_PTR(-ENOMEM);

	file = shmem_kernel_file_setup("opendxg", size, EMPTY_VMA_FLAGS);
	/* Pages stay where they are while they are in use: none from movable zones. */
	if (!IS_ERR(file))
		mapping_set_gfp_mask(file->f_mapping, GFP_HIGHUSER | __GFP_RECLAIMABLE);
	return file;
}

bool dxg_is_shmem(struct file *file)
{
	return shmem_file(file);
}

u64 dxg_file_size(struct file *file)
{
	return i_size_read(file_inode(file));
}

/*
 * Claims the right to write to a shmem file, as a writable shared mapping does: it keeps
 * F_SEAL_WRITE from being added. -EACCES if the descriptor, a seal or the file forbids it.
 */
int dxg_shmem_get_write(struct file *file)
{
	if (!(file->f_mode & FMODE_WRITE) || IS_APPEND(file_inode(file)) ||
	    SHMEM_I(file_inode(file))->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) ||
	    mapping_map_writable(file->f_mapping))
		return -EACCES;
	return 0;
}

void dxg_shmem_put_write(struct file *file)
{
	mapping_unmap_writable(file->f_mapping);
}

/*
 * The page at an index, with a reference that keeps it where it is. It is allocated, and charged to
 * the caller, if it is a hole.
 */
struct page *dxg_shmem_get_page(struct file *file, pgoff_t index)
{
	loff_t start = (loff_t)index << PAGE_SHIFT;

	for (;;) {
		struct folio *folio;
		pgoff_t offset;
		long ret;

		ret = memfd_pin_folios(file, start, start + PAGE_SIZE - 1, &folio, 1, &offset);
		if (ret <= 0)
			return ERR_PTR(ret ?: -EINVAL);
		if (folio_test_uptodate(folio)) {
			/*
			 * The page is where it may stay now, and any reference keeps it there.
			 * A pin of a folio of one page is a thousand references: the
			 * allocations that users may have of one page must not overflow its
			 * count.
			 */
			folio_get(folio);
			unpin_folio(folio);
			return folio_page(folio, offset >> PAGE_SHIFT);
		}

		/*
		 * memfd_pin_folios() takes what is in the page cache. That may be a page that
		 * another task is still filling with zeros, or one that fallocate() left for
		 * its first user to fill. Wait for the first and fill the second.
		 */
		unpin_folio(folio);
		folio = shmem_read_folio(file->f_mapping, index);
		if (IS_ERR(folio))
			return ERR_CAST(folio);
		folio_put(folio);

		/* Another task may punch holes and reserve pages all the time. */
		if (fatal_signal_pending(current))
			return ERR_PTR(-EINTR);
		cond_resched();
	}
}

/*
 * Gives references back, of 15 pages at most. Others may have written to the pages without the
 * file's knowledge. They can be swapped from now on, unless the file says otherwise. This may be
 * called where memory is short, so no folio is locked: the caller has the file, so that what its
 * folios are mapped by stays.
 */
void dxg_shmem_put_pages(struct page **pages, unsigned int count)
{
	struct folio_batch batch;
	unsigned int i;

	folio_batch_init(&batch);
	for (i = 0; i < count; i++) {
		struct folio *folio = page_folio(pages[i]);

		folio_mark_dirty(folio);
		folio_batch_add(&batch, folio);
	}
	check_move_unevictable_folios(&batch);
	for (i = 0; i < count; i++)
		put_page(pages[i]);
}

/* Whether the kernel need not try to swap the pages of a file. */
void dxg_shmem_set_unevictable(struct file *file, bool unevictable)
{
	if (unevictable)
		mapping_set_unevictable(file->f_mapping);
	else
		mapping_clear_unevictable(file->f_mapping);
}

/* The first page from an index on that is in memory or swapped; negative if there is none. */
long dxg_shmem_next_used(struct file *file, pgoff_t index)
{
	loff_t pos = file->f_op->llseek(file, (loff_t)index << PAGE_SHIFT, SEEK_DATA);

	return pos < 0 ? -1 : pos >> PAGE_SHIFT;
}

/* All bytes of a file become zeros, which take no memory. */
void dxg_shmem_drop(struct file *file)
{
	shmem_truncate_range(file_inode(file), 0, -1);
}

/*
 * Whether a range of the caller is ordinary memory all over: 0, -EFAULT, or -EINTR for a fatal
 * signal. Mappings made by drivers are not, ours included.
 */
int dxg_check_ordinary(unsigned long addr, unsigned long end)
{
	struct mm_struct *mm = current->mm;
	int ret = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	while (addr < end) {
		struct vm_area_struct *vma = vma_lookup(mm, addr);

		if (!vma || vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP)) {
			ret = -EFAULT;
			break;
		}
		addr = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return ret;
}

/* Pages of a process or of a file. Those that a driver shows in a mapping are neither. */
static bool are_ordinary(struct page **pages, unsigned long count)
{
	unsigned long i;

	for (i = 0; i < count; i++) {
		struct folio *folio = page_folio(pages[i]);

		if (!folio_test_anon(folio) && !folio_mapping(folio))
			return false;
	}
	return true;
}

/*
 * All or nothing. The mmap lock is not held while a page is waited for, which may take as long
 * as a file system likes. So mappings may change meanwhile, and the pages themselves are
 * checked.
 */
int dxg_pin_user(unsigned long addr, unsigned long count, bool write, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM | (write ? FOLL_WRITE : 0);
	unsigned long done = 0;
	bool ordinary;
	long ret;

	while (done < count) {
		/* Pages that are present are pinned without looking at signals. */
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			goto undo;
		}
		/* A chunk at a time, so that others get the lock. */
		ret = pin_user_pages_fast(addr + done * PAGE_SIZE, min(count - done, 1024UL), flags,
					  pages + done);
		if (ret <= 0)
			goto undo;
		ordinary = are_ordinary(pages + done, ret);
		done += ret;
		if (!ordinary) {
			ret = -EFAULT;
			goto undo;
		}
		cond_resched();
	}
	return 0;

undo:
	dxg_unpin_user(pages, done, false);
	return ret ?: -EFAULT;
}

void dxg_unpin_user(struct page **pages, unsigned long count, bool dirty)
{
	while (count) {
		unsigned long chunk = min(count, 1024UL);

		unpin_user_pages_dirty_lock(pages, chunk, dirty);
		pages += chunk;
		count -= chunk;
		cond_resched();
	}
}

/*
 * Counts pinned pages: of the caller's user, against RLIMIT_MEMLOCK unless the caller has
 * CAP_IPC_LOCK, and of its address space, which shows them. -ENOMEM over the limit.
 */
int dxg_pins_charge(struct dxg_payer *payer, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = NULL;
	struct mm_struct *mm = current->mm;

	if (!mm)
		return -ESRCH;
	if (!capable(CAP_IPC_LOCK)) {
		long pinned;

		user = current_user();
		pinned = atomic_long_read(&user->locked_vm);
		do {
			if (pinned + count > limit)
				return -ENOMEM;
		} while (!atomic_long_try_cmpxchg(&user->locked_vm, &pinned, pinned + count));
		get_uid(user);
	}
	mmgrab(mm);
	atomic64_add(count, &mm->pinned_vm);
	payer->user = user;
	payer->mm = mm;
	return 0;
}

/* Any task may release them: this takes no lock, and keeps no address space in use. */
void dxg_pins_uncharge(const struct dxg_payer *payer, unsigned long count)
{
	atomic64_sub(count, &payer->mm->pinned_vm);
	mmdrop(payer->mm);
	if (payer->user) {
		atomic_long_sub(count, &payer->user->locked_vm);
		free_uid(payer->user);
	}
}

/* With an inode of its own, so that its mappings can be found. */
struct file *dxg_revocable_file(const char *name, const struct file_operations *fops,
			     void *priv, int flags)
{
	return anon_inode_create_getfile(name, fops, priv, flags, NULL);
}

/* Maps the file from its start into the caller; may return an error value. */
unsigned long dxg_map_file(struct file *file, unsigned long size, bool write)
{
	return vm_mmap(file, 0, size, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, 0);
}

/* The first part of addr to end that is a mapping of the file, in the caller. */
static bool find_mapping(struct file *file, unsigned long addr, unsigned long end,
			 unsigned long *first, unsigned long *last)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	bool found = false;

	/* A killed task loses all its mappings anyway. */
	if (mmap_read_lock_killable(mm))
		return false;
	for (vma = find_vma(mm, addr); vma && vma->vm_start < end && !found;
	     vma = find_vma(mm, vma->vm_end)) {
		*first = max(addr, vma->vm_start);
		*last = min(end, vma->vm_end);
		found = vma->vm_file == file;
	}
	mmap_read_unlock(mm);
	return found;
}

/*
 * Removes what is left of that mapping. The owner may have unmapped parts of it or mapped
 * something else there, which stays. If another thread does so at this very moment, that is
 * unmapped, too: modules can only unmap an address range.
 */
void dxg_unmap_file(struct file *file, unsigned long addr, unsigned long size)
{
	unsigned long end = addr + size, first, last;

	for (; find_mapping(file, addr, end, &first, &last); addr = last)
		if (vm_munmap(first, last - first))
			return;
}

/* Replaces what is left of that mapping by the same part of another file. */
void dxg_cover_file(struct file *file, struct file *cover, unsigned long addr, unsigned long size,
		    bool write)
{
	unsigned long prot = write ? PROT_READ | PROT_WRITE : PROT_READ;
	unsigned long start = addr, end = addr + size, first, last;

	for (; find_mapping(file, addr, end, &first, &last); addr = last)
		if (IS_ERR_VALUE(vm_mmap(cover, first, last - first, prot, MAP_SHARED | MAP_FIXED,
					 first - start)) &&
		    vm_munmap(first, last - first))
			return;
}

/* Removes some of the file's pages from every process; the mappings stay and fault. */
void dxg_zap_file(struct file *file, unsigned long first, unsigned long count)
{
	/* A length of 0 would be the rest of the file. */
	if (count)
		unmap_mapping_range(file->f_mapping, (loff_t)first << PAGE_SHIFT,
				    (loff_t)count << PAGE_SHIFT, true);
}

/* Limits a new shared mapping of at most count pages: it cannot grow or gain rights. */
static int restrict_mapping(struct vm_area_struct *vma, unsigned long count, bool write)
{
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff > count ||
	    vma_pages(vma) > count - vma->vm_pgoff)
		return -EINVAL;
	if (!write && vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;

	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC | (write ? 0 : VM_MAYWRITE));
	return 0;
}

/*
 * Makes a new mapping show the pages that ops->fault finds. The memory manager does not know
 * them as pages of the process, so they cannot be pinned through it.
 */
int dxg_show_pages(struct vm_area_struct *vma, unsigned long count, bool write,
		   const struct vm_operations_struct *ops, void *priv)
{
	int ret = restrict_mapping(vma, count, write);

	if (ret)
		return ret;
	vm_flags_set(vma, VM_PFNMAP);
	vma->vm_ops = ops;
	vma->vm_private_data = priv;
	return 0;
}

/* Lets the exporter of a dma-buf set up a new mapping. */
int dxg_show_dma_buf(struct vm_area_struct *vma, unsigned long count, bool write,
		     struct dma_buf *buf)
{
	int ret = restrict_mapping(vma, count, write);

	return ret ?: dma_buf_mmap(buf, vma, vma->vm_pgoff);
}

unsigned long dxg_page_number(const struct page *page)
{
	return page_to_pfn(page);
}

/* Whether a page is in the direct map, and not broken: an access would be a machine check. */
static bool in_direct_map(const struct page *page)
{
	return !PageHighMem(page) && !PageHWPoison(page);
}

/* The address of a frame in the direct map; NULL if there is no memory with a struct page. */
void *dxg_direct_map(unsigned long frame)
{
	struct page *page;

	if (!pfn_valid(frame))
		return NULL;
	page = pfn_to_page(frame);
	return in_direct_map(page) ? page_address(page) : NULL;
}

/* How many frames are in the direct map from one on that is: at most @count, with that one. */
unsigned long dxg_direct_map_count(unsigned long frame, unsigned long count)
{
	unsigned long n;

	for (n = 1; n < count; n++) {
		/* All frames of a pageblock have a struct page, or none has. */
		if (pageblock_aligned(frame + n) && !pfn_valid(frame + n))
			break;
		if (!in_direct_map(pfn_to_page(frame + n)))
			break;
	}
	return n;
}

/*
 * How many slots from the first one on, which has a page, have pages whose frames follow each
 * other: at most @count. Slots may be filled meanwhile.
 */
size_t dxg_following_pages(struct page *const *slots, size_t count)
{
	unsigned long frame = page_to_pfn(smp_load_acquire(&slots[0]));
	size_t n;

	for (n = 1; n < count; n++) {
		const struct page *page = smp_load_acquire(&slots[n]);

		if (!page || page_to_pfn(page) != frame + n)
			break;
	}
	return n;
}

/*
 * A zeroed page for the memory of a segment, in the direct map. It is charged to nobody and stays
 * for long, so NULL is better than to end a process for it.
 */
struct page *dxg_segment_page(void)
{
	return alloc_page(GFP_KERNEL | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

void dxg_page_clear(struct page *page)
{
	clear_highpage(page);
}

void dxg_page_copy(struct page *to, struct page *from)
{
	copy_highpage(to, from);
}

/* The address after the last byte of the direct map. */
u64 dxg_memory_end(void)
{
	return (u64)__pa(high_memory - 1) + 1;
}

/* Stores a word to so many words, each by one store. */
void dxg_fill_words32(u32 *to, u32 word, size_t count)
{
	memset32(to, word, count);
}

void dxg_fill_words64(u64 *to, u64 word, size_t count)
{
	memset64(to, word, count);
}

/* Copies so many words, each by one load and one store. Others may change them meanwhile. */
void dxg_copy_words32(u32 *to, const u32 *from, size_t count)
{
	while (count--)
		WRITE_ONCE(*to++, READ_ONCE(*from++));
}

void dxg_copy_words64(u64 *to, const u64 *from, size_t count)
{
#ifdef CONFIG_X86_64
	/* As memset64() of this architecture. */
	asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
#else
	while (count--)
		WRITE_ONCE(*to++, READ_ONCE(*from++));
#endif
}

/* Copies bytes that others may change meanwhile. The ranges may overlap. */
void dxg_copy_bytes(void *to, const void *from, size_t count)
{
	memmove(to, from, count);
}

/* The protection of a page table entry for a frame that is cached like this. */
static pgprot_t frame_prot(const struct vm_area_struct *vma, enum dxg_caching caching)
{
	switch (caching) {
	case DXG_WRITE_COMBINED:
		return pgprot_writecombine(vma->vm_page_prot);
	case DXG_UNCACHED:
		return pgprot_noncached(vma->vm_page_prot);
	default:
		return vma->vm_page_prot;
	}
}

static int nothing(pte_t *pte, unsigned long addr, void *data)
{
	return 0;
}

/*
 * Makes the page table that the address needs, while memory may still be waited for. If that fails,
 * who inserts a page tries again.
 */
void dxg_fault_prepare(struct vm_fault *vmf)
{
	if (pmd_none(READ_ONCE(*vmf->pmd)))
		apply_to_page_range(vmf->vma->vm_mm, vmf->address & PAGE_MASK, PAGE_SIZE, nothing,
				    NULL);
}

vm_fault_t dxg_fault_frame(struct vm_fault *vmf, unsigned long number, enum dxg_caching caching)
{
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, number, frame_prot(vmf->vma, caching));
}

/* Shows one more page, some pages after the one that faulted; false where that is not worth it. */
bool dxg_fault_ahead(struct vm_fault *vmf, unsigned long ahead, unsigned long number,
		     enum dxg_caching caching)
{
	unsigned long addr = vmf->address + ahead * PAGE_SIZE;

	/* Not past the mapping, nor into another page table. */
	if (addr < vmf->address || addr >= vmf->vma->vm_end || !(addr & ~PMD_MASK))
		return false;
	return !(vmf_insert_pfn_prot(vmf->vma, addr, number, frame_prot(vmf->vma, caching)) &
		 VM_FAULT_ERROR);
}

vm_fault_t dxg_fault_error(int error)
{
	return vmf_error(error);
}

/* Whether the caller has the only reference to the file. */
bool dxg_file_is_alone(struct file *file)
{
	return file_count(file) == 1;
}

struct sg_table *dxg_sg_map(struct device *dev, struct page **pages, unsigned int count,
			    enum dma_data_direction dir)
{
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table_from_pages_segment(sgt, pages, count, 0, (size_t)count << PAGE_SHIFT,
						dma_get_max_seg_size(dev), GFP_KERNEL_ACCOUNT);
	if (ret)
		goto free;
	ret = dma_map_sgtable(dev, sgt, dir, 0);
	if (!ret)
		return sgt;

	sg_free_table(sgt);
free:
	kfree(sgt);
	return ERR_PTR(ret);
}

void dxg_sg_unmap(struct device *dev, struct sg_table *sgt, enum dma_data_direction dir)
{
	dma_unmap_sgtable(dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

void dxg_sg_sync(struct device *dev, struct sg_table *sgt, enum dma_data_direction dir,
		 bool for_device)
{
	if (for_device)
		dma_sync_sgtable_for_device(dev, sgt, dir);
	else
		dma_sync_sgtable_for_cpu(dev, sgt, dir);
}

void *dxg_vmap(struct page **pages, unsigned int count)
{
	return vmap(pages, count, VM_MAP, PAGE_KERNEL);
}

void dxg_vunmap(void *addr)
{
	vunmap(addr);
}
