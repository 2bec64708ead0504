// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the creation of a context allocation to its end.

use opendxg::EvictFlags;
use selftests::gpu::PAGE;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::{content, expected, has, only, Saved, CREATE, MAPPED, PAGES, ROOT};
use crate::t_paging::engine::local;
use crate::t_paging::log::{names, Record};
use crate::t_paging::traces::resident;

pub(super) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-82 MEM-83 MEM-84 one range, which the driver initialises once",
            created,
        )
        .test(
            "MEM-83 it stays where it is when local memory is short",
            stays,
        )
        .test("MEM-90 its memory goes after its context", ends)
        .test("MEM-82 only an adapter with a paging node has them", nodes)
}

fn created() -> TestResult {
    let saved = Saved::new("context-created", "private")?;
    let (another, all) = saved.another()?;
    let create = only(&all, CREATE)?;
    ensure_eq!(create.get("size"), PAGES * PAGE);
    ensure_eq!(
        only(&all, "RETURN CreateContextAllocation")?.get("status"),
        0
    );
    let own: Vec<_> = all
        .iter()
        .filter(|one| one.get("object") == create.get("object"))
        .collect();
    let at = |what: &str| own.iter().position(|one| one.what == what).ok_or("missing");
    let memory: Vec<_> = own.iter().filter(|one| one.what == "COMMIT").collect();
    ensure_eq!(memory.len(), 1);
    ensure_eq!([memory[0].get("start"), memory[0].get("count")], [0, PAGES]);
    // It is cleared, shown to the paging process and initialised before its context has a root.
    let init = only(&all, "BUILD InitContextResource")?;
    for name in ["object", "segment", "offset"] {
        ensure_eq!(init.get(name), memory[0].get(name));
    }
    ensure!(at("COMMIT")? < at("FILL")?);
    ensure!(at("FILL")? < at("BUILD InitContextResource")?);
    ensure!(init.number < only(&all, ROOT)?.number);
    // Work of its context changes nothing of that.
    saved.log.control("clear")?;
    drop(another.buffer(PAGE)?);
    another.finish()?;
    let later = saved
        .log
        .records(|one| one.get("object") == create.get("object"))?;
    ensure!(later.is_empty(), "{:?}", names(&later));
    drop(another);
    saved.remove()
}

/// Four times as much as there is comes and goes.
fn stays() -> TestResult {
    const MEMORY: u64 = 1 << 20;
    const PART: u64 = 64;
    let soft = SoftAdapter::new("context-stays")?;
    soft.set("local_memory", &MEMORY.to_string())?;
    let saved = Saved::on(soft, "visible")?;
    let (another, all) = saved.another()?;
    let object = only(&all, CREATE)?.get("object");
    let root = only(&all, ROOT)?;
    let address = only(&all, MAPPED)?.get("va");
    let mut parts = Vec::new();
    for _ in 0..4 * MEMORY / (PART * PAGE) {
        let part = local(&saved.gpu, PART)?;
        ensure_eq!(resident(&saved.gpu, &part)?, 0);
        let device = saved.gpu.device();
        device.evict(&[&part], EvictFlags::ONLY_IF_NECESSARY)?;
        parts.push(part);
    }
    let gone = saved.log.records(|one| one.what == "DECOMMIT")?;
    ensure!(!gone.is_empty());
    ensure!(gone.iter().all(|one| one.get("object") != object));
    has(&content(&another, address)?, expected(1, root))?;
    drop((parts, another));
    saved.remove()
}

fn ends() -> TestResult {
    let saved = Saved::new("context-ends", "visible")?;
    let (another, all) = saved.another()?;
    let object = only(&all, CREATE)?.get("object");
    let address = only(&all, MAPPED)?.get("va");
    saved.log.control("clear")?;
    drop(another);
    let gone = |all: &[Record]| {
        let mut all = all.iter();
        all.any(|one| one.what == "DECOMMIT" && one.get("object") == object)
    };
    eventually("its memory goes", || {
        saved.log.records(|_| true).is_ok_and(|all| gone(&all))
    })?;
    let all = saved.log.records(|_| true)?;
    let call = only(&all, "CB DestroyContextAllocation")?;
    ensure_eq!(call.get("object"), object);
    let answer = only(&all, "RETURN DestroyContextAllocation")?;
    ensure_eq!(answer.get("status"), 0);
    // No address leads there any more, and no translation, when it goes.
    let at = |what: &str, address: u64| {
        let mut all = all.iter();
        all.find(|one| one.what == what && one.get("va") == address)
            .map(|one| one.number)
            .ok_or(format!("no {what}"))
    };
    let (hidden, flushed) = (
        at("BUILD UpdatePageTable", address)?,
        at("BUILD FlushTlb", address)?,
    );
    let freed = only(&all, "DECOMMIT")?.number;
    ensure!(hidden < flushed && flushed < freed, "{:?}", names(&all));
    saved.gpu.works()?;
    saved.remove()
}

fn nodes() -> TestResult {
    for (name, value) in [("nodes", "1"), ("local_memory", "0")] {
        let soft = SoftAdapter::new("context-nodes")?;
        soft.set("save_areas", "private")?;
        ensure!(soft.set(name, value).is_err());
        soft.set("save_areas", "none")?;
        soft.set(name, value)?;
        ensure!(soft.set("save_areas", "private").is_err());
        ensure!(soft.set("save_areas", "visible device system").is_err());
        soft.set("enabled", "1")?;
        soft.remove()?;
    }
    Ok(())
}
