// SPDX-License-Identifier: GPL-2.0

//! What fdinfo shows of local handles: the adapters, the handles, and what belongs to them.

use super::{
    entry::HandleTarget,
    open_allocation::OpenAllocation, //
};
use crate::dxgk::{
    adapter::{
        Adapter,
        Luid, //
    },
    device::Device,
    object::{
        Header,
        Object, //
    },
    stats::ObjectKind,
    sync::cpu_event::CpuEvent, //
};
use crate::sys::seq;
use kernel::{
    prelude::*,
    rbtree::RBTree,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// How many entries of information stores fdinfo shows of one process.
const INFOS_SHOWN: usize = 16384;

/// How many waits it shows of one process, and for one object: who looks at a process pays for what
/// it sees, not for all who wait.
const WAITS_SHOWN: usize = 64;
const WAITS_OF_OBJECT: usize = 8;

/// Prints the information stores of objects, each object once, even if it has several handles.
pub(super) struct Infos {
    /// The objects whose stores were printed or counted as hidden.
    seen: RBTree<u64, ()>,
    shown: usize,
    hidden: usize,
}

impl Infos {
    /// Nothing was printed yet.
    pub(super) fn new() -> Self {
        Self {
            seen: RBTree::new(),
            shown: 0,
            hidden: 0,
        }
    }

    /// Prints the store of an object unless that was done, if all of it fits into what is left.
    fn print(&mut self, m: &SeqFile, header: &Header) {
        let (object, store) = (header.id(), header.attachments().store());
        let entries = store.entries().len();

        if entries == 0 || self.seen.get(&object).is_some() {
            return;
        }

        let fits = entries <= INFOS_SHOWN - self.shown;
        // If this fails, the store counts as hidden each time.
        let is_new = self
            .seen
            .try_create_and_insert(object, (), GFP_KERNEL_ACCOUNT)
            .is_ok();

        if fits && is_new {
            self.shown += entries;
            store.show(m, object);
        } else {
            self.hidden += entries;
        }
    }

    /// Says how many were not printed.
    pub(super) fn finish(self, m: &SeqFile) {
        if self.hidden != 0 {
            seq_print!(m, "dxg-info-more:\t{}\n", self.hidden);
        }
    }
}

/// Prints who waits for objects, each object once: the waits that are satisfied first.
pub(super) struct Waits {
    /// The objects whose waits were printed or counted as hidden.
    seen: RBTree<u64, ()>,
    shown: usize,
    hidden: usize,
}

impl Waits {
    /// Nothing was printed yet.
    pub(super) fn new() -> Self {
        Self {
            seen: RBTree::new(),
            shown: 0,
            hidden: 0,
        }
    }

    /// Prints the waits for an object unless that was done. The lock of the object is held for one
    /// wait at a time.
    fn print(&mut self, m: &SeqFile, object: &Object) {
        let id = object.header().id();

        if object.waiting() == 0 || self.seen.get(&id).is_some() {
            return;
        }

        // If this fails, the waits count as hidden each time.
        let is_new = self
            .seen
            .try_create_and_insert(id, (), GFP_KERNEL_ACCOUNT)
            .is_ok();
        let most = WAITS_OF_OBJECT.min(WAITS_SHOWN - self.shown);
        let mut last = None;
        let mut looked = 0;

        while is_new && looked < most && seq::wants_more(m) {
            let Some((key, about)) = object.wait_after(last.as_ref()) else {
                break;
            };

            if let Some(about) = about {
                about.print(m, id, key.value);
            }
            last = Some(key);
            looked += 1;
        }
        self.shown += looked;
        // Waits may have come and gone meanwhile.
        self.hidden += object.waiting().saturating_sub(looked);
    }

    /// Says how many were not printed.
    pub(super) fn finish(self, m: &SeqFile) {
        if self.hidden != 0 {
            seq_print!(m, "dxg-waits-more:\t{}\n", self.hidden);
        }
    }
}

/// Prints the adapters that handles belong to, each once, before the first handle of it.
pub(super) struct Adapters {
    /// Those that were printed.
    seen: RBTree<u64, ()>,
}

impl Adapters {
    /// Nothing was printed yet.
    pub(super) fn new() -> Self {
        Self {
            seen: RBTree::new(),
        }
    }

    /// The adapter of `item`, unless it was printed. Does not allocate.
    pub(super) fn of(&self, item: &HandleTarget) -> Option<Arc<Adapter>> {
        item.home()
            .filter(|adapter| self.seen.get(&adapter.id).is_none())
            .cloned()
    }

    /// Prints it. If that fails, it is printed before the next handle of it.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn print(&mut self, m: &SeqFile, adapter: &Adapter) {
        let is_marked = self
            .seen
            .try_create_and_insert(adapter.id, (), GFP_KERNEL_ACCOUNT)
            .is_ok();

        if !is_marked {
            return;
        }

        let (id, Luid { high, low }) = (adapter.id, adapter.luid);
        let state = if adapter.is_removed() {
            "removed"
        } else {
            "running"
        };
        let name = adapter.caps.name.as_str();

        seq_print!(
            m,
            "dxg-adapter:\t{id} luid={high:08x}:{low:08x} state={state} {name}\n"
        );
    }
}

