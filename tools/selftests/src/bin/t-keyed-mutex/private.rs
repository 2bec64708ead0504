// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private data of a keyed mutex, and the second generation of calls (RES-92, RES-101).

use opendxg::raw::{code, Argument};
use opendxg::uapi::*;
use opendxg::{Result, Status};
use rustix::io::Errno;
use selftests::blocked::Blocked;
use selftests::leak::Watch;
use selftests::memory::{Page, UNMAPPED};
use selftests::paused::PausedPage;
use selftests::poison::bytes;
use selftests::sharing::{key as other_key, Acquired, Client, How, Local, What};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-92 open 2 gives data to a mutex that has none",
            initial_data,
        )
        .test(
            "RES-3 RES-92 open 2 without a place for the answer gives no data",
            unwritable_answer,
        )
        .test(
            "RES-92 open 2 of a mutex with data: sizes, nothing copied",
            with_data,
        )
        .test("RES-101 acquire 2 copies out on success only", copied_out)
        .test(
            "RES-101 a small buffer: refused, and not acquired",
            small_buffer,
        )
        .test("RES-101 release 2 replaces the data, or keeps it", replaced)
        .test(
            "RES-101 release 2 that is refused releases nothing",
            release_refused,
        )
        .test(
            "RES-99 RES-101 release 2 of a mutex that is abandoned meanwhile changes nothing",
            abandoned_meanwhile,
        )
        .test("RES-101 both generations of calls on one mutex", mixed)
        .test(
            "RES-101 RES-67 the data is the entry with the zero key",
            zero_key,
        )
}

/// OpenKeyedMutex2; also the buffer and the size afterwards.
fn open2(client: &Client, global: u32, data: &[u8]) -> (Result<Local>, Vec<u8>, u32) {
    let mut buffer = data.to_vec();
    let mut arg = D3DKMT_OPENKEYEDMUTEX2::zeroed();
    arg.hSharedHandle = global;
    if !data.is_empty() {
        arg.pPrivateRuntimeData = buffer.as_mut_ptr() as u64;
        arg.PrivateRuntimeDataSize = buffer.len() as u32;
    }
    let answer = client.call(&mut arg);
    let local = answer.map(|_| Local::new(client, What::KeyedMutex, arg.hKeyedMutex));
    (local, buffer, arg.PrivateRuntimeDataSize)
}

/// AcquireKeyedMutex2 without waiting; the buffer afterwards.
fn acquire2(client: &Client, handle: u32, key: u64, size: usize) -> Result<(Acquired, Vec<u8>)> {
    let mut buffer = vec![0xeeu8; size];
    let now = 0i64;
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
    (arg.hKeyedMutex, arg.Key) = (handle, key);
    arg.FenceValue = 0x1ead;
    arg.pTimeout = (&raw const now) as u64;
    if size > 0 {
        arg.pPrivateRuntimeData = buffer.as_mut_ptr() as u64;
        arg.PrivateRuntimeDataSize = size as u32;
    }
    let status = client.call(&mut arg)?;
    let fence = arg.FenceValue;
    Ok((Acquired { status, fence }, buffer))
}

fn release2(client: &Client, handle: u32, key: u64, fence: u64, data: &[u8]) -> Result<()> {
    let mut arg = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
    (arg.hKeyedMutex, arg.Key, arg.FenceValue) = (handle, key, fence);
    if !data.is_empty() {
        arg.pPrivateRuntimeData = data.as_ptr() as u64;
        arg.PrivateRuntimeDataSize = data.len() as u32;
    }
    client.call(&mut arg).map(|_| ())
}

/// What acquire 2 gives for a mutex with `expected` as its data; released again with the same key.
fn holds(client: &Client, handle: u32, expected: &[u8]) -> TestResult {
    let (acquired, buffer) = acquire2(client, handle, 0, expected.len())?;
    ensure_eq!(acquired.status, Status::SUCCESS);
    ensure_eq!(buffer, expected);
    Ok(client.release(handle, 0, 0)?)
}

