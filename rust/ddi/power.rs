// SPDX-License-Identifier: GPL-2.0

//! The power of an adapter (GPU-28).
//!
//! An adapter goes to D3 with nothing to do: all its contexts are suspended and no doorbell is
//! connected. Everything else may come in D3: what is submitted stays where it is until D0
//! (GPU-11).

/// What an engine tells of itself (`DXGK_ENGINE_STATE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// It has nothing to do, and is about to go to F1, in which no doorbell reaches it: all
    /// doorbells of its queues are disconnected first.
    TransitionToF1,
}

/// A power state of an adapter (`DEVICE_POWER_STATE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    /// It works, as it does after StartDevice.
    D0,
    /// Its engines run nothing. What is in its memory stays.
    D3,
}
