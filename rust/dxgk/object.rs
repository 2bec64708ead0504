// SPDX-License-Identifier: GPL-2.0

//! What all shareable objects have in common, and what keeps them alive (RES-1).
//!
//! There are two counts. [`Arc`] keeps memory. [`Strong`] keeps an object alive as D3DKMT means it:
//! each local handle, open resource, share and dma-buf holds one (RES-78). When the last one goes,
//! the object can no longer be used and retires (see [`super::retire`]). Waits and lookups in
//! flight may keep the memory of the struct a little longer (RES-10, FEN-27, FEN-28).

use super::{
    adapter::Adapter,
    info::{
        attachments::{
            Attached,
            Attachments,
            Retired, //
        },
        weak::WeakTarget, //
    },
    keyed_mutex::KeyedMutex,
    memory::resource::Resource,
    quota::account::{
        Accounts,
        GlobalHandles,
        ObjectCharge, //
    },
    share::{
        global_table::{
            self,
            GlobalTable, //
        },
        openers::Openers, //
    },
    stats::{
        self,
        Counted,
        CountedOn,
        ObjectKind,
        OwnStats,
        Stats,
        OBJECTS, //
    },
    sync::{
        about::About,
        cpu_event::CpuEvent,
        fence::Fence,
        legacy::LegacySync, //
    }, //
};
use crate::{
    error::DxgResult,
    logic::{
        access,
        sync_flags::Sharing,
        waiters::WaitKey, //
    },
    sys::{
        strong_count::StrongCount,
        task::credentials::Credentials,
        trace, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Acquire,
            Atomic, //
        },
        Arc, //
    }, //
};

/// The table of global handles.
pub(crate) type Globals = GlobalTable<Object>;

impl GlobalHandles for Globals {
    fn remove(&self, global: u32) {
        GlobalTable::remove(self, global);
    }
}

/// A global handle that does not resolve yet.
pub(crate) type ReservedGlobal<'a> = global_table::ReservedGlobal<'a, Object>;

/// The common part of a shareable object.
#[pin_data(PinnedDrop)]
pub(crate) struct Header {
    /// Never used for anything else.
    id: u64,
    /// What it is.
    kind: ObjectKind,
    /// The adapter it was made on, where it is counted; a keyed mutex has none.
    pub(crate) adapter: Counted<Option<Arc<Adapter>>, OBJECTS>,
    /// How it may be shared.
    pub(crate) sharing: Sharing,
    /// What it was made as.
    traits: Traits,
    /// Who made it.
    pub(crate) creator: Credentials,
    /// Its global handle, or 0. Set once, before the object can be found.
    global: Atomic<u32>,
    /// The charge to the creator's user. The table of global handles is found through it.
    pub(crate) charge: ObjectCharge,
    /// How many [`Strong`] there are.
    strong: StrongCount,
    /// The processes that have it open.
    #[pin]
    pub(crate) openers: Openers,
    retired: Retired,
    #[pin]
    attached: Attached<Object>,
}

/// What an object was made as, in one byte: a fence has no room for more.
#[derive(Clone, Copy)]
pub(crate) struct Traits(u8);

impl Traits {
    /// Devices of other adapters may use it.
    const CROSS_ADAPTER: u8 = 1 << 0;
    /// It is a TopOfPipeline fence.
    const TOP_OF_PIPELINE: u8 = 1 << 1;

    /// A fence like any other.
    pub(crate) const NONE: Self = Self(0);

    /// For other adapters, or not.
    pub(crate) fn of(is_cross_adapter: bool) -> Self {
        Self(if is_cross_adapter {
            Self::CROSS_ADAPTER
        } else {
            0
        })
    }

    /// The same for a TopOfPipeline fence, or not.
    pub(crate) fn or_top_of_pipeline(self, is_one: bool) -> Self {
        Self(self.0 | if is_one { Self::TOP_OF_PIPELINE } else { 0 })
    }

