// SPDX-License-Identifier: GPL-2.0
/* C helpers for threads: identities, their end, and the module's work queue. */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "helpers.h"

/*
 * The identity of the current thread; released with put_pid(). Nobody changes that of a thread that
 * runs but itself, so it is read without RCU.
 */
struct pid *dxg_thread_get(void)
{
	return get_pid(task_pid(current));
}

/*
 * Who calls, and when: the number of its process in the initial namespace of process ids, 0 for a
 * kernel thread, and below it the lower half of jiffies.
 */
u64 dxg_stamp(void)
{
	u32 process = current->flags & PF_KTHREAD ? 0 : current->tgid;

	return (u64)process << 32 | (u32)jiffies;
}

/* The age of a time of dxg_stamp() in nanoseconds. */
u64 dxg_stamp_age(u32 then)
{
	return jiffies_to_nsecs((u32)jiffies - then);
}

/*
 * A number of the initial namespace as the caller has it: 0 if its namespace does not, or if it is
 * another one and the process or thread is gone.
 */
u32 dxg_number_for_caller(u32 number)
{
	struct pid *pid;
	u32 own;

	if (task_active_pid_ns(current) == &init_pid_ns)
		return number;

	rcu_read_lock();
	pid = find_pid_ns(number, &init_pid_ns);
	own = pid ? pid_vnr(pid) : 0;
	rcu_read_unlock();
	return own;
}

bool dxg_thread_is(struct pid *thread)
{
	return task_pid(current) == thread;
}

void dxg_thread_ref(struct pid *thread)
{
	get_pid(thread);
}

/* It has exited, or called exec and taken over another identity: it makes no more calls. */
bool dxg_thread_is_dead(struct pid *thread)
{
	struct task_struct *task;
	bool dead;

	rcu_read_lock();
	task = pid_task(thread, PIDTYPE_PID);
	dead = !task || READ_ONCE(task->exit_state);
	rcu_read_unlock();
	return dead;
}

/* Runs `wake` when the thread ends. A poll on its pidfd is woken at the same place. */
void dxg_exit_watch(struct wait_queue_entry *entry, struct pid *thread, wait_queue_func_t wake)
{
	init_waitqueue_func_entry(entry, wake);
	INIT_LIST_HEAD(&entry->entry);
	add_wait_queue(&thread->wait_pidfd, entry);
}

/* `wake` does not run any more when this returns. */
void dxg_exit_unwatch(struct wait_queue_entry *entry, struct pid *thread)
{
	remove_wait_queue(&thread->wait_pidfd, entry);
}

/* The memory cgroup of the current task; released with dxg_memory_group_put(). */
struct mem_cgroup *dxg_memory_group_get(void)
{
	return get_mem_cgroup_from_mm(current->mm);
}

void dxg_memory_group_put(struct mem_cgroup *group)
{
	mem_cgroup_put(group);
}

/* What the current task allocates is charged to `group`; NULL: to its own. Returns the last one. */
struct mem_cgroup *dxg_memory_group_exchange(struct mem_cgroup *group)
{
	return set_active_memcg(group);
}

bool dxg_is_killed(void)
{
	return fatal_signal_pending(current);
}

/*
 * Lets others run. It may be called for as long as users like, without ever going to sleep: so it
 * says that it is no part of a trampoline, which those who free one wait for (RCU tasks).
 */
void dxg_cond_resched(void)
{
	cond_resched_tasks_rcu_qs();
}

/*
 * Starts a thread of the kernel, and takes a reference to it. It runs `run` with `data`, unless it
 * is stopped before it has begun.
 */
struct task_struct *dxg_kthread_start(int (*run)(void *data), void *data, const char *name)
{
	struct task_struct *task = kthread_create(run, data, "%s", name);

	if (!IS_ERR(task)) {
		get_task_struct(task);
		wake_up_process(task);
	}
	return task;
}

/* Waits for the end of a thread, and gives the reference back. Not 0 if it had not begun. */
int dxg_kthread_stop(struct task_struct *task)
{
	return kthread_stop_put(task);
}

/* A thread begins: it freezes with the processes. */
void dxg_kthread_begin(void)
{
	set_freezable();
}

/* Between two steps of a thread. */
void dxg_kthread_breathe(void)
{
	try_to_freeze();
	dxg_cond_resched();
}

/* Whether no other thread wants this processor. A hint: it may change at once. */
bool dxg_is_alone(void)
{
	return single_task_running() && !need_resched();
}

/*
 * Sleeps until the word is not 0, or until the deadline on CLOCK_MONOTONIC, or until somebody wakes
 * the thread for another reason. Freezes if that is wanted.
 */
void dxg_thread_wait(struct wait_queue_head *wq, const atomic_t *word, const s64 *deadline)
{
	DEFINE_WAIT(wait);
	ktime_t expires = deadline ? ns_to_ktime(*deadline) : 0;

	prepare_to_wait(wq, &wait, TASK_INTERRUPTIBLE | TASK_FREEZABLE);
	if (!atomic_read_acquire(word)) {
		if (deadline)
			schedule_hrtimeout_range(&expires, current->timer_slack_ns,
						 HRTIMER_MODE_ABS);
		else
			schedule();
	}
	finish_wait(wq, &wait);
	try_to_freeze();
}

#ifdef CONFIG_LOCKDEP
static struct lock_class_key gate_key;
static struct lockdep_map gate_map = STATIC_LOCKDEP_MAP_INIT("ddi::Gate", &gate_key);

void dxg_gate_enter(bool may_wait)
{
	if (may_wait)
		lock_map_acquire_read(&gate_map);
	else
		lock_map_acquire_tryread(&gate_map);
}

void dxg_gate_close(void)
{
	lock_map_acquire(&gate_map);
}

void dxg_gate_leave(void)
{
	lock_map_release(&gate_map);
}

bool dxg_gate_is_held(void)
{
	return lock_is_held(&gate_map) == LOCK_STATE_HELD;
}
#endif

/* For checks, with CONFIG_PREEMPT_RCU only: without it these are not counted apart. */
bool dxg_holds_spinlock(void)
{
	return in_atomic() || irqs_disabled();
}

bool dxg_may_sleep(void)
{
	return !dxg_holds_spinlock() && !rcu_preempt_depth();
}

/*
 * For work whose amount users decide: a few threads that compete with all others. Not
 * WQ_MEM_RECLAIM, although it frees memory: it calls other drivers, which may flush their own
 * work.
 */
struct workqueue_struct *dxg_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, 4, name);
}

/*
 * The work queue of an adapter: its work runs one at a time, in the order it was queued in. Those
 * who free memory may wait for it, by the fence of a sync file.
 */
struct workqueue_struct *dxg_ordered_workqueue(const char *name)
{
	return alloc_ordered_workqueue("%s", WQ_MEM_RECLAIM, name);
}

/* Waits until a counter is zero that dxg_count_down() counts down. */
void dxg_wait_for_zero(atomic_t *count)
{
	wait_var_event(count, !atomic_read_acquire(count));
}

/* Whoever waits may free the counter at once, so after the last its address is only a name. */
void dxg_count_down(atomic_t *count)
{
	if (atomic_dec_and_test(count))
		wake_up_var(count);
}

/* Whether the caller may make its work go before that of other processes. */
bool dxg_caller_may_raise_priority(void)
{
	return capable(CAP_SYS_NICE);
}

/* Whether the caller may control the machine. Who only asks is not noted for an audit. */
bool dxg_caller_may_administrate(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
}
