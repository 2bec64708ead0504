// SPDX-License-Identifier: GPL-2.0

//! The rules of the driver interface, and who is told of those that are broken.

use super::entry::Entry;

/// A rule of the driver interface that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Rule {
    /// OS part: a call that is not a destroy, before StartDevice or after StopDevice.
    NotStarted = 1,
    /// OS part: a cookie that the KMD did not give, or of another kind, or that was destroyed.
    BadCookie,
    /// OS part: something was destroyed before what was made on it.
    ChildrenLeft,
    /// OS part: two calls for one object at the same time, or one beside StopDevice.
    Together,
    /// OS part: RemoveDevice while something is left, or without StopDevice.
    NotEmpty,
    /// OS part: an entry of class P where nothing sleeps, or one of class D where one may.
    WrongClass,
    /// OS part: an entry under a spinlock (MEM-96).
    SpinLockHeld,
    /// OS part: the number of a submission does not follow that of the last one of its queue.
    OutOfOrder,
    /// OS part: more submissions of a queue at a time than its node takes.
    InFlight,
    /// OS part: values that no entry may get.
    BadValue,
    /// OS part: an end of an allocation that nobody asked for, or told twice.
    BadNotice,
    /// KMD: an answer that makes no sense.
    BadAnswer,
    /// KMD: a callback that says what cannot be: more than was submitted, a second fault.
    BadCallback,
    /// KMD: a callback of a queue whose destroy has returned.
    CallbackAfterEnd,
    /// KMD: it keeps the callbacks of a queue whose destroy has returned.
    CallbacksKept,
    /// OS part: a power state that the adapter has already, or a connection in D3.
    BadPower,
}

impl Rule {
    /// What is wrong, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotStarted => "OS part: the KMD is not started",
            Self::BadCookie => "OS part: no such object",
            Self::ChildrenLeft => "OS part: something that was made on it is left",
            Self::Together => "OS part: another call is inside that excludes this one",
            Self::NotEmpty => "OS part: something is left, or it was not stopped",
            Self::WrongClass => "OS part: wrong context class",
            Self::SpinLockHeld => "OS part: a spinlock is held",
            Self::OutOfOrder => "OS part: submission out of order",
            Self::InFlight => "OS part: too many submissions at a time",
            Self::BadValue => "OS part: bad argument",
            Self::BadNotice => {
                "OS part: end of an allocation that was not asked for, or told twice"
            }
            Self::BadAnswer => "KMD: bad answer",
            Self::BadCallback => "KMD: it tells what cannot be",
            Self::CallbackAfterEnd => "KMD: callback of a queue that is destroyed",
            Self::CallbacksKept => "KMD: callbacks kept of a queue that is destroyed",
            Self::BadPower => "OS part: wrong power state for this",
        }
    }
}

/// Who is told of every call.
///
/// Context: any, as the interrupt rule has it.
pub trait Log: Send + Sync {
    /// An entry or a callback was called, for the object that the OS part calls so, or for none.
    fn called(&self, entry: Entry, object: u64);

    /// It breaks a rule.
    fn broken(&self, rule: Rule, entry: Entry, object: u64);
}
