// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a locked allocation revokes its mappings in every process: SIGBUS, never other data
//! (RES-89).

use std::sync::atomic::{AtomicBool, Ordering};

use opendxg::Status;
use selftests::child::{Child, Gate};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{
    destroy, flags, is_revoked, locked_again, no_core, Create, OpenNt, OpenResource, PAGE_SIZE,
};
use selftests::rounds::{crowd, rounds, Dice};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-89 destroying the allocation revokes", || {
            revoked(by_list)
        })
        .test("RES-89 destroying the resource revokes", || {
            revoked(by_resource)
        })
        .test("RES-89 destroying the device revokes", by_device)
        .test(
            "RES-89 a mapping in a forked child is revoked as well",
            in_a_child,
        )
        .test(
            "RES-89 the address never shows other data",
            never_other_data,
        )
        .test(
            "RES-89 an opening of somebody else is not revoked",
            not_the_others,
        )
        .test(
            "RES-89 RES-110 destroyed while locked, locked while destroyed",
            racing,
        )
        .test(
            "RES-89 RES-110 revoked while it is read and written",
            while_used,
        )
}

fn by_list(made: OpenResource) -> TestResult {
    let (raw, device) = (fixture::raw()?, made.device);
    let (resource, list) = made.leak();
    ensure_eq!(destroy(&raw, device, 0, &list, 0), Ok(Status::SUCCESS));
    if resource != 0 {
        ensure_eq!(destroy(&raw, device, resource, &[], 0), Ok(Status::SUCCESS));
    }
    Ok(())
}

fn by_resource(made: OpenResource) -> TestResult {
    made.destroy()
}

fn revoked(end: fn(OpenResource) -> TestResult) -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(2 * PAGE_SIZE as usize)?;
    let file = selftests::fds::memfd()?;
    rustix::fs::ftruncate(&file, 2 * PAGE_SIZE)?;
    let slot = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
    for made in [
        Create::sized(&device, flags::RESOURCE, &[2 * PAGE_SIZE]).run()?,
        Create::over(&device, flags::RESOURCE, memory.address(), 2 * PAGE_SIZE).run()?,
        Create::section(&device, flags::RESOURCE, slot, 2 * PAGE_SIZE).run()?,
    ] {
        let mapping = made.lock()?;
        mapping.fill(1);
        let address = mapping.leak();
        end(made)?;
        is_revoked(address)?;
        is_revoked(address + PAGE_SIZE)?;
    }
    // What was pinned is still the process's own.
    memory.holds(1)
}

fn by_device() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    let address = made.lock()?.leak();
    made.leak();
    device.destroy()?;
    is_revoked(address)
}

fn in_a_child() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
    let mapping = made.lock()?;
    mapping.fill(9);
    let (seen, go) = (Gate::new()?, Gate::new()?);
    let address = mapping.leak();
    no_core();
    let child = Child::spawn(|| {
        // SAFETY: inherited.
        let memory = unsafe { Region::adopt(address, PAGE_SIZE as usize) };
        memory.holds(9)?;
        seen.open()?;
        go.wait()?;
        memory.get(0);
        core::mem::forget(memory);
        Ok(())
    })?;
    seen.wait()?;
    by_list(made)?;
    go.open()?;
    child.dies_of(libc::SIGBUS)
}

fn never_other_data() -> TestResult {
    let device = fixture::device()?;
    let mut addresses = Vec::new();
    for seed in 0..20 {
        let made = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
        let mapping = made.lock()?;
        ensure!(
            !addresses.contains(&mapping.address()),
            "the address of a revoked mapping was used again"
        );
        mapping.fill(seed);
        addresses.push(mapping.leak());
        by_list(made)?;
        // New memory, perhaps the same pages.
        let other = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
        other.lock()?.fill(100);
        is_revoked(addresses[seed as usize])?;
    }
    Ok(())
}

fn not_the_others() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = made.share()?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let other = opened.lock()?;
    let own = made.lock()?;
    own.fill(1);
    own.unlock()?;
    made.destroy()?;
    other.holds(1)?;
    other.fill(2);
    other.holds(2)
}

fn racing() -> TestResult {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    for round in 0..rounds(150) {
        let (_, list) = Create::sized(&device, 0, &[2 * PAGE_SIZE]).run()?.leak();
        let mut left = Vec::new();
        let addresses = std::sync::Mutex::new(&mut left);
        crowd(3, |part| {
            let raw = fixture::raw()?;
            let mut dice = Dice::new(u64::from(round) * 3 + part as u64);
            dice.dawdle();
            if part == 0 {
                ensure_eq!(
                    destroy(&raw, device.handle().0, 0, &list, 0),
                    Ok(Status::SUCCESS)
                );
                return Ok(());
            }
            for _ in 0..4 {
                match locked_again(&raw, device.handle().0, list[0])? {
                    (Status::SUCCESS, address) => {
                        addresses.lock().map_err(|_| "poisoned")?.push(address);
                    }
                    (Status::INVALID_PARAMETER, _) => {}
                    other => return Err(format!("{other:?}").into()),
                }
            }
            Ok(())
        })?;
        left.dedup();
        for address in left {
            // SAFETY: revoked, nobody uses it.
            unsafe { rustix::mm::munmap(address as usize as *mut _, 2 * PAGE_SIZE as usize) }?;
        }
    }
    device.destroy()?;
    watch.ends_clean()
}

fn while_used() -> TestResult {
    no_core();
    let watch = Watch::start()?;
    let mut dice = Dice::new(7);
    for _ in 0..rounds(30) {
        let pause = dice.below(3000);
        Child::spawn(|| {
            let device = fixture::device()?;
            let made = Create::sized(&device, flags::RESOURCE, &[16 * PAGE_SIZE]).run()?;
            let address = made.lock()?.leak();
            let began = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for part in 0..2 {
                    let began = &began;
                    scope.spawn(move || {
                        // SAFETY: mapped until it is revoked, and then this process dies.
                        let memory = unsafe { Region::adopt(address, 16 * PAGE_SIZE as usize) };
                        for turn in 0usize.. {
                            let at = turn * 64 % memory.size();
                            if part == 0 {
                                memory.set(at, 1);
                            } else {
                                let byte = memory.get(at);
                                // Only ever what this process wrote.
                                assert!(byte <= 1);
                            }
                            began.store(true, Ordering::Relaxed);
                        }
                    });
                }
                while !began.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
                std::thread::sleep(std::time::Duration::from_micros(u64::from(pause)));
                made.destroy()
            })
        })?
        .dies_of(libc::SIGBUS)?;
    }
    watch.ends_clean()
}
