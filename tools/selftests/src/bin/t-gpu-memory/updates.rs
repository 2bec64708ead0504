// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queued changes of a reserved range (MEM-45 to MEM-48).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Device, EvictFlags, ExecutionState, GpuProtection, GpuReserve, GpuUpdate, MonitoredFence,
    Placement, Reservation, Residency, ResidentFlags, Status,
};
use selftests::blocked::Blocked;
use selftests::call::refused;
use selftests::gpu::{is_in, one, reaches, Buffer, Gpu, BLOCK, PAGE};
use selftests::rounds::is_brief;
use selftests::time::{a_while, eventually};
use selftests::{ensure, ensure_eq, fails_with, fixture, skip, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-45 maps, unmaps and copies, in order", operations)
        .test("MEM-45 a part of an allocation is repeated", repeated)
        .test(
            "MEM-45 work before sees the old tables, work after the new ones",
            interlocked,
        )
        .test("MEM-45 an update waits for its fence", waits)
        .test("MEM-45 updates that are refused", refusals)
        .test("MEM-46 the 129th update blocks until there is room", blocks)
        .test(
            "MEM-46 MEM-50 an update beyond the limit of ranges ends its device",
            beyond_the_limit,
        )
        .test(
            "MEM-47 a pool stays resident while updates with it are queued",
            kept,
        )
        .test(
            "MEM-47 a queued update finds the pool where it is then",
            late,
        )
        .test(
            "MEM-48 updates of a context go on while its commands wait",
            beside_the_commands,
        )
}

/// A range of zeros, and a fence for updates of it.
struct Tiles {
    gpu: Gpu,
    base: u64,
    fence: MonitoredFence,
}

/// Pages of the range.
const PAGES: u64 = 32;

impl Tiles {
    fn new() -> TestResult<Self> {
        let gpu = Gpu::new()?;
        let reserve = GpuReserve {
            size: 2 * BLOCK,
            kind: Reservation::Zero,
            ..GpuReserve::default()
        };
        let range = gpu.paging().reserve(&reserve)?;
        reaches(gpu.paging().fence(), range.value)?;
        let fence = gpu.device().create_fence(0)?;
        Ok(Self {
            gpu,
            base: range.address,
            fence,
        })
    }

    fn device(&self) -> &Device {
        self.gpu.device()
    }

    fn page(&self, index: u64) -> u64 {
        self.base + index * PAGE
    }

    /// Does operations at once.
    fn update(&self, operations: &[GpuUpdate<'_>]) -> TestResult {
        let value = self.fence.value();
        self.gpu
            .context()
            .update_gpu_ranges(operations, &self.fence, value)?;
        reaches(&self.fence, value + 1)
    }

    /// The first word of each page, as the GPU sees it.
    fn seen(&self) -> TestResult<Vec<u32>> {
        let result = self.gpu.buffer(PAGE)?;
        let read = (0..PAGES).fold(Pm4::new(), |read, page| {
            read.move32(result.at(4 * page), self.page(page))
        });
        self.gpu.run(&read)?;
        Ok(result.read(0, PAGES))
    }
}

/// A pool of pages whose first words are 100, 101 and so on.
fn pool(tiles: &Tiles, pages: u64) -> TestResult<Buffer> {
    let pool = tiles.gpu.local_buffer(pages * PAGE)?;
    for page in 0..pages {
        pool.set32(page * PAGE, 100 + page as u32);
    }
    Ok(pool)
}

fn map<'a>(tiles: &Tiles, page: u64, pages: u64, pool: &'a Buffer, first: u64) -> GpuUpdate<'a> {
    GpuUpdate::Map {
        address: tiles.page(page),
        size: pages * PAGE,
        allocation: pool.allocation(),
        offset: first * PAGE,
        length: pages * PAGE,
        protection: None,
    }
}

fn unmap(tiles: &Tiles, page: u64, pages: u64) -> GpuUpdate<'static> {
    GpuUpdate::Unmap {
        address: tiles.page(page),
        size: pages * PAGE,
        protection: GpuProtection::ZERO,
    }
}

