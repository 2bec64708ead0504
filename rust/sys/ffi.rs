// SPDX-License-Identifier: GPL-2.0

//! What the C half in `rust/c` gives us, generated from `rust/c/dxg.h`.
//!
//! `tools/abi/ffi.sh` makes this file, and a test compares it. The types of the kernel are those of
//! the kernel crate.

// The kernel's own types are plain C structs; bindgen marks some of them in ways that the lint
// takes for foreign-function hazards.
#![allow(
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    unreachable_pub
)]

use kernel::bindings::*;

#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct dxg_caller {
    pub(crate) ipc_ns: kernel::ffi::c_ulonglong,
    pub(crate) user_ns: kernel::ffi::c_ulonglong,
    pub(crate) euid: kernel::ffi::c_uint,
    pub(crate) fsuid: kernel::ffi::c_uint,
    pub(crate) egid: kernel::ffi::c_uint,
    pub(crate) reserved: kernel::ffi::c_uint,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct dxg_one {
    pub(crate) objects: kernel::ffi::c_ulonglong,
    pub(crate) values: kernel::ffi::c_ulonglong,
    pub(crate) value: kernel::ffi::c_ulonglong,
    pub(crate) rest: [kernel::ffi::c_ulonglong; 2usize],
    pub(crate) device: kernel::ffi::c_uint,
    pub(crate) object: kernel::ffi::c_uint,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_payer {
    pub(crate) user: *mut user_struct,
    pub(crate) mm: *mut mm_struct,
}
pub const dxg_caching_DXG_CACHED: dxg_caching = 0;
pub const dxg_caching_DXG_WRITE_COMBINED: dxg_caching = 1;
pub const dxg_caching_DXG_UNCACHED: dxg_caching = 2;
pub type dxg_caching = kernel::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_attachment {
    pub(crate) attachment: *mut dma_buf_attachment,
    pub(crate) table: *mut sg_table,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_params {
    pub(crate) name: *mut kernel::ffi::c_char,
    pub(crate) mode: kernel::ffi::c_uint,
    pub(crate) adapters: kernel::ffi::c_uint,
    pub(crate) max_handles: kernel::ffi::c_uint,
    pub(crate) max_waiters: kernel::ffi::c_uint,
    pub(crate) global_access: kernel::ffi::c_uint,
    pub(crate) allow_nonsecure: bool,
    pub(crate) max_user_objects: kernel::ffi::c_uint,
    pub(crate) max_user_names: kernel::ffi::c_uint,
    pub(crate) max_user_globals: kernel::ffi::c_uint,
    pub(crate) max_user_store: kernel::ffi::c_uint,
    pub(crate) max_user_watches: kernel::ffi::c_uint,
    pub(crate) max_user_wait_elements: kernel::ffi::c_uint,
    pub(crate) max_user_allocations: kernel::ffi::c_uint,
    pub(crate) max_user_claimed_mb: kernel::ffi::c_uint,
    pub(crate) max_user_resident_mb: kernel::ffi::c_uint,
    pub(crate) max_user_files: kernel::ffi::c_uint,
    pub(crate) max_user_queues: kernel::ffi::c_uint,
    pub(crate) max_user_queued_items: kernel::ffi::c_uint,
    pub(crate) max_user_queued_bytes: kernel::ffi::c_uint,
    pub(crate) max_info_entries: kernel::ffi::c_uint,
    pub(crate) max_info_bytes: kernel::ffi::c_uint,
    pub(crate) max_info_entry_bytes: kernel::ffi::c_uint,
    pub(crate) max_info_files: kernel::ffi::c_uint,
    pub(crate) attach_drivers: *mut kernel::ffi::c_char,
    pub(crate) tdr_delay_ms: kernel::ffi::c_uint,
    pub(crate) verify_kmd: bool,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_shrinker {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_reclaim_item {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_pass {
    _unused: [u8; 0],
}
pub type dxg_scan_func_t = ::core::option::Option<
    unsafe extern "C" fn(
        priv_: *mut kernel::ffi::c_void,
        pass: *mut dxg_pass,
        most: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_ulong,
>;
pub type dxg_keep_func_t =
    ::core::option::Option<unsafe extern "C" fn(owner: *mut kernel::ffi::c_void)>;
pub const dxg_paging_event_number_DXG_PAGING_MAKE_RESIDENT: dxg_paging_event_number = 0;
pub const dxg_paging_event_number_DXG_PAGING_EVICT: dxg_paging_event_number = 1;
pub const dxg_paging_event_number_DXG_PAGING_PAGE_OP_BUILD: dxg_paging_event_number = 2;
pub const dxg_paging_event_number_DXG_PAGING_PAGE_OP_SUBMIT: dxg_paging_event_number = 3;
pub const dxg_paging_event_number_DXG_PAGING_PAGE_OP_DONE: dxg_paging_event_number = 4;
pub const dxg_paging_event_number_DXG_PAGING_PT_UPDATE: dxg_paging_event_number = 5;
pub const dxg_paging_event_number_DXG_PAGING_TLB_FLUSH: dxg_paging_event_number = 6;
pub const dxg_paging_event_number_DXG_PAGING_MOVE: dxg_paging_event_number = 7;
pub const dxg_paging_event_number_DXG_PAGING_OFFER: dxg_paging_event_number = 8;
pub const dxg_paging_event_number_DXG_PAGING_RECLAIM: dxg_paging_event_number = 9;
pub const dxg_paging_event_number_DXG_PAGING_DISCARD: dxg_paging_event_number = 10;
pub const dxg_paging_event_number_DXG_PAGING_BUDGET_CHANGE: dxg_paging_event_number = 11;
pub const dxg_paging_event_number_DXG_PAGING_TRIM: dxg_paging_event_number = 12;
pub const dxg_paging_event_number_DXG_PAGING_PAGE_FAULT: dxg_paging_event_number = 13;
pub type dxg_paging_event_number = kernel::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dxg_paging_event {
    pub(crate) adapter: kernel::ffi::c_ulonglong,
    pub(crate) device: kernel::ffi::c_ulonglong,
    pub(crate) queue: kernel::ffi::c_ulonglong,
    pub(crate) value: kernel::ffi::c_ulonglong,
    pub(crate) process: kernel::ffi::c_ulonglong,
    pub(crate) object: kernel::ffi::c_ulonglong,
    pub(crate) batch: kernel::ffi::c_ulonglong,
    pub(crate) start: kernel::ffi::c_ulonglong,
    pub(crate) count: kernel::ffi::c_ulonglong,
    pub(crate) offset: kernel::ffi::c_ulonglong,
    pub(crate) address: kernel::ffi::c_ulonglong,
    pub(crate) size: kernel::ffi::c_ulonglong,
    pub(crate) segment: kernel::ffi::c_uint,
    pub(crate) flags: kernel::ffi::c_uint,
    pub(crate) status: kernel::ffi::c_uint,
    pub(crate) operation: kernel::ffi::c_uint,
}
unsafe extern "C" {
    pub fn dxg_caller(out: *mut dxg_caller);
    pub fn dxg_caller_is_ipc_owner() -> bool;
    pub fn dxg_caller_may_ptrace(user_ns: kernel::ffi::c_ulonglong) -> bool;
    pub fn dxg_caller_in_group(gid: kernel::ffi::c_uint) -> bool;
    pub fn dxg_uid_for_caller(uid: kernel::ffi::c_uint) -> kernel::ffi::c_uint;
    pub fn dxg_tgid_get() -> *mut pid;
    pub fn dxg_tgid_is(tgid: *mut pid) -> bool;
    pub fn dxg_process_is(tgid: *mut pid, mm: *mut mm_struct) -> bool;
    pub fn dxg_tgid_number(tgid: *mut pid) -> kernel::ffi::c_uint;
    pub fn dxg_group_is_dead() -> bool;
    pub fn dxg_group_is_killed() -> bool;
    pub fn dxg_current_mm() -> *mut mm_struct;
    pub fn dxg_notifier_insert(
        notifier: *mut mmu_interval_notifier,
        mm: *mut mm_struct,
        start: kernel::ffi::c_ulong,
        length: kernel::ffi::c_ulong,
        ops: *const mmu_interval_notifier_ops,
    ) -> kernel::ffi::c_int;
    pub fn dxg_group_by_number(number: kernel::ffi::c_uint) -> *mut pid;
    pub fn dxg_group_by_pidfd(fd: kernel::ffi::c_uint) -> *mut pid;
    pub fn dxg_group_credentials(
        group: *mut pid,
        out: *mut dxg_caller,
        ipc_owner: *mut bool,
    ) -> bool;
    pub fn dxg_anon_file(
        name: *const kernel::ffi::c_char,
        fops: *const file_operations,
        priv_: *mut kernel::ffi::c_void,
        flags: kernel::ffi::c_int,
    ) -> *mut file;
    pub fn dxg_node_add(
        name: *const kernel::ffi::c_char,
        mode: kernel::ffi::c_ushort,
        fops: *const file_operations,
    ) -> *mut cdev;
    pub fn dxg_node_remove(cdev: *mut cdev);
    pub fn dxg_attachable(
        fd: kernel::ffi::c_int,
        driver: *mut *const kernel::ffi::c_char,
    ) -> *mut file;
    pub fn dxg_event_watch(
        file: *mut file,
        entry: *mut wait_queue_entry,
        wake: wait_queue_func_t,
        events: *mut kernel::ffi::c_uint,
    ) -> *mut wait_queue_head;
    pub fn dxg_event_unwatch(head: *mut wait_queue_head, entry: *mut wait_queue_entry);
    pub fn dxg_is_compat_call() -> bool;
    pub fn dxg_read_words(
        to: *mut kernel::ffi::c_void,
        from: kernel::ffi::c_ulonglong,
        size: usize,
    ) -> bool;
    pub fn dxg_read_2_words(to: *mut kernel::ffi::c_void, from: kernel::ffi::c_ulonglong) -> bool;
    pub fn dxg_read_3_words(to: *mut kernel::ffi::c_void, from: kernel::ffi::c_ulonglong) -> bool;
    pub fn dxg_read_4_words(to: *mut kernel::ffi::c_void, from: kernel::ffi::c_ulonglong) -> bool;
    pub fn dxg_read_one_signal(to: *mut dxg_one, from: kernel::ffi::c_ulonglong) -> bool;
    pub fn dxg_read_one_wait(to: *mut dxg_one, from: kernel::ffi::c_ulonglong) -> bool;
    pub fn dxg_write_words(
        to: kernel::ffi::c_ulonglong,
        from: *const kernel::ffi::c_void,
        size: usize,
    ) -> bool;
    pub fn dxg_page_address(page: *mut page) -> *mut kernel::ffi::c_void;
    pub fn dxg_map_pages(
        file: *mut file,
        token: kernel::ffi::c_ulong,
        count: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_ulong;
    pub fn dxg_unmap_pages(
        file: *mut file,
        addr: kernel::ffi::c_ulong,
        token: kernel::ffi::c_ulong,
        count: kernel::ffi::c_ulong,
    );
    pub fn dxg_page_is_alone(
        file: *mut file,
        addr: kernel::ffi::c_ulong,
        token: kernel::ffi::c_ulong,
        page: *mut page,
    ) -> bool;
    pub fn dxg_vma_token(vma: *mut vm_area_struct) -> kernel::ffi::c_ulong;
    pub fn dxg_vma_has_pages(vma: *mut vm_area_struct, count: kernel::ffi::c_ulong) -> bool;
    pub fn dxg_vma_is_part(
        vma: *mut vm_area_struct,
        file: *mut file,
        addr: kernel::ffi::c_ulong,
        token: kernel::ffi::c_ulong,
    ) -> bool;
    pub fn dxg_mmap_read_lock(mm: *mut mm_struct) -> bool;
    pub fn dxg_sleep_until(
        word: *const atomic_t,
        deadline: *const kernel::ffi::c_longlong,
        realtime: bool,
        killable: bool,
    ) -> kernel::ffi::c_int;
    pub fn dxg_call_restarts() -> bool;
    pub fn dxg_call_site(site: *mut kernel::ffi::c_ulonglong);
    pub fn dxg_refcount_inc_not_zero(count: *mut refcount_struct) -> bool;
    pub fn dxg_sort(words: *mut kernel::ffi::c_uint, count: usize);
    pub fn dxg_sort_pairs(pairs: *mut [kernel::ffi::c_ulonglong; 2usize], count: usize);
    pub fn dxg_waitqueue_init(wq: *mut wait_queue_head);
    pub fn dxg_waitqueue_wake(wq: *mut wait_queue_head);
    pub fn dxg_wait_reached(
        wq: *mut wait_queue_head,
        count: *const atomic_t,
        target: kernel::ffi::c_uint,
    ) -> kernel::ffi::c_int;
    pub fn dxg_wait_while_equal(
        wq: *mut wait_queue_head,
        count: *const atomic_t,
        old: kernel::ffi::c_uint,
    ) -> kernel::ffi::c_int;
    pub fn dxg_read_may_wait(iocb: *const kiocb) -> bool;
    pub fn dxg_wait_surely_reached(
        wq: *mut wait_queue_head,
        count: *const atomic_t,
        target: kernel::ffi::c_uint,
    );
    pub fn dxg_poll_wait(file: *mut file, wq: *mut wait_queue_head, table: *mut poll_table_struct);
    pub fn dxg_thread_get() -> *mut pid;
    pub fn dxg_stamp() -> kernel::ffi::c_ulonglong;
    pub fn dxg_stamp_age(then: kernel::ffi::c_uint) -> kernel::ffi::c_ulonglong;
    pub fn dxg_number_for_caller(number: kernel::ffi::c_uint) -> kernel::ffi::c_uint;
    pub fn dxg_thread_is(thread: *mut pid) -> bool;
    pub fn dxg_thread_ref(thread: *mut pid);
    pub fn dxg_thread_is_dead(thread: *mut pid) -> bool;
    pub fn dxg_exit_watch(entry: *mut wait_queue_entry, thread: *mut pid, wake: wait_queue_func_t);
    pub fn dxg_exit_unwatch(entry: *mut wait_queue_entry, thread: *mut pid);
    pub fn dxg_memory_group_get() -> *mut mem_cgroup;
    pub fn dxg_memory_group_put(group: *mut mem_cgroup);
    pub fn dxg_memory_group_exchange(group: *mut mem_cgroup) -> *mut mem_cgroup;
    pub fn dxg_is_killed() -> bool;
    pub fn dxg_cond_resched();
    pub fn dxg_holds_spinlock() -> bool;
    pub fn dxg_may_sleep() -> bool;
    #[cfg(CONFIG_LOCKDEP)]
    pub fn dxg_gate_enter(may_wait: bool);
    #[cfg(CONFIG_LOCKDEP)]
    pub fn dxg_gate_close();
    #[cfg(CONFIG_LOCKDEP)]
    pub fn dxg_gate_leave();
    #[cfg(CONFIG_LOCKDEP)]
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn dxg_gate_is_held() -> bool;
    pub fn dxg_kthread_start(
        run: ::core::option::Option<
            unsafe extern "C" fn(data: *mut kernel::ffi::c_void) -> kernel::ffi::c_int,
        >,
        data: *mut kernel::ffi::c_void,
        name: *const kernel::ffi::c_char,
    ) -> *mut task_struct;
    pub fn dxg_kthread_stop(task: *mut task_struct) -> kernel::ffi::c_int;
    pub fn dxg_kthread_begin();
    pub fn dxg_kthread_breathe();
    pub fn dxg_is_alone() -> bool;
    pub fn dxg_thread_wait(
        wq: *mut wait_queue_head,
        word: *const atomic_t,
        deadline: *const kernel::ffi::c_longlong,
    );
    pub fn dxg_workqueue(name: *const kernel::ffi::c_char) -> *mut workqueue_struct;
    pub fn dxg_ordered_workqueue(name: *const kernel::ffi::c_char) -> *mut workqueue_struct;
    pub fn dxg_wait_for_zero(count: *mut atomic_t);
    pub fn dxg_count_down(count: *mut atomic_t);
    pub fn dxg_caller_may_raise_priority() -> bool;
    pub fn dxg_caller_may_administrate() -> bool;
    pub fn dxg_total_pages() -> kernel::ffi::c_ulonglong;
    pub fn dxg_max_files() -> kernel::ffi::c_ulonglong;
    pub fn dxg_shmem_new(size: kernel::ffi::c_ulonglong) -> *mut file;
    pub fn dxg_is_shmem(file: *mut file) -> bool;
    pub fn dxg_file_size(file: *mut file) -> kernel::ffi::c_ulonglong;
    pub fn dxg_shmem_get_write(file: *mut file) -> kernel::ffi::c_int;
    pub fn dxg_shmem_put_write(file: *mut file);
    pub fn dxg_shmem_get_page(file: *mut file, index: kernel::ffi::c_ulong) -> *mut page;
    pub fn dxg_shmem_put_pages(pages: *mut *mut page, count: kernel::ffi::c_uint);
    pub fn dxg_shmem_set_unevictable(file: *mut file, unevictable: bool);
    pub fn dxg_shmem_next_used(file: *mut file, index: kernel::ffi::c_ulong)
        -> kernel::ffi::c_long;
    pub fn dxg_shmem_drop(file: *mut file);
    pub fn dxg_check_ordinary(
        addr: kernel::ffi::c_ulong,
        end: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_int;
    pub fn dxg_pin_user(
        addr: kernel::ffi::c_ulong,
        count: kernel::ffi::c_ulong,
        write: bool,
        pages: *mut *mut page,
    ) -> kernel::ffi::c_int;
    pub fn dxg_unpin_user(pages: *mut *mut page, count: kernel::ffi::c_ulong, dirty: bool);
    pub fn dxg_pins_charge(
        payer: *mut dxg_payer,
        count: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_int;
    pub fn dxg_pins_uncharge(payer: *const dxg_payer, count: kernel::ffi::c_ulong);
    pub fn dxg_revocable_file(
        name: *const kernel::ffi::c_char,
        fops: *const file_operations,
        priv_: *mut kernel::ffi::c_void,
        flags: kernel::ffi::c_int,
    ) -> *mut file;
    pub fn dxg_map_file(
        file: *mut file,
        size: kernel::ffi::c_ulong,
        write: bool,
    ) -> kernel::ffi::c_ulong;
    pub fn dxg_unmap_file(file: *mut file, addr: kernel::ffi::c_ulong, size: kernel::ffi::c_ulong);
    pub fn dxg_cover_file(
        file: *mut file,
        cover: *mut file,
        addr: kernel::ffi::c_ulong,
        size: kernel::ffi::c_ulong,
        write: bool,
    );
    pub fn dxg_zap_file(file: *mut file, first: kernel::ffi::c_ulong, count: kernel::ffi::c_ulong);
    pub fn dxg_show_pages(
        vma: *mut vm_area_struct,
        count: kernel::ffi::c_ulong,
        write: bool,
        ops: *const vm_operations_struct,
        priv_: *mut kernel::ffi::c_void,
    ) -> kernel::ffi::c_int;
    pub fn dxg_show_dma_buf(
        vma: *mut vm_area_struct,
        count: kernel::ffi::c_ulong,
        write: bool,
        buf: *mut dma_buf,
    ) -> kernel::ffi::c_int;
    pub fn dxg_page_number(page: *const page) -> kernel::ffi::c_ulong;
    pub fn dxg_direct_map(frame: kernel::ffi::c_ulong) -> *mut kernel::ffi::c_void;
    pub fn dxg_direct_map_count(
        frame: kernel::ffi::c_ulong,
        count: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_ulong;
    pub fn dxg_following_pages(slots: *const *mut page, count: usize) -> usize;
    pub fn dxg_memory_end() -> kernel::ffi::c_ulonglong;
    pub fn dxg_segment_page() -> *mut page;
    pub fn dxg_page_clear(page: *mut page);
    pub fn dxg_page_copy(to: *mut page, from: *mut page);
    pub fn dxg_fill_words32(to: *mut kernel::ffi::c_uint, word: kernel::ffi::c_uint, count: usize);
    pub fn dxg_fill_words64(
        to: *mut kernel::ffi::c_ulonglong,
        word: kernel::ffi::c_ulonglong,
        count: usize,
    );
    pub fn dxg_copy_words32(
        to: *mut kernel::ffi::c_uint,
        from: *const kernel::ffi::c_uint,
        count: usize,
    );
    pub fn dxg_copy_words64(
        to: *mut kernel::ffi::c_ulonglong,
        from: *const kernel::ffi::c_ulonglong,
        count: usize,
    );
    pub fn dxg_copy_bytes(
        to: *mut kernel::ffi::c_void,
        from: *const kernel::ffi::c_void,
        count: usize,
    );
    pub fn dxg_fault_prepare(vmf: *mut vm_fault);
    pub fn dxg_fault_frame(
        vmf: *mut vm_fault,
        number: kernel::ffi::c_ulong,
        caching: dxg_caching,
    ) -> vm_fault_t;
    pub fn dxg_fault_ahead(
        vmf: *mut vm_fault,
        ahead: kernel::ffi::c_ulong,
        number: kernel::ffi::c_ulong,
        caching: dxg_caching,
    ) -> bool;
    pub fn dxg_fault_error(error: kernel::ffi::c_int) -> vm_fault_t;
    pub fn dxg_engines_add() -> kernel::ffi::c_int;
    pub fn dxg_engines_remove();
    pub fn dxg_dma_buf_attach(
        buf: *mut dma_buf,
        dir: dma_data_direction,
        frames: *mut kernel::ffi::c_ulonglong,
        count: usize,
        result: *mut dxg_attachment,
    ) -> kernel::ffi::c_int;
    pub fn dxg_dma_buf_detach(
        buf: *mut dma_buf,
        dir: dma_data_direction,
        what: *const dxg_attachment,
    );
    pub fn dxg_file_is_alone(file: *mut file) -> bool;
    pub fn dxg_sg_map(
        dev: *mut device,
        pages: *mut *mut page,
        count: kernel::ffi::c_uint,
        dir: dma_data_direction,
    ) -> *mut sg_table;
    pub fn dxg_sg_unmap(dev: *mut device, sgt: *mut sg_table, dir: dma_data_direction);
    pub fn dxg_sg_sync(
        dev: *mut device,
        sgt: *mut sg_table,
        dir: dma_data_direction,
        for_device: bool,
    );
    pub fn dxg_vmap(pages: *mut *mut page, count: kernel::ffi::c_uint) -> *mut kernel::ffi::c_void;
    pub fn dxg_vunmap(addr: *mut kernel::ffi::c_void);
    pub static mut dxg_params: dxg_params;
    pub fn dxg_shrinker_new(
        id: kernel::ffi::c_ulonglong,
        lists: kernel::ffi::c_uint,
        scan: dxg_scan_func_t,
        keep: dxg_keep_func_t,
        priv_: *mut kernel::ffi::c_void,
    ) -> *mut dxg_shrinker;
    pub fn dxg_shrinker_free(this: *mut dxg_shrinker);
    pub fn dxg_pass_count(pass: *const dxg_pass, list: kernel::ffi::c_uint)
        -> kernel::ffi::c_ulong;
    pub fn dxg_pass_next(
        pass: *mut dxg_pass,
        list: kernel::ffi::c_uint,
    ) -> *mut kernel::ffi::c_void;
    pub fn dxg_reclaim_item_new(this: *mut dxg_shrinker) -> *mut dxg_reclaim_item;
    pub fn dxg_reclaim_item_free(this: *mut dxg_shrinker, item: *mut dxg_reclaim_item);
    pub fn dxg_reclaim_add(
        this: *mut dxg_shrinker,
        list: kernel::ffi::c_uint,
        item: *mut dxg_reclaim_item,
        owner: *mut kernel::ffi::c_void,
    );
    pub fn dxg_reclaim_remove(
        this: *mut dxg_shrinker,
        list: kernel::ffi::c_uint,
        item: *mut dxg_reclaim_item,
    ) -> *mut kernel::ffi::c_void;
    pub fn dxg_reclaim_pause() -> kernel::ffi::c_uint;
    pub fn dxg_reclaim_resume(flags: kernel::ffi::c_uint);
    pub fn dxg_dma_fence_get(fence: *mut dma_fence);
    pub fn dxg_dma_fence_put(fence: *mut dma_fence);
    pub fn dxg_dma_fence_has_signalled(fence: *mut dma_fence) -> bool;
    pub fn dxg_dma_fence_signal(fence: *mut dma_fence, error: kernel::ffi::c_int);
    pub fn dxg_signalling_begin() -> bool;
    pub fn dxg_signalling_end(cookie: bool);
    pub fn dxg_sync_file_new(fence: *mut dma_fence) -> *mut file;
    pub fn dxg_sync_file_fence(fd: kernel::ffi::c_int) -> *mut dma_fence;
    pub fn dxg_trace_create(object: kernel::ffi::c_ulonglong, kind: kernel::ffi::c_uint);
    pub fn dxg_trace_destroy(object: kernel::ffi::c_ulonglong, kind: kernel::ffi::c_uint);
    pub fn dxg_trace_wait(
        object: kernel::ffi::c_ulonglong,
        value: kernel::ffi::c_ulonglong,
        waiter: kernel::ffi::c_ulonglong,
    );
    pub fn dxg_trace_signal(object: kernel::ffi::c_ulonglong, value: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_wake(waiter: kernel::ffi::c_ulonglong, outcome: kernel::ffi::c_uint);
    pub fn dxg_trace_queue(queue: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_run(queue: kernel::ffi::c_ulonglong, number: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_complete(queue: kernel::ffi::c_ulonglong, number: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_block(
        queue: kernel::ffi::c_ulonglong,
        object: kernel::ffi::c_ulonglong,
        value: kernel::ffi::c_ulonglong,
    );
    pub fn dxg_trace_unblock(queue: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_fence_operations() -> bool;
    pub fn dxg_trace_fence_queued(
        queue: kernel::ffi::c_ulonglong,
        fence: kernel::ffi::c_ulonglong,
        value: kernel::ffi::c_ulonglong,
        operation: kernel::ffi::c_uint,
    );
    pub fn dxg_trace_fence_done(
        queue: kernel::ffi::c_ulonglong,
        fence: kernel::ffi::c_ulonglong,
        value: kernel::ffi::c_ulonglong,
        operation: kernel::ffi::c_uint,
    );
    pub fn dxg_trace_fault(queue: kernel::ffi::c_ulonglong, packet: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_reset(
        adapter: kernel::ffi::c_ulonglong,
        node: kernel::ffi::c_uint,
        queue: kernel::ffi::c_ulonglong,
    );
    pub fn dxg_trace_propagate(
        object: kernel::ffi::c_ulonglong,
        value: kernel::ffi::c_ulonglong,
        from: kernel::ffi::c_ulonglong,
        to: kernel::ffi::c_ulonglong,
    );
    pub fn dxg_trace_kmd(kind: kernel::ffi::c_uint, object: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_native_interrupt(
        adapter: kernel::ffi::c_ulonglong,
        fence: kernel::ffi::c_ulonglong,
        queue: kernel::ffi::c_ulonglong,
    );
    pub fn dxg_trace_log_entry(
        queue: kernel::ffi::c_ulonglong,
        fence: kernel::ffi::c_ulonglong,
        value: kernel::ffi::c_ulonglong,
        operation: kernel::ffi::c_uint,
        observed_ns: kernel::ffi::c_ulonglong,
        end_ns: kernel::ffi::c_ulonglong,
    );
    pub fn dxg_trace_log_lost(queue: kernel::ffi::c_ulonglong, count: kernel::ffi::c_ulonglong);
    pub fn dxg_trace_logs_are_on() -> bool;
    pub fn dxg_trace_logs_will_be_on() -> bool;
    pub fn dxg_trace_listen_for_logs(
        begins: ::core::option::Option<unsafe extern "C" fn(listener: *mut kernel::ffi::c_void)>,
        listener: *mut kernel::ffi::c_void,
    );
    pub static mut dxg_paging_followers: atomic_t;
    pub fn dxg_trace_paging(number: dxg_paging_event_number, event: *const dxg_paging_event);
}
