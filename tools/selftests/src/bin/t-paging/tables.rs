// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables that the paging node writes: traces 1, 2, 3, 5 and 6, and what the page tables of
//! the paging process are.

use std::collections::BTreeMap;

use opendxg::pm4::Pm4;
use opendxg::{GpuMap, ResidentFlags};
use selftests::gpu::{reaches, Gpu, PAGE, READ_WRITE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, skip, Suite, TestResult};

use crate::t_paging::engine::{come, local, reads, write, FILL, SUBMIT};
use crate::t_paging::log::{names, Log, Record};
use crate::t_paging::root;
use crate::t_paging::switches::leave_room;
use crate::t_paging::traces::{FLUSH, TRANSFER, UPDATE, VALID};

const ALLOC: &str = "VA_ALLOC";
const FREE: &str = "VA_FREE";
const COMPLETE: &str = "COMPLETE";
const CREATE: &str = "PT_CREATE";
const COMMIT: &str = "COMMIT";
const INITIAL_UPDATE: u64 = 1;
const REPEAT: u64 = 4;
/// What a table of level 0 of four levels stands for.
const TABLE: u64 = 2 << 20;
/// The segment of local memory.
const LOCAL: u64 = 1;
/// Where the permanent part of the paging process begins, and ends.
const PERMANENT: u64 = 960 << 20;
const END: u64 = 1 << 30;

pub(crate) fn tests(suite: Suite) -> Suite {
    ["vram4", "doc2"]
        .into_iter()
        .fold(suite, |suite, profile| {
            suite
                .test(
                    format!("MEM-60 MEM-69 MEM-81 the paging node maps an allocation, {profile}"),
                    move || maps(profile),
                )
                .test(
                    format!("MEM-60 MEM-70 MEM-71 it shows itself the memory, {profile}"),
                    move || shows_itself(profile),
                )
                .test(
                    format!("MEM-63 MEM-73 the paging process is made, {profile}"),
                    move || paging_process(profile),
                )
                .test(
                    format!("MEM-61 MEM-62 its page tables, {profile}"),
                    move || dump(profile),
                )
                .test(
                    format!("MEM-65 MEM-74 the first page tables of a process, {profile}"),
                    move || client_process(profile),
                )
        })
        .test(
            "MEM-53 tables are in system memory where a segment has no room",
            no_room,
        )
        .test(
            "MEM-51 tables in memory that the adapter does not have",
            refusals,
        )
        .test("MEM-65 MEM-74 MEM-80 the same without local memory", || {
            let soft = SoftAdapter::new("tables-uma")?;
            soft.set("local_memory", "0")?;
            soft.set("profile", "uma")?;
            soft.set("enabled", "1")?;
            first_tables(&soft, false)?;
            soft.remove()
        })
}

/// An adapter of this profile, whose paging node writes page tables, which are in its local memory.
fn adapter(profile: &str) -> TestResult<SoftAdapter> {
    if profile == "doc2" {
        return root::adapter("gpu_virtual", "local");
    }
    let soft = SoftAdapter::new("paging-tables")?;
    soft.set("page_table_updates", "gpu_virtual")?;
    soft.set("page_table_memory", "local")?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

/// The records of one thread, which are looked at one after the other.
struct Trace<'a>(&'a [Record]);

impl<'a> Trace<'a> {
    /// The next ones that are this, at least one of them.
    fn many(&mut self, what: &str, wanted: impl Fn(&Record) -> bool) -> TestResult<&'a [Record]> {
        let all = self.0.iter();
        let count = all
            .take_while(|one| one.what == what && wanted(one))
            .count();
        ensure!(count != 0, "no {what} at the begin of {:?}", names(self.0));
        let (found, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(found)
    }

    /// The next one, which is this.
    fn one(&mut self, what: &str) -> TestResult<&'a Record> {
        let found = self.0.first().ok_or(format!("no {what}"))?;
        ensure_eq!(found.what, what);
        self.0 = &self.0[1..];
        Ok(found)
    }
}

fn of_process(is_paging: bool) -> impl Fn(&Record) -> bool {
    move |one| (one.get("process") == 0) == is_paging
}

