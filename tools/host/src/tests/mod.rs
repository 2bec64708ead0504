// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of `ddi`, `engine`, `kmd` and `logic`. Requirement numbers (FEN, RES, GPU) are those of
//! the specification.

mod engine;
mod harness;
mod keyed_mutex;

#[cfg(not(loom))]
mod access;
#[cfg(not(loom))]
mod adapter_facts;
#[cfg(not(loom))]
mod adapter_info;
#[cfg(not(loom))]
mod allocation_data;
#[cfg(not(loom))]
mod allocation_lists;
#[cfg(not(loom))]
mod allocation_properties;
#[cfg(not(loom))]
mod allocation_rules;
#[cfg(not(loom))]
mod aperture;
#[cfg(not(loom))]
mod attribute_rules;
#[cfg(not(loom))]
mod border;
#[cfg(not(loom))]
mod bucket_map;
#[cfg(not(loom))]
mod changes;
#[cfg(not(loom))]
mod classes;
#[cfg(loom)]
mod cmp;
#[cfg(not(loom))]
mod context_allocations;
#[cfg(not(loom))]
mod ddi;
#[cfg(not(loom))]
mod digest;
#[cfg(not(loom))]
mod doorbell;
#[cfg(not(loom))]
mod driver_names;
#[cfg(not(loom))]
mod feature;
#[cfg(not(loom))]
mod feature_overrides;
#[cfg(not(loom))]
mod fence_log;
#[cfg(not(loom))]
mod fence_placement;
#[cfg(not(loom))]
mod fence_slots;
#[cfg(not(loom))]
mod fence_value;
#[cfg(loom)]
mod freed_room;
#[cfg(not(loom))]
mod global_access;
#[cfg(not(loom))]
mod gpu_ranges;
#[cfg(not(loom))]
mod gpu_va_rules;
#[cfg(not(loom))]
mod groups;
#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
mod handle_tree;
#[cfg(not(loom))]
mod index_map;
#[cfg(not(loom))]
mod info_rules;
mod interrupt_record;
#[cfg(not(loom))]
mod kept_pages;
mod kept_reports;
#[cfg(not(loom))]
mod keyed_mutex_rules;
#[cfg(not(loom))]
mod kmd_ranges;
#[cfg(not(loom))]
mod legacy_sync;
#[cfg(not(loom))]
mod luid;
#[cfg(not(loom))]
mod model;
#[cfg(not(loom))]
mod moving;
#[cfg(not(loom))]
mod name;
#[cfg(not(loom))]
mod name_mode;
#[cfg(loom)]
mod native_fences;
mod notice_rules;
mod offer_rules;
mod open_rules;
#[cfg(not(loom))]
mod page_levels;
#[cfg(not(loom))]
mod paging_log;
#[cfg(not(loom))]
mod paging_rules;
#[cfg(not(loom))]
mod paging_scratch;
#[cfg(not(loom))]
mod propagation;
mod queued_sync_rules;
#[cfg(not(loom))]
mod quota;
#[cfg(not(loom))]
mod range_undo;
#[cfg(not(loom))]
mod reclaim_rules;
mod refusals;
#[cfg(not(loom))]
mod residency;
#[cfg(not(loom))]
mod rotation_rules;
#[cfg(not(loom))]
mod share_rules;
mod sharing;
#[cfg(loom)]
mod signals;
#[cfg(not(loom))]
mod soft_gpu;
#[cfg(not(loom))]
mod start_rules;
#[cfg(not(loom))]
mod submission_order;
#[cfg(not(loom))]
mod submit_rules;
#[cfg(not(loom))]
mod sync_file_rules;
#[cfg(not(loom))]
mod table_tree;
#[cfg(not(loom))]
mod tdr;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
mod timeout;
#[cfg(not(loom))]
mod upcase;
#[cfg(not(loom))]
mod users;
#[cfg(not(loom))]
mod value_windows;
#[cfg(not(loom))]
mod wait_rules;
#[cfg(not(loom))]
mod waiters;

#[cfg(loom)]
mod gate;
#[cfg(loom)]
mod interleavings;
#[cfg(loom)]
mod lost_ring;
#[cfg(loom)]
mod quota_scenes;
#[cfg(loom)]
mod watched;
