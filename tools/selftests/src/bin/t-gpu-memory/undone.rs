// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls whose answer cannot be written: nothing has changed (RES-3, RES-4, FEN-54).

use std::fs::File;
use std::os::fd::AsFd;

use opendxg::pm4::Pm4;
use opendxg::raw::{code, Argument};
use opendxg::uapi::*;
use opendxg::{
    Allocation, Dxg, EvictFlags, FdInfo, GpuMap, GpuProtection, GpuReserve, Pages, Reservation,
    ResidentFlags, Status,
};
use rustix::io::Errno;
use selftests::gpu::{Buffer, Commands, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::memory::Page;
use selftests::poison::bytes;
use selftests::rounds::{crowd, rounds, seed, Dice};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const BASE: u64 = 0x5000_0000_0000;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-41 RES-4 a reservation that nobody is told of",
            reserved,
        )
        .test("MEM-43 RES-4 a map that nobody is told of", mapped)
        .test(
            "MEM-43 RES-4 such a map beside one that it goes on with",
            beside,
        )
        .test("MEM-43 RES-4 such a map over others", over_others)
        .test(
            "MEM-43 RES-4 such a map over reservations",
            over_reservations,
        )
        .test(
            "MEM-43 RES-4 such maps while other threads change the addresses",
            with_others,
        )
        .test("RES-23 RES-4 such a map tells no size", no_size)
        .test("MEM-19 MEM-23 RES-4 such residency and eviction", residency)
        .test("MEM-10 GPU-8 RES-4 such queues use up no numbers", queues)
}

/// Makes a call that can read its struct and not write it.
#[track_caller]
fn untold<T: Argument>(arg: &T) -> TestResult {
    let page = Page::beginning_with(bytes(arg))?.read_only()?;
    let answer = fixture::raw()?.ioctl(code(T::NR, T::SIZE), page.address());
    ensure_eq!(answer, Err(Errno::FAULT));
    Ok(())
}

/// What the GPU addresses of this process are made of, and what is resident.
fn extent() -> TestResult<String> {
    let node = File::open(Dxg::open()?.path())?;
    let info = FdInfo::read(node.as_fd())?;
    let text = info.get("dxg-gpu-memory");
    Ok(text.ok_or("no addresses")?.to_owned())
}

/// A call that nobody is told of and that changes no addresses.
#[track_caller]
fn changes_nothing<T: Argument>(arg: &T) -> TestResult {
    let before = extent()?;
    untold(arg)?;
    ensure_eq!(extent()?, before);
    Ok(())
}

fn reserve_arg(gpu: &Gpu, base: u64) -> D3DDDI_RESERVEGPUVIRTUALADDRESS {
    let mut arg = D3DDDI_RESERVEGPUVIRTUALADDRESS::zeroed();
    arg.__bindgen_anon_1.hPagingQueue = gpu.paging().handle().0;
    (arg.BaseAddress, arg.Size) = (base, BLOCK);
    arg
}

fn map_arg(gpu: &Gpu, one: &Allocation, base: u64, pages: u64) -> D3DDDI_MAPGPUVIRTUALADDRESS {
    let mut arg = D3DDDI_MAPGPUVIRTUALADDRESS::zeroed();
    arg.hPagingQueue = gpu.paging().handle().0;
    (arg.hAllocation, arg.BaseAddress) = (one.handle().0, base);
    (arg.SizeInPages, arg.Protection) = (pages, READ_WRITE.bits());
    arg
}

fn map(base: u64, pages: u64) -> GpuMap {
    GpuMap {
        base,
        pages,
        protection: READ_WRITE,
        ..GpuMap::default()
    }
}

fn reserve(base: u64, kind: Reservation) -> GpuReserve {
    GpuReserve {
        base,
        size: BLOCK,
        kind,
        ..GpuReserve::default()
    }
}

/// Reads words at the beginning of pages with the GPU, each time by the same commands: nothing else
/// ends while addresses are compared.
struct Reader<'a> {
    gpu: &'a Gpu,
    found: Buffer,
    commands: Commands,
}

impl<'a> Reader<'a> {
    fn new(gpu: &'a Gpu, base: u64, pages: u64) -> TestResult<Self> {
        let found = gpu.buffer(PAGE)?;
        let mut commands = Pm4::new();
        for page in 0..pages {
            commands = commands.copy(found.at(4 * page), base + page * PAGE, 4);
        }
        Ok(Self {
            gpu,
            commands: gpu.commands(&commands)?,
            found,
        })
    }

    #[track_caller]
    fn finds(&self, words: &[u32]) -> TestResult {
        self.found.fill(!0);
        self.gpu.submit(&self.commands)?;
        self.gpu.finish()?;
        ensure_eq!(self.found.read(0, words.len() as u64), words);
        Ok(())
    }
}

