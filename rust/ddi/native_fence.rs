// SPDX-License-Identifier: GPL-2.0

//! Native fences: the GPU waits for them by itself, and interrupts only when somebody on the CPU
//! waits (fences.md section 3).
//!
//! A fence has two words in memory of the OS part. CurrentValue is the value. MonitoredValue is one
//! less than the lowest value that a CPU waits for, or the highest value if none does. A KMD keeps
//! neither address: it gets a reference with each call that is about them (FEN-107).

use super::{
    class::DeviceInterrupt,
    paging::PageSize,
    types::{
        NativeFenceCookie,
        NativeFenceId, //
    }, //
};
use crate::platform::{
    Shared,
    Word64, //
};

/// Whether a driver has them (`DXGK_FEATURE_NATIVE_FENCE`).
pub const FEATURE: u32 = 37;

/// A function that a driver with native fences has to have (FEN-111).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NativeFenceFunction {
    /// Makes a fence.
    Create,
    /// Ends it.
    Destroy,
    /// Lets a device see it.
    Open,
    /// Ends that.
    Close,
    /// Says where a queue logs what it does with fences.
    SetLogBuffer,
    /// Makes what was logged visible.
    UpdateLogs,
    /// Tells engines for which values somebody waits.
    UpdateMonitoredValues,
    /// Signals, for the CPU.
    UpdateCurrentValues,
}

/// How many there are.
const FUNCTIONS: u32 = 8;

/// Which of these functions a driver has. Here they are methods of [`Kmd`](super::Kmd), so that
/// every driver has something in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFenceFunctions(u32);

impl NativeFenceFunctions {
    /// All of them.
    pub const ALL: Self = Self((1 << FUNCTIONS) - 1);

    /// The same without one.
    pub const fn without(self, function: NativeFenceFunction) -> Self {
        // CAST: the number of the variant.
        Self(self.0 & !(1 << function as u32))
    }
}

/// What the OS part can do with native fences (GetOSCaps). What it cannot do, a driver does not
/// offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFenceOsCaps {
    /// `SupportOptimizedDefaultFenceType`: MonitoredValue of a fence may be in memory of the GPU.
    pub optimized_default_type: bool,
    /// `SupportIntraGpuFenceType`: there are fences that packets alone use.
    pub intra_gpu_type: bool,
}

/// What the OS part has for a driver with native fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFenceServices;

impl NativeFenceServices {
    /// GetOSCaps.
    pub fn os_caps(self) -> NativeFenceOsCaps {
        NativeFenceOsCaps {
            optimized_default_type: true,
            intra_gpu_type: true,
        }
    }
}

/// What a GPU wants of its native fences (`DXGK_NATIVE_FENCE_CAPS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeFenceCaps {
    /// `MonitoredValueStride`: bytes between two fences in a page, a power of two from 8 to 4096.
    pub stride: u32,
    /// `MapToGpuSystemProcess`: the GPU wants to see both words in the address space of the paging
    /// process, too (FEN-119).
    pub map_to_gpu_system_process: bool,
    /// `MinimumAddress`: the lowest GPU address of a word that will do.
    pub minimum_address: u64,
    /// `MaximumAddress`: the end of the last that will do; 0 if all are.
    pub maximum_address: u64,
    /// It has fences of [`NativeFenceType::IntraGpu`], which the OS part offers
    /// ([`NativeFenceOsCaps::intra_gpu_type`]).
    pub intra_gpu_type: bool,
    /// It wants MonitoredValue of [`NativeFenceType::Default`] in its own memory, which the OS part
    /// offers ([`NativeFenceOsCaps::optimized_default_type`]). GetStandardAllocationDriverData says
    /// where.
    pub optimized_default_type: bool,
    /// Each of its fences has a doorbell, which it listens to, and its engines ring those of other
    /// adapters (FEN-159). Not a cap of the WDK.
    pub doorbells: bool,
}

impl NativeFenceCaps {
    /// Whether the words of a fence may be there: each in a page of its own (FEN-60), and between
    /// the addresses that the GPU wants (FEN-65).
    pub fn allow(&self, current_value: u64, monitored_value: u64) -> bool {
        let Self {
            minimum_address: first,
            maximum_address: end,
            ..
        } = *self;
        let is_word = |address: u64| {
            address % 8 == 0 && address >= first && (end == 0 || address < end) && address != 0
        };

        is_word(current_value)
            && is_word(monitored_value)
            && current_value / PageSize::Kib4.bytes() != monitored_value / PageSize::Kib4.bytes()
    }
}

/// Bytes of a client's data that go to the KMD and back (`D3DDDI_NATIVE_FENCE_PDD_SIZE`).
pub const PRIVATE_DATA_SIZE: usize = 64;

/// A client's data: what it wrote, and what the KMD makes of it.
pub type PrivateData = [u8; PRIVATE_DATA_SIZE];

