// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters come and go while processes use them and are killed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opendxg::{Access, Device, Dxg, EventFd, FenceValues, Status, SyncFlags};
use selftests::child::{Child, Gate};
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::rounds::{rounds, together, Part};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure_eq, fixture, Failure, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-96 MEM-115 100 times: made, used by processes, removed, killed in the middle",
            Duration::from_secs(240),
            again_and_again,
        )
        .slow(
            "GPU-96 RES-110 made, used and removed at the same time",
            Duration::from_secs(120),
            racing,
        )
}

/// Everything a process can have of an adapter.
struct Things {
    device: Device,
    _context: opendxg::Context,
    fence: opendxg::MonitoredFence,
    _nt: opendxg::NtHandle,
    event: EventFd,
    _point: opendxg::FencePoint,
    made: selftests::resource::OpenResource,
}

impl Things {
    fn new(device: Device) -> TestResult<Self> {
        let context = device.create_context(0)?;
        let fence = device.create_shareable_fence(0)?;
        let nt = fence.share(Access::ALL)?;
        let (event, point) = (EventFd::new()?, fence.point(9)?);
        for value in 1..=20 {
            fence.wait_async(value, &event)?;
        }
        device.open_fence(&nt, SyncFlags::empty())?;
        let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE, 3 * PAGE_SIZE]).run()?;
        Ok(Self {
            device,
            _context: context,
            fence,
            _nt: nt,
            event,
            _point: point,
            made,
        })
    }
}

/// A client that is in a wait when its adapter goes; it ends by itself, or is killed.
fn client(soft: &SoftAdapter, ready: &Gate) -> TestResult {
    let things = Things::new(soft.device()?)?;
    let mapping = things.made.lock()?;
    mapping.fill(1);
    ready.open()?;
    let list = FenceValues::new().with(&things.fence, 1000);
    things.device.wait_all(&list)?;
    ensure_eq!(things.fence.value(), u64::MAX);
    ensure_eq!(things.event.take()?, 20);
    mapping.unlock()
}

fn again_and_again() -> TestResult {
    let bystander = Things::new(fixture::device()?)?;
    for round in 0..rounds(100) {
        let soft = SoftAdapter::enabled("again")?;
        let ready = Gate::new()?;
        let clients = (0..3)
            .map(|_| Child::spawn(|| client(&soft, &ready)))
            .collect::<TestResult<Vec<Child>>>()?;
        for _ in &clients {
            ready.wait()?;
        }
        let own = Things::new(soft.device()?)?;
        for (number, child) in clients.into_iter().enumerate() {
            // One is killed before the removal, one is removed from under, one is killed about
            // then.
            match number {
                0 => child.kill()?,
                1 => {
                    if round % 2 == 0 {
                        soft.disable()?;
                    } else {
                        std::fs::remove_dir(soft.path())?;
                    }
                    child.join()?;
                }
                _ if round % 3 == 0 => drop(child),
                _ => child.join()?,
            }
        }
        ensure_eq!(own.fence.value(), u64::MAX);
        drop(own);
        ensure_eq!(bystander.fence.value(), 0);
    }
    ensure_eq!(bystander.event.wait(Some(Duration::ZERO))?, None);
    Ok(())
}

/// Whether a client of an adapter that may go ended as it may.
fn is_fine(outcome: opendxg::Result<()>) -> TestResult {
    match outcome {
        // Found by a LUID that is gone, or gone later.
        Ok(())
        | Err(opendxg::Error::Status(Status::DEVICE_REMOVED | Status::INVALID_PARAMETER)) => Ok(()),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

fn racing() -> TestResult {
    let soft = SoftAdapter::new("race")?;
    let first = Dxg::open()?.adapters()?[0].luid();
    let end = AtomicBool::new(false);
    let use_it = || -> opendxg::Result<()> {
        for adapter in Dxg::open()?.adapters()? {
            if adapter.luid() == first {
                continue;
            }
            let device = adapter.create_device()?;
            let fence = device.create_shareable_fence(0)?;
            let nt = fence.share(Access::ALL)?;
            let made = device.new_resource().linear(4096).create()?;
            // Whatever was made before the end is found by it: this returns.
            let opened = device.open_fence(&nt, SyncFlags::empty())?;
            drop(made);
            device.wait_any(&FenceValues::new().with(&opened, 1))?;
        }
        Ok(())
    };
    let client = || -> TestResult {
        while !end.load(Ordering::Relaxed) {
            is_fine(use_it())?;
        }
        Ok(())
    };
    let administrator = || -> TestResult {
        let switch = || -> TestResult {
            for _ in 0..rounds(200) {
                soft.set("enabled", "1")?;
                std::thread::sleep(Duration::from_micros(300));
                soft.disable()?;
            }
            Ok(())
        };
        let outcome = switch();
        end.store(true, Ordering::Relaxed);
        outcome
    };
    let parts: Vec<Part<'_>> = vec![
        Box::new(administrator),
        Box::new(client),
        Box::new(client),
        Box::new(client),
    ];
    together(parts)
}
