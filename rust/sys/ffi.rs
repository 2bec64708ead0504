// SPDX-License-Identifier: GPL-2.0

//! Declarations of the C half: `helpers.h`, `params.c` and `trace.c`.
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
    pub(super) fn dxg_current_mm() -> *mut bindings::mm_struct;

    pub(super) fn dxg_anon_file(
        name: *const c_char,
        fops: *const bindings::file_operations,
        private: *mut c_void,
        flags: c_int,
    ) -> *mut bindings::file;

    pub(super) fn dxg_read_words(to: *mut c_void, from: u64, size: usize) -> bool;
    pub(super) fn dxg_write_words(to: u64, from: *const c_void, size: usize) -> bool;

    pub(super) fn dxg_page_address(page: *mut bindings::page) -> *mut c_void;
    pub(super) fn dxg_map_page(file: *mut bindings::file, token: c_ulong) -> c_ulong;
    pub(super) fn dxg_unmap_page(file: *mut bindings::file, addr: c_ulong, token: c_ulong) -> bool;
    pub(super) fn dxg_vma_token(vma: *mut bindings::vm_area_struct) -> c_ulong;
    pub(super) fn dxg_vma_is_page(vma: *mut bindings::vm_area_struct) -> bool;

    pub(super) fn dxg_sleep_until(word: *const bindings::atomic_t) -> c_int;

    pub(super) fn dxg_waitqueue_init(wq: *mut bindings::wait_queue_head);
    pub(super) fn dxg_waitqueue_wake(wq: *mut bindings::wait_queue_head);
    pub(super) fn dxg_poll_wait(
        file: *mut bindings::file,
        wq: *mut bindings::wait_queue_head,
        table: *mut bindings::poll_table_struct,
    );

    pub(super) fn dxg_trace_create(object: u64, kind: u32);
    pub(super) fn dxg_trace_destroy(object: u64, kind: u32);
    pub(super) fn dxg_trace_wait(object: u64, value: u64, waiter: u64);
    pub(super) fn dxg_trace_signal(object: u64, value: u64);
    pub(super) fn dxg_trace_wake(waiter: u64, outcome: u32);

    pub(super) static dxg_param_name: *const c_char;
    pub(super) static dxg_param_adapters: c_uint;
    pub(super) static dxg_param_max_handles: c_uint;
    pub(super) static dxg_param_max_waiters: c_uint;
    pub(super) static dxg_param_global_access: c_uint;
    pub(super) static dxg_param_max_user_objects: c_uint;
    pub(super) static dxg_param_max_user_names: c_uint;
    pub(super) static dxg_param_max_user_globals: c_uint;
    pub(super) static dxg_param_max_user_store: c_uint;
    pub(super) static dxg_param_max_user_watches: c_uint;
}
