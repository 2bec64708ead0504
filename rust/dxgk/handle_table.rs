// SPDX-License-Identifier: GPL-2.0

//! The local handles of one process: one table for all kinds of objects (RES-6, RES-7).
//!
//! A handle is made in two steps. A *reserved* handle has its number, so that the number can be
//! copied out, but does not resolve; *publishing* it cannot fail and is the last thing a call does
//! (RES-3). A reserved handle that is dropped gives its number back (RES-4).
//!
//! LOCK: `order` comes before the lock of `entries`, which is a leaf. Lookups take the latter only.
//! Objects are dropped with neither held.

use super::{
    adapter::Adapter,
    census::{
        Member,
        HANDLES, //
    },
    context::Context,
    device::Device,
    opening::{
        Opened,
        Opening, //
    },
    sync_object::Strong, //
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
    list::{
        impl_list_arc_safe,
        impl_list_item,
        List,
        ListArc,
        ListLinks, //
    },
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
    xarray::{
        AllocKind,
        Guard,
        XArray, //
    }, //
};

/// What a local handle can stand for.
pub(crate) enum Object {
    /// An adapter.
    Adapter(Arc<Adapter>),
    /// A device.
    Device(Arc<Device>),
    /// A context.
    Context(Arc<Context>),
    /// A synchronisation object.
    Sync(Opening),
}

/// One handle. Held by the table and by the list of handles in order of creation.
#[pin_data]
struct Entry {
    #[pin]
    links: ListLinks,
    /// Set once, before the entry is in the table.
    index: Atomic<u32>,
    /// The device this handle goes with.
    parent: Option<u64>,
    published: Atomic<bool>,
    object: Object,
    _member: Member,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Entry { untracked; }
}
impl_list_item! {
    impl ListItem<0> for Entry { using ListLinks { self.links }; }
}

struct Order {
    cursor: Cursor,
    /// Every entry of the table, oldest first.
    created: List<Entry>,
    count: u32,
    /// The process is gone; nothing may be added.
    closed: bool,
}

/// See the module.
#[pin_data]
pub(crate) struct HandleTable {
    #[pin]
    entries: XArray<Arc<Entry>>,
    #[pin]
    order: Mutex<Order>,
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
        // CAST: an index has 24 bits.
        if let Some(entry) = self.table.entries.lock().get(self.index as usize) {
            // ORDERING: release, so that a lookup that sees the flag sees the object. Pairs with
            // the acquire load in `Lookup::find`.
            entry.published.store(true, Release);
        }
        core::mem::forget(self);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let removed = self.table.remove(self.index, true);

        drop(removed);
    }
}

