// SPDX-License-Identifier: GPL-2.0
/*
 * C helpers of opendxg, see helpers.h.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/cred.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ipc_namespace.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/unaligned.h>
#include <linux/user_namespace.h>
#include <linux/version.h>
#include <linux/wait.h>

#include "helpers.h"

void dxg_caller(struct dxg_caller *out)
{
	struct nsproxy *nsproxy = current->nsproxy;

	out->ipc_ns = nsproxy ? nsproxy->ipc_ns->ns.ns_id : 0;
	out->user_ns = current_user_ns()->ns.ns_id;
	out->euid = __kuid_val(current_euid());
	out->fsuid = __kuid_val(current_fsuid());
	out->egid = __kgid_val(current_egid());
	out->reserved = 0;
}

bool dxg_caller_is_ipc_owner(void)
{
	struct nsproxy *nsproxy = current->nsproxy;

	return nsproxy && ns_capable(nsproxy->ipc_ns->user_ns, CAP_IPC_OWNER);
}

/*
 * CAP_SYS_PTRACE in the user namespace with this id if that is the caller's own, otherwise in
 * the initial one: an object knows its namespace by id only.
 */
bool dxg_caller_may_ptrace(u64 user_ns)
{
	struct user_namespace *own = current_user_ns();

	return ns_capable(user_ns == own->ns.ns_id ? own : &init_user_ns, CAP_SYS_PTRACE);
}

/* By file system gid and supplementary groups. */
bool dxg_caller_in_group(u32 gid)
{
	return in_group_p(KGIDT_INIT(gid));
}

u32 dxg_uid_for_caller(u32 uid)
{
	return from_kuid_munged(current_user_ns(), KUIDT_INIT(uid));
}

/* The identity of the thread group; released with put_pid(). */
struct pid *dxg_tgid_get(void)
{
	return get_task_pid(current, PIDTYPE_TGID);
}

bool dxg_tgid_is(struct pid *tgid)
{
	return task_tgid(current) == tgid;
}

/* The same with an address space. */
bool dxg_process_is(struct pid *tgid, struct mm_struct *mm)
{
	struct task_struct *task = current;

	return task_tgid(task) == tgid && task->mm == mm;
}

/* Its number in the initial namespace of process ids; 0 if the thread group is gone. */
u32 dxg_tgid_number(struct pid *tgid)
{
	return pid_has_task(tgid, PIDTYPE_TGID) ? pid_nr(tgid) : 0;
}

/* True in the exit path of a thread group's last thread, and in that of the others after it. */
bool dxg_group_is_dead(void)
{
	return !atomic_read(&current->signal->live);
}

/* True if a signal ends the thread group, and not a thread of its own. */
bool dxg_group_is_killed(void)
{
	return READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT &&
	       READ_ONCE(current->signal->group_exit_code) & 0x7f;
}

/*
 * mmu_interval_notifier_insert() waits unkillably for the mmap lock of the caller. This gives
 * up with -EINTR when the caller is killed.
 */
int dxg_notifier_insert(struct mmu_interval_notifier *notifier, struct mm_struct *mm,
			unsigned long start, unsigned long length,
			const struct mmu_interval_notifier_ops *ops)
{
	int ret;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	ret = mmu_interval_notifier_insert_locked(notifier, mm, start, length, ops);
	mmap_write_unlock(mm);
	return ret;
}

/* The identity of a live process; released with put_pid(). */
struct pid *dxg_group_by_number(u32 number)
{
	struct pid *pid = find_get_pid(number);

	if (pid && pid_has_task(pid, PIDTYPE_TGID))
		return pid;
	put_pid(pid);
	return NULL;
}

