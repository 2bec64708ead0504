// SPDX-License-Identifier: GPL-2.0

//! The tables that are shared by all processes.

use super::global_table::GlobalTable;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// See the module. Every object has a reference, to take itself out at its end.
#[pin_data]
pub(crate) struct Tables {
    /// Global handles.
    #[pin]
    pub(crate) globals: GlobalTable,
}

impl Tables {
    /// Empty tables.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                globals <- GlobalTable::new(),
            }),
            GFP_KERNEL,
        )
    }
}
