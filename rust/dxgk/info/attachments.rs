// SPDX-License-Identifier: GPL-2.0

//! What users attach to an object: its information store, watches and weak references. None of it
//! keeps the object alive (RES-71); all of it ends with the object.
//!
//! Most objects never have any of this, so an object pays for a lock and a few words only.
//!
//! LOCK: `state` is a leaf. Everything is allocated before it is taken, and dropped or signalled
//! after it is released.

pub(crate) use super::store::Value;
use super::{
    store::{
        Change,
        Failed,
        Store,
        EMPTY, //
    },
    watch::Event,
    weak::WeakTarget, //
};
use crate::dxgk::retire::Rest;
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::info_rules::{
        Id,
        InfoItem,
        Refused,
        BLOB,
        CREATE_ONLY, //
    },
    sys::task::caller::Credentials, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// A miniport's callback for the end of an object (RES-75).
pub(crate) trait DestroyCallback: Send + Sync {
    /// The object with this id has retired; its contents are there until this returns. Called once,
    /// with no lock held. May sleep and use other objects, but cannot bring this one back.
    fn destroyed(&self, object: u64);
}

struct State {
    /// The object has retired: nothing may be attached.
    dead: bool,
    /// `None`: nothing was ever stored.
    store: Option<Arc<Store>>,
    /// `None`: the object never had a weak reference or a watch.
    link: Option<Arc<WeakTarget>>,
    callback: Option<KBox<dyn DestroyCallback>>,
}

/// The attachments of one object.
#[pin_data]
pub(crate) struct Attachments {
    #[pin]
    state: SpinLock<State>,
}

/// The store of an object at one moment.
pub(crate) struct Snapshot(Option<Arc<Store>>);

impl core::ops::Deref for Snapshot {
    type Target = Store;

    fn deref(&self) -> &Store {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

/// A prepared change of the store, not visible yet. Dropping it leaves no trace.
pub(crate) struct PreparedChange<'a> {
    attachments: &'a Attachments,
    seen: Snapshot,
    new: Arc<Store>,
}

impl PreparedChange<'_> {
    /// The generation of the object after the change.
    pub(crate) fn generation(&self) -> u64 {
        self.new.generation()
    }

    /// Makes the change and signals the watches. False if the store has changed since this was
    /// prepared; then nothing is done, and the change has to be prepared again.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn commit(self) -> core::result::Result<bool, Failed> {
        let generation = self.generation();
        let link = {
            let mut state = self.attachments.state.lock();
            let same = match (&self.seen.0, &state.store) {
                (Some(seen), Some(present)) => Arc::ptr_eq(seen, present),
                (None, None) => true,
                _ => false,
            };

            if state.dead {
                return Err(Failed::Dead);
            }
            if !same {
                return Ok(false);
            }

            // `seen` still holds the old one, so that it is not freed here.
            state.store = Some(self.new);
            state.link.clone()
        };

        if let Some(link) = link {
            link.tell(Event::Change(generation));
        }
        Ok(true)
    }
}

