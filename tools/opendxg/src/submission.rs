// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work for contexts: command buffers, and waits and signals between them.

use std::os::fd::AsFd;

use crate::calls::gpu::Signalled;
use crate::calls::{self, call};
use crate::device::Context;
use crate::event::EventFd;
use crate::fence::{FenceValues, SignalFlags};
use crate::handle::slot;
use crate::raw::Argument;
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// A context's queue. Everything is done in the order in which it was submitted; no call waits for
/// it.
impl Context {
    /// Submits a command buffer: so many bytes at a GPU address.
    pub fn submit(&self, commands: u64, length: u32) -> Result<()> {
        self.submit_with(commands, length, &[])
    }

    /// The same with private driver data.
    pub fn submit_with(&self, commands: u64, length: u32, driver_data: &[u8]) -> Result<()> {
        self.submit_broadcast(&[], commands, length, driver_data)
    }

    /// Submits a command buffer to this context and to others of the device: it runs once in each.
    /// INVALID_PARAMETER for more than 63 others.
    pub fn submit_broadcast(
        &self,
        others: &[&Self],
        commands: u64,
        length: u32,
        driver_data: &[u8],
    ) -> Result<()> {
        let mut arg = D3DKMT_SUBMITCOMMAND::zeroed();
        arg.Commands = commands;
        arg.CommandLength = length;
        arg.BroadcastContextCount = self.broadcast(others, &mut arg.BroadcastContext)?;
        calls::gpu::submit_command(self.device().node(), &mut arg, driver_data).map(|_| ())
    }

    /// Fills a list of contexts that begins with this one; returns how many there are.
    fn broadcast(&self, others: &[&Self], list: &mut [u32]) -> Result<u32> {
        let handles: Vec<u32> = self.and_others(others);
        let places = list.get_mut(..handles.len());
        let places = places.ok_or(Error::Status(Status::INVALID_PARAMETER))?;
        places.copy_from_slice(&handles);
        // The list is an array of the interface.
        Ok(handles.len() as u32)
    }

    fn and_others(&self, others: &[&Self]) -> Vec<u32> {
        let all = [self].into_iter().chain(others.iter().copied());
        all.map(|context| context.handle().0).collect()
    }

    /// Signals fences when all that was submitted before is done.
    pub fn signal(&self, fences: &FenceValues) -> Result<()> {
        let pairs = fences.pairs();
        calls::gpu::signal_from_gpu(self.device().node(), self.handle().0, pairs).map(|_| ())
    }

    /// Signals fences once, when this context and all the others have come so far.
    pub fn signal_broadcast(
        &self,
        others: &[&Self],
        fences: &FenceValues,
        flags: SignalFlags,
    ) -> Result<()> {
        let (objects, values) = fences.pairs();
        let signalled = Signalled::Fences(objects, values);
        self.signal2(others, signalled, flags.bits())
    }

    /// Increments `event` when this context and all the others have come so far.
    pub fn signal_event(&self, others: &[&Self], event: &EventFd) -> Result<()> {
        self.signal2(others, Signalled::Event(slot(event.as_fd())), 0)
    }

    fn signal2(&self, others: &[&Self], signalled: Signalled<'_>, flags: u32) -> Result<()> {
        let contexts = self.and_others(others);
        calls::gpu::signal_from_gpu2(self.device().node(), &contexts, signalled, flags).map(|_| ())
    }

    /// Holds back what is submitted later until every fence has reached its value.
    pub fn wait(&self, fences: &FenceValues) -> Result<()> {
        let pairs = fences.pairs();
        calls::gpu::wait_from_gpu(self.device().node(), self.handle().0, pairs).map(|_| ())
    }

    /// Signals mutexes, semaphores, notifications and legacy fences, the last ones to `value`.
    /// INVALID_PARAMETER for more than 32.
    pub fn signal_legacy(&self, objects: &[&SyncObject], value: u64) -> Result<()> {
        let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2::zeroed();
        arg.hContext = self.handle().0;
        arg.ObjectCount = objects_of(objects, &mut arg.ObjectHandleArray)?;
        arg.__bindgen_anon_1.Fence.FenceValue = value;
        call(self.device().node(), &mut arg).map(|_| ())
    }

    /// Waits for mutexes, semaphores and legacy fences, for the last ones until they have reached
    /// `value`. INVALID_PARAMETER for more than 32.
    pub fn wait_legacy(&self, objects: &[&SyncObject], value: u64) -> Result<()> {
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2::zeroed();
        arg.hContext = self.handle().0;
        arg.ObjectCount = objects_of(objects, &mut arg.ObjectHandleArray)?;
        arg.__bindgen_anon_1.Fence.FenceValue = value;
        call(self.device().node(), &mut arg).map(|_| ())
    }

    /// Sets the priority among all contexts, from -7 to 7.
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        let mut arg = D3DKMT_SETCONTEXTSCHEDULINGPRIORITY::zeroed();
        (arg.hContext, arg.Priority) = (self.handle().0, priority);
        call(self.device().node(), &mut arg).map(|_| ())
    }

    /// The priority among all contexts.
    pub fn priority(&self) -> Result<i32> {
        let mut arg = D3DKMT_GETCONTEXTSCHEDULINGPRIORITY::zeroed();
        arg.hContext = self.handle().0;
        call(self.device().node(), &mut arg)?;
        Ok(arg.Priority)
    }

    /// Sets the priority among the contexts of the process.
    pub fn set_priority_in_process(&self, priority: i32) -> Result<()> {
        let mut arg = D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY::zeroed();
        (arg.hContext, arg.Priority) = (self.handle().0, priority);
        call(self.device().node(), &mut arg).map(|_| ())
    }

    /// The priority among the contexts of the process.
    pub fn priority_in_process(&self) -> Result<i32> {
        let mut arg = D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY::zeroed();
        arg.hContext = self.handle().0;
        call(self.device().node(), &mut arg)?;
        Ok(arg.Priority)
    }
}

/// Fills a list of objects; returns how many there are.
fn objects_of(objects: &[&SyncObject], list: &mut [u32]) -> Result<u32> {
    let places = list.get_mut(..objects.len());
    let places = places.ok_or(Error::Status(Status::INVALID_PARAMETER))?;
    for (place, object) in places.iter_mut().zip(objects) {
        *place = object.handle().0;
    }
    // The list is an array of the interface.
    Ok(objects.len() as u32)
}
