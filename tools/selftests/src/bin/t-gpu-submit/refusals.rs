// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused, without an effect (GPU-6, FEN-50, FEN-51, MEM-92).

use opendxg::pm4::{Atomic, Pm4};
use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{ExecutionState, Placement, Status, SyncFlags, SyncKind};
use selftests::call::refused;
use selftests::gpu::{is_in, Commands, Gpu, PAGE};
use selftests::memory::{KERNEL_HALF, UNMAPPED};
use selftests::{ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const AV: Status = Status::ACCESS_VIOLATION;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-6 MEM-92 submissions that are refused", submissions)
        .test(
            "GPU-8 FEN-126 submissions to hardware queues that are refused",
            to_queues,
        )
        .test("FEN-53 FEN-50 lists of a context that are refused", lists)
        .test("FEN-51 mixtures of types", mixtures)
        .test("MEM-92 commands with physical addresses", physical)
        .test(
            "MEM-94 memory that is named by physical address and not accessed so",
            history,
        )
}

/// A submission that would count.
struct Counted {
    gpu: Gpu,
    counter: selftests::gpu::Buffer,
    commands: Commands,
    raw: Raw,
}

impl Counted {
    fn new() -> TestResult<Self> {
        let gpu = Gpu::new()?;
        let counter = gpu.buffer(PAGE)?;
        let add = Pm4::new().atomic(Atomic::Add, counter.address(), 1, 0);
        let commands = gpu.commands(&add)?;
        let raw = fixture::raw()?;
        Ok(Self {
            gpu,
            counter,
            commands,
            raw,
        })
    }

    /// Nothing of what was refused has run.
    fn ran(&self, times: u64) -> TestResult {
        self.gpu.finish()?;
        ensure_eq!(self.counter.get64(0), times);
        Ok(())
    }
}

type Spoil = fn(&mut D3DKMT_SUBMITCOMMAND);

