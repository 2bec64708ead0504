// SPDX-License-Identifier: GPL-2.0

//! The scheduler: kernel-mode queues (VidSch; gpu.md section 2, fences.md section 2.5).
//!
//! A [`queue::Queue`] serves a context of packets or a HW queue. What is queued is done strictly in
//! order: commands are handed to the KMD, a few at a time; signals and waits are done here. Whoever
//! can make a queue go on does so: the call that queues something, and the adapter's worker when
//! the KMD or a fence has told it. What others must not wait for the module's worker does.
//!
//! ```text
//! ioctl --- push ---+                      +--- ddi: submit
//! KMD callback --+  +--> Queue::advance ---+--- signal: Fence, LegacySync, event
//! end of a wait -+--> worker --^           +--- wait: queued on Fence, LegacySync
//! ```
//!
//! ```text
//! queue/          a queue, and how it goes on
//! kmd_queue.rs    what the KMD has of it
//! item.rs         what is queued
//! new_item.rs     what is about to be queued
//! wait.rs         a wait
//! signal.rs       a signal, which may be in several queues
//! export.rs       what queues are asked about sync files
//! export_plan.rs  what has to be bounded before something becomes a sync file
//! filled.rs       the ring that a process fills
//! callbacks.rs    what the KMD tells about a queue
//! context_state.rs what a context and its queues have in common
//! list.rs         the queues of an adapter
//! queued_work.rs  what is done when work is through
//! recover.rs      what follows when work hangs
//! snapshot.rs     how a queue is
//! show.rs         what debugfs shows of engines and queues
//! files.rs        its files
//! ```

pub(crate) mod callbacks;
pub(in crate::dxgk) mod context_state;
mod ending_tests;
pub(in crate::dxgk) mod export;
pub(in crate::dxgk) mod export_plan;
pub(in crate::dxgk) mod files;
pub(in crate::dxgk) mod filled;
pub(crate) mod item;
pub(in crate::dxgk) mod kmd_queue;
pub(in crate::dxgk) mod last_faults;
pub(crate) mod list;
pub(crate) mod new_item;
mod others_tests;
mod power_tests;
pub(crate) mod queue;
pub(crate) mod queued_work;
mod recover;
mod recovery_tests;
pub(in crate::dxgk) mod show;
pub(crate) mod signal;
pub(in crate::dxgk) mod snapshot;
mod suspend_tests;
#[cfg(CONFIG_KUNIT = "y")]
mod test_scene;
mod tests;
pub(crate) mod wait;
