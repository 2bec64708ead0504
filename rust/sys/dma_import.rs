// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of other drivers as memory (RES-87).
//!
//! The buffer is attached to a device of ours and mapped there for as long as we use it, which pins
//! it where it is: its exporter never has to tell us that it moved. Processors reach it through the
//! mapping in the kernel that the exporter makes.

use super::{
    ffi,
    pages::{
        PageRef,
        PageSource, //
    },
    shmem::BadSection, //
};
use crate::compat::dma;
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        code,
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// `FMODE_WRITE` of a file's mode.
const FMODE_WRITE: u32 = 1 << 1;

/// The device that buffers are attached to.
pub(crate) struct Importer {
    faux: NonNull<bindings::faux_device>,
}

// SAFETY: Devices are reference counted, and their functions take the locks they need.
unsafe impl Send for Importer {}
// SAFETY: As above.
unsafe impl Sync for Importer {}

impl Importer {
    /// Registers the device under this name.
    pub(crate) fn new(name: &CStr) -> Result<Arc<Self>> {
        // SAFETY: The name is copied; the result is an error or a registered device.
        let faux = from_err_ptr(unsafe { ffi::dxg_importer_new(name.as_char_ptr()) })?;
        let faux = NonNull::new(faux).ok_or(ENODEV)?;

        Ok(Arc::new(Self { faux }, GFP_KERNEL)?)
    }

    fn device(&self) -> *mut bindings::device {
        // SAFETY: The device is registered.
        unsafe { ffi::dxg_importer_device(self.faux.as_ptr()) }
    }
}

impl Drop for Importer {
    fn drop(&mut self) {
        // SAFETY: The device is registered, and this is the only place that unregisters it.
        unsafe { bindings::faux_device_destroy(self.faux.as_ptr()) }
    }
}

/// A counted reference to a dma-buf.
struct BufRef(NonNull<bindings::dma_buf>);

impl Drop for BufRef {
    fn drop(&mut self) {
        // SAFETY: We own the reference and give it back once.
        unsafe { bindings::dma_buf_put(self.0.as_ptr()) }
    }
}

/// A dma-buf attached to our device.
struct Attachment {
    attachment: NonNull<bindings::dma_buf_attachment>,
    buf: BufRef,
    _importer: Arc<Importer>,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // SAFETY: The attachment is one of this dma-buf, and nothing is mapped through it any more.
        unsafe { bindings::dma_buf_detach(self.buf.0.as_ptr(), self.attachment.as_ptr()) }
    }
}

/// An attached dma-buf that is mapped in our device.
struct DeviceMapping {
    table: NonNull<bindings::sg_table>,
    direction: dma::Direction,
    attached: Attachment,
}

impl DeviceMapping {
    /// The direction of what processors do with the buffer.
    fn cpu_direction(&self) -> dma::Direction {
        if self.direction == dma::TO_DEVICE {
            // Nobody on our side writes.
            dma::FROM_DEVICE
        } else {
            self.direction
        }
    }
}

impl Drop for DeviceMapping {
    fn drop(&mut self) {
        // SAFETY: The table came from this attachment with this direction.
        unsafe {
            bindings::dma_buf_unmap_attachment_unlocked(
                self.attached.attachment.as_ptr(),
                self.table.as_ptr(),
                self.direction,
            )
        }
    }
}

/// See the module.
///
/// # Invariants
///
/// `map` is a mapping of the whole dma-buf, and its first `count` pages have a `struct page`.
pub(crate) struct Imported {
    map: bindings::iosys_map,
    count: usize,
    mapping: DeviceMapping,
}

// SAFETY: All functions of dma-bufs take the locks they need.
unsafe impl Send for Imported {}
// SAFETY: As above; nothing here changes.
unsafe impl Sync for Imported {}

