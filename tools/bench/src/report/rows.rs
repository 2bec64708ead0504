// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which ratios are reported, and which of them have a target.

use crate::subjects::cpu_events::{self, names_of_events::*};
use crate::subjects::doorbells::{names_of_rings::*, SHARED, START};
use crate::subjects::event_loop::{self, names_of_waits::*};
use crate::subjects::gpu::names_of_work::*;
use crate::subjects::interrupt_forms::{self, WOKEN};
use crate::subjects::names::*;
use crate::subjects::native_fences::{self, names_of_native::*};
use crate::subjects::objects::operations::{self, *};
use crate::subjects::paging_fences::{self, BEHIND, BY_WORKER, IN_THE_CALL, SINCE_RETURN};
use crate::subjects::resets::{self, names_of_resets::*};
use crate::subjects::residency::{self, EVICT, EVICT_CLEAN, MAKE, MAKE_ZEROS};
use crate::subjects::wine::{self, names_of_requests::*};
use crate::subjects::working_set::{self, IN_TURN, MOSTLY_FEW};
use crate::subjects::{addresses, beside, crowd, doorbells, gpu, population, waiters};

/// A ratio to report.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Group of both participants.
    pub group: &'static str,
    /// Name and parameter of what is judged.
    pub ours: (&'static str, u64),
    /// Name and parameter of what it is compared with.
    pub theirs: (&'static str, u64),
    /// Both are compared in units of this participant with the same parameter, which was measured
    /// beside them.
    pub unit: Option<&'static str>,
    /// The ratio must not be higher; `None` for ratios that are only shown.
    pub target: Option<f64>,
    /// What to know about the ratio.
    pub note: &'static str,
}

const MAPPED: &str = "opendxg mapped value";
const ONLY: &str = "opendxg only fence";
const SHAREABLE: &str = "opendxg shareable";
/// What the device is asked for.
const VIRTGPU_NOTE: &str = "its only command that can be waited for makes a page of memory";
/// What the socketpair stands for.
const PROXY: &str = "proxy for a user-mode object server";

const fn row(
    group: &'static str,
    ours: &'static str,
    theirs: &'static str,
    target: Option<f64>,
    note: &'static str,
) -> Row {
    Row {
        group,
        ours: (ours, 0),
        theirs: (theirs, 0),
        unit: None,
        target,
        note,
    }
}

/// The ratios between participants without a parameter.
#[rustfmt::skip]
const FIXED: &[Row] = &[
    row("signal", OPENDXG, NO_OP, Some(1.25), "the floor; a signal also copies two arrays, finds two handles and takes a lock"),
    row("signal", OPENDXG, NTSYNC, Some(1.1), ""),
    row("signal", OPENDXG, SYNCOBJ, Some(0.3), ""),
    row("signal", OPENDXG, EVENTFD, None, ""),
    row("signal", OPENDXG, FUTEX, None, "a futex keeps its value in user memory"),
    row("signal", "opendxg plain ioctl", NO_OP, None, "the code whose statuses are errnos"),
    row("signal", NT_HANDLE, NTSYNC, Some(1.0), "both on a descriptor"),
    row("signal", NT_HANDLE, OPENDXG, None, "no handle to find"),
    row("signal", MANY_FENCES, NO_OP, Some(17.0), "one call for 64 fences: 180 instructions for each"),
    row("signal", LIBRARY, NO_OP, None, "a C program, with the library between"),
    row("signal", LIBRARY, NTSYNC, None, "a C program, with the library between"),
    row(beside::GROUP, OPENDXG, ALONE, None, "both threads take the lock of the handles of their process"),
    row(beside::GROUP, OPENDXG, NO_OP, None, "the floor: two threads in the no-op call"),
    row(beside::GROUP, OPENDXG, NTSYNC, None, "two events, which have nothing in common"),
    row("satisfied", MAPPED, NTSYNC, Some(0.01), "no system call"),
    row("satisfied", MAPPED, SYNCOBJ, Some(0.01), "no system call"),
    row("satisfied", OPENDXG, NTSYNC, Some(1.0), "by call"),
    row("satisfied", OPENDXG, SYNCOBJ, None, "by call"),
    row("satisfied", NT_HANDLE, NTSYNC, Some(1.0), "both on a descriptor"),
    row("satisfied", LIBRARY, NTSYNC, None, "by call of a C program, with the library between"),
    row("ping-pong", OPENDXG, NTSYNC, Some(1.0), "the first wait for a fence tells its adapters, and looks again"),
    row("ping-pong", OPENDXG, FUTEX, None, "the floor: what the scheduler needs"),
    row("ping-pong", OPENDXG, SYNCOBJ, None, ""),
    row("ping-pong", OPENDXG, EVENTFD, None, ""),
    row("ping-pong", OPENDXG, SOCKETPAIR, None, ""),
    row("ping-pong", "opendxg event", EVENTFD, None, "asynchronous waits, eventfd and poll"),
    row("ping-pong", KEYED_MUTEX, NTSYNC, None, "two hand-overs each; ntsync: two events"),
    row("ping-pong", KEYED_MUTEX, FUTEX, None, "the floor: what the scheduler needs"),
    row("ping-pong", KEYED_MUTEX, SOCKETPAIR, None, PROXY),
    row("ping-pong-2", OPENDXG, NTSYNC, Some(1.0), "the first wait for a fence tells its adapters, and looks again"),
    row("ping-pong-2", OPENDXG, FUTEX, None, "the floor: what the scheduler needs"),
    row("ping-pong-2", OPENDXG, SYNCOBJ, None, ""),
    row("ping-pong-2", OPENDXG, EVENTFD, None, ""),
    row("ping-pong-2", OPENDXG, SOCKETPAIR, None, ""),
    row("ping-pong-2", "opendxg event", EVENTFD, None, "asynchronous waits, eventfd and poll"),
    row("ping-pong-2", KEYED_MUTEX, NTSYNC, None, "two hand-overs each; ntsync: two events"),
    row("ping-pong-2", KEYED_MUTEX, FUTEX, None, "the floor: what the scheduler needs"),
    row("ping-pong-2", KEYED_MUTEX, SOCKETPAIR, None, PROXY),
    row("lifecycle", OPENDXG, SYNCOBJ, Some(1.0), "another fence exists in the process; a fence also gets a place for its value"),
    row("lifecycle", ONLY, SYNCOBJ, Some(1.0), "the only fence of its process"),
    row("lifecycle", SHAREABLE, SYNCOBJ, None, "has a value page of its own"),
    row("lifecycle", OPENDXG, NTSYNC, None, ""),
    row("lifecycle", OPENDXG, EVENTFD, None, ""),
    row("sync-file-export", OPENDXG, SYNCOBJ, None, "ours makes a fence of its own, and leads back to the monitored fence"),
    row("sync-file-import", OPENDXG, SYNCOBJ, None, "a context waits for it; a syncobj only keeps it"),
    row(event_loop::ALL, STREAM, DRM_EACH, None, "one descriptor; the waits are numbers of the program"),
    row(event_loop::ALL, STREAM, DRM_SHARED, None, "a call less for each wait"),
    row(event_loop::ALL, OURS_SHARED, DRM_SHARED, None, "asynchronous waits, by call"),
    row(event_loop::ALL, OURS_EACH, DRM_EACH, None, "a descriptor for each value"),
    row(event_loop::NEXT, STREAM, DRM_EACH, None, "a signal does not look at those who wait for more"),
    row(event_loop::NEXT, STREAM, DRM_SHARED, None, "the read tells the value"),
    row(event_loop::NEXT, OURS_SHARED, DRM_SHARED, None, "the value is read in memory"),
    row(event_loop::NEXT, OURS_EACH, DRM_EACH, None, "a descriptor is made for each value"),
    row("open", "opendxg by number", SOCKETPAIR, None, PROXY),
    row("open", "opendxg by descriptor", SOCKETPAIR, None, PROXY),
    row("objects", OPEN_NUMBER, SOCKETPAIR, None, PROXY),
    row("objects", OPEN_NUMBER, PASSING, None, "two calls: open, destroy"),
    row("objects", OPEN_DESCRIPTOR, SERVER, None, PROXY),
    row("objects", OPEN_DESCRIPTOR, PASSING, None, "two calls: open, destroy"),
    row("objects", OPEN_NAME, SERVER, None, PROXY),
    row("objects", OPEN_NAME, PASSING, None, ""),
    row("objects", SHARE, SERVER, None, PROXY),
    row("objects", SHARE, PASSING, None, ""),
    row("objects", QUERY, SOCKETPAIR, None, PROXY),
    row("objects", QUERY, NO_OP, None, "the floor"),
    row("objects", GET, SOCKETPAIR, None, PROXY),
    row("objects", GET, NO_OP, None, "the floor"),
    row("objects", SET, SOCKETPAIR, None, PROXY),
    row("objects", SET, NO_OP, None, "the floor"),
    row("objects", MUTEX, NTSYNC, None, "both free: two calls each"),
    row("objects", MUTEX, SOCKETPAIR, None, PROXY),
    row("objects", CREATE, SOCKETPAIR, None, PROXY),
    row("objects", CREATE, UDMABUF_MEMORY, None, "a page of memory and its object"),
    row("objects", CREATE, UDMABUF, None, "udmabuf without the memory"),
    row("objects", NUMBERED, UDMABUF_MEMORY, None, ""),
    row("objects", SHAREABLE_RESOURCE, UDMABUF_MEMORY, None, ""),
    row("submit", COMMAND, SOCKETPAIR, None, "64 bytes there and back: what asking another process takes"),
    row("submit", HW_QUEUE, SOCKETPAIR, None, "the same"),
    row("submit", HW_QUEUE, COMMAND, None, "one call less"),
    row("submit", DOORBELL, SOCKETPAIR, None, "no call until the wait"),
    row("submit", DOORBELL, HW_QUEUE, None, "a call less"),
    row("submit", DOORBELL_LOOKING, HW_QUEUE, None, "no call at all"),
    row("submit", COMMAND, VIRTGPU, None, VIRTGPU_NOTE),
    row("submit", HW_QUEUE, VIRTGPU, None, "the same"),
    row(START, ASLEEP, AWAKE, None, "the ring is a page fault, and the engine a thread that wakes up"),
    row("queued-wait", HOP, NEXT, None, "what it costs to go on in another engine"),
    row("queued-wait", STORE, HOP, None, "the engine stores to the fence itself"),
    row("queued-wait", POLL, HOP, None, "the engines look at memory again and again"),
    row("queued-wait", NATIVE_HOP, HOP, Some(0.1), "nobody but the two engines takes part"),
    row("queued-wait", NATIVE_HOP, BOUNCE, Some(3.0), "a store and a look at it on another processor"),
    row("queued-wait", NATIVE_HOP, POLL, None, "a queue that waits is told, and gives its engine to others"),
    row("queued-wait", RUNG_HOP, TOLD_HOP, None, "no interrupt, no worker between"),
    row("queued-wait", RUNG_HOP, NATIVE_HOP, None, "the same on one adapter"),
    row(native_fences::LOGS, LOGGED, NATIVE, None, "an entry of 48 bytes and the header for each"),
    row(native_fences::WAKE, NATIVE, MONITORED, None, "the interrupt names the fence"),
    row(paging_fences::GROUP, BY_WORKER, IN_THE_CALL, None, "a page more, so the worker does it and wakes the caller"),
    row(paging_fences::GROUP, SINCE_RETURN, OPENDXG, None, "there and back, too: to the worker, which finishes 1025 pages"),
    row(paging_fences::GROUP, BEHIND, OPENDXG, None, "the worker finishes those first"),
    row("process", BESIDE_OWNER, THREAD, Some(1.01), "who owns nothing pays nothing"),
    row("process", CHILD_OPENS, CHILD, None, "open, the process's objects, its end"),
    row("process", CHILD_OPENS, CHILD_OPENS_NTSYNC, None, ""),
    row(wine::SIGNAL, OPENDXG, SET_EVENT, None, "a shared fence, a named event"),
    row(wine::SIGNAL, LIBRARY, SET_EVENT, None, "a C program, with the library between"),
    row(wine::SIGNAL, SOCKETPAIR, SET_EVENT, None, "how good a proxy the socketpair is"),
    row(wine::WAIT, MAPPED_VALUE, WAIT_EVENT, None, "no system call"),
    row(wine::WAIT, OPENDXG, WAIT_EVENT, None, "by call"),
    row(wine::WAIT, LIBRARY, WAIT_EVENT, None, "by call of a C program, with the library between"),
    row(wine::OPEN, FENCE_BY_NAME, OPEN_EVENT, None, "from a name to a handle, and close"),
    row(wine::OPEN, RESOURCE_BY_NAME, OPEN_MAPPING, None, "from a name to a handle, and close"),
    row(wine::OPEN, FENCE_BY_HANDLE, DUPLICATE, None, "from a handle to another, and close"),
    row(wine::OPEN, OPEN_NUMBER, DUPLICATE, None, "two calls: open, destroy"),
    row(wine::OPEN, SOCKETPAIR, OPEN_EVENT, None, "how good a proxy the socketpair is"),
    row(wine::MAKE, SHAREABLE_FENCE, CREATE_EVENT, None, "a fence also has a page for its value"),
    row(wine::MAKE, CREATE, CREATE_EVENT, None, "a page of memory and its object"),
    row(wine::MUTEX, KEYED_MUTEX, TAKE_MUTEX, None, "both free: two calls each"),
    row(wine::PING_PONG, OPENDXG, EVENTS, None, "two processes that sleep"),
    row(wine::PING_PONG, SOCKETPAIR, EVENTS, None, "without a server"),
    row(wine::PING_PONG_2, OPENDXG, EVENTS, None, "the server is on either processor"),
    row(wine::PING_PONG_2, SOCKETPAIR, EVENTS, None, "without a server"),
    row("process", CHILD_OPENS_EXECS, CHILD_EXECS, None, "the same, and an exec in between"),
];

/// How much more a flat cost may be at the far end.
const FLAT: Option<f64> = Some(1.1);

/// How much longer an eviction may take than a copy of as many bytes: 80 % of its bandwidth.
const EVICTION: Option<f64> = Some(1.25);

/// How much the logarithm grows, with two digits.
fn growth(few: u64, many: u64) -> f64 {
    let growth = (many as f64).log10() / (few as f64).log10();
    (growth * 100.0).round() / 100.0
}

/// The ratios of the memory manager.
fn memory_manager() -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |group, ours, theirs, target, note| Row {
        group,
        ours,
        theirs,
        unit: None,
        target,
        note,
    };
    let in_units = |row| Row {
        unit: Some(NO_OP),
        ..row
    };
    let [few, more @ ..] = addresses::OWN;
    for name in [addresses::PICKED, addresses::AMONG, addresses::BEHIND] {
        rows.extend(more.map(|many| {
            in_units(row(
                addresses::GROUP,
                (name, many),
                (name, few),
                Some(growth(few, many)),
                "not more than the logarithm grows, each in units of the no-op beside it",
            ))
        }));
    }
    let [none, many] = addresses::FOREIGN;
    rows.push(in_units(row(
        addresses::OF_OTHERS,
        (addresses::PICKED, many),
        (addresses::PICKED, none),
        FLAT,
        "flat, each in units of the no-op beside it",
    )));
    let [_, _, large @ ..] = residency::SIZES;
    for group in [residency::BY_NODE, residency::BY_PROCESSOR] {
        for at in residency::SIZES {
            let target = EVICTION.filter(|_| large.contains(&at));
            rows.extend([
                row(group, (EVICT, at), (MEMCPY, at), target, "bytes go back"),
                row(
                    group,
                    (EVICT, at),
                    (COPY, at),
                    None,
                    "what is not the copy, if an engine does it",
                ),
                row(group, (MAKE, at), (MEMCPY, at), None, "bytes come"),
                row(group, (MAKE_ZEROS, at), (MEMSET, at), None, "zeros"),
                row(
                    group,
                    (EVICT_CLEAN, at),
                    (EVICT, at),
                    None,
                    "nothing is copied",
                ),
            ]);
        }
    }
    let [within, ..] = working_set::PERCENT;
    for name in [IN_TURN, MOSTLY_FEW] {
        rows.extend(working_set::PERCENT[1..].iter().map(|&at| {
            row(
                working_set::GROUP,
                (name, at),
                (name, within),
                None,
                "by the size of the working set in % of local memory",
            )
        }));
    }
    rows
}

