// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking for the sizes and opening in one call: what OpenResource and OpenResourceFromNtHandle
//! return, with any room that is large enough (RES-47 to RES-51).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::{code, Argument};
use opendxg::uapi::*;
use opendxg::{Access, Device, Dxg, Status};
use rustix::io::Errno;
use selftests::call::refused;
use selftests::fds::closed_number;
use selftests::leak::Watch;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::poison::bytes;
use selftests::resource::{
    flags, query_nt, Create, OpenAtOnce, OpenResource, ALL_ACCESS, PAGE_SIZE, READ_ACCESS,
    UNTOUCHED,
};
use selftests::sharing::{share_raw, Client, Local, What};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const CODE: u32 = code(opendxg_open_resource::NR, opendxg_open_resource::SIZE);

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-49 at once: every output", outputs)
        .test("RES-48 at once: room for more than there is", larger)
        .test(
            "RES-47 at once: too little room of each kind, and the sizes are told",
            too_little,
        )
        .test("RES-47 RES-48 at once: no room at all, then enough", asked)
        .test("RES-51 at once: a triple, and data for its mutex", triple)
        .test(
            "RES-3 RES-51 at once: an answer that cannot be written",
            unwritable,
        )
        .test("RES-35 at once: an opening without WRITE", read_only)
        .test("RES-50 at once: handles that are none", no_handles)
        .test(
            "RES-50 at once: flags, types, room without an address",
            refusals,
        )
        .test(
            "RES-50 RES-3 at once: memory that cannot be written opens nothing",
            faults,
        )
        .test("RES-54 RES-68 runtime data of every size", every_size)
}

fn sample(device: &Device, bits: u32) -> TestResult<OpenResource> {
    let runtime: Vec<u8> = (1..=0x58).collect();
    Create::sized(device, bits, &[PAGE_SIZE, 2 * PAGE_SIZE])
        .with_runtime(&runtime)
        .run()
}

/// Runs a test with an opening by global handle, and with one by NT handle.
fn both(test: impl Fn(&OpenResource, OpenAtOnce) -> TestResult) -> TestResult {
    let device = fixture::device()?;
    let named = sample(&device, flags::GLOBAL)?;
    test(&named, OpenAtOnce::global(&device, named.global)?)?;
    let made = sample(&device, flags::NT)?;
    let nt = made.share()?;
    test(&made, OpenAtOnce::nt(&device, &nt)?)
}

fn outputs() -> TestResult {
    both(|made, mut open| {
        let (shape, asked) = (open.shape(), open.arg);
        (open.arg.resource, open.arg.keyed_mutex) = (5, 6);
        open.arg.sync_object = 7;
        let before = fixture::next_handle()?;
        let opened = open.run()?;
        opened.is_in_order()?;
        ensure_eq!(opened.resource, before);
        ensure_eq!(open.shape(), shape);
        ensure_eq!((open.arg.keyed_mutex, open.arg.sync_object), (0, 0));
        ensure_eq!(
            (open.arg.handle, open.arg.allocations),
            (asked.handle, asked.allocations)
        );
        let runtime: Vec<u8> = (1..=0x58).collect();
        ensure_eq!(open.buffers.runtime, runtime);
        for index in 0..2 {
            let data = open.buffers.driver_data(index)?;
            ensure_eq!(data.len(), size_of::<opendxg_allocation_data>());
        }
        made.lock_nth(1)?.fill(4);
        opened.lock_nth(1)?.holds(4)?;
        ensure_eq!(opened.lock_nth(1)?.size(), 0x2000);
        opened.destroy()?;
        made.lock_nth(1)?.holds(4)
    })
}

fn larger() -> TestResult {
    both(|_, mut open| {
        let shape = open.shape();
        let mut infos = vec![D3DDDI_OPENALLOCATIONINFO2::default(); 5];
        let (mut runtime, mut driver) = (vec![UNTOUCHED; 1000], vec![UNTOUCHED; 1000]);
        let mut total = vec![0u64; 1000];
        (open.arg.allocations, open.arg.allocation_count) = (infos.as_mut_ptr() as u64, 5);
        (open.arg.runtime_data, open.arg.runtime_data_size) = (runtime.as_mut_ptr() as u64, 1000);
        (open.arg.driver_data, open.arg.driver_data_size) = (driver.as_mut_ptr() as u64, 1000);
        open.arg.total_driver_data = total.as_mut_ptr() as u64;
        open.arg.total_driver_data_size = 8000;
        (open.buffers.infos, open.buffers.total) = (infos, total);
        open.run()?.destroy()?;
        ensure_eq!(open.shape(), shape, "what there is");
        ensure!(runtime[0x58..].iter().all(|byte| *byte == UNTOUCHED));
        ensure_eq!(runtime[0x57], 0x58);
        ensure_eq!(driver, [UNTOUCHED; 1000]);
        Ok(())
    })
}

