// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paging node at work: traces 2 and 3, in one part and in many, and what happens when it does
//! not answer or goes wrong.

use opendxg::soft_gpu::Command;
use opendxg::{Allocation, EvictFlags, ExecutionState};
use selftests::gpu::{reaches, Gpu, PAGE, PAGING_NODE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{names, Log, Record};
use crate::t_paging::traces::{mapped, resident, FLUSH, MANY, TRANSFER, UPDATE, VALID};

/// Records of one batch.
const ALLOC: &str = "VA_ALLOC";
const FREE: &str = "VA_FREE";
pub(crate) const FILL: &str = "BUILD FillVirtual";
pub(crate) const SUBMIT: &str = "SUBMIT";
const COMPLETE: &str = "COMPLETE";
/// Directions of a TransferVirtual.
const FROM_SEGMENT: u64 = 0x40;
const TO_SEGMENT: u64 = 0x80;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-7 MEM-71 pages that had no bytes are filled", fills)
        .test("MEM-70 bytes come to local memory and back", transfers)
        .test(
            "MEM-7 MEM-70 MEM-71 what is there is copied, and the rest is filled",
            both,
        )
        .test(
            "MEM-66 MEM-67 more than the scratch area has room for",
            chunks,
        )
        .test("MEM-68 a paging buffer of 64 bytes", small_buffer)
        .test("MEM-60 a batch of a node that hangs is done again", hangs)
        .test("MEM-102 a fault of the paging process", faults)
        .test("MEM-60 an adapter that sleeps wakes for a batch", sleeps)
        .test(
            "MEM-14 MEM-112 the workers of adapters whose paging nodes hang are in nobody's way",
            others_go_on,
        )
        .test(
            "MEM-60 an adapter is removed while its paging node hangs",
            removed,
        )
}

/// Takes the records of one batch from the front: whether it is a transfer, and what its parts say.
struct Batch<'a> {
    is_transfer: bool,
    allocs: Vec<&'a Record>,
    updates: Vec<&'a Record>,
    works: Vec<&'a Record>,
    submits: Vec<&'a Record>,
    rest: &'a [Record],
}

impl<'a> Batch<'a> {
    /// The trace of a batch, in its order: all in the paging process, all of one batch.
    fn take(records: &'a [Record]) -> TestResult<Self> {
        let batch = records.first().ok_or("nothing")?.get("batch");
        ensure!(batch != 0);
        let end = records.iter().take_while(|one| one.get("batch") == batch);
        let (own, rest) = records.split_at(end.count());
        ensure!(own.iter().all(|one| one.get("process") == 0));
        let is = |what: &'static str| own.iter().filter(move |one| one.what == what);
        let allocs: Vec<_> = is(ALLOC).collect();
        let works: Vec<_> = own
            .iter()
            .filter(|one| one.what == TRANSFER || one.what == FILL)
            .collect();
        let is_transfer = works.first().ok_or("no work")?.what == TRANSFER;
        let windows = if is_transfer { 2 } else { 1 };
        ensure_eq!(allocs.len(), windows, "{:?}", names(own));
        let updates: Vec<_> = is(UPDATE).collect();
        let mut expected = vec![ALLOC; windows];
        expected.extend(vec![UPDATE; updates.len()]);
        expected.push(FLUSH);
        for work in &works {
            expected.extend([work.what.as_str(), SUBMIT, COMPLETE]);
        }
        expected.extend(vec![FREE; windows]);
        ensure_eq!(names(own), expected);
        // All addresses of the batch are shown, each by the page that it stands for.
        let mut next = allocs[0].get("va");
        for update in &updates {
            ensure_eq!(update.get("va"), next);
            ensure_eq!(update.get("object"), works[0].get("object"));
            ensure!(update.get("flags") & VALID != 0);
            next += update.get("count") * PAGE;
        }
        let total: u64 = allocs.iter().map(|one| one.get("size")).sum();
        ensure_eq!(next, allocs[0].get("va") + total);
        let flush = is(FLUSH).next().ok_or("no flush")?;
        ensure_eq!(
            [flush.get("va"), flush.get("size")],
            [allocs[0].get("va"), total]
        );
        let to = allocs[windows - 1];
        for work in &works {
            ensure_eq!(work.get("va"), to.get("va"));
            ensure_eq!(work.get("size"), to.get("size"));
            ensure_eq!(work.get("source"), to.get("source"));
            ensure_eq!(work.get("pattern"), 0);
            ensure!(work.get("object") != 0);
            if is_transfer {
                ensure_eq!(work.get("from"), allocs[0].get("va"));
            }
        }
        let freed: Vec<_> = is(FREE).map(|one| one.get("va")).collect();
        let taken: Vec<_> = allocs.iter().map(|one| one.get("va")).collect();
        ensure_eq!(freed, taken);
        Ok(Self {
            is_transfer,
            allocs,
            updates,
            works,
            submits: is(SUBMIT).collect(),
            rest,
        })
    }