fn reserved() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    for kind in [
        D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS,
        D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO,
    ] {
        for base in [0, BASE] {
            let mut arg = reserve_arg(&gpu, base);
            arg.__bindgen_anon_2.ReservationType = kind;
            changes_nothing(&arg)?;
        }
        // The older form.
        let mut arg = reserve_arg(&gpu, BASE);
        arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
        changes_nothing(&arg)?;
        // The addresses are free, and the lowest ones are picked as before.
        gpu.paging().reserve(&reserve(BASE, Reservation::Zero))?;
        adapter.free_gpu_range(BASE, BLOCK)?;
    }
    let first = gpu.paging().reserve(&reserve(0, Reservation::Zero))?;
    changes_nothing(&reserve_arg(&gpu, 0))?;
    let second = gpu.paging().reserve(&reserve(0, Reservation::Zero))?;
    ensure_eq!(second.address, first.address + BLOCK);
    Ok(())
}

fn mapped() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.buffer(4 * PAGE)?;
    for base in [0, BASE] {
        changes_nothing(&map_arg(&gpu, memory.allocation(), base, 4))?;
    }
    // The addresses are free.
    fails_with(gpu.device().adapter().free_gpu_range(BASE, PAGE), IP)?;
    gpu.paging().map(Some(memory.allocation()), &map(BASE, 4))?;
    memory.set32(PAGE, 7);
    Reader::new(&gpu, BASE, 4)?.finds(&[0, 7, 0, 0])
}

fn beside() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.buffer(6 * PAGE)?;
    for page in 0..6 {
        memory.set32(page * PAGE, page as u32 + 1);
    }
    let part = |first_page, pages| GpuMap {
        first_page,
        ..map(BASE + first_page * PAGE, pages)
    };
    gpu.paging().map(Some(memory.allocation()), &part(0, 2))?;
    gpu.paging().map(Some(memory.allocation()), &part(4, 2))?;
    let mut arg = map_arg(&gpu, memory.allocation(), BASE + 2 * PAGE, 2);
    arg.OffsetInPages = 2;
    changes_nothing(&arg)?;
    Reader::new(&gpu, BASE, 2)?.finds(&[1, 2])?;
    Reader::new(&gpu, BASE + 4 * PAGE, 2)?.finds(&[5, 6])?;
    fails_with(
        gpu.device().adapter().free_gpu_range(BASE + 2 * PAGE, PAGE),
        IP,
    )?;
    gpu.paging().map(Some(memory.allocation()), &part(2, 2))?;
    Reader::new(&gpu, BASE, 6)?.finds(&[1, 2, 3, 4, 5, 6])
}

fn over_others() -> TestResult {
    let gpu = Gpu::new()?;
    let (one, other) = (gpu.buffer(6 * PAGE)?, gpu.local_buffer(6 * PAGE)?);
    for page in 0..6 {
        one.set32(page * PAGE, page as u32 + 1);
        other.set32(page * PAGE, page as u32 + 11);
    }
    let third = gpu.buffer(PAGE)?;
    third.fill(99);
    let words = [1, 99, 3, 11, 12, 6];
    gpu.paging().map(Some(one.allocation()), &map(BASE, 6))?;
    gpu.paging()
        .map(Some(third.allocation()), &map(BASE + PAGE, 1))?;
    gpu.paging()
        .map(Some(other.allocation()), &map(BASE + 3 * PAGE, 2))?;
    let reader = Reader::new(&gpu, BASE, 6)?;
    reader.finds(&words)?;
    for (first, pages) in [(0, 6), (0, 1), (1, 4), (3, 1), (5, 1), (2, 2)] {
        for allocation in [one.allocation(), other.allocation()] {
            changes_nothing(&map_arg(&gpu, allocation, BASE + first * PAGE, pages))?;
            reader
                .finds(&words)
                .map_err(|error| format!("{first} + {pages}: {error}"))?;
        }
    }
    Ok(())
}

fn over_reservations() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.buffer(4 * PAGE)?;
    memory.fill(5);
    gpu.paging().reserve(&reserve(BASE, Reservation::Zero))?;
    let reader = Reader::new(&gpu, BASE, 5)?;
    changes_nothing(&map_arg(&gpu, memory.allocation(), BASE + PAGE, 4))?;
    changes_nothing(&map_arg(&gpu, memory.allocation(), BASE, 4))?;
    reader.finds(&[0; 5])?;
    // From free addresses into a reservation.
    changes_nothing(&map_arg(&gpu, memory.allocation(), BASE - 2 * PAGE, 4))?;
    fails_with(
        gpu.device().adapter().free_gpu_range(BASE - 2 * PAGE, PAGE),
        IP,
    )?;
    // Pages that read as zero in a reservation without access, and the other way round.
    let base = BASE + BLOCK;
    gpu.paging()
        .reserve(&reserve(base, Reservation::NoAccess))?;
    let zero = GpuMap {
        protection: GpuProtection::ZERO,
        ..map(base, 2)
    };
    gpu.paging().map(None, &zero)?;
    let reader = Reader::new(&gpu, base, 2)?;
    let mut arg = map_arg(&gpu, memory.allocation(), base, 2);
    (arg.hAllocation, arg.Protection) = (0, GpuProtection::NO_ACCESS.bits());
    changes_nothing(&arg)?;
    reader.finds(&[0, 0])?;
    (arg.BaseAddress, arg.Protection) = (base + 4 * PAGE, GpuProtection::ZERO.bits());
    changes_nothing(&arg)?;
    arg.BaseAddress = BASE;
    changes_nothing(&arg)?;
    gpu.device().adapter().free_gpu_range(BASE, 2 * BLOCK)?;
    Ok(())
}

