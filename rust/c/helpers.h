/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers of opendxg: kernel inlines, macros and varargs that Rust cannot call, and short
 * sequences that need fields of the kernel's structs. The rules of D3DKMT objects are not here.
 */
#ifndef DXG_HELPERS_H
#define DXG_HELPERS_H

#ifndef __BINDGEN__
#include <linux/types.h>
#include <linux/wait.h>
#endif

struct cdev;
struct file;
struct file_operations;
struct kiocb;
struct mem_cgroup;
struct mm_struct;
struct mmu_interval_notifier;
struct mmu_interval_notifier_ops;
struct page;
struct pid;
struct refcount_struct;
struct task_struct;
struct poll_table_struct;
struct vm_area_struct;
struct workqueue_struct;

/* Who the current task is, as far as handles care. */
struct dxg_caller {
	u64 ipc_ns;	/* never-reused id of the IPC namespace, 0 while exiting */
	u64 user_ns;	/* never-reused id of the user namespace of the credentials */
	u32 euid;	/* effective uid, kernel-internal value */
	u32 fsuid;	/* file system uid, kernel-internal value */
	u32 egid;	/* effective gid, kernel-internal value */
	u32 reserved;
};

/* A signal of one object, or a wait for one. */
struct dxg_one {
	u64 objects;	/* the address of the array */
	u64 values;	/* likewise */
	u64 value;
	u64 rest[2];	/* the end of the argument struct; a signal has the first word of it */
	u32 device;
	u32 object;
};

void dxg_caller(struct dxg_caller *out);
bool dxg_caller_is_ipc_owner(void);
bool dxg_caller_may_ptrace(u64 user_ns);
bool dxg_caller_in_group(u32 gid);
u32 dxg_uid_for_caller(u32 uid);
struct pid *dxg_tgid_get(void);
bool dxg_tgid_is(struct pid *tgid);
bool dxg_process_is(struct pid *tgid, struct mm_struct *mm);
u32 dxg_tgid_number(struct pid *tgid);
bool dxg_group_is_dead(void);
bool dxg_group_is_killed(void);
struct mm_struct *dxg_current_mm(void);
int dxg_notifier_insert(struct mmu_interval_notifier *notifier, struct mm_struct *mm,
			unsigned long start, unsigned long length,
			const struct mmu_interval_notifier_ops *ops);
struct pid *dxg_group_by_number(u32 number);
struct pid *dxg_group_by_pidfd(u32 fd);
bool dxg_group_credentials(struct pid *group, struct dxg_caller *out, bool *ipc_owner);

struct file *dxg_anon_file(const char *name, const struct file_operations *fops,
			   void *priv, int flags);

/* node.c */
struct cdev *dxg_node_add(const char *name, umode_t mode, const struct file_operations *fops);
void dxg_node_remove(struct cdev *cdev);

/* attach.c */
struct file *dxg_attachable(int fd, const char **driver);

/* eventfd.c */
struct wait_queue_head *dxg_event_watch(struct file *file, struct wait_queue_entry *entry,
					wait_queue_func_t wake, u32 *events);
void dxg_event_unwatch(struct wait_queue_head *head, struct wait_queue_entry *entry);

bool dxg_is_compat_call(void);
bool dxg_read_words(void *to, u64 from, size_t size);
bool dxg_read_2_words(void *to, u64 from);
bool dxg_read_3_words(void *to, u64 from);
bool dxg_read_4_words(void *to, u64 from);
bool dxg_read_one_signal(struct dxg_one *to, u64 from);
bool dxg_read_one_wait(struct dxg_one *to, u64 from);
bool dxg_write_words(u64 to, const void *from, size_t size);

void *dxg_page_address(struct page *page);
unsigned long dxg_map_pages(struct file *file, unsigned long token, unsigned long count);
void dxg_unmap_pages(struct file *file, unsigned long addr, unsigned long token,
		     unsigned long count);
bool dxg_page_is_alone(struct file *file, unsigned long addr, unsigned long token,
		       struct page *page);
unsigned long dxg_vma_token(struct vm_area_struct *vma);
bool dxg_vma_has_pages(struct vm_area_struct *vma, unsigned long count);
bool dxg_vma_is_part(struct vm_area_struct *vma, struct file *file, unsigned long addr,
		     unsigned long token);
bool dxg_mmap_read_lock(struct mm_struct *mm);

int dxg_sleep_until(const atomic_t *word, const s64 *deadline, bool realtime, bool killable);

bool dxg_call_restarts(void);
void dxg_call_site(u64 site[2]);
bool dxg_refcount_inc_not_zero(struct refcount_struct *count);
void dxg_sort(u32 *words, size_t count);
void dxg_sort_pairs(u64 (*pairs)[2], size_t count);

void dxg_waitqueue_init(struct wait_queue_head *wq);
void dxg_waitqueue_wake(struct wait_queue_head *wq);
int dxg_wait_reached(struct wait_queue_head *wq, const atomic_t *count, u32 target);
int dxg_wait_while_equal(struct wait_queue_head *wq, const atomic_t *count, u32 old);
bool dxg_read_may_wait(const struct kiocb *iocb);
void dxg_wait_surely_reached(struct wait_queue_head *wq, const atomic_t *count, u32 target);
void dxg_poll_wait(struct file *file, struct wait_queue_head *wq,
		   struct poll_table_struct *table);

/* threads.c */
struct pid *dxg_thread_get(void);
u64 dxg_stamp(void);
u64 dxg_stamp_age(u32 then);
u32 dxg_number_for_caller(u32 number);
bool dxg_thread_is(struct pid *thread);
void dxg_thread_ref(struct pid *thread);
bool dxg_thread_is_dead(struct pid *thread);
void dxg_exit_watch(struct wait_queue_entry *entry, struct pid *thread, wait_queue_func_t wake);
void dxg_exit_unwatch(struct wait_queue_entry *entry, struct pid *thread);
struct mem_cgroup *dxg_memory_group_get(void);
void dxg_memory_group_put(struct mem_cgroup *group);
struct mem_cgroup *dxg_memory_group_exchange(struct mem_cgroup *group);
bool dxg_is_killed(void);
void dxg_cond_resched(void);
bool dxg_holds_spinlock(void);
bool dxg_may_sleep(void);
void dxg_gate_enter(bool may_wait);
void dxg_gate_close(void);
void dxg_gate_leave(void);
bool dxg_gate_is_held(void);
struct task_struct *dxg_kthread_start(int (*run)(void *data), void *data, const char *name);
int dxg_kthread_stop(struct task_struct *task);
void dxg_kthread_begin(void);
void dxg_kthread_breathe(void);
bool dxg_is_alone(void);
void dxg_thread_wait(struct wait_queue_head *wq, const atomic_t *word, const s64 *deadline);
struct workqueue_struct *dxg_workqueue(const char *name);
struct workqueue_struct *dxg_ordered_workqueue(const char *name);
void dxg_wait_for_zero(atomic_t *count);
void dxg_count_down(atomic_t *count);
bool dxg_caller_may_raise_priority(void);
bool dxg_caller_may_administrate(void);

#endif
