// SPDX-License-Identifier: GPL-2.0

//! Synchronisation objects: fences, the older types, and the waits on them.

pub(crate) mod about;
pub(crate) mod cpu_event;
pub(crate) mod cpu_wait;
pub(crate) mod create;
pub(crate) mod cross_adapter;
mod element;
pub(crate) mod event_signal;
pub(crate) mod exported_point;
pub(crate) mod fence;
pub(crate) mod fence_binding;
pub(crate) mod fence_mappings;
pub(crate) mod fence_storage;
pub(crate) mod fence_stream;
pub(crate) mod fence_viewer;
pub(crate) mod gpu_fences;
pub(crate) mod interrupted_waits;
pub(crate) mod kmd_fence;
pub(crate) mod legacy;
pub(in crate::dxgk) mod log_renewal;
pub(crate) mod native_fence;
pub(in crate::dxgk) mod native_interrupts;
mod native_interrupts_tests;
pub(in crate::dxgk) mod native_log_pair;
pub(in crate::dxgk) mod native_logs;
pub(crate) mod native_storage;
pub(crate) mod opening;
pub(crate) mod pending_waits;
pub(crate) mod queue;
mod shown;
mod shown_fences;
pub(crate) mod stack_sleeper;
mod stack_wait;
pub(crate) mod waiter;
pub(crate) mod wake;
