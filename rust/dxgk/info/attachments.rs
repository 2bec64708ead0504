// SPDX-License-Identifier: GPL-2.0

//! What users attach to an object: its information store, watches and weak references. None of it
//! keeps the object alive (RES-71); all of it ends with the object.
//!
//! Most objects never have any of this, so an object pays for a lock and a few words only.
//!
//! LOCK: `state` is a leaf, also inside the lock of a keyed mutex. Everything is allocated before
//! it is taken, and dropped or signalled after it is released.

pub(crate) use super::store::Value;
use super::{
    store::{
        Change,
        Failed,
        Store,
        EMPTY, //
    },
    weak::{
        Event,
        WeakTarget, //
    }, //
};
use crate::dxgk::at_once::Rest;
use crate::{
    error::{
        DxgError,
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
    sys::task::{
        credentials::Credentials,
        sleep, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

struct State<T> {
    /// `None` until the first entry is stored.
    store: Option<Arc<Store>>,
    /// `None` until the first weak reference or watch.
    weak_target: Option<Arc<WeakTarget<T>>>,
}

/// The attachments of one object, which weak references keep as a `T`, as the object has them.
#[pin_data]
pub(crate) struct Attached<T> {
    #[pin]
    state: SpinLock<State<T>>,
}

/// Whether anything was attached to an object, and whether it has retired, so that nothing may be.
/// It is apart from [`Attached`], which would have to be eight bytes larger.
///
/// LOCK: that of the attachments, except for an object that retires and never had any, as most. One
/// exchange decides whether it retires so or something was attached before.
pub(crate) struct Retired(Atomic<i8>);

/// The attachments of one object.
pub(crate) struct Attachments<'a, T> {
    attached: &'a Attached<T>,
    retired: &'a Retired,
}

impl<T> Clone for Attachments<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Attachments<'_, T> {}

impl Retired {
    /// Nothing was ever attached.
    const ALONE: i8 = 0;
    /// Something was, or is about to be.
    const ATTACHED: i8 = 1;
    /// It has retired.
    const RETIRED: i8 = 2;

    /// Not yet, and nothing is attached.
    pub(crate) fn new() -> Self {
        Self(Atomic::new(Self::ALONE))
    }

    /// Something is about to be attached, with the lock held. False if the object has retired.
    fn attach(&self) -> bool {
        match self.0.cmpxchg(Self::ALONE, Self::ATTACHED, Relaxed) {
            Ok(_) => true,
            Err(state) => state == Self::ATTACHED,
        }
    }

    /// The object retires, if nothing was ever attached. Whether it does.
    fn retire_alone(&self) -> bool {
        // ORDERING: nothing was stored that anybody has to see.
        self.0.cmpxchg(Self::ALONE, Self::RETIRED, Relaxed).is_ok()
    }
}

impl<T: Unpin> Attached<T> {
    /// Nothing attached.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock!(
                State {
                    store: None,
                    weak_target: None,
                },
                "Attachments::state"
            ),
        })
    }

    /// These, of an object that says whether it has retired.
    pub(crate) fn of<'a>(&'a self, retired: &'a Retired) -> Attachments<'a, T> {
        Attachments {
            attached: self,
            retired,
        }
    }
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
pub(crate) struct PreparedChange<'a, T> {
    attachments: Attachments<'a, T>,
    seen: Snapshot,
    new: Arc<Store>,
}

impl<T: Unpin> PreparedChange<'_, T> {
    /// The generation of the object after the change.
    pub(crate) fn generation(&self) -> u64 {
        self.new.generation()
    }

    /// Makes the change and signals the watches. False if the store has changed since this was
    /// prepared; then nothing is done, and the change has to be prepared again, see
    /// [`until_applied`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn commit(self) -> core::result::Result<bool, Failed> {
        match self.apply()? {
            Applied::Done(news) => {
                news.tell();
                Ok(true)
            }
            Applied::Stale => Ok(false),
        }
    }

    /// Makes the change, if the store is what it was when this was prepared. Frees nothing, and
    /// tells nobody.
    ///
    /// Context: any that may take the lock. To be dropped with no locks held, like the result.
    pub(in crate::dxgk) fn apply(&self) -> core::result::Result<Applied<T>, Failed> {
        let mut state = self.attachments.attached.state.lock();
        let same = match (&self.seen.0, &state.store) {
            (Some(seen), Some(present)) => Arc::ptr_eq(seen, present),
            (None, None) => true,
            _ => false,
        };

        if !self.attachments.retired.attach() {
            return Err(Failed::Dead);
        }
        if !same {
            return Ok(Applied::Stale);
        }

        // `seen` still holds the old one, so that it is not freed here.
        state.store = Some(self.new.clone());
        Ok(Applied::Done(News {
            weak_target: state.weak_target.clone(),
            generation: self.generation(),
        }))
    }
}

/// What became of a prepared change.
pub(in crate::dxgk) enum Applied<T> {
    /// It is made; the watches have to be told.
    Done(News<T>),
    /// The store has changed since.
    Stale,
}

/// A change of which the watches have not been told.
pub(in crate::dxgk) struct News<T> {
    weak_target: Option<Arc<WeakTarget<T>>>,
    generation: u64,
}

impl<T: Unpin> News<T> {
    /// Signals the watches.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn tell(self) {
        if let Some(weak_target) = self.weak_target {
            weak_target.tell(Event::Change(self.generation));
        }
    }
}