fn too_little() -> TestResult {
    let spoil: [fn(&mut opendxg_open_resource); 6] = [
        |arg| arg.allocation_count = 1,
        |arg| (arg.allocation_count, arg.allocations) = (0, 0),
        |arg| arg.runtime_data_size -= 1,
        |arg| (arg.runtime_data_size, arg.runtime_data) = (0, 0),
        |arg| arg.total_driver_data_size -= 1,
        |arg| (arg.total_driver_data_size, arg.total_driver_data) = (0, 0),
    ];
    both(|_, mut open| {
        let (shape, good) = (open.shape(), open.arg);
        let watch = Watch::start()?;
        let before = fixture::next_handle()?;
        for spoil in spoil {
            open.arg = good;
            spoil(&mut open.arg);
            open.arg.resource = 5;
            short(&mut open)?;
            ensure_eq!(open.shape(), shape, "what there is");
            ensure_eq!(open.arg.resource, 5);
        }
        ensure_eq!(fixture::next_handle()?, before + 0x40);
        watch.unchanged()?;
        open.arg = good;
        open.run()?.destroy()
    })
}

/// Has to be refused for too little room.
#[track_caller]
fn short(open: &mut OpenAtOnce) -> TestResult {
    let status = fixture::raw()?.exec(&mut open.arg)?;
    ensure_eq!(status, Status::BUFFER_TOO_SMALL);
    ensure!(open.buffers.untouched(), "a refused opening wrote");
    Ok(())
}

fn asked() -> TestResult {
    both(|_, mut open| {
        let good = open.arg;
        open.arg = opendxg_open_resource {
            device: good.device,
            handle_type: good.handle_type,
            handle: good.handle,
            ..opendxg_open_resource::zeroed()
        };
        short(&mut open)?;
        open.arg = opendxg_open_resource {
            allocation_count: open.arg.allocation_count,
            runtime_data_size: open.arg.runtime_data_size,
            driver_data_size: open.arg.driver_data_size,
            total_driver_data_size: open.arg.total_driver_data_size,
            ..good
        };
        open.run()?.destroy()
    })
}

fn triple() -> TestResult {
    const DATA: [u8; 20] = [0x66; 20];
    let client = Client::new()?;
    let members = client.triple()?;
    let handles = members.each_ref().map(Local::handle);
    let nt = client.share_with(&handles, None, ALL_ACCESS)?.0;
    let shape = query_nt(client.device(), &nt)?;
    let mut open = OpenAtOnce::nt(client.device(), &nt)?;
    ensure_eq!(open.shape(), shape);
    (open.arg.keyed_mutex_data, open.arg.keyed_mutex_data_size) = (DATA.as_ptr() as u64, 20);
    // The mutex gets nothing where nothing is opened.
    let room = open.arg.allocation_count;
    (open.arg.allocation_count, open.arg.allocations) = (0, 0);
    short(&mut open)?;
    ensure_eq!(open.arg.allocation_count, room);
    let mutex = &members[1];
    fails_with(client.get(mutex.target(), [0; 16], 0), Status::NOT_FOUND)?;
    open.arg.allocations = open.buffers.infos.as_mut_ptr() as u64;
    let opened = open.run()?;
    ensure!(open.arg.keyed_mutex != 0 && open.arg.sync_object != 0);
    ensure_eq!(client.get(mutex.target(), [0; 16], 0)?.bytes, DATA);
    client.destroy(What::KeyedMutex, open.arg.keyed_mutex)?;
    client.destroy(What::Sync, open.arg.sync_object)?;
    opened.destroy()
}

fn unwritable() -> TestResult {
    both(|_, mut open| {
        let watch = Watch::start()?;
        let before = fixture::next_handle()?;
        let page = Page::beginning_with(bytes(&open.arg))?.read_only()?;
        let answer = fixture::raw()?.ioctl(CODE, page.address());
        ensure_eq!(answer, Err(Errno::FAULT));
        ensure_eq!(fixture::next_handle()?, before + 0x40);
        watch.unchanged()?;
        open.run()?.destroy()
    })
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::NT)?;
    let nt = share_raw(made.raw(), &[made.resource], READ_ACCESS, 0)?;
    let opened = OpenAtOnce::nt(&device, &nt)?.run()?;
    let reader = opened.lock_nth(0)?;
    made.lock_nth(0)?.fill(3);
    reader.holds(3)?;
    drop(reader);
    opened.destroy()
}

