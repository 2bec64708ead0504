// SPDX-License-Identifier: GPL-2.0

//! What users attach to an object, of whatever kind: its information store, watches and weak
//! references. None of it keeps the object (RES-71), all of it ends with the object.
//!
//! Most objects never have any of this, so that all an object pays for is a lock and a few words.
//!
//! LOCK: `state` is a leaf. Everything is made before it is taken, and dropped and told after it is
//! released.

pub(crate) use super::store::Value;
use super::{
    store::{
        Change,
        Failed,
        Store,
        EMPTY, //
    },
    watch::Event,
    weak::Link, //
};
use crate::{
    logic::info_rules::{
        guid_parts,
        Id,
        Item,
        Refused,
        BLOB,
        CREATE_ONLY, //
    },
    sys::caller::Credentials,
    uapi::status::{
        Outcome,
        Status, //
    }, //
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

/// A miniport's function that hears of the end of an object (RES-75).
#[derive(Clone, Copy)]
pub(crate) struct DestroyCallback {
    /// Called with the cookie and the object's id: once, after the last strong reference and before
    /// the contents are freed. It may sleep and make calls; no lock is held.
    pub(crate) run: fn(cookie: u64, object: u64),
    /// Whatever the miniport wants to be told.
    pub(crate) cookie: u64,
}

struct State {
    /// Nothing may be attached any more.
    dead: bool,
    /// None: nothing was ever stored.
    store: Option<Arc<Store>>,
    /// None: nobody ever wanted a weak reference or a watch.
    link: Option<Arc<Link>>,
    callback: Option<DestroyCallback>,
}

/// See the module.
#[pin_data]
pub(crate) struct Attached {
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

/// What became of an attempt to replace the store.
enum Replaced {
    /// Done; the link of the object, if it has one.
    Done(Option<Arc<Link>>),
    /// Somebody else has changed the store since it was looked at.
    Raced,
    /// The object is dead.
    Dead,
}

impl Attached {
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
                "Attached::state"
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

    /// Puts `new` in the place of `seen`, unless that is not the present store any more.
    fn replace(&self, seen: &Snapshot, new: Arc<Store>) -> Replaced {
        let mut state = self.state.lock();
        let same = match (&seen.0, &state.store) {
            (Some(seen), Some(present)) => Arc::ptr_eq(seen, present),
            (None, None) => true,
            _ => false,
        };

        if state.dead {
            return Replaced::Dead;
        }
        if !same {
            return Replaced::Raced;
        }

        // `seen` still holds the old one, so that it is not freed here.
        state.store = Some(new);
        Replaced::Done(state.link.clone())
    }

    /// Changes the store and tells the watches. Returns the new generation.
    ///
    /// Context: may sleep, no locks held.
    fn change(
        &self,
        make: impl Fn(&Store) -> core::result::Result<Store, Failed>,
    ) -> core::result::Result<u64, Failed> {
        loop {
            let seen = self.store();
            let new = Arc::new(make(&seen)?, GFP_KERNEL_ACCOUNT)?;
            let generation = new.generation();

            match self.replace(&seen, new) {
                Replaced::Done(link) => {
                    if let Some(link) = link {
                        link.tell(Event::Change(generation));
                    }
                    return Ok(generation);
                }
                Replaced::Raced => {}
                Replaced::Dead => return Err(Failed::Dead),
            }
        }
    }

    /// Stores entries, all or none; they name different ones (RES-56).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set(&self, changes: &[Change]) -> core::result::Result<u64, Failed> {
        let writer = Credentials::of_caller();

        self.change(|store| store.with(changes, writer))
    }

    /// Removes an entry (RES-58).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn delete(&self, id: Id, expected: u64) -> core::result::Result<u64, Failed> {
        self.change(|store| store.without(id, expected))
    }

    /// The legacy runtime blob, if the object has one (RES-67). To be dropped with no locks held.
    pub(crate) fn blob(&self) -> Option<Arc<Value>> {
        let store = self.store();

        store.entry(BLOB).map(|entry| entry.value.clone())
    }

    /// Bytes of the legacy runtime blob; 0 without one.
    pub(crate) fn blob_size(&self) -> usize {
        self.blob().map_or(0, |value| value.bytes().len())
    }

    /// Replaces the legacy runtime blob (RES-68). ACCESS_DENIED if it is sealed (RES-70).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn set_blob(&self, value: Arc<Value>) -> Outcome {
        self.set(&[blob(value, 0)])?;
        Ok(())
    }

    /// Gives the object its legacy runtime blob, unless it has one (RES-92).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn init_blob(&self, value: Arc<Value>) -> Outcome {
        match self.set(&[blob(value, CREATE_ONLY)]) {
            Err(Failed::Refused(Refused::Exists)) => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// The object's link, if anybody has wanted one.
    pub(super) fn link(&self) -> Option<Arc<Link>> {
        self.state.lock().link.clone()
    }

    /// Makes `fresh` the object's link, unless it has one, which is returned then. Fails if the
    /// object is dead.
    pub(super) fn keep_link(&self, fresh: &Arc<Link>) -> Outcome<Arc<Link>> {
        let mut state = self.state.lock();

        if state.dead {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(state.link.get_or_insert_with(|| fresh.clone()).clone())
    }

    /// Registers the miniport's callback. False if there is one already, or the object is dead.
    #[cfg_attr(
        not(CONFIG_KUNIT = "y"),
        expect(dead_code, reason = "the software adapter has nothing to free")
    )]
    pub(crate) fn on_destroy(&self, callback: DestroyCallback) -> bool {
        let mut state = self.state.lock();
        let free = !state.dead && state.callback.is_none();

        if free {
            state.callback = Some(callback);
        }
        free
    }

    /// The last strong reference to the object with this id is gone and its handles do not resolve:
    /// neither do weak references from now on, nothing can be attached any more, and the miniport
    /// hears of it.
    ///
    /// Context: may sleep, no locks held. Called once.
    pub(crate) fn die(&self, object: u64) {
        let (link, callback) = {
            let mut state = self.state.lock();

            state.dead = true;
            (state.link.clone(), state.callback.take())
        };

        if let Some(link) = link {
            link.die();
        }
        if let Some(callback) = callback {
            (callback.run)(callback.cookie, object);
        }
    }

    /// The contents of the object are gone: tells who wants to know, and lets go of the entries and
    /// their files.
    ///
    /// Context: may sleep, no locks held. Called once, after [`Attached::die`].
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
        self.show_entries(m, object);
        if let Some(link) = self.link() {
            seq_print!(m, "dxg-watches:\t{}\n", link.watches());
        }
    }

    /// Prints a line for each entry of the store of the object with this id.
    pub(crate) fn show_entries(&self, m: &SeqFile, object: u64) {
        for entry in self.store().entries() {
            let rule = entry.rule();
            let (a, b, c, d, e) = guid_parts(rule.id.key);

            seq_print!(
                m,
                "dxg-info:\t{object} {a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}"
            );
            seq_print!(m, " {} {} {}\n", rule.id.schema, rule.size, rule.generation);
        }
    }
}

/// The change that sets the legacy runtime blob.
fn blob(value: Arc<Value>, flags: u32) -> Change {
    Change {
        item: Item {
            id: BLOB,
            flags,
            expected: 0,
            size: value.bytes().len(),
        },
        value,
        file: None,
    }
}