    /// Which pages of the allocation it is about.
    fn pages(&self) -> core::ops::Range<u64> {
        let work = self.works[0];
        let first = work.get("source") / PAGE;
        first..first + work.get("size") / PAGE
    }

    /// The segments of the source and of the destination.
    fn segments(&self) -> TestResult<(u64, u64)> {
        let of = |window: &Record| {
            let range = window.get("va")..window.get("va") + window.get("size");
            let shown = self
                .updates
                .iter()
                .filter(|one| range.contains(&one.get("va")));
            let mut segments: Vec<_> = shown.map(|one| one.get("segment")).collect();
            segments.dedup();
            match segments[..] {
                [only] => Ok(only),
                _ => Err(format!("{segments:?}")),
            }
        };
        Ok((of(self.allocs[0])?, of(self.allocs[self.allocs.len() - 1])?))
    }
}

/// The batches of this thread, one after the other.
fn batches(records: &[Record]) -> TestResult<Vec<Batch<'_>>> {
    let mut all = Vec::new();
    let mut rest = records;
    while let Some(at) = rest.iter().position(|one| one.what == ALLOC) {
        let batch = Batch::take(&rest[at..])?;
        rest = batch.rest;
        all.push(batch);
    }
    Ok(all)
}

/// Local memory of so many pages, with a GPU address.
pub(crate) fn local(gpu: &Gpu, pages: u64) -> TestResult<Allocation> {
    Ok(mapped(gpu, gpu.allocate_local(pages * PAGE)?, pages)?.0)
}

fn word(page: u64) -> u32 {
    0x1000_0000 + page as u32
}

/// Writes to these pages.
pub(crate) fn write(allocation: &Allocation, pages: impl Iterator<Item = u64>) -> TestResult {
    let bytes = allocation.lock_write()?;
    for page in pages {
        for at in [page * PAGE, (page + 1) * PAGE - 4].map(|at| at as usize) {
            bytes.write(at, &word(page).to_le_bytes());
        }
    }
    Ok(())
}

/// They have what was written.
pub(crate) fn reads(allocation: &Allocation, pages: impl Iterator<Item = u64>) -> TestResult {
    let bytes = allocation.lock()?.to_vec();
    for page in pages {
        for at in [page * PAGE, (page + 1) * PAGE - 4].map(|at| at as usize) {
            ensure_eq!(bytes[at..at + 4], word(page).to_le_bytes(), "page {page}");
        }
    }
    Ok(())
}

/// Evicts it, and has it resident again, with what each step has done.
fn evict(gpu: &Gpu, log: &Log, allocation: &Allocation) -> TestResult<Vec<Record>> {
    log.control("clear")?;
    gpu.device().evict(&[allocation], EvictFlags::empty())?;
    log.own()
}

pub(crate) fn come(gpu: &Gpu, log: &Log, allocation: &Allocation) -> TestResult<Vec<Record>> {
    log.control("clear")?;
    ensure_eq!(resident(gpu, allocation)?, 0);
    log.own()
}

fn fills() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    let allocation = local(&gpu, 100)?;
    let own = come(&gpu, &log, &allocation)?;
    let batches = batches(&own)?;
    ensure_eq!(batches.len(), 1);
    ensure!(!batches[0].is_transfer);
    ensure_eq!(batches[0].pages(), 0..100);
    ensure!(batches[0].segments()?.1 != 0);
    // Client addresses lead there only when it is filled.
    let client = |one: &Record| one.what == UPDATE && one.get("process") != 0;
    let shown = own.iter().position(client).ok_or("not shown")?;
    let done = own.iter().position(|one| one.what == COMPLETE);
    ensure!(done.ok_or("not done")? < shown);
    let bytes = allocation.lock()?.to_vec();
    ensure!(bytes.iter().all(|byte| *byte == 0));
    Ok(())
}

fn transfers() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    let allocation = local(&gpu, 100)?;
    write(&allocation, 0..100)?;
    for _ in 0..2 {
        let own = come(&gpu, &log, &allocation)?;
        let in_batches = batches(&own)?;
        ensure_eq!(in_batches.len(), 1);
        ensure!(in_batches[0].is_transfer);
        ensure_eq!(in_batches[0].pages(), 0..100);
        let (from, to) = in_batches[0].segments()?;
        ensure!(from == 0 && to != 0);
        ensure_eq!(in_batches[0].works[0].get("flags"), TO_SEGMENT);
        reads(&allocation, 0..100)?;
        let own = evict(&gpu, &log, &allocation)?;
        // No address leads there any more.
        let flush = own.iter().position(|one| one.what == FLUSH);
        let alloc = own.iter().position(|one| one.what == ALLOC);
        ensure!(flush.ok_or("no flush")? < alloc.ok_or("no batch")?);
        let out = batches(&own)?;
        ensure_eq!(out.len(), 1);
        ensure_eq!(out[0].segments()?, (to, 0));
        ensure_eq!(out[0].works[0].get("flags"), FROM_SEGMENT);
        reads(&allocation, 0..100)?;
    }
    Ok(())
}

