// SPDX-License-Identifier: GPL-2.0

//! What a process has made that takes memory or files, even if others use it now. It is charged to
//! the process's user and counted for the process, so that fdinfo shows which process made it.
//!
//! A holder lives as long as anything that was made through it.

use super::account::{
    Account,
    Exceeded,
    Limit, //
};
use crate::{
    logic::quota::Usage,
    sys::{
        alloc::pin_arc,
        mem::shmem::{
            Payer,
            SpareFile, //
        }, //
    }, //
};
use core::result::Result;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::Arc, //
};

/// The counts of one process.
#[pin_data]
pub(crate) struct Holder {
    account: Account,
    allocations: Usage,
    claimed: Usage,
    resident: Usage,
    files: Usage,
    /// The last small file that was made, if nobody uses it.
    #[pin]
    spare: SpareFile,
}

/// How much something takes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Amounts {
    /// Allocations, standalone or in resources.
    pub(crate) allocations: u32,
    /// Pages, touched or not.
    pub(crate) pages: u32,
    /// Files that are kept open.
    pub(crate) files: u32,
}

impl Amounts {
    /// In the order in which they are taken.
    fn each(self) -> [(Limit, u32); 3] {
        [
            (Limit::Allocations, self.allocations),
            (Limit::Claimed, self.pages),
            (Limit::Files, self.files),
        ]
    }
}

impl Holder {
    /// A holder of nothing, which charges `account`.
    pub(crate) fn new(account: Account) -> kernel::error::Result<Arc<Self>> {
        Ok(pin_arc(
            pin_init!(Self {
                account,
                allocations: Usage::new(),
                claimed: Usage::new(),
                resident: Usage::new(),
                files: Usage::new(),
                spare <- SpareFile::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Charges all of these until the result is dropped, or nothing.
    ///
    /// Context: may sleep, no locks held; not from the worker.
    pub(crate) fn charge(self: &Arc<Self>, amounts: Amounts) -> Result<Claim, Exceeded> {
        let mut claim = Claim {
            holder: self.clone(),
            amounts: Amounts::default(),
        };

        // What was taken so far is given back with the claim.
        self.take(Limit::Allocations, amounts.allocations)?;
        claim.amounts.allocations = amounts.allocations;
        self.take(Limit::Claimed, amounts.pages)?;
        claim.amounts.pages = amounts.pages;
        // A page fault cannot wait for retirements, so this does.
        if amounts.pages != 0 && !self.account.has_room(Limit::Resident, amounts.pages) {
            self.account.wait_for_retirements();
        }
        self.take(Limit::Files, amounts.files)?;
        claim.amounts.files = amounts.files;
        Ok(claim)
    }

    /// The account that is charged.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    fn usage(&self, limit: Limit) -> Option<&Usage> {
        match limit {
            Limit::Allocations => Some(&self.allocations),
            Limit::Claimed => Some(&self.claimed),
            Limit::Resident => Some(&self.resident),
            Limit::Files => Some(&self.files),
            _ => None,
        }
    }

    fn take(&self, limit: Limit, amount: u32) -> Result<(), Exceeded> {
        if amount == 0 {
            return Ok(());
        }
        self.account.take(limit, amount)?;
        self.count(limit, amount);
        Ok(())
    }

    /// Counts what the user was charged with. The sum fits, as that of the user does.
    fn count(&self, limit: Limit, amount: u32) {
        if let Some(usage) = self.usage(limit) {
            usage.take(amount, u32::MAX);
        }
    }

    fn put_back(&self, limit: Limit, amount: u32) {
        if amount == 0 {
            return;
        }
        if let Some(usage) = self.usage(limit) {
            usage.give_back(amount);
        }
        self.account.give_back(limit, amount);
    }

    /// Prints the numbers into fdinfo.
    pub(crate) fn show(&self, m: &SeqFile) {
        // CAST: a usize fits 64 bits.
        let bytes = |usage: &Usage| u64::from(usage.get()) * PAGE_SIZE as u64;

        seq_print!(m, "dxg-process-allocations:\t{}\n", self.allocations.get());
        seq_print!(m, "dxg-process-bytes:\t{}\n", bytes(&self.claimed));
        seq_print!(m, "dxg-process-resident:\t{}\n", bytes(&self.resident));
        seq_print!(m, "dxg-process-files:\t{}\n", self.files.get());
    }
}

/// Something that a process has made, until it is dropped.
pub(crate) struct Claim {
    holder: Arc<Holder>,
    amounts: Amounts,
}

impl Claim {
    /// Who has made it.
    pub(crate) fn holder(&self) -> &Arc<Holder> {
        &self.holder
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        for (limit, amount) in self.amounts.each() {
            self.holder.put_back(limit, amount);
        }
    }
}

/// Charges pages from their first touch on.
impl Payer for Arc<Holder> {
    fn spare(&self) -> &SpareFile {
        &self.spare
    }

    fn take_page(&self) -> bool {
        // A fault must not wait for anything that is being freed.
        let taken = self.account.take_now(Limit::Resident, 1).is_ok();

        if taken {
            self.count(Limit::Resident, 1);
        }
        taken
    }

    fn take_pages(&self, pages: usize) -> bool {
        let Ok(pages) = u32::try_from(pages) else {
            return false;
        };
        let taken = self.account.take_now(Limit::Resident, pages).is_ok();

        if taken {
            self.count(Limit::Resident, pages);
        }
        taken
    }

    fn give_back(&self, pages: usize) {
        // CAST: no more than were taken, below a limit of 32 bits.
        self.put_back(Limit::Resident, pages as u32);
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_holder)]
mod tests {
    use super::*;
    use crate::dxgk::quota::account::Accounts;

    /// RES-105: all or nothing, and everything is given back.
    #[test]
    fn a_claim_takes_all_or_nothing() -> kernel::error::Result {
        let account = Accounts::new()?.of_caller()?;
        let holder = Holder::new(account.clone())?;
        let amounts = Amounts {
            allocations: 1,
            pages: 3,
            files: 2,
        };
        let claim = holder.charge(amounts)?;
        let all = Amounts {
            files: u32::MAX,
            ..amounts
        };

        assert!(holder.charge(all).is_err());
        assert_eq!(
            (
                account.used(Limit::Allocations),
                account.used(Limit::Claimed),
                account.used(Limit::Files)
            ),
            (1, 3, 2)
        );
        assert_eq!(holder.claimed.get(), 3);
        drop(claim);
        assert_eq!(account.used(Limit::Claimed), 0);
        assert_eq!(holder.files.get(), 0);
        Ok(())
    }

    /// RES-105: a page that is touched is charged until it is given back.
    #[test]
    fn pages_are_paid_for() -> kernel::error::Result {
        let account = Accounts::new()?.of_caller()?;
        let holder = Holder::new(account.clone())?;

        for _ in 0..3 {
            assert!(holder.take_page());
        }
        assert_eq!(account.used(Limit::Resident), 3);
        assert!(holder.take_pages(4));
        assert!(!holder.take_pages(usize::MAX));
        assert_eq!(account.used(Limit::Resident), 7);
        Payer::give_back(&holder, 7);
        assert_eq!(account.used(Limit::Resident), 0);
        Ok(())
    }
}