    fn is(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl CountedOn for Header {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.adapter.stats()
    }
}

impl Header {
    /// The header of a new object that nothing refers to yet.
    pub(crate) fn new(
        kind: ObjectKind,
        adapter: Option<Arc<Adapter>>,
        sharing: Sharing,
        traits: Traits,
        charge: ObjectCharge,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            // Not an `ObjectId`, which has room that nothing else could use.
            id: stats::created(kind),
            kind,
            adapter: Counted::new(adapter),
            sharing,
            traits,
            creator: Credentials::of_caller(),
            global: Atomic::new(0),
            charge,
            strong: StrongCount::new(),
            openers <- Openers::new(),
            retired: Retired::new(),
            attached <- Attached::new(),
        })
    }

    /// What its users have attached to it.
    pub(crate) fn attachments(&self) -> Attachments<'_, Object> {
        self.attached.of(&self.retired)
    }

    /// Whether queued signals of it take effect when the commands before them were fetched
    /// (FEN-41).
    pub(crate) fn is_top_of_pipeline(&self) -> bool {
        self.traits.is(Traits::TOP_OF_PIPELINE)
    }

    /// How many strong references there are.
    pub(crate) fn references(&self) -> u32 {
        self.strong.get()
    }

    /// The object's global handle, or 0.
    pub(crate) fn global(&self) -> u32 {
        self.global.load(Acquire)
    }

    /// Whether a device of `adapter` may use it (RES-53).
    pub(crate) fn is_for(&self, adapter: &Arc<Adapter>) -> bool {
        self.traits.is(Traits::CROSS_ADAPTER)
            || self
                .adapter
                .as_ref()
                .is_none_or(|own| Arc::ptr_eq(own, adapter))
    }

    /// Whether it was made on `adapter`.
    pub(crate) fn is_of(&self, adapter: &Arc<Adapter>) -> bool {
        self.adapter
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, adapter))
    }

    /// DEVICE_REMOVED if its adapter is removed. Existing handles stay valid; the object cannot be
    /// opened again.
    pub(crate) fn check_adapter(&self) -> DxgResult {
        match &*self.adapter {
            Some(adapter) => adapter.check(),
            None => Ok(()),
        }
    }

    /// What each user has, to charge those who attach something.
    pub(crate) fn accounts(&self) -> &Arc<Accounts> {
        self.charge.account().accounts()
    }

    /// The object's id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// What it is.
    pub(crate) fn kind(&self) -> ObjectKind {
        self.kind
    }
}

#[pinned_drop]
impl PinnedDrop for Header {
    fn drop(self: Pin<&mut Self>) {
        trace::destroy(self.id, self.kind.number());
    }
}

/// A shareable object of any kind.
#[derive(Clone)]
pub(crate) enum Object {
    /// A synchronisation object of a type that the CPU waits on and signals.
    Fence(Arc<Fence>),
    /// A synchronisation object of a type that only queued work uses.
    Legacy(Arc<LegacySync>),
    /// A resource, also that of a standalone allocation.
    Resource(Arc<Resource>),
    KeyedMutex(Arc<KeyedMutex>),
}

impl Object {
    /// The common part.
    pub(crate) fn header(&self) -> &Header {
        match self {
            Self::Fence(fence) => &fence.header,
            Self::Legacy(object) => &object.header,
            Self::Resource(resource) => &resource.header,
            Self::KeyedMutex(mutex) => &mutex.header,
        }
    }

    /// What it is if the KMD signals it.
    pub(crate) fn cpu_event(&self) -> Option<&CpuEvent> {
        match self {
            Self::Legacy(object) => object.cpu_event(),
            _ => None,
        }
    }

    /// Whether it is a synchronisation object, which is the type of its NT handles.
    pub(crate) fn is_sync(&self) -> bool {
        matches!(self, Self::Fence(_) | Self::Legacy(_))
    }

