// SPDX-License-Identifier: GPL-2.0

//! The tables that are shared by all processes.

use super::{
    quota::account::Accounts,
    share::{
        global_table::GlobalTable,
        name_table::NameTable,
        shared_fences::SharedFences,
        Share, //
    }, //
};
use crate::sys::alloc::pin_arc;
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// The tables of the module. Every object has a reference, to remove itself at its end.
#[pin_data]
pub(crate) struct Tables {
    /// Global handles.
    #[pin]
    pub(crate) globals: GlobalTable,
    /// Names of shares.
    #[pin]
    pub(crate) names: NameTable<Arc<Share>>,
    /// Fences that NT handles keep.
    #[pin]
    pub(crate) shared_fences: SharedFences,
    /// What each user has.
    pub(crate) accounts: Arc<Accounts>,
}

impl Tables {
    /// Empty tables.
    pub(crate) fn new() -> Result<Arc<Self>, AllocError> {
        let accounts = Accounts::new()?;

        pin_arc(
            pin_init!(Self {
                globals <- GlobalTable::new(),
                names <- NameTable::new(),
                shared_fences <- SharedFences::new(),
                accounts,
            }),
            GFP_KERNEL,
        )
    }
}
