// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws a triangle: a render pass with a pipeline of two shaders.

use std::path::Path;

use ash::vk;
use selftests::{Failure, TestResult};

use crate::failed;
use crate::gpu::Gpu;
use crate::imported::{Image, FORMAT};
use crate::semaphore::Semaphore;

/// Colour around the triangle: red, green, blue, opacity.
pub const GROUND: [u8; 4] = [0, 0, 255, 255];
/// Colour of the triangle; half of green may be rounded either way.
pub const TRIANGLE: [u8; 4] = [255, 128, 0, 255];

/// Draws into the picture and waits until it is there.
pub fn draw(gpu: &Gpu, image: &Image<'_>, width: u32, height: u32) -> TestResult {
    draw_and(gpu, image, width, height, None, || Ok(()))
}

/// Draws into the picture and signals a semaphore. Before it waits until the picture is there, it
/// does something else.
pub fn draw_and(
    gpu: &Gpu,
    image: &Image<'_>,
    width: u32,
    height: u32,
    drawn: Option<&Semaphore<'_>>,
    meanwhile: impl FnOnce() -> TestResult,
) -> TestResult {
    let device = &gpu.device;
    let area = vk::Rect2D {
        offset: vk::Offset2D::default(),
        extent: vk::Extent2D { width, height },
    };
    // SAFETY: complete descriptions of objects of one device; all are ended below, after the queue
    // is idle.
    unsafe {
        let pass = render_pass(gpu)?;
        let view = device
            .create_image_view(
                &vk::ImageViewCreateInfo::default()
                    .image(image.image)
                    .view_type(vk::ImageViewType::TYPE_2D)
                    .format(FORMAT)
                    .subresource_range(vk::ImageSubresourceRange {
                        aspect_mask: vk::ImageAspectFlags::COLOR,
                        level_count: 1,
                        layer_count: 1,
                        ..Default::default()
                    }),
                None,
            )
            .map_err(failed("view"))?;
        let views = [view];
        let frame = device
            .create_framebuffer(
                &vk::FramebufferCreateInfo::default()
                    .render_pass(pass)
                    .attachments(&views)
                    .width(width)
                    .height(height)
                    .layers(1),
                None,
            )
            .map_err(failed("framebuffer"))?;
        let layout = device
            .create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default(), None)
            .map_err(failed("pipeline layout"))?;
        let pipeline = pipeline(gpu, pass, layout, area)?;
        let clear = [vk::ClearValue {
            color: vk::ClearColorValue {
                float32: [0.0, 0.0, 1.0, 1.0],
            },
        }];
        let begin = vk::RenderPassBeginInfo::default()
            .render_pass(pass)
            .framebuffer(frame)
            .render_area(area)
            .clear_values(&clear);
        let submitted = gpu.submit(
            |commands| {
                device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
                device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
                device.cmd_draw(commands, 3, 1, 0, 0);
                device.cmd_end_render_pass(commands);
            },
            None,
            drawn,
        );
        let done = submitted.and_then(|submitted| {
            meanwhile()?;
            submitted.finish()
        });
        device.destroy_pipeline(pipeline, None);
        device.destroy_pipeline_layout(layout, None);
        device.destroy_framebuffer(frame, None);
        device.destroy_image_view(view, None);
        device.destroy_render_pass(pass, None);
        done
    }
}

/// One picture, cleared at first, stored at last.
///
/// # Safety
///
/// The caller ends it before the device.
unsafe fn render_pass(gpu: &Gpu) -> TestResult<vk::RenderPass> {
    let attachments = [vk::AttachmentDescription::default()
        .format(FORMAT)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)
        .initial_layout(vk::ImageLayout::UNDEFINED)
        .final_layout(vk::ImageLayout::GENERAL)];
    let colours =
        [vk::AttachmentReference::default().layout(vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL)];
    let passes = [vk::SubpassDescription::default().color_attachments(&colours)];
    let info = vk::RenderPassCreateInfo::default()
        .attachments(&attachments)
        .subpasses(&passes);
    // SAFETY: a complete description.
    unsafe { gpu.device.create_render_pass(&info, None) }.map_err(failed("render pass"))
}

/// A compiled shader, which lies beside this program.
fn shader(gpu: &Gpu, name: &str) -> TestResult<vk::ShaderModule> {
    let own = std::env::current_exe()?;
    let path = own.parent().unwrap_or(Path::new("/")).join(name);
    let bytes =
        std::fs::read(&path).map_err(|error| Failure::Failed(format!("{path:?}: {error}")))?;
    let words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let words: Vec<u32> = words.collect();
    let info = vk::ShaderModuleCreateInfo::default().code(&words);
    // SAFETY: code that the compiler made.
    unsafe { gpu.device.create_shader_module(&info, None) }.map_err(failed("shader"))
}

/// # Safety
///
/// The caller ends it before the device.
unsafe fn pipeline(
    gpu: &Gpu,
    pass: vk::RenderPass,
    layout: vk::PipelineLayout,
    area: vk::Rect2D,
) -> TestResult<vk::Pipeline> {
    let shaders = [
        shader(gpu, "triangle.vert.spv")?,
        shader(gpu, "triangle.frag.spv")?,
    ];
    let kinds = [vk::ShaderStageFlags::VERTEX, vk::ShaderStageFlags::FRAGMENT];
    let stages = [0, 1].map(|index| {
        vk::PipelineShaderStageCreateInfo::default()
            .stage(kinds[index])
            .module(shaders[index])
            .name(c"main")
    });
    let input = vk::PipelineVertexInputStateCreateInfo::default();
    let assembly = vk::PipelineInputAssemblyStateCreateInfo::default()
        .topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let extent = area.extent;
    let views = [vk::Viewport {
        width: extent.width as f32,
        height: extent.height as f32,
        max_depth: 1.0,
        ..Default::default()
    }];
    let scissors = [area];
    let viewport = vk::PipelineViewportStateCreateInfo::default()
        .viewports(&views)
        .scissors(&scissors);
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples = vk::PipelineMultisampleStateCreateInfo::default()
        .rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let targets = [vk::PipelineColorBlendAttachmentState::default()
        .color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&targets);
    let info = [vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&input)
        .input_assembly_state(&assembly)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .color_blend_state(&blend)
        .render_pass(pass)
        .layout(layout)];
    // SAFETY: a complete description; the shaders are not needed afterwards.
    unsafe {
        let made = gpu
            .device
            .create_graphics_pipelines(vk::PipelineCache::null(), &info, None);
        for shader in shaders {
            gpu.device.destroy_shader_module(shader, None);
        }
        made.map(|pipelines| pipelines[0])
            .map_err(|(_, error)| failed("pipeline")(error))
    }
}
