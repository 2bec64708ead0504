// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast bytes come to local memory and go back, against a thread that copies as many.

use std::cell::RefCell;
use std::hint::black_box;

use opendxg::{Allocation, Device, EvictFlags, PagingQueue};

use opendxg::pm4::Pm4;

use super::gpu::names_of_work::{COPY, MEMCPY, MEMSET};
use super::gpu::{Line, NODES};
use super::Bench;
use crate::adapter::SoftAdapter;
use crate::gpu::{make_resident, Buffer, Commands};
use crate::measure::{Participant, Plan, Runner, Subject};

/// The paging node of the adapter moves bytes.
pub const BY_NODE: &str = "residency";
/// The adapter has no paging node, so the processor does it.
pub const BY_PROCESSOR: &str = "residency-by-processor";
/// Bytes of the allocation.
pub const SIZES: [u64; 4] = [4 << 10, 64 << 10, 1 << 20, 16 << 20];
/// Where bytes begin, as the kernel's pages do.
const ALIGNMENT: usize = 4096;

/// Nobody has touched the memory: it is filled with zeros.
pub const MAKE_ZEROS: &str = "MakeResident, untouched";
/// The bytes are copied.
pub const MAKE: &str = "MakeResident, with contents";
/// The bytes are copied back.
pub const EVICT: &str = "Evict";
/// The process says that nobody has written to it.
pub const EVICT_CLEAN: &str = "Evict, not written to";

/// An allocation in local memory that is made for each operation.
struct Untouched<'a> {
    paging: &'a PagingQueue,
    bytes: u64,
    allocation: Option<Allocation>,
}

impl Subject for Untouched<'_> {
    fn before(&mut self) {
        self.allocation = Some(local(self.paging.device(), self.bytes));
    }

    fn run(&mut self) {
        make_resident(self.paging, self.allocation.as_ref().expect("just made"));
    }

    fn after(&mut self) {
        let allocation = self.allocation.take().expect("just made");
        allocation.destroy().expect("destroy an allocation");
    }
}

/// An allocation with bytes, which is resident only for a while.
struct Contents<'a> {
    paging: &'a PagingQueue,
    allocation: Allocation,
}

impl<'a> Contents<'a> {
    fn new(paging: &'a PagingQueue, bytes: u64) -> Self {
        let allocation = local(paging.device(), bytes);
        allocation.lock_write().expect("map it").fill(0x5a);
        Self { paging, allocation }
    }

    fn come(&self) {
        make_resident(self.paging, &self.allocation);
    }

    fn go(&self, flags: EvictFlags) {
        let gone = self.paging.device().evict(&[&self.allocation], flags);
        gone.expect("evict");
    }
}

/// It comes, which is timed.
struct Coming<'a>(Contents<'a>);

impl Subject for Coming<'_> {
    fn run(&mut self) {
        self.0.come();
    }

    fn after(&mut self) {
        self.0.go(EvictFlags::empty());
    }
}

/// It goes, which is timed.
struct Going<'a>(Contents<'a>, EvictFlags);

impl Subject for Going<'_> {
    fn before(&mut self) {
        self.0.come();
    }

    fn run(&mut self) {
        self.0.go(self.1);
    }
}

/// Memory of a thread, which is there.
struct Memory(Vec<u8>);

impl Memory {
    fn new(bytes: usize) -> Self {
        Self(vec![1; bytes + ALIGNMENT])
    }

    fn first(&mut self, count: usize) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[start..][..count]
    }
}

fn local(device: &Device, bytes: u64) -> Allocation {
    let resource = device.new_resource().local(bytes);
    resource.create_one().expect("create an allocation")
}

/// Measures a group.
pub fn measure(runner: &mut Runner, bench: &mut Bench, group: &str, plan: Plan) {
    let nodes = if group == BY_NODE { "4" } else { "3" };
    let Some((_adapter, device)) = SoftAdapter::new(&bench.dxg, group, &[("nodes", nodes)]) else {
        let text = format!("{group}: no adapter with {nodes} nodes can be made");
        bench.missing.push(text);
        return;
    };
    let paging = device.create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let most = SIZES[SIZES.len() - 1] as usize;
    let threads = RefCell::new((Memory::new(most), Memory::new(most)));
    let context = device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let line = Line::new(&context);
    let [source, target] = [0, 1].map(|_| Buffer::new(&paging, most as u64));
    let mut all = Vec::new();
    for bytes in SIZES {
        let copy = Pm4::new().copy(target.address, source.address, bytes);
        let copy = Commands::new(&paging, &copy);
        let (paging, threads, line, count) = (&paging, &threads, &line, bytes as usize);
        all.push(Participant::at(COPY, bytes, move || line.run(&copy)));
        let untouched = Untouched {
            paging,
            bytes,
            allocation: None,
        };
        let contents = || Contents::new(paging, bytes);
        all.push(Participant::at(MAKE_ZEROS, bytes, untouched));
        all.push(Participant::at(MAKE, bytes, Coming(contents())));
        for (name, flags) in [
            (EVICT, EvictFlags::empty()),
            (EVICT_CLEAN, EvictFlags::NOT_WRITTEN_TO),
        ] {
            all.push(Participant::at(name, bytes, Going(contents(), flags)));
        }
        all.push(Participant::at(MEMCPY, bytes, move || {
            let (from, to) = &mut *threads.borrow_mut();
            black_box(to.first(count)).copy_from_slice(black_box(from.first(count)));
        }));
        all.push(Participant::at(MEMSET, bytes, move || {
            black_box(threads.borrow_mut().1.first(count)).fill(black_box(0x5a));
        }));
    }
    let by = match group {
        BY_NODE => "the paging node",
        _ => "the processor",
    };
    let title = format!("bytes to and from local memory, by {by}");
    runner.group(group, &title, plan, all);
}
