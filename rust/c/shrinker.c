// SPDX-License-Identifier: GPL-2.0
/*
 * C helpers for a shrinker with lists for each memory cgroup, see shrinker.h.
 */
#include <linux/list_lru.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/sprintf.h>

#include "shrinker.h"

struct dxg_reclaim_item {
	struct list_head link;
	void *owner;	/* as long as it is in a list */
};

struct dxg_shrinker {
	struct shrinker *shrinker;
	/* Of its own: an item makes room for the lists of its cgroup when it is allocated. */
	struct kmem_cache *items;
	dxg_scan_func_t scan;
	dxg_keep_func_t keep;
	void *priv;
	unsigned int count;
	struct list_lru lists[] __counted_by(count);
};

struct dxg_pass {
	struct dxg_shrinker *shrinker;
	struct shrink_control *control;
};

struct found {
	dxg_keep_func_t keep;
	void *owner;
};

static unsigned long count_items(struct shrinker *shrinker, struct shrink_control *control)
{
	struct dxg_shrinker *this = shrinker->private_data;
	unsigned long count = 0;
	unsigned int i;

	for (i = 0; i < this->count; i++)
		count += list_lru_shrink_count(&this->lists[i], control);
	return count ?: SHRINK_EMPTY;
}

/* Locks that a scan takes are held by others only where they allocate without __GFP_FS. */
static unsigned long scan_items(struct shrinker *shrinker, struct shrink_control *control)
{
	struct dxg_shrinker *this = shrinker->private_data;
	struct dxg_pass pass = { .shrinker = this, .control = control };

	if (!(control->gfp_mask & __GFP_FS))
		return SHRINK_STOP;
	return this->scan(this->priv, &pass, control->nr_to_scan);
}

struct dxg_shrinker *dxg_shrinker_new(u64 id, unsigned int lists, dxg_scan_func_t scan,
				      dxg_keep_func_t keep, void *priv)
{
	struct dxg_shrinker *this;
	char name[40];

	this = kzalloc(struct_size(this, lists, lists), GFP_KERNEL);
	if (!this)
		return NULL;
	this->scan = scan;
	this->keep = keep;
	this->priv = priv;

	/* Where caches are not merged, each adapter shows its own. */
	snprintf(name, sizeof(name), "dxg_reclaim_item_%llu", id);
	this->items = kmem_cache_create(name, sizeof(struct dxg_reclaim_item), 0, SLAB_ACCOUNT,
					NULL);
	this->shrinker = shrinker_alloc(SHRINKER_MEMCG_AWARE | SHRINKER_NUMA_AWARE, "dxg-%llu",
					id);
	if (!this->items || !this->shrinker)
		goto free;
	for (; this->count < lists; this->count++)
		if (list_lru_init_memcg(&this->lists[this->count], this->shrinker))
			goto free;

	this->shrinker->count_objects = count_items;
	this->shrinker->scan_objects = scan_items;
	this->shrinker->private_data = this;
	shrinker_register(this->shrinker);
	return this;

free:
	dxg_shrinker_free(this);
	return NULL;
}

/* Waits for scans. There are no items any more. */
void dxg_shrinker_free(struct dxg_shrinker *this)
{
	unsigned int i;

	shrinker_free(this->shrinker);
	for (i = 0; i < this->count; i++)
		list_lru_destroy(&this->lists[i]);
	kmem_cache_destroy(this->items);
	kfree(this);
}

unsigned long dxg_pass_count(const struct dxg_pass *pass, unsigned int list)
{
	return list_lru_shrink_count(&pass->shrinker->lists[list], pass->control);
}

static enum lru_status keep_owner(struct list_head *link, struct list_lru_one *list, void *arg)
{
	struct found *found = arg;

	found->owner = container_of(link, struct dxg_reclaim_item, link)->owner;
	found->keep(found->owner);
	return LRU_ROTATE;
}

/* The first owner in a list, kept. Its item goes to the end. */
void *dxg_pass_next(struct dxg_pass *pass, unsigned int list)
{
	struct found found = { .keep = pass->shrinker->keep };
	unsigned long most = 1;

	list_lru_walk_one(&pass->shrinker->lists[list], pass->control->nid, pass->control->memcg,
			  keep_owner, &found, &most);
	return found.owner;
}

/*
 * An allocation makes room for the cgroup of the caller in one list. So there is one for each list,
 * of which the last is kept.
 */
struct dxg_reclaim_item *dxg_reclaim_item_new(struct dxg_shrinker *this)
{
	struct dxg_reclaim_item *item = NULL;
	unsigned int i;

	for (i = 0; i < this->count; i++) {
		if (item)
			kmem_cache_free(this->items, item);
		item = kmem_cache_alloc_lru(this->items, &this->lists[i], GFP_KERNEL_ACCOUNT);
		if (!item)
			return NULL;
	}
	if (item)
		INIT_LIST_HEAD(&item->link);
	return item;
}

void dxg_reclaim_item_free(struct dxg_shrinker *this, struct dxg_reclaim_item *item)
{
	kmem_cache_free(this->items, item);
}

void dxg_reclaim_add(struct dxg_shrinker *this, unsigned int list, struct dxg_reclaim_item *item,
		     void *owner)
{
	item->owner = owner;
	list_lru_add_obj(&this->lists[list], &item->link);
}

void *dxg_reclaim_remove(struct dxg_shrinker *this, unsigned int list,
			 struct dxg_reclaim_item *item)
{
	list_lru_del_obj(&this->lists[list], &item->link);
	return item->owner;
}

unsigned int dxg_reclaim_pause(void)
{
	return memalloc_nofs_save();
}

void dxg_reclaim_resume(unsigned int flags)
{
	memalloc_nofs_restore(flags);
}
