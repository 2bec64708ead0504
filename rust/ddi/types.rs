// SPDX-License-Identifier: GPL-2.0

//! What goes through the driver interface: plain values that the caller owns for the call only
//! (GPU-103).

use super::queue::QueueCallbacks;
use crate::platform::Shared;

/// Why a KMD does not do what an entry asks for. Only entries whose result has it may fail
/// (GPU-104).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmdError {
    /// There is no memory, or no room in the hardware.
    NoMemory,
    /// The caller's values make no sense to the KMD.
    InvalidParameter,
    /// The KMD has nothing of the kind.
    NotSupported,
    /// The adapter is stopped.
    DeviceRemoved,
    /// The client may not do that.
    AccessDenied,
    /// There is no such object any more. Only callbacks of the OS part say so.
    InvalidHandle,
}

/// The result of an entry that may fail.
pub type KmdResult<T = ()> = Result<T, KmdError>;

/// ASCII text of at most `N` characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// This text, cut off where it has no more room or is not ASCII.
    pub const fn new(text: &str) -> Self {
        let mut all = [0; N];
        let mut room: &mut [u8] = &mut all;
        let mut rest = text.as_bytes();

        while let ([byte, more @ ..], [place, places @ ..]) = (rest, room) {
            if !byte.is_ascii() {
                break;
            }
            *place = *byte;
            rest = more;
            room = places;
        }
        Self(all)
    }

    /// What stands before the first NUL.
    pub fn characters(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        self.bytes().iter().copied()
    }

    /// The same as a word that fits into a line of words: lower case, and `-` for what is neither
    /// letter nor digit.
    pub fn word(&self) -> impl Iterator<Item = char> + '_ {
        self.characters().map(|byte| match byte {
            _ if byte.is_ascii_alphanumeric() => char::from(byte.to_ascii_lowercase()),
            _ => '-',
        })
    }

    /// The same as a string.
    pub fn as_str(&self) -> &str {
        // It is ASCII.
        core::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);

        self.0.get(..end).unwrap_or_default()
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name(pub u64);
        )*
    };
}

// An id is what the OS part calls an object, a cookie what the KMD calls it. Neither is a pointer
// for the other side, and 0 is a good one (GPU-103).
numbers! {
    /// A process on one adapter, to the OS part.
    ProcessId;
    /// A process on one adapter, to the KMD.
    ProcessCookie;
    /// A device, to the OS part.
    DeviceId;
    /// A device, to the KMD.
    DeviceCookie;
    /// A context, to the OS part.
    ContextId;
    /// A context, to the KMD.
    ContextCookie;
    /// A HW queue, to the OS part.
    HwQueueId;
    /// A HW queue, to the KMD.
    HwQueueCookie;
    /// A doorbell, to the OS part.
    DoorbellId;
    /// A doorbell, to the KMD.
    DoorbellCookie;
    /// A CPU event, to the OS part (`hDxgCpuEvent`).
    CpuEventId;
    /// A CPU event, to the KMD.
    CpuEventCookie;
    /// A native fence on one adapter, to the OS part (`hGlobalNativeFence` of the arguments).
    NativeFenceId;
    /// A native fence on one adapter, to the KMD.
    NativeFenceCookie;
    /// A native fence that a device has open, to the KMD (`hLocalNativeFence`).
    OpenNativeFenceCookie;
    /// A doorbell of another adapter's native fence that a native fence rings, to the KMD.
    FenceDoorbellCookie;
    /// An allocation, to the OS part.
    AllocationId;
    /// An allocation, to the KMD.
    AllocationCookie;
    /// A context allocation, to the OS part. The KMD has no other name for it.
    ContextAllocationId;
    /// What a KMD wants to be told when an allocation ends.
    AllocationEndCookie;
    /// An allocation that a device has open, to the KMD (`hDeviceSpecificAllocation`).
    OpenAllocationCookie;
}

/// What CreateDevice gets (`DXGKARG_CREATEDEVICE`).
#[derive(Clone, Copy, Debug)]
pub struct CreateDeviceArgs {
    /// Its name.
    pub id: DeviceId,
    /// Whose it is.
    pub process: ProcessCookie,
    /// `SystemDevice`: that is the paging process.
    pub is_system: bool,
}

/// How a context takes work. The two kinds have handles that do not stand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// CreateContext: command buffers are submitted to the context itself.
    Packets,
    /// CreateHwContext: command buffers are submitted to its HW queues.
    HwQueues,
}

/// What CreateContext and CreateHwContext get.
#[derive(Clone, Copy)]
pub struct CreateContextArgs<'a> {
    /// Its name.
    pub id: ContextId,
    /// How it takes work.
    pub scheduling: Scheduling,
    /// Where its work runs; there is such a node.
    pub node: u32,
    /// On which physical adapters: bit n is the n-th, and 0 means all of them.
    pub engines: u32,
    /// `SystemContext`: it is of the paging process. It gets no work, and tells where the page
    /// tables of that begin.
    pub is_system: bool,
    /// The client's data, as many bytes as [`DriverCaps::context_data_size`] at most.
    ///
    /// [`DriverCaps::context_data_size`]: super::caps::DriverCaps::context_data_size
    pub private_data: &'a [u8],
    /// What the KMD tells about its work. For a context of HW queues only the end of a suspension.
    pub callbacks: &'a Shared<dyn QueueCallbacks>,
}