fn initial_data() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"")?;
    let (opened, buffer, size) = open2(&client, mutex.global(), &[0x61; 64]);
    let opened = opened?;
    ensure_eq!(size, 64);
    ensure_eq!(buffer, [0x61; 64]);
    holds(&client, opened.handle(), &[0x61; 64])?;
    holds(&client, mutex.handle(), &[0x61; 64])?;
    // Now it has some: other data of the size is not taken.
    let (second, buffer, _) = open2(&client, mutex.global(), &[0x62; 64]);
    second?;
    ensure_eq!(buffer, [0x62; 64]);
    holds(&client, mutex.handle(), &[0x61; 64])
}

fn unwritable_answer() -> TestResult {
    const CODE: u32 = code(D3DKMT_OPENKEYEDMUTEX2::NR, D3DKMT_OPENKEYEDMUTEX2::SIZE);
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"")?;
    let data = [0x61; 64];
    let mut arg = D3DKMT_OPENKEYEDMUTEX2::zeroed();
    arg.hSharedHandle = mutex.global();
    arg.pPrivateRuntimeData = data.as_ptr() as u64;
    arg.PrivateRuntimeDataSize = 64;
    let page = Page::beginning_with(bytes(&arg))?.read_only()?;
    let watch = Watch::start()?;
    let answer = client.raw().ioctl(CODE, page.address());
    ensure_eq!(answer, Err(Errno::FAULT));
    watch.unchanged()?;
    let missing = client.get(mutex.target(), [0; 16], 0);
    fails_with(missing, Status::NOT_FOUND)?;
    open2(&client, mutex.global(), &data).0?;
    holds(&client, mutex.handle(), &data)
}

fn with_data() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"sixsix")?;
    let (opened, _, size) = open2(&client, mutex.global(), b"");
    opened?;
    ensure_eq!(size, 0);
    for wrong in [&b"1"[..], b"five5"] {
        let (refused, buffer, size) = open2(&client, mutex.global(), wrong);
        fails_with(refused, REFUSE)?;
        ensure_eq!((buffer.as_slice(), size as usize), (wrong, wrong.len()));
    }
    let (opened, buffer, _) = open2(&client, mutex.global(), b"other6");
    opened?;
    ensure_eq!(buffer, b"other6");
    holds(&client, mutex.handle(), b"sixsix")?;
    let mut arg = D3DKMT_OPENKEYEDMUTEX2::zeroed();
    (arg.hSharedHandle, arg.PrivateRuntimeDataSize) = (mutex.global(), 6);
    fails_with(client.call(&mut arg), REFUSE)?;
    let empty = client.create_keyed_mutex(How::Global, 0, b"")?;
    arg.hSharedHandle = empty.global();
    fails_with(client.call(&mut arg), REFUSE)
}

fn copied_out() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 5, b"private")?;
    let (timeout, buffer) = acquire2(&client, mutex.handle(), 6, 7)?;
    ensure_eq!(timeout, Acquired::TIMEOUT);
    ensure_eq!(buffer, [0xee; 7], "copied without success");
    let (acquired, buffer) = acquire2(&client, mutex.handle(), 5, 7)?;
    ensure_eq!(acquired, Acquired::with(0));
    ensure_eq!(buffer, b"private");
    client.release(mutex.handle(), 5, 9)?;
    // A larger buffer is filled as far as there are data.
    let (acquired, buffer) = acquire2(&client, mutex.handle(), 5, 20)?;
    ensure_eq!(acquired, Acquired::with(9));
    ensure_eq!(&buffer[..7], b"private");
    ensure_eq!(buffer[7..], [0xee; 13]);
    // Where nothing can be copied to, nothing is acquired.
    client.release(mutex.handle(), 5, 9)?;
    let now = 0i64;
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
    (arg.hKeyedMutex, arg.Key, arg.pTimeout) = (mutex.handle(), 5, (&raw const now) as u64);
    (arg.pPrivateRuntimeData, arg.PrivateRuntimeDataSize) = (UNMAPPED, 7);
    fails_with(client.call(&mut arg), Status::ACCESS_VIOLATION)?;
    ensure_eq!(client.try_acquire(mutex.handle(), 5)?, Acquired::with(9));
    Ok(())
}

