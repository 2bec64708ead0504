// SPDX-License-Identifier: GPL-2.0
/*
 * C helpers about threads: who they are, how they end, and work for a thread of our own.
 */
#include <linux/errno.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "helpers.h"

#ifndef CONFIG_TRACEPOINTS
#error "opendxg needs CONFIG_TRACEPOINTS: they tell that the owner of a keyed mutex is gone"
#endif

#ifndef CONFIG_MMU_NOTIFIER
#error "opendxg needs CONFIG_MMU_NOTIFIER: it tells that a process is gone whose descriptor lives on"
#endif

/* The identity of the current thread; released with put_pid(). */
void *dxg_thread_get(void)
{
	return get_task_pid(current, PIDTYPE_PID);
}

bool dxg_thread_is(void *thread)
{
	return task_pid(current) == thread;
}

void dxg_thread_ref(void *thread)
{
	get_pid(thread);
}

/* The number of a thread in the first pid namespace, which the kernel's own traces show. */
u32 dxg_thread_number(void *thread)
{
	return pid_nr(thread);
}

/* No task has this identity any more. */
bool dxg_thread_is_gone(void *thread)
{
	return !pid_has_task(thread, PIDTYPE_PID);
}

void *dxg_task_thread(struct task_struct *task)
{
	return task_pid(task);
}

u32 dxg_task_number(struct task_struct *task)
{
	return task_pid_nr(task);
}

bool dxg_is_killed(void)
{
	return fatal_signal_pending(current);
}

struct find_tracepoint {
	const char *name;
	struct tracepoint *found;
};

static void is_tracepoint(struct tracepoint *tp, void *priv)
{
	struct find_tracepoint *find = priv;

	if (!strcmp(tp->name, find->name))
		find->found = tp;
}

/* A tracepoint of the kernel itself, which stays for ever. Most are not exported by symbol. */
struct tracepoint *dxg_tracepoint(const char *name)
{
	struct find_tracepoint find = { .name = name };

	for_each_kernel_tracepoint(is_tracepoint, &find);
	return find.found;
}

/* Waits until no probe that was unregistered before runs any more. */
void dxg_tracepoint_quiesce(void)
{
	tracepoint_synchronize_unregister();
}

void dxg_cond_resched(void)
{
	cond_resched();
}

/*
 * For work that users decide the amount of: a few threads that compete with everybody else's. Not
 * WQ_MEM_RECLAIM, although it frees memory: drivers of others, which may flush their own work, are
 * called from it.
 */
struct workqueue_struct *dxg_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, 4, name);
}
