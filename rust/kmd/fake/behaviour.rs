// SPDX-License-Identifier: GPL-2.0

//! How a test double behaves, and where its calls can be held up.

use super::{
    cpu_events::CpuEvents,
    doorbells::Doorbells,
    engines::Engines,
    features::Features,
    journal::Entry,
    mmu::Mmu,
    native_fences::NativeFences,
    operations::Operations,
    queues::Queues,
    reserves::Reserves, //
};
use crate::{
    ddi::{
        callbacks::Callbacks,
        caps::{
            DriverCaps,
            NodeMetadata, //
        },
        class::Passive,
        fence_storage::{
            FenceStorageArgs,
            FenceStorageInfo, //
        },
        types::KmdError, //
    },
    platform::{
        self,
        Completion,
        Shared, //
    }, //
};

/// Flags of [`allocation_data`]: it is in memory of the double, it is accessed physically, and the
/// double wants to know where it is.
pub const IN_LOCAL: u64 = 1 << 0;
pub const PHYSICAL: u64 = 1 << 1;
pub const NOTIFY_RESIDENCY: u64 = 1 << 2;

/// Private data of an allocation that the double understands.
pub const fn allocation_data(size: u64, flags: u64) -> [u8; 16] {
    (((flags as u128) << 64) | size as u128).to_le_bytes()
}

/// What a double asks for in an entry.
pub type Ask = dyn Fn(&Callbacks, &Passive, Entry) + Send + Sync;

/// How a double behaves.
#[derive(Clone, Default)]
pub struct Behaviour {
    /// The n-th call that may fail does, counted from 1.
    pub fail: Option<(u32, KmdError)>,
    /// Every call takes so many rounds longer.
    pub rounds: u32,
    /// Where calls wait until the test lets them go on.
    pub pause: Option<Shared<Pause>>,
    /// It wants to be told when an allocation ends.
    pub notify_end: bool,
    /// What it does when it is told so.
    pub at_end: Option<Shared<dyn Fn() + Send + Sync>>,
    /// What it asks the OS part for in CreateContext, SetRootPageTable and BuildPagingBuffer.
    pub asks: Option<Shared<Ask>>,
    /// What it says of its adapter otherwise than usual.
    pub change_caps: Option<fn(&mut DriverCaps)>,
    /// Its node is a paging node, too, which needs to do nothing.
    pub has_paging_node: bool,
    /// What it says about features, and in which order it was asked.
    pub features: Option<Shared<Features>>,
    /// What it says of its nodes otherwise than usual.
    pub change_node: Option<fn(&mut NodeMetadata)>,
    /// Its queues, whose work the test completes. Without it no work is ever completed.
    pub queues: Option<Shared<Queues>>,
    /// Its doorbells, which the test takes away. Without it none can be connected.
    pub doorbells: Option<Shared<Doorbells>>,
    /// Its CPU events, which the test signals. Without it there can be none.
    pub cpu_events: Option<Shared<CpuEvents>>,
    /// Its native fences, whose interrupts the test raises. Without it there can be none.
    pub native_fences: Option<Shared<NativeFences>>,
    /// Where it wants words of native fences, if that is not system memory.
    pub fence_storage: Option<fn(&FenceStorageArgs) -> FenceStorageInfo>,
    /// Its engines, which the test lets hang. Without it they obey, and every reset succeeds.
    pub engines: Option<Shared<Engines>>,
    /// Where it writes down what it is told about page tables and its aperture.
    pub operations: Option<Shared<Operations>>,
    /// Bytes of memory that it has.
    pub local_memory: u64,
    /// Its page tables, if a test goes through them.
    pub mmu: Option<Shared<Mmu>>,
    /// What it reserves of the addresses of each process.
    pub reserves: Option<Shared<Reserves>>,
    /// A suspension ends at once, and its call says that it is pending all the same.
    pub suspends_at_once: bool,
}

/// The calls of one entry wait here, so that a test can look at what happens meanwhile.
pub struct Pause {
    entry: Entry,
    arrived: Completion,
    released: Completion,
}

impl Pause {
    /// A pause in this entry, which must be of class P; `None` if there is no memory.
    pub fn new(entry: Entry) -> Option<Self> {
        Some(Self {
            entry,
            arrived: platform::completion()?,
            released: platform::completion()?,
        })
    }

    /// Returns when a call waits, or has waited.
    pub fn wait_for_call(&self) {
        self.arrived.wait_for_completion();
    }

    /// Lets the calls go on, and later ones pass.
    pub fn release(&self) {
        self.released.complete_all();
    }

    pub(super) fn pass(&self, entry: Entry) {
        if entry == self.entry {
            self.arrived.complete_all();
            self.released.wait_for_completion();
        }
    }
}
