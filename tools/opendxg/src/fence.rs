// SPDX-License-Identifier: MIT OR Apache-2.0
//! Monitored fences: a 64-bit value that processes and devices raise and wait for.

use core::ops::Deref;
use std::os::fd::AsFd;

use bitflags::bitflags;

use crate::calls;
use crate::device::Device;
use crate::event::EventFd;
use crate::handle::{slot, LocalHandle};
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::value::FenceValue;
use crate::{Result, Status};

bitflags! {
    /// How to signal.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SignalFlags: u32 {
        /// Not for signals of the CPU.
        const SIGNAL_AT_SUBMISSION = D3DDDICB_SIGNALFLAGS_SignalAtSubmission;
        /// Not for signals of the CPU.
        const ENQUEUE_CPU_EVENT = D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent;
        /// The value may go down.
        const ALLOW_FENCE_REWIND = D3DDDICB_SIGNALFLAGS_AllowFenceRewind;
        const _ = !0;
    }
}

/// An open monitored fence with its mapped value.
///
/// All the methods of [`SyncObject`] are available as well.
#[derive(Debug)]
pub struct MonitoredFence {
    value: FenceValue,
    gpu_address: u64,
    /// Keeps the mapping in place.
    object: SyncObject,
}

impl MonitoredFence {
    pub(crate) fn new(object: SyncObject, value: FenceValue, gpu_address: u64) -> Self {
        Self {
            value,
            gpu_address,
            object,
        }
    }

    fn device_handle(&self) -> LocalHandle {
        self.object
            .device()
            .map_or(LocalHandle::NONE, Device::handle)
    }

    /// The current value, read without a system call. Who sees the value of a signal also sees
    /// what the signaller wrote before it.
    pub fn value(&self) -> u64 {
        self.value.load()
    }

    /// Where the value is mapped, read-only.
    pub fn value_address(&self) -> *const u64 {
        self.value.address()
    }

    /// The address of the value for the GPU; 0 if the GPU has no access to it.
    pub fn gpu_address(&self) -> u64 {
        self.gpu_address
    }

    /// Whether the fence has reached `value`.
    pub fn is_reached(&self, value: u64) -> bool {
        self.value() >= value
    }

    /// Waits until the fence reaches `value`. Always asks the driver; look at [`Self::is_reached`]
    /// first to spare the system call.
    ///
    /// A signal handler without `SA_RESTART` ends it with an error for which
    /// [`Error::is_interrupted`](crate::Error::is_interrupted) holds: wait again.
    pub fn wait(&self, value: u64) -> Result<()> {
        let pairs: Pairs<'_> = (&[self.handle().0], &[value]);
        calls::wait_from_cpu(self.node(), self.device_handle(), pairs, 0, false).map(|_| ())
    }

    /// Asks the driver to increment `event` once when the fence reaches `value`.
    pub fn wait_async(&self, value: u64, event: &EventFd) -> Result<Status> {
        let pairs: Pairs<'_> = (&[self.handle().0], &[value]);
        let event = slot(event.as_fd());
        calls::wait_from_cpu(self.node(), self.device_handle(), pairs, event, false)
    }

    /// Raises the value. INVALID_PARAMETER if the fence is already higher.
    pub fn signal(&self, value: u64) -> Result<()> {
        self.signal_with(value, SignalFlags::empty())
    }

    /// Sets the value, which may go down.
    pub fn signal_rewind(&self, value: u64) -> Result<()> {
        self.signal_with(value, SignalFlags::ALLOW_FENCE_REWIND)
    }

    /// Sets the value with any flags.
    pub fn signal_with(&self, value: u64, flags: SignalFlags) -> Result<()> {
        let pairs: Pairs<'_> = (&[self.handle().0], &[value]);
        let device = self.device_handle();
        calls::signal_from_cpu(self.node(), device, pairs, flags.bits()).map(|_| ())
    }

    /// Destroys the local handle, and with it the mapping, and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.object.destroy()
    }

    /// The object without the mapped value.
    pub fn into_object(self) -> SyncObject {
        self.object
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.object.into_raw()
    }
}

impl Deref for MonitoredFence {
    type Target = SyncObject;

    fn deref(&self) -> &SyncObject {
        &self.object
    }
}

/// Handles and values of the same length.
pub(crate) type Pairs<'a> = (&'a [u32], &'a [u64]);

/// A list of objects with a value for each, for one call over several fences. Can be used again.
///
/// It refers to the objects by handle and does not keep them alive: a handle that was destroyed is
/// refused by the driver.
#[derive(Clone, Debug, Default)]
pub struct FenceValues {
    objects: Vec<u32>,
    values: Vec<u64>,
}

impl FenceValues {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object and its value. The same object may be added several times.
    pub fn with(mut self, object: &SyncObject, value: u64) -> Self {
        self.push(object, value);
        self
    }

    /// Adds an object and its value.
    pub fn push(&mut self, object: &SyncObject, value: u64) {
        self.push_handle(object.handle(), value);
    }

    /// Adds an object by handle, which need not be valid.
    pub fn push_handle(&mut self, handle: LocalHandle, value: u64) {
        self.objects.push(handle.0);
        self.values.push(value);
    }

    /// Sets the value at a position.
    ///
    /// # Panics
    ///
    /// If there is no such position.
    pub fn set(&mut self, position: usize, value: u64) {
        self.values[position] = value;
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(crate) fn pairs(&self) -> Pairs<'_> {
        (&self.objects, &self.values)
    }
}

/// Waits and signals over several fences.
impl Device {
    /// Waits until one of the fences has reached its value.
    pub fn wait_any(&self, fences: &FenceValues) -> Result<()> {
        self.wait_list(fences, None, true).map(|_| ())
    }

    /// Waits until every fence has reached its value, not necessarily all at the same time.
    pub fn wait_all(&self, fences: &FenceValues) -> Result<()> {
        self.wait_list(fences, None, false).map(|_| ())
    }

    /// Asks the driver to increment `event` once when one of the fences has reached its value.
    pub fn wait_any_async(&self, fences: &FenceValues, event: &EventFd) -> Result<Status> {
        self.wait_list(fences, Some(event), true)
    }

    /// Asks the driver to increment `event` once when every fence has reached its value.
    pub fn wait_all_async(&self, fences: &FenceValues, event: &EventFd) -> Result<Status> {
        self.wait_list(fences, Some(event), false)
    }

    fn wait_list(
        &self,
        fences: &FenceValues,
        event: Option<&EventFd>,
        any: bool,
    ) -> Result<Status> {
        let event = event.map_or(0, |event| slot(event.as_fd()));
        calls::wait_from_cpu(self.node(), self.handle(), fences.pairs(), event, any)
    }

    /// Sets every fence to its value, in order, until the driver refuses one.
    pub fn signal(&self, fences: &FenceValues, flags: SignalFlags) -> Result<()> {
        let pairs = fences.pairs();
        calls::signal_from_cpu(self.node(), self.handle(), pairs, flags.bits()).map(|_| ())
    }
}
