/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers for a shrinker with lists for each memory cgroup; like helpers.h, without policy.
 */
#ifndef DXG_SHRINKER_H
#define DXG_SHRINKER_H

#ifndef __BINDGEN__
#include <linux/types.h>
#endif

struct dxg_shrinker;
struct dxg_reclaim_item;
struct dxg_pass;

/*
 * Frees what at most so many items have; says how many pages. It may sleep, but must not wait for
 * memory.
 */
typedef unsigned long (*dxg_scan_func_t)(void *priv, struct dxg_pass *pass, unsigned long most);
/* Keeps the owner of an item; called with a spinlock held. */
typedef void (*dxg_keep_func_t)(void *owner);

struct dxg_shrinker *dxg_shrinker_new(u64 id, unsigned int lists, dxg_scan_func_t scan,
				      dxg_keep_func_t keep, void *priv);
void dxg_shrinker_free(struct dxg_shrinker *this);

/* What a list has of the cgroup that is short of memory. */
unsigned long dxg_pass_count(const struct dxg_pass *pass, unsigned int list);
void *dxg_pass_next(struct dxg_pass *pass, unsigned int list);

/* An item belongs to the cgroup of who has made it, and is in one list at most. */
struct dxg_reclaim_item *dxg_reclaim_item_new(struct dxg_shrinker *this);
void dxg_reclaim_item_free(struct dxg_shrinker *this, struct dxg_reclaim_item *item);
void dxg_reclaim_add(struct dxg_shrinker *this, unsigned int list, struct dxg_reclaim_item *item,
		     void *owner);
void *dxg_reclaim_remove(struct dxg_shrinker *this, unsigned int list,
			 struct dxg_reclaim_item *item);

/* Between these two, memory that the caller allocates makes no shrinker of this kind run. */
unsigned int dxg_reclaim_pause(void);
void dxg_reclaim_resume(unsigned int flags);

#endif
