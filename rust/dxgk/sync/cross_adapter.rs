// SPDX-License-Identifier: GPL-2.0

//! What a cross-adapter fence has on the adapters that have it open (fences.md section 4).
//!
//! CurrentValue is one word for all of them, and so are the waits of the OS part: those of the CPU
//! and those of queues are in one list. What differs is who looks. An adapter with native fences
//! has a native fence of its own here, with a MonitoredValue that is always 0, so that its engines
//! interrupt at each signal (FEN-137). Whoever signals tells the native fences of the other
//! adapters that the value was stored (FEN-138). That stores nothing and interrupts nobody, so that
//! it ends there (M21).
//!
//! No lock is held while an adapter is told. Where the fence is open is looked up after the value
//! was stored, under `parts`. So a device that opens the fence meanwhile is told, or what its
//! engines read is the new value (M28).
//!
//! Native fences with doorbells ring each other without the OS part (FEN-159). If all adapters that
//! have the fence open are rung, MonitoredValue is what the waiters of the OS part want, on each of
//! them: so a signal that only queues wait for interrupts nobody. As soon as there is another
//! adapter it is 0 again.
//!
//! A doorbell is connected before a device sees the fence on its adapter: so a queue that begins to
//! wait there is rung, or reads the value that was stored before. It is taken away before its
//! native fence is destroyed, because the connection keeps both fences, and before its adapter is
//! stopped.
//!
//! LOCK: `links` is held while the KMD of an adapter makes its native fence, so that there is one
//! (FEN-121), and while doorbells are connected and taken away. `parts` is inside of the lock of
//! the fence, and is held while the KMDs update MonitoredValue, as that is.

use super::{
    fence_binding::{
        BoundFence,
        CrossAdapterFence, //
    },
    fence_storage::{
        CountedPage,
        FenceStorage, //
    },
    kmd_fence::{
        KmdFence,
        NativeView, //
    },
    native_interrupts::Count, //
};
use crate::{
    ddi::{
        native_fence::{
            CurrentValueUpdate,
            NativeFenceType,
            PrivateData, //
        },
        object::native_fence::ConnectedFenceDoorbell, //
    },
    dxgk::adapter::Adapter,
    error::DxgResult,
    logic::{
        fence_value::EVERYBODY_IS_TOLD,
        propagation::{
            self,
            Place,
            Signaller, //
        }, //
    },
    platform::{
        load_acquire,
        store_release,
        Word64, //
    },
    sys::{
        alloc::{
            pin_box,
            tree_place, //
        },
        trace, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex,
        SpinLock, //
    }, //
};

/// The native fence of one adapter, with a MonitoredValue of its own.
pub(crate) struct NativePart {
    // The KMD destroys it before its page goes.
    kmd: KmdFence,
    monitored: CountedPage,
}

