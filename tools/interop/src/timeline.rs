// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timeline semaphores of Vulkan.

use std::time::Duration;

use ash::vk;
use selftests::TestResult;

use crate::failed;
use crate::gpu::Gpu;
use crate::semaphore::Semaphore;

/// A timeline semaphore that begins at 0.
pub struct Timeline<'a> {
    gpu: &'a Gpu,
    semaphore: vk::Semaphore,
}

impl<'a> Timeline<'a> {
    /// A new one.
    pub fn new(gpu: &'a Gpu) -> TestResult<Self> {
        let mut kind = kind();
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let semaphore =
            // SAFETY: a complete description; ended by `drop`.
            unsafe { gpu.device.create_semaphore(&info, None) }.map_err(failed("timeline"))?;
        Ok(Self { gpu, semaphore })
    }

    /// The present value.
    pub fn value(&self) -> TestResult<u64> {
        // SAFETY: a timeline semaphore of this device; likewise below.
        unsafe {
            self.gpu
                .timeline
                .get_semaphore_counter_value(self.semaphore)
        }
        .map_err(failed("vkGetSemaphoreCounterValue"))
    }

    /// Raises the value.
    pub fn signal(&self, value: u64) -> TestResult {
        let info = vk::SemaphoreSignalInfo::default()
            .semaphore(self.semaphore)
            .value(value);
        // SAFETY: as above.
        unsafe { self.gpu.timeline.signal_semaphore(&info) }.map_err(failed("vkSignalSemaphore"))
    }

    /// Waits until the value is reached, which nobody needs to have submitted. Fails after
    /// `timeout`.
    pub fn wait(&self, value: u64, timeout: Duration) -> TestResult {
        let (semaphores, values) = ([self.semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        // SAFETY: as above.
        unsafe {
            self.gpu
                .timeline
                .wait_semaphores(&info, timeout.as_nanos() as u64)
        }
        .map_err(failed("vkWaitSemaphores"))
    }
}

impl Drop for Timeline<'_> {
    fn drop(&mut self) {
        // SAFETY: `Idle` has waited for every use.
        unsafe { self.gpu.device.destroy_semaphore(self.semaphore, None) };
    }
}

/// What a timeline semaphore is made with.
fn kind() -> vk::SemaphoreTypeCreateInfo<'static> {
    vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE)
}

/// What a timeline semaphore can be exported as, and what it can be made of.
pub fn shared_as(
    gpu: &Gpu,
    handle_type: vk::ExternalSemaphoreHandleTypeFlags,
) -> vk::ExternalSemaphoreFeatureFlags {
    let mut kind = kind();
    let info = vk::PhysicalDeviceExternalSemaphoreInfo::default()
        .handle_type(handle_type)
        .push_next(&mut kind);
    let mut properties = vk::ExternalSemaphoreProperties::default();
    // SAFETY: chains of live structs.
    unsafe {
        gpu.instance
            .get_physical_device_external_semaphore_properties(
                gpu.physical,
                &info,
                &mut properties,
            );
    }
    properties.external_semaphore_features
}

/// What a submission waits for, or what it signals.
#[derive(Clone, Copy)]
pub enum What<'a> {
    /// A value of a timeline.
    Value(&'a Timeline<'a>, u64),
    /// A semaphore that is a sync file before or after.
    Once(&'a Semaphore<'a>),
}

impl What<'_> {
    fn raw(self) -> vk::Semaphore {
        match self {
            Self::Value(timeline, _) => timeline.semaphore,
            Self::Once(semaphore) => semaphore.raw(),
        }
    }

    /// Ignored for what has no value.
    fn value(self) -> u64 {
        match self {
            Self::Value(_, value) => value,
            Self::Once(_) => 0,
        }
    }
}

/// Submits, without commands: when the first has come, signal the second.
pub fn pass_on(gpu: &Gpu, wait: What<'_>, signal: What<'_>) -> TestResult {
    let (waits, wait_values) = ([wait.raw()], [wait.value()]);
    let (signals, signal_values) = ([signal.raw()], [signal.value()]);
    let mut values = vk::TimelineSemaphoreSubmitInfo::default()
        .wait_semaphore_values(&wait_values)
        .signal_semaphore_values(&signal_values);
    let submit = [vk::SubmitInfo::default()
        .wait_semaphores(&waits)
        .wait_dst_stage_mask(&[vk::PipelineStageFlags::ALL_COMMANDS])
        .signal_semaphores(&signals)
        .push_next(&mut values)];
    // SAFETY: semaphores of this device, which live until `Idle` has waited.
    unsafe {
        gpu.device
            .queue_submit(gpu.queue, &submit, vk::Fence::null())
    }
    .map_err(failed("submit"))
}

/// Waits until the queue has done everything, at the latest when dropped. Declared after what is
/// submitted, it ends before that.
pub struct Idle<'a>(&'a Gpu);

impl<'a> Idle<'a> {
    /// Of this queue.
    pub fn new(gpu: &'a Gpu) -> Self {
        Self(gpu)
    }
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        // SAFETY: the queue of this device, which no other thread uses now.
        if let Err(error) = unsafe { self.0.device.queue_wait_idle(self.0.queue) } {
            println!("# the queue does not end: {error}");
        }
    }
}
