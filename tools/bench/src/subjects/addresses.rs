// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU addresses while there are many mappings: of the process, and of all processes.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use opendxg::{Adapter, Allocation, Dxg, PagingQueue};

use super::{names, Bench};
use crate::gpu::{make_resident, map, PAGE};
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::rng::Rng;

/// The group of mappings of the process.
pub const GROUP: &str = "addresses";
/// The group of mappings of other processes on the same adapter.
pub const OF_OTHERS: &str = "addresses-of-others";
/// Mappings that the process has already. It may have 65,536 stretches (MEM-50).
pub const OWN: [u64; 5] = [10, 100, 1_000, 10_000, 60_000];
/// Mappings that other processes have.
pub const FOREIGN: [u64; 2] = [0, 1_000_000];
/// Mappings of one of them.
const EACH: u64 = 50_000;
/// The word that makes this program such a process. A number follows.
pub const ARGUMENT: &str = "--mappings";

/// The address is left to the driver, and the range is freed.
pub const PICKED: &str = "map and free";
/// The address is beside a mapping that chance chooses.
pub const AMONG: &str = "map and free, among the others";
/// 128 KiB, while there is a gap of 64 KiB below all others.
pub const BEHIND: &str = "map and free 32 pages, behind a gap";
/// Pages of those.
const LARGE: u64 = 32;

/// Mappings of a page, of which the driver has picked the addresses.
struct Mappings<'a> {
    paging: &'a PagingQueue,
    adapter: &'a Adapter,
    allocation: Allocation,
    addresses: RefCell<Vec<u64>>,
    rng: RefCell<Rng>,
}

impl<'a> Mappings<'a> {
    fn new(paging: &'a PagingQueue) -> Self {
        let device = paging.device();
        let allocation = device.new_resource().linear(LARGE * PAGE).create_one();
        let allocation = allocation.expect("create an allocation");
        make_resident(paging, &allocation);
        Self {
            paging,
            adapter: device.adapter(),
            allocation,
            addresses: RefCell::default(),
            rng: Rng::new(1).into(),
        }
    }

    fn map(&self, base: u64) -> u64 {
        map(self.paging, &self.allocation, 1, base)
    }

    fn free(&self, address: u64) {
        self.free_pages(address, 1);
    }

    fn free_pages(&self, address: u64, pages: u64) {
        let freed = self.adapter.free_gpu_range(address, pages * PAGE);
        freed.expect("free a range");
    }

    /// Makes or frees mappings until there are so many.
    fn resize(&self, count: u64) {
        let mut addresses = self.addresses.borrow_mut();
        while addresses.len() as u64 > count {
            addresses.pop().into_iter().for_each(|last| self.free(last));
        }
        while (addresses.len() as u64) < count {
            addresses.push(self.map(0));
        }
    }

    fn pick_and_free(&self) {
        self.free(self.map(0));
    }

    /// The driver picks multiples of 64 KiB, so the page behind a mapping is free.
    fn map_and_free_among(&self) {
        let addresses = self.addresses.borrow();
        let chosen = self.rng.borrow_mut().below(addresses.len());
        self.free(self.map(addresses[chosen] + PAGE));
    }
}

/// There is a gap while it is measured, which is too small.
struct Behind<'a>(&'a Mappings<'a>);

impl Behind<'_> {
    fn first(&self) -> u64 {
        self.0.addresses.borrow()[0]
    }
}

impl Subject for Behind<'_> {
    fn begin(&mut self, _operations: usize) {
        self.0.free(self.first());
    }

    fn run(&mut self) {
        let address = map(self.0.paging, &self.0.allocation, LARGE, 0);
        self.0.free_pages(address, LARGE);
    }

    fn end(&mut self) {
        self.0.map(self.first());
    }
}

/// Measures the group of mappings of the process.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let paging = bench.device.create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let mappings = Mappings::new(&paging);
    let mut all = Vec::new();
    for count in OWN {
        let mappings = &mappings;
        all.push(Participant::at(PICKED, count, || mappings.pick_and_free()));
        all.push(Participant::at(AMONG, count, || {
            mappings.map_and_free_among();
        }));
        all.push(Participant::at(BEHIND, count, Behind(mappings)));
        let no_op = || bench.dxg.no_op().expect("no-op");
        all.push(Participant::at(names::NO_OP, count, no_op));
    }
    runner.staged_group(
        GROUP,
        "MapGpuVirtualAddress and FreeGpuVirtualAddress while the process has N mappings",
        plan,
        all,
        |count| mappings.resize(count),
    );
}

/// Another process with mappings on the first adapter. Ends when dropped.
struct Other(Child);

impl Other {
    fn start() -> Self {
        let program = std::env::current_exe().expect("path of this program");
        let child = Command::new(program)
            .args([ARGUMENT, &EACH.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("start a process"))
    }

    /// Waits until it has its mappings.
    fn wait(&mut self) {
        let ready = self.0.stdout.as_mut().expect("a pipe").read(&mut [0]);
        assert_eq!(ready.expect("read"), 1, "the process has failed");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let ended = self.0.wait().expect("a process that ends");
        assert!(ended.success(), "{ended}");
    }
}

/// What such a process does.
///
/// # Panics
///
/// If it gets no mappings.
pub fn serve(count: Option<String>) {
    let count = count.and_then(|count| count.parse().ok());
    let dxg = Dxg::open().expect("open the driver");
    let device = dxg.adapters().expect("adapters")[0].create_device();
    let paging = device.expect("create a device").create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let mappings = Mappings::new(&paging);
    mappings.resize(count.expect("a number of mappings"));
    let ready = std::io::stdout().write_all(b"r");
    ready
        .and_then(|()| std::io::stdout().flush())
        .expect("write");
    // Until the other side closes it.
    let _ = std::io::stdin().read(&mut [0]);
}

/// Measures the group of mappings of other processes.
pub fn of_others(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let paging = bench.device.create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let mappings = Mappings::new(&paging);
    mappings.resize(OWN[0]);
    let mut all = Vec::new();
    for count in FOREIGN {
        let mappings = &mappings;
        all.push(Participant::at(PICKED, count, || mappings.pick_and_free()));
        let no_op = || bench.dxg.no_op().expect("no-op");
        all.push(Participant::at(names::NO_OP, count, no_op));
    }
    let mut others: Vec<Other> = Vec::new();
    runner.staged_group(
        OF_OTHERS,
        "MapGpuVirtualAddress and FreeGpuVirtualAddress while others have N mappings",
        plan,
        all,
        |count| {
            let before = others.len();
            others.resize_with((count / EACH) as usize, Other::start);
            others.iter_mut().skip(before).for_each(Other::wait);
        },
    );
}
