// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documented case: a save area says where page tables begin, and that moves.

use opendxg::GpuMap;
use rustix::io::Errno;
use selftests::gpu::{reaches, PAGE, READ_WRITE};
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, skip, Suite, TestResult};

use super::{content, expected, has, only, Saved, MAPPED, ROOT};
use crate::t_paging::log::names;

/// The last page of addresses of two levels.
const LAST: u64 = (1 << 32) - PAGE;

pub(super) fn tests(suite: Suite) -> Suite {
    suite.test(
        "MEM-76 MEM-88 MEM-89 a save area has the new root when it moves, and no copy of the old",
        moves,
    )
}

/// With page tables of two levels. Skips the test if they do not reach all memory.
fn saved() -> TestResult<Saved> {
    let soft = SoftAdapter::new("context-root")?;
    soft.set("profile", "doc2")?;
    soft.set("save_areas", "visible")?;
    match soft.set("enabled", "1") {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => {
            skip!("system memory ends above 4 GiB")
        }
        other => other?,
    }
    soft.disable()?;
    Saved::on(soft, "visible")
}

fn moves() -> TestResult {
    let saved = saved()?;
    let (another, all) = saved.another()?;
    let address = only(&all, MAPPED)?.get("va");
    let before = only(&all, ROOT)?;
    has(&content(&another, address)?, expected(1, before))?;
    let buffer = saved.gpu.buffer(PAGE)?;
    saved.log.control("clear")?;
    let map = GpuMap {
        base: LAST,
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let range = saved.gpu.paging().map(Some(buffer.allocation()), &map)?;
    reaches(saved.gpu.paging().fence(), range.value)?;
    let all = saved.log.records(|_| true)?;
    let found = |what: &str| -> Vec<u64> {
        let found = all.iter().filter(|one| one.what == what);
        found.map(|one| one.number).collect()
    };
    // Each of both contexts is told while none of them runs, and updates before the old root goes.
    let (told, calls) = (found(ROOT), found("CB UpdateContextAllocation"));
    let (submits, returns) = (found("SUBMIT"), found("RETURN UpdateContextAllocation"));
    let (suspended, resumed) = (found("SUSPEND"), found("RESUME"));
    let freed = found("PT_FREE");
    for some in [&told, &calls, &submits, &returns] {
        ensure_eq!(some.len(), 2, "{:?}", names(&all));
    }
    ensure!(suspended[0] < told[0]);
    for at in 0..2 {
        let order = [told[at], calls[at], submits[at], returns[at]];
        ensure!(order.is_sorted(), "{:?}", names(&all));
    }
    ensure!(returns[0] < told[1]);
    ensure!(returns[1] < freed[0] && freed[0] < resumed[resumed.len() - 1]);
    // The next work of the context finds the new one, and nothing of the old.
    let context = before.get("object");
    let after = all
        .iter()
        .find(|one| one.what == ROOT && one.get("object") == context)
        .ok_or("not told")?;
    ensure!(after.get("offset") != before.get("offset"));
    let words = content(&another, address)?;
    has(&words, expected(2, after))?;
    let old = before.get("offset") as u32;
    ensure!(words.iter().all(|word| *word != old));
    drop((buffer, another));
    saved.remove()
}
