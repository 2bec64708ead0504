// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every access goes through the page tables, page by page (GPU-65), and never by old entries
//! (GPU-66).

use opendxg::pm4::{Atomic, Compare, Data, Interrupt, Pm4};
use opendxg::{ExecutionState, GpuMap};
use selftests::gpu::{reaches, Buffer, Gpu, NODES, PAGE, READ_WRITE};
use selftests::rounds::rounds;
use selftests::{ensure, ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-65 MEM-101 a copy into an unmapped page ends with the last mapped one",
            crossing,
        )
        .test("GPU-65 every packet goes through the page tables", packets)
        .test("GPU-65 a buffer goes on into an unmapped page", fetch)
        .test("GPU-66 MEM-58 one address for many pages in turn", in_turn)
        .test(
            "GPU-66 MEM-58 MEM-49 freed under work that runs",
            freed_under_work,
        )
        .test("GPU-65 pages that lie apart are one range", scattered)
}

/// Two pages, of which the second one is not mapped any more.
fn half_mapped(gpu: &Gpu) -> TestResult<Buffer> {
    let buffer = gpu.buffer(2 * PAGE)?;
    let adapter = gpu.device().adapter();
    adapter.free_gpu_range(buffer.at(PAGE), PAGE)?;
    Ok(buffer)
}

fn crossing() -> TestResult {
    for node in NODES {
        let gpu = Gpu::node(node)?;
        let (source, target) = (gpu.buffer(2 * PAGE)?, half_mapped(&gpu)?);
        source.fill(7);
        let copy = Pm4::new().copy(target.at(PAGE - 64), source.at(0), 128);
        gpu.fails(&copy, ExecutionState::DmaPageFault)?;
        target.holds(0..PAGE - 64, 0)?;
        target.holds(PAGE - 64..PAGE, 7)?;
        target.holds(PAGE..2 * PAGE, 0)?;
        ensure_eq!(gpu.device().page_fault()?.address, target.at(PAGE));

        // The same at the source.
        let gpu = Gpu::node(node)?;
        let (source, target) = (half_mapped(&gpu)?, gpu.buffer(PAGE)?);
        source.fill(7);
        let copy = Pm4::new().copy(target.at(0), source.at(PAGE - 64), 128);
        gpu.fails(&copy, ExecutionState::DmaPageFault)?;
        target.holds(0..64, 7)?;
        target.holds(64..PAGE, 0)?;
        ensure_eq!(gpu.device().page_fault()?.address, source.at(PAGE));
    }
    Ok(())
}

fn packets() -> TestResult {
    // Packets that access an address, and whether they write.
    type Make = fn(u64, u64) -> Pm4;
    let all: [(&str, bool, Make); 13] = [
        ("WRITE_DATA", true, |bad, _| Pm4::new().write(bad, &[1])),
        ("WRITE_DATA of 64 bits", true, |bad, _| {
            Pm4::new().write64(bad, 1)
        }),
        ("DMA_DATA from", false, |bad, good| {
            Pm4::new().copy(good, bad, 3)
        }),
        ("DMA_DATA to", true, |bad, good| {
            Pm4::new().copy(bad, good, 3)
        }),
        ("DMA_DATA that fills", true, |bad, _| {
            Pm4::new().fill(bad, 1, 4)
        }),
        ("COPY_DATA from", false, |bad, good| {
            Pm4::new().move64(good, bad)
        }),
        ("COPY_DATA to", true, |bad, good| {
            Pm4::new().move32(bad, good)
        }),
        ("COPY_DATA of the clock", true, |bad, _| {
            Pm4::new().timestamp(bad)
        }),
        ("WAIT_REG_MEM", false, |bad, _| {
            Pm4::new().wait32(bad, Compare::Equal, 0, 1)
        }),
        ("WAIT_REG_MEM64", false, |bad, _| {
            Pm4::new().wait64(bad, Compare::Equal, 0, 1)
        }),
        ("RELEASE_MEM", true, |bad, _| {
            Pm4::new().release(bad, Data::Full(1), Interrupt::AfterData)
        }),
        ("ATOMIC_MEM", true, |bad, _| {
            Pm4::new().atomic(Atomic::Add, bad, 1, 0)
        }),
        ("COND_EXEC", false, |bad, _| Pm4::new().skip_if_zero(bad, 0)),
    ];
    for (name, write, make) in all {
        let gpu = Gpu::new()?;
        let (bad, good) = (half_mapped(&gpu)?, gpu.buffer(PAGE)?);
        let at = bad.at(PAGE + 8);
        let commands = make(at, good.at(0)).set32(good.at(64), 1);
        gpu.fails(&commands, ExecutionState::DmaPageFault)
            .map_err(|error| format!("{name}: {error}"))?;
        let fault = gpu.device().page_fault()?;
        ensure_eq!(fault.address, at, "{name}");
        ensure_eq!(fault.flags & 1 != 0, write, "{name}: {:#x}", fault.flags);
        ensure_eq!((good.get64(0), good.get32(64)), (0, 0), "{name}");
        bad.holds(0..2 * PAGE, 0)?;
    }
    Ok(())
}

