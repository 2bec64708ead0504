// SPDX-License-Identifier: MIT OR Apache-2.0
//! What exists is counted on its adapter, and nowhere else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use opendxg::{
    Access, Counters, Device, Dxg, EventFd, Guid, InfoItem, Luid, Object, SyncFlags, WatchEvents,
};
use selftests::child::in_child;
use selftests::leak::Watch;
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::sharing::{Client, How, Shape};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::user::{become_user, drop_capabilities, USER};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "what exists is counted on its adapter, other adapters do not move",
            apart,
        )
        .test("the totals are the sums", sums)
        .test(
            "an object of one adapter counts there, wherever it is open",
            across,
        )
        .test("the counters of a removed adapter reach zero", removed)
        .test(
            "RES-107 root reads them without power over processes, others do not",
            readers,
        )
}

type Counts = BTreeMap<String, u64>;

/// The counts that are not 0.
fn counts(luid: Luid) -> TestResult<Counts> {
    let all = Counters::of_adapter(luid)?;
    ensure_eq!(all.len(), 10, "{all:?}");
    Ok(all.into_iter().filter(|(_, count)| *count != 0).collect())
}

fn these(expected: &[(&str, u64)]) -> Counts {
    let pairs = expected.iter();
    pairs
        .map(|(name, count)| ((*name).into(), *count))
        .collect()
}

fn file(luid: Luid) -> PathBuf {
    Path::new(Counters::ADAPTERS).join(luid.to_string())
}

/// Makes one of everything on `device`, looks, and destroys it.
fn with_everything(device: &Device, look: impl FnOnce() -> TestResult) -> TestResult {
    let context = device.create_context(0)?;
    let fence = device.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    fence.set_info(&[InfoItem::new(Guid::new(1, 2, 3, 4), 0, b"value")])?;
    let weak = fence.weak()?;
    let event = EventFd::new()?;
    let watch = fence.watch(WatchEvents::DESTROY, 0, &event)?;
    let made = Create::sized(device, flags::RESOURCE, &[2 * PAGE_SIZE, PAGE_SIZE]).run()?;
    let mapping = made.lock()?;
    let buffer = selftests::resource::export(made.raw(), made.first(), 0)?;
    look()?;
    drop((mapping, buffer, weak, watch, nt));
    made.destroy()?;
    context.destroy()?;
    Ok(fence.destroy()?)
}

/// What [`with_everything`] has made, with the device and the adapter.
fn everything() -> Counts {
    these(&[
        // The device, the context, the fence, the resource and its two allocations.
        ("objects", 6),
        // These, and the adapter.
        ("handles", 7),
        ("shares", 1),
        ("bytes", 3 * PAGE_SIZE),
        ("dmabufs", 1),
        ("cpu-mappings", 1),
        ("notices", 2),
        ("values", 1),
    ])
}

fn apart() -> TestResult {
    let (one, two) = (SoftAdapter::enabled("one")?, SoftAdapter::enabled("two")?);
    let (first, second) = (one.luid()?, two.luid()?);
    ensure_eq!((counts(first)?, counts(second)?), Default::default());
    let other = one.device()?;
    let kept = other.create_fence(0)?;
    let idle = these(&[("objects", 2), ("handles", 3)]);
    ensure_eq!(counts(first)?, idle);
    let own = counts(fixture::adapter()?.luid())?;
    {
        let device = two.device()?;
        with_everything(&device, || {
            ensure_eq!(counts(second)?, everything());
            ensure_eq!(counts(first)?, idle);
            ensure_eq!(counts(fixture::adapter()?.luid())?, own);
            Ok(())
        })?;
        ensure_eq!(counts(second)?, these(&[("objects", 1), ("handles", 2)]));
    }
    ensure_eq!(counts(second)?, Counts::new());
    drop((kept, other));
    ensure_eq!(counts(first)?, Counts::new());
    Ok(())
}

fn counts_at(path: &Path) -> TestResult<Counts> {
    let text = fs::read_to_string(path)?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, count)| {
            let count = count
                .trim()
                .parse()
                .map_err(|_| format!("{count}: no number"))?;
            Ok((name.into(), count))
        })
        .collect()
}

fn sums() -> TestResult {
    let (one, two) = (SoftAdapter::enabled("one")?, SoftAdapter::enabled("two")?);
    let (device, other) = (one.device()?, two.device()?);
    let client = Client::new()?;
    let totals = || counts_at(Path::new(Counters::TOTALS));
    with_everything(&device, || {
        with_everything(&other, || {
            let before = totals()?;
            // It is of no adapter.
            let mutex = client.create(Shape::KeyedMutex, How::Nt)?;
            let mut sum = these(&[("objects", 1), ("handles", 1)]);
            for entry in fs::read_dir(Counters::ADAPTERS)? {
                for (name, count) in counts_at(&entry?.path())? {
                    *sum.entry(name).or_default() += count;
                }
            }
            for (name, total) in totals()? {
                if !["processes", "waiters", "pages"].contains(&name.as_str()) {
                    ensure_eq!(sum.get(&name).copied(), Some(total), "{name}");
                }
            }
            mutex.destroy()?;
            ensure_eq!(totals()?, before);
            Ok(())
        })
    })
}

fn across() -> TestResult {
    let (one, two) = (SoftAdapter::enabled("one")?, SoftAdapter::enabled("two")?);
    let (maker, user) = (one.device()?, two.device()?);
    let crossing = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    let fence = maker.create_fence_with(0, crossing)?;
    let open = user.open_fence(fence.share(Access::ALL)?, SyncFlags::empty())?;
    let idle = these(&[("objects", 1), ("handles", 2)]);
    ensure_eq!(counts(two.luid()?)?, idle);
    ensure_eq!(
        counts(one.luid()?)?,
        these(&[("objects", 2), ("handles", 4)])
    );
    fence.destroy()?;
    ensure_eq!(
        counts(one.luid()?)?,
        these(&[("objects", 2), ("handles", 3)])
    );
    open.destroy()?;
    ensure_eq!(counts(one.luid()?)?, idle);
    ensure_eq!(counts(two.luid()?)?, idle);
    Ok(())
}

fn removed() -> TestResult {
    let watch = Watch::start()?;
    let soft = SoftAdapter::enabled("removed")?;
    let luid = soft.luid()?;
    let device = soft.device()?;
    let adapter = soft.open()?;
    with_everything(&device, || {
        soft.disable()?;
        let mut left = everything();
        left.insert("handles".into(), 8);
        // The mapping is revoked; it ends with its handle.
        ensure_eq!(counts(luid)?, left);
        Ok(())
    })?;
    drop(device);
    ensure_eq!(counts(luid)?, these(&[("handles", 1)]));
    ensure!(file(luid).exists());
    drop(adapter);
    // Nothing is left that could be counted.
    eventually("the file is gone", || !file(luid).exists())?;
    drop(soft);
    watch.unchanged()
}

fn readers() -> TestResult {
    let soft = SoftAdapter::enabled("readers")?;
    let device = soft.device()?;
    let luid = soft.luid()?;
    let _kept = device.create_fence(0)?;
    in_child(move || {
        drop_capabilities()?;
        let expected = these(&[("objects", 2), ("handles", 3)]);
        ensure_eq!(counts(luid)?, expected);
        Ok(())
    })?;
    in_child(move || {
        become_user(USER)?;
        ensure!(Counters::of_adapter(luid).is_err());
        ensure!(Dxg::open()?.counters().is_err());
        Ok(())
    })
}
