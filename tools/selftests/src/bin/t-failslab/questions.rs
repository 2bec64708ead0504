// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that only ask for something, or tell something about a device, that are made to fail.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use selftests::gpu::{Gpu, PAGE};
use selftests::{fixture, TestResult};

use crate::t_failslab::ends::Again;
use crate::t_failslab::plain::{keep, Maker, Plain, Sweep};

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("QueryClockCalibration", |sweep| {
        let adapter = fixture::adapter()?;
        let mut arg = D3DKMT_QUERYCLOCKCALIBRATION::zeroed();
        arg.hAdapter = adapter.handle().0;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("IsFeatureEnabled", |sweep| {
        let adapter = fixture::adapter()?;
        let mut arg = D3DKMT_ISFEATUREENABLED::zeroed();
        arg.hAdapter = adapter.handle().0;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("GetAllocationPriority", |sweep| {
        let gpu = Gpu::new()?;
        let list = [gpu.allocate(PAGE)?, gpu.allocate_local(PAGE)?];
        let handles = list.each_ref().map(|one| one.handle().0);
        let mut priorities = [0u32; 2];
        let mut arg = D3DKMT_GETALLOCATIONPRIORITY::zeroed();
        arg.hDevice = gpu.device().handle().0;
        arg.phAllocationList = handles.as_ptr() as u64;
        arg.AllocationCount = 2;
        arg.pPriorities = priorities.as_mut_ptr() as u64;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("InvalidateCache", |sweep| {
        let gpu = Gpu::new()?;
        let allocation = gpu.allocate(PAGE)?;
        let mut arg = D3DKMT_INVALIDATECACHE::zeroed();
        arg.hDevice = gpu.device().handle().0;
        (arg.hAllocation, arg.Length) = (allocation.handle().0, PAGE);
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("MarkDeviceAsError", marked),
];

/// A new device each time, with a fence and a context: they end by the call.
fn marked(sweep: Sweep<'_>) -> TestResult {
    let adapter = fixture::adapter()?;
    let mut last = None;
    let make = move |_: &_| {
        drop(last.take());
        let device = adapter.create_device()?;
        let (fence, context) = (device.create_fence(0)?, device.create_context(0)?);
        let handle = device.handle().0;
        last = Some((fence, context, device));
        Ok(handle)
    };
    Again::sweep(sweep, 3, Box::new(make), |raw, device| {
        let mut arg = D3DKMT_MARKDEVICEASERROR::zeroed();
        (arg.hDevice, arg.Reason) = (device, D3DKMT_DEVICE_ERROR_REASON_GENERIC);
        raw.exec(&mut arg)
    })
}
