// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a client's objects belongs to the client's memory cgroup.

use std::os::fd::AsRawFd;

use opendxg::{Device, Error, EventFd, Status, SyncFlags, SyncKind};
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use selftests::cgroup::Group;
use selftests::child::in_child;
use selftests::region::Region;
use selftests::resource::{export, Create, PAGE_SIZE};
use selftests::rounds::is_brief;
use selftests::sharing::{key, Client, How, Shape};
use selftests::test_device::{direction, TestDevice};
use selftests::time::eventually;
use selftests::{ensure, fixture, module, skip, Suite, TestResult};

/// How many of each are made.
pub(crate) const MANY: u64 = 3000;

/// More than the pages of files that a dead process leaves in its group, and less than what is
/// measured.
const FILES: u64 = 450 << 10;

/// Makes many of something in a child in a cgroup of its own, and demands that each is charged at
/// least with `bytes`, and that it is given back when the child is gone.
pub(crate) fn charged(
    name: &str,
    bytes: u64,
    make: impl Fn(&Device, u64) -> TestResult,
) -> TestResult {
    for limit in ["max_handles", "max_waiters"] {
        if module::number(limit)? < 2 * MANY as usize {
            skip!("{limit} is too small to measure anything");
        }
    }
    let group = Group::new(name)?;
    in_child(|| {
        group.enter()?;
        let device = fixture::device()?;
        // The process itself is charged too: before and after are taken in it.
        let before = group.charged()?;
        for number in 0..MANY {
            make(&device, number)?;
        }
        let grown = group.charged()?.saturating_sub(before);
        println!("# {name}: {} bytes each", grown / MANY);
        ensure!(
            grown >= MANY * bytes,
            "only {} bytes each are charged",
            grown / MANY
        );
        Ok(())
    })?;
    // What was leaked would be as much as the most that was ever charged. A dead process leaves
    // some pages of files, and an adapter keeps room for queues.
    let most = (group.peak()? / 2).max(FILES);
    let mut left = 0;
    eventually("what a dead process had is given back", || {
        left = group.charged().unwrap_or(u64::MAX);
        left < most
    })
    .map_err(|error| format!("{error}: {left} bytes are charged").into())
}

