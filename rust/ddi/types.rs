// SPDX-License-Identifier: GPL-2.0

//! What goes through the driver interface: plain values that the caller owns for the call only
//! (GPU-103).

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
    /// A device, to the OS part.
    DeviceId;
    /// A device, to the KMD.
    DeviceCookie;
    /// A context, to the OS part.
    ContextId;
    /// A context, to the KMD.
    ContextCookie;
    /// An allocation, to the OS part.
    AllocationId;
    /// An allocation, to the KMD.
    AllocationCookie;
    /// What a KMD wants to be told when an allocation ends.
    AllocationEndCookie;
    /// An allocation that a device has open, to the KMD (`hDeviceSpecificAllocation`).
    OpenAllocationCookie;
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
#[derive(Clone, Copy, Debug)]
pub struct CreateContextArgs<'a> {
    /// Its name.
    pub id: ContextId,
    /// How it takes work.
    pub scheduling: Scheduling,
    /// Where its work runs; there is such a node.
    pub node: u32,
    /// On which physical adapters: bit n is the n-th, and 0 means all of them.
    pub engines: u32,
    /// The client's data, as many bytes as [`DriverCaps::context_data_size`] at most.
    ///
    /// [`DriverCaps::context_data_size`]: super::caps::DriverCaps::context_data_size
    pub private_data: &'a [u8],
}

/// Where the bytes of an allocation may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In system memory, in no segment of the adapter.
    SystemMemory,
}

/// What a KMD reads from the private data of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationInfo {
    /// Bytes, a multiple of the page size and not 0.
    pub size: u64,
    /// How late it is evicted unless a client says otherwise (`D3DDDI_ALLOCATIONPRIORITY`).
    pub priority: u32,
    /// Where it may be.
    pub place: Place,
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