/// Repeats `attempt` until it has changed a store: it prepares the change, does what has to come
/// before it, such as copying the answer out, and commits. It returns false if another change of
/// the store came in between.
///
/// So all that it does may be done several times, and only the last time counts. What it prepares
/// leaves no trace, and an answer is written over the one before. Whatever takes something is done
/// before the first attempt.
///
/// It ends: an attempt is lost only to a change that another call has made, so of all calls in
/// progress one is always done. The others may still be faster each time; a killed caller gives
/// up.
///
/// Context: a system call, no locks held.
pub(crate) fn until_applied(mut attempt: impl FnMut() -> DxgResult<bool>) -> DxgResult {
    while !attempt()? {
        if sleep::is_killed() {
            return Err(DxgError::Interrupted);
        }
    }
    Ok(())
}

impl<'a, T: Unpin> Attachments<'a, T> {
    /// The store as it is now. To be dropped with no locks held.
    pub(crate) fn store(self) -> Snapshot {
        Snapshot(self.attached.state.lock().store.clone())
    }

    /// How often the store has changed.
    pub(crate) fn generation(self) -> u64 {
        self.attached
            .state
            .lock()
            .store
            .as_ref()
            .map_or(0, |store| store.generation())
    }

    /// Prepares a change of the store as it is now.
    fn prepare(
        self,
        make: impl FnOnce(&Store) -> core::result::Result<Store, Failed>,
    ) -> core::result::Result<PreparedChange<'a, T>, Failed> {
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
        self,
        changes: &[Change],
    ) -> core::result::Result<PreparedChange<'a, T>, Failed> {
        let writer = Credentials::of_caller();

        self.prepare(|store| store.with(changes, writer))
    }

    /// Prepares to remove an entry (RES-58).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn prepare_delete(
        self,
        id: Id,
        expected: u64,
    ) -> core::result::Result<PreparedChange<'a, T>, Failed> {
        self.prepare(|store| store.without(id, expected))
    }

    /// The private runtime data, if the object has any (RES-67). To be dropped with no locks held.
    pub(crate) fn blob(self) -> Option<Arc<Value>> {
        let store = self.store();

        store.entry(BLOB).map(|entry| entry.value.clone())
    }

    /// Size of the private runtime data; 0 without any.
    pub(crate) fn blob_size(self) -> usize {
        self.blob().map_or(0, |value| value.bytes().len())
    }

    /// Prepares to replace the private runtime data (RES-68). ACCESS_DENIED if it is sealed
    /// (RES-70).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn prepare_blob(
        self,
        value: &Arc<Value>,
    ) -> core::result::Result<PreparedChange<'a, T>, Failed> {
        self.prepare_set(&[blob(value.clone(), 0)])
    }

    /// Replaces the private runtime data (RES-68). ACCESS_DENIED if it is sealed (RES-70).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set_blob(self, value: Arc<Value>) -> DxgResult {
        until_applied(|| Ok(self.prepare_blob(&value)?.commit()?))
    }

    /// Prepares to give the object its first private runtime data; `None` if it has some already
    /// (RES-92).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn prepare_first_blob(
        self,
        value: &Arc<Value>,
    ) -> DxgResult<Option<PreparedChange<'a, T>>> {
        match self.prepare_set(&[blob(value.clone(), CREATE_ONLY)]) {
            Ok(change) => Ok(Some(change)),
            Err(Failed::Refused(Refused::Exists)) => Ok(None),
            Err(failed) => Err(failed.into()),
        }
    }

    /// The object's weak target, if it has one.
    pub(in crate::dxgk) fn weak_target(self) -> Option<Arc<WeakTarget<T>>> {
        self.attached.state.lock().weak_target.clone()
    }

    /// Makes `fresh` the object's weak target. If it has one already, returns that. Fails if the
    /// object has retired.
    pub(in crate::dxgk) fn keep_weak_target(
        self,
        fresh: &Arc<WeakTarget<T>>,
    ) -> DxgResult<Arc<WeakTarget<T>>> {
        let mut state = self.attached.state.lock();

        if !self.retired.attach() {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(state
            .weak_target
            .get_or_insert_with(|| fresh.clone())
            .clone())
    }

    /// Called when the last strong reference is gone and the object's handles no longer resolve.
    /// From now on weak references do not resolve either, and nothing can be attached. Returns
    /// what is left for [`Attachments::cleanup`].
    ///
    /// Context: no locks held. Called once.
    pub(in crate::dxgk) fn retire(self) -> Rest {
        if self.retired.retire_alone() {
            return Rest::Nothing;
        }

        let state = self.attached.state.lock();

        // ORDERING: the lock orders it.
        self.retired.0.store(Retired::RETIRED, Relaxed);

        let weak_target = state.weak_target.clone();
        let rest = match &state.store {
            Some(store) if store.has_files() => Rest::Much,
            None if weak_target.is_none() => Rest::Nothing,
            _ => Rest::Little,
        };

        drop(state);
        match weak_target {
            Some(weak_target) if !weak_target.retire() => Rest::Much,
            _ => rest,
        }
    }

    /// Called when the contents of the object are gone: signals watches and polls, and drops the
    /// entries and their files.
    ///
    /// Context: may sleep, no locks held. Called once, after [`Attachments::retire`].
    pub(crate) fn cleanup(self) {
        let (store, weak_target) = {
            let mut state = self.attached.state.lock();

            (state.store.take(), state.weak_target.take())
        };

        drop(store);
        if let Some(weak_target) = weak_target {
            weak_target.cleanup();
        }
    }

    /// Prints into the fdinfo of an NT handle.
    pub(crate) fn show(self, m: &SeqFile, object: u64) {
        seq_print!(m, "dxg-generation:\t{}\n", self.generation());
        self.store().show(m, object);
        if let Some(weak_target) = self.weak_target() {
            seq_print!(m, "dxg-watches:\t{}\n", weak_target.watches());
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
