// SPDX-License-Identifier: GPL-2.0

//! Which flags a synchronisation object may be created and opened with (FEN-3, FEN-4, FEN-135,
//! CPU-1, CPU-4), and what an open handle may then do.

use super::{
    invalid_if,
    Invalid, //
};

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

/// Checks the flags of a creation and says how the object may be shared.
///
/// `kind` must be one of [`types`].
pub fn check_create(kind: u32, flags: u32) -> Result<Sharing, Invalid> {
    use bits::*;

    let has = |mask: u32| flags & mask != 0;
    let value_fence = matches!(
        kind,
        types::MONITORED_FENCE | types::PERIODIC_MONITORED_FENCE
    );
    invalid_if(
        has(!KNOWN)
            || has(SIGNAL_BY_KMD) && kind != types::CPU_NOTIFICATION
            || has(SIGNAL_BY_KMD) && has(!SIGNAL_BY_KMD)
            || has(NT_SECURITY_SHARING) && !has(SHARED)
            || has(NO_SIGNAL) && has(NO_WAIT)
            || has(VALUE_FENCES_ONLY) && !value_fence
            || has(CROSS_ADAPTER) && (!value_fence || !has(NT_SECURITY_SHARING))
            || has(SHARED) && !has(NT_SECURITY_SHARING) && value_fence
            || has(SHARED) && kind == types::CPU_NOTIFICATION,
    )?;
    Ok(match (has(SHARED), has(NT_SECURITY_SHARING)) {
        (_, true) => Sharing::Nt,
        (true, false) => Sharing::Global,
        (false, false) => Sharing::Private,
    })
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
    /// A fence that follows a video present target.
    PeriodicFence {
        /// The adapter of the target.
        adapter: u32,
        /// Which physical adapters use it.
        engines: u32,
    },
}

/// Why a description is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// INVALID_PARAMETER.
    Invalid,
    NotSupported,
}

/// Checks the description of a new object, whose flags and handles are good.
///
/// `has_engines` says whether the adapter in question has all these engines.
pub fn check_contents(
    contents: Contents,
    flags: u32,
    has_engines: impl Fn(u32) -> bool,
) -> Result<(), Unusable> {
    match contents {
        Contents::Semaphore { initial, max } if initial > max => Err(Unusable::Invalid),
        Contents::MonitoredFence { engines, .. } | Contents::PeriodicFence { engines, .. }
            if !has_engines(engines) =>
        {
            Err(Unusable::Invalid)
        }
        // No adapter has a video present target (fences.md section 2.6).
        Contents::PeriodicFence { .. } => Err(Unusable::NotSupported),
        // No adapter offers DXGK_FEATURE_KMD_SIGNAL_CPU_EVENT (CPU-6).
        Contents::CpuNotification { .. } if flags & bits::SIGNAL_BY_KMD != 0 => {
            Err(Unusable::NotSupported)
        }
        _ => Ok(()),
    }
}

/// Checks the flags of an open, which restrict what the handle may do.
pub fn check_open(flags: u32) -> Result<(), Invalid> {
    invalid_if(
        flags & (!bits::KNOWN | bits::SIGNAL_BY_KMD) != 0
            || flags & bits::NO_SIGNAL != 0 && flags & bits::NO_WAIT != 0,
    )
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
