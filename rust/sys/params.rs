// SPDX-License-Identifier: GPL-2.0

//! Module parameters, declared in `params.c`.
//!
//! The kernel's Rust macro has no string parameters and does not show its parameters in sysfs, so
//! C declares them. They are written before the module's init runs and never again.

use super::ffi;
use crate::logic::quota::Machine;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Name of the device node.
pub(crate) fn name() -> &'static CStr {
    // SAFETY: The parameter is a valid C string, either the default literal or memory that the
    // kernel keeps until the module is gone, and nothing writes it after load (mode 0444).
    unsafe { CStr::from_char_ptr(ffi::dxg_params.name) }
}

/// Permissions of the device node.
pub(crate) fn mode() -> u16 {
    // SAFETY: An aligned integer that nothing writes after load.
    let mode = unsafe { ffi::dxg_params.mode };

    // CAST: nine bits.
    (mode & 0o777) as u16
}

/// Number of software adapters asked for.
pub(crate) fn adapters() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.adapters }
}

/// How many local handles a process may hold.
pub(crate) fn max_handles() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_handles }
}

/// How many waits of a process may be pending without a thread that sleeps in them.
pub(crate) fn max_waiters() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_waiters }
}

/// Who may open objects by global handle; see RES-103.
pub(crate) fn global_access() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.global_access }
}

/// How many shareable objects a user may have.
pub(crate) fn max_user_objects() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_objects }
}

/// How many object names a user may have given.
pub(crate) fn max_user_names() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_names }
}

/// How many global handles a user may have made.
pub(crate) fn max_user_globals() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_globals }
}

/// How many bytes a user may have in information stores and private runtime data.
pub(crate) fn max_user_store() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_store }
}

/// How many watches and weak references a user may have.
pub(crate) fn max_user_watches() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_watches }
}

/// How many elements all waits of a user may have together.
pub(crate) fn max_user_wait_elements() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_wait_elements }
}

/// How many allocations a user may have.
pub(crate) fn max_user_allocations() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_allocations }
}

/// How many pages the allocations of a user may have.
pub(crate) fn max_user_claimed() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    machine().claimed(unsafe { ffi::dxg_params.max_user_claimed_mb })
}

/// How many pages of allocations may stay in memory for a user.
pub(crate) fn max_user_resident() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    machine().resident(unsafe { ffi::dxg_params.max_user_resident_mb })
}

/// How many files may be kept open for a user.
pub(crate) fn max_user_files() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    machine().held_files(unsafe { ffi::dxg_params.max_user_files })
}

/// How many contexts and HW queues a user may have.
pub(crate) fn max_user_queues() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_queues }
}

/// How many items a user may have queued in them.
pub(crate) fn max_user_queued_items() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_queued_items }
}

/// How many bytes these may take.
pub(crate) fn max_user_queued_bytes() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_user_queued_bytes }
}

/// What the machine has at this moment: memory is plugged, and the limit of files is changed.
fn machine() -> Machine {
    // SAFETY: Both only read numbers of the kernel.
    let (pages, files) = unsafe { (ffi::dxg_total_pages(), ffi::dxg_max_files()) };

    Machine {
        pages,
        // CAST: a usize fits 64 bits.
        page_size: PAGE_SIZE as u64,
        files,
    }
}

/// Bytes of memory that an adapter may use without one of its own to say how many: half of what
/// there is.
pub(crate) fn shared_memory() -> u64 {
    let machine = machine();

    (machine.pages / 2).saturating_mul(machine.page_size)
}

/// How many entries the store of an object may have.
pub(crate) fn max_info_entries() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_info_entries }
}

/// How many bytes the store of an object may have.
pub(crate) fn max_info_bytes() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_info_bytes }
}

/// How many bytes one entry of a store may have.
pub(crate) fn max_info_entry_bytes() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_info_entry_bytes }
}

/// How many files may be attached to an object.
pub(crate) fn max_info_files() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.max_info_files }
}

/// The TDR time of new adapters, in milliseconds.
pub(crate) fn tdr_delay_ms() -> u32 {
    // SAFETY: An aligned integer that nothing writes after load.
    unsafe { ffi::dxg_params.tdr_delay_ms }
}

/// Whether every call to a KMD is verified; see MEM-95.
pub(crate) fn verify_kmd() -> bool {
    // SAFETY: A bool that nothing writes after load.
    unsafe { ffi::dxg_params.verify_kmd }
}

/// Whether a creator may let every process open a resource; see RES-103.
pub(crate) fn allow_nonsecure() -> bool {
    // SAFETY: A bool that nothing writes after load.
    unsafe { ffi::dxg_params.allow_nonsecure }
}

/// Whose character devices may be attached to objects: names of modules, with commas between them.
pub(crate) fn attach_drivers() -> &'static CStr {
    // SAFETY: As in `name`.
    unsafe { CStr::from_char_ptr(ffi::dxg_params.attach_drivers) }
}
