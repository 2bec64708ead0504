// SPDX-License-Identifier: GPL-2.0

//! Which synchronisation objects may be created (FEN-3 to FEN-6, FEN-135, CPU-1, CPU-4, CPU-6), and
//! what a handle may then do.

use super::{
    feature::{
        self,
        FeatureSet, //
    },
    invalid_if,
    Invalid, //
};

/// `D3DDDI_NATIVEFENCE_TYPE_DEFAULT`.
pub const NATIVE_DEFAULT: u32 = 0;
/// `D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU`: only packets use it.
pub const NATIVE_INTRA_GPU: u32 = 1;

/// Bits of `D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS`.
pub mod bits {
    /// The object can be opened elsewhere.
    pub const SHARED: u32 = 1 << 0;
    /// Sharing goes by NT handle instead of a global handle.
    pub const NT_SECURITY_SHARING: u32 = 1 << 1;
    /// Devices of other adapters may use it.
    pub const CROSS_ADAPTER: u32 = 1 << 2;
    /// A queued signal takes effect when earlier commands were fetched.
    pub const TOP_OF_PIPELINE: u32 = 1 << 3;
    /// This handle may not signal.
    pub const NO_SIGNAL: u32 = 1 << 4;
    /// This handle may not wait.
    pub const NO_WAIT: u32 = 1 << 5;
    /// The value stays when the GPU is reset.
    pub const NO_SIGNAL_MAX_VALUE_ON_TDR: u32 = 1 << 6;
    /// The GPU does not see it.
    pub const NO_GPU_ACCESS: u32 = 1 << 7;
    /// Only the miniport signals it.
    pub const SIGNAL_BY_KMD: u32 = 1 << 8;

    /// Every bit that has a meaning here.
    pub const KNOWN: u32 = (1 << 9) - 1;
    /// Bits that only fences with a value have.
    pub const VALUE_FENCES_ONLY: u32 =
        TOP_OF_PIPELINE | NO_SIGNAL | NO_WAIT | NO_SIGNAL_MAX_VALUE_ON_TDR;
}

/// Values of `D3DDDI_SYNCHRONIZATIONOBJECT_TYPE`.
pub mod types {
    /// Binary, owned by queued work.
    pub const MUTEX: u32 = 1;
    /// Counted, used by queued work.
    pub const SEMAPHORE: u32 = 2;
    /// One value, used by queued work.
    pub const FENCE: u32 = 3;
    /// Fires an event.
    pub const CPU_NOTIFICATION: u32 = 4;
    /// One value, used by CPU and GPU.
    pub const MONITORED_FENCE: u32 = 5;
    /// Advances with a display's refresh.
    pub const PERIODIC_MONITORED_FENCE: u32 = 6;
}

/// How an object may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Not at all.
    Private,
    /// By its global handle.
    Global,
    /// By NT handles.
    Nt,
}

/// What the description of a new object says beside its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A mutex, which may start owned.
    Mutex {
        /// Whether it does.
        owned: bool,
    },
    Semaphore {
        /// The count it starts with.
        initial: u32,
        /// The highest count.
        max: u32,
    },
    /// A legacy fence.
    Fence {
        /// The value it starts with.
        value: u64,
    },
    CpuNotification {
        /// The event HANDLE that it fires.
        event: u64,
    },
    MonitoredFence {
        /// The value it starts with.
        value: u64,
        /// Which physical adapters use it (FEN-5).
        engines: u32,
    },
    NativeFence {
        /// The value it starts with.
        value: u64,
        /// Which physical adapters use it (FEN-5).
        engines: u32,
        /// `D3DDDI_NATIVEFENCE_TYPE`.
        ty: u32,
    },
    /// A fence that follows a video present target.
    PeriodicFence {
        /// The adapter of the target.
        adapter: u32,
        /// Which physical adapters use it.
        engines: u32,
    },
}

impl Contents {
    /// Whether it is one of the fences whose value processes see.
    fn is_value_fence(&self) -> bool {
        matches!(
            self,
            Self::MonitoredFence { .. } | Self::NativeFence { .. } | Self::PeriodicFence { .. }
        )
    }

    /// Whether it fires an event.
    fn is_notification(&self) -> bool {
        matches!(self, Self::CpuNotification { .. })
    }
}

/// Why a description is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// INVALID_PARAMETER.
    Invalid,
    NotSupported,
}

/// A CreateSynchronizationObject2 whose flags are good. They are checked first. Then the device is
/// looked up, and the adapter of a periodic fence, and the contents are checked. The event of a CPU
/// notification comes last.
#[derive(Clone, Copy, Debug)]
pub struct Creation {
    contents: Contents,
    flags: u32,
}

impl Creation {
    /// A request to make this, if the flags are good by themselves and with the type.
    pub fn new(contents: Contents, flags: u32) -> Result<Self, Invalid> {
        let new = Self { contents, flags };

        new.check_flags()?;
        Ok(new)
    }

    /// What to make.
    pub fn contents(&self) -> Contents {
        self.contents
    }

    fn has(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }

