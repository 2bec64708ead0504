// SPDX-License-Identifier: GPL-2.0

//! The local handles of one process: one table for all kinds of objects (RES-6, RES-7).
//!
//! A handle is made in two steps. A *reserved* handle has its number, so that the number can be
//! copied out, but does not resolve; *publishing* it cannot fail and is the last thing a call does
//! (RES-3). A reserved handle that is dropped gives its number back (RES-4).
//!
//! The table is a tree, not an array of some kind: numbers come in one increasing chain and are not
//! used again, so that an array would make and free a node for every object of a client that makes
//! and destroys one after the other. It also keeps the handles in order of creation.
//!
//! LOCK: `state` is a leaf. Lookups clone references under it; entries are allocated before it and
//! dropped after it.

use super::{
    adapter::Adapter,
    address_space::AddressSpace,
    bundle::{
        Bundle,
        Origin, //
    },
    census::{
        Kind,
        Member,
        HANDLES, //
    },
    context::Context,
    device::Device,
    keyed_mutex::KeyedMutex,
    mutex_opening::MutexOpening,
    object::{
        Object,
        Strong, //
    },
    open_allocation::OpenAllocation,
    opening::{
        Opened,
        Opening, //
    }, //
};
use crate::{
    logic::handle::{
        self,
        Cursor, //
    },
    sys::params,
    uapi::status::{
        Outcome,
        Status, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    seq_file::SeqFile,
    seq_print,
    sync::{
        lock::{
            spinlock::SpinLockBackend,
            Guard, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// What a local handle can stand for.
pub(crate) enum Item {
    /// An adapter.
    Adapter(Arc<Adapter>),
    /// A device.
    Device(Arc<Device>),
    /// A context.
    Context(Arc<Context>),
    /// A synchronisation object.
    Sync(Opening),
    /// A keyed mutex.
    KeyedMutex(Opening),
    /// A resource.
    Resource(Arc<Bundle>),
    /// An allocation, in a resource or by itself.
    Allocation(Arc<OpenAllocation>),
}

/// One handle.
struct Entry {
    /// The device whose handle this one goes with.
    parent: Option<u32>,
    published: bool,
    item: Item,
    _member: Member,
}

impl Entry {
    /// What it stands for.
    fn item(&self) -> &Item {
        &self.item
    }

    /// A copy of what fdinfo shows, to be printed without the lock.
    fn line(&self) -> Line {
        match &self.item {
            Item::Adapter(adapter) => Line::Other(Kind::Adapter, adapter.caps.index.into()),
            Item::Device(device) => Line::Other(Kind::Device, device.id()),
            Item::Context(context) => Line::Other(Kind::Context, context.id()),
            Item::Sync(opening) | Item::KeyedMutex(opening) => Line::Object {
                kind: opening.object().header().kind(),
                object: opening.object().clone(),
                access: opening.access(),
            },
            Item::Resource(bundle) => Line::Object {
                kind: Kind::Resource,
                object: bundle.object().clone(),
                access: bundle.access,
            },
            Item::Allocation(opened) => Line::Allocation(opened.clone()),
        }
    }

    fn found<T>(&self, what: T) -> Found<T> {
        Found {
            what,
            device: self.parent,
        }
    }

    fn refers_to(&self, id: u64) -> bool {
        self.published
            && match &self.item {
                Item::Sync(opening) | Item::KeyedMutex(opening) => {
                    opening.object().header().id() == id
                }
                Item::Resource(bundle) => bundle.object().header().id() == id,
                // Part of its bundle, unless it is the bundle.
                Item::Allocation(opened) => {
                    !opened.bundle.has_resource_handle && opened.bundle.object().header().id() == id
                }
                _ => false,
            }
    }
}

/// What fdinfo shows of a handle.
enum Line {
    /// A shareable object.
    Object {
        kind: Kind,
        object: Object,
        access: u32,
    },
    /// An allocation, which has the id and the references of its container.
    Allocation(Arc<OpenAllocation>),
    /// Something else, and its id.
    Other(Kind, u64),
}

impl Line {
    fn print(&self, m: &SeqFile, handle: u32) {
        match self {
            Self::Other(kind, id) => {
                seq_print!(m, "dxg-handle:\t{handle:#010x} {} {id}\n", kind.name());
            }
            Self::Object {
                kind,
                object,
                access,
            } => {
                let header = object.header();

                Self::print_object(m, handle, *kind, object, *access);
                seq_print!(m, "\n");
                header.attached.show_entries(m, header.id());
            }
            Self::Allocation(opened) => {
                let bundle = &opened.bundle;

                Self::print_object(m, handle, Kind::Allocation, bundle.object(), bundle.access);
                opened.allocation.show(m);
                seq_print!(m, "\n");
            }
        }
    }

    fn print_object(m: &SeqFile, handle: u32, kind: Kind, object: &Object, access: u32) {
        let header = object.header();
        let (id, references) = (header.id(), header.references());
        let waiters = object.waiting();

        seq_print!(m, "dxg-handle:\t{handle:#010x} {} {id}", kind.name());
        seq_print!(m, " refs={references} access={access:#x} waiters={waiters}");
    }
}

/// What a lookup found, and the handle of the device it goes with.
pub(crate) struct Found<T> {
    /// What the handle stands for.
    pub(crate) what: T,
    /// The handle of the device that it was made on, if any.
    pub(crate) device: Option<u32>,
}

/// A shareable object that was found by a local handle.
pub(crate) struct Shareable {
    /// A reference of its own.
    pub(crate) strong: Strong,
    /// What the handle may do.
    pub(crate) access: u32,
    /// The access that an NT handle may get; `None` if there may be no NT handle.
    pub(crate) shareable: Option<u32>,
    /// The allocation, if the handle is of one; the object is its container.
    pub(crate) allocation: Option<Arc<OpenAllocation>>,
    /// The handle of the device that it was made on, if any.
    pub(crate) device: Option<u32>,
}

/// Entries that were taken out of a table. Dropping it ends them, last one first.
pub(crate) struct Claimed(KVVec<Entry>);

impl Claimed {
    /// What they stand for.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.0.iter().map(Entry::item)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        while let Some(entry) = self.0.pop() {
            drop(entry);
        }
    }
}

type Node = RBTreeNode<u32, Entry>;

struct State {
    /// By index, which is the order of creation until the numbers wrap.
    entries: RBTree<u32, Entry>,
    cursor: Cursor,
    count: u32,
    /// The process is gone; nothing may be added.
    closed: bool,
}

impl State {
    /// The entry behind a handle, if it is published.
    fn find(&self, local: u32) -> Option<&Entry> {
        let index = handle::local_index(local)?;

        self.entries.get(&index).filter(|entry| entry.published)
    }

    /// Whether a parent that was looked up before has not been destroyed since.
    fn is_live(&self, parent: &Parent) -> bool {
        match self.find(parent.handle).map(|entry| &entry.item) {
            Some(Item::Device(device)) => Arc::ptr_eq(device, &parent.device),
            _ => false,
        }
    }

    /// The largest index below `bound`.
    fn before(&self, bound: u32) -> Option<u32> {
        match self.entries.cursor_lower_bound(&bound) {
            Some(cursor) => cursor.peek_prev().map(|(index, _)| *index),
            None => self.entries.cursor_back().map(|cursor| *cursor.current().0),
        }
    }

    /// Takes the entries of all these handles out, which are there.
    fn take_all(&mut self, handles: &[u32], claimed: &mut Claimed) {
        for local in handles {
            let node = handle::local_index(*local).and_then(|index| self.take(index, |_| true));

            // There is room for all of them.
            if let Some(node) = node {
                let _room = claimed.0.push_within_capacity(node.to_key_value().1);
            }
        }
    }

    /// Takes the entry at `index` out, if `accept` agrees.
    fn take(&mut self, index: u32, accept: impl FnOnce(&Entry) -> bool) -> Option<Node> {
        accept(self.entries.get(&index)?).then_some(())?;
        self.count -= 1;
        self.entries.remove_node(&index)
    }
}

/// See the module.
#[pin_data]
pub(crate) struct HandleTable {
    #[pin]
    state: SpinLock<State>,
}

/// A handle that has a number and does not resolve yet.
pub(crate) struct Reserved<'a> {
    table: &'a HandleTable,
    index: u32,
}

impl Reserved<'_> {
    /// The number.
    pub(crate) fn handle(&self) -> u32 {
        handle::local(self.index)
    }

    /// Makes it resolve.
    pub(crate) fn publish(self) {
        if let Some(entry) = self.table.state.lock().entries.get_mut(&self.index) {
            entry.published = true;
        }
        core::mem::forget(self);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.table.state.lock();
        let node = state.take(self.index, |entry| !entry.published);

        state.cursor.put_back(self.index);
        drop(state);
        drop(node);
    }
}

