// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of what executes: queues, what is queued in them, and the memory that stays for the GPU
//! (RES-105, FEN-45, MEM-50).

use std::fs::File;
use std::os::fd::AsFd;

use opendxg::pm4::Pm4;
use opendxg::{
    Error, EventFd, FdInfo, FenceValues, GpuReserve, GpuUpdate, Reservation, ResidentFlags,
    SignalFlags, Status, SyncFlags, SyncKind,
};
use selftests::gpu::{one, Gpu, BLOCK, PAGE};
use selftests::hog::Hog;
use selftests::leak::Watch;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_quota::limits::limit;
use crate::t_quota::memory::{node, number, MIB};

const NO_MEMORY: Status = Status::NO_MEMORY;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-105 a queue counts until its work has ended", ending)
        .test(
            "RES-105 FEN-45 FEN-54 queued items: NO_MEMORY, and nothing is queued",
            items,
        )
        .test("RES-105 FEN-45 bytes of queued items: NO_MEMORY", bytes)
        .test(
            "RES-105 MEM-46 updates that wait are queued items: NO_MEMORY",
            updates,
        )
        .test(
            "RES-105 MEM-50 page tables: NO_MEMORY, and nothing is reserved",
            page_tables,
        )
        .test("RES-105 MEM-20 resident pages: NO_MEMORY", resident)
}

fn ending() -> TestResult {
    let limit = limit("max_user_queues")?;
    let gpu = Gpu::new()?;
    let busy = Hog::Loop.begin(&Gpu::on(gpu.device(), 1)?)?;
    // Its handle is gone, and it still runs.
    busy.runs()?;
    let mut rest = Vec::new();
    eventually("its place is free", || {
        while let Ok(context) = gpu.device().create_context(2) {
            rest.push(context);
        }
        rest.len() == limit - 1
    })
}

/// The counts of the user of this process about what is queued.
fn queued(node: &File) -> TestResult<[u64; 3]> {
    let [items, bytes, elements] = ["queued-items", "queued-bytes", "wait-elements"];
    let count = |name: &str| number(node, &format!("dxg-user-{name}"));
    Ok([count(items)?, count(bytes)?, count(elements)?])
}

/// Waits until nothing is queued.
fn drains(node: &File) -> TestResult {
    eventually("nothing is queued", || {
        queued(node).is_ok_and(|counts| counts == [0; 3])
    })
}

fn items() -> TestResult {
    let limit = limit("max_user_queued_items")? as u64;
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let (context, other) = (gpu.context(), device.create_context(1)?);
    let hw_context = device.create_hw_context(0)?;
    let (queue, second) = (hw_context.create_hw_queue()?, hw_context.create_hw_queue()?);
    let (gate, fence) = (device.create_fence(0)?, device.create_fence(0)?);
    let semaphore = SyncKind::Semaphore {
        max_count: 10_000,
        initial_count: 5_000,
    };
    let semaphore = device.create_sync_object(semaphore, SyncFlags::empty())?;
    let event = EventFd::new()?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    let (at, length) = (nop.address(), nop.length());
    let node = node()?;
    let progress = core::cell::Cell::new(0);
    let some = one(&fence, 1);
    let none = SignalFlags::empty();
    // How many items, and what queues them.
    type Call<'a> = (u64, &'a dyn Fn() -> opendxg::Result<()>);
    let calls: [Call<'_>; 12] = [
        (1, &|| context.submit(at, length)),
        (2, &|| context.submit_broadcast(&[&other], at, length, &[])),
        (1, &|| context.signal(&some)),
        (2, &|| context.signal_broadcast(&[&other], &some, none)),
        (2, &|| context.signal_event(&[&other], &event)),
        (1, &|| context.signal_legacy(&[&semaphore], 0)),
        (1, &|| context.wait(&some)),
        (2, &|| context.wait_legacy(&[&semaphore, &semaphore], 0)),
        (1, &|| {
            queue.submit(progress.get() + 1, at, length)?;
            progress.set(progress.get() + 1);
            Ok(())
        }),
        (1, &|| queue.signal(&some)),
        (2, &|| queue.signal_broadcast(&[&second], &some, none)),
        (1, &|| queue.wait(&some)),
    ];
    for round in 0..2 {
        let closed = one(&gate, round + 1);
        for context in [context, &other] {
            context.wait(&closed)?;
        }
        queue.wait(&closed)?;
        second.wait(&closed)?;
        let mut items = 4;
        for (count, call) in calls.iter().cycle() {
            if items + count > limit {
                break;
            }
            call()?;
            items += count;
        }
        while items < limit {
            context.signal(&some)?;
            items += 1;
        }
        let full = queued(&node)?;
        ensure_eq!(full[0], limit);
        let watch = Watch::start()?;
        for (count, call) in &calls {
            fails_with(call(), NO_MEMORY)?;
            ensure_eq!(queued(&node)?, full, "after one of {count} items");
        }
        watch.unchanged()?;
        // What is not queued works, and nobody is held up.
        fence.signal(1)?;
        fence.wait(1)?;
        ensure!(!gate.is_reached(round + 1));
        gate.signal(round + 1)?;
        drains(&node)?;
        // One place is not enough for two items, and stays free.
        context.wait(&one(&gate, round + 2))?;
        for _ in 2..limit {
            context.signal(&some)?;
        }
        for (_, call) in calls.iter().filter(|(count, _)| *count > 1) {
            fails_with(call(), NO_MEMORY)?;
        }
        context.signal(&some)?;
        fails_with(context.signal(&some), NO_MEMORY)?;
        gate.signal(round + 2)?;
        drains(&node)?;
        gate.signal_rewind(round + 1)?;
    }
    for (_, call) in &calls {
        call()?;
    }
    drains(&node)?;
    gpu.finish()
}

