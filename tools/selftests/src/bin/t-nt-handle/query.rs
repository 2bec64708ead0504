// SPDX-License-Identifier: MIT OR Apache-2.0
//! QUERY_OBJECT and fdinfo (RES-15).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{FdInfo, Status, SyncFlags};
use selftests::fds::{closed_number, memfd};
use selftests::sharing::{access, Client, How, Shape, Target};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;
const NAME: &str = r"\BaseNamedObjects\Query";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-15 type, kind, access, name and id, by every handle",
            every_handle,
        )
        .test("RES-15 the members of a set of three", triple)
        .test("RES-15 equal ids, one object; other ids, another", ids)
        .test("RES-15 a name buffer that is too small", small_name)
        .test("RES-15 refused queries", refused)
        .test(
            "FEN-170 RES-15 fdinfo shows the same, and value and openings of a fence",
            fd_info,
        )
        .test(
            "RES-107 RES-15 every byte of the answer is written",
            poisoned_answers,
        )
}

fn every_handle() -> TestResult {
    let client = Client::new()?;
    let luid = client.device().adapter().luid();
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let seen = client.query(object.target())?;
        ensure_eq!(
            (seen.object.type_, seen.object.kind),
            (shape.object_type(), shape.kind())
        );
        ensure_eq!(
            (seen.object.member_count, seen.object.member_kinds[0]),
            (1, shape.kind())
        );
        ensure_eq!(
            (seen.object.references, seen.object.local_references),
            (1, 1)
        );
        ensure_eq!((seen.object.alive, seen.name.as_str()), (1, ""));
        // SAFETY: plain system call.
        ensure_eq!(seen.object.creator_uid, unsafe { libc::geteuid() });
        ensure_eq!(
            seen.object.allocation_count,
            u32::from(shape == Shape::Resource)
        );
        if shape != Shape::KeyedMutex {
            let (low, high) = (seen.object.adapter_luid_low, seen.object.adapter_luid_high);
            let expected: LUID = luid.into();
            ensure_eq!(
                (low, high),
                (expected.LowPart, expected.HighPart),
                "{shape:?}"
            );
        }
    }
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let id = client.id(object.target())?;
        let fd = client.share_named(&object, NAME)?;
        for target in [Target::Nt(fd.as_fd()), Target::This(fd.as_fd())] {
            let seen = client.query(target)?;
            ensure_eq!(seen.object.object_id, id);
            ensure_eq!(seen.name, NAME, "{shape:?}");
            ensure_eq!(seen.object.access, shape.all_access());
            ensure_eq!(
                (seen.object.type_, seen.object.kind),
                (shape.object_type(), shape.kind())
            );
            ensure_eq!(seen.object.references, 2);
        }
    }
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let seen = client.query(Target::Global(object.global()))?;
        ensure_eq!(
            seen.object.object_id,
            client.id(object.target())?,
            "{shape:?}"
        );
        ensure_eq!(seen.object.kind, shape.kind());
    }
    let resource = client.create_resource(How::Private, 3, b"")?;
    for allocation in resource.allocations() {
        let seen = client.query(Target::Local(*allocation))?;
        ensure_eq!(seen.object.kind, OPENDXG_KIND_ALLOCATION);
        ensure_eq!(seen.object.object_id, client.id(resource.target())?);
    }
    Ok(())
}

fn triple() -> TestResult {
    let client = Client::new()?;
    let [resource, mutex, sync] = client.triple()?;
    let handles = [resource.handle(), mutex.handle(), sync.handle()];
    let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    let seen = client.query(Target::Nt(fd.as_fd()))?.object;
    ensure_eq!((seen.type_, seen.member_count), (OPENDXG_TYPE_RESOURCE, 3));
    let kinds = [Shape::Resource, Shape::KeyedMutex, Shape::MonitoredFence].map(Shape::kind);
    ensure_eq!(seen.member_kinds, kinds);
    ensure_eq!(seen.object_id, client.id(resource.target())?);
    for member in [&resource, &mutex, &sync] {
        ensure_eq!(client.references(member.target())?, 2);
    }
    Ok(())
}

fn ids() -> TestResult {
    let client = Client::new()?;
    let mut last = 0;
    for round in 0..60 {
        let object = client.create(Shape::ALL[round % 6], How::Private)?;
        let id = client.id(object.target())?;
        ensure!(id > last, "{id} after {last}");
        last = id;
        let duplicate = client.dup_local(object.what(), object.handle())?;
        ensure_eq!(client.id(duplicate.target())?, id);
    }
    ensure!(last < 1 << 40, "an id like an address: {last:#x}");
    Ok(())
}

