// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creating, opening and destroying (RES-91 to RES-94).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::call::{refused, succeeds};
use selftests::fds::{closed_number, memfd};
use selftests::memory::{KERNEL_HALF, UNMAPPED};
use selftests::poison::poisoned;
use selftests::sharing::{access, Acquired, Client, How, Shape, What};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-91 a zeroed create succeeds, without any device",
            zeroed,
        )
        .test("RES-91 a NULL struct", null)
        .test(
            "RES-91 create 2: private data, flags, no global handle",
            create2,
        )
        .test("RES-91 the first key, and fence value 0", first_key)
        .test("RES-91 RES-6 one handle for each create and open", handles)
        .test(
            "RES-92 open: zero, local, dead and foreign numbers",
            open_refused,
        )
        .test("RES-92 open and open 2 give new handles of one mutex", open)
        .test("RES-93 by NT handle nothing can be opened", by_nt_handle)
        .test(
            "RES-94 destroy: zero, repeated, global, other kinds",
            destroy,
        )
        .test(
            "RES-94 without its creator's handle the global handle is dead",
            dies,
        )
}

fn zeroed() -> TestResult {
    // No adapter and no device in this process yet, and none is needed.
    let raw = fixture::raw()?;
    let mut arg = D3DKMT_CREATEKEYEDMUTEX::zeroed();
    succeeds(&raw, &mut arg)?;
    ensure!(
        arg.hKeyedMutex & 0xc000_003f == 0x4000_0000,
        "{:#x}",
        arg.hKeyedMutex
    );
    ensure!(arg.hSharedHandle & 0xc000_0000 != 0 && arg.hSharedHandle & 0x3f == 2);
    let mut second = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
    succeeds(&raw, &mut second)?;
    ensure_eq!(second.hKeyedMutex, arg.hKeyedMutex + 0x40);
    ensure!(second.hSharedHandle & 0xc000_0000 != 0 && second.hSharedHandle & 0x3f == 2);
    for handle in [arg.hKeyedMutex, second.hKeyedMutex] {
        let mut destroy = D3DKMT_DESTROYKEYEDMUTEX::zeroed();
        destroy.hKeyedMutex = handle;
        succeeds(&raw, &mut destroy)?;
    }
    Ok(())
}

fn null() -> TestResult {
    let raw = fixture::raw()?;
    let null = |nr: u32, size: u32| -> TestResult {
        let code = opendxg::raw::code(nr, size);
        for address in [0, UNMAPPED, KERNEL_HALF] {
            ensure_eq!(
                raw.ioctl(code, address),
                Err(opendxg::raw::Errno::FAULT),
                "{nr:#x}"
            );
        }
        Ok(())
    };
    null(D3DKMT_CREATEKEYEDMUTEX::NR, D3DKMT_CREATEKEYEDMUTEX::SIZE)?;
    null(D3DKMT_CREATEKEYEDMUTEX2::NR, D3DKMT_CREATEKEYEDMUTEX2::SIZE)?;
    null(D3DKMT_OPENKEYEDMUTEX::NR, D3DKMT_OPENKEYEDMUTEX::SIZE)?;
    null(D3DKMT_OPENKEYEDMUTEX2::NR, D3DKMT_OPENKEYEDMUTEX2::SIZE)?;
    null(D3DKMT_ACQUIREKEYEDMUTEX::NR, D3DKMT_ACQUIREKEYEDMUTEX::SIZE)?;
    null(D3DKMT_RELEASEKEYEDMUTEX::NR, D3DKMT_RELEASEKEYEDMUTEX::SIZE)?;
    null(D3DKMT_DESTROYKEYEDMUTEX::NR, D3DKMT_DESTROYKEYEDMUTEX::SIZE)
}

fn create2() -> TestResult {
    let client = Client::new()?;
    let raw = client.raw();
    let data = [7u8; 16];
    let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
    arg.PrivateRuntimeDataSize = 16;
    refused(raw, &mut arg, REFUSE)?;
    for flags in [2, 3, 1 << 31, u32::MAX] {
        let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
        arg.Flags = flags;
        refused(raw, &mut arg, REFUSE)?;
    }
    let mut arg = D3DKMT_CREATEKEYEDMUTEX2::zeroed();
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (UNMAPPED, 16);
    refused(raw, &mut arg, Status::ACCESS_VIOLATION)?;
    arg.pPrivateRuntimeData = data.as_ptr() as u64;
    arg.PrivateRuntimeDataSize = 65537;
    refused(raw, &mut arg, REFUSE)?;
    let nt = client.create_keyed_mutex(How::Nt, 0, &data)?;
    ensure_eq!(nt.global(), 0, "a global handle with NtSecuritySharing");
    let global = client.create_keyed_mutex(How::Global, 0, &data)?;
    ensure!(global.global() != 0);
    Ok(())
}

