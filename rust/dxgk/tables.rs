// SPDX-License-Identifier: GPL-2.0

//! The tables that are shared by all processes.

use super::{
    object::Globals,
    quota::account::Accounts,
    share::Names, //
};
use crate::sys::alloc::pin_arc;
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// The tables of the module. What is in one of them has a reference to it, to remove itself at its
/// end.
pub(crate) struct Tables {
    /// Global handles.
    pub(crate) globals: Arc<Globals>,
    /// Names of shares.
    pub(crate) names: Arc<Names>,
    /// What each user has.
    pub(crate) accounts: Arc<Accounts>,
}

impl Tables {
    /// Empty tables.
    pub(crate) fn new() -> Result<Self, AllocError> {
        let globals = pin_arc(Globals::new(), GFP_KERNEL)?;

        Ok(Self {
            accounts: Accounts::of_objects(Some(globals.clone()))?,
            names: pin_arc(Names::new(), GFP_KERNEL)?,
            globals,
        })
    }
}
