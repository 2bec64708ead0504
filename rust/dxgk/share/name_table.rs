// SPDX-License-Identifier: GPL-2.0

//! The table of names: from a path to a share (RES-38 to RES-46).
//!
//! One table serves all IPC namespaces. The id of the namespace, which is never reused, is part of
//! the key. A name lives as long as an NT handle of its share: the table refers to the share
//! without counting as a handle, and the last handle removes the entry. An entry is made in two
//! steps. A *reserved* name is taken but does not resolve; a *committed* one can be opened (RES-3).
//!
//! LOCK: `names` is a mutex below which nothing is taken. It is locked when a named share is made,
//! opened by name, and when its last handle goes; nothing is allocated or dropped under it.

use super::name::Name;
use crate::dxgk::quota::account::{
    Account,
    Charge,
    Limit, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        access::{
            Type,
            Wanted, //
        },
        name_mode::{
            self,
            ModeClass,
            Refusal,
            Rule, //
        }, //
    },
    sys::alloc::tree_node,
    sys::task::credentials::Credentials, //
};
use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        CondVar,
        Mutex, //
    }, //
};

/// The target of a name.
pub(crate) trait Named: Clone + Unpin {
    /// One handle that keeps the name.
    type Ref;

    /// Counts one more handle, unless the last one is gone already. Called with the table locked.
    fn new_ref(&self) -> Option<Self::Ref>;

    /// Whether both are the same.
    fn is(&self, other: &Self) -> bool;
}

/// An opened name: the new handle and its access.
pub(crate) type OpenedName<T> = (<T as Named>::Ref, u32);

/// What became of a name that was to be reserved.
pub(crate) enum Reservation<'a, T: Named> {
    /// Nobody had it. It is taken, and does not resolve before it is committed.
    Reserved(ReservedName<'a, T>),
    /// Another share has it, and was opened.
    Exists(OpenedName<T>),
}

/// A name that is taken and does not resolve yet. The last handle of its share takes it back, so
/// dropping this does nothing.
pub(crate) struct ReservedName<'a, T: Named> {
    table: &'a NameTable<T>,
    name: Name,
    share: T,
}

impl<T: Named> ReservedName<'_, T> {
    /// Makes the name lead to its share. Cannot fail.
    pub(crate) fn commit(self) {
        self.table.commit(&self.name, &self.share);
    }
}

struct Entry<T> {
    owner: Credentials,
    rule: Rule,
    share: T,
    published: bool,
    _charge: Charge,
}

impl<T> Entry<T> {
    /// The access that the caller gets.
    fn check_access(&self, ty: Type, wanted: Option<Wanted>) -> core::result::Result<u32, Refusal> {
        let caller = Credentials::of_caller();
        let class = if caller.acts_as(&self.owner) {
            ModeClass::Owner
        } else if caller.in_group_of(&self.owner) {
            ModeClass::Group
        } else {
            ModeClass::Other
        };

        self.rule.open(class, ty, wanted).or_else(|refusal| {
            if Credentials::caller_is_ipc_owner() {
                self.rule.open(ModeClass::Privileged, ty, wanted)
            } else {
                Err(refusal)
            }
        })
    }
}

/// Names of all IPC namespaces, and what they lead to.
#[pin_data]
pub(crate) struct NameTable<T> {
    #[pin]
    names: Mutex<RBTree<Name, Entry<T>>>,
    /// Some entry was published or taken out.
    #[pin]
    settled: CondVar,
}