fn copy(tiles: &Tiles, from: u64, to: u64, pages: u64) -> GpuUpdate<'static> {
    GpuUpdate::Copy {
        source: tiles.page(from),
        destination: tiles.page(to),
        size: pages * PAGE,
    }
}

fn operations() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 8)?;
    let mut expected = vec![0; PAGES as usize];
    ensure_eq!(tiles.seen()?, expected);
    tiles.update(&[map(&tiles, 2, 4, &pool, 1)])?;
    expected[2..6].copy_from_slice(&[101, 102, 103, 104]);
    ensure_eq!(tiles.seen()?, expected);
    tiles.update(&[copy(&tiles, 3, 10, 3), unmap(&tiles, 2, 2)])?;
    expected[10..13].copy_from_slice(&[102, 103, 104]);
    expected[2..4].fill(0);
    ensure_eq!(tiles.seen()?, expected);
    // In order, where they overlap.
    tiles.update(&[
        map(&tiles, 20, 4, &pool, 0),
        map(&tiles, 22, 4, &pool, 4),
        copy(&tiles, 21, 0, 2),
        unmap(&tiles, 21, 1),
    ])?;
    expected[20..26].copy_from_slice(&[100, 0, 104, 105, 106, 107]);
    expected[..2].copy_from_slice(&[101, 104]);
    ensure_eq!(tiles.seen()?, expected);
    // Now for the GPU to write, too.
    tiles.gpu.run(&Pm4::new().write(tiles.page(25), &[999]))?;
    ensure_eq!(pool.get32(7 * PAGE), 999);
    Ok(())
}

fn repeated() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 4)?;
    tiles.update(&[GpuUpdate::Map {
        address: tiles.page(0),
        size: 6 * PAGE,
        allocation: pool.allocation(),
        offset: PAGE,
        length: 2 * PAGE,
        protection: None,
    }])?;
    ensure_eq!(tiles.seen()?[..7], [101, 102, 101, 102, 101, 102, 0]);
    // With a length of 0 all of it, with rights of its own.
    tiles.update(&[GpuUpdate::Map {
        address: tiles.page(0),
        size: 4 * PAGE,
        allocation: pool.allocation(),
        offset: 0,
        length: 0,
        protection: Some(GpuProtection::WRITE),
    }])?;
    ensure_eq!(tiles.seen()?[..6], [100, 101, 102, 103, 101, 102]);
    Ok(())
}

/// Draws and updates in one context: each draw sees the tables of its turn.
fn interlocked() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 3)?;
    let result = tiles.gpu.buffer(PAGE)?;
    let gate = tiles.device().create_fence(0)?;
    let context = tiles.gpu.context();
    let draws: TestResult<Vec<_>> = (0..4)
        .map(|turn| {
            let draw = Pm4::new().move32(result.at(4 * turn), tiles.page(0));
            tiles.gpu.commands(&draw)
        })
        .collect();
    let draws = draws?;
    context.wait(&one(&gate, 1))?;
    for (turn, draw) in (0..).zip(&draws) {
        tiles.gpu.submit(draw)?;
        context.signal(&one(&tiles.fence, 2 * turn + 1))?;
        let update = match turn {
            2 => unmap(&tiles, 0, 1),
            turn => map(&tiles, 0, 1, &pool, turn.min(2)),
        };
        context.update_gpu_ranges(&[update], &tiles.fence, 2 * turn + 1)?;
        context.wait(&one(&tiles.fence, 2 * turn + 2))?;
    }
    gate.signal(1)?;
    tiles.gpu.finish()?;
    ensure_eq!(result.read(0, 4), [0, 100, 101, 0]);
    Ok(())
}