/*
 * As above, by a pidfd of the caller. The kernel keeps the identity in the inode's private
 * data and does not export its pidfd_pid(). Before raising the version here, check that
 * fs/pidfs.c still does so.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "look at pidfd_pid() in fs/pidfs.c: dxg_group_by_pidfd() does what it does"
#endif
struct pid *dxg_group_by_pidfd(u32 fd)
{
	CLASS(fd, f)(fd);
	struct pid *pid;

	if (fd_empty(f) || file_inode(fd_file(f))->i_sb->s_magic != PID_FS_MAGIC)
		return NULL;
	pid = file_inode(fd_file(f))->i_private;
	return pid && pid_has_task(pid, PIDTYPE_TGID) ? get_pid(pid) : NULL;
}

/* As ns_capable(), with the credentials of another task. */
static bool is_capable(const struct cred *cred, struct user_namespace *ns, int cap)
{
	const struct cred *own = override_creds(cred);
	bool capable = ns_capable_noaudit(ns, cap);

	revert_creds(own);
	return capable;
}

/*
 * The credentials of a process, as dxg_caller() and dxg_caller_is_ipc_owner() report those of
 * the caller. False if it is gone.
 */
bool dxg_group_credentials(struct pid *group, struct dxg_caller *out, bool *ipc_owner)
{
	struct task_struct *task = get_pid_task(group, PIDTYPE_TGID);
	struct user_namespace *owner = NULL;
	const struct cred *cred;

	if (!task)
		return false;

	out->ipc_ns = 0;
	task_lock(task);
	if (task->nsproxy) {
		out->ipc_ns = task->nsproxy->ipc_ns->ns.ns_id;
		owner = get_user_ns(task->nsproxy->ipc_ns->user_ns);
	}
	task_unlock(task);

	cred = get_task_cred(task);
	out->user_ns = cred->user_ns->ns.ns_id;
	out->euid = __kuid_val(cred->euid);
	out->fsuid = __kuid_val(cred->fsuid);
	out->egid = __kgid_val(cred->egid);
	out->reserved = 0;
	*ipc_owner = owner && is_capable(cred, owner, CAP_IPC_OWNER);
	put_cred(cred);
	put_user_ns(owner);
	put_task_struct(task);
	return true;
}

/* NULL in kernel threads and once an exiting task has given up its memory. */
struct mm_struct *dxg_current_mm(void)
{
	return current->mm;
}

struct file *dxg_anon_file(const char *name, const struct file_operations *fops,
			   void *priv, int flags)
{
	struct file *file = anon_inode_getfile(name, fops, priv, flags);

	/* Those that can be read heed IOCB_NOWAIT. */
	if (!IS_ERR(file) && fops->read_iter)
		file->f_mode |= FMODE_NOWAIT;
	return file;
}

bool dxg_read_may_wait(const struct kiocb *iocb)
{
	return !(iocb->ki_flags & IOCB_NOWAIT) && !(iocb->ki_filp->f_flags & O_NONBLOCK);
}

bool dxg_is_compat_call(void)
{
	return in_compat_syscall();
}

/*
 * Copies a few words, as argument structs are: get_user() and put_user() in one user access,
 * instead of a call of the general copy routine. They are instrumented (KMSAN) like those. There
 * is no check_object_size(), because the size comes from a type of the Rust side, as that of
 * get_user() comes from a type of C. Documentation/upstream.md has figures. size is a multiple of 4
 * and below a page. False on a fault.
 *
 * Four words at a time, because a step of a loop costs more than a word.
 */
#define read_word(at) ({							\
	u64 word;								\
										\
	unsafe_get_user(word, (const u64 __user *)(src + (at)), fault);	\
	put_unaligned(word, (u64 *)(to + (at)));				\
})

bool dxg_read_words(void *to, u64 from, size_t size)
{
	const void __user *src = u64_to_user_ptr(from);
	size_t at = 0;

	might_fault();
	if (should_fail_usercopy())
		return false;

	scoped_user_read_access_size(src, size, fault) {
		for (; at + 4 * sizeof(u64) <= size; at += 4 * sizeof(u64)) {
			read_word(at);
			read_word(at + sizeof(u64));
			read_word(at + 2 * sizeof(u64));
			read_word(at + 3 * sizeof(u64));
		}
		for (; at + sizeof(u64) <= size; at += sizeof(u64))
			read_word(at);
		if (at < size) {
			u32 word;

			unsafe_get_user(word, (const u32 __user *)(src + at), fault);
			put_unaligned(word, (u32 *)(to + at));
		}
	}
	return true;

fault:
	return false;
}

