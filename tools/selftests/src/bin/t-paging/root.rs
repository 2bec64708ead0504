// SPDX-License-Identifier: MIT OR Apache-2.0
//! A root of page tables that grows (trace 8), whether the processor or the paging node writes it.

use opendxg::pm4::Pm4;
use opendxg::GpuMap;
use rustix::io::Errno;
use selftests::gpu::{reaches, Gpu, PAGE, READ_WRITE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, skip, Suite, TestResult};

use crate::t_paging::log::{names, Log, Record};
use crate::t_paging::traces::{FLUSH, NOTIFY_EVICTION, UPDATE};

/// The last page of addresses of two levels.
const LAST: u64 = (1 << 32) - PAGE;
/// So many entries lead to it.
const ENTRIES: u64 = 1024;
/// The level of a root.
const ROOT: u64 = 1;
const INITIAL_UPDATE: u64 = 1;
const REPEAT: u64 = 4;

pub(crate) fn tests(suite: Suite) -> Suite {
    [
        ("cpu_virtual", "system"),
        ("cpu_virtual", "local"),
        ("gpu_virtual", "local"),
    ]
    .into_iter()
    .fold(suite, |suite, (updates, tables)| {
        suite.test(
            format!(
                "MEM-54 MEM-55 MEM-59 MEM-76 a new root is whole before contexts have it, \
                 the old goes behind them, {updates}, {tables} memory"
            ),
            move || grows(updates, tables),
        )
    })
}

/// An adapter with page tables of two levels. Skips the test if they do not reach all memory.
pub(crate) fn adapter(updates: &str, tables: &str) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new("paging-root")?;
    soft.set("profile", "doc2")?;
    soft.set("page_table_updates", updates)?;
    soft.set("page_table_memory", tables)?;
    match soft.set("enabled", "1") {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => {
            skip!("system memory ends above 4 GiB")
        }
        other => other?,
    }
    Ok(soft)
}

/// The only record that is about this.
fn only(records: &[Record], what: &str) -> TestResult<usize> {
    let found: Vec<_> = (0..records.len())
        .filter(|at| records[*at].what == what)
        .collect();
    ensure_eq!(found.len(), 1, "{what}: {:?}", names(records));
    Ok(found[0])
}

fn grows(updates: &str, tables: &str) -> TestResult {
    let soft = adapter(updates, tables)?;
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let other = Gpu::on(&device, 1)?;
    let buffer = gpu.buffer(PAGE)?;
    let log = Log::new(&gpu)?;
    let map = GpuMap {
        base: LAST,
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let range = gpu.paging().map(Some(buffer.allocation()), &map)?;
    reaches(gpu.paging().fence(), range.value)?;
    let mut own = log.own()?;
    // How the node gets at them is for `tables.rs`.
    own.retain(|one| one.get("process") != 0 && !one.what.starts_with("VA_"));
    own.retain(|one| one.what != "SUBMIT" && one.what != "COMPLETE");
    let created = own
        .iter()
        .position(|one| one.what == "PT_CREATE" && one.get("level") == ROOT)
        .ok_or("no new root")?;
    let root = own[created].get("offset");
    let suspended = only(&own, "SUSPEND")?;
    let freed = only(&own, "PT_FREE")?;
    let resumed = only(&own, "RESUME")?;
    let sets: Vec<_> = (0..own.len())
        .filter(|at| own[*at].what == "DDI SetRootPageTable")
        .collect();
    ensure_eq!(sets.len(), 2, "{:?}", names(&own));
    // All of the new root is invalid, then it has what the old one had.
    ensure!(suspended < created, "{:?}", names(&own));
    let committed = &own[created + 1];
    ensure_eq!(committed.what, "COMMIT");
    ensure_eq!(committed.get("offset"), root);
    let mut copied: Vec<_> = own[created..sets[0]]
        .iter()
        .filter(|one| one.what == UPDATE && one.get("level") == ROOT)
        .collect();
    // The driver knows that the old one goes while nobody uses it.
    let leaving = copied.pop().ok_or("no update")?;
    ensure!(leaving.get("flags") & NOTIFY_EVICTION != 0);
    ensure!(copied.len() >= 2, "{:?}", names(&own));
    let initial = INITIAL_UPDATE | REPEAT;
    ensure_eq!(copied[0].get("flags") & initial, initial);
    ensure_eq!(
        [copied[0].get("start"), copied[0].get("count")],
        [0, ENTRIES]
    );
    ensure!(copied[1..]
        .iter()
        .all(|one| one.get("flags") & INITIAL_UPDATE == 0));
    // Each context learns of the new one, once.
    ensure_eq!(sets[1], sets[0] + 1);
    for at in &sets {
        ensure_eq!(
            [own[*at].get("offset"), own[*at].get("count")],
            [root, ENTRIES]
        );
    }
    ensure!(own[sets[0]].get("object") != own[sets[1]].get("object"));
    // No engine remembers the old one when it goes; then they go on.
    let flushed = own[sets[1]..freed].iter().any(|one| one.what == FLUSH);
    ensure!(flushed, "{:?}", names(&own));
    ensure!(own[freed].get("offset") != root);
    ensure!(sets[1] < freed && freed < resumed);
    for gpu in [&gpu, &other] {
        gpu.run(&Pm4::new().write(LAST, &[5]))?;
        ensure_eq!(buffer.get32(0), 5);
        buffer.set32(0, 0);
    }
    drop((log, buffer, other, gpu, device));
    soft.remove()
}
