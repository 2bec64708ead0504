// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shareable objects of every kind behind one interface, by raw calls: what the tests of sharing
//! have in common.
//!
//! [`Client`] makes, shares and opens objects; [`Local`] is one local handle, destroyed when
//! dropped; [`Target`] is a handle of any kind for the calls that take any. Results are those of
//! the client crate, so that [`fails_with`](crate::fails_with) checks them.

mod attributes;
mod client;
mod container;
mod keyed_mutex;
mod local;
mod open;
mod share;
mod store;
mod target;
mod weak;

pub use attributes::Attributes;
pub use client::{Client, How, Shape};
pub use keyed_mutex::Acquired;
pub use local::{Local, What};
pub use open::Opened;
pub use share::{share_call, share_raw};
pub use store::{key, Entry, Item, Key};
pub use target::{exec_on, Queried, Target};
pub use weak::WatchState;

/// Access masks (RES-35).
pub mod access {
    /// Wait for a synchronisation object.
    pub const WAIT: u32 = 0x1;
    /// Signal a synchronisation object.
    pub const SIGNAL: u32 = 0x2;
    /// Write a resource.
    pub const WRITE: u32 = 0x1;
    /// Everything, synchronisation objects.
    pub const ALL_SYNC: u32 = 0x001f_0003;
    /// Everything, resources.
    pub const ALL_RESOURCE: u32 = 0x000f_0001;
    /// Read what describes the object.
    pub const READ_CONTROL: u32 = 0x0002_0000;
    /// The standard rights of any object, SYNCHRONIZE among them.
    pub const STANDARD_RIGHTS_ALL: u32 = 0x001f_0000;
    /// Means nothing on a resource.
    pub const SYNCHRONIZE: u32 = 0x0010_0000;
    /// Whatever may be had.
    pub const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
    /// The generic rights.
    pub const GENERIC_ALL: u32 = 0x1000_0000;
    /// Execute.
    pub const GENERIC_EXECUTE: u32 = 0x2000_0000;
    /// Write.
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    /// Read.
    pub const GENERIC_READ: u32 = 0x8000_0000;
}
