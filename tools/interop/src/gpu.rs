// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Vulkan driver that takes dma-bufs.

use std::ffi::CStr;

use ash::{ext, khr, vk, Device, Entry, Instance};
use selftests::{Failure, TestResult};

use crate::failed;
use crate::semaphore::Semaphore;

/// What is needed of a driver.
const EXTENSIONS: [&CStr; 4] = [
    khr::external_memory_fd::NAME,
    khr::external_semaphore_fd::NAME,
    khr::timeline_semaphore::NAME,
    ext::external_memory_dma_buf::NAME,
];

/// The handle type of all external memory here.
pub const DMA_BUF: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT;

/// An open driver with one queue. Ended when dropped.
pub struct Gpu {
    _entry: Entry,
    /// The instance.
    pub instance: Instance,
    /// The physical device.
    pub physical: vk::PhysicalDevice,
    /// The device.
    pub device: Device,
    /// Memory by descriptor.
    pub memory_fd: khr::external_memory_fd::Device,
    /// Semaphores by descriptor.
    pub semaphore_fd: khr::external_semaphore_fd::Device,
    /// Timeline semaphores.
    pub timeline: khr::timeline_semaphore::Device,
    /// The queue, which can draw.
    pub queue: vk::Queue,
    pool: vk::CommandPool,
}

impl Gpu {
    /// Opens the first driver with the extensions. The error names what is missing.
    pub fn open() -> TestResult<Self> {
        // SAFETY: loads the system's Vulkan loader, which is a sound library.
        let entry = unsafe { Entry::load() }
            .map_err(|error| Failure::Failed(format!("libvulkan: {error}")))?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let instance =
            // SAFETY: a complete description; likewise below. Objects are ended in the opposite
            // order by `drop`.
            unsafe { entry.create_instance(&info, None) }.map_err(failed("vkCreateInstance"))?;
        let found =
            // SAFETY: as above.
            unsafe { instance.enumerate_physical_devices() }.map_err(failed("physical devices"))?;
        let mut missing = String::from("no physical device");
        let mut usable = None;
        for physical in found {
            match lacks(&instance, physical)? {
                None => usable = Some(physical),
                Some(text) => missing = text,
            }
        }
        let physical = usable.ok_or(Failure::Failed(missing))?;
        let family = drawing_family(&instance, physical)?;
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let names = EXTENSIONS.map(CStr::as_ptr);
        // Who has the extension has the feature.
        let mut timelines =
            vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names)
            .push_next(&mut timelines);
        // SAFETY: as above.
        let device = unsafe { instance.create_device(physical, &info, None) }
            .map_err(failed("vkCreateDevice"))?;
        // SAFETY: as above.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        let pool =
            // SAFETY: as above.
            unsafe { device.create_command_pool(&info, None) }.map_err(failed("command pool"))?;
        let memory_fd = khr::external_memory_fd::Device::new(&instance, &device);
        let semaphore_fd = khr::external_semaphore_fd::Device::new(&instance, &device);
        let timeline = khr::timeline_semaphore::Device::new(&instance, &device);
        Ok(Self {
            _entry: entry,
            instance,
            physical,
            device,
            memory_fd,
            semaphore_fd,
            timeline,
            queue,
            pool,
        })
    }

    /// The name of the device and of its driver.
    pub fn name(&self) -> String {
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
        // SAFETY: a chain of live structs.
        unsafe {
            self.instance
                .get_physical_device_properties2(self.physical, &mut all)
        };
        let device = text(&all.properties.device_name);
        format!(
            "{device}, {} {}",
            text(&driver.driver_name),
            text(&driver.driver_info)
        )
    }

    /// A memory type among the allowed ones.
    pub fn memory_type(&self, allowed: u32) -> TestResult<u32> {
        // SAFETY: the device of this instance.
        let all = unsafe {
            self.instance
                .get_physical_device_memory_properties(self.physical)
        };
        let coherent =
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let is_good = |index: &u32| {
            let properties = all.memory_types[*index as usize].property_flags;
            allowed & (1 << index) != 0 && properties.contains(coherent)
        };
        (0..all.memory_type_count)
            .find(is_good)
            .ok_or_else(|| Failure::Failed(format!("no memory type of {allowed:#x} is coherent")))
    }

    /// Records commands, runs them and waits for their end.
    pub fn run(&self, record: impl FnOnce(vk::CommandBuffer)) -> TestResult {
        self.submit(record, None, None)?.finish()
    }

    /// Records and submits commands, which wait for one semaphore and signal another.
    pub fn submit(
        &self,
        record: impl FnOnce(vk::CommandBuffer),
        wait: Option<&Semaphore<'_>>,
        signal: Option<&Semaphore<'_>>,
    ) -> TestResult<Submitted<'_>> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        let begin = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        let wait: Vec<_> = wait.iter().map(|wait| wait.raw()).collect();
        let signal: Vec<_> = signal.iter().map(|signal| signal.raw()).collect();
        let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
        // SAFETY: objects of this device; `Submitted` frees them after their end.
        unsafe {
            let done = self
                .device
                .create_fence(&vk::FenceCreateInfo::default(), None)
                .map_err(failed("fence"))?;
            let buffers = self
                .device
                .allocate_command_buffers(&info)
                .map_err(failed("command buffer"))?;
            self.device
                .begin_command_buffer(buffers[0], &begin)
                .map_err(failed("begin"))?;
            record(buffers[0]);
            self.device
                .end_command_buffer(buffers[0])
                .map_err(failed("end"))?;
            let submit = [vk::SubmitInfo::default()
                .command_buffers(&buffers)
                .wait_semaphores(&wait)
                .wait_dst_stage_mask(&stages[..wait.len()])
                .signal_semaphores(&signal)];
            self.device
                .queue_submit(self.queue, &submit, done)
                .map_err(failed("submit"))?;
            Ok(Submitted {
                gpu: self,
                commands: buffers[0],
                done,
            })
        }
    }
}

