// SPDX-License-Identifier: GPL-2.0

//! What queued waits and signals refuse: the table of fences.md section 2.6, flags, counts (FEN-41
//! to FEN-51). The order of checks is that of FEN-53: flags and sizes, handles of all, types of
//! all, rights of all, values.

use super::{
    invalid_if,
    submission_order::Moment,
    wait_rules::Refusal,
    Invalid, //
};

/// `D3DDDI_MAX_OBJECT_SIGNALED` and `D3DDDI_MAX_OBJECT_WAITED_ON`: objects of a call whose arrays
/// are part of its arguments.
pub const MAX_INLINE_OBJECTS: u32 = 32;
/// `D3DDDI_MAX_BROADCAST_CONTEXT`: contexts or HW queues of one call.
pub const MAX_BROADCAST: u32 = 64;

/// Bits of `D3DDDICB_SIGNALFLAGS`.
pub mod bits {
    /// When the commands before it were submitted.
    pub const SIGNAL_AT_SUBMISSION: u32 = 1 << 0;
    /// An event instead of objects.
    pub const ENQUEUE_CPU_EVENT: u32 = 1 << 1;
    /// Accepted and ignored: queued signals may go down freely (FEN-42).
    pub const ALLOW_FENCE_REWIND: u32 = 1 << 2;

    /// All of them.
    pub const KNOWN: u32 = SIGNAL_AT_SUBMISSION | ENQUEUE_CPU_EVENT | ALLOW_FENCE_REWIND;
}

/// Which call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// SignalSynchronizationObjectFromGpu, FromGpu2, WaitForSynchronizationObjectFromGpu.
    FromGpu,
    /// SignalSynchronizationObject2, WaitForSynchronizationObject2.
    Legacy,
    /// SubmitSignalSyncObjectsToHwQueue, SubmitWaitForSyncObjectsToHwQueue.
    HwQueue,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It queues a wait.
    Wait,
    /// It queues a signal.
    Signal,
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Type 1.
    Mutex,
    /// Type 2.
    Semaphore,
    /// Type 3: one value for all objects of the call.
    Fence,
    /// Type 4.
    CpuNotification,
    /// The same with SignalByKmd, which no call signals or waits for (CPU-28).
    CpuEvent,
    /// Type 5: a value for each object.
    MonitoredFence,
    /// The progress fence of a HW queue, which only its queue signals (FEN-127).
    ProgressFence,
}

/// Where the values of a call are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// There are none.
    None,
    /// One for all objects.
    One,
    /// One for each object.
    Each,
}

impl Kind {
    /// Whether the call may name it.
    fn fits(self, call: Call, operation: Operation) -> bool {
        match (call, self) {
            (_, Self::CpuEvent) => false,
            (_, Self::ProgressFence) => call != Call::Legacy && operation == Operation::Wait,
            (Call::HwQueue, Self::MonitoredFence) | (Call::FromGpu, Self::MonitoredFence) => true,
            (Call::HwQueue, _) | (Call::Legacy, Self::MonitoredFence) => false,
            (_, Self::CpuNotification) => operation == Operation::Signal,
            (_, Self::Mutex | Self::Semaphore | Self::Fence) => true,
        }
    }

    /// Where its value comes from.
    fn values(self) -> Values {
        match self {
            Self::Mutex | Self::Semaphore | Self::CpuNotification | Self::CpuEvent => Values::None,
            Self::Fence => Values::One,
            Self::MonitoredFence | Self::ProgressFence => Values::Each,
        }
    }

    /// Whether one call may name both (FEN-51).
    fn mixes_with(self, other: Self) -> bool {
        self == other || self.values() == Values::Each && other.values() == Values::Each
    }
}

/// What the objects seen so far are refused for.
#[derive(Clone, Copy, Debug)]
pub struct ObjectCheck {
    call: Call,
    operation: Operation,
    first: Option<Kind>,
    mismatch: bool,
    denied: bool,
}

impl ObjectCheck {
    /// Nothing was seen yet.
    pub fn new(call: Call, operation: Operation) -> Self {
        Self {
            call,
            operation,
            first: None,
            mismatch: false,
            denied: false,
        }
    }

    /// Looks at one more object: what it is, whether it is for the adapter of the queue, and
    /// whether its handle has the right.
    pub fn see(&mut self, kind: Kind, is_for: bool, may: bool) {
        let first = *self.first.get_or_insert(kind);

        self.mismatch |=
            !is_for || !kind.fits(self.call, self.operation) || !kind.mixes_with(first);
        self.denied |= !may;
    }

    /// Where the values are, or what comes first of all that was seen.
    pub fn result(self) -> Result<Values, Refusal> {
        match self {
            Self { mismatch: true, .. } => Err(Refusal::Mismatch),
            Self { denied: true, .. } => Err(Refusal::Denied),
            Self { first, .. } => Ok(first.map_or(Values::None, Kind::values)),
        }
    }
}

/// How a signal is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalFlags {
    /// It takes effect when the commands before it were submitted.
    pub at_submission: bool,
    /// It is an event, and there are no objects.
    pub event: bool,
}

impl SignalFlags {
    /// When objects are signalled that are TopOfPipeline fences, or others (FEN-41).
    pub fn moment(&self, is_top_of_pipeline: bool) -> Moment {
        match (self.at_submission, is_top_of_pipeline) {
            (true, _) => Moment::Submitted,
            (false, true) => Moment::Fetched,
            (false, false) => Moment::Completed,
        }
    }
}

/// Flags and count of a signal with at most `most` objects (FEN-43).
pub fn check_signal(flags: u32, count: u32, most: u32) -> Result<SignalFlags, Invalid> {
    let event = flags & bits::ENQUEUE_CPU_EVENT != 0;

    invalid_if(flags & !bits::KNOWN != 0)?;
    invalid_if(event != (count == 0) || count > most)?;
    Ok(SignalFlags {
        at_submission: flags & bits::SIGNAL_AT_SUBMISSION != 0,
        event,
    })
}

/// The number of objects of a wait with at most `most`.
pub fn check_wait(count: u32, most: u32) -> Result<(), Invalid> {
    invalid_if(!(1..=most).contains(&count))
}

/// The number of contexts or HW queues of a call.
pub fn check_broadcast(count: u32) -> Result<(), Invalid> {
    invalid_if(!(1..=MAX_BROADCAST).contains(&count))
}