fn fetch() -> TestResult {
    let gpu = Gpu::new()?;
    let (commands, word) = (half_mapped(&gpu)?, gpu.buffer(PAGE)?);
    let first = Pm4::new().set32(word.at(0), 1);
    let length = first.len() as u64 * 4;
    commands.write(PAGE - length, first.words());
    commands.write(PAGE, first.words());
    let start = commands.at(PAGE - length);
    gpu.context().submit(start, length as u32)?;
    gpu.finish()?;
    ensure_eq!(word.get32(0), 1);
    word.set32(0, 0);
    gpu.context().submit(start, 2 * length as u32)?;
    if let Ok(mark) = gpu.mark() {
        reaches(gpu.done(), mark)?;
    }
    let fault = gpu.device().page_fault()?;
    ensure_eq!((fault.address, fault.flags & 1), (commands.at(PAGE), 0));
    ensure_eq!(word.get32(0), 1);
    Ok(())
}

/// One address shows other memory in each round: nothing is read or written by the entry of the
/// round before. A page that was left is freed and made anew.
fn in_turn() -> TestResult {
    let base = 0x5100_0000_0000;
    let gpus: TestResult<Vec<Gpu>> = {
        let device = selftests::fixture::device()?;
        NODES.iter().map(|&node| Gpu::on(&device, node)).collect()
    };
    let gpus = gpus?;
    let seen = gpus[0].buffer(PAGE)?;
    for round in 1..=rounds(30) {
        let word = match round % 2 {
            0 => gpus[0].buffer(PAGE)?,
            _ => gpus[0].local_buffer(PAGE)?,
        };
        word.set32(0, round);
        let map = GpuMap {
            base,
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = gpus[0].paging().map(Some(word.allocation()), &map)?;
        reaches(gpus[0].paging().fence(), range.value)?;
        for (number, gpu) in (0..).zip(&gpus) {
            let at = 8 * number;
            gpu.run(
                &Pm4::new()
                    .move32(seen.at(at), base)
                    .set32(base + 8 + at, round),
            )?;
            ensure_eq!(seen.get32(at), round, "node {number}");
            ensure_eq!(word.get32(8 + at), round, "node {number}");
        }
        // Every other time over what is mapped.
        if round % 3 == 0 {
            gpus[0].device().adapter().free_gpu_range(base, PAGE)?;
        }
    }
    Ok(())
}

/// An engine copies in a loop while the destination is freed: when that call has returned, nothing
/// writes to the memory any more.
fn freed_under_work() -> TestResult {
    for round in 0..rounds(4) {
        let gpu = Gpu::node(round % 3)?;
        let (source, target) = (gpu.buffer(PAGE)?, gpu.buffer(4 * PAGE)?);
        source.fill(5);
        let copy = Pm4::new().copy(target.at(0), source.at(0), PAGE).copy(
            target.at(2 * PAGE),
            source.at(0),
            PAGE,
        );
        let commands = gpu.buffer(PAGE)?;
        let bytes = (copy.len() as u64 + 4) * 4;
        let copy = copy.chain(commands.address(), bytes);
        commands.write(0, copy.words());
        gpu.context().submit(commands.address(), bytes as u32)?;
        selftests::time::eventually("it runs", || target.get32(3 * PAGE - 4) == 5)?;
        let adapter = gpu.device().adapter();
        adapter.free_gpu_range(target.address(), 4 * PAGE)?;
        target.fill(0);
        // A page fault is all that can come of it.
        let mark = gpu.mark();
        if let Ok(mark) = mark {
            reaches(gpu.done(), mark)?;
        }
        selftests::gpu::is_in(gpu.device(), ExecutionState::DmaPageFault)?;
        target.holds(0..4 * PAGE, 0)?;
        let fault = gpu.device().page_fault()?.address;
        ensure!(fault >= target.at(0) && fault < target.end());
    }
    Ok(())
}

fn scattered() -> TestResult {
    let gpu = Gpu::node(2)?;
    let base = 0x5200_0000_0000;
    let (a, b) = (gpu.buffer(8 * PAGE)?, gpu.local_buffer(8 * PAGE)?);
    // The pages of both alternate, backwards.
    let mut last = 0;
    for page in 0..16 {
        let buffer = if page % 2 == 0 { &a } else { &b };
        let map = GpuMap {
            base: base + page * PAGE,
            first_page: 7 - page / 2,
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = gpu.paging().map(Some(buffer.allocation()), &map)?;
        last = range.value.max(last);
    }
    reaches(gpu.paging().fence(), last)?;
    let source = gpu.buffer(16 * PAGE)?;
    for page in 0..16 {
        for offset in (0..PAGE).step_by(4) {
            source.set32(page * PAGE + offset, page as u32 + 1);
        }
    }
    gpu.run(&Pm4::new().copy(base + 2, source.at(2), 16 * PAGE - 4))?;
    for page in 0..16 {
        let buffer = if page % 2 == 0 { &a } else { &b };
        let start = (7 - page / 2) * PAGE;
        buffer.holds(start + 4..start + PAGE - 4, page as u32 + 1)?;
    }
    Ok(())
}