impl HandleTable {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock!(
                State {
                    entries: RBTree::new(),
                    cursor: Cursor::new(),
                    count: 0,
                    closed: false,
                },
                "HandleTable::state"
            ),
        })
    }

    /// How many handles there are.
    pub(crate) fn count(&self) -> u32 {
        self.state.lock().count
    }

    /// Gives `item` a number. With `parent`, a device of this table, the new handle goes when the
    /// handle of the device goes.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(&self, item: Item, parent: Option<&Parent>) -> Outcome<Reserved<'_>> {
        let entry = Entry {
            parent: parent.map(|parent| parent.handle),
            published: false,
            item,
            _member: HANDLES.enter(),
        };
        // Both are declared before the lock: what is not used is dropped after it.
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut state = self.state.lock();

        if state.closed || state.count >= params::max_handles() {
            return Err(Status::NO_MEMORY.into());
        }
        if parent.is_some_and(|parent| !state.is_live(parent)) {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let State {
            entries, cursor, ..
        } = &mut *state;
        let index = cursor
            .take(|index| entries.get(&index).is_none())
            .ok_or(Status::NO_MEMORY)?;

        // The index is free, so that nothing is replaced.
        let _nothing = entries.insert(node.into_node(index, entry));

        state.count += 1;
        Ok(Reserved { table: self, index })
    }

    /// Looks handles up. Nothing may be dropped, allocated or slept on while the result lives.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup(self.state.lock())
    }

    /// The adapter behind a handle.
    pub(crate) fn adapter(&self, local: u32) -> Outcome<Arc<Adapter>> {
        self.lookup().find(local, |entry| match &entry.item {
            Item::Adapter(adapter) => Some(adapter.clone()),
            _ => None,
        })
    }

    /// The device behind a handle.
    pub(crate) fn device(&self, local: u32) -> Outcome<Arc<Device>> {
        self.lookup().find(local, |entry| match &entry.item {
            Item::Device(device) => Some(device.clone()),
            _ => None,
        })
    }

    /// The device behind a handle, as the parent of new handles. DEVICE_REMOVED if its adapter is
    /// stopped.
    pub(crate) fn parent(&self, local: u32) -> Outcome<Parent> {
        let device = self.device(local)?;

        if device.adapter.is_stopped() {
            return Err(Status::DEVICE_REMOVED.into());
        }
        Ok(Parent {
            device,
            handle: local,
        })
    }

    /// The synchronisation object behind a handle.
    pub(crate) fn sync_object(&self, local: u32) -> Outcome<Opened> {
        self.lookup().sync_object(local)
    }

    /// The keyed mutex behind a handle, and what its owner remembers of the handle.
    pub(crate) fn keyed_mutex(&self, local: u32) -> Outcome<(Arc<KeyedMutex>, Arc<MutexOpening>)> {
        self.lookup().find(local, |entry| match &entry.item {
            Item::KeyedMutex(opening) => opening.keyed_mutex(),
            _ => None,
        })
    }

    /// The bundle behind the handle of a resource.
    pub(crate) fn resource(&self, local: u32) -> Outcome<Found<Arc<Bundle>>> {
        self.lookup().find(local, |entry| match &entry.item {
            Item::Resource(bundle) => Some(entry.found(bundle.clone())),
            _ => None,
        })
    }

    /// What the handle of an allocation stands for.
    pub(crate) fn allocation(&self, local: u32) -> Outcome<Found<Arc<OpenAllocation>>> {
        self.lookup().find(local, |entry| match &entry.item {
            Item::Allocation(opened) => Some(entry.found(opened.clone())),
            _ => None,
        })
    }

    /// What the handle of a shareable object stands for, with a reference of its own.
    pub(crate) fn shareable(&self, local: u32) -> Outcome<Shareable> {
        self.lookup().find(local, |entry| {
            let (object, access, shareable) = match &entry.item {
                Item::Sync(opening) | Item::KeyedMutex(opening) => (
                    opening.object(),
                    opening.access(),
                    opening.shareable_access(),
                ),
                Item::Resource(bundle) => (
                    bundle.object(),
                    bundle.access,
                    (bundle.origin != Origin::OpenedByGlobal).then_some(bundle.access),
                ),
                Item::Allocation(opened) => (opened.bundle.object(), opened.bundle.access, None),
                _ => return None,
            };

            Some(Shareable {
                strong: Strong::upgrade(object)?,
                access,
                shareable,
                allocation: match &entry.item {
                    Item::Allocation(opened) => Some(opened.clone()),
                    _ => None,
                },
                device: entry.parent,
            })
        })
    }

    /// The rights of the opening behind a handle, for another opening of the same object.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn duplicate_opening(
        &self,
        local: u32,
        strong: Strong,
        space: &Arc<AddressSpace>,
    ) -> Outcome<Opening> {
        let like = self.lookup().find(local, |entry| match &entry.item {
            Item::Sync(opening) | Item::KeyedMutex(opening) => Some(opening.terms()),
            _ => None,
        })?;

        Ok(Opening::on_terms(strong, like, space)?)
    }

    /// How many handles of this process refer to the object with this id. Looks at every handle:
    /// for queries only.
    pub(crate) fn count_of(&self, id: u64) -> u32 {
        let mut count = 0;
        let mut seen = 0;

        while let Some((index, is_one)) = self.after(seen, |entry| entry.refers_to(id)) {
            count += u32::from(is_one);
            seen = index;
        }
        count
    }

    /// Prints a line for each handle. The lock is held for one handle at a time, so that a table of
    /// any size can be looked at without holding anybody up.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn show(&self, m: &SeqFile) {
        let mut seen = 0;

        while let Some((index, line)) =
            self.after(seen, |entry| entry.published.then(|| entry.line()))
        {
            if let Some(line) = line {
                line.print(m, handle::local(index));
            }
            seen = index;
        }
    }

    /// What `look` says about the first entry above the index `seen`, and its index.
    fn after<T>(&self, seen: u32, look: impl FnOnce(&Entry) -> T) -> Option<(u32, T)> {
        let state = self.state.lock();
        let cursor = state.entries.cursor_lower_bound(&seen.checked_add(1)?)?;
        let (index, entry) = cursor.current();

        Some((*index, look(entry)))
    }

    /// Takes the entries of all these handles out at once, if `accept` agrees with each; otherwise
    /// nothing is taken. `sorted` are different numbers in increasing order.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn claim(
        &self,
        sorted: &[u32],
        mut accept: impl FnMut(Option<u32>, &Item) -> bool,
    ) -> Outcome<Claimed> {
        let mut claimed = Claimed(KVVec::with_capacity(sorted.len(), GFP_KERNEL_ACCOUNT)?);
        let mut state = self.state.lock();

        for local in sorted {
            if !state
                .find(*local)
                .is_some_and(|entry| accept(entry.parent, &entry.item))
            {
                return Err(Status::INVALID_PARAMETER.into());
            }
        }
        state.take_all(sorted, &mut claimed);
        Ok(claimed)
    }

    /// Destroys the handle if `accept` agrees with what it stands for; the object is dropped before
    /// this returns.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn destroy(&self, local: u32, accept: impl FnOnce(&Item) -> bool) -> Outcome {
        let index = handle::local_index(local).ok_or(Status::INVALID_PARAMETER)?;
        let node = self
            .state
            .lock()
            .take(index, |entry| entry.published && accept(&entry.item))
            .ok_or(Status::INVALID_PARAMETER)?;
        let (_, entry) = node.to_key_value();

        if matches!(entry.item, Item::Device(_)) {
            self.destroy_all(|child| child.parent == Some(local));
        }
        Ok(())
    }

    /// Destroys all entries that `chosen` names, youngest first. The lock is not held for longer
    /// than it takes to look at one entry.
    fn destroy_all(&self, chosen: impl Fn(&Entry) -> bool) {
        let mut bound = u32::MAX;

        loop {
            let mut state = self.state.lock();
            let Some(index) = state.before(bound) else {
                break;
            };
            let node = state.take(index, &chosen);

            drop(state);
            drop(node);
            bound = index;
        }
    }

    /// Destroys every handle, youngest first, and takes no more (RES-8).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.destroy_all(|_| true);
    }
}

