// SPDX-License-Identifier: GPL-2.0

//! What one software adapter has.

pub use super::doorbells::DoorbellConfig;
use crate::ddi::{
    caps::PageTableUpdateMode,
    paging::PageSize, //
};

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
    /// How it tells that native fences are signalled.
    pub native_interrupts: NativeInterruptMode,
    /// Where its engines find MonitoredValue.
    pub monitored_values: MonitoredValues,
    /// Where it wants its native fences.
    pub fence_addresses: FenceAddresses,
    /// Bytes between two of them in a page: a power of two from 8 to 4096.
    pub fence_stride: u32,
    /// It has fences inside of one GPU (FEN-130).
    pub intra_gpu_fences: bool,
    /// Where words of native fences are.
    pub fence_memory: FenceMemory,
    /// Its engines keep entries of logs back until they are asked for, or interrupt (GPU-78).
    pub lazy_logs: bool,
    /// Its CMP reaches native fences in the paging process (FEN-119).
    pub map_to_gpu_system_process: bool,
    /// Its native fences have doorbells, and it rings those of other adapters (FEN-159).
    pub fence_doorbells: bool,
    /// Who updates page tables.
    pub table_updates: TableUpdates,
    /// Where they are.
    pub tables: TableMemory,
    /// What contexts are saved to, if it keeps that in memory of their own (MEM-82).
    pub save_areas: SaveAreas,
}

/// Who updates page tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableUpdates {
    /// CPU_VIRTUAL: the driver stores entries.
    #[default]
    Processor,
    /// GPU_VIRTUAL: the driver builds commands for it.
    PagingNode,
}

impl TableUpdates {
    const ALL: [(Self, &'static str); 2] = [
        (Self::Processor, "cpu_virtual"),
        (Self::PagingNode, "gpu_virtual"),
    ];

    /// The one that `page_table_updates` in configfs names.
    pub fn named(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }

    /// As `page_table_updates` in configfs has it.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }

    /// As the caps say it.
    pub(super) fn mode(self) -> PageTableUpdateMode {
        match self {
            Self::Processor => PageTableUpdateMode::CpuVirtual,
            Self::PagingNode => PageTableUpdateMode::GpuVirtual,
        }
    }
}

/// Where page tables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableMemory {
    /// In system memory.
    #[default]
    System,
    /// In local memory, as long as that has room.
    Local,
}

impl TableMemory {
    const ALL: [(Self, &'static str); 2] = [(Self::System, "system"), (Self::Local, "local")];

    /// The one that `page_table_memory` in configfs names.
    pub fn named(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }

    /// As `page_table_memory` in configfs has it.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }
}

/// Which memory of its own a context has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveAreaKind {
    /// It has no memory of its own.
    #[default]
    None,
    /// A save area that clients do not see.
    Private,
    /// One that its process may read.
    Visible,
}

/// The save areas of an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveAreas {
    /// What kind they are.
    pub kind: SaveAreaKind,
    /// All contexts of a device have one together.
    pub of_devices: bool,
    /// They are in system memory, even if the adapter has memory of its own.
    pub in_system_memory: bool,
    /// The driver leaves them behind, for tests of the OS part (MEM-90).
    pub are_left: bool,
}

impl SaveAreas {
    const KINDS: [(SaveAreaKind, &'static str); 3] = [
        (SaveAreaKind::None, "none"),
        (SaveAreaKind::Private, "private"),
        (SaveAreaKind::Visible, "visible"),
    ];

    /// Those that `save_areas` in configfs names: a kind, and more about it.
    pub fn named(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut areas = Self {
            kind: named(&Self::KINDS, words.next()?)?,
            ..Self::default()
        };

        for word in words {
            let place = match word {
                "device" => &mut areas.of_devices,
                "system" => &mut areas.in_system_memory,
                "left" => &mut areas.are_left,
                _ => return None,
            };

            if areas.kind == SaveAreaKind::None || core::mem::replace(place, true) {
                return None;
            }
        }
        Some(areas)
    }

    /// As `save_areas` in configfs has it, in parts.
    pub fn words(self) -> [&'static str; 4] {
        let word = |is_set, word| if is_set { word } else { "" };

        [
            name_of(&Self::KINDS, self.kind),
            word(self.of_devices, " device"),
            word(self.in_system_memory, " system"),
            word(self.are_left, " left"),
        ]
    }
}

/// Where an adapter wants its native fences, for tests of the OS part (FEN-65).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceAddresses {
    /// The lowest address that will do.
    pub minimum: u64,
    /// The end of the last that will do; 0 if all are.
    pub maximum: u64,
}