/// Commands that may run.
pub struct Submitted<'a> {
    gpu: &'a Gpu,
    commands: vk::CommandBuffer,
    done: vk::Fence,
}

impl Submitted<'_> {
    /// Whether they have ended.
    pub fn is_done(&self) -> TestResult<bool> {
        // SAFETY: a fence of this device.
        unsafe { self.gpu.device.get_fence_status(self.done) }.map_err(failed("fence"))
    }

    /// Waits for their end.
    pub fn finish(self) -> TestResult {
        self.wait()
    }

    fn wait(&self) -> TestResult {
        // SAFETY: a fence of this device.
        unsafe {
            self.gpu
                .device
                .wait_for_fences(&[self.done], true, u64::MAX)
        }
        .map_err(failed("wait"))
    }
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        // Without an end nothing of it could be freed.
        if let Err(failure) = self.wait() {
            println!("# {failure:?}");
            return;
        }
        // SAFETY: objects of this device that are used no more.
        unsafe {
            self.gpu.device.destroy_fence(self.done, None);
            self.gpu
                .device
                .free_command_buffers(self.gpu.pool, &[self.commands]);
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: everything made from the device is gone: it borrows from `self`.
        unsafe {
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

fn text(characters: &[core::ffi::c_char]) -> String {
    let bytes: Vec<u8> = characters
        .iter()
        .map(|&byte| byte as u8)
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Which of the extensions a device does not have.
fn lacks(instance: &Instance, physical: vk::PhysicalDevice) -> TestResult<Option<String>> {
    // SAFETY: a device of this instance.
    let offered = unsafe { instance.enumerate_device_extension_properties(physical) }
        .map_err(failed("extensions"))?;
    let offers = |name: &CStr| {
        offered
            .iter()
            .any(|other| other.extension_name_as_c_str() == Ok(name))
    };
    let missing: Vec<String> = EXTENSIONS
        .iter()
        .filter(|name| !offers(name))
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    Ok((!missing.is_empty()).then(|| format!("the driver has no {}", missing.join(", "))))
}

fn drawing_family(instance: &Instance, physical: vk::PhysicalDevice) -> TestResult<u32> {
    // SAFETY: a device of this instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let place = families
        .iter()
        .position(|family| family.queue_flags.contains(vk::QueueFlags::GRAPHICS));
    Ok(place.ok_or("the driver cannot draw")? as u32)
}
