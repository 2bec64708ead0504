// SPDX-License-Identifier: GPL-2.0

//! Allocations: the resources that hold them, their bytes, and how other processes and drivers see
//! them.

pub(crate) mod allocation;
pub(in crate::dxgk) mod backing;
pub(crate) mod cpu_mapping;
pub(crate) mod creation;
pub(crate) mod dma_buf;
mod end_tests;
pub(crate) mod opening;
pub(crate) mod resource;
pub(crate) mod storage;
mod tests;
