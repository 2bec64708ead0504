// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends of GPU objects without memory, and of a process that has all of them.

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{ResidentFlags, Status};
use selftests::call::succeeds;
use selftests::child::Child;
use selftests::gpu::{Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::hog::Hog;
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{destruction, Create};
use selftests::{fixture, TestResult};

use crate::t_failslab::inject::Injector;
use crate::t_failslab::plain::{Maker, Sweep};
use crate::t_failslab::Call;

/// Where a range is put.
const BASE: u64 = 0x20_0000_0000;
/// Steps of the end of a process that fail: more than it has.
const STEPS: u32 = 24;

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("DestroyContext", |sweep| {
        let device = fixture::device()?;
        let handle = device.handle().0;
        let make = move |raw: &Raw| {
            let mut arg = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
            arg.hDevice = handle;
            succeeds(raw, &mut arg)?;
            Ok(arg.hContext)
        };
        Again::sweep(sweep, 1, Box::new(make), |raw, context| {
            let mut arg = D3DKMT_DESTROYCONTEXT::zeroed();
            arg.hContext = context;
            raw.exec(&mut arg)
        })
    }),
    ("DestroyHwQueue", |sweep| {
        let context = fixture::device()?.create_hw_context(0)?;
        let make = move |raw: &Raw| {
            let mut arg = D3DKMT_CREATEHWQUEUE::zeroed();
            arg.hHwContext = context.handle().0;
            succeeds(raw, &mut arg)?;
            Ok(arg.hHwQueue)
        };
        Again::sweep(sweep, 2, Box::new(make), |raw, queue| {
            let mut arg = D3DKMT_DESTROYHWQUEUE::zeroed();
            arg.hHwQueue = queue;
            raw.exec(&mut arg)
        })
    }),
    ("DestroyPagingQueue", |sweep| {
        let device = fixture::device()?;
        let make = move |raw: &Raw| {
            let mut arg = D3DKMT_CREATEPAGINGQUEUE::zeroed();
            arg.hDevice = device.handle().0;
            succeeds(raw, &mut arg)?;
            Ok(arg.hPagingQueue)
        };
        Again::sweep(sweep, 2, Box::new(make), |raw, queue| {
            let mut arg = D3DDDI_DESTROYPAGINGQUEUE::zeroed();
            arg.hPagingQueue = queue;
            raw.exec(&mut arg)
        })
    }),
    ("DestroyAllocation2: mapped and resident", destroyed),
    ("MapGpuVirtualAddress that tells a size", sized),
    ("the end of a process", |_| process_ends()),
];

/// What makes an object; returns its handle.
type Make = Box<dyn FnMut(&Raw) -> TestResult<u32>>;
/// What ends it.
type End = Box<dyn Fn(&Raw, u32) -> rustix::io::Result<Status>>;

/// Ends an object, and makes another one each time.
pub(crate) struct Again {
    raw: Raw,
    make: Make,
    end: End,
    handles: u32,
    handle: u32,
}

impl Again {
    pub(crate) fn sweep(
        sweep: Sweep<'_>,
        handles: u32,
        make: Make,
        end: impl Fn(&Raw, u32) -> rustix::io::Result<Status> + 'static,
    ) -> TestResult {
        let mut call = Self {
            raw: fixture::raw()?,
            make,
            end: Box::new(end),
            handles,
            handle: 0,
        };
        call.undo()?;
        sweep(&mut call)?;
        match (call.end)(&call.raw, call.handle)? {
            Status::SUCCESS => Ok(()),
            status => Err(format!("the last one: {status}").into()),
        }
    }
}

impl Call for Again {
    fn run(&mut self) -> rustix::io::Result<Status> {
        (self.end)(&self.raw, self.handle)
    }

    fn undo(&mut self) -> TestResult {
        self.handle = (self.make)(&self.raw)?;
        Ok(())
    }

    fn handles(&self) -> u32 {
        self.handles
    }
}

fn destroyed(sweep: Sweep<'_>) -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device().handle().0;
    let make = move |raw: &Raw| {
        let mut create = Create::sized(gpu.device(), 0, &[3 * PAGE]);
        create.driver[0].flags = OPENDXG_ALLOCATION_LOCAL;
        let (_, list) = create.run()?.leak();
        let mut map = D3DDDI_MAPGPUVIRTUALADDRESS::zeroed();
        map.hPagingQueue = gpu.paging().handle().0;
        (map.hAllocation, map.BaseAddress) = (list[0], BASE);
        (map.SizeInPages, map.Protection) = (3, READ_WRITE.bits());
        succeeds(raw, &mut map)?;
        let mut resident = D3DDDI_MAKERESIDENT::zeroed();
        resident.hPagingQueue = gpu.paging().handle().0;
        (resident.NumAllocations, resident.AllocationList) = (1, list.as_ptr() as u64);
        succeeds(raw, &mut resident)?;
        Ok(list[0])
    };
    Again::sweep(sweep, 1, Box::new(make), move |raw, allocation| {
        raw.exec(&mut destruction(device, 0, &[allocation], 0))
    })
}

/// The first map of an allocation over memory of this process, whose size nobody has told.
fn sized(sweep: Sweep<'_>) -> TestResult {
    let gpu = Gpu::new()?;
    let pages = Region::private(2 * PAGE as usize)?;
    let mut last = 0;
    let device = gpu.device().clone();
    let queue = gpu.paging().handle().0;
    let address = pages.address();
    let make = move |raw: &Raw| {
        if last != 0 {
            succeeds(raw, &mut destruction(device.handle().0, 0, &[last], 0))?;
        }
        let mut create = Create::sized_over(&device, 0, &[(address, 2 * PAGE)]);
        create.driver[0].magic = 0;
        last = create.run()?.leak().1[0];
        Ok(last)
    };
    let device = gpu.device().handle().0;
    Again::sweep(sweep, 1, Box::new(make), move |raw, allocation| {
        let mut map = D3DDDI_MAPGPUVIRTUALADDRESS::zeroed();
        map.hPagingQueue = queue;
        (map.hAllocation, map.BaseAddress) = (allocation, BASE);
        (map.SizeInPages, map.Protection) = (2, READ_WRITE.bits());
        raw.exec(&mut map)
    })?;
    gpu.device().adapter().free_gpu_range(BASE, 2 * PAGE)?;
    drop((device, pages));
    Ok(())
}

/// A process has memory, and work that does not end. Its end cannot fail.
fn process_ends() -> TestResult {
    let watch = Watch::start()?;
    for step in 1..=STEPS {
        // Work that waits is ended by the process itself.
        let hog = [Hog::Embrace, Hog::Updates][step as usize % 2];
        let child = Child::spawn(|| {
            let gpu = Gpu::node(step % 3)?;
            let _busy = hog.begin(&gpu)?;
            let memory = gpu.local_buffer(BLOCK)?;
            let list = [memory.allocation()];
            let made = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
            gpu.paging().wait(made.value()?)?;
            Injector::new()?.arm(step)?;
            // SAFETY: ends this process, which nothing is undone in.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            Err("killed, and goes on".into())
        })?;
        child
            .dies_of(libc::SIGKILL)
            .map_err(|error| format!("step {step}: {error}"))?;
        watch
            .ends_clean()
            .map_err(|error| format!("step {step}: {hog:?}: {error}"))?;
    }
    Ok(())
}
