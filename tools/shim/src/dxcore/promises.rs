// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the interfaces promise to programs, checked by the compiler.

use static_assertions::{
    assert_eq_align, assert_eq_size, assert_impl_all, assert_not_impl_any, const_assert_eq,
};

use super::adapter::Adapter;
use super::com::{Guid, Object, Reference};
use super::factory::Factory;
use super::list::AdapterList;
use super::notify::Notifier;
use super::roster::Roster;
use super::{abi, com};

// Programs use every object from any thread. `Object` and `Reference` say so for all classes, so
// the classes themselves have to be fit for it.
assert_impl_all!(Adapter: Send, Sync);
assert_impl_all!(Factory: Send, Sync);
assert_impl_all!(AdapterList: Send, Sync);
assert_impl_all!(Reference<Adapter>: Send, Sync);

// The parts of the world, which is declared to be shared.
assert_impl_all!(Roster: Send, Sync);
assert_impl_all!(Notifier: Send, Sync);

// A copy would have an address of its own, or a reference that nobody has counted.
assert_not_impl_any!(Object<Adapter>: Clone, Copy);
assert_not_impl_any!(Reference<Adapter>: Copy);

// Structs of the C++ header.
assert_eq_size!(Guid, [u8; 16]);
assert_eq_align!(Guid, u32);
assert_eq_size!(abi::Luid, opendxg::uapi::LUID);
assert_eq_align!(abi::Luid, opendxg::uapi::LUID);
const_assert_eq!(size_of::<abi::EngineName>(), 16 + size_of::<usize>());
const_assert_eq!(size_of::<abi::ProcessSet>(), 8 + size_of::<usize>());

// An interface pointer is the address of one pointer to the functions.
assert_eq_size!(com::Unknown, [usize; 3]);