/* The same for structs of two, three and four words of 64 bits, without a loop. */
static __always_inline bool read_few(u64 *to, u64 from, size_t words)
{
	const u64 __user *src = u64_to_user_ptr(from);

	might_fault();
	if (should_fail_usercopy())
		return false;

	scoped_user_read_access_size(src, words * sizeof(u64), fault) {
		unsafe_get_user(to[0], src, fault);
		unsafe_get_user(to[1], src + 1, fault);
		if (words > 2)
			unsafe_get_user(to[2], src + 2, fault);
		if (words > 3)
			unsafe_get_user(to[3], src + 3, fault);
	}
	return true;

fault:
	return false;
}

bool dxg_read_2_words(void *to, u64 from)
{
	return read_few(to, from, 2);
}

bool dxg_read_3_words(void *to, u64 from)
{
	return read_few(to, from, 3);
}

bool dxg_read_4_words(void *to, u64 from)
{
	return read_few(to, from, 4);
}

/*
 * Copies the argument struct of a signal or a wait, and what its arrays have if that is one
 * element. False for more or fewer elements, for an array that is not there, and on a fault.
 */
static __always_inline bool read_one(struct dxg_one *to, u64 from, bool is_wait)
{
	const u64 __user *src = u64_to_user_ptr(from);
	const u64 __user *values;
	const u32 __user *objects;
	u64 head, word;

	might_fault();
	if (should_fail_usercopy())
		return false;

	scoped_user_read_access_size(src, is_wait ? 40 : 32, fault) {
		unsafe_get_user(head, src, fault);
		unsafe_get_user(word, src + 1, fault);
		objects = u64_to_user_ptr(word);
		unsafe_get_user(word, src + 2, fault);
		values = u64_to_user_ptr(word);
		unsafe_get_user(to->rest[0], src + 3, fault);
		to->rest[1] = 0;
		if (is_wait)
			unsafe_get_user(to->rest[1], src + 4, fault);
	}
	to->device = (u32)head;
	to->objects = (unsigned long)objects;
	to->values = (unsigned long)values;
	if (head >> 32 != 1 || !objects || !values)
		return false;

	scoped_user_read_access(objects, fault)
		unsafe_get_user(to->object, objects, fault);
	scoped_user_read_access(values, fault)
		unsafe_get_user(to->value, values, fault);
	return true;

fault:
	return false;
}

bool dxg_read_one_signal(struct dxg_one *to, u64 from)
{
	return read_one(to, from, false);
}

bool dxg_read_one_wait(struct dxg_one *to, u64 from)
{
	return read_one(to, from, true);
}

#define write_word(at)								\
	unsafe_put_user(get_unaligned((const u64 *)(from + (at))),		\
			(u64 __user *)(dst + (at)), fault)

bool dxg_write_words(u64 to, const void *from, size_t size)
{
	void __user *dst = u64_to_user_ptr(to);
	size_t at = 0;

	might_fault();
	if (should_fail_usercopy())
		return false;

	scoped_user_write_access_size(dst, size, fault) {
		for (; at + 4 * sizeof(u64) <= size; at += 4 * sizeof(u64)) {
			write_word(at);
			write_word(at + sizeof(u64));
			write_word(at + 2 * sizeof(u64));
			write_word(at + 3 * sizeof(u64));
		}
		for (; at + sizeof(u64) <= size; at += sizeof(u64))
			write_word(at);
		if (at < size)
			unsafe_put_user(get_unaligned((const u32 *)(from + at)),
					(u32 __user *)(dst + at), fault);
	}
	return true;

fault:
	return false;
}

void *dxg_page_address(struct page *page)
{
	return page_address(page);
}

/* Maps pages of the file into the caller, read-only; may return an error value. */
unsigned long dxg_map_pages(struct file *file, unsigned long token, unsigned long count)
{
	return vm_mmap(file, 0, count << PAGE_SHIFT, PROT_READ, MAP_SHARED, token << PAGE_SHIFT);
}

/* Whether a mapping is what is left of the file's mapping of that token at addr. */
static bool is_part_of(const struct vm_area_struct *vma, struct file *file, unsigned long addr,
		       unsigned long token)
{
	return vma->vm_file == file &&
	       vma->vm_pgoff - token == (vma->vm_start - addr) >> PAGE_SHIFT;
}

