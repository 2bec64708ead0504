// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which call takes which type of object: the table of section 2.6 (FEN-50).

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, Device, EventFd, Status, SyncFlags, SyncKind, SyncObject};
use selftests::call::refused;
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const OK: Status = Status::SUCCESS;
const IP: Status = Status::INVALID_PARAMETER;

/// A call of one object.
type Call = fn(&Tried, u32) -> Status;

/// The columns of the table.
const CALLS: [(&str, Call); 8] = [
    ("CPU wait", Tried::cpu_wait),
    ("CPU signal", Tried::cpu_signal),
    ("FromGpu wait", Tried::gpu_wait),
    ("FromGpu signal", Tried::gpu_signal),
    ("Wait2", Tried::legacy_wait),
    ("Signal2", Tried::legacy_signal),
    ("HW-queue wait", Tried::queue_wait),
    ("HW-queue signal", Tried::queue_signal),
];

/// A row: what each of the calls answers.
type Row = (
    &'static str,
    [Status; 8],
    fn(&Device, &EventFd) -> opendxg::Result<SyncObject>,
);

const ROWS: [Row; 6] = [
    ("mutex", [IP, IP, OK, OK, OK, OK, IP, IP], |device, _| {
        let kind = SyncKind::Mutex {
            initially_owned: false,
        };
        device.create_sync_object(kind, SyncFlags::empty())
    }),
    (
        "semaphore",
        [IP, IP, OK, OK, OK, OK, IP, IP],
        |device, _| {
            let kind = SyncKind::Semaphore {
                max_count: 100,
                initial_count: 50,
            };
            device.create_sync_object(kind, SyncFlags::empty())
        },
    ),
    ("fence", [IP, IP, OK, OK, OK, OK, IP, IP], |device, _| {
        let kind = SyncKind::Fence { initial_value: 1 };
        device.create_sync_object(kind, SyncFlags::empty())
    }),
    (
        "CPU notification",
        [IP, IP, IP, OK, IP, OK, IP, IP],
        |device, event| {
            let kind = SyncKind::CpuNotification { event: Some(event) };
            device.create_sync_object(kind, SyncFlags::empty())
        },
    ),
    (
        "native fence",
        [OK, OK, OK, OK, IP, IP, OK, OK],
        |device, _| {
            let fence = device.create_native_fence(1)?;
            Ok(fence.into_object())
        },
    ),
    (
        "monitored fence",
        [OK, OK, OK, OK, IP, IP, OK, OK],
        |device, _| {
            let kind = SyncKind::MonitoredFence { initial_value: 1 };
            device.create_sync_object(kind, SyncFlags::empty())
        },
    ),
];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let rows = ROWS.iter().fold(suite, |suite, row| {
        let name = format!("FEN-50 FEN-47 each call with a {}", row.0);
        suite.test(name, move || answers(row))
    });
    rows.test("FEN-50 hContext 0, foreign or of another process", contexts)
        .test(
            "FEN-38 FEN-50 FEN-113 FEN-115 GPU-113 an adapter without native fences",
            no_native_fence,
        )
}

/// What the calls are tried with.
struct Tried {
    raw: Raw,
    device: u32,
    context: u32,
    queue: u32,
    is_legacy_fence: bool,
}

/// The value of every wait and signal: what the objects have from the start, so that no wait is
/// left behind.
static VALUE: u64 = 1;

fn value() -> u64 {
    (&raw const VALUE) as u64
}

impl Tried {
    fn status<T: Argument>(&self, arg: &mut T) -> Status {
        self.raw.exec(arg).unwrap_or(Status::UNSUCCESSFUL)
    }

    fn cpu_wait(&self, object: u32) -> Status {
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
        arg.hDevice = self.device;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = (&raw const object) as u64;
        arg.FenceValueArray = value();
        self.status(&mut arg)
    }

    fn cpu_signal(&self, object: u32) -> Status {
        let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
        arg.hDevice = self.device;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = (&raw const object) as u64;
        arg.FenceValueArray = value();
        self.status(&mut arg)
    }

    /// Legacy fences have the value itself in the slot, monitored ones an address.
    fn slot(&self) -> u64 {
        match self.is_legacy_fence {
            true => VALUE,
            false => value(),
        }
    }

    fn gpu_wait(&self, object: u32) -> Status {
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
        arg.hContext = self.context;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = (&raw const object) as u64;
        arg.__bindgen_anon_1.FenceValue = self.slot();
        self.status(&mut arg)
    }

    fn gpu_signal(&self, object: u32) -> Status {
        let contexts = [self.context];
        let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2::zeroed();
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = (&raw const object) as u64;
        arg.BroadcastContextCount = 1;
        arg.BroadcastContextArray = contexts.as_ptr() as u64;
        arg.__bindgen_anon_1.FenceValue = self.slot();
        self.status(&mut arg)
    }

    fn legacy_wait(&self, object: u32) -> Status {
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2::zeroed();
        arg.hContext = self.context;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray[0] = object;
        arg.__bindgen_anon_1.Fence.FenceValue = VALUE;
        self.status(&mut arg)
    }