impl Attachments {
    /// Nothing attached.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock!(
                State {
                    dead: false,
                    store: None,
                    link: None,
                    callback: None,
                },
                "Attachments::state"
            ),
        })
    }

    /// The store as it is now. To be dropped with no locks held.
    pub(crate) fn store(&self) -> Snapshot {
        Snapshot(self.state.lock().store.clone())
    }

    /// How often the store has changed.
    pub(crate) fn generation(&self) -> u64 {
        self.state
            .lock()
            .store
            .as_ref()
            .map_or(0, |store| store.generation())
    }

    /// Prepares a change of the store as it is now.
    fn prepare(
        &self,
        make: impl FnOnce(&Store) -> core::result::Result<Store, Failed>,
    ) -> core::result::Result<PreparedChange<'_>, Failed> {
        let seen = self.store();
        let new = Arc::new(make(&seen)?, GFP_KERNEL_ACCOUNT)?;

        Ok(PreparedChange {
            attachments: self,
            seen,
            new,
        })
    }

    /// Prepares to store entries, all or none; they name different ones (RES-56).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn prepare_set(
        &self,
        changes: &[Change],
    ) -> core::result::Result<PreparedChange<'_>, Failed> {
        let writer = Credentials::of_caller();

        self.prepare(|store| store.with(changes, writer))
    }

    /// Prepares to remove an entry (RES-58).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn prepare_delete(
        &self,
        id: Id,
        expected: u64,
    ) -> core::result::Result<PreparedChange<'_>, Failed> {
        self.prepare(|store| store.without(id, expected))
    }

    /// The private runtime data, if the object has any (RES-67). To be dropped with no locks held.
    pub(crate) fn blob(&self) -> Option<Arc<Value>> {
        let store = self.store();

        store.entry(BLOB).map(|entry| entry.value.clone())
    }

    /// Size of the private runtime data; 0 without any.
    pub(crate) fn blob_size(&self) -> usize {
        self.blob().map_or(0, |value| value.bytes().len())
    }

    /// Replaces the private runtime data (RES-68). ACCESS_DENIED if it is sealed (RES-70).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set_blob(&self, value: Arc<Value>) -> DxgResult {
        let changes = [blob(value, 0)];

        while !self.prepare_set(&changes)?.commit()? {}
        Ok(())
    }

    /// Prepares to give the object its first private runtime data; `None` if it has some already
    /// (RES-92).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn prepare_first_blob(
        &self,
        value: &Arc<Value>,
    ) -> DxgResult<Option<PreparedChange<'_>>> {
        match self.prepare_set(&[blob(value.clone(), CREATE_ONLY)]) {
            Ok(change) => Ok(Some(change)),
            Err(Failed::Refused(Refused::Exists)) => Ok(None),
            Err(failed) => Err(failed.into()),
        }
    }

    /// The object's weak target, if it has one.
    pub(in crate::dxgk) fn link(&self) -> Option<Arc<WeakTarget>> {
        self.state.lock().link.clone()
    }

    /// Makes `fresh` the object's weak target. If it has one already, returns that. Fails if the
    /// object has retired.
    pub(in crate::dxgk) fn keep_link(&self, fresh: &Arc<WeakTarget>) -> DxgResult<Arc<WeakTarget>> {
        let mut state = self.state.lock();

        if state.dead {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(state.link.get_or_insert_with(|| fresh.clone()).clone())
    }

    /// Registers the miniport's callback, at most one for an object. Returns it if there is one
    /// already or the object has retired.
    #[cfg_attr(
        not(CONFIG_KUNIT = "y"),
        expect(
            dead_code,
            reason = "the software adapter has nothing of its own to free"
        )
    )]
    pub(crate) fn on_destroy(
        &self,
        callback: KBox<dyn DestroyCallback>,
    ) -> core::result::Result<(), KBox<dyn DestroyCallback>> {
        let mut state = self.state.lock();

        if state.dead || state.callback.is_some() {
            return Err(callback);
        }
        state.callback = Some(callback);
        Ok(())
    }

    /// Called when the last strong reference is gone and the object's handles no longer resolve.
    /// From now on weak references do not resolve either, and nothing can be attached. Returns what
    /// is left for [`Attachments::call_back`] and [`Attachments::finish`].
    ///
    /// Context: no locks held. Called once.
    pub(in crate::dxgk) fn die(&self) -> Rest {
        let mut state = self.state.lock();

        state.dead = true;

        let link = state.link.clone();
        let alone = match &state.store {
            _ if state.callback.is_some() => Rest::Much,
            Some(store) if store.has_files() => Rest::Much,
            None if link.is_none() => Rest::Nothing,
            _ => Rest::Little,
        };

        drop(state);
        match link {
            Some(link) if !link.die() => Rest::Much,
            _ => alone,
        }
    }

    /// Calls the miniport's callback.
    ///
    /// Context: may sleep, no locks held. Called once, after [`Attachments::die`].
    pub(in crate::dxgk) fn call_back(&self, object: u64) {
        let callback = self.state.lock().callback.take();

        if let Some(callback) = callback {
            callback.destroyed(object);
        }
    }

    /// Called when the contents of the object are gone: signals watches and polls, and drops the
    /// entries and their files.
    ///
    /// Context: may sleep, no locks held. Called once, after [`Attachments::die`].
    pub(crate) fn finish(&self) {
        let (store, link) = {
            let mut state = self.state.lock();

            (state.store.take(), state.link.take())
        };

        drop(store);
        if let Some(link) = link {
            link.finish();
        }
    }

    /// Prints into the fdinfo of an NT handle.
    pub(crate) fn show(&self, m: &SeqFile, object: u64) {
        seq_print!(m, "dxg-generation:\t{}\n", self.generation());
        self.store().show(m, object);
        if let Some(link) = self.link() {
            seq_print!(m, "dxg-watches:\t{}\n", link.watches());
        }
    }
}