/// Afterwards everything that is there can be freed, and nothing is left of it.
fn with_others() -> TestResult {
    const SPAN: u32 = 12;
    let gpu = Gpu::new()?;
    let memories = [gpu.buffer(4 * PAGE)?, gpu.local_buffer(4 * PAGE)?];
    let start = extent()?;
    crowd(3, |part| {
        let mut dice = Dice::new(seed().wrapping_add(part as u64));
        for _ in 0..rounds(100) {
            let memory = memories[dice.below(2) as usize].allocation();
            let pages = u64::from(dice.below(4)) + 1;
            let base = BASE + u64::from(dice.below(SPAN - 4)) * PAGE;
            match dice.below(3) {
                0 => drop(gpu.paging().map(Some(memory), &map(base, pages))?),
                1 => {
                    let _ = gpu.device().adapter().free_gpu_range(base, PAGE);
                }
                _ => untold(&map_arg(&gpu, memory, base, pages))?,
            }
        }
        Ok(())
    })?;
    for page in 0..SPAN.into() {
        // Not all of them need be there.
        let _ = gpu
            .device()
            .adapter()
            .free_gpu_range(BASE + page * PAGE, PAGE);
    }
    ensure_eq!(extent()?, start);
    Ok(())
}

fn no_size() -> TestResult {
    let gpu = Gpu::node(1)?;
    let pages = Pages::new(4 * PAGE as usize)?;
    let builder = gpu.device().new_resource();
    let memory = builder.pages_with_driver_data(&pages, &[0xa5; 72]);
    let memory = memory.create_one()?;
    changes_nothing(&map_arg(&gpu, &memory, BASE, 2))?;
    fails_with(memory.lock_raw(), IP)?;
    // The next one tells it.
    let range = gpu.paging().map(Some(&memory), &map(0, 4))?;
    let made = gpu
        .paging()
        .make_resident(&[&memory], ResidentFlags::empty())?;
    gpu.paging().wait(made.value()?.max(range.value))?;
    gpu.run(&Pm4::new().write(range.address + 3 * PAGE, &[8]))?;
    ensure_eq!(pages.to_vec()[3 * PAGE as usize], 8);
    Ok(())
}

fn residency() -> TestResult {
    let gpu = Gpu::new()?;
    let start = extent()?;
    for memory in [Gpu::allocate, Gpu::allocate_local] {
        counted(&gpu, memory(&gpu, 2 * PAGE)?)?;
        // Allocations end behind the work.
        eventually("all has ended", || extent().is_ok_and(|now| now == start))?;
    }
    Ok(())
}

fn counted(gpu: &Gpu, memory: Allocation) -> TestResult {
    let list = [memory.handle().0; 2];
    let mut arg = D3DDDI_MAKERESIDENT::zeroed();
    arg.hPagingQueue = gpu.paging().handle().0;
    (arg.NumAllocations, arg.AllocationList) = (2, list.as_ptr() as u64);
    changes_nothing(&arg)?;
    let evict = || gpu.device().evict(&[&memory], EvictFlags::empty());
    fails_with(evict(), IP)?;
    let range = gpu.paging().map(Some(&memory), &map(0, 2))?;
    let made = gpu
        .paging()
        .make_resident(&[&memory], ResidentFlags::empty())?;
    gpu.paging().wait(made.value()?.max(range.value))?;
    let reader = Reader::new(gpu, range.address, 1)?;
    let write = gpu.commands(&Pm4::new().write(range.address, &[3]))?;
    gpu.submit(&write)?;
    gpu.finish()?;
    let mut arg = D3DKMT_EVICT::zeroed();
    arg.hDevice = gpu.device().handle().0;
    (arg.NumAllocations, arg.AllocationList) = (1, list.as_ptr() as u64);
    changes_nothing(&arg)?;
    reader.finds(&[3])?;
    evict()?;
    fails_with(evict(), IP)?;
    Ok(())
}

fn queues() -> TestResult {
    let device = fixture::device()?;
    let context = device.create_hw_context(0)?;
    let first = fixture::next_handle()?;
    let mut arg = D3DKMT_CREATEHWQUEUE::zeroed();
    arg.hHwContext = context.handle().0;
    untold(&arg)?;
    let mut arg = D3DKMT_CREATEPAGINGQUEUE::zeroed();
    arg.hDevice = device.handle().0;
    untold(&arg)?;
    let mut arg = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
    arg.hDevice = device.handle().0;
    untold(&arg)?;
    let mut arg = D3DKMT_CREATEHWCONTEXT::zeroed();
    arg.hDevice = device.handle().0;
    untold(&arg)?;
    ensure_eq!(fixture::next_handle()?, first + 0x40);
    let queue = context.create_hw_queue()?;
    ensure!(queue.handle().0 > first);
    Ok(())
}
