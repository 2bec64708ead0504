// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same properties for every kind of object (RES-1).

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use rustix::event::PollFlags;
use selftests::call::{refused, succeeds};
use selftests::fds::poll_events;
use selftests::resource::query_object;
use selftests::{ensure, ensure_eq, fixture, Outcome, Suite};

use crate::t_kinds::object::{get, set, slot, Kind, Name, Object};

/// A property, shown on one kind.
type Property = fn(Kind) -> Outcome;

const PROPERTIES: [(&str, Property); 9] = [
    ("RES-1 the common header", header),
    ("RES-1 RES-2 ids only grow", ids),
    ("RES-1 RES-55 the store, by local handle", store),
    ("RES-1 RES-10 the global handle", global),
    ("RES-1 RES-78 DUP_LOCAL is a reference", duplicate),
    ("RES-1 RES-72 a weak reference", weak),
    (
        "RES-1 RES-74 a watch hears of changes and of the end",
        watch,
    ),
    (
        "RES-1 RES-32 RES-55 the NT handle is the same object with the same store",
        nt,
    ),
    ("RES-1 RES-40 a name", name),
];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let suite = PROPERTIES
        .into_iter()
        .fold(suite, |suite, (name, property)| {
            Kind::ALL.into_iter().fold(suite, |suite, kind| {
                suite.test(format!("{name}: {kind:?}"), move || property(kind))
            })
        });
    suite.test(
        "RES-1 RES-67 only resources and keyed mutexes have runtime data",
        runtime_data,
    )
}

const KEY: [u8; 16] = *b"sixteen bytes ok";

fn header(kind: Kind) -> Outcome {
    for by_nt in [false, true] {
        let object = Object::new(kind, by_nt)?;
        let seen = object.query()?;
        ensure_eq!((seen.kind, seen.type_), kind.numbers());
        ensure_eq!((seen.member_count, seen.alive, seen.name_size), (1, 1, 0));
        ensure_eq!((seen.references, seen.local_references), (1, 1));
        // SAFETY: plain system call.
        ensure_eq!(seen.creator_uid, unsafe { libc::geteuid() });
        ensure_eq!(seen.generation, 0);
        let luid = adapter_luid(&object);
        let expected = if kind == Kind::KeyedMutex {
            (0, 0)
        } else {
            luid
        };
        ensure_eq!((seen.adapter_luid_low, seen.adapter_luid_high), expected);
    }
    Ok(())
}

fn adapter_luid(object: &Object) -> (u32, i32) {
    let luid: LUID = object.device.adapter().luid().into();
    (luid.LowPart, luid.HighPart)
}

fn ids(kind: Kind) -> Outcome {
    let mut last = 0;
    for round in 0..50 {
        let object = Object::new(kind, round % 2 == 0)?;
        let id = object.query()?.object_id;
        ensure!(id > last, "{id} after {last}");
        // Not an address of the kernel, and no product of one.
        ensure!(id < 1 << 40, "{id:#x}");
        last = id;
    }
    Ok(())
}

fn store(kind: Kind) -> Outcome {
    let object = Object::new(kind, true)?;
    let local = u64::from(object.local);
    ensure_eq!(
        get(&object.raw, local, OPENDXG_HANDLE_LOCAL, KEY)?,
        Err(Status::NOT_FOUND)
    );
    set(&object.raw, local, OPENDXG_HANDLE_LOCAL, KEY, b"described")?;
    ensure_eq!(
        get(&object.raw, local, OPENDXG_HANDLE_LOCAL, KEY)?,
        Ok(b"described".to_vec())
    );
    let first = object.query()?.generation;
    ensure!(first > 0);
    let mut entries = [opendxg_info_entry::default(); 4];
    let mut list = opendxg_enum_info::zeroed();
    (list.handle, list.handle_type) = (local, OPENDXG_HANDLE_LOCAL);
    (list.entries, list.count) = (entries.as_mut_ptr() as u64, 4);
    succeeds(&object.raw, &mut list)?;
    ensure_eq!(
        (
            list.count,
            entries[0].key,
            entries[0].schema,
            entries[0].size
        ),
        (1, KEY, 1, 9)
    );
    let mut delete = opendxg_delete_info::zeroed();
    (delete.handle, delete.handle_type) = (local, OPENDXG_HANDLE_LOCAL);
    (delete.key, delete.schema) = (KEY, 1);
    succeeds(&object.raw, &mut delete)?;
    ensure_eq!(
        get(&object.raw, local, OPENDXG_HANDLE_LOCAL, KEY)?,
        Err(Status::NOT_FOUND)
    );
    ensure_eq!(object.query()?.generation, first + 1);
    Ok(())
}

