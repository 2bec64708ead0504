// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for the counter of an eventfd without reading it: as a poll does, with a function of ours
 * in its wait queue. The file wakes the queue with EPOLLIN when the counter goes up, and with
 * EPOLLHUP when its last reference is gone.
 */
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "helpers.h"

struct dxg_event_poll {
	poll_table table;
	struct wait_queue_entry *entry;
	struct wait_queue_head *head;
};

static void dxg_event_queue(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct dxg_event_poll *poll = container_of(table, struct dxg_event_poll, table);

	/* An eventfd has one queue; only what is queued once can be taken off again. */
	if (WARN_ON_ONCE(poll->head))
		return;
	poll->head = head;
	add_wait_queue(head, poll->entry);
}

/*
 * Queues the entry on the eventfd behind a file, and returns its wait queue. *events is what a
 * poll reports: with EPOLLIN the counter is not 0. The queue lives as long as the context of the
 * eventfd.
 */
struct wait_queue_head *dxg_event_watch(struct file *file, struct wait_queue_entry *entry,
					wait_queue_func_t wake, u32 *events)
{
	struct dxg_event_poll poll = { .entry = entry };

	init_waitqueue_func_entry(entry, wake);
	init_poll_funcptr(&poll.table, dxg_event_queue);
	*events = (__force u32)vfs_poll(file, &poll.table);
	return poll.head;
}

/* Takes it off. A function that runs has ended when this returns. */
void dxg_event_unwatch(struct wait_queue_head *head, struct wait_queue_entry *entry)
{
	remove_wait_queue(head, entry);
}
