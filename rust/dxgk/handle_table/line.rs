// SPDX-License-Identifier: GPL-2.0

//! What fdinfo shows of a local handle.

use super::{
    super::{
        census::Kind,
        object::Object,
        open_allocation::OpenAllocation, //
    },
    entry::Item, //
};
use kernel::{
    seq_file::SeqFile,
    seq_print,
    sync::Arc, //
};

/// A copy of what is shown, to be printed without the lock of the table.
pub(super) enum Line {
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
    /// The line for a handle of `item`.
    pub(super) fn of(item: &Item) -> Self {
        match item {
            Item::Adapter(adapter) => Self::Other(Kind::Adapter, adapter.caps.index.into()),
            Item::Device(device) => Self::Other(Kind::Device, device.id()),
            Item::Context(context) => Self::Other(Kind::Context, context.id()),
            Item::Sync(opening) | Item::KeyedMutex(opening) => Self::Object {
                kind: opening.object().header().kind(),
                object: opening.object().clone(),
                access: opening.access(),
            },
            Item::Resource(bundle) => Self::Object {
                kind: Kind::Resource,
                object: bundle.object().clone(),
                access: bundle.access,
            },
            Item::Allocation(opened) => Self::Allocation(opened.clone()),
        }
    }

    /// Prints it, with what belongs to the handle.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn print(&self, m: &SeqFile, handle: u32) {
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
