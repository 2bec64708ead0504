// SPDX-License-Identifier: MIT OR Apache-2.0
//! The private runtime data of a resource are one entry of its store, which an escape replaces
//! (RES-67 to RES-70).

use std::os::fd::{AsRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Device, Status};
use selftests::call::{refused, succeeds};
use selftests::child::{in_child, Child, Gate};
use selftests::memory::UNMAPPED;
use selftests::resource::{
    flags, query_global, query_nt, Create, OpenGlobal, OpenNt, PAGE_SIZE, READ_ACCESS,
};
use selftests::rounds::{crowd, rounds};
use selftests::sharing::share_raw;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-67 the runtime data are the entry with the zero key",
            one_truth,
        )
        .test("RES-67 SET_INFO replaces the runtime data", set_info)
        .test(
            "RES-68 the escape replaces the runtime data, in every process",
            update,
        )
        .test("RES-68 copies that were returned do not change", old_copies)
        .test("RES-68 the escape: what is refused", refusals)
        .test("RES-68 the escape needs the right to write", needs_write)
        .test("RES-68 the present rectangle", present_rectangle)
        .test(
            "RES-69 the size changes between query and open",
            size_changes,
        )
        .test(
            "RES-69 RES-5 openings while the data change",
            while_changing,
        )
        .test(
            "RES-70 neither sharing nor asking freezes the data, SEALED does",
            sealed,
        )
}

fn escape(kind: u32, handle: u32, data: &[u8]) -> D3DKMT_ESCAPE {
    let mut arg = D3DKMT_ESCAPE::zeroed();
    arg.Type = kind;
    arg.hContext = handle;
    arg.pPrivateDriverData = if data.is_empty() {
        0
    } else {
        data.as_ptr() as u64
    };
    arg.PrivateDriverDataSize = data.len() as u32;
    arg
}

fn replace(raw: &Raw, resource: u32, data: &[u8]) -> TestResult {
    succeeds(
        raw,
        &mut escape(D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE, resource, data),
    )
}

/// The entry with the zero key.
fn get(raw: &Raw, handle: u64, handle_type: u32) -> TestResult<(Vec<u8>, u64)> {
    let mut data = vec![0u8; 0x1_0000];
    let mut arg = opendxg_get_info::zeroed();
    (arg.handle, arg.handle_type) = (handle, handle_type);
    (arg.data, arg.size) = (data.as_mut_ptr() as u64, data.len() as u32);
    succeeds(raw, &mut arg)?;
    ensure_eq!(arg.schema, 0);
    data.truncate(arg.size as usize);
    Ok((data, arg.generation))
}

/// Sets the entry with the zero key; the status and the generation.
fn set(raw: &Raw, resource: u32, data: &[u8], bits: u32) -> TestResult<(Status, u64)> {
    let mut item = opendxg_info_item {
        flags: bits,
        size: data.len() as u32,
        ..Default::default()
    };
    item.data = data.as_ptr() as u64;
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type) = (u64::from(resource), OPENDXG_HANDLE_LOCAL);
    (arg.items, arg.item_count) = ((&raw const item) as u64, 1);
    let status = raw.exec(&mut arg)?;
    Ok((status, arg.generation))
}

fn read_global(device: &Device, global: u32) -> TestResult<Vec<u8>> {
    let mut open = OpenGlobal::new(device, global)?;
    open.run()?.destroy()?;
    Ok(open.buffers.runtime)
}

fn read_nt(device: &Device, nt: &OwnedFd) -> TestResult<Vec<u8>> {
    let mut open = OpenNt::new(device, nt)?;
    open.run()?.destroy()?;
    Ok(open.buffers.runtime)
}

fn one_truth() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let runtime: Vec<u8> = (0..0x58).collect();
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE])
        .with_runtime(&runtime)
        .run()?;
    let nt = made.share()?;
    let local = u64::from(made.resource);
    ensure_eq!(get(&raw, local, OPENDXG_HANDLE_LOCAL)?.0, runtime);
    ensure_eq!(
        get(&raw, nt.as_raw_fd() as u64, OPENDXG_HANDLE_NT)?.0,
        runtime
    );
    replace(&raw, made.resource, b"changed")?;
    ensure_eq!(get(&raw, local, OPENDXG_HANDLE_LOCAL)?.0, b"changed");
    ensure_eq!(read_nt(&device, &nt)?, b"changed");
    Ok(())
}

fn set_info() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    ensure_eq!(query_global(&device, made.global)?.runtime, 0);
    ensure_eq!(set(&raw, made.resource, &[8; 0x108], 0)?.0, Status::SUCCESS);
    ensure_eq!(query_global(&device, made.global)?.runtime, 0x108);
    ensure_eq!(read_global(&device, made.global)?, [8; 0x108]);
    Ok(())
}

fn update() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(&[1; 0x68])
        .run()?;
    let shared = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = shared.share()?;
    for size in [0x58usize, 1, 0x108, 0, 0x68] {
        let data = vec![size as u8; size];
        replace(&raw, made.resource, &data)?;
        replace(&raw, shared.resource, &data)?;
        ensure_eq!(query_nt(&device, &nt)?.runtime as usize, size);
        in_child(|| {
            let device = fixture::device()?;
            ensure_eq!(query_global(&device, made.global)?.runtime as usize, size);
            ensure_eq!(read_global(&device, made.global)?, data);
            ensure_eq!(read_nt(&device, &nt)?, data);
            // An opening may replace them as well.
            let opened = OpenGlobal::new(&device, made.global)?.run()?;
            replace(&fixture::raw()?, opened.resource, b"from the child")
        })?;
        ensure_eq!(read_global(&device, made.global)?, b"from the child");
    }
    Ok(())
}

