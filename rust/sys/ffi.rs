// SPDX-License-Identifier: GPL-2.0

//! Declarations of the C half: `helpers.h`, `memory.h`, `attach.c`, `node.c`, `params.c` and
//! `trace.c`.
//!
//! Keep these in step with the C files by hand; they are few and simple on purpose.

use kernel::{
    bindings,
    ffi::{
        c_char,
        c_int,
        c_uint,
        c_ulong,
        c_void, //
    }, //
};

/// Mirror of `struct dxg_caller`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Caller {
    pub(super) ipc_ns: u64,
    pub(super) user_ns: u64,
    pub(super) euid: u32,
    pub(super) fsuid: u32,
    pub(super) egid: u32,
    pub(super) reserved: u32,
}

/// Mirror of `struct dxg_payer`.
#[repr(C)]
pub(super) struct Payer {
    pub(super) user: *mut c_void,
    pub(super) mm: *mut c_void,
}

// The kernel's own types are plain C structs; bindgen marks some of them in ways that the lint
// takes for foreign-function hazards.
#[expect(improper_ctypes)]
extern "C" {
    pub(super) fn dxg_caller(out: *mut Caller);
    pub(super) fn dxg_caller_is_ipc_owner() -> bool;
    pub(super) fn dxg_caller_may_ptrace(user_ns: u64) -> bool;
    pub(super) fn dxg_caller_in_group(gid: u32) -> bool;
    pub(super) fn dxg_uid_for_caller(uid: u32) -> u32;
    pub(super) fn dxg_tgid_get() -> *mut c_void;
    pub(super) fn dxg_tgid_is(tgid: *mut c_void) -> bool;
    pub(super) fn dxg_group_is_dead() -> bool;
    pub(super) fn dxg_notifier_insert(
        notifier: *mut bindings::mmu_interval_notifier,
        mm: *mut bindings::mm_struct,
        start: c_ulong,
        length: c_ulong,
        ops: *const bindings::mmu_interval_notifier_ops,
    ) -> c_int;
    pub(super) fn dxg_group_by_number(number: u32) -> *mut c_void;
    pub(super) fn dxg_group_by_pidfd(fd: u32) -> *mut c_void;
    pub(super) fn dxg_group_credentials(
        group: *mut c_void,
        out: *mut Caller,
        ipc_owner: *mut bool,
    ) -> bool;
    pub(super) fn dxg_current_mm() -> *mut bindings::mm_struct;

    pub(super) fn dxg_anon_file(
        name: *const c_char,
        fops: *const bindings::file_operations,
        private: *mut c_void,
        flags: c_int,
    ) -> *mut bindings::file;

    pub(super) fn dxg_node_add(
        name: *const c_char,
        mode: u16,
        fops: *const bindings::file_operations,
    ) -> *mut bindings::cdev;
    pub(super) fn dxg_node_remove(cdev: *mut bindings::cdev);

    pub(super) fn dxg_attachable(fd: c_int) -> *mut bindings::file;

    pub(super) fn dxg_is_compat_call() -> bool;
    pub(super) fn dxg_read_words(to: *mut c_void, from: u64, size: usize) -> bool;
    pub(super) fn dxg_write_words(to: u64, from: *const c_void, size: usize) -> bool;

    pub(super) fn dxg_page_address(page: *mut bindings::page) -> *mut c_void;
    pub(super) fn dxg_map_page(file: *mut bindings::file, token: c_ulong) -> c_ulong;
    pub(super) fn dxg_unmap_page(file: *mut bindings::file, addr: c_ulong, token: c_ulong) -> bool;
    pub(super) fn dxg_page_is_alone(
        file: *mut bindings::file,
        addr: c_ulong,
        token: c_ulong,
        page: *mut bindings::page,
    ) -> bool;
    pub(super) fn dxg_vma_token(vma: *mut bindings::vm_area_struct) -> c_ulong;
    pub(super) fn dxg_vma_is_page(vma: *mut bindings::vm_area_struct) -> bool;

    pub(super) fn dxg_sleep_until(
        word: *const bindings::atomic_t,
        deadline: *const i64,
        realtime: bool,
        killable: bool,
    ) -> c_int;

    pub(super) fn dxg_call_restarts() -> bool;
    pub(super) fn dxg_call_site(site: *mut [u64; 2]);
    pub(super) fn dxg_sort(words: *mut u32, count: usize);
    pub(super) fn dxg_sort_pairs(pairs: *mut [u64; 2], count: usize);

    pub(super) fn dxg_waitqueue_init(wq: *mut bindings::wait_queue_head);
    pub(super) fn dxg_waitqueue_wake(wq: *mut bindings::wait_queue_head);
    pub(super) fn dxg_wait_reached(
        wq: *mut bindings::wait_queue_head,
        count: *const bindings::atomic_t,
        target: u32,
    ) -> c_int;
    pub(super) fn dxg_poll_wait(
        file: *mut bindings::file,
        wq: *mut bindings::wait_queue_head,
        table: *mut bindings::poll_table_struct,
    );

    pub(super) fn dxg_shmem_new(size: u64) -> *mut bindings::file;
    pub(super) fn dxg_is_shmem(file: *mut bindings::file) -> bool;
    pub(super) fn dxg_file_size(file: *mut bindings::file) -> u64;
    pub(super) fn dxg_shmem_get_write(file: *mut bindings::file) -> c_int;
    pub(super) fn dxg_shmem_put_write(file: *mut bindings::file);
    pub(super) fn dxg_shmem_pin(file: *mut bindings::file, index: c_ulong) -> *mut bindings::page;
    pub(super) fn dxg_shmem_unpin(page: *mut bindings::page);

    pub(super) fn dxg_check_ordinary(addr: c_ulong, end: c_ulong) -> c_int;
    pub(super) fn dxg_pin_user(
        addr: c_ulong,
        count: c_ulong,
        write: bool,
        pages: *mut *mut bindings::page,
    ) -> c_int;
    pub(super) fn dxg_unpin_user(pages: *mut *mut bindings::page, count: c_ulong, dirty: bool);
    pub(super) fn dxg_pins_charge(payer: *mut Payer, count: c_ulong) -> c_int;
    pub(super) fn dxg_pins_uncharge(payer: *const Payer, count: c_ulong);

    pub(super) fn dxg_revocable_file(
        name: *const c_char,
        fops: *const bindings::file_operations,
        private: *mut c_void,
        flags: c_int,
    ) -> *mut bindings::file;
    pub(super) fn dxg_map_file(file: *mut bindings::file, size: c_ulong, write: bool) -> c_ulong;
    pub(super) fn dxg_unmap_file(file: *mut bindings::file, addr: c_ulong, size: c_ulong);
    pub(super) fn dxg_cover_file(
        file: *mut bindings::file,
        cover: *mut bindings::file,
        addr: c_ulong,
        size: c_ulong,
        write: bool,
    );
    pub(super) fn dxg_zap_file(file: *mut bindings::file);
    pub(super) fn dxg_show_pages(
        vma: *mut bindings::vm_area_struct,
        count: c_ulong,
        write: bool,
        ops: *const bindings::vm_operations_struct,
        private: *mut c_void,
    ) -> c_int;
    pub(super) fn dxg_show_dma_buf(
        vma: *mut bindings::vm_area_struct,
        count: c_ulong,
        write: bool,
        buf: *mut bindings::dma_buf,
    ) -> c_int;
    pub(super) fn dxg_page_number(page: *const bindings::page) -> c_ulong;
    pub(super) fn dxg_fault_frame(
        vmf: *mut bindings::vm_fault,
        number: c_ulong,
    ) -> bindings::vm_fault_t;
    pub(super) fn dxg_fault_ahead(
        vmf: *mut bindings::vm_fault,
        ahead: c_ulong,
        number: c_ulong,
    ) -> bool;
    pub(super) fn dxg_fault_error(error: c_int) -> bindings::vm_fault_t;

    pub(super) fn dxg_file_try_get(
        slot: *mut *mut bindings::file,
        inode: *const bindings::inode,
    ) -> *mut bindings::file;
    pub(super) fn dxg_sg_map(
        device: *mut bindings::device,
        pages: *mut *mut bindings::page,
        count: c_uint,
        direction: bindings::dma_data_direction,
    ) -> *mut bindings::sg_table;
    pub(super) fn dxg_sg_unmap(
        device: *mut bindings::device,
        table: *mut bindings::sg_table,
        direction: bindings::dma_data_direction,
    );
    pub(super) fn dxg_sg_sync(
        device: *mut bindings::device,
        table: *mut bindings::sg_table,
        direction: bindings::dma_data_direction,
        for_device: bool,
    );
    pub(super) fn dxg_vmap(pages: *mut *mut bindings::page, count: c_uint) -> *mut c_void;
    pub(super) fn dxg_vunmap(addr: *mut c_void);

    pub(super) fn dxg_thread_get() -> *mut c_void;
    pub(super) fn dxg_thread_is(thread: *mut c_void) -> bool;
    pub(super) fn dxg_thread_ref(thread: *mut c_void);
    pub(super) fn dxg_thread_is_dead(thread: *mut c_void) -> bool;
    pub(super) fn dxg_exit_watch(
        entry: *mut bindings::wait_queue_entry,
        thread: *mut c_void,
        wake: unsafe extern "C" fn(
            *mut bindings::wait_queue_entry,
            c_uint,
            c_int,
            *mut c_void,
        ) -> c_int,
    );
    pub(super) fn dxg_exit_unwatch(entry: *mut bindings::wait_queue_entry, thread: *mut c_void);
    pub(super) fn dxg_is_killed() -> bool;
    pub(super) fn dxg_cond_resched();
    pub(super) fn dxg_workqueue(name: *const c_char) -> *mut bindings::workqueue_struct;

    pub(super) fn dxg_trace_create(object: u64, kind: u32);
    pub(super) fn dxg_trace_destroy(object: u64, kind: u32);
    pub(super) fn dxg_trace_wait(object: u64, value: u64, waiter: u64);
    pub(super) fn dxg_trace_signal(object: u64, value: u64);
    pub(super) fn dxg_trace_wake(waiter: u64, outcome: u32);

    pub(super) fn dxg_total_pages() -> u64;
    pub(super) fn dxg_max_files() -> u64;
    pub(super) static dxg_param_name: *const c_char;
    pub(super) static dxg_param_mode: c_uint;
    pub(super) static dxg_param_adapters: c_uint;
    pub(super) static dxg_param_max_handles: c_uint;
    pub(super) static dxg_param_max_waiters: c_uint;
    pub(super) static dxg_param_global_access: c_uint;
    pub(super) static dxg_param_allow_nonsecure: bool;
    pub(super) static dxg_param_max_user_objects: c_uint;
    pub(super) static dxg_param_max_user_names: c_uint;
    pub(super) static dxg_param_max_user_globals: c_uint;
    pub(super) static dxg_param_max_user_store: c_uint;
    pub(super) static dxg_param_max_user_watches: c_uint;
    pub(super) static dxg_param_max_user_wait_elements: c_uint;
    pub(super) static dxg_param_max_user_allocations: c_uint;
    pub(super) static dxg_param_max_user_claimed_mb: c_uint;
    pub(super) static dxg_param_max_user_resident_mb: c_uint;
    pub(super) static dxg_param_max_user_files: c_uint;
    pub(super) static dxg_param_max_info_entries: c_uint;
    pub(super) static dxg_param_max_info_bytes: c_uint;
    pub(super) static dxg_param_max_info_entry_bytes: c_uint;
    pub(super) static dxg_param_max_info_files: c_uint;
}
