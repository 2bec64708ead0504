// SPDX-License-Identifier: GPL-2.0

//! What one software adapter has.

/// What distinguishes one software adapter from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of the adapter, from 0.
    pub index: u32,
    /// Bytes of memory of its own, which are taken from the system as they are used.
    pub local_memory: u64,
    /// Bytes of system memory that it reports to be able to use.
    pub system_memory: u64,
    /// How many nodes it has, of those that there can be.
    pub nodes: u32,
    /// Whether it computes only, instead of rendering too.
    pub compute_only: bool,
    /// `D3DKMT_DRIVERVERSION` that it reports.
    pub wddm_version: u32,
}