impl HandleTable {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- XArray::new(AllocKind::Alloc),
            order <- new_mutex!(
                Order {
                    cursor: Cursor::new(),
                    created: List::new(),
                    count: 0,
                    closed: false,
                },
                "HandleTable::order"
            ),
        })
    }

    /// How many handles there are.
    pub(crate) fn count(&self) -> u32 {
        self.order.lock().count
    }

    /// Gives `object` a number. With `parent`, a handle to a device of this table, the new handle
    /// goes when that handle goes.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(&self, object: Object, parent: Option<&Parent>) -> Outcome<Reserved<'_>> {
        // Declared before the lock, so that whatever fails below is dropped after the lock.
        let entry: ListArc<Entry> = ListArc::pin_init(
            try_pin_init!(Entry {
                links <- ListLinks::new(),
                index: Atomic::new(0),
                parent: parent.map(|parent| parent.device.id()),
                published: Atomic::new(false),
                object,
                _member: HANDLES.enter(),
            }? Error),
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut order = self.order.lock();

        if order.closed || order.count >= params::max_handles() {
            return Err(Status::NO_MEMORY.into());
        }
        // The device may have been destroyed since it was looked up.
        if parent.is_some_and(|parent| !self.is_live(parent)) {
            return Err(Status::INVALID_PARAMETER.into());
        }

        // CAST: an index has 24 bits.
        let free = |index: u32| self.entries.lock().get(index as usize).is_none();
        let index = order.cursor.take(free).ok_or(Status::NO_MEMORY)?;

        entry.index.store(index, Relaxed);

        let stored = self.entries.lock().store(
            // CAST: an index has 24 bits.
            index as usize,
            entry.clone_arc(),
            GFP_KERNEL_ACCOUNT,
        );

        if let Err(error) = stored {
            order.cursor.put_back(index);
            return Err(error.error.into());
        }
        order.created.push_back(entry);
        order.count += 1;
        Ok(Reserved { table: self, index })
    }

    fn is_live(&self, parent: &Parent) -> bool {
        let entries = self.entries.lock();
        // CAST: an index has 24 bits.
        let entry = entries.get(parent.index as usize);

        entry.is_some_and(|entry| match &entry.object {
            Object::Device(device) => Arc::ptr_eq(device, &parent.device),
            _ => false,
        })
    }

    /// Looks handles up. Nothing may be dropped, allocated or slept on while the result lives.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup(self.entries.lock())
    }

    /// The adapter behind a handle.
    pub(crate) fn adapter(&self, local: u32) -> Outcome<Arc<Adapter>> {
        self.lookup().find(local, |object| match object {
            Object::Adapter(adapter) => Some(adapter.clone()),
            _ => None,
        })
    }

    /// The device behind a handle.
    pub(crate) fn device(&self, local: u32) -> Outcome<Arc<Device>> {
        self.lookup().find(local, |object| match object {
            Object::Device(device) => Some(device.clone()),
            _ => None,
        })
    }

    /// The device behind a handle, as the parent of new handles.
    pub(crate) fn parent(&self, local: u32) -> Outcome<Parent> {
        let device = self.device(local)?;

        Ok(Parent {
            device,
            index: handle::local_index(local).unwrap_or_default(),
        })
    }

    /// The synchronisation object behind a handle.
    pub(crate) fn sync_object(&self, local: u32) -> Outcome<Opened> {
        self.lookup().sync_object(local)
    }

    /// A strong reference to the synchronisation object behind a handle, of its own, and the access
    /// that may be given away with it.
    pub(crate) fn strong(&self, local: u32) -> Outcome<(Strong, u32)> {
        self.lookup().find(local, |object| match object {
            Object::Sync(opening) => {
                let (strong, access) = opening.strong();

                Strong::upgrade(strong.object()).map(|strong| (strong, access))
            }
            _ => None,
        })
    }

    /// Takes out a published entry, or a reserved one.
    fn remove(&self, index: u32, reserved: bool) -> Option<ListArc<Entry>> {
        let mut order = self.order.lock();
        let entry = {
            let mut entries = self.entries.lock();
            // CAST: an index has 24 bits.
            let entry = entries.get(index as usize)?;

            if entry.published.load(Acquire) == reserved {
                return None;
            }
            // CAST: an index has 24 bits.
            entries.remove(index as usize)?
        };

        order.count -= 1;
        if reserved {
            order.cursor.put_back(index);
        }
        // SAFETY: Every entry of the table is in `created` of the same table, put there under the
        // lock that we hold, and in no other list of this kind.
        unsafe { order.created.remove(&entry) }
    }

    /// Destroys the handle if `accept` agrees with what it stands for; the object is dropped before
    /// this returns.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn destroy(&self, local: u32, accept: impl FnOnce(&Object) -> bool) -> Outcome {
        let index = self.lookup().find(local, |object| {
            accept(object).then(|| handle::local_index(local))?
        })?;
        // Two threads may get here with one handle; one of them takes it out. The number cannot
        // stand for something else by now, because numbers are not used again so soon.
        let removed = self.remove(index, false).ok_or(Status::INVALID_PARAMETER)?;

        if let Object::Device(device) = &removed.object {
            self.destroy_all(|entry| entry.parent == Some(device.id()));
        }
        Ok(())
    }

    /// Destroys all entries that `chosen` names, youngest first.
    fn destroy_all(&self, mut chosen: impl FnMut(&Entry) -> bool) {
        let mut victims = List::new();
        let mut order = self.order.lock();
        let mut gone = 0;
        let mut cursor = order.created.cursor_back();

        while let Some(previous) = cursor.peek_prev() {
            if !chosen(&previous.arc()) {
                cursor.move_prev();
                continue;
            }

            let victim = previous.remove();
            // CAST: an index has 24 bits.
            let index = victim.index.load(Relaxed) as usize;
            // In the list and in the table under one lock, so that nobody else finds it in only
            // one of them. This is not the last reference.
            let removed = self.entries.lock().remove(index);

            drop(removed);
            victims.push_back(victim);
            gone += 1;
        }
        order.count -= gone;
        drop(order);

        while let Some(victim) = victims.pop_front() {
            drop(victim);
        }
    }

    /// Destroys every handle, youngest first, and takes no more (RES-8).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        self.order.lock().closed = true;
        self.destroy_all(|_| true);
    }
}

/// Lookups under one hold of the table's leaf lock.
pub(crate) struct Lookup<'a>(Guard<'a, Arc<Entry>>);

impl Lookup<'_> {
    /// What `look` says about the object behind a handle; INVALID_PARAMETER if that is nothing.
    fn find<T>(&self, local: u32, look: impl FnOnce(&Object) -> Option<T>) -> Outcome<T> {
        handle::local_index(local)
            // CAST: an index has 24 bits.
            .and_then(|index| self.0.get(index as usize))
            // ORDERING: acquire, pairs with the release store in `Reserved::publish`.
            .filter(|entry| entry.published.load(Acquire))
            .and_then(|entry| look(&entry.object))
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// The number of the adapter that the device behind a handle is on.
    pub(crate) fn device_adapter(&self, local: u32) -> Outcome<u32> {
        self.find(local, |object| match object {
            Object::Device(device) => Some(device.adapter.caps.index),
            _ => None,
        })
    }

    /// The synchronisation object behind a handle.
    pub(crate) fn sync_object(&self, local: u32) -> Outcome<Opened> {
        self.find(local, |object| match object {
            Object::Sync(opening) => Some(opening.opened()),
            _ => None,
        })
    }
}

/// A device together with the handle that new handles go with.
pub(crate) struct Parent {
    /// The device.
    pub(crate) device: Arc<Device>,
    index: u32,
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_handle_table)]
mod tests {
    use super::*;

    fn table() -> Result<Arc<HandleTable>> {
        Arc::pin_init(HandleTable::new(), GFP_KERNEL)
    }

    fn adapter() -> Result<Object> {
        Ok(Object::Adapter(Adapter::new(0)?))
    }

    fn reserve<'a>(table: &'a HandleTable, parent: Option<&Parent>) -> Result<Reserved<'a>> {
        table.reserve(adapter()?, parent).map_err(|_| EINVAL)
    }

    fn is_adapter(object: &Object) -> bool {
        matches!(object, Object::Adapter(_))
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
            .reserve(Object::Device(Device::new(Adapter::new(0)?)?), None)
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
            .destroy(device_handle, |object| matches!(object, Object::Device(_)))
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