/*
 * The first part of that mapping that is still where it was made, as far as it is below end. The
 * owner may have mapped something else there, or unmapped or moved parts of it.
 */
static bool find_part(struct file *file, unsigned long addr, unsigned long token, unsigned long end,
		      unsigned long *first, unsigned long *last)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	bool found = false;

	/* A killed task loses all its mappings anyway. */
	if (mmap_read_lock_killable(mm))
		return false;
	for (vma = find_vma(mm, *first); vma && vma->vm_start < end && !found;
	     vma = find_vma(mm, vma->vm_end)) {
		*first = vma->vm_start;
		*last = vma->vm_end;
		found = *first >= addr && *last <= end && is_part_of(vma, file, addr, token);
	}
	mmap_read_unlock(mm);
	return found;
}

/*
 * Removes what is left of that mapping. The owner may have mapped something else at the same
 * address, which stays; unless another thread does so at this very moment, see dxg_unmap_file().
 */
void dxg_unmap_pages(struct file *file, unsigned long addr, unsigned long token,
		     unsigned long count)
{
	unsigned long end = addr + (count << PAGE_SHIFT), first = addr, last;

	for (; find_part(file, addr, token, end, &first, &last); first = last)
		if (vm_munmap(first, last - first))
			return;
}

/* Whether that mapping is where it was made. The mmap lock is held. */
static bool is_our_mapping(struct mm_struct *mm, struct file *file, unsigned long addr,
			   unsigned long token)
{
	struct vm_area_struct *vma = vma_lookup(mm, addr);

	return vma && vma->vm_start == addr && is_part_of(vma, file, addr, token) &&
	       dxg_vma_has_pages(vma, 1);
}

/*
 * Whether that mapping is still ours, shows the page, and is the only one that does. If so, no
 * forked child has the page, nor does the owner have it anywhere else. A fork waits for the mmap
 * lock, and so does a call that moves or unmaps the page.
 */
bool dxg_page_is_alone(struct file *file, unsigned long addr, unsigned long token,
		       struct page *page)
{
	struct mm_struct *mm = current->mm;
	struct page *shown = NULL;
	bool alone;

	if (mmap_read_lock_killable(mm))
		return false;
	alone = is_our_mapping(mm, file, addr, token) && folio_mapcount(page_folio(page)) == 1 &&
		get_user_pages(addr, 1, 0, &shown) == 1;
	mmap_read_unlock(mm);

	if (!alone)
		return false;
	put_page(shown);
	return shown == page;
}

unsigned long dxg_vma_token(struct vm_area_struct *vma)
{
	return vma->vm_pgoff;
}

bool dxg_vma_has_pages(struct vm_area_struct *vma, unsigned long count)
{
	return vma_pages(vma) == count;
}

/* Whether a mapping is part of the file's mapping of that token at addr. */
bool dxg_vma_is_part(struct vm_area_struct *vma, struct file *file, unsigned long addr,
		     unsigned long token)
{
	return is_part_of(vma, file, addr, token);
}

/* Waits for the mmap lock of the caller; false if the caller is killed. */
bool dxg_mmap_read_lock(struct mm_struct *mm)
{
	return !mmap_read_lock_killable(mm);
}

/*
 * Sleeps until *word is not 0. The waker stores the word first and then calls
 * wake_up_process(); set_current_state() orders our state against the load. Returns 0;
 * -ETIMEDOUT at the deadline, an absolute time on the monotonic or the real-time clock;
 * -ERESTARTSYS for a signal, or only for a fatal one with killable. The caller looks at the
 * word again.
 */
int dxg_sleep_until(const atomic_t *word, const s64 *deadline, bool realtime, bool killable)
{
	unsigned int state = killable ? TASK_KILLABLE | TASK_FREEZABLE : TASK_INTERRUPTIBLE;
	clockid_t clock = realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	ktime_t expires = deadline ? ns_to_ktime(*deadline) : 0;
	int ret = 0;

	for (;;) {
		set_current_state(state);
		if (atomic_read_acquire(word))
			break;
		if (signal_pending_state(state, current)) {
			ret = -ERESTARTSYS;
			break;
		}
		if (!deadline) {
			schedule();
		} else if (!schedule_hrtimeout_range_clock(&expires, 0, HRTIMER_MODE_ABS, clock)) {
			ret = -ETIMEDOUT;
			break;
		}
	}
	__set_current_state(TASK_RUNNING);
	return ret;
}

