// SPDX-License-Identifier: GPL-2.0

//! The contexts of an address space: they know where its page tables begin, and do not run while
//! that changes (MEM-55, MEM-56, MEM-59).
//!
//! LOCK: `state` is a mutex, inside `AddressSpace::state` and `AllContexts::state`; SuspendContext
//! and ResumeContext are called under it. Contexts are dropped without it. `roots` is a mutex,
//! inside `AddressSpace::state` and outside `state`; SetRootPageTable is called under it, and not
//! under `state`, because it may wait for the paging node, and that for who suspends contexts.

use super::{
    context_user::ContextUser,
    paging_log::LogAbout, //
};
use crate::{
    ddi::{
        class::Passive,
        object::{
            self,
            Suspension,
            Suspensions, //
        },
        paging::RootPageTable, //
    },
    error::DxgResult,
    logic::paging_log::{
        Action,
        Kind,
        Operation, //
    },
    sys::alloc::{
        pin_arc,
        tree_node, //
    }, //
};
use core::ops::Deref;
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A context, and where the end of its suspensions is told.
struct Member {
    kmd: Arc<object::Context>,
    suspension: Arc<Suspension>,
}

struct State {
    root: RootPageTable,
    members: RBTree<u64, Member>,
    /// The id of the last suspension.
    last: u32,
    /// Why they do not run: a bit for each [`Why`].
    suspended_for: u8,
}

/// Why contexts are suspended. They are as long as there is a reason.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Why {
    /// Their page tables change.
    PageTables = 1 << 0,
    /// All contexts of the adapter are.
    Adapter = 1 << 1,
    /// A page that engines store values of fences to moves.
    FencePage = 1 << 2,
    /// An allocation moves that they may use.
    Move = 1 << 3,
    /// Not all is there that their process wants (MEM-18).
    Room = 1 << 4,
}

/// The contexts of one address space.
#[pin_data]
pub(super) struct Contexts {
    suspensions: Arc<Suspensions>,
    log: LogAbout,
    /// Who tells contexts where page tables begin holds it. None of them leaves meanwhile.
    #[pin]
    roots: Mutex<()>,
    #[pin]
    state: Mutex<State>,
}

impl State {
    /// The id of the next suspension.
    fn next_id(&mut self) -> u32 {
        // 0 is none.
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }
}