/// Who uses a fence (`D3DDDI_NATIVEFENCE_TYPE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeFenceType {
    /// CPUs and engines.
    #[default]
    Default,
    /// `INTRA_GPU`: packets of one GPU alone. MonitoredValue stays the highest value, so that it
    /// never interrupts (FEN-130).
    IntraGpu,
}

/// What CreateNativeFence gets (`DXGKARG_CREATENATIVEFENCE`). On this adapter there is one of them
/// for a fence, however many have it open (FEN-121).
#[derive(Clone, Copy)]
pub struct CreateNativeFenceArgs<'a> {
    /// Its name.
    pub id: NativeFenceId,
    /// What its interrupt tells. The KMD has it until DestroyNativeFence.
    pub callbacks: &'a Shared<dyn NativeFenceCallbacks>,
    /// MonitoredValue until the first UpdateMonitoredValues.
    pub monitored_value: u64,
    /// Who uses it.
    pub ty: NativeFenceType,
    /// Where both words are in the paging process, see [`SystemWords`].
    pub system: SystemWords,
}

/// GPU virtual addresses of the words of a fence in the paging process, which may store to both
/// (FEN-57). They are good until DestroyNativeFence has returned. Both are 0 without
/// [`NativeFenceCaps::map_to_gpu_system_process`] (FEN-119).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemWords {
    /// `CurrentValueSystemProcessGpuVa`.
    pub current_value: u64,
    /// `MonitoredValueSystemProcessGpuVa`.
    pub monitored_value: u64,
}

impl SystemWords {
    /// Whether a driver with these caps may get them.
    pub fn suit(&self, caps: &NativeFenceCaps) -> bool {
        match caps.map_to_gpu_system_process {
            true => caps.allow(self.current_value, self.monitored_value),
            false => *self == Self::default(),
        }
    }
}

/// What OpenNativeFence gets (`DXGKARG_OPENNATIVEFENCE`). All devices of a process see a fence at
/// the same addresses (FEN-120).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenNativeFenceArgs {
    /// GPU virtual address of CurrentValue in the process.
    pub current_value: u64,
    /// GPU virtual address of MonitoredValue in the process, which may only read it.
    pub monitored_value: u64,
}

/// One fence of UpdateMonitoredValues or UpdateCurrentValuesFromCpu.
#[derive(Clone, Copy)]
pub struct FenceUpdate<'a> {
    /// Which one.
    pub fence: NativeFenceCookie,
    /// What the word is to be, or is already.
    pub value: u64,
    /// The word that it is for, in the mapping of the kernel.
    pub word: &'a Word64,
    /// CurrentValue, in the same mapping.
    pub current_value: &'a Word64,
}

/// What UpdateCurrentValuesFromCpu does with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrentValueUpdate {
    /// Stores it.
    Store,
    /// `NotificationOnly`: nothing, because it is stored already (FEN-103).
    NotificationOnly,
    /// `AlwaysSignaled`: stores it, which is the highest one. From then on waits of the GPU pass,
    /// and its signals store nothing (FEN-104).
    AlwaysSignaled,
}

/// What a log is of (`DXGK_NATIVE_FENCE_LOG_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogType {
    /// Waits that are over.
    Waits,
    /// Values that were stored.
    Signals,
}

/// What SetNativeFenceLogBuffer gets (`DXGKARG_SETNATIVEFENCELOGBUFFER`): where engines log what a
/// HW queue does with native fences (gpu.md section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBuffer {
    /// Which log it is.
    pub ty: LogType,
    /// GPU virtual address of its header in the process of the queue.
    pub address: u64,
    /// How many entries it has.
    pub entries: u32,
}

/// Calls from a KMD to the OS part about one native fence.
///
/// They may be called under locks of the KMD. They obey the interrupt rule: they touch atomics and
/// queue work, nothing else.
pub trait NativeFenceCallbacks: Send + Sync {
    /// NATIVE_FENCE_SIGNALED with this fence in the array: an engine has stored a value to
    /// CurrentValue that is above MonitoredValue (FEN-91). The value, and what was stored before
    /// it, is visible to everybody. A KMD that names queues does not call it, see
    /// [`DriverCaps::optimized_native_fence_interrupt`].
    ///
    /// [`DriverCaps::optimized_native_fence_interrupt`]:
    ///     super::caps::DriverCaps::optimized_native_fence_interrupt
    fn signaled(&self, class: &DeviceInterrupt);

    /// DestroyNativeFence has returned, or nothing was made. The OS part tells itself so: a signal
    /// that comes after this breaks a rule (FEN-96). KMDs do not call it.
    fn destroyed(&self);
}

/// The doorbell of a native fence: how engines of other adapters tell its adapter that they have
/// stored a value (FEN-159). A GPU has an address that they write to.
///
/// It may be rung in any context class and under locks of the KMD that rings, whatever the adapter
/// is doing.
pub trait FenceDoorbell: Send + Sync {
    /// CurrentValue was stored, and all processors and engines see that: the queues that wait for
    /// the fence have to look again. Nothing is stored and nobody interrupts (M21).
    fn ring(&self);
}
