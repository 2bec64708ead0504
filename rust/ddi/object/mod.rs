// SPDX-License-Identifier: GPL-2.0

//! What a KMD has made for the OS part. Each of these is one create, and its drop is the destroy
//! (GPU-105); it keeps what it was made on.
//!
//! Context: creates and drops may sleep, with no locks held.

mod allocation;
mod aperture;
pub mod context;
mod cpu_event;
mod device;
mod doorbell;
mod hw_queue;
pub mod native_fence;
mod process;
mod recovery;
mod suspension;

pub use allocation::{
    Allocation,
    OpenAllocation, //
};
pub use aperture::{
    ApertureRange,
    ContextAllocation,
    InAperture, //
};
pub use context::Context;
pub use cpu_event::CpuEvent;
pub use device::Device;
pub use doorbell::Doorbell;
pub use hw_queue::HwQueue;
pub use native_fence::{
    NativeFence,
    NotUpdated,
    OpenNativeFence, //
};
pub use process::{
    Process,
    TableUpdate, //
};
pub use recovery::EngineRecovery;
pub use suspension::{
    Suspension,
    Suspensions, //
};