fn submissions() -> TestResult {
    let counted = Counted::new()?;
    let other = Gpu::new()?;
    let mut good = D3DKMT_SUBMITCOMMAND::zeroed();
    good.Commands = counted.commands.address();
    good.CommandLength = counted.commands.length();
    good.BroadcastContextCount = 1;
    good.BroadcastContext[0] = counted.gpu.context().handle().0;
    let spoilt: [(&str, Spoil, Status); 20] = [
        ("length 0", |arg| arg.CommandLength = 0, IP),
        ("length 2", |arg| arg.CommandLength = 2, IP),
        ("length 3", |arg| arg.CommandLength = 3, IP),
        ("length 6", |arg| arg.CommandLength = 6, IP),
        ("too long", |arg| arg.CommandLength = (16 << 20) + 4, IP),
        ("much too long", |arg| arg.CommandLength = u32::MAX - 3, IP),
        ("address + 1", |arg| arg.Commands += 1, IP),
        ("address + 2", |arg| arg.Commands += 2, IP),
        ("no context", |arg| arg.BroadcastContextCount = 0, IP),
        ("65 contexts", |arg| arg.BroadcastContextCount = 65, IP),
        (
            "many contexts",
            |arg| arg.BroadcastContextCount = u32::MAX,
            IP,
        ),
        (
            "a second context of 0",
            |arg| arg.BroadcastContextCount = 2,
            IP,
        ),
        ("context 0", |arg| arg.BroadcastContext[0] = 0, IP),
        (
            "a context that is none",
            |arg| arg.BroadcastContext[0] += 0x40_0000,
            IP,
        ),
        ("flag 3", |arg| arg.Flags = 1 << 3, IP),
        ("flag 31", |arg| arg.Flags = 1 << 31, IP),
        ("17 primaries", |arg| arg.NumPrimaries = 17, IP),
        (
            "too many driver data",
            |arg| (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = (1, 65537),
            IP,
        ),
        (
            "driver data at NULL",
            |arg| arg.PrivateDriverDataSize = 4,
            AV,
        ),
        (
            "driver data that cannot be read",
            |arg| (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = (KERNEL_HALF, 8),
            AV,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&counted.raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    // What is no context, and contexts of other devices.
    for handle in [
        counted.gpu.device().handle().0,
        counted.gpu.done().handle().0,
        counted.gpu.paging().handle().0,
    ] {
        let mut arg = good;
        arg.BroadcastContext[0] = handle;
        refused(&counted.raw, &mut arg, IP)?;
    }
    let mut arg = good;
    arg.BroadcastContextCount = 2;
    arg.BroadcastContext[1] = other.context().handle().0;
    refused(&counted.raw, &mut arg, IP)?;
    counted.ran(0)?;
    selftests::call::succeeds(&counted.raw, &mut good)?;
    counted.ran(1)
}

fn to_queues() -> TestResult {
    let counted = Counted::new()?;
    let context = counted.gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let mut good = D3DKMT_SUBMITCOMMANDTOHWQUEUE::zeroed();
    good.hHwQueue = queue.handle().0;
    good.HwQueueProgressFenceId = 5;
    good.CommandBuffer = counted.commands.address();
    good.CommandLength = counted.commands.length();
    type Spoil = fn(&mut D3DKMT_SUBMITCOMMANDTOHWQUEUE);
    let spoilt: [(&str, Spoil, Status); 9] = [
        ("length 0", |arg| arg.CommandLength = 0, IP),
        ("length 6", |arg| arg.CommandLength = 6, IP),
        ("too long", |arg| arg.CommandLength = (16 << 20) + 4, IP),
        ("address + 2", |arg| arg.CommandBuffer += 2, IP),
        ("queue 0", |arg| arg.hHwQueue = 0, IP),
        ("a queue that is none", |arg| arg.hHwQueue += 0x40_0000, IP),
        ("17 primaries", |arg| arg.NumPrimaries = 17, IP),
        ("progress 0", |arg| arg.HwQueueProgressFenceId = 0, IP),
        (
            "driver data that cannot be read",
            |arg| (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = (UNMAPPED, 8),
            AV,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&counted.raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    // A context of packets is none, and so is a hardware context.
    for handle in [counted.gpu.context().handle().0, context.handle().0] {
        let mut arg = good;
        arg.hHwQueue = handle;
        refused(&counted.raw, &mut arg, IP)?;
    }
    // A hardware context takes no packets itself.
    let mut direct = D3DKMT_SUBMITCOMMAND::zeroed();
    (direct.Commands, direct.CommandLength) = (good.CommandBuffer, good.CommandLength);
    direct.BroadcastContextCount = 1;
    direct.BroadcastContext[0] = context.handle().0;
    refused(&counted.raw, &mut direct, IP)?;
    counted.ran(0)?;
    selftests::call::succeeds(&counted.raw, &mut good)?;
    selftests::gpu::reaches(queue.progress(), 5)?;
    counted.ran(1)?;
    // It only rises.
    for value in [5, 4, 1] {
        good.HwQueueProgressFenceId = value;
        refused(&counted.raw, &mut good, IP)?;
    }
    counted.ran(1)
}

/// History buffers are the only list left that names memory by physical address.
fn history() -> TestResult {
    let counted = Counted::new()?;
    let bystander = counted.gpu.device().adapter().create_device()?;
    let device = counted.gpu.device();
    let physical = |local| device.new_resource().physical(PAGE, local).create_one();
    let (shown, range) = (physical(false)?, physical(true)?);
    let plain = counted.gpu.allocate(PAGE)?;
    let mut arg = D3DKMT_SUBMITCOMMAND::zeroed();
    arg.Commands = counted.commands.address();
    arg.CommandLength = counted.commands.length();
    arg.BroadcastContextCount = 1;
    arg.BroadcastContext[0] = counted.gpu.context().handle().0;
    let mut submit = |list: &[u32], status| {
        arg.NumHistoryBuffers = list.len() as u32;
        arg.HistoryBufferArray = list.as_ptr() as u64;
        refused(&counted.raw, &mut arg, status)
    };
    let (one, two) = (shown.handle().0, range.handle().0);
    // No driver writes them.
    submit(&[one], Status::NOT_SUPPORTED)?;
    submit(&[one, two, one], Status::NOT_SUPPORTED)?;
    // A list with a mistake says nothing.
    submit(&[plain.handle().0, 0], IP)?;
    submit(&[plain.handle().0; 65], IP)?;
    submit(&[device.handle().0], IP)?;
    is_in(device, ExecutionState::Active)?;
    counted.ran(0)?;
    // What is accessed physically can change.
    let placement = Placement::new().accessed_physically(false);
    counted.gpu.paging().update_placement(&range, &placement)?;
    let mut exec = D3DKMT_SUBMITCOMMAND { ..arg };
    let list = [one, two];
    exec.NumHistoryBuffers = 2;
    exec.HistoryBufferArray = list.as_ptr() as u64;
    ensure_eq!(
        counted.raw.exec(&mut exec)?,
        Status::GRAPHICS_INVALID_ALLOCATION_USAGE
    );
    is_in(device, ExecutionState::DmaFault)?;
    exec.NumHistoryBuffers = 0;
    refused(&counted.raw, &mut exec, Status::DEVICE_REMOVED)?;
    ensure_eq!(counted.counter.get64(0), 0);
    is_in(&bystander, ExecutionState::Active)
}

/// Demands that a call with the lists of a context is refused, whatever is wrong with them.
macro_rules! refused_lists {
    ($raw:expr, $good:ident: $argument:ty, $call:literal) => {
        let spoilt: [(&str, fn(&mut $argument), Status); 8] = [
            ("context 0", |arg| arg.hContext = 0, IP),
            ("no context", |arg| arg.hContext += 0x40_0000, IP),
            ("count 0", |arg| arg.ObjectCount = 0, IP),
            ("count max", |arg| arg.ObjectCount = u32::MAX, IP),
            ("objects NULL", |arg| arg.ObjectHandleArray = 0, IP),
            (
                "objects unreadable",
                |arg| arg.ObjectHandleArray = UNMAPPED,
                AV,
            ),
            (
                "values NULL",
                |arg| arg.__bindgen_anon_1.MonitoredFenceValueArray = 0,
                IP,
            ),
            (
                "values unreadable",
                |arg| arg.__bindgen_anon_1.MonitoredFenceValueArray = UNMAPPED,
                AV,
            ),
        ];
        for (what, spoil, status) in spoilt {
            let mut arg = $good;
            spoil(&mut arg);
            refused($raw, &mut arg, status)
                .map_err(|error| format!("{}: {what}: {error}", $call))?;
        }
    };
}

fn lists() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let handles = [gpu.done().handle().0];
    let values = [u64::MAX];
    let mut good = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
    good.hContext = gpu.context().handle().0;
    good.ObjectCount = 1;
    good.ObjectHandleArray = handles.as_ptr() as u64;
    good.__bindgen_anon_1.MonitoredFenceValueArray = values.as_ptr() as u64;
    refused_lists!(&raw, good: D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU, "wait");
    let mut good = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
    good.hContext = gpu.context().handle().0;
    good.ObjectCount = 1;
    good.ObjectHandleArray = handles.as_ptr() as u64;
    good.__bindgen_anon_1.MonitoredFenceValueArray = values.as_ptr() as u64;
    refused_lists!(&raw, good: D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU, "signal");
    for handle in [
        0,
        0x40_0000 + handles[0],
        gpu.context().handle().0,
        gpu.device().handle().0,
    ] {
        let mut arg = good;
        arg.ObjectHandleArray = (&raw const handle) as u64;
        refused(&raw, &mut arg, IP)?;
    }
    // A list whose second object is none has no effect on the first.
    let two = [handles[0], 0];
    let values = [77, 77];
    let mut arg = good;
    arg.ObjectCount = 2;
    arg.ObjectHandleArray = two.as_ptr() as u64;
    arg.__bindgen_anon_1.MonitoredFenceValueArray = values.as_ptr() as u64;
    refused(&raw, &mut arg, IP)?;
    gpu.finish()?;
    ensure_eq!(gpu.done().value(), 1);
    Ok(())
}

fn mixtures() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let kinds = [
        SyncKind::Mutex {
            initially_owned: false,
        },
        SyncKind::Semaphore {
            max_count: 4,
            initial_count: 4,
        },
        SyncKind::Fence { initial_value: 9 },
    ];
    for kind in kinds {
        let object = gpu.device().create_sync_object(kind, SyncFlags::empty())?;
        for handles in [
            [gpu.done().handle().0, object.handle().0],
            [object.handle().0, gpu.done().handle().0],
        ] {
            let values = [0u64; 2];
            let mut wait = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
            wait.hContext = gpu.context().handle().0;
            wait.ObjectCount = 2;
            wait.ObjectHandleArray = handles.as_ptr() as u64;
            wait.__bindgen_anon_1.MonitoredFenceValueArray = values.as_ptr() as u64;
            refused(&raw, &mut wait, IP).map_err(|error| format!("{kind:?}: {error}"))?;
            let mut signal = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
            signal.hContext = gpu.context().handle().0;
            signal.ObjectCount = 2;
            signal.ObjectHandleArray = handles.as_ptr() as u64;
            signal.__bindgen_anon_1.MonitoredFenceValueArray = values.as_ptr() as u64;
            refused(&raw, &mut signal, IP).map_err(|error| format!("{kind:?}: {error}"))?;
        }
    }
    gpu.run(&Pm4::new().nop(0))
}

/// No node takes them; what is wrong with the call itself comes first.
fn physical() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let mut create = D3DKMT_CREATECONTEXT::zeroed();
    create.hDevice = gpu.device().handle().0;
    refused(&raw, &mut create, Status::NOT_SUPPORTED)?;
    create.NodeOrdinal = 99;
    refused(&raw, &mut create, IP)?;
    let mut render = D3DKMT_RENDER::zeroed();
    render.__bindgen_anon_1.hContext = gpu.context().handle().0;
    render.CommandLength = 64;
    refused(&raw, &mut render, Status::NOT_SUPPORTED)?;
    for (allocations, patches) in [(1, 0), (0, 1), (u32::MAX, u32::MAX)] {
        (render.AllocationCount, render.PatchLocationCount) = (allocations, patches);
        refused(&raw, &mut render, IP)?;
    }
    gpu.finish()
}
