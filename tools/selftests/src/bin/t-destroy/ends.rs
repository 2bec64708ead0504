// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a device or a process ends what is left in it, and nothing that somebody else holds
//! (RES-31).

use opendxg::uapi::*;
use selftests::child::{in_child, Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{export, flags, Create, OpenGlobal, OpenNt, PAGE_SIZE};
use selftests::rounds::{rounds, Dice};
use selftests::{ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-31 the device takes everything along", with_the_device)
        .test(
            "RES-31 the process takes everything along",
            with_the_process,
        )
        .test("RES-31 an NT handle survives the device", nt_survives)
        .test(
            "RES-31 an opening in another process survives the creator",
            opening_survives,
        )
        .test("RES-31 a dma-buf survives the creator", dma_buf_survives)
        .test(
            "RES-31 a duplicate survives what it was made from",
            duplicate_survives,
        )
        .test(
            "RES-31 RES-110 the creator is killed while a peer draws",
            killed_creator,
        )
        .test("RES-31 RES-110 killed at random points", killed_anywhere)
}

/// Some of everything, left behind.
fn clutter(device: &opendxg::Device, memory: &Region) -> TestResult {
    let mixed = Create::sized(device, flags::RESOURCE, &[PAGE_SIZE, 5 * PAGE_SIZE]).run()?;
    mixed.lock_nth(1)?.leak();
    mixed.leak();
    Create::sized(device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(&[1; 64])
        .run()?
        .leak();
    Create::sized(device, 0, &[PAGE_SIZE; 4]).run()?.leak();
    let over = Create::over(device, flags::RESOURCE, memory.address(), PAGE_SIZE).run()?;
    over.leak();
    let file = selftests::fds::memfd()?;
    rustix::fs::ftruncate(&file, PAGE_SIZE)?;
    let slot = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
    Create::section(device, 0, slot, PAGE_SIZE).run()?.leak();
    Ok(())
}

fn with_the_device() -> TestResult {
    let memory = Region::private(PAGE_SIZE as usize)?;
    let watch = Watch::start()?;
    for _ in 0..5 {
        let device = fixture::device()?;
        clutter(&device, &memory)?;
        device.destroy()?;
        watch.ends_clean()?;
    }
    Ok(())
}

fn with_the_process() -> TestResult {
    let watch = Watch::start()?;
    for _ in 0..rounds(5) {
        in_child(|| {
            let memory = Region::private(PAGE_SIZE as usize)?;
            let device = fixture::device()?;
            clutter(&device, &memory)?;
            core::mem::forget((device, memory));
            Ok(())
        })?;
        watch.ends_clean()?;
    }
    Ok(())
}

fn nt_survives() -> TestResult {
    let other = fixture::device()?;
    let nt = {
        let device = fixture::device()?;
        let made = Create::sized(&device, flags::NT, &[4 * PAGE_SIZE]).run()?;
        made.lock()?.fill(3);
        let nt = made.share()?;
        made.leak();
        device.destroy()?;
        nt
    };
    let opened = OpenNt::new(&other, &nt)?.run()?;
    opened.lock()?.holds(3)?;
    drop(nt);
    opened.lock()?.fill(4);
    opened.lock()?.holds(4)?;
    opened.destroy()
}

fn opening_survives() -> TestResult {
    let told = Region::shared(PAGE_SIZE as usize)?;
    let created = Gate::new()?;
    let (opened, left) = (Gate::new()?, Gate::new()?);
    let creator = Child::spawn(|| {
        let device = fixture::device()?;
        let made = Create::sized(&device, flags::GLOBAL, &[2 * PAGE_SIZE]).run()?;
        made.lock()?.fill(9);
        told.set_word(0, made.global);
        created.open()?;
        opened.wait()?;
        // Ends without destroying anything.
        made.leak();
        left.open()
    })?;
    created.wait()?;
    let device = fixture::device()?;
    let global = told.word(0);
    let own = OpenGlobal::new(&device, global)?.run()?;
    opened.open()?;
    left.wait()?;
    creator.join()?;
    own.lock()?.holds(9)?;
    // Its global handle lives as long.
    OpenGlobal::new(&device, global)?.run()?.destroy()?;
    own.destroy()
}

fn dma_buf_survives() -> TestResult {
    let watch = Watch::start()?;
    let (here, there) = socket_pair()?;
    let creator = Child::spawn(|| {
        let device = fixture::device()?;
        let made = Create::sized(&device, flags::RESOURCE, &[3 * PAGE_SIZE]).run()?;
        made.lock()?.fill(6);
        send(&there, export(made.raw(), made.first(), 0)?)
    })?;
    drop(there);
    let file = receive(&here)?;
    creator.join()?;
    let memory = Region::of_file(&file, 3 * PAGE_SIZE as usize)?;
    memory.holds(6)?;
    memory.fill(7);
    memory.holds(7)?;
    drop(file);
    memory.holds(7)?;
    drop((memory, here));
    watch.ends_clean()
}

fn duplicate_survives() -> TestResult {
    use opendxg::raw::Argument;
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 2]).run()?;
    made.lock_nth(1)?.fill(2);
    let mut dup = opendxg_dup_local::zeroed();
    (dup.handle, dup.index) = (made.resource, 1);
    selftests::call::succeeds(&raw, &mut dup)?;
    let (dup, device_handle) = (dup.new_handle, made.device);
    made.destroy()?;
    selftests::resource::lock(&raw, device_handle, dup, PAGE_SIZE as usize)?.holds(2)?;
    ensure_eq!(
        selftests::resource::destroy(&raw, device_handle, 0, &[dup], 0),
        Ok(opendxg::Status::SUCCESS)
    );
    Ok(())
}

fn killed_creator() -> TestResult {
    let watch = Watch::start()?;
    for round in 0..rounds(10) {
        let (here, there) = socket_pair()?;
        let creator = Child::spawn(|| {
            let device = fixture::device()?;
            let made = Create::sized(&device, flags::NT, &[16 * PAGE_SIZE]).run()?;
            send(&there, made.share()?)?;
            let mapping = made.lock()?;
            for seed in 0.. {
                mapping.set_word(0, seed);
            }
            Ok(())
        })?;
        drop(there);
        let device = fixture::device()?;
        let nt = receive(&here)?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        drop(nt);
        let mapping = opened.lock()?;
        // The rest of the picture is ours.
        for at in (4..mapping.size()).step_by(4) {
            mapping.set_word(at, round);
        }
        creator.kill()?;
        for at in (4..mapping.size()).step_by(4) {
            ensure_eq!(mapping.word(at), round);
        }
        mapping.fill(round);
        mapping.holds(round)?;
        mapping.unlock()?;
        opened.destroy()?;
    }
    watch.ends_clean()
}

fn killed_anywhere() -> TestResult {
    let watch = Watch::start()?;
    let mut dice = Dice::new(31);
    for _ in 0..rounds(60) {
        let child = Child::spawn(|| {
            let memory = Region::private(PAGE_SIZE as usize)?;
            loop {
                let device = fixture::device()?;
                clutter(&device, &memory)?;
                let made = Create::sized(&device, flags::NT, &[2 * PAGE_SIZE])
                    .with_runtime(&[3; 99])
                    .run()?;
                let nt = made.share()?;
                let opened = OpenNt::new(&device, &nt)?.run()?;
                let file = export(opened.raw(), opened.first(), 0)?;
                drop((made, nt));
                opened.lock()?.fill(1);
                drop(file);
            }
        })?;
        std::thread::sleep(std::time::Duration::from_micros(u64::from(
            dice.below(20_000),
        )));
        child.kill()?;
    }
    watch.ends_clean()
}
