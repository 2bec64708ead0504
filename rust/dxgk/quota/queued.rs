// SPDX-License-Identifier: GPL-2.0

//! What is queued for later, charged to the user of the process that has queued it until it is
//! through or discarded (FEN-45).

use super::account::{
    Account,
    Exceeded,
    Limit, //
};

/// What a user is charged for something queued, until this is dropped.
pub(in crate::dxgk) struct QueuedCharge {
    account: Account,
    bytes: u32,
}

impl QueuedCharge {
    /// Charges one item that takes about so many bytes, or nothing.
    ///
    /// Context: may sleep, no locks held; not from the worker.
    pub(in crate::dxgk) fn new(account: &Account, bytes: usize) -> Result<Self, Exceeded> {
        // A call has a few thousand elements at most.
        let bytes = u32::try_from(bytes).map_err(|_| Exceeded)?;

        account.take(Limit::QueuedItems, 1)?;
        account.take(Limit::QueuedBytes, bytes).inspect_err(|_| {
            account.give_back(Limit::QueuedItems, 1);
        })?;
        Ok(Self {
            account: account.clone(),
            bytes,
        })
    }
}

impl Drop for QueuedCharge {
    fn drop(&mut self) {
        self.account.give_back(Limit::QueuedBytes, self.bytes);
        self.account.give_back(Limit::QueuedItems, 1);
    }
}
