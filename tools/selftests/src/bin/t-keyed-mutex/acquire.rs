// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acquire and release (RES-95, RES-97, RES-98).

use std::sync::mpsc::channel;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use selftests::blocked::Blocked;
use selftests::call::refused;
use selftests::memory::UNMAPPED;
use selftests::sharing::{Acquired, Client, How, Shape};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-98 the sequence of acquires and releases", sequence)
        .test(
            "RES-95 refused: bad handles, with nothing changed",
            refusals,
        )
        .test("RES-95 a busy mutex and a wrong key both time out", busy)
        .test("RES-95 each waits for its own key", own_key)
        .test("RES-97 a release without ownership", not_owner)
        .test("RES-97 no recursion", no_recursion)
        .test(
            "RES-97 hand-over gives fence value and ownership",
            hand_over,
        )
        .test("RES-95 extreme keys and fence values", extremes)
}

fn sequence() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    ensure_eq!(
        client.acquire_ms(handle, 0xdead_beef, 10)?,
        Acquired::TIMEOUT
    );
    ensure_eq!(client.acquire_ms(handle, 0, 10)?, Acquired::with(0));
    client.release(handle, 1, 1234)?;
    fails_with(client.release(handle, 1, 1234), REFUSE)?;
    ensure_eq!(client.acquire_ms(handle, 0, 10)?, Acquired::TIMEOUT);
    ensure_eq!(client.acquire_ms(handle, 1, 10)?, Acquired::with(1234));
    client.release(handle, 0, 0)?;
    ensure_eq!(client.acquire_ms(handle, 0, 10)?, Acquired::with(0));
    Ok(())
}

fn refusals() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let fence = client.create(Shape::Fence, How::Global)?;
    let resource = client.create(Shape::Resource, How::Private)?;
    let dead = client.create(Shape::KeyedMutex, How::Global)?.handle();
    for handle in [
        0,
        dead,
        mutex.global(),
        fence.handle(),
        resource.handle(),
        resource.allocations()[0],
        client.device_handle(),
        u32::MAX,
    ] {
        let now = 0i64;
        let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
        (arg.hKeyedMutex, arg.Key, arg.FenceValue) = (handle, 77, 88);
        arg.pTimeout = (&raw const now) as u64;
        refused(client.raw(), &mut arg, REFUSE)?;
        let mut arg = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
        (arg.hKeyedMutex, arg.Key, arg.FenceValue) = (handle, 77, 88);
        refused(client.raw(), &mut arg, REFUSE)?;
    }
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX::zeroed();
    (arg.hKeyedMutex, arg.FenceValue, arg.pTimeout) = (mutex.handle(), 88, UNMAPPED);
    refused(client.raw(), &mut arg, Status::ACCESS_VIOLATION)?;
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
    Ok(())
}

fn busy() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    for timeout in [0, 10] {
        ensure_eq!(client.acquire_ms(handle, 1, timeout)?, Acquired::TIMEOUT);
    }
    ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(0));
    let other = client.clone();
    let outcome = std::thread::spawn(move || -> TestResult {
        for key in [0, 1] {
            for timeout in [0, 10] {
                ensure_eq!(other.acquire_ms(handle, key, timeout)?, Acquired::TIMEOUT);
            }
        }
        Ok(())
    });
    outcome.join().map_err(|_| "panic in a thread")??;
    client.release(handle, 0, 0)?;
    Ok(())
}

/// A thread that acquires `key`, demands `expected`, and releases with the key after it.
fn waiter(
    client: &Client,
    handle: u32,
    key: u64,
    next: u64,
) -> TestResult<Blocked<TestResult<Acquired>>> {
    let client = client.clone();
    Blocked::new(move || {
        let acquired = client.acquire(handle, key, None)?;
        if acquired.status == Status::SUCCESS {
            client.release(handle, next, acquired.fence + 1)?;
        }
        Ok(acquired)
    })
}

fn own_key() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let first = waiter(&client, handle, 1, 2)?;
    let third = waiter(&client, handle, 3, 0)?;
    let second = waiter(&client, handle, 2, 3)?;
    first.stays()?;
    ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(0));
    first.stays()?;
    client.release(handle, 1, 100)?;
    ensure_eq!(first.join()??, Acquired::with(100));
    ensure_eq!(second.join()??, Acquired::with(101));
    ensure_eq!(third.join()??, Acquired::with(102));
    ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(103));
    Ok(())
}

fn not_owner() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    fails_with(client.release(handle, 0, 5), REFUSE)?;
    client.try_acquire(handle, 0)?;
    let other = client.clone();
    let theirs = std::thread::spawn(move || {
        let mut arg = D3DKMT_RELEASEKEYEDMUTEX::zeroed();
        (arg.hKeyedMutex, arg.Key, arg.FenceValue) = (handle, 6, 7);
        refused(other.raw(), &mut arg, REFUSE)
    });
    theirs.join().map_err(|_| "panic in a thread")??;
    client.release(handle, 0, 1)?;
    ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(1));
    Ok(())
}

fn no_recursion() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let opened = client.open_global(Shape::KeyedMutex, mutex.global())?;
    client.try_acquire(mutex.handle(), 0)?;
    for handle in [mutex.handle(), opened.handle()] {
        for timeout in [0, 10] {
            ensure_eq!(client.acquire_ms(handle, 0, timeout)?, Acquired::TIMEOUT);
        }
    }
    client.release(mutex.handle(), 0, 3)?;
    fails_with(client.release(mutex.handle(), 0, 3), REFUSE)?;
    ensure_eq!(client.try_acquire(opened.handle(), 0)?, Acquired::with(3));
    Ok(())
}

fn hand_over() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    client.try_acquire(handle, 0)?;
    let other = client.clone();
    let (has_it, it_has) = channel();
    let (go_on, may_go_on) = channel();
    let blocked = Blocked::new(move || -> TestResult {
        ensure_eq!(other.acquire(handle, 9, None)?, Acquired::with(u64::MAX));
        let _ = has_it.send(());
        // Holds the mutex until it is told to go on, or the test has failed.
        let _: Result<(), _> = may_go_on.recv();
        other.release(handle, 0, 5)?;
        Ok(())
    })?;
    client.release(handle, 9, u64::MAX)?;
    // From this moment it is the other's: nobody else gets in between, with any key.
    for key in [0, 9] {
        ensure_eq!(client.try_acquire(handle, key)?, Acquired::TIMEOUT);
    }
    it_has.recv().map_err(|_| "the other thread failed")?;
    go_on.send(()).map_err(|_| "the other thread failed")?;
    ensure_eq!(client.acquire(handle, 0, None)?, Acquired::with(5));
    blocked.join()?
}

fn extremes() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, u64::MAX, b"")?;
    let handle = mutex.handle();
    let mut key = u64::MAX;
    let mut fence = 0;
    for (next_key, next_fence) in [
        (0, u64::MAX),
        (1 << 63, 1),
        (u64::MAX - 1, 0),
        (u64::MAX, 7),
    ] {
        ensure_eq!(client.try_acquire(handle, key)?, Acquired::with(fence));
        client.release(handle, next_key, next_fence)?;
        (key, fence) = (next_key, next_fence);
    }
    Ok(())
}
