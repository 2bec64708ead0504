// SPDX-License-Identifier: MIT OR Apache-2.0
//! Context allocations (memory.md section 10): memory that the driver of a software adapter makes
//! for each context, where `save_areas` says so. It has what `rust/kmd/soft/save_area.rs` says.

use selftests::gpu::{Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{Log, Record};

mod clients;
mod ends;
mod handles;
mod hangs;
mod life;
mod places;
mod root;
mod update;

/// Pages of a save area.
const PAGES: u64 = 16;
/// The first dword of each.
const MAGIC: u32 = 0x5347_5844;

const CREATE: &str = "CB CreateContextAllocation";
const MAPPED: &str = "RETURN MapContextAllocation";
const ROOT: &str = "DDI SetRootPageTable";
const DESTROY: &str = "CB DestroyContextAllocation";
/// What the kernel's log says of a driver that has left one behind.
const BEHIND: &str = "driver bug: it has left context allocation";

pub(crate) fn main() {
    let suite = Suite::new("context-allocations");
    let suite = root::tests(clients::tests(life::tests(update::tests(suite))));
    let suite = ends::tests(places::tests(hangs::tests(suite)));
    handles::tests(suite).run()
}

/// An adapter whose contexts have save areas of this kind, and a client on it.
struct Saved {
    gpu: Gpu,
    log: Log,
    soft: SoftAdapter,
}

impl Saved {
    fn new(name: &str, areas: &str) -> TestResult<Self> {
        Self::on(SoftAdapter::new(name)?, areas)
    }

    /// On an adapter that is configured further and not enabled yet.
    fn on(soft: SoftAdapter, areas: &str) -> TestResult<Self> {
        soft.set("save_areas", areas)?;
        soft.set("enabled", "1")?;
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let log = Log::new(&gpu)?;
        Ok(Self { gpu, log, soft })
    }

    /// One more context, with what has happened for it.
    fn another(&self) -> TestResult<(Gpu, Vec<Record>)> {
        self.log.control("clear")?;
        let gpu = Gpu::on(self.gpu.device(), 1)?;
        let all = self.log.records(|_| true)?;
        Ok((gpu, all))
    }

    fn remove(self) -> TestResult {
        drop((self.log, self.gpu));
        self.soft.remove()
    }
}

/// The only record with this name.
fn only<'a>(records: &'a [Record], what: &str) -> TestResult<&'a Record> {
    let mut found = records.iter().filter(|one| one.what == what);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(format!("no {what}").into()),
        (Some(_), Some(_)) => Err(format!("{what} more than once").into()),
    }
}

/// What a save area is to have after an update with this number, by the call that said where page
/// tables begin.
fn expected(number: u32, root: &Record) -> [u32; 6] {
    let table = root.get("offset");
    let entries = root.get("count");
    [
        MAGIC,
        number,
        table as u32,
        (table >> 32) as u32,
        entries as u32,
        0,
    ]
}

/// What the GPU finds at an address of this many pages.
fn content(gpu: &Gpu, address: u64) -> TestResult<Vec<u32>> {
    let buffer = gpu.buffer(PAGES * PAGE)?;
    let copy = opendxg::pm4::Pm4::new().copy(buffer.address(), address, PAGES * PAGE);
    gpu.run(&copy)?;
    Ok((0..PAGES * PAGE / 4)
        .map(|dword| buffer.get32(dword * 4))
        .collect())
}

/// Demands that a save area has this, and zeros behind it.
fn has(found: &[u32], wanted: [u32; 6]) -> TestResult {
    let (head, rest) = found.split_at(wanted.len());
    ensure_eq!(head, wanted, "{head:x?}");
    ensure!(rest.iter().all(|dword| *dword == 0));
    Ok(())
}
