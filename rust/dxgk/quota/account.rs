// SPDX-License-Identifier: GPL-2.0

//! What each user has in use, and how much that may be (RES-105).
//!
//! A user is a kernel uid: the effective one of the process when it opens the device, or of the
//! task that calls on an NT handle. Quotas are per kuid, so creating a user namespace does not
//! raise them.
//!
//! The record of a user exists while something is charged or a reference to it exists. A charge
//! and its release are one atomic operation each.
//!
//! LOCK: `users` is a leaf, taken when a reference is looked up and when the last one of a user
//! goes.

use crate::{
    error::{
        DxgError,
        Status, //
    },
    logic::quota::Usage,
    sys::{
        alloc::{
            pin_arc,
            tree_node, //
        },
        params,
        strong_count::StrongCount,
        task::credentials::Credentials,
        wait_queue::WaitQueue,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// What is limited.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    /// Shareable objects.
    Objects,
    /// Names that the user has given.
    Names,
    /// Global handles.
    Globals,
    /// Bytes of information stores and private runtime data.
    Store,
    /// Watches and weak references.
    Watches,
    /// Fence values that the user waits for.
    WaitElements,
    /// Allocations, standalone or in resources.
    Allocations,
    /// Pages of their storage, touched or not.
    Claimed,
    /// Pages that were touched and so stay in memory.
    Resident,
    /// Files that are kept open without a descriptor.
    Files,
    /// Contexts that take packets, and HW queues.
    Queues,
    /// What is queued in them.
    QueuedItems,
    /// Bytes that this takes.
    QueuedBytes,
}

impl Limit {
    /// All of them, with the names that fdinfo shows.
    const ALL: [(Self, &'static CStr); 13] = [
        (Self::Objects, c"objects"),
        (Self::Names, c"names"),
        (Self::Globals, c"globals"),
        (Self::Store, c"store-bytes"),
        (Self::Watches, c"watches"),
        (Self::WaitElements, c"wait-elements"),
        (Self::Allocations, c"allocations"),
        (Self::Claimed, c"pages"),
        (Self::Resident, c"resident-pages"),
        (Self::Files, c"files"),
        (Self::Queues, c"queues"),
        (Self::QueuedItems, c"queued-items"),
        (Self::QueuedBytes, c"queued-bytes"),
    ];

    /// The most that a user may have.
    #[inline(always)]
    fn maximum(self) -> u32 {
        match self {
            Self::Objects => params::max_user_objects(),
            Self::Names => params::max_user_names(),
            Self::Globals => params::max_user_globals(),
            Self::Store => params::max_user_store(),
            Self::Watches => params::max_user_watches(),
            Self::WaitElements => params::max_user_wait_elements(),
            Self::Allocations => params::max_user_allocations(),
            Self::Claimed => params::max_user_claimed(),
            Self::Resident => params::max_user_resident(),
            Self::Files => params::max_user_files(),
            Self::Queues => params::max_user_queues(),
            Self::QueuedItems => params::max_user_queued_items(),
            Self::QueuedBytes => params::max_user_queued_bytes(),
        }
    }
}

/// The user is at a limit.
#[derive(Debug)]
pub(crate) struct Exceeded;

impl From<Exceeded> for Error {
    fn from(_: Exceeded) -> Self {
        ENOMEM
    }
}

impl From<Exceeded> for DxgError {
    fn from(_: Exceeded) -> Self {
        Status::NO_MEMORY.into()
    }
}

/// What is found through the accounts: every object has one, and no room for one reference more.
pub(crate) trait GlobalHandles: Send + Sync {
    /// A global handle never resolves again.
    ///
    /// Context: may sleep, no locks held.
    fn remove(&self, global: u32);
}

/// The records of all users.
#[pin_data]
pub(crate) struct Accounts {
    /// The global handles of their objects; `None` if no object is charged to these accounts.
    pub(crate) globals: Option<Arc<dyn GlobalHandles>>,
    /// By kernel uid.
    #[pin]
    users: SpinLock<RBTree<u32, Arc<User>>>,
}

/// What one user has.
#[pin_data]
struct User {
    accounts: Arc<Accounts>,
    uid: u32,
    /// How many [`Account`] there are. Goes to 0 under the lock only, together with the entry.
    references: StrongCount,
    objects: Usage,
    names: Usage,
    globals: Usage,
    store: Usage,
    watches: Usage,
    wait_elements: Usage,
    allocations: Usage,
    claimed: Usage,
    resident: Usage,
    files: Usage,
    queues: Usage,
    queued_items: Usage,
    queued_bytes: Usage,
    #[pin]
    retirements: Retirements,
}

/// Objects of a user that can no longer be used. They stay charged until the worker has ended
/// them.
#[pin_data]
struct Retirements {
    /// How many have begun so far, modulo 2^32.
    begun: Atomic<u32>,
    /// How many of these have ended.
    ended: Atomic<u32>,
    #[pin]
    progress: WaitQueue,
}

impl Retirements {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            begun: Atomic::new(0),
            ended: Atomic::new(0),
            progress <- WaitQueue::new(),
        })
    }

    /// Waits until as many have ended as have begun, or the caller is killed. The worker, which
    /// would wait for itself, goes on at once.
    fn wait(&self) {
        let begun = self.begun.load(Acquire);

        if self.ended.load(Acquire) != begun && !work::is_worker() {
            self.progress.wait_until_reached(&self.ended, begun);
        }
    }
}