impl Contexts {
    /// None, of a process whose page tables begin there.
    ///
    /// Context: may sleep.
    pub(super) fn new(
        process: &Arc<object::Process>,
        root: RootPageTable,
        log: &LogAbout,
    ) -> DxgResult<Arc<Self>> {
        let suspensions = Suspensions::new(process)?;

        Ok(pin_arc(
            pin_init!(Self {
                suspensions,
                log: log.clone(),
                roots <- new_mutex!((), "Contexts::roots"),
                state <- new_mutex!(
                    State {
                        root,
                        members: RBTree::new(),
                        last: 0,
                        suspended_for: 0,
                    },
                    "Contexts::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What the callbacks of a new context tell the end of its suspensions to.
    ///
    /// Context: may sleep.
    pub(super) fn suspension(&self) -> DxgResult<Arc<Suspension>> {
        Ok(self.suspensions.add()?)
    }

    /// The context with this id uses the address space from now on, and has had no work yet.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: u64,
        kmd: Arc<object::Context>,
        suspension: Arc<Suspension>,
    ) -> DxgResult<SpaceContext> {
        let member = Member {
            kmd: kmd.clone(),
            suspension: suspension.clone(),
        };
        let node = tree_node(id, member)?;
        let mut class = Passive::here();
        let roots = self.roots.lock();
        let root = self.state.lock().root;

        self.log_root(id, &root);
        if let Err(error) = kmd.set_root_page_table(&class, &root) {
            drop(roots);
            drop(node);
            return Err(error.into());
        }

        let mut state = self.state.lock();

        if state.suspended_for != 0 {
            let id = state.next_id();
            let alone = [(&*kmd, &*suspension)];

            self.suspensions.suspend(&mut class, id, alone.into_iter());
        }

        // Ids are different.
        let _nothing = state.members.insert(node);

        drop(state);
        drop(roots);
        Ok(SpaceContext {
            id,
            kmd,
            contexts: Some(self.clone()),
            user: None,
        })
    }

    /// Suspends all of them: on return none runs.
    ///
    /// Context: may sleep; the lock of the address space, that of all contexts of the adapter, or
    /// that of the rotation.
    pub(super) fn suspend(&self, why: Why) {
        let mut state = self.state.lock();

        if state.suspended_for == 0 {
            let id = state.next_id();
            let members = state.members.values();

            self.suspensions.suspend(
                &mut Passive::here(),
                id,
                members.map(|member| (&*member.kmd, &*member.suspension)),
            );
            self.log_change(Kind::Suspend, why);
        }
        // CAST: the bit of the variant.
        state.suspended_for |= why as u8;
    }

    /// They go on, if there is no other reason.
    ///
    /// Context: as [`Contexts::suspend`].
    pub(super) fn resume(&self, why: Why) {
        let mut state = self.state.lock();
        let before = state.suspended_for;

        // CAST: the bit of the variant.
        state.suspended_for = before & !(why as u8);
        if before != 0 && state.suspended_for == 0 {
            let members = state.members.values();

            self.log_change(Kind::Resume, why);
            self.suspensions
                .resume(&mut Passive::here(), members.map(|member| &*member.kmd));
        }
    }

    /// Page tables begin there now; the contexts are suspended. On return nobody uses the old root.
    ///
    /// Context: may sleep; the lock of the address space.
    pub(super) fn move_root(&self, root: RootPageTable) {
        let class = Passive::here();
        let _roots = self.roots.lock();
        let mut next = 0;

        self.state.lock().root = root;
        while let Some((id, kmd)) = self.member_from(next) {
            self.log_root(id, &root);
            kmd.move_root_page_table(&class, &root);
            next = id.saturating_add(1);
        }
    }

    /// The first member whose id is not below.
    fn member_from(&self, id: u64) -> Option<(u64, Arc<object::Context>)> {
        let state = self.state.lock();
        let found = state.members.cursor_lower_bound(&id)?;
        let (id, member) = found.current();

        Some((*id, member.kmd.clone()))
    }

    /// All of them are suspended, or about to be resumed.
    fn log_change(&self, kind: Kind, why: Why) {
        self.log.write(|| Action {
            kind,
            // CAST: the bit of the variant.
            flags: why as u32,
            ..Action::default()
        });
    }

    /// SetRootPageTable of the context with this id.
    fn log_root(&self, id: u64, root: &RootPageTable) {
        self.log.write(|| Action {
            kind: Kind::Ddi,
            operation: Operation::SetRootPageTable,
            object: id,
            count: root.entries.into(),
            segment: root.segment,
            offset: root.address,
            ..Action::default()
        });
    }

    fn leave(&self, id: u64) {
        let roots = self.roots.lock();
        let node = self.state.lock().members.remove_node(&id);

        drop(roots);
        drop(node);
    }
}

/// A context in the KMD, which uses its address space until this is dropped. That is the last
/// reference to what the KMD has made.
pub(in crate::dxgk) struct SpaceContext {
    id: u64,
    kmd: Arc<object::Context>,
    /// `None` if the adapter has no GPU addresses.
    contexts: Option<Arc<Contexts>>,
    /// For it the KMD may have memory, until it has destroyed it.
    user: Option<ContextUser>,
}

impl SpaceContext {
    /// A context of an adapter without GPU addresses.
    pub(in crate::dxgk) fn without_addresses(kmd: Arc<object::Context>) -> Self {
        Self {
            id: 0,
            kmd,
            contexts: None,
            user: None,
        }
    }

    /// For the context the KMD may have memory.
    pub(in crate::dxgk) fn used_by(self, user: Option<ContextUser>) -> Self {
        let mut context = self;

        context.user = user;
        context
    }
}

impl Deref for SpaceContext {
    type Target = Arc<object::Context>;

    fn deref(&self) -> &Self::Target {
        &self.kmd
    }
}

impl Drop for SpaceContext {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        if let Some(contexts) = &self.contexts {
            contexts.leave(self.id);
        }
    }
}
