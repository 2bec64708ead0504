// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access masks of ShareObjects, and what they allow (RES-35, RES-36, RES-104).

use std::os::fd::AsFd;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, MonitoredFence, Status, SyncFlags};
use selftests::sharing::access::*;
use selftests::sharing::{key, Attributes, Client, How, Local, Shape, Target};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-35 standard and generic rights", generic)
        .test("RES-36 unknown bits, and no rights at all", unknown)
        .test(
            "RES-36 all standard rights: shared, duplicated, opened by name",
            standard_rights,
        )
        .test("RES-35 without WAIT or SIGNAL", sync_rights)
        .test(
            "RES-35 FEN-25 FEN-37 flags of an opening take more away",
            flags,
        )
        .test(
            "RES-104 sharing an opened handle again gives no new rights",
            no_growth,
        )
        .test("RES-35 a resource without WRITE", read_only)
        .test(
            "RES-35 RES-104 the handle decides, not the opener",
            transfer,
        )
        .test(
            "RES-35 RES-104 a set gives no more of a member than its sharer had",
            of_a_set,
        )
}

/// What a handle shared with this mask says of itself.
fn granted(client: &Client, shape: Shape, mask: u32) -> TestResult<u32> {
    let object = client.create(shape, How::Nt)?;
    let fd = client.share(&object, mask)?;
    let seen = client.query(Target::Nt(fd.as_fd()))?.object.access;
    client.open(shape, &fd)?;
    Ok(seen)
}

fn generic() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (read, write) = match shape {
            Shape::Resource => (READ_CONTROL, READ_CONTROL | WRITE),
            _ => (READ_CONTROL | WAIT, READ_CONTROL | SIGNAL),
        };
        for (mask, expected) in [
            (READ_CONTROL, READ_CONTROL),
            (READ_CONTROL | 1, READ_CONTROL | 1),
            (GENERIC_EXECUTE, READ_CONTROL),
            (GENERIC_READ, read),
            (GENERIC_WRITE, write),
            (GENERIC_READ | GENERIC_WRITE, read | write),
            (GENERIC_ALL, shape.all_access()),
            (shape.all_access(), shape.all_access()),
        ] {
            let got = granted(&client, shape, mask)?;
            ensure_eq!(got, expected, "{shape:?} {mask:#x}: {got:#x}");
        }
    }
    Ok(())
}

fn unknown() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        ensure_eq!(granted(&client, shape, 0)?, READ_CONTROL, "{shape:?}");
        let object = client.create(shape, How::Nt)?;
        for bit in 0..32 {
            let mask = 1u32 << bit;
            let generic = GENERIC_ALL | GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE;
            let known = shape.all_access() | STANDARD_RIGHTS_ALL | generic | MAXIMUM_ALLOWED;
            let result = client.share(&object, mask);
            match known & mask {
                0 => fails_with(result, Status::INVALID_PARAMETER)
                    .map_err(|error| format!("{shape:?} bit {bit}: {error}"))?,
                MAXIMUM_ALLOWED => {}
                _ => drop(result?),
            }
        }
    }
    Ok(())
}

/// Callers pass them for every type. SYNCHRONIZE is no right of a resource and is dropped.
fn standard_rights() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let name = format!(r"\BaseNamedObjects\rights-{shape:?}");
        let mut attributes = Attributes::named(&name);
        let all = shape.all_access();
        let (kept, _) = client.share_with(&[object.handle()], Some(&mut attributes), all)?;
        for mask in [SYNCHRONIZE, STANDARD_RIGHTS_ALL, STANDARD_RIGHTS_ALL | all] {
            let expected = mask & all | READ_CONTROL;
            let mut attributes = Attributes::named(&name);
            let named = client.open_attributes(shape.what(), Some(&mut attributes), mask)?;
            for (way, handle) in [
                ("shared", client.share(&object, mask)?),
                (
                    "duplicated",
                    client.dup_nt(Target::Nt(kept.as_fd()), mask, 0)?,
                ),
                ("by name", named),
            ] {
                let seen = client.query(Target::Nt(handle.as_fd()))?.object.access;
                ensure_eq!(seen, expected, "{shape:?} {way} {mask:#x}");
            }
        }
    }
    Ok(())
}