impl<T: Named> NameTable<T> {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            names <- new_mutex!(RBTree::new(), "NameTable::names"),
            settled <- new_condvar!("NameTable::settled"),
        })
    }

    /// Reserves `name` for `share` in the name of the calling task's user.
    ///
    /// If it is taken and `open_if` is some access, the share that has it is opened instead.
    ///
    /// Context: may sleep, no locks held. The last handle of `share` must call [`Self::remove`],
    /// which also takes a reservation back.
    pub(crate) fn reserve(
        &self,
        account: &Account,
        name: &Name,
        rule: Rule,
        share: &T,
        open_if: Option<Wanted>,
    ) -> DxgResult<Reservation<'_, T>> {
        loop {
            // Opening charges nothing, so it comes before the charge.
            if let Some(wanted) = open_if {
                let opened = self.open_settled(name, rule.ty, wanted)?;

                if let Some(opened) = opened {
                    return Ok(Reservation::Exists(opened));
                }
            }

            let entry = Entry {
                owner: Credentials::of_caller(),
                rule,
                share: share.clone(),
                published: false,
                _charge: account.charge(Limit::Names, 1)?,
            };
            // Declared before the lock: what is not used is dropped after it.
            let node = tree_node(name.clone(), entry)?;
            let mut names = self.names.lock();

            if names.get(name).is_none() {
                names.insert(node);
                drop(names);
                return Ok(Reservation::Reserved(ReservedName {
                    table: self,
                    name: name.clone(),
                    share: share.clone(),
                }));
            }
            if open_if.is_none() {
                return Err(Status::OBJECT_NAME_COLLISION.into());
            }
        }
    }

    /// Opens the share that has a name, if the name is taken; waits while that one is between
    /// reserved and published, or on its way out.
    fn open_settled(
        &self,
        name: &Name,
        ty: Type,
        wanted: Wanted,
    ) -> DxgResult<Option<OpenedName<T>>> {
        let mut names = self.names.lock();

        while let Some(entry) = names.get(name) {
            let access = entry
                .check_access(ty, Some(wanted))
                .map_err(|refusal| match refusal {
                    // Sharing without OBJ_OPENIF tells the same.
                    Refusal::Hidden => Status::OBJECT_NAME_COLLISION,
                    shown => status(shown),
                })?;

            if let Some(share) = entry.published.then(|| entry.share.new_ref()).flatten() {
                return Ok(Some((share, access)));
            }
            if self.settled.wait_interruptible(&mut names) {
                return Err(DxgError::Interrupted);
            }
        }
        Ok(None)
    }

    /// Makes the name that was reserved for `share` lead to it. Cannot fail.
    fn commit(&self, name: &Name, share: &T) {
        let mut names = self.names.lock();

        if let Some(entry) = names.get_mut(name) {
            // The descriptor may have been guessed and closed; then the name may belong to another
            // share.
            entry.published |= entry.share.is(share);
        }
        drop(names);
        self.settled.notify_all();
    }

    /// Opens the share that a name leads to, with a desired access as the caller gives it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn open(&self, name: &Name, ty: Type, desired: u32) -> DxgResult<OpenedName<T>> {
        let wanted = name_mode::wanted(ty, desired)?;
        let names = self.names.lock();
        let entry = names
            .get(name)
            .filter(|entry| entry.published)
            .ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        let access = entry.check_access(ty, wanted).map_err(status)?;
        let share = entry.share.new_ref().ok_or(Status::OBJECT_NAME_NOT_FOUND)?;

        Ok((share, access))
    }

    /// Takes the entry of `share` out, if it is there.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn remove(&self, name: &Name, share: &T) {
        let mut names = self.names.lock();
        let ours = names.get(name).is_some_and(|entry| entry.share.is(share));
        let removed = ours.then(|| names.remove_node(name)).flatten();

        drop(names);
        self.settled.notify_all();
        drop(removed);
    }
}

