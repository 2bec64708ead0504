// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of every call: struct, fields, and good arguments.

mod adapter;
mod allocation;
mod create;
mod device;
mod doorbell;
mod escape;
mod gpu_memory;
mod info;
mod keyed_mutex;
mod name;
mod native_fence;
mod object;
mod offer;
mod open;
mod placement;
mod queue;
mod queued;
mod resource;
mod statistics;
mod sync_file;
mod usage;
mod wait;
mod weak;

use std::sync::OnceLock;

use opendxg::Status;
use selftests::TestResult;

use crate::t_negative::image::Image;
use crate::t_negative::layout;
use crate::t_negative::world::{Object, World};

/// What a human knows of one call with one choice of a union's arm.
pub(crate) struct Described {
    /// Number of the call.
    pub(crate) nr: u32,
    /// Name of the argument struct.
    pub(crate) name: &'static str,
    /// Which arm; empty if there is only one.
    pub(crate) variant: &'static str,
    /// Its members, in any order.
    pub(crate) fields: &'static [Field],
    /// Fills in good arguments.
    pub(crate) good: fn(&World, &mut Image) -> TestResult,
    /// What good arguments are answered with.
    pub(crate) status: Status,
}

/// The same with what the layout knows.
pub(crate) struct Form {
    /// Number of the call.
    pub(crate) nr: u32,
    /// Name of the argument struct.
    pub(crate) name: &'static str,
    /// Which arm; empty if there is only one.
    pub(crate) variant: &'static str,
    /// `sizeof` the struct.
    pub(crate) size: u32,
    /// Every byte of the struct, in order.
    pub(crate) fields: Vec<Field>,
    /// Fills in good arguments.
    pub(crate) good: fn(&World, &mut Image) -> TestResult,
    /// What good arguments are answered with.
    pub(crate) status: Status,
    /// Whether queues do it later.
    pub(crate) is_queued: bool,
}

impl Form {
    /// The name with the variant.
    pub(crate) fn title(&self) -> String {
        match self.variant {
            "" => self.name.into(),
            variant => format!("{} ({variant})", self.name),
        }
    }
}

/// A member of a struct, or bytes between members.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) at: usize,
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    pub(crate) written: Written,
}

/// When the kernel writes a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Never: it is an input.
    Never,
    /// When the call succeeds.
    OnSuccess,
    /// Perhaps also when the call fails.
    Always,
}

/// The place of a field that is where the layout has the member of its name.
pub(crate) const NAMED: usize = usize::MAX;

/// Shorthand for a field that is only a part of a member, or more than one.
const fn placed(at: usize, size: usize, field: Field) -> Field {
    Field { at, size, ..field }
}

/// Shorthand for a member.
const fn field(name: &'static str, kind: Kind) -> Field {
    let written = match kind {
        Kind::Output(_) | Kind::Capacity => Written::OnSuccess,
        _ => Written::Never,
    };
    Field {
        name,
        at: NAMED,
        size: 0,
        kind,
        written,
    }
}

/// Shorthand for an input that is an output as well.
const fn in_out(mut field: Field) -> Field {
    field.written = Written::OnSuccess;
    field
}

/// Shorthand for an output that failures may write as well.
const fn reported(mut field: Field) -> Field {
    field.written = Written::Always;
    field
}

/// Shorthand for values that are accepted and values with the status that refuses them.
const fn listed(
    name: &'static str,
    accept: &'static [u64],
    refuse: &'static [(u64, Status)],
) -> Field {
    field(name, Kind::Listed { accept, refuse })
}

/// Shorthand for flags that must be 0.
const fn no_flags(name: &'static str) -> Field {
    let kind = Kind::Flags {
        known: 0,
        accept: &[0],
        refuse: &[],
    };
    field(name, kind)
}

/// Shorthand for bytes that must be 0.
const fn reserved(at: usize, size: usize) -> Field {
    placed(at, size, field("reserved", Kind::Reserved))
}

/// Shorthand for memory that the call reads, as many bytes as another field says.
const fn blob(name: &'static str, size_at: usize, null: Option<Status>) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 1,
        count_at: Some(size_at),
        writes: false,
        null,
        inside: &[],
    });
    field(name, kind)
}

/// Shorthand for memory that the call writes, as many bytes as another field says.
const fn buffer(name: &'static str, size_at: usize, null: Option<Status>) -> Field {
    let kind = Kind::Memory(Memory {
        unit: 1,
        count_at: Some(size_at),
        writes: true,
        null,
        inside: &[],
    });
    field(name, kind)
}

/// Answers that occur often.
const INVALID: Status = Status::INVALID_PARAMETER;
const FAULT: Status = Status::ACCESS_VIOLATION;

/// Shorthand for bytes that are never looked at.
const fn ignored(at: usize, size: usize) -> Field {
    placed(at, size, field("ignored", Kind::Ignored))
}

/// Shorthand for a number the kernel writes.
const fn output(name: &'static str) -> Field {
    field(name, Kind::Output(Made::Nothing))
}

/// Shorthand for a new handle.
const fn made(name: &'static str, kind: Object) -> Field {
    field(name, Kind::Output(Made::Handle(kind)))
}

/// Shorthand for a local handle.
const fn handle(name: &'static str, kind: Object) -> Field {
    field(name, Kind::Handle(kind))
}

/// Shorthand for a number of which every value is good.
const fn any(name: &'static str) -> Field {
    field(name, Kind::Any)
}

