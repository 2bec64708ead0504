// SPDX-License-Identifier: GPL-2.0

//! The name of a share (RES-38 to RES-40, RES-44).

use crate::{
    logic::{
        name::{
            self,
            Refusal, //
        },
        upcase::upcase, //
    },
    sys::task::credentials::Credentials, //
};
use core::cmp::Ordering;
use kernel::{
    alloc::AllocError,
    fmt,
    prelude::*,
    sync::Arc, //
};

/// A path, and what makes it the same name as another one.
#[derive(Clone)]
pub(crate) struct Name(Arc<Path>);

struct Path {
    namespace: u64,
    session: u32,
    /// The last component in upper case.
    leaf: KVec<u16>,
    /// As it was given.
    path: KVec<u16>,
}

impl Name {
    /// The name that a path is in the caller's IPC namespace; the inner error is about the path.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(path: KVec<u16>) -> Result<Result<Self, Refusal>, AllocError> {
        let place = match name::resolve(&path) {
            Ok(place) => place,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let session = place.session;
        let mut leaf = KVec::with_capacity(place.leaf.len(), GFP_KERNEL_ACCOUNT)?;

        leaf.extend_from_slice(place.leaf, GFP_KERNEL_ACCOUNT)?;
        for unit in &mut leaf {
            *unit = upcase(*unit);
        }

        let path = Path {
            namespace: Credentials::of_caller().ipc_ns(),
            session,
            leaf,
            path,
        };

        Ok(Ok(Self(Arc::new(path, GFP_KERNEL_ACCOUNT)?)))
    }

    /// The path as it was given, in UTF-16.
    pub(crate) fn path(&self) -> &[u16] {
        &self.0.path
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;

        name::characters(self.path()).try_for_each(|character| f.write_char(character))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&*self.0, &*other.0);

        (a.namespace, a.session)
            .cmp(&(b.namespace, b.session))
            .then_with(|| a.leaf.cmp(&*b.leaf))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Name {}
