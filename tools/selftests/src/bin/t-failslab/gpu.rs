// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of queues, submissions, queued synchronisation and GPU addresses, made to fail.

use std::os::fd::AsRawFd;
use std::rc::Rc;

use opendxg::pm4::Pm4;
use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{
    Allocation, Context, EventFd, GpuReserve, HwQueue, MonitoredFence, Reservation, Status,
    SyncFlags, SyncKind, SyncObject,
};
use selftests::call::succeeds;
use selftests::gpu::{reaches, Buffer, Commands, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::user_queue::user_queue;
use selftests::{ensure_eq, fixture, TestResult};

use crate::t_failslab::plain::{close, keep, Maker, Plain, Sweep};
use crate::t_failslab::Call;

/// Elements of a list that does not fit where short ones go.
pub(crate) const MANY: usize = 64;
/// Where ranges are put.
const BASE: u64 = 0x10_0000_0000;

/// What the calls are about.
pub(crate) struct World {
    pub(crate) gpu: Gpu,
    other: Context,
    memory: Allocation,
    nop: Commands,
    gate: MonitoredFence,
    fences: Vec<MonitoredFence>,
    handles: Vec<u32>,
    values: Vec<u64>,
    contexts: [u32; 2],
    semaphore: SyncObject,
    event: EventFd,
}

impl World {
    pub(crate) fn new() -> TestResult<Rc<Self>> {
        let gpu = Gpu::new()?;
        let device = gpu.device();
        let semaphore = SyncKind::Semaphore {
            max_count: 100_000,
            initial_count: 10_000,
        };
        let fences = (0..MANY).map(|_| device.create_fence(5));
        let fences = fences.collect::<Result<Vec<_>, _>>()?;
        let other = device.create_context(1)?;
        Ok(Rc::new(Self {
            memory: gpu.allocate(4 * PAGE)?,
            nop: gpu.commands(&Pm4::new().nop(0))?,
            gate: device.create_fence(0)?,
            handles: fences.iter().map(|fence| fence.handle().0).collect(),
            values: vec![5; MANY],
            contexts: [gpu.context().handle().0, other.handle().0],
            semaphore: device.create_sync_object(semaphore, SyncFlags::empty())?,
            event: EventFd::new()?,
            fences,
            other,
            gpu,
        }))
    }

    /// Waits until all that was queued is done, in both contexts.
    fn drain(&self) -> TestResult {
        let mark = self.gpu.mark()?;
        self.gpu.until(mark)?;
        let done = self.gpu.device().create_fence(0)?;
        self.other.signal(&selftests::gpu::one(&done, 1))?;
        reaches(&done, 1)
    }
}

/// A queue that its process fills, and what its ring can be made of.
fn with_user_queue(body: impl FnOnce(&HwQueue<'_>, &Buffer) -> TestResult) -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    body(&queue, &gpu.buffer(PAGE)?)
}

/// Sweeps over a call with a struct that is filled in from the world.
fn sweep_over<T: Argument + Copy + 'static>(
    sweep: Sweep<'_>,
    handles: u32,
    fill: impl FnOnce(&World, &mut T) -> TestResult,
    undo: impl Fn(&World, &Raw, &T) -> TestResult + 'static,
) -> TestResult {
    let world = World::new()?;
    let mut arg = T::zeroed();
    fill(&world, &mut arg)?;
    sweep(&mut Plain::new(arg, handles, move |raw, arg| {
        undo(&world, raw, arg)
    })?)
}

/// The same for a call after which something is queued in contexts.
fn queued<T: Argument + Copy + 'static>(
    sweep: Sweep<'_>,
    fill: impl FnOnce(&World, &mut T) -> TestResult,
) -> TestResult {
    // Draining makes a fence.
    sweep_over(sweep, 1, fill, |world, _, _| world.drain())
}

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("CreateSyncFile", |sweep| {
        let fill = |world: &World, arg: &mut D3DKMT_CREATESYNCFILE| {
            arg.hDevice = world.gpu.device().handle().0;
            (arg.hMonitoredFence, arg.FenceValue) = (world.handles[0], 5);
            Ok(())
        };
        sweep_over(sweep, 0, fill, |_, _, arg| close(arg.hSyncFile))
    }),
    ("WaitSyncFile", |sweep| {
        let world = World::new()?;
        let file = world.gpu.device().create_sync_file(&world.fences[0], 5)?;
        let mut arg = d3dkmt_waitsyncfile::zeroed();
        arg.sync_file_handle = file.as_raw_fd() as u64;
        arg.context = world.gpu.context().handle().0;
        sweep(&mut Plain::new(arg, 1, move |_, _| world.drain())?)
    }),
    ("OpenSyncObjectFromSyncFile", |sweep| {
        let world = World::new()?;
        let file = world.gpu.device().create_sync_file(&world.fences[0], 5)?;
        let mut arg = d3dkmt_opensyncobjectfromsyncfile::zeroed();
        arg.sync_file_handle = file.as_raw_fd() as u64;
        arg.device = world.gpu.device().handle().0;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
            destroy.hSyncObject = arg.syncobj;
            succeeds(raw, &mut destroy)
        })?)
    }),
    ("CreateHwQueue", |sweep| {
        let device = fixture::device()?;
        let context = device.create_hw_context(0)?;
        let mut arg = D3DKMT_CREATEHWQUEUE::zeroed();
        arg.hHwContext = context.handle().0;
        sweep(&mut Plain::new(arg, 2, |raw, arg| {
            let mut destroy = D3DKMT_DESTROYHWQUEUE::zeroed();
            destroy.hHwQueue = arg.hHwQueue;
            succeeds(raw, &mut destroy)
        })?)
    }),
    ("CreateHwQueue: filled by its process", |sweep| {
        let device = fixture::device()?;
        let context = device.create_hw_context(0)?;
        let mut arg = D3DKMT_CREATEHWQUEUE::zeroed();
        arg.hHwContext = context.handle().0;
        arg.Flags = D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission;
        sweep(&mut Plain::new(arg, 2, |raw, arg| {
            let mut destroy = D3DKMT_DESTROYHWQUEUE::zeroed();
            destroy.hHwQueue = arg.hHwQueue;
            succeeds(raw, &mut destroy)
        })?)
    }),
    ("CreateDoorbell", |sweep| {
        with_user_queue(|queue, ring| {
            let mut arg = D3DKMT_CREATE_DOORBELL::zeroed();
            arg.hHwQueue = queue.handle().0;
            arg.hRingBuffer = ring.allocation().handle().0;
            arg.hRingBufferControl = ring.allocation().handle().0;
            sweep(&mut Plain::new(arg, 1, |raw, arg| {
                let mut destroy = D3DKMT_DESTROY_DOORBELL::zeroed();
                destroy.hDoorbell = arg.hDoorbell;
                succeeds(raw, &mut destroy)
            })?)
        })
    }),
    ("ConnectDoorbell", |sweep| {
        with_user_queue(|queue, ring| {
            let doorbell = queue.create_doorbell(ring.allocation(), ring.allocation())?;
            let mut arg = D3DKMT_CONNECT_DOORBELL::zeroed();
            arg.hDoorbell = doorbell.handle().0;
            sweep(&mut Plain::new(arg, 0, keep)?)
        })
    }),
    ("NotifyWorkSubmission", |sweep| {
        with_user_queue(|queue, ring| {
            let doorbell = queue.create_doorbell(ring.allocation(), ring.allocation())?;
            let mut arg = D3DKMT_NOTIFY_WORK_SUBMISSION::zeroed();
            arg.hDoorbell = doorbell.handle().0;
            sweep(&mut Plain::new(arg, 0, keep)?)
        })
    }),
    ("CreatePagingQueue", |sweep| {
        let device = fixture::device()?;
        let mut arg = D3DKMT_CREATEPAGINGQUEUE::zeroed();
        arg.hDevice = device.handle().0;
        sweep(&mut Plain::new(arg, 2, |raw, arg| {
            let mut destroy = D3DDDI_DESTROYPAGINGQUEUE::zeroed();
            destroy.hPagingQueue = arg.hPagingQueue;
            succeeds(raw, &mut destroy)
        })?)
    }),
    ("ReserveGpuVirtualAddress", |sweep| {
        sweep_over(sweep, 0, reserve(0), freed)
    }),
    ("ReserveGpuVirtualAddress at an address", |sweep| {
        sweep_over(sweep, 0, reserve(BASE), freed)
    }),
    ("ReserveGpuVirtualAddress of an adapter", |sweep| {
        let fill = |world: &World, arg: &mut D3DDDI_RESERVEGPUVIRTUALADDRESS| {
            arg.__bindgen_anon_1.hAdapter = world.gpu.device().adapter().handle().0;
            arg.Size = BLOCK;
            Ok(())
        };
        sweep_over(sweep, 0, fill, freed)
    }),
    ("MapGpuVirtualAddress", |sweep| {
        sweep_over(sweep, 0, map(0), unmapped)
    }),
    ("MapGpuVirtualAddress at an address", |sweep| {
        sweep_over(sweep, 0, map(BASE), unmapped)
    }),
    ("MapGpuVirtualAddress over a reservation", |sweep| {
        let fill = |world: &World, arg: &mut D3DDDI_MAPGPUVIRTUALADDRESS| {
            world.gpu.paging().reserve(&zero(BASE))?;
            map(BASE + PAGE)(world, arg)
        };
        sweep_over(sweep, 0, fill, |world, _, _| {
            let adapter = world.gpu.device().adapter();
            adapter.free_gpu_range(BASE, BLOCK)?;
            world.gpu.paging().reserve(&zero(BASE))?;
            Ok(())
        })
    }),
    ("FreeGpuVirtualAddress that cuts a range", |sweep| {
        let fill = |world: &World, arg: &mut D3DKMT_FREEGPUVIRTUALADDRESS| {
            world.gpu.paging().reserve(&zero(BASE))?;
            arg.hAdapter = world.gpu.device().adapter().handle().0;
            (arg.BaseAddress, arg.Size) = (BASE + PAGE, PAGE);
            Ok(())
        };
        sweep_over(sweep, 0, fill, |world, _, _| {
            let adapter = world.gpu.device().adapter();
            adapter.free_gpu_range(BASE, PAGE)?;
            adapter.free_gpu_range(BASE + 2 * PAGE, BLOCK - 2 * PAGE)?;
            world.gpu.paging().reserve(&zero(BASE))?;
            Ok(())
        })
    }),
    ("UpdateGpuVirtualAddress", updated),
    ("SubmitCommand", |sweep| {
        queued(sweep, |world, arg: &mut D3DKMT_SUBMITCOMMAND| {
            submission(world, arg, 1)
        })
    }),
    ("SubmitCommand: broadcast", |sweep| {
        queued(sweep, |world, arg: &mut D3DKMT_SUBMITCOMMAND| {
            submission(world, arg, 2)
        })
    }),
    ("SignalSynchronizationObject2: broadcast", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2| {
                arg.hContext = world.contexts[0];
                (arg.ObjectCount, arg.ObjectHandleArray[0]) = (1, world.semaphore.handle().0);
                arg.BroadcastContextCount = 1;
                arg.BroadcastContext[0] = world.contexts[1];
                Ok(())
            },
        )
    }),
    ("SignalSynchronizationObject2: an event", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2| {
                arg.hContext = world.contexts[0];
                arg.Flags = D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent;
                arg.__bindgen_anon_1.CpuEventHandle = world.event.as_raw_fd() as u64;
                Ok(())
            },
        )
    }),
    ("WaitForSynchronizationObject2", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2| {
                arg.hContext = world.contexts[0];
                arg.ObjectCount = 2;
                arg.ObjectHandleArray[..2].fill(world.semaphore.handle().0);
                Ok(())
            },
        )
    }),
    ("SignalSynchronizationObjectFromGpu: a long list", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU| {
                arg.hContext = world.contexts[0];
                arg.ObjectCount = MANY as u32;
                arg.ObjectHandleArray = world.handles.as_ptr() as u64;
                arg.__bindgen_anon_1.MonitoredFenceValueArray = world.values.as_ptr() as u64;
                Ok(())
            },
        )
    }),
    ("SignalSynchronizationObjectFromGpu2: broadcast", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2| {
                arg.ObjectCount = MANY as u32;
                arg.ObjectHandleArray = world.handles.as_ptr() as u64;
                arg.BroadcastContextCount = 2;
                arg.BroadcastContextArray = world.contexts.as_ptr() as u64;
                arg.__bindgen_anon_1.MonitoredFenceValueArray = world.values.as_ptr() as u64;
                Ok(())
            },
        )
    }),
    ("WaitForSynchronizationObjectFromGpu", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU| {
                arg.hContext = world.contexts[0];
                arg.ObjectCount = MANY as u32;
                arg.ObjectHandleArray = world.handles.as_ptr() as u64;
                arg.__bindgen_anon_1.MonitoredFenceValueArray = world.values.as_ptr() as u64;
                Ok(())
            },
        )
    }),
    ("SubmitCommandToHwQueue", |sweep| {
        HwCall::sweep(sweep, HwKind::Commands)
    }),
    ("SubmitSignalSyncObjectsToHwQueue", |sweep| {
        HwCall::sweep(sweep, HwKind::Signal)
    }),
    ("SubmitWaitForSyncObjectsToHwQueue", |sweep| {
        HwCall::sweep(sweep, HwKind::Wait)
    }),
    ("SetContextSchedulingPriority", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_SETCONTEXTSCHEDULINGPRIORITY| {
                (arg.hContext, arg.Priority) = (world.contexts[0], -1);
                Ok(())
            },
        )
    }),
    ("GetContextSchedulingPriority", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_GETCONTEXTSCHEDULINGPRIORITY| {
                arg.hContext = world.contexts[0];
                Ok(())
            },
        )
    }),
    ("SetContextInProcessSchedulingPriority", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY| {
                (arg.hContext, arg.Priority) = (world.contexts[0], -1);
                Ok(())
            },
        )
    }),
    ("GetContextInProcessSchedulingPriority", |sweep| {
        queued(
            sweep,
            |world, arg: &mut D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY| {
                arg.hContext = world.contexts[0];
                Ok(())
            },
        )
    }),
    ("QueryStatistics", |sweep| {
        for kind in [
            D3DKMT_QUERYSTATISTICS_ADAPTER,
            D3DKMT_QUERYSTATISTICS_SEGMENT,
            D3DKMT_QUERYSTATISTICS_NODE,
            D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP,
        ] {
            let mut arg = D3DKMT_QUERYSTATISTICS::zeroed();
            (arg.Type, arg.AdapterLuid) = (kind, fixture::adapter()?.luid().into());
            sweep(&mut Plain::new(arg, 0, keep)?)?;
        }
        Ok(())
    }),
    ("FlushHeapTransitions", |sweep| {
        let adapter = fixture::adapter()?;
        let mut arg = D3DKMT_FLUSHHEAPTRANSITIONS::zeroed();
        arg.hAdapter = adapter.handle().0;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("GetDeviceState", |sweep| {
        let device = fixture::device()?;
        let mut arg = D3DKMT_GETDEVICESTATE::zeroed();
        arg.hDevice = device.handle().0;
        arg.StateType = D3DKMT_DEVICESTATE_PAGE_FAULT;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
];

fn zero(base: u64) -> GpuReserve {
    GpuReserve {
        base,
        size: BLOCK,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    }
}

fn reserve(base: u64) -> impl Fn(&World, &mut D3DDDI_RESERVEGPUVIRTUALADDRESS) -> TestResult {
    move |world, arg| {
        arg.__bindgen_anon_1.hPagingQueue = world.gpu.paging().handle().0;
        (arg.BaseAddress, arg.Size) = (base, BLOCK);
        arg.__bindgen_anon_2.ReservationType = D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO;
        Ok(())
    }
}

fn freed(world: &World, _: &Raw, arg: &D3DDDI_RESERVEGPUVIRTUALADDRESS) -> TestResult {
    let adapter = world.gpu.device().adapter();
    Ok(adapter.free_gpu_range(arg.VirtualAddress, BLOCK)?)
}

fn map(base: u64) -> impl Fn(&World, &mut D3DDDI_MAPGPUVIRTUALADDRESS) -> TestResult {
    move |world, arg| {
        arg.hPagingQueue = world.gpu.paging().handle().0;
        (arg.hAllocation, arg.BaseAddress) = (world.memory.handle().0, base);
        (arg.SizeInPages, arg.Protection) = (2, READ_WRITE.bits());
        Ok(())
    }
}

fn unmapped(world: &World, _: &Raw, arg: &D3DDDI_MAPGPUVIRTUALADDRESS) -> TestResult {
    let adapter = world.gpu.device().adapter();
    Ok(adapter.free_gpu_range(arg.VirtualAddress, 2 * PAGE)?)
}

fn submission(world: &World, arg: &mut D3DKMT_SUBMITCOMMAND, contexts: usize) -> TestResult {
    (arg.Commands, arg.CommandLength) = (world.nop.address(), world.nop.length());
    arg.BroadcastContextCount = contexts as u32;
    arg.BroadcastContext[..contexts].copy_from_slice(&world.contexts[..contexts]);
    (arg.NumPrimaries, arg.WrittenPrimaries[0]) = (1, world.memory.handle().0);
    // Any bytes will do.
    arg.pPrivateDriverData = world.values.as_ptr() as u64;
    arg.PrivateDriverDataSize = 64;
    Ok(())
}

/// An update that does not wait, of two pages; it may be done after the call.
fn updated(sweep: Sweep<'_>) -> TestResult {
    let world = World::new()?;
    world.gpu.paging().reserve(&zero(BASE))?;
    // SAFETY: structs of integers, of which 0 is one.
    let mut operations: [D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION; 2] =
        unsafe { core::mem::zeroed() };
    for (number, operation) in (0..).zip(&mut operations) {
        operation.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP;
        let map = &mut operation.__bindgen_anon_1;
        map.Map.BaseAddress = BASE + number * 4 * PAGE;
        map.Map.SizeInBytes = PAGE;
        map.Map.hAllocation = world.memory.handle().0;
    }
    let mut arg = D3DKMT_UPDATEGPUVIRTUALADDRESS::zeroed();
    arg.hDevice = world.gpu.device().handle().0;
    (arg.hContext, arg.hFenceObject) = (world.contexts[0], world.gate.handle().0);
    (arg.NumOperations, arg.Operations) = (2, operations.as_ptr() as u64);
    let again = world.clone();
    // It begins at once, because the gate is at 0, and signals 1.
    sweep(&mut Plain::new(arg, 0, move |_, _| {
        reaches(&again.gate, 1)?;
        again.gate.signal_rewind(0)?;
        let adapter = again.gpu.device().adapter();
        adapter.free_gpu_range(BASE, BLOCK)?;
        again.gpu.paging().reserve(&zero(BASE))?;
        Ok(())
    })?)
}

/// What a HW queue is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HwKind {
    Commands,
    Signal,
    Wait,
}

/// A call of a HW queue. Commands that were refused have not used up their progress value.
struct HwCall {
    raw: Raw,
    world: Rc<World>,
    queue: u32,
    progress: u64,
    kind: HwKind,
}

impl HwCall {
    fn sweep(sweep: Sweep<'_>, kind: HwKind) -> TestResult {
        let world = World::new()?;
        let context = world.gpu.device().create_hw_context(0)?;
        let queue = context.create_hw_queue()?;
        sweep(&mut Self {
            raw: fixture::raw()?,
            queue: queue.handle().0,
            progress: 0,
            world,
            kind,
        })?;
        queue.destroy()?;
        Ok(())
    }
}

impl Call for HwCall {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let (world, list) = (&self.world, [self.queue]);
        let objects = world.handles.as_ptr() as u64;
        let values = world.values.as_ptr() as u64;
        match self.kind {
            HwKind::Commands => {
                let primaries = [world.memory.handle().0];
                let mut arg = D3DKMT_SUBMITCOMMANDTOHWQUEUE::zeroed();
                arg.hHwQueue = self.queue;
                arg.HwQueueProgressFenceId = self.progress + 1;
                (arg.CommandBuffer, arg.CommandLength) = (world.nop.address(), world.nop.length());
                (arg.NumPrimaries, arg.WrittenPrimaries) = (1, primaries.as_ptr() as u64);
                (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = (values, 64);
                self.raw.exec(&mut arg)
            }
            HwKind::Signal => {
                let mut arg = D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE::zeroed();
                arg.BroadcastHwQueueCount = 1;
                arg.BroadcastHwQueueArray = list.as_ptr() as u64;
                (arg.ObjectCount, arg.ObjectHandleArray) = (MANY as u32, objects);
                arg.FenceValueArray = values;
                self.raw.exec(&mut arg)
            }
            HwKind::Wait => {
                let mut arg = D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE::zeroed();
                arg.hHwQueue = self.queue;
                (arg.ObjectCount, arg.ObjectHandleArray) = (MANY as u32, objects);
                arg.FenceValueArray = values;
                self.raw.exec(&mut arg)
            }
        }
    }

    /// The fence that is made below.
    fn handles(&self) -> u32 {
        1
    }

    fn undo(&mut self) -> TestResult {
        if self.kind == HwKind::Commands {
            self.progress += 1;
        }
        for fence in &self.world.fences {
            ensure_eq!(fence.value(), 5);
        }
        // What is behind it in the queue comes.
        let done = self.world.gpu.device().create_fence(0)?;
        let (object, value, list) = ([done.handle().0], [1u64], [self.queue]);
        let mut arg = D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE::zeroed();
        arg.BroadcastHwQueueCount = 1;
        arg.BroadcastHwQueueArray = list.as_ptr() as u64;
        (arg.ObjectCount, arg.ObjectHandleArray) = (1, object.as_ptr() as u64);
        arg.FenceValueArray = value.as_ptr() as u64;
        succeeds(&self.raw, &mut arg)?;
        reaches(&done, 1)
    }
}