impl Imported {
    /// The first `count` pages of the dma-buf behind a descriptor of the caller.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn of_fd(
        importer: &Arc<Importer>,
        fd: u32,
        count: usize,
        write: bool,
    ) -> core::result::Result<Self, BadSection> {
        let fd = c_int::try_from(fd).map_err(|_| BadSection::Closed)?;
        // SAFETY: Any number may be asked for; the result is an error or owns a reference.
        let buf = match from_err_ptr(unsafe { bindings::dma_buf_get(fd) }) {
            Ok(buf) => BufRef(NonNull::new(buf).ok_or(BadSection::Closed)?),
            Err(error) if error == code::EBADF => return Err(BadSection::Closed),
            Err(_) => return Err(BadSection::Mismatch),
        };
        // SAFETY: The reference keeps the dma-buf and its file; neither member ever changes.
        let (size, mode) = unsafe {
            let buf = buf.0.as_ptr();

            ((*buf).size, (*(*buf).file).f_mode)
        };

        if count > size / PAGE_SIZE {
            return Err(BadSection::TooShort);
        }
        if write && mode & FMODE_WRITE == 0 {
            return Err(BadSection::Denied);
        }

        let mapping = Self::map(Self::attach(importer, buf)?, write)?;
        let mut map = bindings::iosys_map::default();

        // SAFETY: The dma-buf is attached and mapped; `map` is valid for the write.
        to_result(unsafe {
            bindings::dma_buf_vmap_unlocked(mapping.attached.buf.0.as_ptr(), &mut map)
        })
        .map_err(|error| match error {
            error if error == ENOMEM => BadSection::Failed(error),
            _ => BadSection::NoAccess,
        })?;

        // INVARIANT: Checked in the next step, before anybody can ask for a page.
        let imported = Self {
            map,
            count,
            mapping,
        };

        if (0..count).any(|index| imported.find(index).is_none()) {
            return Err(BadSection::NoAccess);
        }
        Ok(imported)
    }

    fn attach(
        importer: &Arc<Importer>,
        buf: BufRef,
    ) -> core::result::Result<Attachment, BadSection> {
        // SAFETY: Dma-buf and device are valid.
        let attachment = unsafe { bindings::dma_buf_attach(buf.0.as_ptr(), importer.device()) };
        let attachment = from_err_ptr(attachment);

        Ok(Attachment {
            attachment: attachment
                .and_then(|attachment| NonNull::new(attachment).ok_or(ENOMEM))
                .map_err(refused)?,
            buf,
            _importer: importer.clone(),
        })
    }

    fn map(attached: Attachment, write: bool) -> core::result::Result<DeviceMapping, BadSection> {
        let direction = if write {
            dma::BIDIRECTIONAL
        } else {
            dma::TO_DEVICE
        };
        // SAFETY: The attachment is valid, and nobody holds its reservation lock for us.
        let table = from_err_ptr(unsafe {
            bindings::dma_buf_map_attachment_unlocked(attached.attachment.as_ptr(), direction)
        });

        Ok(DeviceMapping {
            table: table
                .and_then(|table| NonNull::new(table).ok_or(ENOMEM))
                .map_err(refused)?,
            direction,
            attached,
        })
    }

    fn find(&self, index: usize) -> Option<NonNull<bindings::page>> {
        if self.map.is_iomem {
            return None;
        }
        // SAFETY: `count` pages of the buffer are mapped from this address on.
        NonNull::new(unsafe {
            ffi::dxg_kernel_page(self.map.__bindgen_anon_1.vaddr.byte_add(index * PAGE_SIZE))
        })
    }

    /// Makes what devices have written visible to processors, after they have written it. A signal
    /// may interrupt that with ERESTARTSYS.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn begin_cpu_access(&self) -> Result {
        let mapping = &self.mapping;

        // SAFETY: The dma-buf is referenced, and no lock of it is held.
        to_result(unsafe {
            bindings::dma_buf_begin_cpu_access(
                mapping.attached.buf.0.as_ptr(),
                mapping.cpu_direction(),
            )
        })
    }

    /// Makes what processors have written visible to devices.
    ///
    /// Context: as [`Imported::begin_cpu_access`].
    pub(crate) fn end_cpu_access(&self) {
        let mapping = &self.mapping;

        // SAFETY: As above. There is nothing to do about a failure.
        let _best_effort = unsafe {
            bindings::dma_buf_end_cpu_access(
                mapping.attached.buf.0.as_ptr(),
                mapping.cpu_direction(),
            )
        };
    }

    /// The name of the driver that the buffer came from.
    pub(crate) fn exporter(&self) -> &CStr {
        // SAFETY: The name of a dma-buf's exporter is a string that lives as long as the dma-buf.
        unsafe { CStr::from_char_ptr((*self.mapping.attached.buf.0.as_ptr()).exp_name) }
    }
}

/// Why an exporter did not want us.
fn refused(error: Error) -> BadSection {
    if error == ENOMEM {
        BadSection::Failed(error)
    } else {
        BadSection::NoAccess
    }
}

impl PageSource for Imported {
    fn count(&self) -> usize {
        self.count
    }

    fn page(&self, index: usize) -> Result<PageRef<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<PageRef<'_>> {
        let page = (index < self.count).then(|| self.find(index)).flatten()?;

        // SAFETY: The mappings keep the buffer where it is as long as `self` lives.
        Some(unsafe { PageRef::new(page) })
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this is a mapping of the dma-buf, removed once.
        unsafe {
            bindings::dma_buf_vunmap_unlocked(self.mapping.attached.buf.0.as_ptr(), &mut self.map)
        }
    }
}