    fn check_flags(&self) -> Result<(), Invalid> {
        use bits::*;

        let is_value_fence = self.contents.is_value_fence();
        let is_notification = self.contents.is_notification();

        invalid_if(
            self.has(!KNOWN)
                || self.has(SIGNAL_BY_KMD) && !is_notification
                || self.has(SIGNAL_BY_KMD) && self.has(!SIGNAL_BY_KMD)
                || self.has(NT_SECURITY_SHARING) && !self.has(SHARED)
                || self.has(NO_SIGNAL) && self.has(NO_WAIT)
                || self.has(VALUE_FENCES_ONLY) && !is_value_fence
                || self.has(CROSS_ADAPTER) && (!is_value_fence || !self.has(NT_SECURITY_SHARING))
                || self.has(SHARED) && !self.has(NT_SECURITY_SHARING) && is_value_fence
                || self.has(SHARED) && is_notification,
        )
    }

    /// Checks the contents, once the handles in them are found good.
    ///
    /// `has_engines` says whether the adapter in question has all these engines, `features` which
    /// features it has (CPU-6, FEN-113), `has_intra_gpu` whether it offers fences inside of one GPU
    /// (FEN-130).
    pub fn check_contents(
        &self,
        has_engines: impl Fn(u32) -> bool,
        features: FeatureSet,
        has_intra_gpu: bool,
    ) -> Result<(), Unusable> {
        let has_cpu_events = features.has(feature::KMD_SIGNAL_CPU_EVENT);
        let has_native_fences = features.has(feature::NATIVE_FENCE);

        match self.contents {
            Contents::Semaphore { initial, max } if initial > max => Err(Unusable::Invalid),
            // FEN-130, FEN-131.
            Contents::NativeFence { value, ty, .. }
                if ty != NATIVE_DEFAULT && !(has_intra_gpu && self.is_intra_gpu(value, ty)) =>
            {
                Err(Unusable::Invalid)
            }
            Contents::MonitoredFence { engines, .. }
            | Contents::NativeFence { engines, .. }
            | Contents::PeriodicFence { engines, .. }
                if !has_engines(engines) =>
            {
                Err(Unusable::Invalid)
            }
            Contents::NativeFence { .. } if !has_native_fences => Err(Unusable::NotSupported),
            // No adapter has a video present target (fences.md section 2.6).
            Contents::PeriodicFence { .. } => Err(Unusable::NotSupported),
            Contents::CpuNotification { .. } if self.is_signalled_by_kmd() && !has_cpu_events => {
                Err(Unusable::NotSupported)
            }
            _ => Ok(()),
        }
    }

    /// Whether there can be a fence inside of one GPU like this: packets set its value, and no
    /// other GPU has it (FEN-130).
    fn is_intra_gpu(&self, value: u64, ty: u32) -> bool {
        ty == NATIVE_INTRA_GPU && value == 0 && !self.is_cross_adapter()
    }

    /// Whether it can be opened elsewhere.
    pub fn is_shared(&self) -> bool {
        self.has(bits::SHARED)
    }

    /// How it can be opened elsewhere.
    pub fn sharing(&self) -> Sharing {
        match (self.is_shared(), self.has(bits::NT_SECURITY_SHARING)) {
            (_, true) => Sharing::Nt,
            (true, false) => Sharing::Global,
            (false, false) => Sharing::Private,
        }
    }

    /// Whether devices of other adapters may use it.
    pub fn is_cross_adapter(&self) -> bool {
        self.has(bits::CROSS_ADAPTER)
    }

    /// Whether it keeps its value when the GPU is reset.
    pub fn keeps_value(&self) -> bool {
        self.has(bits::NO_SIGNAL_MAX_VALUE_ON_TDR)
    }

    /// Whether it is a CPU event, which only the KMD signals.
    pub fn is_signalled_by_kmd(&self) -> bool {
        self.has(bits::SIGNAL_BY_KMD)
    }

    /// Whether a queued signal takes effect when the commands before it were fetched.
    pub fn is_top_of_pipeline(&self) -> bool {
        self.has(bits::TOP_OF_PIPELINE)
    }

    /// Whether the GPU sees its value.
    pub fn has_gpu_access(&self) -> bool {
        has_gpu_access(self.flags)
    }

    /// What its first handle may do.
    pub fn rights(&self) -> Rights {
        Rights::from_flags(self.flags)
    }
}

/// Whether the GPU sees the value of a fence that is made or opened with these flags (FEN-6).
pub fn has_gpu_access(flags: u32) -> bool {
    flags & bits::NO_GPU_ACCESS == 0
}

/// What an open handle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Wait on the object.
    pub wait: bool,
    /// Signal the object.
    pub signal: bool,
}

impl Rights {
    /// What the flags of a creation or an open leave.
    pub fn from_flags(flags: u32) -> Self {
        Self {
            wait: flags & bits::NO_WAIT == 0,
            signal: flags & bits::NO_SIGNAL == 0,
        }
    }

    /// The rights that both give.
    pub fn and(self, other: Self) -> Self {
        Self {
            wait: self.wait && other.wait,
            signal: self.signal && other.signal,
        }
    }
}