    /// The type of its NT handles, which says what an access mask means.
    pub(crate) fn access_type(&self) -> access::Type {
        if self.is_sync() {
            access::Type::SyncObject
        } else {
            access::Type::Resource
        }
    }

    /// What weak references and watches refer to; made if there is none yet.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn weak_target(&self) -> DxgResult<Arc<WeakTarget<Self>>> {
        let header = self.header();

        if let Some(known) = header.attachments().weak_target() {
            return Ok(known);
        }
        header.attachments().keep_weak_target(&WeakTarget::new(
            self.clone(),
            header.id(),
            header.kind(),
            header.creator,
            OwnStats::of(header),
        )?)
    }

    /// How many waits there are on it now.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Fence(fence) => fence.waiting(),
            Self::KeyedMutex(mutex) => mutex.waiting(),
            Self::Legacy(_) | Self::Resource(_) => 0,
        }
    }

    /// The wait after the one under this key, or the first one, of an object that
    /// [`Object::waiting`] counts them for.
    pub(crate) fn wait_after(&self, key: Option<&WaitKey>) -> Option<(WaitKey, Option<About>)> {
        match self {
            Self::Fence(fence) => fence.wait_after(key),
            Self::KeyedMutex(mutex) => mutex.wait_after(key),
            Self::Legacy(_) | Self::Resource(_) => None,
        }
    }

    /// Prints what there is to say of those who wait for it, as words of the line of a handle.
    pub(crate) fn show_words(&self, m: &SeqFile) {
        match self {
            Self::Fence(fence) => {
                seq_print!(m, " value={}", fence.value());
                fence.signalled().print(m);
            }
            Self::KeyedMutex(mutex) => mutex.show_words(m),
            Self::Legacy(_) | Self::Resource(_) => {}
        }
    }

    /// Prints the state of the object, as fdinfo shows it.
    pub(crate) fn show(&self, m: &SeqFile) {
        match self {
            Self::Fence(fence) => seq_print!(m, "dxg-value:\t{}\n", fence.value()),
            Self::Legacy(object) => object.show(m),
            Self::Resource(resource) => resource.show(m),
            Self::KeyedMutex(mutex) => mutex.show(m),
        }
    }
}

/// A reference that keeps an object alive in the D3DKMT sense.
pub(crate) struct Strong {
    object: Object,
}

impl CountedOn for Strong {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.object.header().stats()
    }
}

impl Strong {
    /// The first reference to a new object.
    pub(crate) fn first(object: Object) -> Self {
        // The header starts with a count of 1, which is this.
        Self { object }
    }

    /// A reference to an object that was found by its global handle; `None` if it is retiring.
    pub(crate) fn upgrade(object: &Object) -> Option<Self> {
        object.header().strong.inc_not_zero().then(|| Self {
            object: object.clone(),
        })
    }

    /// A reference to the object of a weak reference, unless it has retired (RES-73).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn of_weak(target: &WeakTarget<Object>) -> Option<Self> {
        // The count decides; the pointer may be there a moment longer.
        Self::upgrade(&target.object()?)
    }

    /// One more reference to the same object.
    pub(crate) fn another(&self) -> Option<Self> {
        Self::upgrade(&self.object)
    }

    /// What it keeps alive.
    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    /// Gives the object a global handle, which still has to be committed.
    pub(crate) fn name_globally<'a>(&self, globals: &'a Globals) -> DxgResult<ReservedGlobal<'a>> {
        let header = self.object.header();
        let global = globals.reserve(self.object.clone(), header.id(), header.charge.account())?;

        // On failure the object's end takes the handle back.
        header
            .global
            .store(global.handle(), kernel::sync::atomic::Release);
        Ok(global)
    }
}

impl Drop for Strong {
    /// Context: may sleep, no locks held; any task, as [`Object::retire`] does no work that others
    /// have sized.
    fn drop(&mut self) {
        if self.object.header().strong.dec_and_test() {
            self.object.retire();
        }
    }
}
