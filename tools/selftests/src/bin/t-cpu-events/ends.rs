// SPDX-License-Identifier: MIT OR Apache-2.0
//! How CPU events end (cpu-events.md section 6).

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use opendxg::pm4::Pm4;
use opendxg::raw::{Argument, Raw};
use opendxg::soft_gpu::EventClass;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::call::{refused, succeeds};
use selftests::child::{in_child, Child, Gate};
use selftests::gpu::Gpu;
use selftests::rounds::rounds;
use selftests::time::a_while;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::{soft_enabled, Told};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "CPU-31 CPU-32 nothing signals it after its destroy",
            destroyed,
        )
        .slow(
            "CPU-31 destroy against signal",
            std::time::Duration::from_secs(120),
            races,
        )
        .test("CPU-30 the device is destroyed first", device_first)
        .slow(
            "CPU-12 CPU-30 destroy of the device against the usage escape",
            std::time::Duration::from_secs(120),
            device_races,
        )
        .test("CPU-33 a process that is killed", killed)
        .test("CPU-34 an adapter that is removed", removed)
        .slow(
            "CPU-34 CPU-31 removal of the adapter against signal",
            std::time::Duration::from_secs(120),
            removal_races,
        )
        .test("CPU-35 a fork shares the eventfd, not the object", forked)
        .test("CPU-3 the descriptor is closed", closed)
}

fn destroyed() -> TestResult {
    let gpu = Gpu::new()?;
    let fd = EventFd::new()?;
    let event = gpu.device().create_cpu_event(&fd)?;
    let name = event.set_usage(EventClass::Trap.usage(0))?;
    let second = Told::new(&gpu, EventClass::Trap.usage(0))?;
    event.destroy()?;
    gpu.run(&Pm4::new().trap(1, 1))?;
    second.wait()?;
    ensure!(!matches!(fd.take(), Ok(1..)), "signalled after its destroy");
    fails_with(second.event.take_records(name), Status::INVALID_PARAMETER)
}

/// One thread traps all the time, others make events and destroy them.
fn races() -> TestResult {
    let gpu = Gpu::new()?;
    let is_over = AtomicBool::new(false);
    let trap = gpu.commands(&Pm4::new().trap(1, 1).trap(1, 2).trap(1, 3))?;
    std::thread::scope(|scope| {
        let signaller = scope.spawn(|| -> TestResult {
            while !is_over.load(Ordering::Relaxed) {
                gpu.submit(&trap)?;
                gpu.finish()?;
            }
            Ok(())
        });
        let makers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> TestResult<u64> {
                    let mut heard = 0;
                    for _ in 0..rounds(1000) {
                        let fd = EventFd::new()?;
                        let event = gpu.device().create_cpu_event(&fd)?;
                        event.set_usage(EventClass::Any.usage(0))?;
                        std::thread::yield_now();
                        event.destroy()?;
                        let count = fd.take().unwrap_or(0);
                        heard += count;
                        std::thread::yield_now();
                        let late = fd.take().unwrap_or(0);
                        ensure_eq!(late, 0, "signalled after its destroy");
                    }
                    Ok(heard)
                })
            })
            .collect();
        let mut heard = 0;
        let made = makers.into_iter().try_for_each(|maker| {
            heard += maker.join().map_err(|_| "a panic")??;
            TestResult::Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        signaller.join().map_err(|_| "a panic")??;
        println!("# {heard} signals were heard");
        made
    })
}

/// A device of this adapter and an event of it, by raw calls: their handles.
fn raw_event(raw: &Raw, adapter: u32, fd: &EventFd) -> TestResult<(u32, u32)> {
    let mut create = D3DKMT_CREATEDEVICE::zeroed();
    create.__bindgen_anon_1.hAdapter = adapter;
    succeeds(raw, &mut create)?;
    let mut event = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    event.hDevice = create.hDevice;
    event.Info.Type = D3DDDI_CPU_NOTIFICATION;
    event.Info.Flags = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
    event.Info.__bindgen_anon_1.CPUNotification.Event = fd.as_fd().as_raw_fd() as u64;
    succeeds(raw, &mut event)?;
    Ok((create.hDevice, event.hSyncObject))
}

/// Says what an event is for, until there is no such event any more. How often it could.
fn escape_until_gone(raw: &Raw, adapter: u32, event: u32) -> TestResult<u64> {
    let mut count = 0;
    loop {
        let mut words = [2, event, 0, 0, EventClass::Any as u32, 0, 0, 0, 0, 0, 0, 0];
        let mut arg = D3DKMT_ESCAPE::zeroed();
        arg.hAdapter = adapter;
        arg.Flags = D3DDDI_ESCAPEFLAGS_DriverKnownEscape;
        arg.pPrivateDriverData = words.as_mut_ptr() as u64;
        arg.PrivateDriverDataSize = size_of_val(&words) as u32;
        match raw.exec(&mut arg)? {
            Status::SUCCESS => count += 1,
            // The handle is gone, or the event is while the call is at it.
            Status::INVALID_PARAMETER | Status::DEVICE_REMOVED => return Ok(count),
            other => return Err(format!("the escape gave {other}").into()),
        }
    }
}