fn small_name() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Nt)?;
    let fd = client.share_named(&object, NAME)?;
    let bytes = 2 * NAME.len() as u32;
    for size in [0, 1, bytes - 2, bytes - 1] {
        let mut units = [0xa5a5u16; 64];
        let mut arg = opendxg_query_object::zeroed();
        (arg.handle, arg.handle_type) = (fd.as_raw_fd() as u64, OPENDXG_HANDLE_NT);
        (arg.name, arg.name_size) = (units.as_mut_ptr() as u64, size);
        fails_with(client.call(&mut arg), Status::BUFFER_TOO_SMALL)?;
        ensure_eq!(arg.name_size, bytes, "the needed size");
        ensure_eq!(
            (arg.object_id, arg.kind, arg.references),
            (0, 0, 0),
            "only the size is written"
        );
        // SAFETY: a live array that the call may have written.
        ensure_eq!(unsafe { (&raw const units).read_volatile() }, [0xa5a5; 64]);
    }
    // Who does not ask for the name gets the rest.
    let mut arg = opendxg_query_object::zeroed();
    (arg.handle, arg.handle_type) = (fd.as_raw_fd() as u64, OPENDXG_HANDLE_NT);
    client.call(&mut arg)?;
    ensure!(arg.object_id != 0);
    Ok(())
}

fn refused() -> TestResult {
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Fence)?;
    let file = memfd()?;
    for (handle, handle_type, status) in [
        (0, OPENDXG_HANDLE_LOCAL, REFUSE),
        (
            u64::from(object.handle()) | (1 << 32),
            OPENDXG_HANDLE_LOCAL,
            REFUSE,
        ),
        (object.handle().into(), OPENDXG_HANDLE_SELF, REFUSE),
        (object.handle().into(), 5, REFUSE),
        (object.handle().into(), u32::MAX, REFUSE),
        (object.handle().into(), OPENDXG_HANDLE_GLOBAL, REFUSE),
        (
            fd.as_raw_fd() as u64,
            OPENDXG_HANDLE_WEAK,
            Status::OBJECT_TYPE_MISMATCH,
        ),
        (
            file.as_raw_fd() as u64,
            OPENDXG_HANDLE_NT,
            Status::OBJECT_TYPE_MISMATCH,
        ),
        (
            closed_number()? as u64,
            OPENDXG_HANDLE_NT,
            Status::INVALID_HANDLE,
        ),
        (u64::MAX, OPENDXG_HANDLE_NT, Status::INVALID_HANDLE),
    ] {
        let mut arg = opendxg_query_object::zeroed();
        (arg.handle, arg.handle_type) = (handle, handle_type);
        fails_with(client.call(&mut arg), status)
            .map_err(|error| format!("{handle:#x} as {handle_type}: {error}"))?;
    }
    for (flags, reserved) in [(1, 0), (0, 1)] {
        let mut arg = opendxg_query_object::zeroed();
        (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
        (arg.flags, arg.reserved) = (flags, reserved);
        fails_with(client.call(&mut arg), REFUSE)?;
    }
    Ok(())
}

fn fd_info() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let id = client.id(object.target())?;
        let fd = client.share_named(&object, NAME)?;
        let info = FdInfo::read(fd.as_fd())?;
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
        ensure_eq!(info.get("dxg-type"), Some(shape.type_name()), "{text}");
        ensure!(text.contains(NAME), "no name in {text}");
        ensure_eq!(
            info.get("dxg-object"),
            Some(id.to_string().as_str()),
            "{text}"
        );
        let access = format!("{:#x}", shape.all_access());
        ensure_eq!(info.get("dxg-access"), Some(access.as_str()), "{text}");
        let kind = match shape {
            Shape::Mutex => "mutex",
            Shape::Semaphore => "semaphore",
            Shape::Fence => "fence",
            Shape::MonitoredFence => "monitored-fence",
            Shape::Resource => "resource",
            Shape::KeyedMutex => "keyed-mutex",
        };
        ensure_eq!(info.get("dxg-kind"), Some(kind), "{text}");
        // No address of the kernel, in no form.
        ensure!(!text.contains("ffff"), "{text}");
    }
    let (object, fd) = client.shared(Shape::MonitoredFence)?;
    let is = |value: u64, openings: u32| -> TestResult {
        let info = FdInfo::read(fd.as_fd())?;
        let (value, openings) = (value.to_string(), openings.to_string());
        ensure_eq!(info.get("dxg-value"), Some(value.as_str()));
        ensure_eq!(info.get("dxg-openings"), Some(openings.as_str()));
        Ok(())
    };
    is(0, 1)?;
    let opened = client.device().open_fence(&fd, SyncFlags::empty())?;
    opened.signal(u64::MAX)?;
    is(u64::MAX, 2)?;
    drop((object, opened));
    is(u64::MAX, 0)
}

fn poisoned_answers() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let mut answers = Vec::new();
        for pattern in [0x00u8, 0xff] {
            let mut arg = opendxg_query_object::zeroed();
            let inputs = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
            selftests::poison::bytes_mut(&mut arg).fill(pattern);
            (arg.handle, arg.handle_type) = inputs;
            (arg.flags, arg.name, arg.name_size, arg.reserved) = (0, 0, 0, 0);
            client.call(&mut arg)?;
            answers.push(selftests::poison::bytes(&arg).to_vec());
        }
        ensure_eq!(answers[0], answers[1], "{shape:?}: stale bytes");
    }
    Ok(())
}