impl NativePart {
    /// CreateNativeFence on `adapter`, of a fence whose CurrentValue is in `place`.
    ///
    /// Context: may sleep, no spinlock held.
    fn new(
        adapter: &Arc<Adapter>,
        place: &FenceStorage,
        private_data: &mut PrivateData,
    ) -> DxgResult<Arc<Self>> {
        let monitored = CountedPage::new()?;
        let page = place.page();
        let pages = [&page, &monitored.page];

        store_release(monitored.page.word(0), EVERYBODY_IS_TOLD);
        Ok(Arc::new(
            Self {
                kmd: KmdFence::new(
                    adapter,
                    (pages, place.offset()),
                    EVERYBODY_IS_TOLD,
                    NativeFenceType::Default,
                    private_data,
                )?,
                monitored,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What a device that opens it sees.
    pub(in crate::dxgk) fn view(&self) -> NativeView<'_> {
        NativeView {
            kmd: &self.kmd,
            monitored: Some(&self.monitored.page),
        }
    }

    /// UpdateMonitoredValues with the fence lock held, unless it is this already. True if it was
    /// another.
    fn monitor(&self, value: u64, current_value: &Word64) -> bool {
        let word = self.monitored.page.word(0);
        let is_new = load_acquire(word) != value;

        if is_new {
            self.kmd.store_monitored(word, value, current_value);
        }
        is_new
    }

    /// UpdateCurrentValuesFromCpu with the fence lock held.
    pub(super) fn store(&self, word: &Word64, value: u64) {
        self.kmd
            .store_under_lock(word, value, CurrentValueUpdate::Store);
    }
}

/// Its interrupts, as the fences of its adapter know them.
struct Interrupted {
    fence: Arc<dyn CrossAdapterFence>,
    part: Arc<NativePart>,
    adapter: u64,
}

impl BoundFence for Interrupted {
    fn adapter_ends(self: Arc<Self>) {
        self.fence.clone().silence(self.adapter);
    }

    /// Whoever has it open there is found by the handle.
    fn adapter_removed(self: Arc<Self>) {}

    fn native_signaled(self: Arc<Self>) {
        let is_due = self.part.kmd.begin_look();

        if !self.fence.clone().signaled_on(self.adapter) && is_due {
            self.part.kmd.was_spurious();
        }
    }
}

/// A native fence that interrupts are taken of, until this is dropped.
struct Bound {
    adapter: Arc<Adapter>,
    part: Arc<NativePart>,
    /// It rings all others of which this is true, and they ring it.
    is_rung: bool,
}

impl Bound {
    /// Context: may sleep, no spinlock held.
    fn new(
        fence: &Arc<dyn CrossAdapterFence>,
        adapter: &Arc<Adapter>,
        part: Arc<NativePart>,
    ) -> DxgResult<Self> {
        let interrupted = Arc::new(
            Interrupted {
                fence: fence.clone(),
                part: part.clone(),
                adapter: adapter.id,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let number = adapter.fences.add(interrupted)?;

        part.kmd.name(fence.id());
        part.kmd.number().store(number, Relaxed);
        Ok(Self {
            adapter: adapter.clone(),
            part,
            is_rung: false,
        })
    }
}

impl Drop for Bound {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.adapter
            .fences
            .remove(self.part.kmd.number().load(Relaxed));
    }
}

/// A fence on one adapter.
struct Part {
    adapter: Arc<Adapter>,
    /// Since a device there has opened it as a native fence.
    native: Option<Bound>,
    /// How many openings there are on devices of the adapter.
    opens: u32,
}

impl Part {
    /// What the fence is there.
    fn place(&self) -> Place {
        match &self.native {
            None => Place::Monitored,
            Some(bound) if bound.is_rung => Place::Rung,
            Some(_) => Place::Native,
        }
    }
}

/// A doorbell that engines of one adapter ring on another one.
struct Link {
    from: u64,
    to: u64,
    _connected: ConnectedFenceDoorbell,
}

/// By the ids of the adapters.
type Tree = RBTree<u64, Part>;

struct Parts {
    by_adapter: Tree,
    /// How many sets of NT handles it has (FEN-121).
    shares: u32,
}

/// What a fence that was made with CrossAdapter has more than another.
#[pin_data]
pub(crate) struct CrossAdapter {
    /// Where CurrentValue is.
    pub(super) place: FenceStorage,
    #[pin]
    parts: SpinLock<Parts>,
    /// How many parts are native. Stored under the lock of `parts`.
    natives: Atomic<u32>,
    #[pin]
    links: Mutex<KVec<Link>>,
}

/// One adapter that is to be told.
struct Other {
    id: u64,
    adapter: Arc<Adapter>,
    native: Option<Arc<NativePart>>,
    place: Place,
    is_open: bool,
}

impl Link {
    /// Engines of the first of two adapters, which have these native fences, ring the other one.
    fn new(from: (u64, &NativePart), to: (u64, &NativePart)) -> DxgResult<Self> {
        Ok(Self {
            from: from.0,
            to: to.0,
            _connected: from.1.kmd.connect(&to.1.kmd)?,
        })
    }

    /// Whether it begins or ends there.
    fn is_of(&self, adapter: u64) -> bool {
        self.from == adapter || self.to == adapter
    }
}

/// An adapter rings nobody any more, and is not rung. True if there was somebody.
fn unlink(links: &mut KVec<Link>, adapter: u64) -> bool {
    let before = links.len();

    links.retain(|link| !link.is_of(adapter));
    links.len() != before
}

impl CrossAdapter {
    /// Nobody has it open.
    pub(super) fn new(place: FenceStorage) -> Result<Pin<KBox<Self>>, AllocError> {
        pin_box(
            pin_init!(Self {
                place,
                parts <- new_spinlock!(
                    Parts {
                        by_adapter: RBTree::new(),
                        shares: 0,
                    },
                    "CrossAdapter::parts"
                ),
                natives: Atomic::new(0),
                links <- new_mutex!(KVec::new(), "CrossAdapter::links"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether engines may wait for it by themselves: whoever notices a signal has to tell them.
    pub(super) fn has_natives(&self) -> bool {
        self.natives.load(Relaxed) != 0
    }

    /// A device of `adapter` opens `fence`, which this is of. With `private_data` it opens it as a
    /// native fence, which it gets: the first one makes it, and the KMD answers the client's data
    /// in place. Ended by [`CrossAdapter::leave`].
    ///
    /// Context: a system call of the process, no locks held.
    pub(in crate::dxgk) fn enter(
        &self,
        fence: Arc<dyn CrossAdapterFence>,
        adapter: &Arc<Adapter>,
        private_data: Option<&mut PrivateData>,
    ) -> DxgResult<Option<Arc<NativePart>>> {
        let place = tree_place()?;
        let mut links = self.links.lock();
        // What is not used is dropped after the lock.
        let mut node = Some(place.into_node(
            adapter.id,
            Part {
                adapter: adapter.clone(),
                native: None,
                opens: 0,
            },
        ));
        let native = {
            let mut parts = self.parts.lock();

            if parts.by_adapter.get(&adapter.id).is_none() {
                if let Some(node) = node.take() {
                    // There was none, so that nothing is replaced.
                    let _nothing = parts.by_adapter.insert(node);
                }
            }
            parts.by_adapter.get_mut(&adapter.id).and_then(|part| {
                // OVERFLOW: each is a handle of a process.
                part.opens = part.opens.wrapping_add(1);
                part.native.as_ref().map(|bound| bound.part.clone())
            })
        };
        let is_new = native.is_none() && private_data.is_some();
        let native = match private_data {
            Some(private_data) if is_new => self
                .make(&fence, adapter, private_data, &mut links)
                .map(Some),
            Some(_) => Ok(native),
            None => Ok(None),
        };

        drop(links);
        match &native {
            Ok(_) => fence.clone().adapters_changed(),
            Err(_) => self.leave(fence.clone(), adapter.id),
        }
        if is_new && native.is_ok() {
            // Those who look for stores of engines elsewhere look at it from now on.
            fence.became_native();
        }
        native
    }

    /// Makes the native fence of an adapter, which has none and has the fence open. `links` are
    /// those of this.
    fn make(
        &self,
        fence: &Arc<dyn CrossAdapterFence>,
        adapter: &Arc<Adapter>,
        private_data: &mut PrivateData,
        links: &mut KVec<Link>,
    ) -> DxgResult<Arc<NativePart>> {
        let part = NativePart::new(adapter, &self.place, private_data)?;
        let mut bound = Bound::new(fence, adapter, part)?;

        if adapter.has_fence_doorbells() {
            bound.is_rung = self.connect(adapter.id, &bound.part, links).is_ok();
            if !bound.is_rung {
                // It is told by the OS part.
                unlink(links, adapter.id);
            }
        }
        Ok(self.add_native(adapter.id, bound))
    }

    /// The native fence of this adapter, and those of others that have doorbells, ring each other
    /// from now on.
    fn connect(&self, adapter: u64, part: &NativePart, links: &mut KVec<Link>) -> DxgResult {
        for other in self.all().filter(|other| other.place == Place::Rung) {
            if let Some(native) = other.native.filter(|_| other.adapter.has_fence_doorbells()) {
                for link in [
                    Link::new((adapter, part), (other.id, &native))?,
                    Link::new((other.id, &native), (adapter, part))?,
                ] {
                    links.push(link, GFP_KERNEL_ACCOUNT)?;
                }
            }
        }
        Ok(())
    }

    /// The part of an adapter, which is open, becomes native.
    fn add_native(&self, adapter: u64, bound: Bound) -> Arc<NativePart> {
        let native = bound.part.clone();
        let mut bound = Some(bound);
        let mut parts = self.parts.lock();

        if let Some(part) = parts.by_adapter.get_mut(&adapter) {
            part.native = bound.take();
            // ORDERING: full: who does not see this is seen by `Fence::look_for_engines`.
            self.natives.fetch_add(1, Full);
        }
        drop(parts);
        native
    }

    /// Ends what [`CrossAdapter::enter`] began. If it was the last opening there and there is no NT
    /// handle, the KMD destroys its native fence (FEN-122).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(&self, fence: Arc<dyn CrossAdapterFence>, adapter: u64) {
        let mut links = self.links.lock();
        let gone = {
            let mut parts = self.parts.lock();
            let is_shared = parts.shares != 0;

            parts
                .by_adapter
                .get_mut(&adapter)
                .is_some_and(|part| {
                    // OVERFLOW: this one was counted.
                    part.opens = part.opens.wrapping_sub(1);
                    part.opens == 0 && !is_shared
                })
                .then(|| self.take(&mut parts, adapter))
                .flatten()
        };

        let is_unlinked = gone.is_some() && unlink(&mut links, adapter);

        drop(links);
        drop(gone);
        if is_unlinked {
            // Its engines store nothing any more, but may have stored and rung nobody.
            fence.clone().signaled_on(adapter);
        }
        fence.adapters_changed();
    }

    /// Takes a part out, to be dropped without the lock.
    fn take(&self, parts: &mut Parts, adapter: u64) -> Option<RBTreeNode<u64, Part>> {
        if parts.by_adapter.get(&adapter)?.native.is_some() {
            self.natives.fetch_sub(1, Relaxed);
        }
        parts.by_adapter.remove_node(&adapter)
    }

    /// There are NT handles, until [`CrossAdapter::unshared`].
    ///
    /// Context: no lock but a table's.
    pub(in crate::dxgk) fn shared(&self) {
        let mut parts = self.parts.lock();

        // OVERFLOW: each takes memory.
        parts.shares = parts.shares.wrapping_add(1);
    }

    /// The last NT handle of one set is gone: the native fences go that nobody has open.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn unshared(&self) {
        {
            let mut parts = self.parts.lock();

            // OVERFLOW: this one was counted.
            parts.shares = parts.shares.wrapping_sub(1);
        }
        loop {
            let mut links = self.links.lock();
            let Some((adapter, gone)) = self.take_closed() else {
                return;
            };

            unlink(&mut links, adapter);
            drop(links);
            drop(gone);
        }
    }

    /// An adapter ends: its doorbell is rung no more on return. Its engines ring others as long as
    /// they run.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn silence(&self, adapter: u64) {
        self.links.lock().retain(|link| link.to != adapter);
    }

    /// Takes a part out that nobody has open, unless there are NT handles.
    fn take_closed(&self) -> Option<(u64, RBTreeNode<u64, Part>)> {
        let mut parts = self.parts.lock();

        if parts.shares != 0 {
            return None;
        }

        let mut closed = parts.by_adapter.iter().filter(|(_, part)| part.opens == 0);
        let adapter = *closed.next()?.0;

        Some((adapter, self.take(&mut parts, adapter)?))
    }

    /// The native fence of an adapter that has one.
    pub(super) fn native_on(&self, adapter: u64) -> Option<Arc<NativePart>> {
        let parts = self.parts.lock();
        let bound = parts.by_adapter.get(&adapter)?.native.as_ref()?;

        Some(bound.part.clone())
    }

    /// The first adapter whose id is at least this one.
    fn from(&self, id: u64) -> Option<Other> {
        let parts = self.parts.lock();
        let cursor = parts.by_adapter.cursor_lower_bound(&id)?;
        let (id, part) = cursor.current();

        Some(Other {
            id: *id,
            adapter: part.adapter.clone(),
            native: part.native.as_ref().map(|bound| bound.part.clone()),
            place: part.place(),
            is_open: part.opens != 0,
        })
    }

    /// All adapters that have it open, one after the other.
    fn others(&self) -> impl Iterator<Item = Other> + '_ {
        self.all().filter(|other| other.is_open)
    }

    /// The same with those that had it open, as long as there are NT handles.
    fn all(&self) -> impl Iterator<Item = Other> + '_ {
        let mut next = Some(0);

        core::iter::from_fn(move || {
            let other = self.from(next?)?;

            next = other.id.checked_add(1);
            Some(other)
        })
    }

    /// Whether engines of this adapter ring the doorbells of all others that have one.
    pub(super) fn rings_on(&self, adapter: u64) -> bool {
        let parts = self.parts.lock();

        parts
            .by_adapter
            .get(&adapter)
            .is_some_and(|part| part.place() == Place::Rung)
    }

    /// Waiters of the OS part want MonitoredValue to be this: updates it on all adapters. True if
    /// it was another on some. The fence lock is held.
    pub(super) fn monitor(&self, wanted: u64) -> bool {
        let parts = self.parts.lock();
        let open = parts.by_adapter.values().filter(|part| part.opens != 0);
        let value = propagation::monitored(wanted, open.map(Part::place));
        let natives = parts.by_adapter.values();

        natives
            .filter_map(|part| part.native.as_ref())
            .fold(false, |is_new, bound| {
                bound.part.monitor(value, self.place.word()) || is_new
            })
    }

    /// A value was stored: tells all adapters that do not know (FEN-138). `fence` is the id of the
    /// fence. True if there was one. Takes no memory.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn propagate(&self, fence: u64, from: Signaller) -> bool {
        let mut is_told = false;

        for Other {
            id,
            adapter,
            native,
            place,
            ..
        } in self.others()
        {
            if from.is_known_on(id, place) {
                continue;
            }
            trace::propagate(fence, load_acquire(self.place.word()), from.adapter(), id);
            adapter.native_interrupts.count(Count::Propagations);
            if let Some(native) = native {
                let how = CurrentValueUpdate::NotificationOnly;

                native.kmd.tell(self.place.word(), how);
            }
            is_told = true;
        }
        is_told
    }

    /// A device that could signal it is lost: from now on waits pass on all adapters, and signals
    /// store nothing (FEN-143).
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn always_signal(&self) {
        let natives = self.others().filter_map(|other| other.native);

        natives.for_each(|native| {
            let how = CurrentValueUpdate::AlwaysSignaled;

            native.kmd.tell(self.place.word(), how);
        });
    }
}