/*
 * Whether a call that a signal interrupts is restarted after -ERESTARTSYS: not if the handler
 * that runs first was installed without SA_RESTART. This is a guess: another signal may come
 * in between, or another thread may take this one. The kernel decides later.
 */
bool dxg_call_restarts(void)
{
	sigset_t *const pending[] = {
		&current->pending.signal,
		&current->signal->shared_pending.signal,
	};
	bool restarts = true;
	int i, sig;

	spin_lock_irq(&current->sighand->siglock);
	for (i = 0; i < ARRAY_SIZE(pending); i++) {
		for (sig = 1; sig <= _NSIG; sig++) {
			const struct k_sigaction *action = &current->sighand->action[sig - 1];

			if (!sigismember(pending[i], sig) || sigismember(&current->blocked, sig) ||
			    action->sa.sa_handler == SIG_DFL || action->sa.sa_handler == SIG_IGN)
				continue;
			restarts = action->sa.sa_flags & SA_RESTART;
			goto found;
		}
	}
found:
	spin_unlock_irq(&current->sighand->siglock);
	return restarts;
}

/* The caller's instruction and stack pointers: a restarted call has the same ones. */
void dxg_call_site(u64 site[2])
{
	struct pt_regs *regs = current_pt_regs();

	site[0] = instruction_pointer(regs);
	site[1] = user_stack_pointer(regs);
}

bool dxg_refcount_inc_not_zero(struct refcount_struct *count)
{
	return refcount_inc_not_zero(count);
}

static int dxg_compare(const void *left, const void *right)
{
	return cmp_int(*(const u32 *)left, *(const u32 *)right);
}

/* Rust's own sort may panic, if only for inconsistent comparisons. */
void dxg_sort(u32 *words, size_t count)
{
	sort(words, count, sizeof(*words), dxg_compare, NULL);
}

static int dxg_compare_pairs(const void *left, const void *right)
{
	const u64 *one = left, *other = right;

	return cmp_int(one[0], other[0]) ?: cmp_int(one[1], other[1]);
}

void dxg_sort_pairs(u64 (*pairs)[2], size_t count)
{
	sort(pairs, count, sizeof(*pairs), dxg_compare_pairs, NULL);
}

void dxg_waitqueue_init(struct wait_queue_head *wq)
{
	init_waitqueue_head(wq);
}

/* What is waited for was stored before. Whoever sleeps looks at it after it is in the queue. */
void dxg_waitqueue_wake(struct wait_queue_head *wq)
{
	if (wq_has_sleeper(wq))
		wake_up_poll(wq, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
}

/*
 * Sleeps until a wrapping counter has reached target; an error for a fatal signal. What it waits
 * for may be up to processes that are frozen already, so the caller freezes here.
 */
int dxg_wait_reached(struct wait_queue_head *wq, const atomic_t *count, u32 target)
{
	return wait_event_state(*wq, (s32)(atomic_read_acquire(count) - target) >= 0,
				(TASK_KILLABLE | TASK_FREEZABLE));
}

/* Sleeps while the count is old, as reads do: until any signal. */
int dxg_wait_while_equal(struct wait_queue_head *wq, const atomic_t *count, u32 old)
{
	return wait_event_freezable(*wq, (u32)atomic_read_acquire(count) != old);
}

/*
 * As dxg_wait_reached(), whatever happens to the caller. What it waits for is done by threads of
 * the module.
 */
void dxg_wait_surely_reached(struct wait_queue_head *wq, const atomic_t *count, u32 target)
{
	wait_event(*wq, (s32)(atomic_read_acquire(count) - target) >= 0);
}

void dxg_poll_wait(struct file *file, struct wait_queue_head *wq,
		   struct poll_table_struct *table)
{
	poll_wait(file, wq, table);
}