    fn legacy_signal(&self, object: u32) -> Status {
        let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2::zeroed();
        arg.hContext = self.context;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray[0] = object;
        arg.__bindgen_anon_1.Fence.FenceValue = VALUE;
        self.status(&mut arg)
    }

    fn queue_wait(&self, object: u32) -> Status {
        let mut arg = D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE::zeroed();
        arg.hHwQueue = self.queue;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = (&raw const object) as u64;
        arg.FenceValueArray = value();
        self.status(&mut arg)
    }

    fn queue_signal(&self, object: u32) -> Status {
        let queues = [self.queue];
        let mut arg = D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE::zeroed();
        arg.BroadcastHwQueueCount = 1;
        arg.BroadcastHwQueueArray = queues.as_ptr() as u64;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = (&raw const object) as u64;
        arg.FenceValueArray = value();
        self.status(&mut arg)
    }
}

fn answers(&(name, expected, create): &Row) -> TestResult {
    let gpu = Gpu::new()?;
    let hw_context = gpu.device().create_hw_context(0)?;
    let queue = hw_context.create_hw_queue()?;
    let tried = Tried {
        raw: fixture::raw()?,
        device: gpu.device().handle().0,
        context: gpu.context().handle().0,
        queue: queue.handle().0,
        is_legacy_fence: name == "fence",
    };
    let event = EventFd::new()?;
    let object = create(gpu.device(), &event)?;
    for ((call, run), status) in CALLS.into_iter().zip(expected) {
        ensure_eq!(run(&tried, object.handle().0), status, "{call} of a {name}");
    }
    // The queue goes on.
    gpu.finish()?;
    // Nothing works with the handle any more.
    let handle = object.handle().0;
    object.destroy()?;
    for (call, run) in CALLS {
        ensure_eq!(run(&tried, handle), IP, "{call} of a destroyed {name}");
        ensure_eq!(run(&tried, 0), IP, "{call} of 0");
        ensure_eq!(
            run(&tried, gpu.device().handle().0),
            IP,
            "{call} of a device"
        );
    }
    Ok(())
}

fn contexts() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let kind = SyncKind::Semaphore {
        max_count: 9,
        initial_count: 9,
    };
    let object = gpu.device().create_sync_object(kind, SyncFlags::empty())?;
    let device = gpu.device().handle().0;
    for context in [0, 0x40_0000 + device, device, object.handle().0] {
        let mut wait = D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2::zeroed();
        wait.hContext = context;
        wait.ObjectCount = 1;
        wait.ObjectHandleArray[0] = object.handle().0;
        ensure_eq!(raw.exec(&mut wait), Ok(IP), "Wait2 in {context:#x}");
        let mut signal = D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2::zeroed();
        signal.hContext = context;
        signal.ObjectCount = 1;
        signal.ObjectHandleArray[0] = object.handle().0;
        ensure_eq!(raw.exec(&mut signal), Ok(IP), "Signal2 in {context:#x}");
        let mut queue = D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE::zeroed();
        queue.hHwQueue = context;
        queue.ObjectCount = 1;
        ensure_eq!(raw.exec(&mut queue), Ok(IP), "HW wait in {context:#x}");
    }
    for count in [0, 33, u32::MAX] {
        let mut wait = D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2::zeroed();
        wait.hContext = gpu.context().handle().0;
        wait.ObjectCount = count;
        wait.ObjectHandleArray = [object.handle().0; 32];
        ensure_eq!(raw.exec(&mut wait), Ok(IP), "Wait2 of {count}");
        let mut signal = D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2::zeroed();
        signal.hContext = gpu.context().handle().0;
        signal.ObjectCount = count;
        signal.ObjectHandleArray = [object.handle().0; 32];
        ensure_eq!(raw.exec(&mut signal), Ok(IP), "Signal2 of {count}");
    }
    Ok(())
}

/// The adapter does not have the feature, and every way to a native fence is closed. So the fences
/// that a CPU signal can name are those to which the OS part stores by itself.
fn no_native_fence() -> TestResult {
    let soft = SoftAdapter::new("without-native")?;
    soft.set("native_fences", "0")?;
    soft.set("enabled", "1")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let raw = fixture::raw()?;
    ensure!(
        !gpu.device()
            .adapter()
            .feature(DXGK_FEATURE_NATIVE_FENCE)?
            .enabled
    );
    fails_with(gpu.device().create_native_fence(0), Status::NOT_SUPPORTED)?;
    let elsewhere = fixture::device()?.create_shareable_native_fence(0)?;
    let handle = elsewhere.share(Access::ALL)?;
    let opened = gpu.device().open_native_fence(&handle, SyncFlags::empty());
    fails_with(opened, Status::NOT_SUPPORTED)?;
    let mut create = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    create.hDevice = gpu.device().handle().0;
    create.Info.Type = D3DDDI_NATIVE_FENCE;
    refused(&raw, &mut create, IP)?;
    let fence = gpu.device().create_fence(0)?;
    fence.signal(7)?;
    ensure_eq!(fence.value(), 7);
    drop((fence, gpu));
    soft.remove()
}