fn waits() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 1)?;
    let context = tiles.gpu.context();
    context.update_gpu_ranges(&[map(&tiles, 0, 1, &pool, 0)], &tiles.fence, 5)?;
    a_while();
    ensure_eq!(tiles.fence.value(), 0);
    ensure_eq!(tiles.seen()?[0], 0);
    tiles.fence.signal(5)?;
    reaches(&tiles.fence, 6)?;
    ensure_eq!(tiles.seen()?[0], 100);
    // Or does not wait.
    context.update_gpu_ranges_now(&[unmap(&tiles, 0, 1)], &tiles.fence, 50)?;
    reaches(&tiles.fence, 51)?;
    ensure_eq!(tiles.seen()?[0], 0);
    Ok(())
}

fn refusals() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 4)?;
    let context = tiles.gpu.context();
    let outside = |page: u64| GpuUpdate::Unmap {
        address: tiles.base + page * PAGE,
        size: PAGE,
        protection: GpuProtection::ZERO,
    };
    let piece = |address: u64, size: u64, offset: u64, length: u64| GpuUpdate::Map {
        address,
        size,
        allocation: pool.allocation(),
        offset,
        length,
        protection: None,
    };
    let (base, good) = (tiles.base, unmap(&tiles, 0, 1));
    let wrong = [
        ("behind the range", outside(PAGES)),
        ("into what is behind", unmap(&tiles, PAGES - 1, 2)),
        ("odd address", piece(base + 1, PAGE, 0, PAGE)),
        ("odd size", piece(base, 100, 0, 100)),
        ("odd offset", piece(base, PAGE, 8, PAGE)),
        ("odd length", piece(base, PAGE, 0, 100)),
        ("no multiple", piece(base, 3 * PAGE, 0, 2 * PAGE)),
        ("behind the allocation", piece(base, PAGE, 4 * PAGE, PAGE)),
        (
            "over the allocation",
            piece(base, 2 * PAGE, 3 * PAGE, 2 * PAGE),
        ),
        ("size 0", piece(base, 0, 0, PAGE)),
        ("copy from behind", copy(&tiles, PAGES, 0, 1)),
        ("copy to behind", copy(&tiles, 0, PAGES, 1)),
        ("copy of nothing", copy(&tiles, 0, 4, 0)),
    ];
    for (what, operation) in wrong {
        // The good one before it is not done either.
        let list = [map(&tiles, 0, 1, &pool, 0), operation];
        fails_with(context.update_gpu_ranges(&list, &tiles.fence, 0), IP)
            .map_err(|error| format!("{what}: {error}"))?;
    }
    fails_with(context.update_gpu_ranges(&[], &tiles.fence, 0), IP)?;
    // A range without zeros, and one that nobody reserved.
    let reserve = GpuReserve {
        size: BLOCK,
        ..GpuReserve::default()
    };
    let plain = tiles.gpu.paging().reserve(&reserve)?.address;
    for address in [plain, 0x2000_0000_0000] {
        let operation = piece(address, PAGE, 0, PAGE);
        fails_with(context.update_gpu_ranges(&[operation], &tiles.fence, 0), IP)?;
    }
    let raw = fixture::raw()?;
    let mut arg = D3DKMT_UPDATEGPUVIRTUALADDRESS::zeroed();
    arg.hDevice = tiles.device().handle().0;
    arg.hContext = context.handle().0;
    arg.hFenceObject = tiles.fence.handle().0;
    // SAFETY: a struct of integers.
    let mut operation: D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION = unsafe { core::mem::zeroed() };
    operation.OperationType = 4;
    arg.NumOperations = 1;
    arg.Operations = (&raw const operation) as u64;
    refused(&raw, &mut arg, IP)?;
    operation.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP;
    operation.__bindgen_anon_1.Unmap.BaseAddress = base;
    operation.__bindgen_anon_1.Unmap.SizeInBytes = PAGE;
    operation.__bindgen_anon_1.Unmap.Protection = GpuProtection::ZERO.bits();
    type Spoil = fn(&mut D3DKMT_UPDATEGPUVIRTUALADDRESS);
    let spoilt: [(&str, Spoil); 8] = [
        ("device 0", |arg| arg.hDevice = 0),
        ("context 0", |arg| arg.hContext = 0),
        ("fence 0", |arg| arg.hFenceObject = 0),
        ("flag 1", |arg| arg.Flags = 2),
        ("reserved 0", |arg| arg.Reserved0 = 1),
        ("reserved 1", |arg| arg.Reserved1 = 1),
        ("list NULL", |arg| arg.Operations = 0),
        ("a device as context", |arg| arg.hContext = arg.hDevice),
    ];
    for (what, spoil) in spoilt {
        let mut arg = arg;
        spoil(&mut arg);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
    }
    ensure_eq!(tiles.fence.value(), 0);
    ensure_eq!(tiles.seen()?[0], 0);
    tiles.update(&[good])
}

