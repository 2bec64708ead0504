// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read about a process costs what is read, and the reader can be killed.

use std::fs::read_to_string;
use std::os::fd::AsRawFd;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{EventFd, Luid};
use selftests::call::succeeds;
use selftests::child::{in_child, Child};
use selftests::sharing::{key, Client, How, Local, Shape, What};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

use crate::t_bounds::cost::{hardly_more, least, needs_counting};
use crate::t_bounds::duplicate;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-15 what is attached to an object is shown once", once)
        .test(
            "the first handles are shown, and how many more there are",
            capped,
        )
        .test(
            "as many entries are shown, and how many more there are",
            capped_entries,
        )
        .test(
            "handles cost the same to show however many wait, and the first waits are shown",
            waiters,
        )
        .test("who looks at many handles and waits can be killed", killed)
        .test(
            "RES-15 a query costs the same however many handles there are",
            queries,
        )
        .test(
            "RES-15 local references count those of the asking process",
            references,
        )
}

/// The text behind the descriptor of a new node. All nodes of a process show the same.
pub(crate) fn text() -> TestResult<String> {
    let dxg = std::fs::File::open("/dev/dxg")?;
    Ok(read_to_string(format!(
        "/proc/self/fdinfo/{}",
        dxg.as_raw_fd()
    ))?)
}

fn lines(text: &str, key: &str) -> usize {
    text.lines().filter(|line| line.starts_with(key)).count()
}

fn value(text: &str, key: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().parse().ok()
}

fn once() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Semaphore, How::Private)?;
    for number in 0..20 {
        client.set(object.target(), key(number), 0, &[7])?;
    }
    let more: Vec<Local> = (0..30)
        .map(|_| client.dup_local(What::Sync, object.handle()))
        .collect::<Result<_, _>>()?;
    let text = text()?;
    ensure_eq!(lines(&text, "dxg-info:"), 20);
    let kinds = lines(&text, "dxg-handle:") - more.len();
    // The adapter, the device and the object itself.
    ensure_eq!(kinds, 3);
    Ok(())
}

/// Opens an adapter so often.
fn open_adapters(raw: &Raw, luid: Luid, count: u32) -> TestResult {
    for _ in 0..count {
        let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
        arg.AdapterLuid = luid.into();
        succeeds(raw, &mut arg)?;
    }
    Ok(())
}

fn capped() -> TestResult {
    const SHOWN: usize = 16384;
    in_child(|| {
        let adapter = fixture::adapter()?;
        open_adapters(&fixture::raw()?, adapter.luid(), SHOWN as u32 + 99)?;
        let text = text()?;
        ensure_eq!(lines(&text, "dxg-handle:"), SHOWN);
        ensure_eq!(value(&text, "dxg-handles-more:"), Some(100));
        ensure_eq!(value(&text, "dxg-process-handles:"), Some(SHOWN + 100));
        Ok(())
    })
}

fn capped_entries() -> TestResult {
    const SHOWN: usize = 16384;
    in_child(|| {
        let client = Client::new()?;
        for _ in 0..SHOWN / 64 + 2 {
            let object = client.create(Shape::Semaphore, How::Private)?;
            for number in 0..64 {
                client.set(object.target(), key(number), 0, &[])?;
            }
            object.into_raw();
        }
        let text = text()?;
        ensure_eq!(lines(&text, "dxg-info:"), SHOWN);
        ensure_eq!(value(&text, "dxg-info-more:"), Some(2 * 64));
        Ok(())
    })
}

/// A fence with many handles, and what it costs to look at them before and after many waits were
/// added.
fn waiters() -> TestResult {
    in_child(|| {
        let raw = fixture::raw()?;
        let device = fixture::device()?;
        let fence = device.create_fence(0)?;
        for _ in 0..256 {
            duplicate(&raw, fence.handle().0)?;
        }
        let look = || text().map(drop);
        let little = least(look)?;
        let event = EventFd::new()?;
        for value in 1..=20_000 {
            fence.wait_async(value, &event)?;
        }
        let text = text()?;
        ensure!(text.contains("waiters=20000"));
        ensure_eq!(lines(&text, "dxg-wait:"), 8);
        ensure_eq!(value(&text, "dxg-waits-more:"), Some(19_992));
        let what = "256 handles without and with 20000 waits";
        hardly_more(what, little, least(look)?)
    })
}

fn killed() -> TestResult {
    in_child(|| {
        let raw = fixture::raw()?;
        let device = fixture::device()?;
        let fence = device.create_fence(0)?;
        for _ in 0..4000 {
            duplicate(&raw, fence.handle().0)?;
        }
        let event = EventFd::new()?;
        for value in 1..=30_000 {
            fence.wait_async(value, &event)?;
        }
        let dxg = std::fs::File::open("/dev/dxg")?;
        let path = format!("/proc/{}/fdinfo/{}", std::process::id(), dxg.as_raw_fd());
        let reader = Child::spawn(|| loop {
            drop(read_to_string(&path)?);
        })?;
        let reads = || {
            let call = read_to_string(format!("/proc/{}/stat", reader.pid())).unwrap_or_default();
            call.contains(") R ")
        };
        eventually("the reader runs", reads)?;
        selftests::time::a_while();
        reader.signal(libc::SIGKILL)?;
        let dead = || {
            let stat = read_to_string(format!("/proc/{}/stat", reader.pid())).unwrap_or_default();
            stat.contains(") Z ")
        };
        eventually("the reader dies", dead)?;
        reader.dies_of(libc::SIGKILL)
    })
}

fn query(raw: &Raw, handle: u32) -> TestResult<opendxg_query_object> {
    let mut arg = opendxg_query_object {
        handle: handle.into(),
        handle_type: OPENDXG_HANDLE_LOCAL,
        ..Default::default()
    };
    succeeds(raw, &mut arg)?;
    Ok(arg)
}

fn queries() -> TestResult {
    needs_counting()?;
    in_child(|| {
        let raw = fixture::raw()?;
        let device = fixture::device()?;
        let fence = device.create_fence(0)?;
        let handle = fence.handle().0;
        let ask = || (0..100).try_for_each(|_| query(&raw, handle).map(drop));
        let little = least(ask)?;
        open_adapters(&raw, fixture::adapter()?.luid(), 20_000)?;
        let what = "queries with few and with 20000 handles";
        hardly_more(what, little, least(ask)?)
    })
}

fn references() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let asked = || query(client.raw(), object.handle());
        ensure_eq!(asked()?.local_references, 1, "{shape:?}");
        let second = client.dup_local(shape.what(), object.handle())?;
        ensure_eq!(asked()?.local_references, 2, "{shape:?}");
        in_child(|| {
            let other = Client::new()?;
            let opened = other.open(shape, &fd)?;
            let asked = || query(other.raw(), opened.handle());
            ensure_eq!(asked()?.local_references, 1, "{shape:?} elsewhere");
            let again = other.open(shape, &fd)?;
            ensure_eq!(asked()?.local_references, 2, "{shape:?} elsewhere");
            drop(again);
            ensure_eq!(asked()?.local_references, 1, "{shape:?} elsewhere");
            Ok(())
        })?;
        ensure_eq!(asked()?.local_references, 2, "{shape:?}");
        second.destroy()?;
        ensure_eq!(asked()?.local_references, 1, "{shape:?}");
    }
    Ok(())
}