/// Lookups under one hold of the table's lock.
pub(crate) struct Lookup<'a>(Guard<'a, State, SpinLockBackend>);

impl Lookup<'_> {
    /// What `look` says about the entry of a handle; INVALID_PARAMETER if that is nothing.
    fn find<T>(&self, local: u32, look: impl FnOnce(&Entry) -> Option<T>) -> Outcome<T> {
        self.0
            .find(local)
            .and_then(look)
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// The number of the adapter that the device behind a handle is on.
    pub(crate) fn device_adapter(&self, local: u32) -> Outcome<u32> {
        self.find(local, |entry| match &entry.item {
            Item::Device(device) => Some(device.adapter.caps.index),
            _ => None,
        })
    }

    /// The synchronisation object behind a handle.
    pub(crate) fn sync_object(&self, local: u32) -> Outcome<Opened> {
        self.find(local, |entry| match &entry.item {
            Item::Sync(opening) => Some(opening.opened(entry.parent)),
            _ => None,
        })
    }
}

/// A device together with the handle that new handles go with.
pub(crate) struct Parent {
    /// The device.
    pub(crate) device: Arc<Device>,
    handle: u32,
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_handle_table)]
mod tests {
    use super::*;

    fn table() -> Result<Arc<HandleTable>> {
        Arc::pin_init(HandleTable::new(), GFP_KERNEL)
    }

