// SPDX-License-Identifier: MIT OR Apache-2.0
//! Save areas elsewhere than usual: in system memory, and of all contexts of a device.

use selftests::gpu::Gpu;
use selftests::kernel_log::KernelLog;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::{content, expected, has, only, Saved, BEHIND, CREATE, DESTROY, MAPPED, PAGES, ROOT};
use crate::t_paging::log::{names, Record};

const SHOW: &str = "BUILD MapApertureSegment";
const HIDE: &str = "BUILD UnmapApertureSegment";
const INIT: &str = "BUILD InitContextResource";

pub(super) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-84 the aperture shows one in system memory before anything runs, and to its end",
            in_aperture,
        )
        .test(
            "MEM-82 MEM-83 one of a device is there as long as any of its contexts may run",
            of_device,
        )
}

/// The records about one object.
fn about(all: &[Record], object: u64) -> Vec<&Record> {
    all.iter()
        .filter(|one| one.get("object") == object)
        .collect()
}

/// Demands that these are all records with these names, in this order.
fn in_order(all: &[&Record], wanted: &[&str]) -> TestResult {
    let found = all.iter().map(|one| one.what.as_str());
    let found: Vec<_> = found.filter(|what| wanted.contains(what)).collect();
    ensure_eq!(found, wanted);
    Ok(())
}

fn in_aperture() -> TestResult {
    let saved = Saved::new("context-aperture", "visible system")?;
    let (another, all) = saved.another()?;
    let create = only(&all, CREATE)?;
    let object = create.get("object");
    let own = about(&all, object);
    in_order(&own, &[CREATE, "PIN", SHOW, INIT])?;
    ensure!(own.iter().all(|one| one.what != "COMMIT"));
    // One range for all of it, which the driver is told.
    let (shown, init) = (only(&all, SHOW)?, only(&all, INIT)?);
    ensure_eq!([shown.get("start"), shown.get("count")], [0, PAGES]);
    ensure!(shown.get("segment") != 0);
    for name in ["segment", "offset"] {
        ensure_eq!(init.get(name), shown.get(name));
    }
    let root = only(&all, ROOT)?;
    let submitted = all.iter().find(|one| one.what == "SUBMIT");
    ensure!(shown.number < submitted.ok_or("nothing was submitted")?.number);
    ensure!(shown.number < root.number, "{:?}", names(&all));
    // What the driver writes there is what the GPU reads.
    let address = only(&all, MAPPED)?.get("va");
    has(&content(&another, address)?, expected(1, root))?;
    saved.log.control("clear")?;
    drop(another);
    let mut end = Vec::new();
    eventually("its memory goes", || {
        end = saved.log.records(|_| true).unwrap_or_default();
        about(&end, object).iter().any(|one| one.what == "UNPIN")
    })?;
    in_order(&about(&end, object), &[DESTROY, HIDE, "UNPIN"])?;
    let hidden = only(&end, HIDE)?;
    for name in ["segment", "offset", "count"] {
        ensure_eq!(hidden.get(name), shown.get(name));
    }
    saved.gpu.works()?;
    saved.remove()
}

fn of_device() -> TestResult {
    let saved = Saved::new("context-device", "visible device")?;
    let mut blame = KernelLog::new()?;
    saved.log.control("clear")?;
    let device = saved.soft.device()?;
    let first = Gpu::on(&device, 1)?;
    let second = Gpu::on(&device, 2)?;
    let all = saved.log.records(|_| true)?;
    let create = only(&all, CREATE)?;
    let object = create.get("object");
    let address = only(&all, MAPPED)?.get("va");
    let roots: Vec<_> = all.iter().filter(|one| one.what == ROOT).collect();
    ensure_eq!(roots.len(), 2);
    // It is there before any context is.
    ensure!(create.number < roots[0].number, "{:?}", names(&all));
    ensure!(about(&all, object).iter().any(|one| one.what == "COMMIT"));
    for gpu in [&first, &second] {
        has(&content(gpu, address)?, expected(2, roots[1]))?;
    }
    // It stays where it is when they come and go.
    saved.log.control("clear")?;
    drop((first, second));
    for number in 3..6 {
        let next = Gpu::on(&device, number % 3)?;
        has(&content(&next, address)?, expected(number, roots[1]))?;
    }
    let all = saved.log.records(|_| true)?;
    ensure_eq!(all.iter().filter(|one| one.what == ROOT).count(), 3);
    for what in [CREATE, "CB MapContextAllocation", DESTROY, "DECOMMIT"] {
        let mut own = all.iter().filter(|one| one.get("object") == object);
        ensure!(own.all(|one| one.what != what), "{what}");
    }
    drop(device);
    let mut end = Vec::new();
    eventually("its memory goes with the device", || {
        end = saved.log.records(|_| true).unwrap_or_default();
        about(&end, object).iter().any(|one| one.what == "DECOMMIT")
    })?;
    in_order(&about(&end, object), &[DESTROY, "DECOMMIT"])?;
    ensure_eq!(blame.find(BEHIND)?, Vec::<String>::new());
    saved.gpu.works()?;
    saved.remove()
}