/// Trace 1.
fn maps(profile: &str) -> TestResult {
    const PAGES: u64 = 8;
    let soft = adapter(profile)?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = gpu.allocate_local(PAGES * PAGE)?;
    let log = Log::new(&gpu)?;
    ensure_eq!(come(&gpu, &log, &allocation)?.is_empty(), false);
    log.control("clear")?;
    let map = GpuMap {
        pages: PAGES,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let range = gpu.paging().map(Some(&allocation), &map)?;
    reaches(gpu.paging().fence(), range.value)?;
    let mut own = log.own()?;
    // What the OS part takes for them is not done by the node.
    own.retain(|one| one.what != CREATE && one.what != COMMIT);
    let batch = own.first().ok_or("nothing")?.get("batch");
    ensure!(batch != 0 && own.iter().all(|one| one.get("batch") == batch));
    let mut trace = Trace(&own);
    // Its tables are shown, the root first.
    let tables = trace.many(ALLOC, |_| true)?;
    let top = tables.iter().map(|one| one.get("level")).max();
    ensure_eq!(Some(tables[0].get("level")), top);
    ensure!(tables.iter().any(|one| one.get("level") == 0));
    ensure!(
        tables.iter().all(|one| one.get("segment") == LOCAL),
        "{tables:?}"
    );
    let process = tables[0].get("object");
    ensure!(process != 0 && tables.iter().all(|one| one.get("object") == process));
    // By entries of the paging process, which the node finds in the system page table.
    let shown = trace.many(UPDATE, of_process(true))?;
    let mut next = tables[0].get("va");
    for update in shown {
        ensure_eq!([update.get("level"), update.get("va")], [0, next]);
        let table = match profile {
            "doc2" => 2 * TABLE,
            _ => TABLE,
        };
        ensure_eq!(update.get("from"), next / table * PAGE);
        ensure!(update.get("flags") & VALID != 0);
        next += update.get("count") * PAGE;
    }
    ensure_eq!(next, tables[0].get("va") + tables.len() as u64 * PAGE);
    ensure_eq!(trace.one(FLUSH)?.get("process"), 0);
    // Entries of pages first, what leads to them last.
    let updates = trace.many(UPDATE, of_process(false))?;
    ensure!(updates.iter().all(|one| one.get("process") == process));
    ensure!(
        updates.is_sorted_by_key(|one| one.get("level")),
        "{updates:?}"
    );
    for update in updates {
        let at = tables
            .iter()
            .find(|one| one.get("va") == update.get("from"));
        ensure_eq!(at.ok_or("no table")?.get("level"), update.get("level"));
    }
    let pages: Vec<_> = updates
        .iter()
        .filter(|one| one.get("level") == 0 && one.get("flags") & INITIAL_UPDATE == 0)
        .collect();
    let mut done = 0;
    for update in &pages {
        ensure_eq!(
            [update.get("va"), update.get("source")],
            [range.address + done, done]
        );
        ensure!(update.get("segment") != 0 && update.get("flags") & VALID != 0);
        done += update.get("count") * PAGE;
    }
    ensure_eq!(done, PAGES * PAGE);
    let flush = trace.one(FLUSH)?;
    ensure_eq!(
        [flush.get("process"), flush.get("va"), flush.get("size")],
        [process, range.address, PAGES * PAGE]
    );
    let submitted = trace.one(SUBMIT)?;
    ensure_eq!(trace.one(COMPLETE)?.get("value"), submitted.get("value"));
    let freed = trace.many(FREE, |_| true)?;
    ensure_eq!(freed.len(), tables.len());
    ensure!(trace.0.is_empty(), "{:?}", names(trace.0));
    // The engines find what it has written.
    gpu.run(&Pm4::new().write(range.address + PAGE, &[0x1234]))?;
    let at = PAGE as usize;
    ensure_eq!(
        allocation.lock()?.to_vec()[at..at + 4],
        0x1234_u32.to_le_bytes()
    );
    drop((log, allocation, gpu));
    soft.remove()
}

/// Traces 2 and 3, in their whole order.
fn shows_itself(profile: &str) -> TestResult {
    let soft = adapter(profile)?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let new = local(&gpu, 100)?;
    let old = local(&gpu, 100)?;
    write(&old, 0..100)?;
    for (allocation, work, windows) in [(&new, FILL, 1), (&old, TRANSFER, 2)] {
        let own = come(&gpu, &log, allocation)?;
        let at = own
            .iter()
            .position(|one| one.what == ALLOC)
            .ok_or("no batch")?;
        let mut trace = Trace(&own[at..]);
        let shown = trace.many(ALLOC, of_process(true))?;
        ensure_eq!(shown.len(), windows);
        let updates = trace.many(UPDATE, of_process(true))?;
        ensure!(updates.iter().all(|one| one.get("from") != 0));
        // All of the one, then all of the other.
        let mut next = shown[0].get("va");
        for update in updates {
            ensure_eq!(update.get("va"), next);
            let is_source = windows == 2 && next < shown[1].get("va");
            ensure_eq!(update.get("segment") == 0, is_source);
            next += update.get("count") * PAGE;
        }
        ensure_eq!(next, shown[windows - 1].get("va") + 100 * PAGE);
        ensure_eq!(trace.one(FLUSH)?.get("process"), 0);
        let done = trace.one(work)?;
        ensure_eq!(done.get("va"), shown[windows - 1].get("va"));
        ensure_eq!([done.get("source"), done.get("size")], [0, 100 * PAGE]);
        trace.one(SUBMIT)?;
        trace.one(COMPLETE)?;
        ensure_eq!(trace.many(FREE, |_| true)?.len(), windows);
    }
    reads(&old, 0..100)?;
    let bytes = new.lock()?.to_vec();
    ensure!(bytes.iter().all(|byte| *byte == 0));
    drop((log, new, old, gpu));
    soft.remove()
}

/// An adapter of this profile, whose log is on from the start.
fn logged(profile: &str) -> TestResult<SoftAdapter> {
    let soft = adapter(profile)?;
    soft.disable()?;
    soft.set("paging_log", "1")?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

/// Trace 5: the processor initialises the tables, and nothing is submitted.
fn paging_process(profile: &str) -> TestResult {
    let soft = logged(profile)?;
    // The log is that of the adapter.
    let log = Log::unchanged(&soft.open()?)?;
    let all = log.records(|one| one.get("process") == 0)?;
    let mut trace = Trace(&all);
    trace.one("DDI CreateProcess")?;
    trace.one("DDI CreateDevice")?;
    let created = trace.many(CREATE, |_| true)?;
    let committed = trace.many(COMMIT, |_| true)?;
    let key = |one: &Record| (one.get("level"), one.get("start"));
    let mut keys: Vec<_> = created.iter().map(key).collect();
    let mut others: Vec<_> = committed.iter().map(key).collect();
    keys.sort_unstable();
    others.sort_unstable();
    ensure_eq!(keys, others);
    ensure!(committed.iter().all(|one| one.get("segment") == LOCAL));
    let leaves = match profile {
        "doc2" => 256,
        _ => 512,
    };
    ensure_eq!(keys.iter().filter(|key| key.0 == 0).count(), leaves);
    let initial = trace.many(UPDATE, |one| one.get("flags") & INITIAL_UPDATE != 0)?;
    ensure_eq!(initial.len(), created.len());
    for update in initial {
        let flags = update.get("flags") & (INITIAL_UPDATE | REPEAT | VALID);
        ensure_eq!(flags, INITIAL_UPDATE | REPEAT);
        // By the processor: no paging buffer.
        ensure_eq!(update.get("from"), 0);
    }
    let written = trace.many(UPDATE, |_| true)?;
    ensure!(written.iter().all(|one| one.get("from") == 0));
    let end = trace
        .0
        .iter()
        .position(|one| one.what == "DDI CreateContext");
    let (before, after) = trace.0.split_at(end.ok_or("no context")?);
    ensure!(!names(before).contains(&SUBMIT), "{:?}", names(before));
    ensure_eq!(names(after), ["DDI CreateContext", "DDI SetRootPageTable"]);
    ensure_eq!(after[0].get("object"), after[1].get("object"));
    let root = created.iter().max_by_key(|one| one.get("level"));
    ensure_eq!(after[1].get("offset"), root.ok_or("no root")?.get("offset"));
    drop(log);
    soft.remove()
}

/// A table as the adapter has it.
#[derive(Default)]
struct Table {
    offset: u64,
    /// Those that are not 0.
    entries: BTreeMap<u64, u64>,
}

/// The page tables of a paging process, by level and number, with entries of so many bytes.
fn tables(soft: &SoftAdapter, bytes: u64) -> TestResult<BTreeMap<(u64, u64), Table>> {
    let name = soft.get("luid")?;
    let dir = std::path::Path::new("/sys/kernel/debug/opendxg/page-tables");
    let Ok(text) = std::fs::read_to_string(dir.join(&name)) else {
        skip!("no debugfs with {name}");
    };
    let mut all = BTreeMap::new();
    let mut key = (0, 0);
    for line in text.lines().skip(1) {
        if let Some(rest) = line.strip_prefix("table ") {
            let fields: Vec<_> = rest
                .split(' ')
                .filter_map(|word| word.split_once('='))
                .map(|(_, value)| number(value))
                .collect::<TestResult<_>>()?;
            key = (fields[0], fields[1]);
            ensure_eq!(fields[2], LOCAL);
            let table = Table {
                offset: fields[3],
                ..Table::default()
            };
            ensure!(all.insert(key, table).is_none());
            continue;
        }
        let (index, word) = line.split_once(' ').ok_or("no word")?;
        let (index, word) = (number(index)?, number(word)?);
        let table = all.get_mut(&key).ok_or("no table")?;
        match bytes {
            8 => drop(table.entries.insert(index, word)),
            _ => {
                let halves = [word & 0xffff_ffff, word >> 32];
                let entries = (2 * index..).zip(halves).filter(|(_, entry)| *entry != 0);
                table.entries.extend(entries);
            }
        }
    }
    Ok(all)
}

fn number(text: &str) -> TestResult<u64> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    Ok(number.map_err(|_| "no number")?)
}

/// Where an entry leads that is valid, in local memory, and to be written.
fn leads_to(entry: u64) -> TestResult<u64> {
    ensure_eq!(entry & 0x39, 0x11, "{entry:#x}");
    Ok(entry & 0xf_ffff_ffff_f000)
}

/// Decoded by what `gpu.md` GPU-64 says of entries, and compared one by one.
fn dump(profile: &str) -> TestResult {
    let soft = adapter(profile)?;
    let (levels, bits, bytes) = match profile {
        "doc2" => (2, 10, 4),
        _ => (4, 9, 8),
    };
    let tables = tables(&soft, bytes)?;
    let table_bytes = PAGE << bits;
    let leaves = END / table_bytes;
    let of_level = |level| tables.keys().filter(move |key| key.0 == level).count() as u64;
    ensure_eq!(of_level(0), leaves);
    for level in 1..levels {
        ensure_eq!(of_level(level), 1, "level {level}");
        // Each leads to all that are below it, and nowhere else.
        let table = &tables[&(level, 0)];
        let below = if level == 1 { leaves } else { 1 };
        ensure_eq!(table.entries.len() as u64, below);
        for (index, entry) in &table.entries {
            let target = tables.get(&(level - 1, *index)).ok_or("no table")?;
            ensure_eq!(leads_to(*entry)?, target.offset);
        }
    }
    // The system page table shows where those of the scratch area are, and not itself.
    let system = &tables[&(0, 0)];
    let scratch = 1..PERMANENT / table_bytes;
    let shown: Vec<_> = system.entries.keys().copied().collect();
    ensure_eq!(shown, scratch.clone().collect::<Vec<_>>());
    for (index, entry) in &system.entries {
        ensure_eq!(leads_to(*entry)?, tables[&(0, *index)].offset);
        // Only the system may use it.
        ensure!(entry & 0x42 == 0x42, "{entry:#x}");
    }
    // The scratch area is empty. Behind it is the paging buffer alone.
    for number in scratch {
        ensure!(tables[&(0, number)].entries.is_empty(), "table {number}");
    }
    let permanent: Vec<_> = (PERMANENT / table_bytes..leaves)
        .flat_map(|number| {
            tables[&(0, number)]
                .entries
                .keys()
                .map(move |at| (number, *at))
        })
        .collect();
    ensure_eq!(permanent, [(PERMANENT / table_bytes, 0)]);
    soft.remove()
}

/// Trace 6.
fn client_process(profile: &str) -> TestResult {
    let soft = adapter(profile)?;
    first_tables(&soft, true)?;
    soft.remove()
}

fn first_tables(soft: &SoftAdapter, by_node: bool) -> TestResult {
    let log = Log::all(&soft.open()?)?;
    let device = soft.device()?;
    let allocations: Vec<_> = (0..100)
        .map(|_| Ok(device.new_resource().linear(PAGE).create_one()?))
        .collect::<TestResult<_>>()?;
    let queue = device.create_paging_queue()?;
    let client = |one: &Record| one.get("process") != 0;
    let all = log.records(client)?;
    ensure_eq!(names(&all), ["DDI CreateProcess", CREATE]);
    log.control("clear")?;
    let made = queue.make_resident(&[&allocations[0]], ResidentFlags::empty())?;
    reaches(queue.fence(), made.value()?)?;
    let all = log.records(|_| true)?;
    let at = all.iter().position(|one| one.what == COMMIT && client(one));
    let mut trace = Trace(&all[at.ok_or("no table")?..]);
    let committed = trace.one(COMMIT)?;
    if by_node {
        ensure_eq!(trace.one(ALLOC)?.get("offset"), committed.get("offset"));
        trace.many(UPDATE, of_process(true))?;
        ensure_eq!(trace.one(FLUSH)?.get("process"), 0);
    }
    let update = trace.one(UPDATE)?;
    ensure_eq!(update.get("process"), committed.get("process"));
    let flags = update.get("flags") & (INITIAL_UPDATE | REPEAT | VALID);
    ensure_eq!(flags, INITIAL_UPDATE | REPEAT);
    ensure_eq!(
        [update.get("level"), update.get("start")],
        [committed.get("level"), 0]
    );
    trace.one(FLUSH)?;
    ensure_eq!(names(trace.0).contains(&SUBMIT), by_node);
    // It was for once.
    log.control("clear")?;
    let made = queue.make_resident(&[&allocations[1]], ResidentFlags::empty())?;
    reaches(queue.fence(), made.value()?)?;
    ensure!(!names(&log.records(client)?).contains(&UPDATE));
    drop((log, allocations, queue, device));
    Ok(())
}

fn no_room() -> TestResult {
    let soft = adapter("vram4")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let log = Log::new(&gpu)?;
    // New tables of each level but the root.
    let map = |address: u64| -> TestResult<Vec<u64>> {
        log.control("clear")?;
        let request = GpuMap {
            base: address,
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = gpu.paging().map(Some(buffer.allocation()), &request)?;
        reaches(gpu.paging().fence(), range.value)?;
        gpu.run(&Pm4::new().write(range.address + 8, &[address as u32 >> 12]))?;
        ensure_eq!(buffer.get32(8), address as u32 >> 12);
        let made = log.records(|one| one.what == CREATE && one.get("process") != 0)?;
        Ok(made.iter().map(|one| one.get("segment")).collect())
    };
    ensure_eq!(map(1 << 40)?, [LOCAL; 3]);
    leave_room(&gpu, &log, 0)?;
    ensure_eq!(map(2 << 40)?, [0; 3]);
    log.control("segment 4294967295")?;
    ensure_eq!(map(3 << 40)?, [LOCAL; 3]);
    drop((log, buffer, gpu));
    soft.remove()
}

fn refusals() -> TestResult {
    let soft = SoftAdapter::new("tables-refused")?;
    ensure!(soft.set("page_table_memory", "aperture").is_err());
    soft.set("page_table_memory", "local")?;
    // There has to be some, in pages of the size of a table.
    ensure!(soft.set("local_memory", "0").is_err());
    ensure!(soft.set("use_64kb_pages", "1").is_err());
    soft.set("page_table_memory", "system")?;
    soft.set("local_memory", "0")?;
    ensure!(soft.set("page_table_memory", "local").is_err());
    soft.remove()
}