    fn adapter() -> Result<Item> {
        Ok(Item::Adapter(Adapter::new(0)?))
    }

    fn reserve<'a>(table: &'a HandleTable, parent: Option<&Parent>) -> Result<Reserved<'a>> {
        table.reserve(adapter()?, parent).map_err(|_| EINVAL)
    }

    fn is_adapter(item: &Item) -> bool {
        matches!(item, Item::Adapter(_))
    }

    /// RES-6, FEN-52.
    #[test]
    fn handles_come_in_one_chain() -> Result {
        let table = table()?;
        let first = reserve(&table, None)?;
        let second = reserve(&table, None)?;

        assert_eq!(first.handle() + 0x40, second.handle());
        assert_eq!(first.handle() & 0x3f, 0);
        first.publish();
        second.publish();
        Ok(())
    }

    /// RES-3.
    #[test]
    fn a_reserved_handle_does_not_resolve() -> Result {
        let table = table()?;
        let reserved = reserve(&table, None)?;
        let handle = reserved.handle();

        assert!(table.adapter(handle).is_err());
        assert!(table.destroy(handle, is_adapter).is_err());
        reserved.publish();
        assert!(table.adapter(handle).is_ok());
        assert!(table.device(handle).is_err());
        Ok(())
    }

    /// RES-4.
    #[test]
    fn a_dropped_reservation_gives_its_number_back() -> Result {
        let table = table()?;
        let reserved = reserve(&table, None)?;
        let handle = reserved.handle();

        drop(reserved);
        assert_eq!(table.count(), 0);
        assert_eq!(reserve(&table, None)?.handle(), handle);
        Ok(())
    }

    /// A destroyed number is dead and is not given out again.
    #[test]
    fn a_destroyed_handle_stays_dead() -> Result {
        let table = table()?;
        let reserved = reserve(&table, None)?;
        let handle = reserved.handle();

        reserved.publish();
        assert!(table.destroy(handle, |_| false).is_err());
        assert!(table.destroy(handle, is_adapter).is_ok());
        assert!(table.destroy(handle, is_adapter).is_err());
        assert!(table.adapter(handle).is_err());
        assert_eq!(reserve(&table, None)?.handle(), handle + 0x40);
        Ok(())
    }

    /// RES-31: what was made on a device goes with it, and nothing else.
    #[test]
    fn a_device_takes_its_children_along() -> Result {
        let table = table()?;
        let other = reserve(&table, None)?;
        let device = table
            .reserve(Item::Device(Device::new(Adapter::new(0)?)?), None)
            .map_err(|_| EINVAL)?;
        let (other_handle, device_handle) = (other.handle(), device.handle());

        other.publish();
        device.publish();

        let parent = table.parent(device_handle).map_err(|_| EINVAL)?;
        let child = reserve(&table, Some(&parent))?;
        let child_handle = child.handle();

        child.publish();
        assert_eq!(table.count(), 3);
        assert!(table
            .destroy(device_handle, |item| matches!(item, Item::Device(_)))
            .is_ok());
        assert!(table.adapter(child_handle).is_err());
        assert!(table.adapter(other_handle).is_ok());
        assert_eq!(table.count(), 1);
        // The device was looked up before it went.
        assert!(reserve(&table, Some(&parent)).is_err());
        Ok(())
    }

    /// RES-8.
    #[test]
    fn a_closed_table_is_empty_and_takes_no_more() -> Result {
        let table = table()?;

        reserve(&table, None)?.publish();

        let pending = reserve(&table, None)?;

        table.close();
        assert_eq!(table.count(), 0);
        assert!(reserve(&table, None).is_err());
        pending.publish();
        assert_eq!(table.count(), 0);
        Ok(())
    }
}