/// All ratios, those over a parameter included.
pub fn all() -> Vec<Row> {
    let mut rows = FIXED.to_vec();
    let (least, most) = (
        waiters::WAITERS[0],
        waiters::WAITERS[waiters::WAITERS.len() - 1],
    );
    let flat = |group, name, first, last, target, note| Row {
        group,
        ours: (name, last),
        theirs: (name, first),
        unit: None,
        target,
        note,
    };
    rows.push(flat("waiters", OPENDXG, least, most, FLAT, "flat"));
    rows.push(flat(
        "waiters",
        SYNCOBJ,
        least,
        most,
        None,
        "for comparison",
    ));
    for group in ["waiters", "wake"] {
        rows.extend(waiters::WAITERS.map(|at| Row {
            group,
            ours: (OPENDXG, at),
            theirs: (SYNCOBJ, at),
            unit: None,
            target: None,
            note: "",
        }));
    }
    rows.push(flat(
        "wake",
        OPENDXG,
        least,
        most,
        None,
        "flat but for the search",
    ));
    let (few, many) = (crowd::OTHERS[0], crowd::OTHERS[crowd::OTHERS.len() - 1]);
    for name in ["signal", "satisfied wait", "create and destroy"] {
        rows.push(flat("crowd", name, few, many, None, ""));
    }
    for (ours, theirs) in [(COPY, MEMCPY), (FILL, MEMSET)] {
        rows.extend(gpu::SIZES.map(|at| Row {
            group: gpu::BANDWIDTH,
            ours: (ours, at),
            theirs: (theirs, at),
            unit: None,
            target: None,
            note: "by size, with submission and wait",
        }));
    }
    let (none, many) = (cpu_events::OTHERS[0], cpu_events::OTHERS[1]);
    for (theirs, note) in [
        (EVENTFD, "a thread that signals it at once"),
        (
            LOOKING,
            "a client that looks all the time, and keeps a processor busy",
        ),
    ] {
        rows.push(Row {
            group: cpu_events::GROUP,
            ours: (TRAP, none),
            theirs: (theirs, none),
            unit: None,
            target: None,
            note,
        });
    }
    rows.push(Row {
        unit: Some(EVENTFD),
        ..flat(
            cpu_events::GROUP,
            TRAP,
            none,
            many,
            None,
            "flat, each in units of the eventfd beside it",
        )
    });
    rows.push(row(
        resets::GROUP,
        HANGS,
        IDLE,
        None,
        "the endless work keeps a processor busy",
    ));
    rows.push(row(
        resets::GROUP,
        RESET,
        IDLE,
        None,
        "the endless work ends early on, and nothing of the reset stops another engine",
    ));
    rows.extend(doorbells::QUEUES.map(|at| Row {
        group: SHARED,
        ours: (ONE, at),
        theirs: (EACH, at),
        unit: None,
        target: None,
        note: "each ring takes the doorbell from another queue, by the number of queues",
    }));
    let [none, many] = native_fences::WAITERS;
    rows.push(flat(
        native_fences::SIGNALS,
        NATIVE,
        none,
        many,
        FLAT,
        "flat: nobody is looked at who waits for more",
    ));
    rows.extend(native_fences::WAITERS.map(|at| Row {
        group: native_fences::SIGNALS,
        ours: (NATIVE, at),
        theirs: (MONITORED, at),
        unit: None,
        target: None,
        note: "no interrupt, by the number of waits for higher values",
    }));
    let [none, many] = interrupt_forms::OTHERS;
    rows.extend(interrupt_forms::FORMS.map(|(group, form)| match form {
        "exact" | "queue" => flat(
            group,
            WOKEN,
            none,
            many,
            FLAT,
            "flat: the interrupt leads to the fence, whatever else is there",
        ),
        _ => flat(
            group,
            WOKEN,
            none,
            many,
            None,
            "the interrupt names nothing, so all fences of the adapter are looked at",
        ),
    }));
    let (few, many) = (gpu::QUEUES[0], gpu::QUEUES[gpu::QUEUES.len() - 1]);
    for name in [HW_QUEUE, COMMAND] {
        rows.push(Row {
            unit: Some(NO_OP),
            ..flat(
                "queues",
                name,
                few,
                many,
                FLAT,
                "flat, each in units of the no-op beside it",
            )
        });
    }
    let (few, many) = (
        population::OTHERS[0],
        population::OTHERS[population::OTHERS.len() - 1],
    );
    for name in operations::ALL {
        rows.push(Row {
            unit: Some(NO_OP),
            ..flat(
                "population",
                name,
                few,
                many,
                FLAT,
                "flat, each in units of the no-op beside it",
            )
        });
    }
    rows.extend(memory_manager());
    rows
}
