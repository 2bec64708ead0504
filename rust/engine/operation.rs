// SPDX-License-Identifier: GPL-2.0

//! What a packet means, as values: decoding makes one, the command processor carries it out.
//!
//! All that could be illegal has been found when there is an operation, but for what depends on
//! where the packet is. A long one is done in parts; what is left of it stays in its queue, so no
//! dword of the packet is read twice (GPU-16).

use super::{
    log::{
        LogRequest,
        LogType, //
    },
    translation::Scope, //
};

/// Nanoseconds between two looks at a word, at least (GPU-43).
pub const MIN_POLL_NS: u64 = 100_000;

/// It is not looked at again by the time.
const NEVER_NS: u64 = u64::MAX;

/// Ticks of the clock in one unit of a poll interval, as the public register documents have it.
const TICKS_PER_INTERVAL: u64 = 16;

/// Nanoseconds until the next look, from the interval of a packet. A tick is a nanosecond.
pub(super) fn poll_after_ns(interval: u16) -> u64 {
    MIN_POLL_NS.max(u64::from(interval).saturating_mul(TICKS_PER_INTERVAL))
}

/// What a blocked queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedOn {
    /// GPU virtual address of the word that has to change.
    pub va: u64,
    /// Nanoseconds after which it is to be looked at again, at least.
    pub poll_after_ns: u64,
}

/// What is left of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// GPU virtual address of the next packet.
    pub(super) va: u64,
    /// How many dwords there are from there on.
    pub(super) dwords: u32,
}

/// Words of 32 or of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Dword,
    Qword,
}

/// How a word is compared with a reference, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Always,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl Function {
    pub(super) fn holds(self, value: u64, reference: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Less => value < reference,
            Self::LessOrEqual => value <= reference,
            Self::Equal => value == reference,
            Self::NotEqual => value != reference,
            Self::GreaterOrEqual => value >= reference,
            Self::Greater => value > reference,
        }
    }
}

/// Dwords of the packet that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// Where the next dword is in the buffer.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) dwords: u32,
    /// All at the same address.
    pub(super) fixed: bool,
}

/// Where the bytes of a transfer come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Pattern(u32),
    Memory {
        va: u64,
        /// Every dword from the same address.
        fixed: bool,
    },
}

/// A copy or a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) source: Source,
    pub(super) to: u64,
    /// Every dword to the same address.
    pub(super) fixed: bool,
    pub(super) bytes: u32,
}

/// What a word is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Memory(u64),
    Value(u64),
    /// The GPU clock.
    Clock,
}

/// One word that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) source: Word,
    pub(super) to: u64,
    pub(super) width: Width,
}

/// A wait for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) va: u64,
    pub(super) width: Width,
    pub(super) function: Function,
    pub(super) reference: u64,
    pub(super) mask: u64,
    pub(super) interval: u16,
}

/// The end of all that is before it: a word, and an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) data: Option<Move>,
    pub(super) interrupt: Interrupt,
}

/// Which interrupt a packet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Never,
    MonitoredFence,
    /// That of the native fence with this MonitoredValue, if this value is above it (GPU-45).
    NativeFence {
        monitored_value: u64,
        value: u64,
    },
}

/// A value of a native fence, that is stored or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceValue {
    /// Where CurrentValue is.
    pub(super) va: u64,
    pub(super) value: u64,
}

/// A wait for a value of a native fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceWait {
    pub(super) fence: FenceValue,
    pub(super) log: Option<LogRequest>,
}

/// A signal of a native fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceSignal {
    pub(super) fence: FenceValue,
    pub(super) log: Option<LogRequest>,
    /// Its interrupt may be raised.
    pub(super) may_interrupt: bool,
}

/// An entry of a log that earlier packets have made true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteLog {
    pub(super) ty: LogType,
    pub(super) value: u64,
    pub(super) request: LogRequest,
    /// It tells when the last wait of the queue was first tried.
    pub(super) takes_observed: bool,
}

/// What an atomic operation makes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicOp {
    Swap,
    /// Swaps if the word is what is expected.
    CompareSwap,
    /// The same, and waits until it does.
    CompareSwapLoop,
    Add,
    Sub,
    Max,
    And,
    Or,
}

/// An atomic operation on a 64-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Atomic {
    pub(super) op: AtomicOp,
    pub(super) va: u64,
    pub(super) source: u64,
    /// What a comparison asks for. Without one a guess, to be replaced by what is found.
    pub(super) expected: u64,
    pub(super) interval: u16,
}

/// Entries of a page table that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) to: u64,
    pub(super) count: u32,
    pub(super) entry: u64,
    pub(super) increment: u64,
}

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Nothing,
    /// Goes on in another buffer, and comes back when that has ended.
    Call(Frame),
    /// Goes on in another buffer.
    Chain(Frame),
    Write(Write),
    /// Two dwords of the packet, which become one 64-bit store.
    WriteQword {
        from: u64,
        to: u64,
    },
    Transfer(Transfer),
    Move(Move),
    Wait(Wait),
    Release(Release),
    Barrier,
    Atomic(Atomic),
    /// Skips so many dwords if a word is 0.
    SkipIfZero {
        va: u64,
        dwords: u32,
    },
    Trap {
        class: u32,
        argument: u64,
    },
    /// Stores CurrentValue of a native fence.
    SignalFence(FenceSignal),
    WaitFence(FenceWait),
    WriteLog(WriteLog),
    /// Uses up so many steps.
    Delay(u32),
    Entries(Entries),
    Invalidate(Scope),
}

impl Operation {
    /// Whether it waits for something before the next packet.
    pub(super) fn is_wait(&self) -> bool {
        matches!(self, Self::Wait(_) | Self::WaitFence(_))
    }

    /// Whether some of its packet is still to be read.
    pub(super) fn reads_buffer(&self) -> bool {
        matches!(self, Self::Write(_) | Self::WriteQword { .. })
    }

    /// What it waits for, once it has been tried.
    pub(super) fn blocked_on(&self) -> Option<BlockedOn> {
        match self {
            Self::Wait(wait) => Some(BlockedOn {
                va: wait.va,
                poll_after_ns: poll_after_ns(wait.interval),
            }),
            Self::Atomic(atomic) if atomic.op == AtomicOp::CompareSwapLoop => Some(BlockedOn {
                va: atomic.va,
                poll_after_ns: poll_after_ns(atomic.interval),
            }),
            Self::WaitFence(wait) => Some(BlockedOn {
                va: wait.fence.va,
                poll_after_ns: NEVER_NS,
            }),
            _ => None,
        }
    }
}
