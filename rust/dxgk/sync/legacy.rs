// SPDX-License-Identifier: GPL-2.0

//! The synchronisation objects that the CPU neither waits on nor signals: mutex, semaphore, legacy
//! fence and CPU notification. Queued work of a context uses them (fences.md section 2.6).

use crate::dxgk::object::Header;
use crate::sys::alloc::pin_arc;
use crate::sys::file::eventfd::EventFd;
use kernel::{
    alloc::AllocError,
    new_work,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::Arc,
    workqueue::Work, //
};

/// The initial state of an object.
pub(crate) enum LegacyState {
    /// A mutex: whether it starts owned.
    Mutex { owned: bool },
    /// A semaphore; `initial` is at most `max`.
    Semaphore { initial: u32, max: u32 },
    /// A fence with one value.
    Fence { value: u64 },
    /// The event that a queued signal fires.
    CpuNotification { _event: EventFd },
}

/// A synchronisation object for queued work only.
#[pin_data]
pub(crate) struct LegacySync {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
    state: LegacyState,
    /// See [`super::retire`].
    #[pin]
    pub(in crate::dxgk) retirement: Work<LegacySync>,
}

impl LegacySync {
    /// A new object.
    pub(crate) fn new(
        header: impl PinInit<Header>,
        state: LegacyState,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                header <- header,
                state,
                retirement <- new_work!("LegacySync::retirement"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Prints the state into the fdinfo of an NT handle.
    pub(crate) fn show(&self, m: &SeqFile) {
        match &self.state {
            LegacyState::Mutex { owned } => seq_print!(m, "dxg-owned:\t{}\n", u32::from(*owned)),
            LegacyState::Semaphore { initial, max } => {
                seq_print!(m, "dxg-count:\t{}\n", initial);
                seq_print!(m, "dxg-max-count:\t{}\n", max);
            }
            LegacyState::Fence { value } => seq_print!(m, "dxg-value:\t{}\n", value),
            LegacyState::CpuNotification { .. } => {}
        }
    }
}