fn first_key() -> TestResult {
    let client = Client::new()?;
    for first in [0, 1, 0xdead_beef, u64::MAX] {
        let mutex = client.create_keyed_mutex(How::Global, first, b"")?;
        for wrong in [first ^ 1, first.wrapping_add(1), first ^ (1 << 63)] {
            ensure_eq!(
                client.try_acquire(mutex.handle(), wrong)?,
                Acquired::TIMEOUT
            );
        }
        ensure_eq!(
            client.try_acquire(mutex.handle(), first)?,
            Acquired::with(0)
        );
    }
    Ok(())
}

fn handles() -> TestResult {
    let client = Client::new()?;
    let next = fixture::next_handle()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"")?;
    ensure_eq!(mutex.handle(), next);
    let opened = client.open_global(Shape::KeyedMutex, mutex.global())?;
    ensure_eq!(opened.handle(), next + 0x40);
    Ok(())
}

fn open_refused() -> TestResult {
    let client = Client::new()?;
    let raw = client.raw();
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let dead = client.create(Shape::KeyedMutex, How::Global)?.global();
    let other = client.create(Shape::Semaphore, How::Global)?;
    let resource = client.create(Shape::Resource, How::Global)?;
    for number in [
        0,
        2,
        u32::MAX,
        mutex.handle(),
        mutex.handle() | 2,
        dead,
        other.global(),
        resource.global(),
        mutex.global() ^ 0x40,
        mutex.global() | 1,
        mutex.global() & 0x3fff_ffff,
    ] {
        let mut arg: D3DKMT_OPENKEYEDMUTEX = poisoned();
        arg.hSharedHandle = number;
        refused(raw, &mut arg, REFUSE)?;
        let mut arg = D3DKMT_OPENKEYEDMUTEX2::zeroed();
        arg.hSharedHandle = number;
        refused(raw, &mut arg, REFUSE)?;
    }
    // Nor is the number of a mutex one of a synchronisation object or of a resource.
    fails_with(client.open_global(Shape::Mutex, mutex.global()), REFUSE)?;
    fails_with(client.open_global(Shape::Resource, mutex.global()), REFUSE)
}

fn open() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let id = client.id(mutex.target())?;
    let mut last = mutex.handle();
    for round in 0..6 {
        let mut arg = D3DKMT_OPENKEYEDMUTEX2::zeroed();
        arg.hSharedHandle = mutex.global();
        let opened = if round % 2 == 0 {
            client.call(&mut arg)?;
            selftests::sharing::Local::new(&client, What::KeyedMutex, arg.hKeyedMutex)
        } else {
            client.open_global(Shape::KeyedMutex, mutex.global())?
        };
        ensure!(opened.handle() > last, "{:#x}", opened.handle());
        last = opened.handle();
        ensure_eq!(client.id(opened.target())?, id);
        ensure_eq!(
            client.try_acquire(opened.handle(), round)?,
            Acquired::with(round)
        );
        client.release(mutex.handle(), round + 1, round + 1)?;
    }
    Ok(())
}

fn by_nt_handle() -> TestResult {
    let client = Client::new()?;
    let (_resource, resource) = client.shared(Shape::Resource)?;
    let (_fence, fence) = client.shared(Shape::MonitoredFence)?;
    let [resource3, mutex, sync] = client.triple()?;
    let handles = [resource3.handle(), mutex.handle(), sync.handle()];
    let (triple, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    let file = memfd()?;
    let mismatch = Status::OBJECT_TYPE_MISMATCH;
    let cases = [
        (resource.as_raw_fd(), mismatch),
        (fence.as_raw_fd(), mismatch),
        (triple.as_raw_fd(), mismatch),
        (closed_number()?, Status::INVALID_HANDLE),
        (file.as_fd().as_raw_fd(), mismatch),
    ];
    for (number, status) in cases {
        let mut arg = D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE::zeroed();
        arg.hNtHandle = number as u64;
        refused(client.raw(), &mut arg, status)
            .map_err(|error| format!("descriptor {number}: {error}"))?;
    }
    // The mutex of a set comes with its resource.
    let opened = client.open_resource(&triple)?.mutex.ok_or("no mutex")?;
    ensure_eq!(client.id(opened.target())?, client.id(mutex.target())?);
    Ok(())
}

fn destroy() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let fence = client.create(Shape::Fence, How::Private)?;
    let resource = client.create(Shape::Resource, How::Private)?;
    for number in [
        0,
        mutex.global(),
        mutex.handle() + 0x40_0000,
        fence.handle(),
        resource.handle(),
        resource.allocations()[0],
        client.device_handle(),
    ] {
        fails_with(client.destroy(What::KeyedMutex, number), REFUSE)?;
    }
    for what in [What::Sync, What::Resource, What::Allocation] {
        fails_with(client.destroy(what, mutex.handle()), REFUSE)?;
    }
    let handle = mutex.handle();
    mutex.destroy()?;
    fails_with(client.destroy(What::KeyedMutex, handle), REFUSE)
}

fn dies() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let (global, opened) = (
        mutex.global(),
        client.open_global(Shape::KeyedMutex, mutex.global())?,
    );
    mutex.destroy()?;
    client.open_global(Shape::KeyedMutex, global)?.destroy()?;
    opened.destroy()?;
    fails_with(client.open_global(Shape::KeyedMutex, global), REFUSE)
}