fn old_copies() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(b"old")
        .run()?;
    let mut open = OpenGlobal::new(&device, made.global)?;
    let opened = open.run()?;
    replace(&fixture::raw()?, made.resource, b"new")?;
    ensure_eq!(open.buffers.runtime, b"old");
    ensure_eq!(read_global(&device, made.global)?, b"new");
    opened.destroy()
}

fn refusals() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(b"same")
        .run()?;
    let strangers = [
        0,
        1,
        0x1ead_beed,
        u32::MAX,
        made.global,
        made.first(),
        device.handle().0,
        device.adapter().handle().0,
    ];
    for kind in [
        D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE,
        D3DKMT_ESCAPE_SET_PRESENT_RECT_WINE,
    ] {
        for handle in strangers {
            refused(&raw, &mut escape(kind, handle, &[1; 16]), IP)
                .map_err(|error| format!("{kind:#x}, {handle:#x}: {error}"))?;
        }
    }
    refused(&raw, &mut D3DKMT_ESCAPE::zeroed(), IP)?;
    let large = vec![0u8; 0x1_0001];
    refused(
        &raw,
        &mut escape(D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE, made.resource, &large),
        IP,
    )?;
    let mut arg = escape(D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE, made.resource, b"data");
    for address in [0, UNMAPPED] {
        arg.pPrivateDriverData = address;
        refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    }
    for kind in [0x8000_0002, u32::MAX, 5, 39] {
        let mut arg = escape(kind, made.resource, b"data");
        let status = raw.exec(&mut arg)?;
        ensure!(!status.is_success(), "escape {kind:#x}: {status}");
    }
    ensure_eq!(read_global(&device, made.global)?, b"same");
    Ok(())
}

fn needs_write() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE])
        .with_runtime(b"same")
        .run()?;
    let nt = share_raw(&raw, &[made.resource], READ_ACCESS, 0)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let mut arg = escape(
        D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE,
        opened.resource,
        b"other",
    );
    refused(&raw, &mut arg, Status::ACCESS_DENIED)?;
    ensure_eq!(
        set(&raw, opened.resource, b"other", 0)?.0,
        Status::ACCESS_DENIED
    );
    ensure_eq!(read_nt(&device, &nt)?, b"same");
    replace(&raw, made.resource, b"other")?;
    ensure_eq!(read_nt(&device, &nt)?, b"other");
    Ok(())
}

fn present_rectangle() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(b"same")
        .run()?;
    let rectangle: Vec<u8> = [1i32, 2, 640, 480]
        .iter()
        .flat_map(|side| side.to_ne_bytes())
        .collect();
    succeeds(
        &raw,
        &mut escape(
            D3DKMT_ESCAPE_SET_PRESENT_RECT_WINE,
            made.resource,
            &rectangle,
        ),
    )?;
    ensure_eq!(
        read_global(&device, made.global)?,
        b"same",
        "the runtime data"
    );
    Ok(())
}

fn size_changes() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE])
        .with_runtime(b"short")
        .run()?;
    let nt = made.share()?;
    let (asked, changed) = (Gate::new()?, Gate::new()?);
    let peer = Child::spawn(|| {
        let device = fixture::device()?;
        let raw = fixture::raw()?;
        let slot = nt.as_raw_fd() as u64;
        let mut open = OpenNt::new(&device, &nt)?;
        let before = get(&raw, slot, OPENDXG_HANDLE_NT)?.1;
        asked.open()?;
        changed.wait()?;
        open.is_refused(IP)?;
        let after = get(&raw, slot, OPENDXG_HANDLE_NT)?.1;
        ensure!(after > before, "generation {before} -> {after}");
        ensure_eq!(read_nt(&device, &nt)?, b"much longer");
        Ok(())
    })?;
    asked.wait()?;
    replace(&raw, made.resource, b"much longer")?;
    changed.open()?;
    peer.join()
}

fn while_changing() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(&[1; 64])
        .run()?;
    let (resource, global) = (made.resource, made.global);
    crowd(3, |part| {
        let raw = fixture::raw()?;
        for round in 0..rounds(500) {
            if part == 0 {
                let byte = 1 + (round % 2) as u8;
                replace(&raw, resource, &vec![byte; 64 * usize::from(byte)])?;
                continue;
            }
            let mut open = OpenGlobal::new(&device, global)?;
            match raw.exec(&mut open.arg)? {
                Status::SUCCESS => {
                    let data = &open.buffers.runtime;
                    let byte = data[0];
                    ensure!(data.iter().all(|&other| other == byte), "a mixture");
                    ensure_eq!(data.len(), 64 * usize::from(byte));
                    let status = selftests::resource::destroy(
                        &raw,
                        device.handle().0,
                        open.arg.hResource,
                        &[],
                        0,
                    );
                    ensure_eq!(status, Ok(Status::SUCCESS));
                }
                IP => {}
                other => return Err(format!("{other}").into()),
            }
        }
        Ok(())
    })
}

fn sealed() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE])
        .with_runtime(b"first")
        .run()?;
    let nt = made.share()?;
    query_nt(&device, &nt)?;
    read_nt(&device, &nt)?;
    replace(&raw, made.resource, b"second")?;
    ensure_eq!(read_nt(&device, &nt)?, b"second");
    ensure_eq!(
        set(&raw, made.resource, b"third", OPENDXG_INFO_SEALED)?.0,
        Status::SUCCESS
    );
    let mut arg = escape(D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE, made.resource, b"fourth");
    refused(&raw, &mut arg, Status::ACCESS_DENIED)?;
    ensure_eq!(
        set(&raw, made.resource, b"fourth", 0)?.0,
        Status::ACCESS_DENIED
    );
    ensure_eq!(read_nt(&device, &nt)?, b"third");
    Ok(())
}
