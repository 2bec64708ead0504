// SPDX-License-Identifier: GPL-2.0

//! The memory manager (VidMm): GPU address spaces, page tables, paging queues, residency and
//! segments (memory.md sections 1 to 3, 6, 7).
//!
//! ```text
//! GpuProcess ── AddressSpace ── ranges, page tables, pages of fence values
//!                    └─ Opened ── AllocationMemory ── Site, Placement
//! Device ── DeviceQueues ── PagingQueue ── Operation       │
//! Adapter ┬ AdapterMemory ┬ Segment ── LocalPages <────────┤
//!         │               └ Aperture ── ShownRange <───────┘
//!         └ PagingProcess ── AddressSpace
//! ```
//!
//! Page tables are written in the call that changes something, by the processor or by the paging
//! node for it. So at any time, while the lock of the space is free, the page tables say what the
//! ranges say: an entry is valid exactly if its allocation has a placement. Only a MakeResident of
//! much memory is left to the adapter's worker; other calls on its queue then wait for it only in
//! the values of the queue's fence.

pub(crate) mod address_space;
pub(in crate::dxgk) mod all_allocations;
pub(in crate::dxgk) mod all_contexts;
mod aperture;
mod context_allocation;
mod context_allocation_tests;
pub(in crate::dxgk) mod context_allocations;
mod context_pages;
pub(in crate::dxgk) mod context_user;
pub(in crate::dxgk) mod contexts;
pub(crate) mod create;
pub(crate) mod device_queues;
pub(in crate::dxgk) mod fence_memory;
pub(in crate::dxgk) mod fence_page;
pub(in crate::dxgk) mod fence_pages;
pub(in crate::dxgk) mod forced_moves;
mod freed;
pub(crate) mod idle;
mod local_page;
pub(crate) mod mover;
pub(crate) mod notice;
mod notice_source;
pub(crate) mod offered;
pub(crate) mod opened;
pub(crate) mod own_paging_log;
mod page_tables;
mod paging_batches;
pub(in crate::dxgk) mod paging_control;
pub(crate) mod paging_engine;
pub(in crate::dxgk) mod paging_log;
pub(in crate::dxgk) mod paging_process;
pub(crate) mod paging_queue;
mod paging_scratch;
mod paging_switches;
mod paging_taker;
pub(crate) mod paging_worker;
mod paging_writer;
mod pinned_pages;
mod placement;
mod placement_tests;
mod properties;
mod ranges;
pub(crate) mod reserved;
pub(crate) mod residency;
mod resident_in;
pub(crate) mod resident_list;
pub(in crate::dxgk) mod rotation;
pub(crate) mod seat;
pub(crate) mod segment;
mod shortage;
mod shown_page;
mod shows_fences;
pub(crate) mod shrinker;
pub(crate) mod site;
pub(in crate::dxgk) mod table_changes;
mod table_page;
pub(crate) mod taken;
mod tests;
mod undo;
pub(crate) mod update;
pub(crate) mod usage;
pub(in crate::dxgk) mod walk;