fn small_buffer() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"private")?;
    for size in [1, 6] {
        fails_with(acquire2(&client, mutex.handle(), 0, size), REFUSE)?;
        fails_with(client.release(mutex.handle(), 0, 0), REFUSE)?;
    }
    let now = 0i64;
    let mut arg = D3DKMT_ACQUIREKEYEDMUTEX2::zeroed();
    (arg.hKeyedMutex, arg.pTimeout) = (mutex.handle(), (&raw const now) as u64);
    arg.PrivateRuntimeDataSize = 7;
    fails_with(client.call(&mut arg), REFUSE)?;
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
    Ok(())
}

fn replaced() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"first")?;
    let handle = mutex.handle();
    for data in [&b"second, longer"[..], b"3", b"", &[4; 65536], b"five"] {
        let before = match data {
            b"" => b"3".to_vec(),
            _ => data.to_vec(),
        };
        ensure_eq!(client.try_acquire(handle, 0)?.status, Status::SUCCESS);
        release2(&client, handle, 0, 0, data)?;
        holds(&client, handle, &before)?;
    }
    Ok(())
}

fn release_refused() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"data")?;
    let handle = mutex.handle();
    fails_with(release2(&client, handle, 0, 0, b"x"), REFUSE)?;
    client.try_acquire(handle, 0)?;
    let mut arg = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
    (arg.hKeyedMutex, arg.Key, arg.PrivateRuntimeDataSize) = (handle, 1, 4);
    fails_with(client.call(&mut arg), REFUSE)?;
    arg.pPrivateRuntimeData = UNMAPPED;
    fails_with(client.call(&mut arg), Status::ACCESS_VIOLATION)?;
    let huge = vec![1; 65537];
    fails_with(release2(&client, handle, 1, 0, &huge), REFUSE)?;
    // Still ours, and as it was.
    release2(&client, handle, 0, 3, b"")?;
    holds(&client, handle, b"data")
}

fn abandoned_meanwhile() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"before")?;
    let other = open2(&client, mutex.global(), &[]).0?;
    let page = PausedPage::new()?;
    let mut arg = D3DKMT_RELEASEKEYEDMUTEX2::zeroed();
    arg.hKeyedMutex = mutex.handle();
    arg.pPrivateRuntimeData = page.address();
    arg.PrivateRuntimeDataSize = 5;
    let caller = client.clone();
    // It owns the mutex, and stops while its data is copied.
    let owner = Blocked::new(move || {
        caller.try_acquire(arg.hKeyedMutex, 0)?;
        caller.call(&mut arg)
    })?;
    page.until_read()?;
    drop(mutex);
    page.fill(b"after")?;
    fails_with(owner.join()?, REFUSE)?;
    ensure_eq!(client.get(other.target(), [0; 16], 0)?.bytes, b"before");
    Ok(())
}

fn mixed() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"")?;
    let handle = mutex.handle();
    for round in 0..8u64 {
        let (old, new) = (round, round + 1);
        let acquired = match round % 2 {
            0 => client.try_acquire(handle, old)?,
            _ => acquire2(&client, handle, old, 8)?.0,
        };
        ensure_eq!(acquired, Acquired::with(old * 10));
        match round % 4 {
            0 | 1 => client.release(handle, new, new * 10)?,
            _ => release2(&client, handle, new, new * 10, &new.to_ne_bytes())?,
        }
    }
    let (acquired, data) = acquire2(&client, handle, 8, 8)?;
    ensure_eq!(acquired, Acquired::with(80));
    ensure_eq!(data, 8u64.to_ne_bytes());
    Ok(())
}

fn zero_key() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create_keyed_mutex(How::Global, 0, b"created")?;
    let zero = [0; 16];
    ensure_eq!(client.get(mutex.target(), zero, 0)?.bytes, b"created");
    client.set(mutex.target(), zero, 0, b"set info")?;
    holds(&client, mutex.handle(), b"set info")?;
    client.try_acquire(mutex.handle(), 0)?;
    release2(&client, mutex.handle(), 0, 0, b"released")?;
    ensure_eq!(client.get(mutex.target(), zero, 0)?.bytes, b"released");
    let missing = client.get(mutex.target(), other_key(1), 0);
    fails_with(missing, Status::NOT_FOUND)
}
