// SPDX-License-Identifier: GPL-2.0

//! The entries and callbacks of the driver interface, by name.

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An entry of a KMD, or a callback from it, as it is recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Entry {
            /// None; so that no entry is 0.
            Nothing,
            $($(#[$doc])* $name,)*
        }

        impl Entry {
            /// Its name, for logs.
            pub fn name(self) -> &'static core::ffi::CStr {
                match self {
                    Self::Nothing => c"Nothing",
                    $(Self::$name => {
                        // The macro makes the NUL.
                        const NAME: &[u8] = concat!(stringify!($name), "\0").as_bytes();

                        core::ffi::CStr::from_bytes_until_nul(NAME).unwrap_or_default()
                    })*
                }
            }
        }
    };
}

entries! {
    StartDevice,
    StopDevice,
    RemoveDevice,
    CreateProcess,
    DestroyProcess,
    CreateDevice,
    DestroyDevice,
    CreateContext,
    DestroyContext,
    GetRootPageTableSize,
    SetRootPageTable,
    SetContextPriority,
    CreateHwQueue,
    DestroyHwQueue,
    SubmitCommand,
    SuspendContext,
    ResumeContext,
    UpdatePageTable,
    FlushTlb,
    MapApertureSegment,
    UnmapApertureSegment,
    CreateAllocation,
    NotifyAllocationEnd,
    DestroyAllocation,
    OpenAllocation,
    CloseAllocation,
    CalibrateGpuClock,
    Escape,
    /// Any of the queries.
    Query,
    /// A callback: part of CreateProcess.
    ReserveGpuVirtualAddressRange,
    /// A callback of a queue, as the next ones.
    Completed,
    Fetched,
    Signaled,
    Faulted,
    Suspended,
    // Numbers in traces stay, so that entries that came later are here.
    CreateDoorbell,
    DestroyDoorbell,
    ConnectDoorbell,
    DisconnectDoorbell,
    NotifyWorkSubmission,
    DoorbellRung,
    /// A callback of a doorbell, as the next one.
    DoorbellDisconnected,
    DoorbellTrapped,
    PreemptCommand,
    CollectDbgInfo,
    ResetHwEngine,
    ResumeHwEngine,
    ResetFromTimeout,
    RestartFromTimeout,
    /// A callback of a context.
    Invalidated,
    SetPowerState,
    /// A callback of a queue.
    EngineStateChanged,
    CreateCpuEvent,
    DestroyCpuEvent,
    DpcRoutine,
    /// A callback of a CPU event, as the next one.
    QueueDpc,
    SignalEvent,
    NotifyDeviceError,
    CreateNativeFence,
    OpenNativeFence,
    CloseNativeFence,
    DestroyNativeFence,
    UpdateMonitoredValues,
    UpdateCurrentValuesFromCpu,
    /// A callback of a native fence.
    NativeFenceSignaled,
    SetNativeFenceLogBuffer,
    UpdateNativeFenceLogs,
    /// A callback of a queue.
    NativeFencesSignaled,
    NotifyMemoryPressure,
    QueryFeatureInterface,
    ConnectFenceDoorbell,
    DisconnectFenceDoorbell,
    /// An engine rings a doorbell that it has got by ConnectFenceDoorbell.
    FenceDoorbellRung,
    TransferVirtual,
    FillVirtual,
    NotifyResidency,
    InitContextResource,
    UpdateContextAllocation,
}

impl Entry {
    /// Whether it is of class P; the others are of class D.
    pub fn is_passive(self) -> bool {
        !matches!(
            self,
            Self::CalibrateGpuClock
                | Self::SubmitCommand
                | Self::SuspendContext
                | Self::ResumeContext
                | Self::DoorbellRung
                | Self::PreemptCommand
                | Self::DpcRoutine
                | Self::UpdateMonitoredValues
                | Self::UpdateCurrentValuesFromCpu
                | Self::UpdateNativeFenceLogs
        )
    }

    /// Whether it is of class I, under the interrupt lock (FEN-74).
    pub fn is_at_device_interrupt(self) -> bool {
        self == Self::UpdateMonitoredValues
    }

    /// Whether it is under a lock of the OS part: that of a fence, or the interrupt lock.
    pub fn is_under_lock(self) -> bool {
        matches!(
            self,
            Self::UpdateMonitoredValues | Self::UpdateCurrentValuesFromCpu
        )
    }
}