impl User {
    #[inline(always)]
    fn usage(&self, limit: Limit) -> &Usage {
        match limit {
            Limit::Objects => &self.objects,
            Limit::Names => &self.names,
            Limit::Globals => &self.globals,
            Limit::Store => &self.store,
            Limit::Watches => &self.watches,
            Limit::WaitElements => &self.wait_elements,
            Limit::Allocations => &self.allocations,
            Limit::Claimed => &self.claimed,
            Limit::Resident => &self.resident,
            Limit::Files => &self.files,
            Limit::Queues => &self.queues,
            Limit::QueuedItems => &self.queued_items,
            Limit::QueuedBytes => &self.queued_bytes,
        }
    }
}

impl Accounts {
    /// No users, and nobody who makes objects.
    pub(crate) fn new() -> Result<Arc<Self>, AllocError> {
        Self::of_objects(None)
    }

    /// No users, whose objects have these global handles.
    pub(crate) fn of_objects(
        globals: Option<Arc<dyn GlobalHandles>>,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                globals,
                users <- new_spinlock!(RBTree::new(), "Accounts::users"),
            }),
            GFP_KERNEL,
        )
    }

    /// The account of the calling task's user.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn of_caller(self: &Arc<Self>) -> Result<Account, AllocError> {
        self.of_user(Credentials::of_caller().user())
    }

    fn of_user(self: &Arc<Self>, uid: u32) -> Result<Account, AllocError> {
        let known = self.users.lock().get(&uid).map(Account::of);

        if let Some(known) = known {
            return Ok(known);
        }

        let user = pin_arc(
            pin_init!(User {
                accounts: self.clone(),
                uid,
                references: StrongCount::new(),
                objects: Usage::new(),
                names: Usage::new(),
                globals: Usage::new(),
                store: Usage::new(),
                watches: Usage::new(),
                wait_elements: Usage::new(),
                allocations: Usage::new(),
                claimed: Usage::new(),
                resident: Usage::new(),
                files: Usage::new(),
                queues: Usage::new(),
                queued_items: Usage::new(),
                queued_bytes: Usage::new(),
                retirements <- Retirements::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let node = tree_node(uid, user.clone())?;
        let mut users = self.users.lock();

        // Another thread may have made it meanwhile. What is not used was declared before the lock
        // and is dropped after it; it is no account yet.
        if let Some(known) = users.get(&uid) {
            return Ok(Account::of(known));
        }
        users.insert(node);
        Ok(Account(user))
    }

    /// How many users have something.
    #[cfg(CONFIG_KUNIT = "y")]
    fn count(&self) -> usize {
        self.users.lock().iter().count()
    }
}

/// A reference to the record of a user.
pub(crate) struct Account(Arc<User>);

impl Account {
    /// One more reference to a record that has one, or is in the table and the table is locked.
    fn of(user: &Arc<User>) -> Self {
        user.references.inc();
        Self(user.clone())
    }

    /// All users.
    pub(crate) fn accounts(&self) -> &Arc<Accounts> {
        &self.0.accounts
    }

    /// Charges `amount`, until the result is dropped. Waits for running retirements before it
    /// refuses.
    ///
    /// Context: may sleep, no locks held; not from the worker.
    pub(crate) fn charge(
        &self,
        limit: Limit,
        amount: u32,
    ) -> core::result::Result<Charge, Exceeded> {
        self.take(limit, amount)?;
        Ok(Charge {
            account: self.clone(),
            limit,
            amount,
        })
    }

    /// The same until [`Account::give_back`], for callers that keep the account anyway. They say
    /// which limit, so that nothing of this depends on it when it is executed.
    #[inline(always)]
    pub(in crate::dxgk) fn take(
        &self,
        limit: Limit,
        amount: u32,
    ) -> core::result::Result<(), Exceeded> {
        self.take_now(limit, amount)
            .or_else(|Exceeded| self.take_after_retirements(limit, amount))
    }

    /// Retirements release charges, also one that has ended since.
    #[cold]
    #[inline(never)]
    fn take_after_retirements(
        &self,
        limit: Limit,
        amount: u32,
    ) -> core::result::Result<(), Exceeded> {
        self.wait_for_retirements();
        self.take_now(limit, amount)
    }

    /// Releases what was taken.
    pub(in crate::dxgk) fn give_back(&self, limit: Limit, amount: u32) {
        self.0.usage(limit).give_back(amount);
    }
}

impl Account {
    /// Something of this user is handed to the worker.
    pub(in crate::dxgk) fn begin_retirement(&self) {
        self.0.retirements.begun.fetch_add(1, Full);
    }

    /// The worker has ended it and released its charge.
    pub(in crate::dxgk) fn end_retirement(&self) {
        self.0.retirements.ended.fetch_add(1, Full);
        self.0.retirements.progress.wake();
    }

    /// Waits until the worker has ended what it has of this user, so that the charges are
    /// released. A caller that is killed goes on at once, and so does the worker: a KMD that it has
    /// told of the end of an allocation may make something.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn wait_for_retirements(&self) {
        self.0.retirements.wait();
    }

    /// As [`Account::take`], for callers that cannot wait.
    #[inline(always)]
    pub(in crate::dxgk) fn take_now(
        &self,
        limit: Limit,
        amount: u32,
    ) -> core::result::Result<(), Exceeded> {
        if self.0.usage(limit).take(amount, limit.maximum()) {
            Ok(())
        } else {
            Err(Exceeded)
        }
    }

    /// Whether `amount` could be charged now.
    pub(in crate::dxgk) fn has_room(&self, limit: Limit, amount: u32) -> bool {
        let used = self.0.usage(limit).get();

        used.saturating_add(amount) <= limit.maximum()
    }

    /// Prints how much the user has of everything, and may have, into fdinfo.
    pub(crate) fn show(&self, m: &SeqFile) {
        for (limit, name) in Limit::ALL {
            let used = self.0.usage(limit).get();

            seq_print!(m, "dxg-user-{}:\t{used} of {}\n", name, limit.maximum());
        }
    }

    /// How much is in use.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(in crate::dxgk) fn used(&self, limit: Limit) -> u32 {
        self.0.usage(limit).get()
    }
}