fn sync_rights() -> TestResult {
    let client = Client::new()?;
    for (mask, may_wait, may_signal) in [
        (0, false, false),
        (READ_CONTROL, false, false),
        (GENERIC_EXECUTE, false, false),
        (WAIT, true, false),
        (GENERIC_READ, true, false),
        (SIGNAL, false, true),
        (GENERIC_WRITE, false, true),
        (WAIT | SIGNAL, true, true),
        (GENERIC_ALL, true, true),
        (ALL_SYNC, true, true),
    ] {
        let object = client.create(Shape::MonitoredFence, How::Nt)?;
        let fd = client.share(&object, mask)?;
        // A copy of the descriptor has the same rights.
        for fd in [fd.try_clone()?, fd] {
            let fence = client.device().open_fence(&fd, SyncFlags::empty())?;
            may(&fence, may_wait, may_signal).map_err(|error| format!("{mask:#x}: {error}"))?;
        }
    }
    Ok(())
}

/// Checks what an opening may do. Reading the mapped value needs no right.
fn may(fence: &MonitoredFence, wait: bool, signal: bool) -> TestResult {
    let expect = |result: opendxg::Result<()>, allowed: bool| match allowed {
        true => Ok(result?),
        false => fails_with(result, Status::ACCESS_DENIED),
    };
    let (event, value) = (EventFd::new()?, fence.value());
    expect(fence.wait(value), wait)?;
    expect(fence.wait_async(value, &event).map(drop), wait)?;
    ensure_eq!(event.take()?, u64::from(wait));
    expect(fence.point(value).map(drop), wait)?;
    expect(fence.signal(value + 1), signal)?;
    ensure_eq!(fence.value(), value + u64::from(signal));
    Ok(())
}

fn flags() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::MonitoredFence, How::Nt)?;
    for (mask, flags, wait, signal) in [
        (ALL_SYNC, SyncFlags::NO_SIGNAL, true, false),
        (ALL_SYNC, SyncFlags::NO_WAIT, false, true),
        (WAIT, SyncFlags::NO_WAIT, false, false),
        (WAIT, SyncFlags::NO_SIGNAL, true, false),
    ] {
        let fd = client.share(&object, mask)?;
        may(&client.device().open_fence(&fd, flags)?, wait, signal)?;
    }
    Ok(())
}

fn no_growth() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let opened = client.open(shape, client.share(&object, READ_CONTROL)?)?;
        let more = client.share(&opened, shape.all_access());
        fails_with(more, Status::ACCESS_DENIED).map_err(|error| format!("{shape:?}: {error}"))?;
        // The same rights again are fine.
        client.open(shape, client.share(&opened, READ_CONTROL)?)?;
    }
    Ok(())
}

fn read_only() -> TestResult {
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Nt)?;
    client.poke(resource.allocations()[0], 77)?;
    let fd = client.share(&resource, READ_CONTROL)?;
    let opened = client.open_resource(&fd)?.resource;
    let allocation = opened.allocations()[0];
    ensure_eq!(client.peek(allocation)?, 77);
    let mut arg = D3DKMT_LOCK2::zeroed();
    (arg.hDevice, arg.hAllocation) = (client.device_handle(), allocation);
    client.call(&mut arg)?;
    // SAFETY: the mapping of the call; the rights asked for are what is tried.
    let more = unsafe {
        libc::mprotect(
            arg.pData as *mut _,
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
        )
    };
    ensure_eq!(more, -1, "a read-only lock was made writable");
    let mut arg = D3DKMT_UNLOCK2::zeroed();
    (arg.hDevice, arg.hAllocation) = (client.device_handle(), allocation);
    client.call(&mut arg)?;
    let denied = Status::ACCESS_DENIED;
    fails_with(client.set(opened.target(), key(1), 0, b"x"), denied)?;
    let bytes = [1u8; 4];
    let mut escape = D3DKMT_ESCAPE::zeroed();
    escape.hAdapter = client.device().adapter().handle().0;
    escape.hDevice = client.device_handle();
    escape.Type = D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE;
    escape.hContext = opened.handle();
    (escape.pPrivateDriverData, escape.PrivateDriverDataSize) = (bytes.as_ptr() as u64, 4);
    fails_with(client.call(&mut escape), denied)?;
    let priority = D3DDDI_ALLOCATIONPRIORITY_MAXIMUM;
    let mut arg = D3DKMT_SETALLOCATIONPRIORITY::zeroed();
    (arg.hDevice, arg.pPriorities) = (client.device_handle(), (&raw const priority) as u64);
    arg.hResource = opened.handle();
    fails_with(client.call(&mut arg), denied)?;
    (arg.hResource, arg.AllocationCount) = (0, 1);
    arg.phAllocationList = (&raw const allocation) as u64;
    fails_with(client.call(&mut arg), denied)?;
    let own = resource.allocations()[0];
    arg.phAllocationList = (&raw const own) as u64;
    client.call(&mut arg)?;
    // The right to write goes no further than the handle it came with.
    let duplicate = client.dup_local(resource.what(), opened.handle())?;
    fails_with(client.set(duplicate.target(), key(1), 0, b"x"), denied)?;
    let again = client.share(&opened, WRITE).map(|_| ());
    fails_with(again, denied)
}