fn both() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    // Whoever had the memory before has left something in it.
    let before = local(&gpu, 12)?;
    resident(&gpu, &before)?;
    write(&before, 0..12)?;
    drop(before);
    let allocation = local(&gpu, 12)?;
    write(&allocation, [2, 3, 7].into_iter())?;
    let own = come(&gpu, &log, &allocation)?;
    let all: Vec<_> = batches(&own)?
        .iter()
        .map(|one| (one.is_transfer, one.pages()))
        .collect();
    let expected = [
        (false, 0..2),
        (false, 4..7),
        (false, 8..12),
        (true, 2..4),
        (true, 7..8),
    ];
    ensure_eq!(all, expected);
    reads(&allocation, [2, 3, 7].into_iter())?;
    let bytes = allocation.lock()?.to_vec();
    for page in [0, 1, 4, 5, 6, 8, 9, 10, 11] {
        let at = (page * PAGE) as usize;
        ensure!(bytes[at..at + PAGE as usize].iter().all(|byte| *byte == 0));
    }
    Ok(())
}

/// A scratch area of 1 MiB, and three times as much to fill and to move.
fn chunks() -> TestResult {
    const AREA: u64 = 256;
    let soft = SoftAdapter::enabled("paging-chunks")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    log.control(&format!("scratch {AREA}"))?;
    let pages = 3 * AREA;
    let allocation = local(&gpu, pages)?;
    let whole = |own: &[Record], size: u64, is_transfer: bool| -> TestResult {
        let all = batches(own)?;
        ensure!(all.iter().all(|one| one.is_transfer == is_transfer));
        let parts: Vec<_> = all.iter().map(Batch::pages).collect();
        let expected: Vec<_> = (0..pages / size)
            .map(|part| part * size..(part + 1) * size)
            .collect();
        ensure_eq!(parts, expected);
        // None is outside of the area.
        let at = |one: &Record| [one.get("va"), one.get("va") + one.get("size")];
        let used: Vec<_> = all
            .iter()
            .flat_map(|one| one.allocs.iter().flat_map(|one| at(one)))
            .collect();
        let (first, last) = (used.iter().min(), used.iter().max());
        ensure!(last.ok_or("none")? - first.ok_or("none")? <= AREA * PAGE);
        Ok(())
    };
    let own = come(&gpu, &log, &allocation)?;
    whole(&own, AREA, false)?;
    write(&allocation, 0..pages)?;
    whole(&evict(&gpu, &log, &allocation)?, AREA / 2, true)?;
    reads(&allocation, 0..pages)?;
    whole(&come(&gpu, &log, &allocation)?, AREA / 2, true)?;
    reads(&allocation, 0..pages)?;
    drop((log, allocation, gpu));
    soft.remove()
}

/// The KMD has no room for all of an operation, and goes on in the next buffer.
fn small_buffer() -> TestResult {
    const PAGES: u64 = 512;
    let soft = SoftAdapter::enabled("paging-buffer")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    log.control("buffer 16")?;
    let allocation = local(&gpu, PAGES)?;
    let in_parts = |own: &[Record]| -> TestResult {
        let all = batches(own)?;
        ensure_eq!(all.len(), 1);
        ensure_eq!(all[0].pages(), 0..PAGES);
        // 2 MiB, in packets of 256 KiB, of which two fit.
        ensure_eq!(all[0].submits.len(), 4);
        let sizes: Vec<_> = all[0].submits.iter().map(|one| one.get("size")).collect();
        ensure!(sizes.iter().all(|size| *size <= 64), "{sizes:?}");
        Ok(())
    };
    in_parts(&come(&gpu, &log, &allocation)?)?;
    write(&allocation, 0..PAGES)?;
    in_parts(&evict(&gpu, &log, &allocation)?)?;
    reads(&allocation, 0..PAGES)?;
    in_parts(&come(&gpu, &log, &allocation)?)?;
    reads(&allocation, 0..PAGES)?;
    drop((log, allocation, gpu));
    soft.remove()
}

/// An adapter on which work may take this long.
fn quick(name: &str) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(name)?;
    soft.set("tdr_delay_ms", "300")?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