/// What CreateHwQueue gets (`DXGKARG_CREATEHWQUEUE`).
#[derive(Clone, Copy)]
pub struct CreateHwQueueArgs<'a> {
    /// Its name.
    pub id: HwQueueId,
    /// `DisableGpuTimeout`: its work may take for ever.
    pub disable_gpu_timeout: bool,
    /// `UserModeSubmission`: its process fills a ring and rings a doorbell; nothing is submitted.
    pub user_mode_submission: bool,
    /// GPU virtual address of the value of its progress fence.
    pub progress_fence: u64,
    /// `NativeProgressFence`: that is a native fence, which is open on the device of the context.
    pub native_progress_fence: bool,
    /// The client's data.
    pub private_data: &'a [u8],
    /// What the KMD tells about its work.
    pub callbacks: &'a Shared<dyn QueueCallbacks>,
}

/// Why a device is in error that no work of it has put in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// A client said so (D3DKMTMarkDeviceAsError).
    Marked,
    /// Memory that it was promised is not there.
    OutOfMemory,
    /// Commands have named memory by physical address that is not accessed so.
    Misused,
}

/// What a handle of a client stands for that takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueHandle {
    /// A context, with all its HW queues if it has some.
    Context(ContextId),
    /// A HW queue of a context.
    HwQueue(HwQueueId, ContextId),
}

/// The handles of a client, for what its private data mean (`DxgkCbGetHandleData`).
pub trait HandleData {
    /// What a handle stands for that takes work of the device that the call is about.
    ///
    /// Context: class P; a KMD calls it with no lock held.
    fn queue(&self, handle: u32) -> Option<QueueHandle>;
}

/// What Escape gets besides the data (`DXGKARG_ESCAPE`).
#[derive(Clone, Copy, Default)]
pub struct Escape<'a> {
    /// `D3DDDI_ESCAPEFLAGS`.
    pub flags: u32,
    /// The device of the client that it is about (`hDevice`), if it names one.
    pub device: Option<DeviceCookie>,
    /// The client may control the machine, and so break the adapter.
    pub is_privileged: bool,
    /// The handles of the client, if the data may have some.
    pub handles: Option<&'a dyn HandleData>,
}

/// Where the bytes of an allocation may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In system memory, in no segment of the adapter.
    SystemMemory,
    /// In the segment of the adapter with this number.
    Segment(u32),
}

/// What CreateAllocation gets (`DXGKARG_CREATEALLOCATION`).
#[derive(Clone, Copy, Debug)]
pub struct CreateAllocationArgs<'a> {
    /// Its name.
    pub id: AllocationId,
    /// What describes it to the KMD.
    pub private_data: &'a [u8],
    /// It is over memory of the caller, whose size the OS part finds out if the KMD cannot
    /// (RES-23).
    pub existing: bool,
}

/// What a KMD reads from the private data of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationInfo {
    /// Bytes, a multiple of the page size. 0 if the allocation is over memory of the caller and the
    /// KMD does not know the data (RES-23).
    pub size: u64,
    /// Its place is a multiple of this: a power of two, at least the page size.
    pub alignment: u32,
    /// How late it is evicted unless a client says otherwise (`D3DDDI_ALLOCATIONPRIORITY`).
    pub priority: u32,
    /// Where it may be: bit n is segment n, and the bit of the aperture is system memory (MEM-5).
    /// Not 0, and without bit 0.
    pub supported_segments: u32,
    /// Which of these it had best be in: its id.
    pub preferred_segment: u32,
    /// `AccessedPhysically`: engines use physical addresses of it. In a memory segment it is one
    /// range, in system memory the aperture shows it while it is resident (MEM-4).
    pub accessed_physically: bool,
    /// `ExplicitResidencyNotification`: the KMD is told whenever it becomes resident, and when it
    /// is not any more (MEM-77). Only if it is accessed physically.
    pub explicit_residency_notification: bool,
    /// `CpuVisible`: processors access it.
    pub cpu_visible: bool,
    /// Registers the KMD for NotifyAllocationEnd, which brings this cookie (RES-75).
    pub notify_end: Option<AllocationEndCookie>,
}

/// What OpenAllocation gets (`DXGKARG_OPENALLOCATION`).
#[derive(Clone, Copy, Debug)]
pub struct OpenAllocationArgs {
    /// The device that opens it.
    pub device: DeviceCookie,
    /// What is opened.
    pub allocation: AllocationCookie,
}

/// Two clocks at one moment (`DXGK_GPUCLOCKDATA`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockData {
    /// Ticks of the GPU's clock in one second.
    pub gpu_frequency: u64,
    /// The GPU's clock.
    pub gpu_counter: u64,
    /// The CPU's clock.
    pub cpu_counter: u64,
    /// Whether the GPU's clock is that of its context management processor.
    pub is_cmp_clock: bool,
}
