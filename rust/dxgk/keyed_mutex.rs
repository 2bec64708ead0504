// SPDX-License-Identifier: GPL-2.0

//! A keyed mutex.

use super::object::Header;
use kernel::{
    prelude::*,
    seq_file::SeqFile, //
};

/// See the module.
#[pin_data]
pub(crate) struct KeyedMutex {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
}

impl KeyedMutex {
    /// The last reference is gone.
    pub(crate) fn abandon(&self) {}

    /// Prints the state into fdinfo.
    pub(crate) fn show(&self, _m: &SeqFile) {}
}
