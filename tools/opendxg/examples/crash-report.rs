// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a user-mode driver hears that its work has crashed, and tells the user why: a thread waits
//! for a CPU event, and nobody asks again and again. The work of this program stores to an address
//! where nothing is; then it goes on with a new device.

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::{EventClass, EventRecord};
use opendxg::{
    Adapter, Allocation, Context, CpuEvent, Device, Dxg, Error, EventFd, FenceValues, GpuMap,
    MonitoredFence, PagingQueue, ResidentFlags, Result, Status,
};

/// Where nobody maps anything.
const NOWHERE: u64 = 0x6000_0000_0000;
/// Longer than this the reason of a crash does not take.
const SOON: Duration = Duration::from_secs(10);

/// What a driver has of a GPU.
struct Driver {
    event: CpuEvent,
    /// What the kernel-mode driver calls the event.
    name: u64,
    crashed: EventFd,
    done: MonitoredFence,
    context: Context,
    memory: Allocation,
    address: u64,
    _paging: PagingQueue,
    device: Device,
}

impl Driver {
    fn new(adapter: &Adapter) -> Result<Self> {
        let device = adapter.create_device()?;
        let crashed = EventFd::new()?;
        let event = device.create_cpu_event(&crashed)?;
        let name = event.set_usage(EventClass::Any.usage(0))?;
        let paging = device.create_paging_queue()?;
        let memory = device.new_resource().linear(4096).create_one()?;
        let resident = paging.make_resident(&[&memory], ResidentFlags::empty())?;
        let map = GpuMap {
            pages: 1,
            ..GpuMap::default()
        };
        let range = paging.map(Some(&memory), &map)?;
        paging.wait(resident.value()?.max(range.value))?;
        Ok(Self {
            event,
            name,
            crashed,
            done: device.create_fence(0)?,
            context: device.create_context(0)?,
            memory,
            address: range.address,
            _paging: paging,
            device,
        })
    }

    /// Runs commands; why they have crashed if they have.
    fn run(&self, commands: &Pm4) -> Result<Option<Vec<EventRecord>>> {
        let bytes = commands.bytes();
        self.memory.lock_write()?.write(0, &bytes);
        self.context.submit(self.address, bytes.len() as u32)?;
        match self.context.signal(&FenceValues::new().with(&self.done, 1)) {
            // It has crashed already.
            Ok(()) | Err(Error::Status(Status::DEVICE_REMOVED)) => {}
            Err(error) => return Err(error),
        }
        // It ends either way.
        self.done.wait(1)?;
        if self.done.value() == 1 {
            return Ok(None);
        }
        self.crashed.wait(Some(SOON))?;
        Ok(Some(self.event.take_records(self.name)?.0))
    }
}

fn report(device: &Device, record: &EventRecord) -> Result<()> {
    let what = match record.class {
        class if class == EventClass::PageFault as u32 => "page fault",
        class if class == EventClass::Reset as u32 => "reset",
        class if class == EventClass::Trap as u32 => "trap",
        class if class == EventClass::BadObject as u32 => "illegal packet",
        _ => "something that this program does not know",
    };
    let how = match (what, record.reason) {
        ("page fault", 1) => " of a store",
        ("page fault", _) => " of a load",
        _ => "",
    };
    println!("the GPU has crashed: {what}{how} at {:#x}", record.detail);
    println!("  node {}, queue {}", record.node, record.queue);
    println!("  {} ns after the start of the machine", record.time_ns);
    println!("  the device is {:?}", device.execution_state()?);
    Ok(())
}

fn main() -> Result<()> {
    let dxg = Dxg::open()?;
    let adapter = &dxg.adapters()?[0];
    let driver = Driver::new(adapter)?;
    for record in driver
        .run(&Pm4::new().write(NOWHERE, &[1]))?
        .unwrap_or_default()
    {
        report(&driver.device, &record)?;
    }
    drop(driver);
    let crash = Driver::new(adapter)?.run(&Pm4::new().nop(0))?;
    println!(
        "a new device {}",
        if crash.is_none() {
            "works"
        } else {
            "has crashed"
        }
    );
    Ok(())
}
