// SPDX-License-Identifier: MIT OR Apache-2.0
//! What executes, is queued, or is there for the GPU belongs to the client's memory cgroup
//! (RES-106, MEM-50), also where the driver's worker makes it.

use std::cell::{OnceCell, RefCell};
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, Context, Device, GpuMap, GpuReserve, GpuUpdate, MonitoredFence, Reservation,
    ResidentFlags,
};
use selftests::gpu::{one, reaches, Commands, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::rounds::is_brief;
use selftests::{Suite, TestResult};

use crate::t_limits::memory::{charged, MANY};

/// Paging queues and updates go into new devices and contexts after so many.
const PART: u64 = 60;
/// Bytes below a page table.
const TABLE: u64 = 2 << 20;
/// Where ranges are reserved.
const BASE: u64 = 0x10_0000_0000;

/// What a child makes when it first needs it.
struct World {
    gpu: Gpu,
    hw_context: Context,
    memory: Allocation,
    gate: MonitoredFence,
    nop: Commands,
    /// The last device or context of a part, and those before it.
    devices: RefCell<Vec<Device>>,
    contexts: RefCell<Vec<Context>>,
}

impl World {
    fn new(device: &Device) -> TestResult<Self> {
        let gpu = Gpu::on(device, 0)?;
        Ok(Self {
            hw_context: device.create_hw_context(0)?,
            memory: gpu.allocate(PAGE)?,
            gate: device.create_fence(0)?,
            nop: gpu.commands(&Pm4::new().nop(0))?,
            devices: RefCell::default(),
            contexts: RefCell::default(),
            gpu,
        })
    }

    /// The device for this number.
    fn device(&self, number: u64) -> TestResult<Device> {
        let mut devices = self.devices.borrow_mut();
        if number % PART == 0 {
            devices.push(self.gpu.device().adapter().create_device()?);
        }
        Ok(devices.last().ok_or("no device")?.clone())
    }

    /// One update of a reserved page. The first one of all reserves, and each part has a context.
    fn update(&self, number: u64, now: bool) -> TestResult {
        let pages = 2 * MANY;
        let mut contexts = self.contexts.borrow_mut();
        if number == 0 {
            let reserve = GpuReserve {
                base: BASE,
                size: (pages * PAGE).next_multiple_of(BLOCK),
                kind: Reservation::Zero,
                ..GpuReserve::default()
            };
            self.gpu.paging().reserve(&reserve)?;
        }
        if number % PART == 0 {
            contexts.push(self.gpu.device().create_context(0)?);
        }
        let context = contexts.last().ok_or("no context")?;
        let map = GpuUpdate::Map {
            address: BASE + 2 * number * PAGE,
            size: PAGE,
            allocation: &self.memory,
            offset: 0,
            length: 0,
            protection: None,
        };
        if !now {
            return Ok(context.update_gpu_ranges(&[map], &self.gate, 1)?);
        }
        context.update_gpu_ranges_now(&[map], &self.gate, number)?;
        // Those of one context are done in order.
        match number % PART + 1 {
            PART => reaches(&self.gate, number + 1),
            _ => Ok(()),
        }
    }
}

type Make = fn(&World, u64) -> TestResult;

/// What is made, how many bytes it takes at least, and how one is made.
const ALL: [(&str, u64, Make); 13] = [
    ("contexts", 1000, |world, _| {
        world.gpu.device().create_context(1)?.into_raw();
        Ok(())
    }),
    ("HW contexts", 300, |world, _| {
        world.gpu.device().create_hw_context(1)?.into_raw();
        Ok(())
    }),
    ("HW queues", 1000, |world, _| {
        world.hw_context.create_hw_queue()?.into_raw();
        Ok(())
    }),
    ("paging queues", 300, |world, number| {
        world.device(number)?.create_paging_queue()?.into_raw();
        Ok(())
    }),
    // They are small, and charges come in steps: so eight at a time.
    ("reserved ranges", 8 * 100, |world, number| {
        for range in 8 * number..8 * (number + 1) {
            let reserve = GpuReserve {
                base: BASE + range * BLOCK,
                size: BLOCK,
                ..GpuReserve::default()
            };
            world.gpu.paging().reserve(&reserve)?;
        }
        Ok(())
    }),
    ("page tables", 4096, |world, number| {
        let reserve = GpuReserve {
            base: BASE + number * TABLE,
            size: BLOCK,
            kind: Reservation::Zero,
            ..GpuReserve::default()
        };
        world.gpu.paging().reserve(&reserve)?;
        Ok(())
    }),
    ("mapped ranges", 150, |world, _| {
        let map = GpuMap {
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        world.gpu.paging().map(Some(&world.memory), &map)?;
        Ok(())
    }),
    ("resident pages", 4096, |world, _| {
        let memory = world.gpu.allocate(PAGE)?;
        let none = ResidentFlags::empty();
        world
            .gpu
            .paging()
            .make_resident(&[&memory], none)?
            .value()?;
        memory.into_raw();
        Ok(())
    }),
    ("submissions", 150, |world, number| {
        if number == 0 {
            world.gpu.context().wait(&one(&world.gate, 1))?;
        }
        world.gpu.submit(&world.nop)
    }),
    ("queued signals", 150, |world, number| {
        if number == 0 {
            world.gpu.context().wait(&one(&world.gate, 1))?;
        }
        Ok(world.gpu.context().signal(&one(world.gpu.done(), 1))?)
    }),
    ("queued waits", 300, |world, _| {
        Ok(world.gpu.context().wait(&one(&world.gate, 1))?)
    }),
    ("updates that wait", 300, |world, number| {
        world.update(number, false)
    }),
    ("ranges that the worker makes", 300, |world, number| {
        world.update(number, true)
    }),
];

pub(crate) fn tests(suite: Suite) -> Suite {
    // Numbers of bytes.
    if is_brief() {
        return suite;
    }
    let row = |suite: Suite, (name, bytes, make): (&'static str, u64, Make)| {
        let test = format!("RES-106 MEM-50 {name} are charged");
        suite.slow(test, Duration::from_secs(60), move || {
            let world = OnceCell::new();
            charged(name, bytes, |device, number| {
                if world.get().is_none() {
                    let _ = world.set(World::new(device)?);
                }
                make(world.get().ok_or("no world")?, number)
            })
        })
    };
    ALL.into_iter().fold(suite, row)
}
