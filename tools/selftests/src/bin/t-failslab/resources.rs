// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of allocations and resources that are made to fail.

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Device, Status};
use rustix::fs::{fcntl_add_seals, memfd_create, MemfdFlags, SealFlags};
use selftests::call::succeeds;
use selftests::dma_buf::udmabuf;
use selftests::region::Region;
use selftests::resource::{
    destruction, export, flags, slot, Create, OpenAtOnce, OpenGlobal, OpenNt, OpenResource,
    PAGE_SIZE,
};
use selftests::time::eventually;
use selftests::{fixture, TestResult};

use crate::t_failslab::plain::{close, keep, Maker, Plain, Sweep};
use crate::t_failslab::Call;

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("CreateAllocation: three allocations", |sweep| {
        created(
            sweep,
            |device| Ok(Create::sized(device, 0, &[PAGE_SIZE; 3])),
            3,
        )
    }),
    ("CreateAllocation: a resource with runtime data", |sweep| {
        let make = |device: &Device| {
            Ok(Create::sized(device, flags::RESOURCE, &[PAGE_SIZE]).with_runtime(&[1; 99]))
        };
        created(sweep, make, 2)
    }),
    (
        "CreateAllocation: a resource with a global handle",
        |sweep| {
            created(
                sweep,
                |device| Ok(Create::sized(device, flags::GLOBAL, &[PAGE_SIZE; 2])),
                3,
            )
        },
    ),
    ("CreateAllocation: memory of this process", |sweep| {
        let memory = Region::private(8 * PAGE_SIZE as usize)?;
        created(
            sweep,
            |device| Ok(Create::over(device, 0, memory.address(), 8 * PAGE_SIZE)),
            1,
        )
    }),
    ("CreateAllocation: a memory file", |sweep| {
        let file = selftests::fds::memfd()?;
        rustix::fs::ftruncate(&file, PAGE_SIZE)?;
        created(
            sweep,
            |device| Ok(Create::section(device, 0, slot(&file), PAGE_SIZE)),
            1,
        )
    }),
    (
        "CreateAllocation: a memory file that can be sealed",
        |sweep| {
            let file = memfd_create("t-failslab", MemfdFlags::ALLOW_SEALING)?;
            rustix::fs::ftruncate(&file, PAGE_SIZE)?;
            created(
                sweep,
                |device| Ok(Create::section(device, 0, slot(&file), PAGE_SIZE)),
                1,
            )?;
            // No call that has failed keeps the right to write to it.
            eventually("nobody may write to the file", || {
                fcntl_add_seals(&file, SealFlags::WRITE).is_ok()
            })
        },
    ),
    ("CreateAllocation: a dma-buf of udmabuf", |sweep| {
        let (file, _memory) = udmabuf(2 * PAGE_SIZE)?;
        created(
            sweep,
            |device| Ok(Create::section(device, 0, slot(&file), 2 * PAGE_SIZE)),
            1,
        )
    }),
    ("CreateAllocation: added to a resource", |sweep| {
        let device = fixture::device()?;
        let made = sample(&device, flags::RESOURCE)?;
        let mut create = Create::sized(&device, 0, &[PAGE_SIZE; 2]);
        create.resource = made.resource;
        let arg = create.argument();
        sweep(&mut Plain::new(arg, 2, end_allocations)?)
    }),
    ("DestroyAllocation2: a list", |sweep| {
        destroyed(sweep, 0, 20)
    }),
    ("DestroyAllocation2: a resource", |sweep| {
        destroyed(sweep, flags::GLOBAL, 3)
    }),
    ("Lock2", |sweep| {
        let made = sample(&fixture::device()?, 0)?;
        let mut arg = D3DKMT_LOCK2::zeroed();
        (arg.hDevice, arg.hAllocation) = (made.device, made.first());
        sweep(&mut Plain::new(arg, 0, |raw, arg| {
            let mut unlock = D3DKMT_UNLOCK2 {
                hDevice: arg.hDevice,
                hAllocation: arg.hAllocation,
            };
            succeeds(raw, &mut unlock)
        })?)
    }),
    ("OpenResource", |sweep| {
        let device = fixture::device()?;
        let made = sample(&device, flags::GLOBAL)?;
        let open = OpenGlobal::new(&device, made.global)?;
        sweep(&mut Plain::new(open.arg, 3, |raw, arg| {
            end_resource(raw, arg.hDevice, arg.hResource)
        })?)
    }),
    ("OpenResourceFromNtHandle", |sweep| {
        let device = fixture::device()?;
        let nt = sample(&device, flags::NT)?.share()?;
        let open = OpenNt::new(&device, &nt)?;
        sweep(&mut Plain::new(open.arg, 3, |raw, arg| {
            end_resource(raw, arg.hDevice, arg.hResource)
        })?)
    }),
    ("opendxg_open_resource", |sweep| {
        let device = fixture::device()?;
        let made = sample(&device, flags::GLOBAL)?;
        let open = OpenAtOnce::global(&device, made.global)?;
        sweep(&mut Plain::new(open.arg, 3, |raw, arg| {
            end_resource(raw, arg.device, arg.resource)
        })?)
    }),
    ("QueryResourceInfo", |sweep| {
        let device = fixture::device()?;
        let made = sample(&device, flags::GLOBAL)?;
        let mut arg = D3DKMT_QUERYRESOURCEINFO::zeroed();
        (arg.hDevice, arg.hGlobalShare) = (made.device, made.global);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("QueryResourceInfoFromNtHandle", |sweep| {
        let device = fixture::device()?;
        let nt = sample(&device, flags::NT)?.share()?;
        let mut arg = D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE::zeroed();
        (arg.hDevice, arg.hNtHandle) = (device.handle().0, slot(&nt));
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("GetSharedResourceAdapterLuid", |sweep| {
        let nt = sample(&fixture::device()?, flags::NT)?.share()?;
        let mut arg = D3DKMT_GETSHAREDRESOURCEADAPTERLUID::zeroed();
        arg.hNtHandle = slot(&nt);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("EXPORT_DMABUF", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let mut arg = opendxg_export_dmabuf::zeroed();
        arg.allocation = made.first();
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("EXPORT_DMABUF of one that is exported", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let _file = export(made.raw(), made.first(), 0)?;
        let mut arg = opendxg_export_dmabuf::zeroed();
        arg.allocation = made.first();
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("Escape: new runtime data", |sweep| {
        let made = sample(&fixture::device()?, flags::GLOBAL)?;
        let data = [7u8; 300];
        let mut arg = D3DKMT_ESCAPE::zeroed();
        (arg.Type, arg.hContext) = (D3DKMT_ESCAPE_UPDATE_RESOURCE_WINE, made.resource);
        (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = (data.as_ptr() as u64, 300);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("SetAllocationPriority", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let values = [D3DDDI_ALLOCATIONPRIORITY_HIGH; 2];
        let mut arg = D3DKMT_SETALLOCATIONPRIORITY::zeroed();
        (arg.hDevice, arg.AllocationCount) = (made.device, 2);
        (arg.phAllocationList, arg.pPriorities) =
            (made.allocations.as_ptr() as u64, values.as_ptr() as u64);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("QueryAllocationResidency", |sweep| {
        let made = sample(&fixture::device()?, flags::RESOURCE)?;
        let mut values = [0u32; 2];
        let mut arg = D3DKMT_QUERYALLOCATIONRESIDENCY::zeroed();
        (arg.hDevice, arg.AllocationCount) = (made.device, 2);
        arg.phAllocationList = made.allocations.as_ptr() as u64;
        arg.pResidencyStatus = values.as_mut_ptr() as u64;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
];

/// Two allocations of a page.
pub(crate) fn sample(device: &Device, bits: u32) -> TestResult<OpenResource> {
    Create::sized(device, bits, &[PAGE_SIZE; 2])
        .with_runtime(&[1; 40])
        .run()
}

fn created(
    sweep: Sweep<'_>,
    make: impl Fn(&Device) -> TestResult<Create>,
    handles: u32,
) -> TestResult {
    let device = fixture::device()?;
    let mut create = make(&device)?;
    let arg = create.argument();
    let undo: fn(&Raw, &D3DKMT_CREATEALLOCATION) -> TestResult =
        if create.flags & flags::RESOURCE != 0 {
            |raw, arg| end_resource(raw, arg.hDevice, arg.hResource)
        } else {
            end_allocations
        };
    sweep(&mut Plain::new(arg, handles, undo)?)
}

fn end_resource(raw: &Raw, device: u32, resource: u32) -> TestResult {
    succeeds(raw, &mut destruction(device, resource, &[], 0))
}

/// Destroys the allocations that a call has written to its array.
fn end_allocations(raw: &Raw, arg: &D3DKMT_CREATEALLOCATION) -> TestResult {
    // SAFETY: the arm that this call uses; an array of as many elements, which the call has
    // written.
    let infos = unsafe {
        let start = arg.__bindgen_anon_2.pAllocationInfo2 as usize as *const D3DDDI_ALLOCATIONINFO2;
        core::slice::from_raw_parts(start, arg.NumAllocations as usize)
    };
    let list: Vec<u32> = infos.iter().map(|info| info.hAllocation).collect();
    succeeds(raw, &mut destruction(arg.hDevice, 0, &list, 0))
}

/// Destroying, for which something new is made each time.
struct Destroy {
    device: Device,
    raw: Raw,
    flags: u32,
    sizes: Vec<u64>,
    resource: u32,
    list: Vec<u32>,
}

fn destroyed(sweep: Sweep<'_>, bits: u32, count: usize) -> TestResult {
    let mut call = Destroy {
        device: fixture::device()?,
        raw: fixture::raw()?,
        flags: bits,
        sizes: vec![PAGE_SIZE; count],
        resource: 0,
        list: Vec::new(),
    };
    call.undo()?;
    sweep(&mut call)?;
    let list = if call.resource == 0 {
        &call.list[..]
    } else {
        &[]
    };
    succeeds(
        &call.raw,
        &mut destruction(call.device.handle().0, call.resource, list, 0),
    )
}

impl Call for Destroy {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let list = if self.resource == 0 {
            &self.list[..]
        } else {
            &[]
        };
        self.raw.exec(&mut destruction(
            self.device.handle().0,
            self.resource,
            list,
            0,
        ))
    }

    fn undo(&mut self) -> TestResult {
        (self.resource, self.list) = Create::sized(&self.device, self.flags, &self.sizes)
            .run()?
            .leak();
        Ok(())
    }

    fn handles(&self) -> u32 {
        self.list.len() as u32 + u32::from(self.resource != 0)
    }
}
