// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of what engines do, and of the paging process.

use opendxg::pm4::Pm4;
use opendxg::uapi::DXGK_PAGE_FAULT_WRITE;
use opendxg::ExecutionState;
use selftests::gpu::{Gpu, BLOCK, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{names, Log};
use crate::t_paging::traces::{resident, VALID};

/// A flag of an update: the table is new.
const INITIAL_UPDATE: u64 = 1;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-100 MEM-103 page faults, and no other faults", faults)
        .test(
            "MEM-62 MEM-103 addresses of the paging process: pages of fences",
            addresses,
        )
}

fn faults() -> TestResult {
    let other = Gpu::new()?;
    let log = Log::new(&other)?;
    let found = || log.records(|one| one.what == "FAULT");
    let illegal = Gpu::new()?;
    illegal.fails(&Pm4::new().nop(0).word(7), ExecutionState::DmaFault)?;
    ensure!(found()?.is_empty());
    for write in [true, false] {
        log.control("clear")?;
        let gpu = Gpu::new()?;
        let word = gpu.buffer(PAGE)?;
        let allocation = gpu.allocate(PAGE)?;
        resident(&gpu, &allocation)?;
        // Nothing is below the first block.
        let nowhere = BLOCK - 8;
        let commands = match write {
            true => Pm4::new().write64(nowhere, 1),
            false => Pm4::new().move64(word.at(0), nowhere),
        };
        gpu.fails(&commands, ExecutionState::DmaPageFault)?;
        // Who sees the error finds the record.
        let found = found()?;
        ensure_eq!(names(&found), ["FAULT"]);
        let fault = &found[0];
        ensure_eq!(fault.get("va"), nowhere);
        let is_write = fault.get("flags") & u64::from(DXGK_PAGE_FAULT_WRITE) != 0;
        ensure_eq!(is_write, write);
        ensure!(fault.get("object") != 0);
        // It is about the process that has done it.
        let own = log.own()?;
        let returned = own.iter().find(|one| one.what == "RETURN MakeResident");
        let process = returned.ok_or("no call")?.get("process");
        ensure!(process != 0);
        ensure_eq!(fault.get("process"), process);
    }
    Ok(())
}

/// The page of fence values that processes write has an address, and so has the one that they only
/// read.
fn addresses() -> TestResult {
    let soft = SoftAdapter::new("paging-addresses")?;
    soft.set("map_to_gpu_system_process", "1")?;
    soft.set("enabled", "1")?;
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let log = Log::new(&gpu)?;
    let spaces = || log.records(|one| one.what.starts_with("VA_"));
    let fence = device.create_native_fence(1)?;
    let shown = spaces()?;
    ensure_eq!(names(&shown), ["VA_ALLOC", "VA_ALLOC"]);
    // Another fence is in the same pages.
    let other = device.create_native_fence(2)?;
    drop(fence);
    ensure_eq!(spaces()?.len(), 2);
    drop(other);
    let all = spaces()?;
    ensure_eq!(names(&all[2..]), ["VA_FREE", "VA_FREE"]);
    let addresses = |from: usize| {
        let mut found = [&all[from], &all[from + 1]].map(|one| one.get("va"));
        found.sort_unstable();
        found
    };
    ensure_eq!(addresses(0), addresses(2));
    ensure!(addresses(0)[0] != addresses(0)[1]);
    for one in &all {
        ensure_eq!([one.get("process"), one.get("size")], [0, PAGE]);
    }
    // Page tables of the paging process lead to each, and later do not.
    for one in &shown {
        let written = log.records(|record| {
            record.what == "BUILD UpdatePageTable"
                && record.get("process") == 0
                && record.get("level") == 0
                && record.get("va") == one.get("va")
                && record.get("flags") & INITIAL_UPDATE == 0
        })?;
        let valid: Vec<_> = written.iter().map(|one| one.get("flags") & VALID).collect();
        ensure_eq!(valid, [VALID, 0]);
    }
    drop(log);
    drop(gpu);
    drop(device);
    soft.remove()
}