fn blocks() -> TestResult {
    let tiles = Tiles::new()?;
    let context = tiles.gpu.context();
    for value in 0..128 {
        context.update_gpu_ranges(&[unmap(&tiles, 0, 1)], &tiles.fence, 10 + value)?;
    }
    let raw = fixture::raw()?;
    let (device, context) = (tiles.device().handle().0, context.handle().0);
    let (fence, base) = (tiles.fence.handle().0, tiles.base);
    let blocked = Blocked::new(move || {
        let mut arg = D3DKMT_UPDATEGPUVIRTUALADDRESS::zeroed();
        (arg.hDevice, arg.hContext, arg.hFenceObject) = (device, context, fence);
        // SAFETY: a struct of integers.
        let mut operation: D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION =
            unsafe { core::mem::zeroed() };
        operation.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP;
        operation.__bindgen_anon_1.Unmap.BaseAddress = base;
        operation.__bindgen_anon_1.Unmap.SizeInBytes = PAGE;
        operation.__bindgen_anon_1.Unmap.Protection = GpuProtection::ZERO.bits();
        arg.NumOperations = 1;
        arg.Operations = (&raw const operation) as u64;
        arg.FenceValue = 138;
        raw.exec(&mut arg)
    })?;
    blocked.stays()?;
    tiles.fence.signal(10)?;
    ensure_eq!(blocked.join()?, Ok(Status::SUCCESS));
    reaches(&tiles.fence, 139)?;
    let nothing = tiles.gpu.allocate(PAGE)?;
    tiles
        .gpu
        .paging()
        .make_resident(&[&nothing], ResidentFlags::empty())?
        .value()?;
    Ok(())
}

/// Every second page is mapped, until there are more ranges than a process may have. The call that
/// asks for them has succeeded long before, and work behind the fence counts on them: so none runs.
fn beyond_the_limit() -> TestResult {
    const LIMIT: u64 = 65_536;
    if is_brief() {
        skip!("a brief run does not make so many ranges");
    }
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let pool = gpu.buffer(PAGE)?;
    let reserve = GpuReserve {
        size: (LIMIT + BLOCK / PAGE) * PAGE,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    };
    let range = gpu.paging().reserve(&reserve)?;
    reaches(gpu.paging().fence(), range.value)?;
    let fence = gpu.device().create_fence(0)?;
    let pages: Vec<u64> = (0..=LIMIT).step_by(2).collect();
    for (value, pages) in (0..).zip(pages.chunks(4096)) {
        if gpu.works().is_err() {
            ensure!(value * 2 * 4096 >= LIMIT, "it failed below the limit");
            break;
        }
        let maps: Vec<_> = pages
            .iter()
            .map(|page| GpuUpdate::Map {
                address: range.address + page * PAGE,
                size: PAGE,
                allocation: pool.allocation(),
                offset: 0,
                length: PAGE,
                protection: None,
            })
            .collect();
        gpu.context().update_gpu_ranges(&maps, &fence, value)?;
        reaches(&fence, value + 1)?;
    }
    eventually("the device is in error", || {
        is_in(gpu.device(), ExecutionState::OutOfMemory).is_ok()
    })?;
    ensure_eq!(fence.value(), u64::MAX);
    // The addresses belong to the process, and who does not add to them goes on.
    other.run(&Pm4::new().nop(0))
}

