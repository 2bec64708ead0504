// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of a dma-buf as an image or a buffer of Vulkan.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use ash::vk;
use selftests::{ensure, TestResult};

use crate::failed;
use crate::gpu::{Gpu, DMA_BUF};

/// Format of the pictures: bytes red, green, blue, opacity.
pub const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;

const TRANSFER: u32 =
    vk::ImageUsageFlags::TRANSFER_SRC.as_raw() | vk::ImageUsageFlags::TRANSFER_DST.as_raw();
const IMAGE_USE: vk::ImageUsageFlags =
    vk::ImageUsageFlags::from_raw(TRANSFER | vk::ImageUsageFlags::COLOR_ATTACHMENT.as_raw());
const BUFFER_USE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw() | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// What the driver says about images in dma-bufs.
pub fn image_features(gpu: &Gpu) -> TestResult<vk::ExternalMemoryFeatureFlags> {
    let mut external = vk::PhysicalDeviceExternalImageFormatInfo::default().handle_type(DMA_BUF);
    let info = vk::PhysicalDeviceImageFormatInfo2::default()
        .format(FORMAT)
        .ty(vk::ImageType::TYPE_2D)
        .tiling(vk::ImageTiling::LINEAR)
        .usage(IMAGE_USE)
        .push_next(&mut external);
    let mut properties = vk::ExternalImageFormatProperties::default();
    let mut all = vk::ImageFormatProperties2::default().push_next(&mut properties);
    // SAFETY: chains of live structs.
    unsafe {
        gpu.instance
            .get_physical_device_image_format_properties2(gpu.physical, &info, &mut all)
            .map_err(failed("linear images in dma-bufs"))?;
    }
    Ok(properties
        .external_memory_properties
        .external_memory_features)
}

/// A picture without memory yet.
pub struct Image<'a> {
    gpu: &'a Gpu,
    /// The image.
    pub image: vk::Image,
    memory: Option<vk::DeviceMemory>,
}

impl<'a> Image<'a> {
    /// A linear picture that will be in a dma-buf.
    pub fn new(gpu: &'a Gpu, width: u32, height: u32) -> TestResult<Self> {
        let mut external = vk::ExternalMemoryImageCreateInfo::default().handle_types(DMA_BUF);
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(FORMAT)
            .extent(vk::Extent3D {
                width,
                height,
                depth: 1,
            })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::LINEAR)
            .usage(IMAGE_USE)
            .push_next(&mut external);
        // SAFETY: a complete description; ended by `drop`.
        let image = unsafe { gpu.device.create_image(&info, None) }.map_err(failed("image"))?;
        Ok(Self {
            gpu,
            image,
            memory: None,
        })
    }

    /// How many bytes it needs.
    pub fn size(&self) -> u64 {
        // SAFETY: an image of this device.
        unsafe { self.gpu.device.get_image_memory_requirements(self.image) }.size
    }

    /// Offset of the first row, and bytes from row to row.
    pub fn layout(&self) -> (u64, u64) {
        let part = vk::ImageSubresource::default().aspect_mask(vk::ImageAspectFlags::COLOR);
        // SAFETY: a linear image of this device.
        let layout = unsafe {
            self.gpu
                .device
                .get_image_subresource_layout(self.image, part)
        };
        (layout.offset, layout.row_pitch)
    }

    /// Puts it into a dma-buf.
    pub fn import(&mut self, file: OwnedFd, size: u64) -> TestResult {
        // SAFETY: an image of this device.
        let needs = unsafe { self.gpu.device.get_image_memory_requirements(self.image) };
        ensure!(needs.size <= size, "the image needs {} bytes", needs.size);
        let memory = import(
            self.gpu,
            file,
            size,
            needs.memory_type_bits,
            Some(self.image),
        )?;
        self.memory = Some(memory);
        // SAFETY: memory that is large enough, bound once.
        unsafe { self.gpu.device.bind_image_memory(self.image, memory, 0) }
            .map_err(failed("bind image"))
    }
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        // SAFETY: every use was waited for.
        unsafe {
            self.gpu.device.destroy_image(self.image, None);
            if let Some(memory) = self.memory {
                self.gpu.device.free_memory(memory, None);
            }
        }
    }
}

/// A buffer in a dma-buf, or in memory of the driver.
pub struct Buffer<'a> {
    gpu: &'a Gpu,
    /// The buffer.
    pub buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    size: u64,
}

impl<'a> Buffer<'a> {
    /// A buffer over somebody's dma-buf.
    pub fn import(gpu: &'a Gpu, file: OwnedFd, size: u64) -> TestResult<Self> {
        Self::with(gpu, size, |needs| {
            import(gpu, file, size, needs.memory_type_bits, None)
        })
    }

