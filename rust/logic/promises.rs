// SPDX-License-Identifier: GPL-2.0

//! What types of the rules and of the driver interface promise, checked by the compiler in both
//! builds: sizes that every handle, wait or signal pays for, and which types threads may share.

use super::{
    handle_tree::ChildLinks,
    keyed_mutex::NotOwner,
    quota::Usage,
    wait_set::{
        WaitEnd,
        WaitSet, //
    },
    waiters::{
        Sweep,
        WaitKey,
        Waiters, //
    }, //
};
use crate::ddi::{
    class::{
        Dispatch,
        Passive, //
    },
    gate::Gate,
    port::Port,
    types::{
        AllocationCookie,
        ContextCookie,
        DeviceCookie,
        KmdResult,
        OpenAllocationCookie, //
    }, //
};

const fn holds<T>(bytes: usize) {
    assert!(size_of::<T>() == bytes);
}

/// Each handle has its links, each element of a wait its key. A signal is on the stack of its
/// caller, or what is left of it in the fence.
const _: () = {
    holds::<ChildLinks>(16);
    holds::<WaitKey>(16);
    holds::<Sweep>(40);
    holds::<Option<Sweep>>(40);
    holds::<Waiters<()>>(32);
    holds::<Option<WaitEnd>>(1);
    holds::<Result<(), NotOwner>>(1);
};

/// A cookie is a number of the KMD's, and a result without a value is no longer than its reason.
/// Tokens of context classes are for the compiler only, but that of class P also says what a KMD
/// may ask for.
const _: () = {
    holds::<DeviceCookie>(8);
    holds::<ContextCookie>(8);
    holds::<AllocationCookie>(8);
    holds::<OpenAllocationCookie>(8);
    holds::<KmdResult>(1);
    holds::<Passive>(1);
    holds::<Dispatch>(0);
};

const fn is_for_all_threads<T: Send + Sync>() {}

/// Used by several threads at once, with or without a lock around them.
const _: () = {
    is_for_all_threads::<WaitSet>();
    is_for_all_threads::<Waiters<()>>();
    is_for_all_threads::<Usage>();
    is_for_all_threads::<Gate>();
    is_for_all_threads::<Port>();
};

/// Has one implementation for a type that may go to another thread, and one for every type. Only
/// for a type that may not is it clear which one is meant.
trait StaysIn<Meant> {
    const THREAD: () = ();
}

impl<T> StaysIn<()> for T {}
impl<T: Send> StaysIn<u8> for T {}

/// A context is that of one thread, so its token is, too (GPU-100).
const _: [(); 2] = [
    <Passive as StaysIn<_>>::THREAD,
    <Dispatch as StaysIn<_>>::THREAD,
];