/// The change that sets the private runtime data.
fn blob(value: Arc<Value>, flags: u32) -> Change {
    Change {
        item: InfoItem {
            id: BLOB,
            flags,
            expected: 0,
            size: value.bytes().len(),
        },
        value,
        file: None,
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_attached)]
mod tests {
    use super::*;
    use crate::{
        dxgk::{
            object::{
                Header,
                Object,
                Strong, //
            },
            quota::account::Limit,
            stats::Kind,
            sync::legacy::{
                LegacySync,
                State as SyncState, //
            },
            tables::Tables, //
        },
        logic::sync_flags::Sharing, //
    };
    use kernel::sync::atomic::{
        Atomic,
        Relaxed, //
    };

    fn object(tables: &Arc<Tables>) -> Result<Strong> {
        let charge = tables.accounts.of_caller()?.charge(Limit::Objects, 1)?;
        let header = Header::new(
            Kind::Fence,
            None,
            Sharing::Global,
            false,
            tables.clone(),
            charge,
        );
        let fence = LegacySync::new(header, SyncState::Fence { value: 0 })?;

        Ok(Strong::first(Object::Legacy(fence)))
    }

    fn attachments(strong: &Strong) -> &Attachments {
        &strong.object().header().attachments
    }

    fn value(tables: &Tables, size: usize) -> Result<Arc<Value>> {
        let bytes = KVVec::from_elem(7, size, GFP_KERNEL)?;

        Value::new(tables, bytes).map_err(|_| ENOMEM)
    }

    /// What the callback has seen, for the test to look at.
    struct Seen {
        calls: Atomic<u64>,
        object: Atomic<u64>,
        good: Atomic<u64>,
    }

    /// Uses everything it can while its object dies.
    struct Curious {
        tables: Arc<Tables>,
        own: Object,
        link: Arc<WeakTarget>,
        seen: Arc<Seen>,
    }

    impl Curious {
        /// Makes, names, opens and destroys another object; the own one stays dead.
        fn try_all(&self) -> Result<bool> {
            let other = object(&self.tables)?;
            other.name_globally(&self.tables.globals)?.commit();

            let weak = WeakTarget::of(other.object()).map_err(|_| EINVAL)?;
            let opened = weak.resolve().is_some();
            let revived = self.link.resolve().is_some() || Strong::upgrade(&self.own).is_some();
            let value = value(&self.tables, 1)?;
            let stored = self.own.header().attachments.set_blob(value).is_ok();

            Ok(opened && !revived && !stored)
        }
    }

    impl DestroyCallback for Curious {
        fn destroyed(&self, object: u64) {
            self.seen.calls.add(1, Relaxed);
            self.seen.object.store(object, Relaxed);
            self.seen
                .good
                .store(u64::from(self.try_all().unwrap_or(false)), Relaxed);
        }
    }

    /// RES-75: once, with the id, free to use the module, unable to revive the object.
    #[test]
    fn the_destroy_callback_may_use_the_module() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let id = strong.object().header().id();
        let link = WeakTarget::of(strong.object()).map_err(|_| EINVAL)?;
        let seen = Arc::new(
            Seen {
                calls: Atomic::new(0),
                object: Atomic::new(0),
                good: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        let curious = || -> Result<KBox<dyn DestroyCallback>> {
            Ok(KBox::new(
                Curious {
                    tables: tables.clone(),
                    own: strong.object().clone(),
                    link: link.clone(),
                    seen: seen.clone(),
                },
                GFP_KERNEL,
            )?)
        };

        assert!(attachments(&strong).on_destroy(curious()?).is_ok());
        assert!(attachments(&strong).on_destroy(curious()?).is_err());

        let second = strong.another().ok_or(EINVAL)?;

        drop(strong);
        assert_eq!(seen.calls.load(Relaxed), 0);
        drop(second);
        tables.accounts.of_caller()?.wait_for_retirements();
        assert_eq!(seen.calls.load(Relaxed), 1);
        assert_eq!(seen.object.load(Relaxed), id);
        assert_eq!(seen.good.load(Relaxed), 1);
        Ok(())
    }

    /// RES-72: one link, which resolves until the last strong reference goes and hangs up then.
    #[test]
    fn a_link_outlives_its_object() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let id = strong.object().header().id();
        let link = WeakTarget::of(strong.object()).map_err(|_| EINVAL)?;
        let again = WeakTarget::of(strong.object()).map_err(|_| EINVAL)?;

        assert!(Arc::ptr_eq(&link, &again));
        assert_eq!(link.events(), 0);

        let resolved = link.resolve().ok_or(EINVAL)?;

        assert_eq!(resolved.object().header().id(), id);
        drop(strong);
        assert!(link.resolve().is_some());
        drop(resolved);
        assert!(link.resolve().is_none());
        assert_ne!(link.events(), 0);
        assert_eq!(link.object_id(), id);
        Ok(())
    }