/// Whatever is evicted, until the last update with it is done.
fn kept() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 4)?;
    let allocation = pool.allocation();
    let gate = tiles.device().create_fence(0)?;
    let context = tiles.gpu.context();
    for value in [1, 3] {
        let update = map(&tiles, value, 2, &pool, 0);
        context.update_gpu_ranges(&[update], &gate, value)?;
    }
    tiles.device().evict(&[allocation], EvictFlags::empty())?;
    ensure_eq!(allocation.residency()?, Residency::GpuMemory);
    fails_with(tiles.device().evict(&[allocation], EvictFlags::empty()), IP)?;
    gate.signal(1)?;
    reaches(&gate, 2)?;
    // One is still queued, and the addresses of the other work.
    ensure_eq!(allocation.residency()?, Residency::GpuMemory);
    ensure_eq!(tiles.seen()?[..4], [0, 100, 101, 0]);
    gate.signal(3)?;
    reaches(&gate, 4)?;
    ensure_eq!(allocation.residency()?, Residency::NotResident);
    // Nothing is kept that was not there before.
    context.update_gpu_ranges(&[map(&tiles, 0, 1, &pool, 0)], &gate, 5)?;
    ensure_eq!(allocation.residency()?, Residency::NotResident);
    // It goes with its handle, queued or not.
    drop(pool);
    gate.signal(5)?;
    reaches(&gate, 6)?;
    tiles.gpu.works()
}

/// What does the updates of a context is not what runs its commands.
fn beside_the_commands() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 2)?;
    let other = Gpu::on(tiles.device(), 0)?;
    let seen = other.buffer(PAGE)?;
    let read = Pm4::new()
        .move32(seen.at(0), tiles.page(0))
        .move32(seen.at(4), tiles.page(1));
    let gate = tiles.device().create_fence(0)?;
    tiles.gpu.context().wait(&one(&gate, 1))?;
    let late = tiles.gpu.commands(&Pm4::new().write(tiles.page(0), &[7]))?;
    tiles.gpu.submit(&late)?;
    tiles.update(&[map(&tiles, 0, 2, &pool, 0)])?;
    other.run(&read)?;
    ensure_eq!(seen.read(0, 2), [100, 101]);
    tiles.update(&[unmap(&tiles, 1, 1)])?;
    other.run(&read)?;
    ensure_eq!(seen.read(0, 2), [100, 0]);
    // The commands find what is there when it is their turn.
    gate.signal(1)?;
    tiles.gpu.finish()?;
    ensure_eq!(pool.get32(0), 7);
    Ok(())
}

/// The pool has moved in between.
fn late() -> TestResult {
    let tiles = Tiles::new()?;
    let pool = pool(&tiles, 4)?;
    let gate = tiles.device().create_fence(0)?;
    let update = map(&tiles, 0, 4, &pool, 0);
    tiles.gpu.context().update_gpu_ranges(&[update], &gate, 1)?;
    let adapter = tiles.device().adapter();
    let mut aperture = 0;
    for place in 0..adapter.segment_and_node_count()?.0 {
        if adapter.segment_statistics(place)?.is_aperture {
            aperture = place + 1;
        }
    }
    let away = Placement::new().segments(&[aperture]);
    let value = tiles
        .gpu
        .paging()
        .update_placement(pool.allocation(), &away)?;
    reaches(tiles.gpu.paging().fence(), value)?;
    ensure_eq!(pool.allocation().residency()?, Residency::SharedMemory);
    gate.signal(1)?;
    reaches(&gate, 2)?;
    ensure_eq!(tiles.seen()?[..5], [100, 101, 102, 103, 0]);
    tiles.gpu.run(&Pm4::new().write(tiles.page(3), &[999]))?;
    ensure_eq!(pool.get32(3 * PAGE), 999);
    Ok(())
}
