// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the engines of two processes use, while one of these dies.

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{
    Access, Allocation, Device, Dxg, GlobalHandle, GpuMap, Luid, ResidentFlags, Resource,
};
use selftests::child::{Child, Gate};
use selftests::gpu::{Gpu, PAGE, READ_WRITE};
use selftests::region::Region;
use selftests::rounds::{rounds, seed, Dice};
use selftests::time::eventually;
use selftests::{ensure, Suite, TestResult};

/// Bytes of what is shared.
const SIZE: u64 = 16 * PAGE;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-97 RES-77 who has opened shared memory is killed under work",
            Duration::from_secs(60),
            opener,
        )
        .slow(
            "GPU-97 RES-77 who has made shared memory is killed under work",
            Duration::from_secs(60),
            maker,
        )
}

/// Shared memory, in local memory or not, by which kind of handle.
fn made(device: &Device, local: bool, global: bool) -> TestResult<Resource> {
    let builder = device.new_resource();
    let builder = match local {
        true => builder.local(SIZE),
        false => builder.linear(SIZE),
    };
    let builder = match global {
        true => builder.shared(),
        false => builder.nt_shared(),
    };
    Ok(builder.create()?)
}

fn only(resource: &Resource) -> TestResult<&Allocation> {
    Ok(resource.allocations().first().ok_or("no allocation")?)
}

/// Resident, and mapped at an address.
fn shown(gpu: &Gpu, resource: &Resource) -> TestResult<u64> {
    let memory = only(resource)?;
    let map = GpuMap {
        pages: SIZE / PAGE,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let range = gpu.paging().map(Some(memory), &map)?;
    let none = ResidentFlags::empty();
    let made = gpu.paging().make_resident(&[memory], none)?;
    gpu.paging().wait(made.value()?.max(range.value))?;
    Ok(range.address)
}

/// Writes to all of it again and again, until the process is killed.
fn writes(gpu: &Gpu, address: u64, begun: &Gate) -> TestResult {
    let fill = gpu.commands(&Pm4::new().fill(address, 2, SIZE))?;
    gpu.submit(&fill)?;
    gpu.finish()?;
    begun.open()?;
    loop {
        gpu.submit(&fill)?;
        gpu.finish()?;
    }
}

/// The memory has what the dead process or this one has written, and goes on to be memory.
fn goes_on(gpu: &Gpu, address: u64) -> TestResult {
    let copy = gpu.buffer(SIZE)?;
    gpu.run(&Pm4::new().copy(copy.at(0), address, SIZE))?;
    for page in 0..SIZE / PAGE {
        ensure!([1, 2].contains(&copy.get32(page * PAGE)), "page {page}");
    }
    // What the dead one has queued may still be done, once.
    let both = Pm4::new()
        .fill(address, 3, SIZE)
        .copy(copy.at(0), address, SIZE);
    eventually("only this process writes", || {
        gpu.run(&both).is_ok() && copy.holds(0..SIZE, 3).is_ok()
    })
}

fn device(luid: Luid) -> TestResult<Device> {
    Ok(Dxg::open()?.open_adapter(luid)?.create_device()?)
}

fn opener() -> TestResult {
    let mut dice = Dice::new(seed());
    let gpu = Gpu::node(1)?;
    let luid = gpu.device().adapter().luid();
    for round in 0..rounds(4) {
        let resource = made(gpu.device(), round % 2 == 0, false)?;
        let handle = resource.share(Access::RESOURCE_ALL)?;
        let address = shown(&gpu, &resource)?;
        gpu.run(&Pm4::new().fill(address, 1, SIZE))?;
        let begun = Gate::new()?;
        let child = Child::spawn(|| {
            let other = Gpu::on(&device(luid)?, 2)?;
            let opened = other.device().open_share(&handle)?.resource;
            writes(&other, shown(&other, &opened)?, &begun)
        })?;
        begun.wait()?;
        std::thread::sleep(Duration::from_micros(dice.below(20_000).into()));
        child.kill()?;
        goes_on(&gpu, address)?;
    }
    Ok(())
}

fn maker() -> TestResult {
    let mut dice = Dice::new(seed());
    let gpu = Gpu::node(1)?;
    let luid = gpu.device().adapter().luid();
    for round in 0..rounds(4) {
        let begun = Gate::new()?;
        let number = Region::shared(PAGE as usize)?;
        let child = Child::spawn(|| {
            let own = Gpu::on(&device(luid)?, 2)?;
            let resource = made(own.device(), round % 2 == 0, true)?;
            let handle = resource.global_handle().ok_or("no number")?;
            number.set_word(0, handle.0);
            writes(&own, shown(&own, &resource)?, &begun)
        })?;
        begun.wait()?;
        let opened = gpu.device().open_resource(GlobalHandle(number.word(0)))?;
        let address = shown(&gpu, &opened)?;
        std::thread::sleep(Duration::from_micros(dice.below(20_000).into()));
        child.kill()?;
        goes_on(&gpu, address)?;
    }
    Ok(())
}