    /// Removes the private runtime data, which must have this generation.
    fn delete(attachments: &Attachments, generation: u64) -> Result<bool> {
        let change = attachments.prepare_delete(BLOB, generation);

        change.and_then(PreparedChange::commit).map_err(|_| EINVAL)
    }

    /// Gives the object its first private runtime data.
    fn give(attachments: &Attachments, value: &Arc<Value>) -> Result<bool> {
        let change = attachments.prepare_first_blob(value).map_err(|_| EINVAL)?;

        change.ok_or(EINVAL)?.commit().map_err(|_| EINVAL)
    }

    /// RES-3: what is prepared is seen when it is committed, and only if no other change came
    /// first.
    #[test]
    fn a_prepared_change_is_not_seen() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let attachments = attachments(&strong);
        let prepare = |size| -> Result<_> {
            attachments
                .prepare_first_blob(&value(&tables, size)?)
                .map_err(|_| EINVAL)?
                .ok_or(EINVAL)
        };

        drop(prepare(1)?);
        assert_eq!(attachments.generation(), 0);

        let first = prepare(2)?;
        let second = prepare(3)?;

        assert_eq!(first.generation(), 1);
        assert_eq!(attachments.generation(), 0);
        assert!(attachments.blob().is_none());
        assert!(matches!(second.commit(), Ok(true)));
        assert!(matches!(first.commit(), Ok(false)));
        assert_eq!(attachments.generation(), 1);
        assert_eq!(attachments.blob_size(), 3);
        Ok(())
    }

    /// RES-67, RES-58, RES-71: private data is one, changes are counted, and it is freed with the
    /// object.
    #[test]
    fn the_blob_is_an_entry() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let attachments = attachments(&strong);
        let kept = value(&tables, 6)?;

        assert!(attachments.blob().is_none());
        assert_eq!(attachments.generation(), 0);
        assert!(attachments.set_blob(kept.clone()).is_ok());
        assert!(matches!(
            attachments.prepare_first_blob(&value(&tables, 9)?),
            Ok(None)
        ));
        assert_eq!(attachments.blob_size(), 6);
        assert_eq!(attachments.generation(), 1);
        assert!(attachments.prepare_delete(BLOB, 2).is_err());
        assert!(delete(attachments, 1)?);
        assert_eq!(attachments.generation(), 2);
        assert!(attachments.blob().is_none());
        assert!(give(attachments, &value(&tables, 9)?)?);
        assert_eq!(attachments.blob_size(), 9);

        let object = strong.object().clone();

        drop(strong);
        assert!(object.header().attachments.blob().is_none());
        assert_eq!(kept.bytes(), &[7; 6]);
        Ok(())
    }

    /// RES-59: what was read stays as it was.
    #[test]
    fn a_snapshot_does_not_change() -> Result {
        let tables = Tables::new()?;
        let strong = object(&tables)?;
        let attachments = attachments(&strong);

        assert!(attachments.set_blob(value(&tables, 1)?).is_ok());

        let before = attachments.store();

        assert!(attachments.set_blob(value(&tables, 2)?).is_ok());
        assert_eq!(before.generation(), 1);
        assert_eq!(before.entry(BLOB).map(|entry| entry.rule().size), Some(1));
        assert_eq!(attachments.store().generation(), 2);
        Ok(())
    }
}