impl FenceAddresses {
    /// Those that `fence_addresses` in configfs says: two numbers with a line between them.
    pub fn read(text: &str) -> Option<Self> {
        let (minimum, maximum) = text.split_once('-')?;

        Some(Self {
            minimum: minimum.parse().ok()?,
            maximum: maximum.parse().ok()?,
        })
    }

    /// Whether these are whole pages, and at least one.
    pub(super) fn is_valid(&self) -> bool {
        let Self { minimum, maximum } = *self;

        minimum % PageSize::Kib4.bytes() == 0
            && maximum % PageSize::Kib4.bytes() == 0
            && (maximum == 0 || minimum < maximum)
    }
}

/// The value with this name, of those that configfs knows.
fn named<T: Copy>(all: &[(T, &'static str)], name: &str) -> Option<T> {
    all.iter()
        .find(|(_, other)| *other == name)
        .map(|(value, _)| *value)
}

/// The name of a value, which is one of these.
fn name_of<T: Copy + PartialEq>(all: &[(T, &'static str)], value: T) -> &'static str {
    all.iter()
        .find(|(other, _)| *other == value)
        .map_or("", |(_, name)| *name)
}

/// Where engines find MonitoredValue (GPU-57).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonitoredValues {
    /// In memory.
    #[default]
    Direct,
    /// The CMP has copies of its own, and engines ask it (FEN-75).
    Shadow,
}

impl MonitoredValues {
    const ALL: [(Self, &'static str); 2] = [(Self::Direct, "direct"), (Self::Shadow, "shadow")];

    /// The one that `monitored_values` in configfs names.
    pub fn named(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }

    /// As `monitored_values` in configfs has it.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }
}

/// Where an adapter wants words of native fences that only one process has (FEN-63). Those that
/// packets alone use are always in its own memory, if it has any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FenceMemory {
    /// Those of the default type are in system memory.
    #[default]
    Default,
    /// MonitoredValue of the default type is in its own memory.
    Optimized,
    /// The same in memory that processors do not see, which the OS part refuses (FEN-64).
    Hidden,
}

impl FenceMemory {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Default, "default"),
        (Self::Optimized, "optimized"),
        (Self::Hidden, "hidden"),
    ];

    /// The one that `fence_memory` in configfs names.
    pub fn named(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }

    /// As `fence_memory` in configfs has it.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }

    /// It asks for the optimized default type.
    pub(super) fn is_optimized(self) -> bool {
        self != Self::Default
    }
}

/// How an adapter tells that native fences are signalled. All of them are legal (fences.md section
/// 3.6); adapters that have to guess exist for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeInterruptMode {
    /// It names each fence.
    #[default]
    Exact,
    /// It names those that one turn of an engine has signalled, all at once; none, if they are too
    /// many.
    Merged,
    /// It names none.
    Null,
    /// It cannot tell them from monitored fences (`EvaluateLegacyMonitoredFences`).
    Legacy,
    /// It names the queue that has signalled (`OptimizedNativeFenceSignaledInterrupt`).
    Queue,
    /// The same, but it does not know which one it was of those that have logs.
    Engine,
}

impl NativeInterruptMode {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Exact, "exact"),
        (Self::Merged, "merged"),
        (Self::Null, "null"),
        (Self::Legacy, "legacy"),
        (Self::Queue, "queue"),
        (Self::Engine, "engine"),
    ];

    /// The one that `native_interrupts` in configfs names.
    pub fn named(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }

    /// As `native_interrupts` in configfs has it.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
    }

    /// `OptimizedNativeFenceSignaledInterrupt`.
    pub(super) fn is_optimized(self) -> bool {
        matches!(self, Self::Queue | Self::Engine)
    }
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
        named(&Self::ALL, name)
    }

    /// As `profile` in configfs has it.
    pub fn name(self) -> &'static str {
        name_of(&Self::ALL, self)
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