fn transfer() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share(&object, READ_CONTROL)?;
        let (left, right) = selftests::fds::socket_pair()?;
        selftests::fds::send(&left, &fd)?;
        selftests::child::in_child(|| {
            let arrived = selftests::fds::receive(&right)?;
            let client = Client::new()?;
            let opened = client.open(shape, &arrived)?;
            let refused = client.set(opened.target(), key(1), 0, b"x");
            fails_with(refused, Status::ACCESS_DENIED)?;
            let more = client.dup_nt(Target::Nt(arrived.as_fd()), shape.all_access(), 0);
            fails_with(more.map(|_| ()), Status::ACCESS_DENIED)
        })?;
    }
    Ok(())
}

/// Shares a set of three whose synchronisation object was opened with `mask`; the access to the
/// set is `desired`. What the opener may do: wait, signal.
fn through_a_set(mask: u32, desired: u32) -> TestResult<opendxg::Result<(bool, bool)>> {
    let client = Client::new()?;
    let [resource, mutex, sync] = client.triple()?;
    let opened = client.open_sync(client.share(&sync, mask)?)?;
    let handles = [&resource, &mutex, &opened].map(Local::handle);
    let nt = match client.share_with(&handles, None, desired) {
        Ok((nt, _)) => nt,
        Err(error) => return Ok(Err(error)),
    };
    let got = client.open_resource(nt)?.sync.ok_or("no sync object")?;
    let may = |result: opendxg::Result<Status>| match result {
        Ok(_) => Ok(true),
        Err(error) => fails_with(Err::<(), _>(error), Status::ACCESS_DENIED).map(|()| false),
    };
    let (handle, value) = ([got.handle()], [1u64]);
    let mut signal = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    (signal.hDevice, signal.ObjectCount) = (client.device_handle(), 1);
    signal.ObjectHandleArray = handle.as_ptr() as u64;
    signal.FenceValueArray = value.as_ptr() as u64;
    let may_signal = may(client.call(&mut signal))?;
    let value = [0u64];
    let mut wait = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    (wait.hDevice, wait.ObjectCount) = (client.device_handle(), 1);
    wait.ObjectHandleArray = handle.as_ptr() as u64;
    wait.FenceValueArray = value.as_ptr() as u64;
    Ok(Ok((may(client.call(&mut wait))?, may_signal)))
}

fn of_a_set() -> TestResult {
    for (mask, desired, expected) in [
        (WAIT | SIGNAL, READ_CONTROL | WRITE, Some((true, true))),
        (ALL_SYNC, ALL_RESOURCE, Some((true, true))),
        (ALL_SYNC, READ_CONTROL, Some((true, false))),
        (WAIT, READ_CONTROL, Some((true, false))),
        (WAIT, MAXIMUM_ALLOWED, Some((true, false))),
        (WAIT, WRITE, None),
        (WAIT, GENERIC_WRITE, None),
        (SIGNAL, READ_CONTROL, None),
        (SIGNAL, WRITE, None),
        (READ_CONTROL, READ_CONTROL, None),
    ] {
        let got = through_a_set(mask, desired)?;
        match expected {
            Some(rights) => ensure_eq!(got?, rights, "{mask:#x}, set {desired:#x}"),
            None => fails_with(got, Status::ACCESS_DENIED)
                .map_err(|error| format!("{mask:#x}, set {desired:#x}: {error}"))?,
        }
    }
    Ok(())
}