/// Elements of a wait that takes much memory.
const MANY: u64 = 20;

fn bytes() -> TestResult {
    let limit = limit("max_user_queued_bytes")? as u64;
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let gate = device.create_fence(0)?;
    let fences: Result<Vec<_>, _> = (0..MANY).map(|_| device.create_fence(1)).collect();
    let fences = fences?;
    let mut list = FenceValues::new();
    for fence in &fences {
        list.push(fence, 1);
    }
    let node = node()?;
    let context = gpu.context();
    context.wait(&one(&gate, 1))?;
    let [_, small, _] = queued(&node)?;
    context.wait(&list)?;
    let [_, both, _] = queued(&node)?;
    let large = both - small;
    ensure!(large > small && small > 0);
    while context.wait(&list).is_ok() {}
    let [items, bytes, _] = queued(&node)?;
    ensure_eq!(items, 1 + (limit - small) / large);
    ensure_eq!(bytes, small + (items - 1) * large);
    let watch = Watch::start()?;
    fails_with(context.wait(&list), NO_MEMORY)?;
    fails_with(context.signal(&list), NO_MEMORY)?;
    ensure_eq!(queued(&node)?[..2], [items, bytes]);
    watch.unchanged()?;
    // What takes less may still have room.
    for _ in 0..(limit - bytes) / small {
        context.signal(&one(&gate, 1))?;
    }
    fails_with(context.signal(&one(&gate, 1)), NO_MEMORY)?;
    gate.signal(1)?;
    drains(&node)?;
    context.wait(&list)?;
    gpu.finish()
}

fn updates() -> TestResult {
    let limit = limit("max_user_queued_items")? as u64;
    let gpu = Gpu::new()?;
    let node = node()?;
    let zero = GpuReserve {
        size: BLOCK,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    };
    let range = gpu.paging().reserve(&zero)?;
    let memory = gpu.allocate(PAGE)?;
    let map = GpuUpdate::Map {
        address: range.address,
        size: PAGE,
        allocation: &memory,
        offset: 0,
        length: 0,
        protection: None,
    };
    // A context has 128 of them at most, and lets whoever has more wait.
    let mut contexts = Vec::new();
    let fence = gpu.device().create_fence(0)?;
    let mut items = 0;
    let refused = loop {
        if items % 100 == 0 {
            contexts.push(gpu.device().create_context(0)?);
        }
        let Some(context) = contexts.last() else {
            continue;
        };
        match context.update_gpu_ranges(&[map], &fence, 1) {
            Ok(()) => items += 1,
            Err(error) => break error,
        }
        ensure!(items <= limit, "{items} updates");
    };
    ensure_eq!(refused, Error::Status(NO_MEMORY));
    ensure_eq!(items, limit);
    let full = queued(&node)?;
    ensure_eq!(full[0], limit);
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    fails_with(gpu.context().submit(nop.address(), nop.length()), NO_MEMORY)?;
    ensure_eq!(queued(&node)?, full);
    fence.signal(1)?;
    drains(&node)?;
    gpu.run(&Pm4::new().nop(0))?;
    // A context that is destroyed gives back what it has not done.
    contexts[0].update_gpu_ranges(&[map], &fence, 10)?;
    ensure!(queued(&node)? != [0; 3]);
    drop(contexts);
    drains(&node)
}

