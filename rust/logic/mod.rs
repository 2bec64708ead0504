// SPDX-License-Identifier: GPL-2.0

//! Pure rules: no kernel crate, no `unsafe`, no panics, and no allocation but through `platform`.
//!
//! Nothing here needs a kernel type. The same files are compiled by Kbuild into the module and by
//! cargo into the host test crate, which declares the same module names at its root and has its own
//! `platform`.

pub(crate) mod access;
pub(crate) mod adapter_info;
pub(crate) mod allocation_lists;
pub(crate) mod allocation_properties;
pub(crate) mod allocation_rules;
pub(crate) mod attribute_rules;
pub(crate) mod bucket_map;
pub(crate) mod classes;
pub(crate) mod context_allocations;
pub(crate) mod digest;
pub(crate) mod doorbell;
pub(crate) mod driver_names;
pub(crate) mod feature;
pub(crate) mod feature_agreement;
pub(crate) mod feature_overrides;
pub(crate) mod fence_log;
pub(crate) mod fence_placement;
pub(crate) mod fence_slots;
pub(crate) mod fence_value;
pub(crate) mod freed_room;
pub(crate) mod global_access;
pub(crate) mod gpu_ranges;
pub(crate) mod gpu_va_rules;
pub(crate) mod groups;
pub(crate) mod handle;
pub(crate) mod handle_tree;
pub(crate) mod info_rules;
pub(crate) mod interrupt_record;
pub(crate) mod kept_pages;
pub(crate) mod kept_reports;
pub(crate) mod keyed_mutex;
pub(crate) mod keyed_mutex_rules;
pub(crate) mod kmd_ranges;
pub(crate) mod legacy_sync;
pub(crate) mod luid;
pub(crate) mod moving;
pub(crate) mod name;
pub(crate) mod name_mode;
pub(crate) mod notice_rules;
pub(crate) mod offer_rules;
pub(crate) mod open_rules;
pub(crate) mod page_levels;
pub(crate) mod paging_log;
pub(crate) mod paging_ring;
pub(crate) mod paging_rules;
pub(crate) mod paging_scratch;
pub(crate) mod power;
mod promises;
pub(crate) mod propagation;
pub(crate) mod queued_sync_rules;
pub(crate) mod quota;
pub(crate) mod range_undo;
pub(crate) mod reclaim_rules;
pub(crate) mod refusals;
pub(crate) mod residency;
pub(crate) mod rotation_rules;
pub(crate) mod share_rules;
pub(crate) mod sleepers;
pub(crate) mod start_rules;
pub(crate) mod submission_order;
pub(crate) mod submit_rules;
pub(crate) mod sync_file_rules;
pub(crate) mod sync_flags;
pub(crate) mod table_tree;
pub(crate) mod tdr;
pub(crate) mod timeout;
pub(crate) mod upcase;
pub(crate) mod users;
pub(crate) mod value_windows;
pub(crate) mod wait_key;
pub(crate) mod wait_rules;
pub(crate) mod wait_set;
pub(crate) mod waiters;
pub(crate) mod watched;
pub(crate) mod zeros;

/// Arguments that are INVALID_PARAMETER.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid;

/// Refuses if a condition is true.
pub fn invalid_if(refused: bool) -> Result<(), Invalid> {
    if refused {
        Err(Invalid)
    } else {
        Ok(())
    }
}

/// Refuses an array or a buffer that has a size but no address.
pub fn check_address(address: u64, size: u32) -> Result<(), Invalid> {
    invalid_if(size != 0 && address == 0)
}