fn device_races() -> TestResult {
    let (raw, adapter) = (fixture::raw()?, fixture::adapter()?);
    let handle = adapter.handle().0;
    let mut escapes = 0;
    for _ in 0..rounds(200) {
        let fd = EventFd::new()?;
        let (device, event) = raw_event(&raw, handle, &fd)?;
        escapes += std::thread::scope(|scope| -> TestResult<u64> {
            let client = scope.spawn(|| escape_until_gone(&raw, handle, event));
            std::thread::yield_now();
            succeeds(&raw, &mut D3DKMT_DESTROYDEVICE { hDevice: device })?;
            client.join().map_err(|_| "a panic")?
        })?;
        ensure!(!matches!(fd.take(), Ok(1..)));
    }
    println!("# {escapes} escapes");
    Ok(())
}

fn device_first() -> TestResult {
    let raw = fixture::raw()?;
    let adapter = fixture::adapter()?;
    let fd = EventFd::new()?;
    let (device, event) = raw_event(&raw, adapter.handle().0, &fd)?;
    succeeds(&raw, &mut D3DKMT_DESTROYDEVICE { hDevice: device })?;
    // Its handle went with the device.
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT { hSyncObject: event };
    refused(&raw, &mut destroy, Status::INVALID_PARAMETER)?;
    ensure!(!matches!(fd.take(), Ok(1..)));
    Ok(())
}

fn killed() -> TestResult {
    for _ in 0..4 {
        let running = Gate::new()?;
        let child = Child::spawn(|| {
            let gpu = Gpu::new()?;
            let told = Told::new(&gpu, EventClass::Any.usage(0))?;
            let trap = gpu.commands(&Pm4::new().trap(1, 1))?;
            running.open()?;
            loop {
                gpu.submit(&trap)?;
                told.wait()?;
            }
        })?;
        running.wait_for_child(&child)?;
        child.kill()?;
    }
    Ok(())
}

fn removed() -> TestResult {
    let soft = soft_enabled("cpu-events-removed")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    // More than one DpcRoutine gives.
    let events: TestResult<Vec<Told>> = (0..300)
        .map(|index| {
            let class = [EventClass::Any, EventClass::Reset][index % 2];
            Told::new(&gpu, class.usage(0))
        })
        .collect();
    let faults = Told::new(&gpu, EventClass::PageFault.usage(0))?;
    soft.disable()?;
    // Those who are told ask for the reason, and that is it.
    let gone = Status::DEVICE_REMOVED;
    for told in events?.into_iter() {
        ensure_eq!(told.fd.take()?, 1);
        fails_with(told.event.set_usage([0; 8]), gone)?;
        fails_with(told.event.take_records(told.name), gone)?;
        told.event.destroy()?;
    }
    faults.is_silent()?;
    drop((gpu, adapter));
    soft.remove()
}

/// It goes while a thread traps: the last thing that the event tells is the removal.
fn removal_races() -> TestResult {
    for _ in 0..rounds(20) {
        let soft = soft_enabled("cpu-events-races")?;
        let adapter = soft.open()?;
        let gpu = Gpu::on(&adapter.create_device()?, 0)?;
        let told = Told::new(&gpu, EventClass::Any.usage(0))?;
        let removed = Told::new(&gpu, EventClass::Reset.usage(0))?;
        let trap = gpu.commands(&Pm4::new().trap(1, 1))?;
        std::thread::scope(|scope| -> TestResult {
            let signaller = scope.spawn(|| while gpu.submit(&trap).is_ok() {});
            told.wait()?;
            soft.disable()?;
            signaller.join().map_err(|_| "a panic".into())
        })?;
        ensure_eq!(removed.fd.take()?, 1);
        told.fd.take()?;
        for told in [told, removed] {
            fails_with(told.event.set_usage([0; 8]), Status::DEVICE_REMOVED)?;
            let fd = told.fd;
            told.event.destroy()?;
            ensure!(!matches!(fd.take(), Ok(1..)), "signalled after its end");
        }
        drop((trap, gpu, adapter));
        soft.remove()?;
    }
    Ok(())
}

fn forked() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(0))?;
    in_child(|| {
        ensure!(told.event.set_usage([0; 8]).is_err());
        Ok(())
    })?;
    gpu.run(&Pm4::new().trap(1, 1))?;
    ensure_eq!(told.wait()?, 1);
    Ok(())
}

fn closed() -> TestResult {
    let gpu = Gpu::new()?;
    let fd = EventFd::new()?;
    let event = gpu.device().create_cpu_event(&fd)?;
    let name = event.set_usage(EventClass::Any.usage(0))?;
    drop(fd);
    gpu.run(&Pm4::new().trap(1, 1))?;
    a_while();
    ensure_eq!(event.take_records(name)?.0.len(), 1);
    event.destroy()?;
    Ok(())
}
