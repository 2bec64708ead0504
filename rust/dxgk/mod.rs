// SPDX-License-Identifier: GPL-2.0

//! The OS part: one file per kernel object.
//!
//! These files know the rules of D3DKMT objects and nothing of ioctls or user memory. Who owns
//! whom, top down:
//!
//! ```text
//! Driver ── Adapter                      for the life of the module
//!   ├─ Tables ── GlobalTable, NameTable, Accounts
//!   └─ Process (one per thread group and address space)
//!        ├─ HandleTable ── Entry ── Adapter | Device | Context | Opening | Bundle | OpenAllocation
//!        ├─ AddressSpace, CellPool       what is mapped there
//!        └─ PendingWaits ── Waiter       waits that no thread sleeps in
//! Opening, Bundle, Share, dma-buf ── Strong ── Object
//! NtHandle ── Share                      one for each open file description
//! Object: MonitoredFence | LegacySync | KeyedMutex | Resource ── Allocation ── Storage
//! OpenAllocation ── Window               where a process has an allocation mapped
//! WeakFile, Watch ── Link ··> Object     until its end
//! ```
//!
//! Locking is described once, in `Documentation/locking.md`.

pub(crate) mod account;
pub(crate) mod adapter;
pub(crate) mod address_space;
pub(crate) mod allocation;
pub(crate) mod attached;
pub(crate) mod bundle;
pub(crate) mod census;
pub(crate) mod context;
pub(crate) mod cpu_wait;
pub(crate) mod destruction;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod export;
pub(crate) mod fence_point;
pub(crate) mod few;
pub(crate) mod global_table;
pub(crate) mod handle_table;
pub(crate) mod holder;
pub(crate) mod interrupted_waits;
pub(crate) mod keyed_mutex;
pub(crate) mod legacy_sync;
pub(crate) mod monitored_fence;
pub(crate) mod mutex_opening;
pub(crate) mod mutex_owners;
pub(crate) mod name;
pub(crate) mod name_table;
pub(crate) mod object;
pub(crate) mod open_allocation;
pub(crate) mod openers;
pub(crate) mod opening;
pub(crate) mod pending_waits;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod resource;
pub(crate) mod retire;
pub(crate) mod share;
pub(crate) mod storage;
pub(crate) mod store;
pub(crate) mod tables;
pub(crate) mod value_cell;
pub(crate) mod waiter;
pub(crate) mod watch;
pub(crate) mod weak;
pub(crate) mod window;