fn global(kind: Kind) -> Outcome {
    let mut object = Object::new(kind, false)?;
    if !kind.can_be_global() {
        ensure_eq!(object.global, 0);
        return Ok(());
    }
    let (number, id) = (u64::from(object.global), object.query()?.object_id);
    ensure_eq!(number & 0x3f, 2);
    ensure_eq!(
        query_object(&object.raw, number, OPENDXG_HANDLE_GLOBAL)?.object_id,
        id
    );
    ensure_eq!(object.query()?.references, 1, "it holds no reference");
    object.destroy()?;
    let mut arg = opendxg_query_object::zeroed();
    (arg.handle, arg.handle_type) = (number, OPENDXG_HANDLE_GLOBAL);
    refused(&object.raw, &mut arg, Status::INVALID_PARAMETER)?;
    // Made for NT handles it has none.
    ensure_eq!(Object::new(kind, true)?.global, 0);
    Ok(())
}

fn duplicate(kind: Kind) -> Outcome {
    let mut object = Object::new(kind, true)?;
    let id = object.query()?.object_id;
    let mut dup = opendxg_dup_local::zeroed();
    (dup.handle, dup.index) = (object.local, OPENDXG_WHOLE);
    succeeds(&object.raw, &mut dup)?;
    let seen = object.query()?;
    ensure_eq!((seen.references, seen.local_references), (2, 2));
    object.destroy()?;
    object.local = dup.new_handle;
    let seen = object.query()?;
    ensure_eq!(
        (seen.object_id, seen.references, seen.local_references),
        (id, 1, 1)
    );
    Ok(())
}

