// SPDX-License-Identifier: GPL-2.0

//! What the KUnit suites of objects share: a process that has the device open, and adapters with a
//! test double below them.

use super::{
    adapter::{
        Adapter,
        AdapterKind,
        AdapterOptions, //
    },
    context::{
        Class,
        Context,
        Description,
        Scheduling, //
    },
    device::Device,
    driver::Driver,
    handle::{
        HandleTarget,
        Parent, //
    },
    memory::creation::{
        CreateAllocationsRequest,
        Destination,
        NewAllocation, //
    },
    process::Process,
    running::Running,
    small_vec::InlineVec, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    kmd::fake::{
        journal::Journal,
        Behaviour,
        FakeKmd, //
    },
    logic::allocation_rules::{
        bits,
        Creation,
        Source, //
    },
    sys::{
        alloc::pin_arc,
        task::caller, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Private data that the double understands: two pages.
pub(in crate::dxgk) const TWO_PAGES: [u8; 8] = 0x2000u64.to_le_bytes();

/// An adapter with a double, and the journal of it.
pub(in crate::dxgk) fn started(
    behaviour: Behaviour,
) -> Result<(Arc<Journal>, DxgResult<Arc<Adapter>>)> {
    let journal = Arc::new(Journal::new(), GFP_KERNEL)?;
    let kmd = FakeKmd::add_device(journal.clone(), behaviour);

    let kmd = KBox::new(kmd, GFP_KERNEL)?;
    let running = pin_arc(Running::new(0, None)?, GFP_KERNEL)?;
    let adapter = Adapter::start(
        AdapterKind::TestDouble,
        0,
        kmd,
        &AdapterOptions::NONE,
        None,
        running,
    );

    Ok((journal, adapter.map_err(DxgError::from)))
}

/// Whether a call was refused with this status.
pub(in crate::dxgk) fn is(result: DxgResult, status: Status) -> bool {
    result.is_err_and(|error| error.is(status))
}

/// A driver without adapters, and the process of the test, which has the device open.
pub(in crate::dxgk) struct Client {
    pub(in crate::dxgk) driver: Arc<Driver>,
    pub(in crate::dxgk) process: Arc<Process>,
}

impl Client {
    pub(in crate::dxgk) fn new() -> Result<Self> {
        caller::attach_mm()?;

        let driver = Driver::new(None)?;
        let process = driver.open_process()?;

        Ok(Self { driver, process })
    }

    /// The handle of a new device, and the device.
    pub(in crate::dxgk) fn create_device(
        &self,
        adapter: &Arc<Adapter>,
    ) -> DxgResult<(u32, Parent)> {
        let device =
            HandleTarget::Device(Device::new(adapter.clone(), self.process.clone(), false)?);
        let reserved = self.process.handles.reserve(device, None)?;
        let handle = reserved.handle();

        reserved.commit();
        Ok((handle, self.process.handles.parent(handle)?))
    }

    pub(in crate::dxgk) fn create_context(&self, parent: &Parent) -> DxgResult {
        let context = HandleTarget::Context(context(parent.device.clone())?);

        self.process
            .handles
            .reserve(context, Some(parent))?
            .commit();
        Ok(())
    }

    /// A resource with two allocations.
    pub(in crate::dxgk) fn create_resource(&self, parent: &Parent) -> DxgResult {
        Self::create_resource_in(&self.driver, &self.process, parent, 2).map(drop)
    }

    /// A resource with allocations of two pages: its handle, and theirs.
    pub(in crate::dxgk) fn create_resource_in(
        driver: &Driver,
        process: &Process,
        parent: &Parent,
        count: usize,
    ) -> DxgResult<KVVec<u32>> {
        let mut allocations = KVVec::new();

        for _ in 0..count {
            allocations.push(new_allocation(&TWO_PAGES, false)?, GFP_KERNEL)?;
        }
        Self::create(driver, process, parent, allocations)
    }

    /// An allocation that these private data describe: its handle.
    pub(in crate::dxgk) fn create_allocation(
        &self,
        parent: &Parent,
        data: &[u8],
        primary: bool,
    ) -> DxgResult<u32> {
        let mut allocations = KVVec::new();

        allocations.push(new_allocation(data, primary)?, GFP_KERNEL)?;

        let handles = Self::create(&self.driver, &self.process, parent, allocations)?;

        handles
            .last()
            .copied()
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    fn create(
        driver: &Driver,
        process: &Process,
        parent: &Parent,
        allocations: KVVec<NewAllocation>,
    ) -> DxgResult<KVVec<u32>> {
        let count = allocations.len();

        let request = CreateAllocationsRequest {
            creation: Creation {
                flags: bits::CREATE_RESOURCE,
                // CAST: few.
                count: count as u32,
                has_infos: true,
                driver_data_size: 0,
                runtime_data_size: 0,
                standard: None,
            },
            allocations: InlineVec::Many(allocations),
            destination: Destination::New {
                driver_data: None,
                runtime_data: None,
            },
        };
        let handles = parent.create_allocations(process, &driver.tables, request)?;
        let mut numbers = KVVec::with_capacity(count + 1, GFP_KERNEL)?;

        for number in handles.numbers() {
            numbers.push(number, GFP_KERNEL)?;
        }
        handles.commit();
        Ok(numbers)
    }
}

/// What makes an allocation that these private data describe.
fn new_allocation(data: &[u8], primary: bool) -> DxgResult<NewAllocation> {
    let mut driver_data = KVVec::new();

    driver_data.extend_from_slice(data, GFP_KERNEL)?;
    Ok(NewAllocation {
        driver_data: Some(driver_data),
        source: Source::New,
        priority: None,
        primary,
    })
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.release_process(&self.process);
    }
}

/// A context on node 0.
pub(in crate::dxgk) fn context(device: Arc<Device>) -> DxgResult<Arc<Context>> {
    let description = Description {
        scheduling: Scheduling::HwQueues,
        class: Class::HwContext,
        node: 0,
        engines: 1,
        disable_gpu_timeout: false,
        private_data: KVVec::new(),
    };

    Context::new(device, &description)
}

/// Lets the worker drop the last references to an adapter, for some seconds at most.
pub(in crate::dxgk) fn wait_for_good_end(journal: &Journal) {
    for _ in 0..1000 {
        if journal.is_good_end() {
            return;
        }
        fsleep(Delta::from_millis(10));
    }
}