fn no_handles() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::GLOBAL)?;
    let shared = sample(&device, flags::NT)?;
    let nt = shared.share()?;
    let fence = device.create_shareable_fence(0)?.share(Access::ALL)?;
    let (node, file) = (Dxg::open()?, selftests::fds::memfd()?);
    let zeroed = &mut opendxg_open_resource::zeroed();
    refused(&fixture::raw()?, zeroed, IP)?;
    let watch = Watch::start()?;
    let mut open = OpenAtOnce::global(&device, made.global)?;
    for number in [0, u32::MAX, device.adapter().handle().0, made.resource] {
        open.arg.device = number;
        open.is_refused(IP)?;
    }
    open.arg.device = device.handle().0;
    let global = u64::from(made.global);
    for number in [
        0,
        global | (1 << 32),
        global ^ 0x40,
        made.resource.into(),
        nt.as_raw_fd() as u64,
    ] {
        open.arg.handle = number;
        open.is_refused(IP)
            .map_err(|error| format!("{number:#x}: {error}"))?;
    }
    let mut open = OpenAtOnce::nt(&device, &nt)?;
    for number in [0, closed_number()? as u64, u64::MAX, global] {
        open.arg.handle = number;
        open.is_refused(Status::INVALID_HANDLE)
            .map_err(|error| format!("{number:#x}: {error}"))?;
    }
    for fd in [node.as_fd(), file.as_fd(), fence.as_fd()] {
        open.arg.handle = fd.as_raw_fd() as u64;
        open.is_refused(Status::OBJECT_TYPE_MISMATCH)?;
    }
    watch.unchanged()
}

fn refusals() -> TestResult {
    let spoil: [fn(&mut opendxg_open_resource); 10] = [
        |arg| arg.flags = 1,
        |arg| arg.flags = 1 << 31,
        |arg| arg.reserved = 1,
        |arg| arg.handle_type = OPENDXG_HANDLE_SELF,
        |arg| arg.handle_type = OPENDXG_HANDLE_LOCAL,
        |arg| arg.handle_type = OPENDXG_HANDLE_WEAK,
        |arg| arg.allocations = 0,
        |arg| arg.runtime_data = 0,
        |arg| (arg.driver_data, arg.driver_data_size) = (0, 1),
        |arg| arg.total_driver_data = 0,
    ];
    both(|_, mut open| {
        let good = open.arg;
        let watch = Watch::start()?;
        for (index, spoil) in spoil.into_iter().enumerate() {
            open.arg = good;
            spoil(&mut open.arg);
            open.is_refused(IP)
                .map_err(|error| format!("change {index}: {error}"))?;
        }
        watch.unchanged()
    })
}

fn faults() -> TestResult {
    let spoil: [fn(&mut opendxg_open_resource, u64); 3] = [
        |arg, address| arg.allocations = address,
        |arg, address| arg.runtime_data = address,
        |arg, address| arg.total_driver_data = address,
    ];
    both(|_, mut open| {
        let good = open.arg;
        let watch = Watch::start()?;
        let before = fixture::next_handle()?;
        for address in [UNMAPPED, KERNEL_HALF, u64::MAX & !0xfff] {
            for spoil in spoil {
                open.arg = good;
                spoil(&mut open.arg, address);
                // Buffers before the bad one may have been written.
                refused(&fixture::raw()?, &mut open.arg, Status::ACCESS_VIOLATION)?;
            }
        }
        ensure_eq!(fixture::next_handle()?, before + 0x40);
        watch.unchanged()
    })
}

/// The client asks again when the data do not fit into the room that it gives first.
fn every_size() -> TestResult {
    let device = fixture::device()?;
    let made = device
        .new_resource()
        .linear(PAGE_SIZE)
        .shared()
        .runtime_data(&[1])
        .create()?;
    let global = made.global_handle().ok_or("no global handle")?;
    for size in [0, 1, 255, 256, 257, 4096, 65536, 3] {
        let data = vec![size as u8; size];
        made.update_runtime_data(&data)?;
        ensure_eq!(device.open_resource(global)?.runtime_data(), data);
    }
    Ok(())
}