/// Shorthand for a number below a limit.
const fn below(name: &'static str, limit: Limit) -> Field {
    let (accept, refuse): (&[u64], &[u64]) = match limit {
        Limit::One => (&[0], &[1, 2, 0x8000_0000, 0xffff_ffff]),
        Limit::Two => (&[0, 1], &[2, 3, 0x8000_0000, 0xffff_ffff]),
        Limit::Four => (&[0, 1, 2], &[4, 5, 0x8000_0000, 0xffff_ffff]),
    };
    field(name, Kind::Values { accept, refuse })
}

/// Limits that occur.
enum Limit {
    /// Physical adapters.
    One,
    /// Masks of physical adapters.
    Two,
    /// Nodes. The last one does not belong to clients; whether they may name it is left open.
    Four,
}

/// What kind of thing a field is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A local handle.
    Handle(Object),
    /// A local handle that may be missing.
    OptionalHandle {
        kind: Object,
        /// The answer to a bad one.
        bad: Status,
        /// The answer to 0; `None` for the usual one.
        zero: Option<Status>,
    },
    /// A local handle in a field of 64 bits.
    WideHandle(Object),
    /// A global handle.
    Global(Object),
    /// An NT handle of this kind of object.
    NtHandle(Object),
    /// The same, where 0 stands for none.
    OnlyNtHandle(Object),
    /// A descriptor of a weak reference, in a field of 32 bits.
    Weak,
    /// Values that are accepted, and values with the status that refuses them.
    Listed {
        accept: &'static [u64],
        refuse: &'static [(u64, Status)],
    },
    /// An address of memory.
    Memory(Memory),
    /// An eventfd; `zero` is the answer to 0, `None` for the usual one.
    Event { zero: Option<Status> },
    /// A sync file; `foreign` is the answer to an open descriptor of another kind.
    SyncFile { foreign: Status },
    /// Bits: those with a meaning, and combinations of them.
    Flags {
        known: u64,
        accept: &'static [u64],
        refuse: &'static [u64],
    },
    /// A choice; other values are refused or not supported.
    Enum {
        unknown: &'static [u32],
        unsupported: &'static [u32],
    },
    /// A number of which every value is good.
    Any,
    /// A number.
    Values {
        accept: &'static [u64],
        refuse: &'static [u64],
    },
    /// The system-wide name of an adapter.
    Luid,
    /// How many objects there are.
    Count { max: u32 },
    /// How many adapters there is room for; afterwards, how many there are.
    Capacity,
    /// An array of local handles.
    HandleArray { count_at: usize, kind: Object },
    /// An array of fence values.
    ValueArray { count_at: usize },
    /// An array of adapters to be written.
    AdapterArray { count_at: usize },
    /// OBJECT_ATTRIBUTES, or none.
    Attributes,
    /// Where the NT handle is to be written.
    Slot,
    /// The payload of a query.
    Payload { size_at: usize },
    /// Its size.
    PayloadSize { exact: u32 },
    /// Private data that this driver does not look at.
    Blob,
    /// Must be 0.
    Reserved,
    /// Is not looked at.
    Ignored,
    /// Is written, and not looked at.
    Output(Made),
}

/// Memory that a field points to.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Bytes of an element.
    pub(crate) unit: usize,
    /// Where the number of elements is; one if there is no number.
    pub(crate) count_at: Option<usize>,
    /// Whether it is written.
    pub(crate) writes: bool,
    /// The answer to address 0; `None` for the usual one.
    pub(crate) null: Option<Status>,
    /// What to change in the first element.
    pub(crate) inside: &'static [Inside],
}

impl Memory {
    /// How many bytes the memory of a good argument has.
    pub(crate) fn length(&self, image: &Image) -> usize {
        let count = self.count_at.map_or(1, |at| image.get(at, 4) as usize);
        self.unit * count
    }
}

/// A wrong value inside of memory that a field points to: what, where, how large, value, answer.
pub(crate) type Inside = (&'static str, usize, usize, u64, Status);

/// What a written field stands for.
#[derive(Clone, Copy)]
pub(crate) enum Made {
    /// A number.
    Nothing,
    /// A handle to be destroyed.
    Handle(Object),
    /// A descriptor to be closed.
    Descriptor,
    /// Addresses of the GPU to be freed: how many units of so many bytes they are.
    Range { size_at: usize, unit: u64 },
}

/// Every form of every call.
pub(crate) fn forms() -> &'static [Form] {
    static FORMS: OnceLock<Vec<Form>> = OnceLock::new();
    FORMS.get_or_init(|| described().map(layout::place).collect())
}

/// The forms as they are described.
fn described() -> impl Iterator<Item = &'static Described> {
    [
        adapter::FORMS,
        device::FORMS,
        doorbell::FORMS,
        create::FORMS,
        open::FORMS,
        wait::FORMS,
        allocation::FORMS,
        resource::FORMS,
        usage::FORMS,
        escape::FORMS,
        object::FORMS,
        info::FORMS.as_flattened(),
        weak::FORMS,
        name::FORMS,
        native_fence::FORMS,
        keyed_mutex::FORMS,
        queue::FORMS,
        queued::FORMS,
        gpu_memory::FORMS,
        offer::FORMS,
        placement::FORMS,
        statistics::FORMS,
        sync_file::FORMS,
    ]
    .into_iter()
    .flatten()
}