impl Clone for Account {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl Drop for Account {
    /// Context: no locks held.
    fn drop(&mut self) {
        let user = &self.0;

        // The last one is dropped under the lock, so that no lookup finds a record that goes.
        if user.references.dec_not_one() {
            return;
        }

        let mut users = user.accounts.users.lock();
        let last = user.references.dec_and_test();
        let removed = last.then(|| users.remove_node(&user.uid)).flatten();

        drop(users);
        drop(removed);
    }
}

/// A charge to a user, released on drop.
pub(crate) struct Charge {
    account: Account,
    limit: Limit,
    amount: u32,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.0.usage(self.limit).give_back(self.amount);
    }
}

/// The charge of one object to a user, released on drop. Every object has one, so it says nothing
/// else.
pub(crate) struct ObjectCharge(Account);

impl ObjectCharge {
    /// Charges one object.
    ///
    /// Context: may sleep, no locks held; not from the worker.
    pub(crate) fn new(account: &Account) -> core::result::Result<Self, Exceeded> {
        account.take(Limit::Objects, 1)?;
        Ok(Self(account.clone()))
    }

    /// Whose it is.
    pub(crate) fn account(&self) -> &Account {
        &self.0
    }
}

impl Drop for ObjectCharge {
    fn drop(&mut self) {
        self.0.give_back(Limit::Objects, 1);
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_account)]
mod tests {
    use super::*;

    /// RES-105.
    #[test]
    fn a_charge_is_given_back() -> Result {
        let accounts = Accounts::new()?;
        let account = accounts.of_user(7)?;
        let limit = Limit::Watches.maximum();
        let charge = account.charge(Limit::Watches, limit - 1)?;

        assert!(account.charge(Limit::Watches, 2).is_err());
        assert!(account.charge(Limit::Watches, 1).is_ok());
        assert!(account.charge(Limit::Names, 1).is_ok());
        drop(charge);
        assert!(account.charge(Limit::Watches, limit).is_ok());
        Ok(())
    }

    /// RES-105: users are apart, and what one has is one record.
    #[test]
    fn users_have_an_account_each() -> Result {
        let accounts = Accounts::new()?;
        let first = accounts.of_user(7)?;
        let charge = accounts
            .of_user(7)?
            .charge(Limit::Names, Limit::Names.maximum())?;

        assert!(first.charge(Limit::Names, 1).is_err());
        assert!(accounts.of_user(8)?.charge(Limit::Names, 1).is_ok());
        drop(charge);
        assert!(first.charge(Limit::Names, 1).is_ok());
        Ok(())
    }

    /// A record is kept by references and by charges, and by nothing else.
    #[test]
    fn an_unused_account_disappears() -> Result {
        let accounts = Accounts::new()?;
        let account = accounts.of_user(7)?;
        let charge = account.charge(Limit::Store, 100)?;

        drop(account);
        assert_eq!(accounts.count(), 1);
        drop(charge);
        assert_eq!(accounts.count(), 0);
        Ok(())
    }
}
