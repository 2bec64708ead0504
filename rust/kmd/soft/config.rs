// SPDX-License-Identifier: GPL-2.0

//! What one software adapter has.

pub use super::doorbells::DoorbellConfig;
use crate::ddi::paging::PageSize;

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
    /// What it does with memory.
    pub profile: AdapterProfile,
    /// Whether nothing of an address space may run while its page tables change.
    pub idle_updates: bool,
    /// Whether its own memory has pages of 64 KiB.
    pub use_64kb_pages: bool,
    /// How its doorbells behave.
    pub doorbells: DoorbellConfig,
    /// It has native fences, and says that processes may submit by themselves, which needs them.
    pub native_fences: bool,
}

impl Config {
    /// What its own memory is divided into.
    pub(super) fn page_size(&self) -> PageSize {
        match self.use_64kb_pages {
            true => PageSize::Kib64,
            false => PageSize::Kib4,
        }
    }
}

/// What an adapter does with memory: the profiles of the specification that it can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdapterProfile {
    /// Memory of its own, and four levels of page tables.
    #[default]
    Vram4,
    /// Two levels of page tables, of which the root is resizable, and entries of 4 bytes.
    Doc2,
    /// No memory of its own.
    Uma,
}

impl AdapterProfile {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Vram4, "vram4"),
        (Self::Doc2, "doc2"),
        (Self::Uma, "uma"),
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, other)| *other == name)
            .map(|(profile, _)| *profile)
    }

    /// As `profile` in configfs has it.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(profile, _)| *profile == self)
            .map_or("", |(_, name)| *name)
    }

    /// The largest memory of its own that it can have. Entries of 4 bytes lead no further.
    pub(super) fn most_local_memory(self) -> u64 {
        match self {
            Self::Vram4 => u64::MAX,
            Self::Doc2 => REACH_OF_4_BYTES,
            Self::Uma => 0,
        }
    }

    /// Whether its page tables lead to all memory of a system that ends there.
    pub(super) fn reaches(self, end: u64) -> bool {
        self != Self::Doc2 || end <= REACH_OF_4_BYTES
    }
}

/// How far entries of 4 bytes lead.
const REACH_OF_4_BYTES: u64 = 1 << 32;