fn create(kind: SyncKind<'_>) -> impl Fn(&Device, u64) -> TestResult + '_ {
    move |device, _| {
        let object = device.create_sync_object(kind, SyncFlags::SHARED)?;
        object.into_raw();
        Ok(())
    }
}

/// A table of all pages, for a device that is given a dma-buf, is charged to who gives it. Other
/// memory is not: it is there already.
fn device_mappings() -> TestResult {
    const PAGES: usize = 40_000;
    let size = PAGES * PAGE_SIZE as usize;
    let test = TestDevice::open()?;
    let file = memfd_create("pages", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, size as u64)?;
    let device = fixture::device()?;
    let made = Create::section(&device, 0, file.as_raw_fd() as u64, size as u64).run()?;
    {
        // From the end to the beginning: pages next to each other do not follow each other.
        let memory = Region::of_file(&file, size)?;
        for page in (0..PAGES).rev() {
            memory.set(page * PAGE_SIZE as usize, 1);
        }
    }
    let buffer = export(made.raw(), made.first(), 0)?;
    let group = Group::new("device-mappings")?;
    in_child(|| {
        group.enter()?;
        test.import(&buffer, direction::BOTH)?;
        let before = group.charged()?;
        test.import(&buffer, direction::BOTH)?;
        let more = group.peak()?.saturating_sub(before);
        println!("# {more} bytes for {PAGES} pages");
        // Charges come in steps of some pages for each processor.
        ensure!(more > 20 * PAGES as u64, "{more} bytes");
        Ok(())
    })
}

fn limited(name: &str, make: impl Fn(&Device, u64) -> TestResult) -> TestResult {
    let group = Group::new(name)?;
    group.set("memory.max", "16777216")?;
    // Without swap there is no such file.
    let _ = group.set("memory.swap.max", "0");
    let outcome = in_child(|| {
        group.enter()?;
        let device = fixture::device()?;
        for number in 0..1_000_000 {
            if make(&device, number).is_err() {
                return Ok(());
            }
        }
        Err("a million objects in 16 MiB".into())
    });
    let kills = group.kills()?;
    println!("# {name}: {kills} killed, {outcome:?}");
    // Killed inside the group, or refused: both are fine, unlimited growth is not.
    ensure!(outcome.is_ok() || kills > 0, "{outcome:?}");
    // Everybody else is as well as before.
    let fence = fixture::device()?.create_fence(0)?;
    fence.signal(1)?;
    fence.wait(1)?;
    Ok(())
}

/// The client of a child, made when it is first asked for.
fn client(slot: &std::cell::OnceCell<Client>) -> TestResult<&Client> {
    if slot.get().is_none() {
        let _ = slot.set(Client::new()?);
    }
    slot.get().ok_or_else(|| "no client".into())
}

/// Refused for want of memory or of a place in a table: the end of a flood.
fn flood_of_pages(device: &Device, number: u64) -> TestResult {
    match device.create_shareable_fence(number) {
        Ok(fence) => {
            fence.into_raw();
            Ok(())
        }
        Err(Error::Status(Status::NO_MEMORY)) => Err("refused".into()),
        // The test fails, because nothing else may end the flood.
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn tests(suite: Suite) -> Suite {
    let mutex = SyncKind::Mutex {
        initially_owned: false,
    };
    let suite = suite.test(
        "RES-106 a cgroup at its limit floods nobody but itself",
        || limited("flood", flood_of_pages),
    );
    // Numbers of bytes.
    if is_brief() {
        return suite;
    }
    suite
        .test(
            "RES-106 mutexes with their handles are charged",
            move || charged("mutexes", 150, create(mutex)),
        )
        .test(
            "L RES-106 where a device has a dma-buf mapped is charged",
            device_mappings,
        )
        .test("RES-106 private fences are charged", || {
            charged("fences", 150, |device, number| {
                device.create_fence(number)?.into_raw();
                Ok(())
            })
        })
        .test(
            "RES-106 shareable fences are charged with their page",
            || {
                charged("pages", 4096, |device, number| {
                    device.create_shareable_fence(number)?.into_raw();
                    Ok(())
                })
            },
        )
        .test("RES-106 pending waits are charged", || {
            let event = EventFd::new()?;
            let slot = std::cell::OnceCell::new();
            charged("waits", 150, |device, number| {
                if slot.get().is_none() {
                    let _ = slot.set(device.create_fence(0)?);
                }
                let fence = slot.get().ok_or("no fence")?;
                fence.wait_async(number + 1, &event)?;
                Ok(())
            })
        })
        .test(
            "RES-106 resources are charged with what describes them",
            || {
                let slot = std::cell::OnceCell::new();
                charged("resources", 300, |_, _| {
                    let client = client(&slot)?;
                    client
                        .create_resource(How::Private, 1, &[7; 100])?
                        .into_raw();
                    Ok(())
                })
            },
        )
        .test("RES-106 keyed mutexes are charged with their data", || {
            let slot = std::cell::OnceCell::new();
            charged("keyed mutexes", 500, |_, _| {
                let client = client(&slot)?;
                let mutex = client.create_keyed_mutex(How::Nt, 0, &[7; 300])?;
                mutex.into_raw();
                Ok(())
            })
        })
        .test("RES-106 entries of stores are charged", || {
            let slot = std::cell::OnceCell::new();
            charged("entries", 1000, |_, _| {
                let client = client(&slot)?;
                let object = client.create(Shape::Semaphore, How::Private)?;
                client.set(object.target(), key(1), 0, &[7; 1000])?;
                object.into_raw();
                Ok(())
            })
        })
        .test(
            "RES-106 pages of resources are charged when they are used",
            || {
                let slot = std::cell::OnceCell::new();
                charged("used pages", 4096, |_, _| {
                    let client = client(&slot)?;
                    let resource = client.create(Shape::Resource, How::Private)?;
                    client.poke(resource.allocations()[0], 1)?;
                    resource.into_raw();
                    Ok(())
                })
            },
        )
}
