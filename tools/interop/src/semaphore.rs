// SPDX-License-Identifier: MIT OR Apache-2.0
//! Semaphores of Vulkan as sync files.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use ash::vk;
use selftests::TestResult;

use crate::failed;
use crate::gpu::Gpu;

const SYNC_FD: vk::ExternalSemaphoreHandleTypeFlags = vk::ExternalSemaphoreHandleTypeFlags::SYNC_FD;

/// One that can become a sync file, or be made of one.
pub struct Semaphore<'a> {
    gpu: &'a Gpu,
    semaphore: vk::Semaphore,
}

impl<'a> Semaphore<'a> {
    /// One that nobody has signalled.
    pub fn new(gpu: &'a Gpu) -> TestResult<Self> {
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(SYNC_FD);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut export);
        let semaphore =
            // SAFETY: a complete description; ended by `drop`.
            unsafe { gpu.device.create_semaphore(&info, None) }.map_err(failed("semaphore"))?;
        Ok(Self { gpu, semaphore })
    }

    /// For calls of Vulkan.
    pub fn raw(&self) -> vk::Semaphore {
        self.semaphore
    }

    /// What a submission will signal, as a sync file; `None` if it has done so already.
    pub fn export(&self) -> TestResult<Option<OwnedFd>> {
        let info = vk::SemaphoreGetFdInfoKHR::default()
            .semaphore(self.semaphore)
            .handle_type(SYNC_FD);
        // SAFETY: a semaphore of this device that was made for export.
        let fd = unsafe { self.gpu.semaphore_fd.get_semaphore_fd(&info) }
            .map_err(failed("vkGetSemaphoreFdKHR"))?;
        // SAFETY: the call made the descriptor for us. By the rules of Vulkan -1 is a semaphore
        // that is signalled.
        Ok((fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next wait for this semaphore waits for a sync file.
    pub fn import(&self, file: OwnedFd) -> TestResult {
        let fd = file.into_raw_fd();
        let info = vk::ImportSemaphoreFdInfoKHR::default()
            .semaphore(self.semaphore)
            .flags(vk::SemaphoreImportFlags::TEMPORARY)
            .handle_type(SYNC_FD)
            .fd(fd);
        // SAFETY: a semaphore that nobody uses; a success takes the descriptor over.
        unsafe { self.gpu.semaphore_fd.import_semaphore_fd(&info) }.map_err(|error| {
            // SAFETY: still ours.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            failed("vkImportSemaphoreFdKHR")(error)
        })
    }
}

impl Drop for Semaphore<'_> {
    fn drop(&mut self) {
        // SAFETY: every use was waited for.
        unsafe { self.gpu.device.destroy_semaphore(self.semaphore, None) };
    }
}
