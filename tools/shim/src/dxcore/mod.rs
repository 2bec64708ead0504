// SPDX-License-Identifier: MIT OR Apache-2.0
//! DXCore: the interfaces of `directx/dxcore_interface.h` over the D3DKMT functions.
//!
//! ```text
//! com.rs            reference counts, QueryInterface, the layout of an object
//! abi.rs            GUIDs, numbers and structs of the header
//! factory.rs        IDXCoreAdapterFactory, IDXCoreAdapterFactory1
//! list.rs           IDXCoreAdapterList
//! adapter.rs        IDXCoreAdapter, IDXCoreAdapter1
//! facts.rs          what an adapter says about itself, read once
//! property.rs       adapter properties
//! state.rs          adapter states
//! attributes.rs     adapter attributes and the filters of lists
//! preference.rs     orders of a list
//! identity.rs       the override of a developer
//! roster.rs         the adapters that somebody holds: one object each
//! notify.rs         registered callbacks and their thread
//! kmt.rs            the way to the kernel
//! ```
//!
//! Rules:
//! * An object has one address for all its interfaces.
//! * No lock is held during a call to the kernel, a callback, or the last release of an object;
//!   except one that the thread of the callbacks holds while it looks at the device
//!   ([`undisturbed`]).
//! * What cannot be allocated is E_OUTOFMEMORY. What is refused changes nothing, except that a
//!   pointer or cookie to be returned becomes 0.

mod abi;
mod adapter;
mod attributes;
mod com;
mod factory;
mod facts;
mod identity;
mod kmt;
mod list;
mod notify;
mod preference;
#[cfg(test)]
mod promises;
mod property;
mod roster;
mod state;
mod world;

use core::ffi::c_void;

pub use com::{Guid, HResult};
pub(crate) use world::undisturbed;

/// `HRESULT DXCoreCreateAdapterFactory(REFIID, void **)`: the factory, of which there is one.
///
/// # Safety
///
/// `iid` is NULL or a GUID, `factory` is NULL or can be written.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn DXCoreCreateAdapterFactory(
    iid: *const Guid,
    factory: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's promise.
    unsafe { factory::create(iid, factory) }
}