/// What an opener is told.
fn status(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Hidden => Status::OBJECT_NAME_NOT_FOUND,
        Refusal::Mismatch => Status::OBJECT_TYPE_MISMATCH,
        Refusal::Denied => Status::ACCESS_DENIED,
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_name_table)]
mod tests {
    use super::*;
    use crate::dxgk::quota::account::Accounts;
    use crate::logic::name_mode::PRIVATE;
    use kernel::sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    };

    /// A share that is open, or is not any more.
    type Thing = Arc<Atomic<bool>>;

    impl Named for Thing {
        type Ref = Self;

        fn new_ref(&self) -> Option<Self> {
            self.load(Relaxed).then(|| self.clone())
        }

        fn is(&self, other: &Self) -> bool {
            Arc::ptr_eq(self, other)
        }
    }

    struct Scene {
        table: Arc<NameTable<Thing>>,
        account: Account,
    }

    const RULE: Rule = Rule {
        ty: Type::Resource,
        mode: PRIVATE,
        may: crate::logic::access::resource::ALL,
    };

    impl Scene {
        fn new() -> Result<Self> {
            Ok(Self {
                table: Arc::pin_init(NameTable::new(), GFP_KERNEL)?,
                account: Accounts::new()?.of_caller()?,
            })
        }

        fn reserve(&self, name: &Name, thing: &Thing) -> bool {
            self.table
                .reserve(&self.account, name, RULE, thing, None)
                .is_ok()
        }

        fn opens(&self, name: &Name, thing: &Thing) -> bool {
            self.table
                .open(name, Type::Resource, crate::logic::access::READ_CONTROL)
                .is_ok_and(|(share, _)| share.is(thing))
        }
    }

    fn thing() -> Result<Thing> {
        Ok(Arc::new(Atomic::new(true), GFP_KERNEL)?)
    }

    fn name(text: &str) -> Result<Name> {
        let mut path = KVec::new();

        for unit in text.encode_utf16() {
            path.push(unit, GFP_KERNEL)?;
        }
        Name::new(path)?.map_err(|_| EINVAL)
    }

    /// RES-3: a reserved name is taken, and leads nowhere.
    #[test]
    fn a_reserved_name_collides_and_does_not_open() -> Result {
        let scene = Scene::new()?;
        let (first, second) = (thing()?, thing()?);
        let a = name(r"\BaseNamedObjects\a")?;

        assert!(scene.reserve(&a, &first));
        assert!(!scene.reserve(&name(r"\Sessions\0\BaseNamedObjects\Global\A")?, &second));
        assert!(!scene.opens(&a, &first));
        scene.table.commit(&a, &second);
        assert!(!scene.opens(&a, &first));
        scene.table.commit(&a, &first);
        assert!(scene.opens(&a, &first));
        assert!(scene.opens(&name(r"\basenamedobjects\A")?, &first));
        Ok(())
    }

    /// RES-42: only its own share takes an entry out, and then the name is free.
    #[test]
    fn a_removed_name_is_free() -> Result {
        let scene = Scene::new()?;
        let (first, second) = (thing()?, thing()?);
        let a = name(r"\BaseNamedObjects\a")?;

        assert!(scene.reserve(&a, &first));
        scene.table.commit(&a, &first);
        scene.table.remove(&a, &second);
        assert!(scene.opens(&a, &first));
        first.store(false, Relaxed);
        assert!(!scene.opens(&a, &first));
        scene.table.remove(&a, &first);
        assert!(scene.reserve(&a, &second));
        Ok(())
    }

    /// RES-46: what a name was charged with is given back with it.
    #[test]
    fn names_are_charged() -> Result {
        let scene = Scene::new()?;
        let thing = thing()?;
        let a = name(r"\BaseNamedObjects\a")?;
        let limit = crate::sys::params::max_user_names();
        let rest = scene.account.charge(Limit::Names, limit)?;

        assert!(!scene.reserve(&a, &thing));
        drop(rest);
        assert!(scene.reserve(&a, &thing));
        scene.table.commit(&a, &thing);

        // Opening what exists charges nothing.
        let rest = scene.account.charge(Limit::Names, limit - 1)?;
        let wanted = Wanted::new(Type::Resource, 0);
        let opened = scene
            .table
            .reserve(&scene.account, &a, RULE, &thing, wanted);

        assert!(matches!(opened, Ok(Reservation::Exists(_))));
        drop(rest);
        assert!(scene.account.charge(Limit::Names, limit).is_err());
        scene.table.remove(&a, &thing);
        assert!(scene.account.charge(Limit::Names, limit).is_ok());
        Ok(())
    }
}