fn weak(kind: Kind) -> Outcome {
    let mut object = Object::new(kind, true)?;
    let mut arg = opendxg_open_weak::zeroed();
    (arg.handle, arg.handle_type) = (u64::from(object.local), OPENDXG_HANDLE_LOCAL);
    succeeds(&object.raw, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    let weak = unsafe { OwnedFd::from_raw_fd(arg.fd) };
    ensure_eq!(object.query()?.references, 1, "it holds no reference");
    let mut resolve = opendxg_resolve_weak::zeroed();
    (resolve.fd, resolve.device) = (weak.as_raw_fd(), object.device.handle().0);
    succeeds(&object.raw, &mut resolve)?;
    ensure_eq!(object.query()?.references, 2);
    object.end(resolve.handle)?;
    ensure!(poll_events(weak.as_fd(), Duration::ZERO)?.is_empty());
    object.destroy()?;
    ensure!(poll_events(weak.as_fd(), Duration::ZERO)?.contains(PollFlags::HUP));
    resolve.handle = 0;
    refused(&object.raw, &mut resolve, Status::NOT_FOUND)
}

fn watch(kind: Kind) -> Outcome {
    let mut object = Object::new(kind, true)?;
    let event = EventFd::new()?;
    let mut arg = opendxg_watch::zeroed();
    (arg.handle, arg.handle_type) = (u64::from(object.local), OPENDXG_HANDLE_LOCAL);
    (arg.events, arg.event_fd) = (
        OPENDXG_WATCH_CHANGE | OPENDXG_WATCH_DESTROY,
        event.as_raw_fd(),
    );
    arg.cookie = 0x1234;
    succeeds(&object.raw, &mut arg)?;
    // SAFETY: the call made the descriptor for us.
    let watch = unsafe { OwnedFd::from_raw_fd(arg.fd) };
    let heard = |expected: u32| -> Outcome {
        ensure_eq!(event.take()?, 1);
        let mut state = opendxg_watch_state::zeroed();
        let code = opendxg::raw::code(opendxg_watch_state::NR, opendxg_watch_state::SIZE);
        let address = (&raw mut state) as u64;
        ensure_eq!(fixture::raw()?.ioctl_on(&watch, code, address), Ok(0));
        ensure_eq!((state.cookie, state.events), (0x1234, expected));
        Ok(())
    };
    set(
        &object.raw,
        u64::from(object.local),
        OPENDXG_HANDLE_LOCAL,
        KEY,
        b"x",
    )?;
    heard(OPENDXG_WATCH_CHANGE)?;
    object.destroy()?;
    heard(OPENDXG_WATCH_DESTROY)
}

fn nt(kind: Kind) -> Outcome {
    let mut object = Object::new(kind, true)?;
    let id = object.query()?.object_id;
    set(
        &object.raw,
        u64::from(object.local),
        OPENDXG_HANDLE_LOCAL,
        KEY,
        b"before sharing",
    )?;
    let shared = object.share(0)?;
    let seen = query_object(&object.raw, slot(&shared), OPENDXG_HANDLE_NT)?;
    if kind == Kind::KeyedMutex {
        ensure_eq!((seen.member_count, seen.type_), (3, OPENDXG_TYPE_RESOURCE));
        ensure_eq!(seen.member_kinds[1], OPENDXG_KIND_KEYED_MUTEX);
        ensure_eq!(object.query()?.references, 2);
        return Ok(());
    }
    ensure_eq!(
        (seen.object_id, seen.member_count, seen.member_kinds[0]),
        (id, 1, kind.numbers().0)
    );
    ensure_eq!(seen.type_, kind.numbers().1);
    object.destroy()?;
    let found = get(&object.raw, slot(&shared), OPENDXG_HANDLE_NT, KEY)?;
    ensure_eq!(found, Ok(b"before sharing".to_vec()));
    Ok(())
}

fn name(kind: Kind) -> Outcome {
    let mut object = Object::new(kind, true)?;
    let name = Name::new(&format!("every-kind-{kind:?}"));
    let shared = object.share(name.address())?;
    let expected = query_object(&object.raw, slot(&shared), OPENDXG_HANDLE_NT)?.object_id;
    object.destroy()?;
    let is_resource = matches!(kind, Kind::Resource | Kind::KeyedMutex);
    let opened = name.open(&object.raw, is_resource)?;
    let seen = query_object(&object.raw, slot(&opened), OPENDXG_HANDLE_NT)?;
    ensure_eq!(seen.object_id, expected);
    ensure!(seen.name_size > 0);
    Ok(())
}

fn runtime_data() -> Outcome {
    for kind in Kind::ALL {
        let object = Object::new(kind, true)?;
        let local = u64::from(object.local);
        let found = get(&object.raw, local, OPENDXG_HANDLE_LOCAL, [0; 16])?;
        ensure!(
            found == Err(Status::NOT_FOUND) || found == Ok(Vec::new()),
            "{kind:?}: {found:?}"
        );
    }
    let raw = fixture::raw()?;
    let data = *b"private data of a mutex";
    let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) =
        (data.as_ptr() as u64, data.len() as u32);
    succeeds(&raw, &mut arg)?;
    let found = get(
        &raw,
        u64::from(arg.hKeyedMutex),
        OPENDXG_HANDLE_LOCAL,
        [0; 16],
    )?;
    ensure_eq!(found, Ok(data.to_vec()));
    succeeds(
        &raw,
        &mut D3DKMT_DESTROYKEYEDMUTEX {
            hKeyedMutex: arg.hKeyedMutex,
        },
    )
}