fn hangs() -> TestResult {
    let soft = quick("paging-hangs")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
    let own = come(&gpu, &log, &allocation)?;
    let submits: Vec<_> = own.iter().filter(|one| one.what == SUBMIT).collect();
    let done: Vec<_> = own.iter().filter(|one| one.what == COMPLETE).collect();
    // By another context, because the first one was reset.
    ensure_eq!([submits.len(), done.len()], [2, 1]);
    ensure!(submits[0].get("object") != submits[1].get("object"));
    ensure_eq!(submits[1].get("object"), done[0].get("object"));
    reads(&allocation, 0..8)?;
    // Nobody else has noticed.
    gpu.works()?;
    drop((log, allocation, gpu, adapter));
    soft.remove()
}

fn faults() -> TestResult {
    let soft = SoftAdapter::enabled("paging-faults")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let other = Gpu::on(&soft.device()?, 1)?;
    let log = Log::new(&gpu)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    log.control("fault")?;
    log.control("clear")?;
    // It has its place, or finds that its device is lost meanwhile.
    let _ = resident(&gpu, &allocation);
    let found = log.records(|one| one.what == "FAULT")?;
    ensure_eq!(found.len(), 1);
    let batch = log.records(|one| one.what == SUBMIT)?;
    ensure_eq!(found[0].get("batch"), batch[0].get("batch"));
    ensure_eq!(found[0].get("object"), batch[0].get("object"));
    // What memory has counts as lost, for everybody on the adapter.
    for gpu in [&gpu, &other] {
        eventually("the device is lost", || {
            gpu.device().execution_state() == Ok(ExecutionState::Reset)
        })?;
    }
    // The next one works, in a new context.
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let next = local(&gpu, 8)?;
    write(&next, 0..8)?;
    let mut own = come(&gpu, &log, &next)?;
    own.retain(|one| !one.what.starts_with("DDI "));
    ensure_eq!(batches(&own)?.len(), 1);
    reads(&next, 0..8)?;
    drop((log, next, allocation, gpu, other));
    soft.remove()
}

fn sleeps() -> TestResult {
    let soft = SoftAdapter::enabled("paging-sleeps")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    soft.set("power_state", "D3")?;
    ensure_eq!(batches(&come(&gpu, &log, &allocation)?)?.len(), 1);
    ensure_eq!(soft.get("power_state")?, "D0");
    reads(&allocation, 0..8)?;
    drop((log, allocation, gpu));
    soft.remove()
}

/// The worker of each of them waits for its batch. More are there than the module's worker has
/// threads.
fn others_go_on() -> TestResult {
    let hung: Vec<_> = (0..5)
        .map(|number| {
            let soft = SoftAdapter::enabled(&format!("paging-hung-{number}"))?;
            let adapter = soft.open()?;
            let gpu = Gpu::on(&soft.device()?, 0)?;
            let log = Log::new(&gpu)?;
            let allocation = local(&gpu, MANY)?;
            adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
            ensure!(resident(&gpu, &allocation)? != 0);
            Ok((soft, adapter, gpu, log, allocation))
        })
        .collect::<TestResult<_>>()?;
    // As many as can be have begun.
    eventually("four batches are there", || {
        let submitted = |log: &Log| log.records(|one| one.what == SUBMIT);
        let begun = hung
            .iter()
            .filter(|(.., log, _)| submitted(log).is_ok_and(|batches| !batches.is_empty()));
        begun.count() >= 4
    })?;
    let soft = SoftAdapter::enabled("paging-awake")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, MANY)?;
    write(&allocation, 0..8)?;
    soft.set("power_state", "D3")?;
    let value = resident(&gpu, &allocation)?;
    let reached = reaches(gpu.paging().fence(), value);
    for (soft, adapter, gpu, log, allocation) in hung {
        soft.disable()?;
        drop((allocation, log, gpu, adapter));
        soft.remove()?;
    }
    reached?;
    reads(&allocation, 0..8)?;
    drop((allocation, gpu));
    soft.remove()
}

/// Whoever waits for a batch goes on.
fn removed() -> TestResult {
    let soft = SoftAdapter::enabled("paging-removed")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    let log = Log::new(&gpu)?;
    adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
    std::thread::scope(|scope| -> TestResult {
        let waits = scope.spawn(|| resident(&gpu, &allocation));
        eventually("a batch is there", || {
            log.records(|one| one.what == SUBMIT)
                .is_ok_and(|batches| !batches.is_empty())
        })?;
        soft.disable()?;
        // It may have succeeded, or found no adapter.
        let _ = waits.join().map_err(|_| "a panic")?;
        Ok(())
    })?;
    drop((log, allocation, gpu, adapter));
    soft.remove()
}
