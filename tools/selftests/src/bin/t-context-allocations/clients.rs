// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients see of context allocations, and what they can do there.

use opendxg::pm4::Pm4;
use opendxg::{Dxg, ExecutionState, GpuMap, Status};
use selftests::child::in_child;
use selftests::gpu::{Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::user::{become_user, USER};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use super::{content, expected, has, only, Saved, CREATE, MAPPED, PAGES, ROOT};
use crate::t_paging::log::Record;

pub(super) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-85 MEM-86 a process reads a visible save area, and cannot store there",
            visible,
        )
        .test("MEM-86 its addresses are not the client's", not_theirs)
        .test("MEM-86 a private one is at no address", private)
        .test(
            "MEM-86 a visible one has nothing of what was in its memory before",
            zeroed,
        )
        .test(
            "MEM-86 commands that read the save area of a context of another process fault",
            of_others,
        )
        .test(
            "MEM-86 what a process reads of the log says nothing of one",
            own_log,
        )
}

fn visible() -> TestResult {
    let saved = Saved::new("context-visible", "visible")?;
    let (another, all) = saved.another()?;
    let mapped = only(&all, MAPPED)?;
    let address = mapped.get("va");
    let wanted = expected(1, only(&all, ROOT)?);
    ensure_eq!(mapped.get("status"), 0);
    ensure!(address != 0 && address % PAGE == 0);
    // Whoever shares its addresses.
    for gpu in [&another, &saved.gpu] {
        has(&content(gpu, address)?, wanted)?;
    }
    let last = address + PAGES * PAGE - 4;
    let victim = Gpu::on(&saved.soft.device()?, 0)?;
    victim.fails(&Pm4::new().write(last, &[1]), ExecutionState::DmaPageFault)?;
    ensure_eq!(victim.device().page_fault()?.address, last);
    has(&content(&saved.gpu, address)?, wanted)?;
    drop((victim, another));
    saved.remove()
}

fn not_theirs() -> TestResult {
    let saved = Saved::new("context-theirs", "visible")?;
    let (another, all) = saved.another()?;
    let address = only(&all, MAPPED)?.get("va");
    let wanted = expected(1, only(&all, ROOT)?);
    let adapter = saved.gpu.device().adapter();
    let own = saved.gpu.buffer(PAGE)?;
    for (first, pages) in [(address, PAGES), (address, 1), (address + PAGE, 1)] {
        fails_with(
            adapter.free_gpu_range(first, pages * PAGE),
            Status::INVALID_PARAMETER,
        )?;
        let map = GpuMap {
            base: first,
            pages: 1,
            ..GpuMap::default()
        };
        fails_with(
            saved.gpu.paging().map(Some(own.allocation()), &map),
            Status::INVALID_PARAMETER,
        )?;
    }
    has(&content(&another, address)?, wanted)?;
    drop((own, another));
    saved.remove()
}

/// Where it would be if it were visible.
fn private() -> TestResult {
    let saved = Saved::new("context-shown", "visible")?;
    let (another, all) = saved.another()?;
    let address = only(&all, MAPPED)?.get("va");
    drop(another);
    saved.remove()?;
    let saved = Saved::new("context-private", "private")?;
    let (another, all) = saved.another()?;
    ensure!(all.iter().all(|one| one.what != MAPPED));
    let read = Pm4::new().copy(address + PAGE, address, 4);
    another.fails(&read, ExecutionState::DmaPageFault)?;
    drop(another);
    saved.remove()
}

/// All local memory was used by somebody else.
fn zeroed() -> TestResult {
    const MEMORY: u64 = 1 << 20;
    let soft = SoftAdapter::new("context-zeroed")?;
    soft.set("local_memory", &MEMORY.to_string())?;
    let saved = Saved::on(soft, "visible")?;
    saved.log.control("clear")?;
    // The context that is there has one, too.
    let mut dirty = Vec::new();
    for _ in 1..MEMORY / (PAGES * PAGE) {
        let buffer = saved.gpu.local_buffer(PAGES * PAGE)?;
        buffer.write(0, &vec![0xdddd_dddd; (PAGES * PAGE / 4) as usize]);
        dirty.push(buffer);
    }
    let used = saved.log.records(|one| one.what == "COMMIT")?;
    drop(dirty);
    let (another, all) = saved.another()?;
    let memory = only(&all, "COMMIT")?;
    ensure_eq!(memory.get("object"), only(&all, CREATE)?.get("object"));
    let mut used = used.iter().map(|one| one.get("offset"));
    ensure!(used.any(|offset| offset == memory.get("offset")));
    let address = only(&all, MAPPED)?.get("va");
    has(&content(&another, address)?, expected(1, only(&all, ROOT)?))?;
    drop(another);
    saved.remove()
}

fn of_others() -> TestResult {
    // So many addresses are taken that another process, which has a few, has nothing at the last.
    const CONTEXTS: usize = 8;
    let saved = Saved::new("context-others", "visible")?;
    let mut all = Vec::new();
    for _ in 0..CONTEXTS {
        all.push(saved.another()?);
    }
    let (owner, records) = &all[CONTEXTS - 1];
    let address = only(records, MAPPED)?.get("va");
    let wanted = expected(1, only(records, ROOT)?);
    let luid = saved.soft.luid()?;
    in_child(|| {
        let adapter = Dxg::open()?.open_adapter(luid)?;
        for at in [address, address + PAGES * PAGE - 4] {
            let gpu = Gpu::on(&adapter.create_device()?, 0)?;
            let buffer = gpu.buffer(PAGE)?;
            let read = Pm4::new().copy(buffer.address(), at, 4);
            gpu.fails(&read, ExecutionState::DmaPageFault)?;
            ensure_eq!(gpu.device().page_fault()?.address, at);
            ensure_eq!(buffer.get32(0), 0);
        }
        Ok(())
    })?;
    has(&content(owner, address)?, wanted)?;
    drop(all);
    saved.remove()
}

fn own_log() -> TestResult {
    let saved = Saved::new("context-own-log", "private")?;
    let luid = saved.soft.luid()?;
    let path = std::env::temp_dir().join("opendxg-own-context-log");
    saved.log.control("clear")?;
    in_child(|| {
        become_user(USER)?;
        let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
        let own = device.paging_log()?;
        let gpu = Gpu::on(&device, 1)?;
        drop(gpu.local_buffer(PAGE)?);
        drop(gpu);
        std::fs::write(&path, own.read()?)?;
        Ok(())
    })?;
    let read = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    let read: TestResult<Vec<_>> = read.lines().map(Record::parse).collect();
    let read = read?;
    let all = saved.log.records(|_| true)?;
    let object = only(&all, CREATE)?.get("object");
    let is_about = |one: &&Record| one.get("object") == object;
    // There was something to be said, and to be read.
    ensure!(all.iter().filter(is_about).count() > 5);
    ensure!(read.iter().any(|one| one.what == "COMMIT"));
    for one in &read {
        let is_call = one.what.contains("Context");
        ensure!(!is_about(&one) && !is_call, "{one:?}");
    }
    saved.remove()
}