    /// A buffer of the driver that can be exported.
    pub fn new(gpu: &'a Gpu, size: u64) -> TestResult<Self> {
        Self::with(gpu, size, |needs| {
            let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(DMA_BUF);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(gpu.memory_type(needs.memory_type_bits)?)
                .push_next(&mut export);
            // SAFETY: a complete description; freed by `drop`.
            unsafe { gpu.device.allocate_memory(&info, None) }.map_err(failed("memory"))
        })
    }

    fn with(
        gpu: &'a Gpu,
        size: u64,
        make: impl FnOnce(vk::MemoryRequirements) -> TestResult<vk::DeviceMemory>,
    ) -> TestResult<Self> {
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(DMA_BUF);
        let info = vk::BufferCreateInfo::default()
            .size(size)
            .usage(BUFFER_USE)
            .push_next(&mut external);
        // SAFETY: a complete description; ended by `drop`.
        let buffer = unsafe { gpu.device.create_buffer(&info, None) }.map_err(failed("buffer"))?;
        // SAFETY: a buffer of this device.
        let needs = unsafe { gpu.device.get_buffer_memory_requirements(buffer) };
        let memory = make(needs)?;
        // SAFETY: memory that is large enough, bound once.
        unsafe { gpu.device.bind_buffer_memory(buffer, memory, 0) }
            .map_err(failed("bind buffer"))?;
        Ok(Self {
            gpu,
            buffer,
            memory,
            size,
        })
    }

    /// The memory as a dma-buf.
    pub fn export(&self) -> TestResult<OwnedFd> {
        let info = vk::MemoryGetFdInfoKHR::default()
            .memory(self.memory)
            .handle_type(DMA_BUF);
        // SAFETY: memory of this device that was made for export.
        let fd = unsafe { self.gpu.memory_fd.get_memory_fd(&info) }
            .map_err(failed("vkGetMemoryFdKHR"))?;
        // SAFETY: the call made the descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Lets the driver fill it with a word.
    pub fn fill(&self, word: u32) -> TestResult {
        // SAFETY: a buffer of this device, inside its size.
        self.gpu.run(|commands| unsafe {
            self.gpu
                .device
                .cmd_fill_buffer(commands, self.buffer, 0, self.size, word);
        })
    }

    /// Lets the driver copy all of it into another one.
    pub fn copy_to(&self, other: &Buffer<'_>) -> TestResult {
        self.gpu.run(|commands| self.record_copy(commands, other))
    }

    /// Records a copy of all of it into another one.
    pub fn record_copy(&self, commands: vk::CommandBuffer, other: &Buffer<'_>) {
        let all = [vk::BufferCopy::default().size(self.size.min(other.size))];
        // SAFETY: buffers of this device, inside their sizes; the caller records.
        unsafe {
            self.gpu
                .device
                .cmd_copy_buffer(commands, self.buffer, other.buffer, &all);
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: every use was waited for.
        unsafe {
            self.gpu.device.destroy_buffer(self.buffer, None);
            self.gpu.device.free_memory(self.memory, None);
        }
    }
}

fn import(
    gpu: &Gpu,
    file: OwnedFd,
    size: u64,
    allowed: u32,
    image: Option<vk::Image>,
) -> TestResult<vk::DeviceMemory> {
    let fd = file.into_raw_fd();
    let mut properties = vk::MemoryFdPropertiesKHR::default();
    // SAFETY: our descriptor, which this call only looks at.
    unsafe {
        gpu.memory_fd
            .get_memory_fd_properties(DMA_BUF, fd, &mut properties)
    }
    .map_err(failed("vkGetMemoryFdPropertiesKHR"))?;
    let kind = gpu.memory_type(allowed & properties.memory_type_bits)?;
    let mut import = vk::ImportMemoryFdInfoKHR::default()
        .handle_type(DMA_BUF)
        .fd(fd);
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().image(image.unwrap_or_default());
    let mut info = vk::MemoryAllocateInfo::default()
        .allocation_size(size)
        .memory_type_index(kind)
        .push_next(&mut import);
    if image.is_some() {
        info = info.push_next(&mut dedicated);
    }
    // SAFETY: a complete description; a success takes the descriptor over.
    match unsafe { gpu.device.allocate_memory(&info, None) } {
        Ok(memory) => Ok(memory),
        Err(error) => {
            // SAFETY: still ours.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            Err(failed("import of the dma-buf")(error))
        }
    }
}
