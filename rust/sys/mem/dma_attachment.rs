// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of other drivers while engines use them (RES-87): attached to the device that stands
//! for all engines, and mapped for it, so that their pages stay where they are.

use super::{
    dma_import::Imported,
    pages::{
        Caching,
        Frame,
        PageSource,
        MAX_PAGES, //
    }, //
};
use crate::{
    compat::dma,
    sys::ffi, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

/// The device that stands for all engines, until this is dropped.
///
/// INVARIANT: it is there as long as this, and nothing is attached to it afterwards.
pub(crate) struct EngineDevice(());

impl EngineDevice {
    /// Adds it. There must be no other.
    ///
    /// Context: the start of the module.
    pub(crate) fn add() -> Result<Self> {
        // SAFETY: The module does this once, before anything can be attached.
        to_result(unsafe { ffi::dxg_engines_add() })?;
        Ok(Self(()))
    }
}

impl Drop for EngineDevice {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and nothing is attached any more: whatever could be has
        // ended.
        unsafe { ffi::dxg_engines_remove() }
    }
}

/// An attached dma-buf.
pub(crate) struct Attached {
    imported: Arc<Imported>,
    direction: dma::Direction,
    /// INVARIANT: of `imported`, for `direction`.
    attachment: ffi::dxg_attachment,
    /// INVARIANT: the frames of the first pages, which the attachment keeps where they are. They
    /// are memory of the system.
    frames: KVVec<u64>,
}

// SAFETY: An attachment may be ended by any thread, and nothing else here changes.
unsafe impl Send for Attached {}
// SAFETY: As above.
unsafe impl Sync for Attached {}

impl Attached {
    /// Attaches it. EOPNOTSUPP if engines cannot reach its bytes; whatever else its exporter says.
    ///
    /// Context: may sleep, no lock of a dma-buf held.
    pub(crate) fn new(imported: Arc<Imported>) -> Result<Self> {
        let direction = match imported.write {
            true => dma::BIDIRECTIONAL,
            false => dma::TO_DEVICE,
        };

        if imported.count > MAX_PAGES {
            return Err(ENOMEM);
        }

        let mut frames = KVVec::from_elem(0u64, imported.count, GFP_KERNEL_ACCOUNT)?;
        let mut attachment = ffi::dxg_attachment {
            attachment: core::ptr::null_mut(),
            table: core::ptr::null_mut(),
        };

        // SAFETY: The dma-buf is referenced, no lock of it is held, and there is room for as many
        // frames.
        to_result(unsafe {
            ffi::dxg_dma_buf_attach(
                imported.buf.as_ptr(),
                direction,
                frames.as_mut_ptr(),
                frames.len(),
                &mut attachment,
            )
        })?;

        // INVARIANT: What succeeded has made both.
        Ok(Self {
            imported,
            direction,
            attachment,
            frames,
        })
    }
}

impl PageSource for Attached {
    fn count(&self) -> usize {
        self.frames.len()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let number = usize::try_from(*self.frames.get(index)?).ok()?;

        // SAFETY: By the type invariant it is memory that stays there as long as `self`. The
        // exporter gave it to this importer, and whoever made `imported` may use it.
        Some(unsafe { Frame::of_number(number, Caching::Cached) })
    }

    fn taken(&self) -> usize {
        self.frames.len()
    }
}

impl Drop for Attached {
    /// Context: may sleep, no lock of a dma-buf held.
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody uses the frames any more.
        unsafe {
            ffi::dxg_dma_buf_detach(self.imported.buf.as_ptr(), self.direction, &self.attachment)
        }
    }
}
