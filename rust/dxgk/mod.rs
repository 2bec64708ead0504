// SPDX-License-Identifier: GPL-2.0

//! The OS part: the objects, in a folder for each subject.
//!
//! These files know the rules of D3DKMT objects and nothing of ioctls or user memory. Who owns
//! whom, top down:
//!
//! ```text
//! Driver ── Adapter ── FenceBindings     until it is removed
//!   │         └─ Queues ── Queue         until their end, see `sched`
//!   ├─ Tables ── GlobalTable, NameTable, Accounts
//!   └─ Process (one per thread group and address space)
//!        ├─ HandleTable ── Entry ── Adapter | Device | Context | HwQueue
//!        │                          | OpenSyncObject | OpenResource | OpenAllocation
//!        ├─ FenceMappings, FenceStoragePool   what is mapped there
//!        ├─ GpuProcesses ── GpuProcess   what its devices on an adapter share
//!        └─ PendingWaits, InterruptedWaits ── Waiter   those that outlast a call
//! OpenSyncObject, OpenResource, Share, dma-buf ── Strong ── Object
//! NtHandle ── Share                      one for each open file description
//! Object: Fence | LegacySync | KeyedMutex | Resource ── Allocation ── Storage
//! OpenAllocation ── CpuMapping           where a process has an allocation mapped
//! WeakFile, Watch ── WeakTarget ··> Object   until its end
//! ```
//!
//! Locking is described once, in `Documentation/locking.md`.

pub(crate) mod adapter;
pub(crate) mod at_once;
pub(crate) mod border;
pub(crate) mod context;
pub(crate) mod debugfs;
pub(crate) mod destruction;
pub(crate) mod device;
pub(crate) mod doorbell;
mod dpc;
pub(crate) mod driver;
pub(crate) mod engine_use;
pub(crate) mod gpu_process;
pub(crate) mod handle;
pub(crate) mod hw_queue;
pub(crate) mod info;
pub(crate) mod keyed_mutex;
pub(crate) mod kmd_log;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod power;
pub(crate) mod process;
pub(crate) mod quota;
pub(crate) mod recovery;
pub(crate) mod refusals;
pub(crate) mod report;
pub(crate) mod retire;
pub(crate) mod running;
pub(crate) mod sched;
pub(crate) mod share;
pub(crate) mod stats;
pub(crate) mod sync;
pub(crate) mod tables;
#[cfg(CONFIG_KUNIT = "y")]
mod test_client;
mod tests;
mod verifier_tests;
pub(crate) mod vidmm;

pub(crate) use crate::sys::small_vec;
