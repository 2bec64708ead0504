// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which adapters the fdinfo of a process names: those that it has handles of, or of objects made
//! on them.

use std::os::fd::AsRawFd;

use opendxg::{Access, Luid, SyncFlags};
use selftests::child::in_child;
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure_eq, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-15 fdinfo names an adapter once, while the process has handles of it",
            own,
        )
        .test(
            "RES-15 fdinfo names the adapter of an object that another adapter has open",
            across,
        )
        .test("RES-15 fdinfo says that an adapter is removed", removed)
}

/// What the fdinfo of a new node says of the adapter, a text for each line. All nodes of a process
/// show the same.
fn told(luid: Luid) -> TestResult<Vec<String>> {
    let node = std::fs::File::open("/dev/dxg")?;
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", node.as_raw_fd()))?;
    let luid = format!(" luid={luid} ");
    let lines = text.lines().filter(|line| line.starts_with("dxg-adapter:"));
    let told = lines.filter_map(|line| Some(line.split_once(&luid)?.1.to_owned()));
    Ok(told.collect())
}

const NOTHING: [&str; 0] = [];

fn own() -> TestResult {
    let soft = SoftAdapter::enabled("own")?;
    let luid = soft.luid()?;
    ensure_eq!(told(luid)?, NOTHING);
    let adapter = soft.open()?;
    let running = format!("state=running {}", adapter.description()?);
    ensure_eq!(told(luid)?, [running.clone()]);
    let (again, device) = (soft.open()?, adapter.create_device()?);
    let (context, fence) = (device.create_context(0)?, device.create_fence(0)?);
    ensure_eq!(told(luid)?, [running]);
    // Another process has its own.
    in_child(|| {
        ensure_eq!(told(luid)?, NOTHING);
        Ok(())
    })?;
    fence.destroy()?;
    context.destroy()?;
    device.destroy()?;
    again.close()?;
    ensure_eq!(told(luid)?.len(), 1);
    drop(adapter);
    ensure_eq!(told(luid)?, NOTHING);
    Ok(())
}

fn across() -> TestResult {
    let soft = SoftAdapter::enabled("across")?;
    let luid = soft.luid()?;
    let crossing = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    let fence = soft.device()?.create_fence_with(0, crossing)?;
    let nt_handle = fence.share(Access::ALL)?;
    ensure_eq!(told(luid)?.len(), 1);
    drop(fence);
    // The descriptor has an fdinfo of its own.
    ensure_eq!(told(luid)?, NOTHING);
    let opened = fixture::device()?.open_fence(&nt_handle, SyncFlags::empty())?;
    ensure_eq!(told(luid)?.len(), 1);
    opened.destroy()?;
    ensure_eq!(told(luid)?, NOTHING);
    Ok(())
}

fn removed() -> TestResult {
    let soft = SoftAdapter::enabled("removed")?;
    let luid = soft.luid()?;
    let adapter = soft.open()?;
    let description = adapter.description()?;
    soft.disable()?;
    ensure_eq!(told(luid)?, [format!("state=removed {description}")]);
    drop(adapter);
    ensure_eq!(told(luid)?, NOTHING);
    Ok(())
}