/// A copy of what is shown, to be printed without the lock of the table.
pub(super) enum Line {
    /// A shareable object.
    Object {
        kind: ObjectKind,
        object: Object,
        access: u32,
        may_signal: bool,
    },
    /// An allocation, which shows the id and the references of its resource.
    Allocation(Arc<OpenAllocation>),
    /// A device, which shows how many CPU events it has.
    Device(Arc<Device>),
    /// Something else, and its id.
    Other(ObjectKind, u64),
}

impl Line {
    /// The line for a handle of `item`.
    pub(super) fn of(item: &HandleTarget) -> Self {
        match item {
            HandleTarget::Adapter(adapter) => Self::Other(ObjectKind::Adapter, adapter.id),
            HandleTarget::Device(device) => Self::Device(device.clone()),
            HandleTarget::Context(context) => Self::Other(ObjectKind::Context, context.id()),
            HandleTarget::HwQueue(queue) => Self::Other(ObjectKind::HwQueue, queue.id()),
            HandleTarget::Doorbell(doorbell) => Self::Other(ObjectKind::Doorbell, doorbell.id()),
            HandleTarget::PagingQueue(queue) => Self::Other(ObjectKind::PagingQueue, queue.id()),
            HandleTarget::Sync(open) | HandleTarget::KeyedMutex(open) => Self::Object {
                kind: open.object().header().kind(),
                object: open.object().clone(),
                access: open.access(),
                may_signal: open.may_signal(),
            },
            HandleTarget::Resource(open_resource) => Self::Object {
                kind: ObjectKind::Resource,
                object: open_resource.object().clone(),
                access: open_resource.access,
                may_signal: true,
            },
            HandleTarget::Allocation(opened) => Self::Allocation(opened.clone()),
        }
    }

    /// Prints it, with what belongs to the handle.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn print(&self, m: &SeqFile, handle: u32, infos: &mut Infos, waits: &mut Waits) {
        match self {
            Self::Other(kind, id) => {
                seq_print!(m, "dxg-handle:\t{handle:#010x} {} {id}\n", kind.name());
            }
            Self::Device(device) => {
                let (kind, id) = (ObjectKind::Device.name(), device.id());
                let events = device.cpu_events.load(Relaxed);

                seq_print!(
                    m,
                    "dxg-handle:\t{handle:#010x} {kind} {id} cpu-events={events}\n"
                );
            }
            Self::Object {
                kind,
                object,
                access,
                may_signal,
            } => {
                let header = object.header();

                Self::print_object(m, handle, *kind, object, *access);
                object.show_words(m);
                if !*may_signal {
                    seq_print!(m, " rights=wait");
                }
                if let Some(event) = object.cpu_event() {
                    Self::print_cpu_event(m, event);
                }
                seq_print!(m, "\n");
                infos.print(m, header);
                waits.print(m, object);
            }
            Self::Allocation(opened) => {
                let open_resource = &opened.open_resource;

                Self::print_object(
                    m,
                    handle,
                    ObjectKind::Allocation,
                    open_resource.object(),
                    open_resource.access,
                );
                opened.allocation.show(m);
                seq_print!(m, "\n");
            }
        }
    }

    /// Prints what a CPU event is for, and how often it was signalled (CPU-41).
    fn print_cpu_event(m: &SeqFile, event: &CpuEvent) {
        let (signals, late) = event.signals();

        seq_print!(m, " signals={signals} late={late}");
        for (word, place) in event.usage().iter().zip(0..) {
            let before = if place == 0 { " usage=" } else { "," };

            seq_print!(m, "{before}{word:#x}");
        }
    }

    fn print_object(m: &SeqFile, handle: u32, kind: ObjectKind, object: &Object, access: u32) {
        let header = object.header();
        let (id, references) = (header.id(), header.references());
        let waiters = object.waiting();

        seq_print!(m, "dxg-handle:\t{handle:#010x} {} {id}", kind.name());
        seq_print!(m, " refs={references} access={access:#x} waiters={waiters}");
    }
}