/// What fdinfo tells of the address spaces of this process.
fn address_spaces(node: &File) -> TestResult<String> {
    let info = FdInfo::read(node.as_fd())?;
    Ok(info.get("dxg-gpu-memory").unwrap_or("").to_owned())
}

fn page_tables() -> TestResult {
    let limit = limit("max_user_resident_mb")? as u64 * MIB;
    let gpu = Gpu::new()?;
    let node = node()?;
    let (base, apart) = (0x10_0000_0000, 2 * MIB);
    // Each takes a table of its own.
    let reserve = |index: u64| GpuReserve {
        base: base + index * apart,
        size: BLOCK,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    };
    let adapter = gpu.device().adapter();
    for _ in 0..2 {
        let start = number(&node, "dxg-process-resident")?;
        let spaces = address_spaces(&node)?;
        let mut count = 0;
        while gpu.paging().reserve(&reserve(count)).is_ok() {
            count += 1;
            ensure!(count <= limit / PAGE, "no limit");
        }
        // The last one may lack more than one table.
        let used = number(&node, "dxg-process-resident")?;
        ensure!(used + 4 * PAGE >= limit && used <= limit, "{used}");
        let full = address_spaces(&node)?;
        let watch = Watch::start()?;
        for more in [reserve(count), reserve(2 * count)] {
            fails_with(gpu.paging().reserve(&more), NO_MEMORY)?;
        }
        ensure_eq!(address_spaces(&node)?, full);
        ensure_eq!(number(&node, "dxg-process-resident")?, used);
        watch.unchanged()?;
        // Without access no table is needed.
        let bare = GpuReserve {
            kind: Reservation::NoAccess,
            ..reserve(count)
        };
        gpu.paging().reserve(&bare)?;
        adapter.free_gpu_range(bare.base, BLOCK)?;
        adapter.free_gpu_range(base, BLOCK)?;
        gpu.paging().reserve(&reserve(0))?;
        for index in 0..count {
            adapter.free_gpu_range(reserve(index).base, BLOCK)?;
        }
        ensure_eq!(address_spaces(&node)?, spaces);
        ensure_eq!(number(&node, "dxg-process-resident")?, start);
    }
    Ok(())
}

fn resident() -> TestResult {
    let limit = limit("max_user_resident_mb")? as u64 * MIB;
    let gpu = Gpu::new()?;
    let node = node()?;
    let none = ResidentFlags::empty();
    let start = number(&node, "dxg-process-resident")?;
    for size in [limit, 2 * limit] {
        let small = gpu.allocate(PAGE)?;
        let large = gpu.allocate(size)?;
        fails_with(
            gpu.paging().make_resident(&[&small, &large], none),
            NO_MEMORY,
        )?;
        // Neither of them is.
        ensure!(address_spaces(&node)?.contains("resident-system=0"));
        fails_with(
            gpu.device().evict(&[&small], opendxg::EvictFlags::empty()),
            Status::INVALID_PARAMETER,
        )?;
        // And no page was taken for them.
        ensure_eq!(number(&node, "dxg-process-resident")?, start);
        drop(large);
        gpu.paging().make_resident(&[&small], none)?.value()?;
        drop(small);
        ensure_eq!(number(&node, "dxg-process-resident")?, start);
    }
    let fits = gpu.allocate(limit - start)?;
    let value = gpu.paging().make_resident(&[&fits], none)?.value()?;
    gpu.paging().wait(value)?;
    let one = gpu.allocate(PAGE)?;
    fails_with(gpu.paging().make_resident(&[&one], none), NO_MEMORY)?;
    drop(fits);
    gpu.paging().make_resident(&[&one], none)?.value()?;
    Ok(())
}
