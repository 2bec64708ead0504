// SPDX-License-Identifier: GPL-2.0

//! All that one process has: its handles, its mappings, its pending waits.
//!
//! A process object stands for one thread group with one address space (RES-8). The first open of
//! the device makes it, all opens of the process share it, and it is emptied when the last of them
//! is closed, the process dies or it runs another program, whichever comes first: a descriptor that
//! another process has does not keep what its opener owned.

use super::{
    account::Account,
    address_space::AddressSpace,
    census::{
        next_id,
        Member,
        PROCESSES, //
    },
    handle_table::HandleTable,
    pending_waits::PendingWaits,
    value_cell::CellPool, //
};
use crate::sys::{
    caller::Identity,
    mm_end::Listener, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// See the module.
#[pin_data]
pub(crate) struct Process {
    /// Its number, for fdinfo.
    pub(crate) id: u64,
    /// Local handles.
    #[pin]
    pub(crate) handles: HandleTable,
    /// Waits that no thread sleeps in.
    pub(crate) waits: Arc<PendingWaits>,
    /// Its mappings, and who it is.
    pub(crate) space: Arc<AddressSpace>,
    /// Values of fences that are not shareable.
    pub(crate) cells: Arc<CellPool>,
    /// What the user has who opened the device.
    pub(crate) account: Account,
    _member: Member,
}

impl Process {
    /// The process `identity`, with nothing in it.
    pub(crate) fn new(identity: Identity, account: Account) -> Result<Arc<Self>> {
        let space = AddressSpace::new(identity)?;
        let cells = CellPool::new(space.clone())?;
        let waits = PendingWaits::new()?;

        Arc::pin_init(
            pin_init!(Self {
                id: next_id(),
                handles <- HandleTable::new(),
                waits,
                space,
                cells,
                account,
                _member: PROCESSES.enter(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Releases everything: waits first, then handles (FEN-89). May be called more than once.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        self.waits.close();
        self.handles.close();
    }
}

impl Listener for Process {
    fn ended(&self) {
        self.close();
    }
}
