// SPDX-License-Identifier: GPL-2.0

//! A call on its way through a verifier.

use super::{
    entry::Entry,
    objects::{
        Kind,
        Object,
        Work, //
    },
    rule::Rule,
    Verifier,
    STARTED, //
};
use crate::{
    ddi::types::{
        KmdError,
        KmdResult, //
    },
    platform::{
        self,
        Shared,
        Word32, //
    }, //
};

/// A call that is inside.
pub(super) struct Call<'a> {
    verifier: &'a Verifier,
    entry: Entry,
    id: u64,
}

impl Verifier {
    /// A call begins that is not a destroy, for what the OS part calls `id`.
    pub(super) fn enter(&self, entry: Entry, id: u64) -> Call<'_> {
        let call = self.enter_to_destroy(entry, id);

        call.check(
            Rule::NotStarted,
            platform::load32_acquire(&self.stage) == STARTED,
        );
        call
    }

    /// A destroy begins.
    pub(super) fn enter_to_destroy(&self, entry: Entry, id: u64) -> Call<'_> {
        platform::fetch_add(&self.inside, 1);
        self.begin(entry, id);
        Call {
            verifier: self,
            entry,
            id,
        }
    }

    /// Every entry begins with this.
    pub(super) fn begin(&self, entry: Entry, id: u64) {
        self.log.called(entry, id);
        if platform::may_sleep().is_some_and(|may_sleep| may_sleep != entry.is_passive()) {
            self.log.broken(Rule::WrongClass, entry, id);
        }
        match platform::holds_spinlock() {
            Some(true) if !entry.is_under_lock() => {
                self.log.broken(Rule::SpinLockHeld, entry, id);
            }
            Some(false) if entry.is_at_device_interrupt() => {
                self.log.broken(Rule::WrongClass, entry, id);
            }
            _ => {}
        }
    }

    /// A call that names an object. Without such an object the KMD is not called: there is nothing
    /// that it could be told.
    pub(super) fn enter_on(
        &self,
        entry: Entry,
        kind: Kind,
        cookie: u64,
    ) -> Option<(Call<'_>, Shared<Object>)> {
        let object = self.objects.find(kind, cookie);
        let call = self.enter(entry, object.as_ref().map_or(cookie, |object| object.id));

        call.check(Rule::BadCookie, object.is_some());
        Some((call, object?))
    }

    /// A destroy of an object: its cookie stands for nothing from now on.
    pub(super) fn enter_to_end(
        &self,
        entry: Entry,
        kind: Kind,
        cookie: u64,
    ) -> Option<(Call<'_>, Shared<Object>)> {
        let object = self.objects.find(kind, cookie);
        let id = object.as_ref().map_or(cookie, |object| object.id);
        let call = self.enter_to_destroy(entry, id);

        call.check(Rule::BadCookie, object.is_some());

        let object = object?;

        call.check(Rule::ChildrenLeft, !object.has_children());
        self.objects.remove(cookie);
        Some((call, object))
    }
}

impl Call<'_> {
    /// Reports a rule unless it is kept.
    pub(super) fn check(&self, rule: Rule, is_kept: bool) {
        if !is_kept {
            self.verifier.log.broken(rule, self.entry, self.id);
        }
    }

    /// Another object that the call names.
    pub(super) fn find(&self, kind: Kind, cookie: u64) -> KmdResult<Shared<Object>> {
        let object = self.verifier.objects.find(kind, cookie);

        self.check(Rule::BadCookie, object.is_some());
        object.ok_or(KmdError::InvalidParameter)
    }

    /// The call excludes others for this device.
    pub(super) fn alone<'a>(&self, device: &'a Object) -> Option<Alone<'a>> {
        self.take(&device.busy)
    }

    /// The submit excludes others of this queue.
    pub(super) fn alone_to_submit<'a>(&self, work: &'a Work) -> Option<Alone<'a>> {
        self.take(&work.submitting)
    }

    fn take<'a>(&self, busy: &'a Word32) -> Option<Alone<'a>> {
        let is_alone = platform::cmpxchg(busy, 0, 1);

        self.check(Rule::Together, is_alone);
        is_alone.then(|| Alone(busy))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        platform::fetch_sub(&self.verifier.inside, 1);
    }
}

/// A call that excludes others.
pub(super) struct Alone<'a>(&'a Word32);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        platform::cmpxchg(self.0, 1, 0);
    }
}
