// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of devices and synchronisation objects that are made to fail.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, Device, EventFd, MonitoredFence, Status, SyncFlags, SyncKind};
use selftests::sharing::share_call;
use selftests::soft_adapter::SoftAdapter;
use selftests::task::{is_blocked, me};
use selftests::{ensure_eq, fixture, TestResult};

use crate::t_failslab::gpu::MANY;
use crate::t_failslab::plain::{close, keep, Maker, OnEvent, Plain, Reading, Sweep};
use crate::t_failslab::Call;

/// Destroys the handle of a struct's member by the call with that struct.
macro_rules! destroy {
    ($raw:expr, $name:ident $member:ident, $handle:expr) => {{
        let mut arg = $name::zeroed();
        arg.$member = $handle;
        ensure_eq!($raw.exec(&mut arg), Ok(Status::SUCCESS));
    }};
}

fn destroy_object(raw: &Raw, handle: u32) -> TestResult {
    destroy!(raw, D3DKMT_DESTROYSYNCHRONIZATIONOBJECT hSyncObject, handle);
    Ok(())
}

/// All calls, by name.
pub(crate) const ALL: &[(&str, Maker)] = &[
    ("opening the device", |sweep| sweep(&mut Open { fd: None })),
    ("OpenAdapterFromLuid", |sweep| {
        let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
        arg.AdapterLuid = fixture::adapter()?.luid().into();
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy!(raw, D3DKMT_CLOSEADAPTER hAdapter, arg.hAdapter);
            Ok(())
        })?)
    }),
    ("EnumAdapters2", |sweep| {
        enumerate(sweep, |count, list| {
            let mut arg = D3DKMT_ENUMADAPTERS2::zeroed();
            (arg.NumAdapters, arg.pAdapters) = (count, list);
            arg
        })
    }),
    ("EnumAdapters3", |sweep| {
        enumerate(sweep, |count, list| {
            let mut arg = D3DKMT_ENUMADAPTERS3::zeroed();
            (arg.NumAdapters, arg.pAdapters) = (count, list);
            arg
        })
    }),
    ("QueryAdapterInfo", |sweep| {
        let adapter = fixture::adapter()?;
        let mut payload = vec![0u8; size_of::<D3DKMT_ADAPTERREGISTRYINFO>()];
        let mut arg = D3DKMT_QUERYADAPTERINFO::zeroed();
        arg.hAdapter = adapter.handle().0;
        arg.Type = KMTQAITYPE_ADAPTERREGISTRYINFO as _;
        arg.pPrivateDriverData = payload.as_mut_ptr() as u64;
        arg.PrivateDriverDataSize = payload.len() as u32;
        sweep(&mut Plain::new(arg, 0, keep)?)
    }),
    ("CreateDevice", |sweep| {
        let adapter = fixture::adapter()?;
        let mut arg = D3DKMT_CREATEDEVICE::zeroed();
        arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy!(raw, D3DKMT_DESTROYDEVICE hDevice, arg.hDevice);
            Ok(())
        })?)
    }),
    ("CreateContextVirtual", |sweep| {
        let device = fixture::device()?;
        let mut arg = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
        arg.hDevice = device.handle().0;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy!(raw, D3DKMT_DESTROYCONTEXT hContext, arg.hContext);
            Ok(())
        })?)
    }),
    ("CreateHwContext", |sweep| {
        let device = fixture::device()?;
        let mut arg = D3DKMT_CREATEHWCONTEXT::zeroed();
        arg.hDevice = device.handle().0;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy!(raw, D3DKMT_DESTROYHWCONTEXT hHwContext, arg.hHwContext);
            Ok(())
        })?)
    }),
    (
        "CreateSynchronizationObject2: mutex with a global handle",
        |sweep| create(sweep, D3DDDI_SYNCHRONIZATION_MUTEX, SyncFlags::SHARED),
    ),
    (
        "CreateSynchronizationObject2: shareable semaphore",
        |sweep| {
            let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING;
            create(sweep, D3DDDI_SEMAPHORE, flags)
        },
    ),
    ("CreateSynchronizationObject2: CPU notification", |sweep| {
        let event = EventFd::new()?;
        let device = fixture::device()?;
        let mut arg = creation(&device, D3DDDI_CPU_NOTIFICATION, SyncFlags::empty());
        arg.Info.__bindgen_anon_1.CPUNotification.Event = event.as_raw_fd() as u64;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy_object(raw, arg.hSyncObject)
        })?)
    }),
    ("CreateSynchronizationObject2: CPU event", |sweep| {
        let event = EventFd::new()?;
        let device = fixture::device()?;
        let mut arg = creation(&device, D3DDDI_CPU_NOTIFICATION, SyncFlags::SIGNAL_BY_KMD);
        arg.Info.__bindgen_anon_1.CPUNotification.Event = event.as_raw_fd() as u64;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy_object(raw, arg.hSyncObject)
        })?)
    }),
    (
        "CreateSynchronizationObject2: fence in a new common page",
        |sweep| create(sweep, D3DDDI_MONITORED_FENCE, SyncFlags::empty()),
    ),
    (
        "CreateSynchronizationObject2: fence in a common page that is there",
        |sweep| {
            let device = fixture::device()?;
            let _first = device.create_fence(0)?;
            create(sweep, D3DDDI_MONITORED_FENCE, SyncFlags::empty())
        },
    ),
    ("CreateSynchronizationObject2: shareable fence", |sweep| {
        let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING;
        create(sweep, D3DDDI_MONITORED_FENCE, flags)
    }),
    ("CreateNativeFence: in a new common page", |sweep| {
        native(sweep, SyncFlags::empty())
    }),
    (
        "CreateNativeFence: in a common page that is there",
        |sweep| {
            let device = fixture::device()?;
            let _first = device.create_native_fence(0)?;
            native(sweep, SyncFlags::empty())
        },
    ),
    ("CreateNativeFence: shareable", |sweep| {
        native(sweep, SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING)
    }),
    ("CreateNativeFence: cross-adapter", |sweep| {
        native(sweep, CROSS)
    }),
    ("CreateNativeFence: in the paging process", |sweep| {
        let adapter = SoftAdapter::new("failslab-native")?;
        adapter.set("map_to_gpu_system_process", "1")?;
        adapter.set("enabled", "1")?;
        native_on(
            &adapter.device()?,
            sweep,
            SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING,
        )
    }),
    (
        "OpenNativeFenceFromNtHandle of what is monitored elsewhere",
        |sweep| {
            let device = fixture::device()?;
            let nt = device.create_fence_with(0, CROSS)?.share(Access::ALL)?;
            open_native(sweep, &device, nt.slot())
        },
    ),
    ("OpenNativeFenceFromNtHandle with new mappings", |sweep| {
        let device = fixture::device()?;
        // Its GPU looks at the pages.
        let _context = device.create_context(0)?;
        let fence = device.create_shareable_native_fence(0)?;
        let nt = fence.share(Access::ALL)?;
        drop(fence);
        open_native(sweep, &device, nt.slot())
    }),
    (
        "OpenNativeFenceFromNtHandle with mappings that are there",
        |sweep| {
            let device = fixture::device()?;
            let fence = device.create_shareable_native_fence(0)?;
            let nt = fence.share(Access::ALL)?;
            open_native(sweep, &device, nt.slot())
        },
    ),
    ("ShareObjects", |sweep| {
        let fence = fixture::device()?.create_shareable_fence(0)?;
        let handle = fence.handle().0;
        let attributes = OBJECT_ATTRIBUTES {
            Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
            ..OBJECT_ATTRIBUTES::default()
        };
        let (set, mut slot) = ([handle], 0);
        let attributes = (&raw const attributes) as u64;
        let arg = share_call(&set, Access::ALL.bits(), attributes, &mut slot);
        sweep(&mut Plain::new(arg, 0, |_, arg| {
            // SAFETY: `slot` above, which the call has written.
            close(unsafe { (arg.pSharedNtHandle as usize as *const u64).read_volatile() })
        })?)
    }),
    ("OpenSyncObjectFromNtHandle", |sweep| {
        let nt = fixture::device()?
            .create_shareable_fence(0)?
            .share(Access::ALL)?;
        let mut arg = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE::zeroed();
        arg.hNtHandle = nt.slot();
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy_object(raw, arg.hSyncObject)
        })?)
    }),
    ("OpenSyncObjectFromNtHandle2 with a new mapping", |sweep| {
        let device = fixture::device()?;
        let nt = device.create_shareable_fence(0)?.share(Access::ALL)?;
        open_nt2(sweep, &device, nt.slot())
    }),
    (
        "OpenSyncObjectFromNtHandle2 with a mapping that is there",
        |sweep| {
            let device = fixture::device()?;
            let fence = device.create_shareable_fence(0)?;
            let nt = fence.share(Access::ALL)?;
            open_nt2(sweep, &device, nt.slot())
        },
    ),
    ("OpenSyncObjectFromNtHandle2 on another adapter", |sweep| {
        let other = SoftAdapter::enabled("failslab")?;
        let device = other.device()?;
        // Its GPU looks at the page.
        let _context = device.create_context(0)?;
        let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
        let fence = fixture::device()?.create_fence_with(0, flags)?;
        open_nt2(sweep, &device, fence.share(Access::ALL)?.slot())
    }),
    ("OpenSynchronizationObject", |sweep| {
        let mutex = SyncKind::Mutex {
            initially_owned: false,
        };
        let object = fixture::device()?.create_sync_object(mutex, SyncFlags::SHARED)?;
        let mut arg = D3DKMT_OPENSYNCHRONIZATIONOBJECT::zeroed();
        arg.hSharedHandle = object.global_handle().ok_or("no global handle")?.0;
        sweep(&mut Plain::new(arg, 1, |raw, arg| {
            destroy_object(raw, arg.hSyncObject)
        })?)
    }),
    ("a fence point", |sweep| {
        let fence = fixture::device()?.create_fence(0)?;
        let mut arg = opendxg_fence_point::zeroed();
        arg.sync_object = fence.handle().0;
        arg.value = 1;
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("a fence stream", |sweep| {
        let fence = fixture::device()?.create_fence(0)?;
        let mut arg = opendxg_fence_stream::zeroed();
        arg.sync_object = fence.handle().0;
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("a notice about memory", |sweep| {
        let device = fixture::device()?;
        let mut arg = opendxg_memory_notice::zeroed();
        (arg.device, arg.kind) = (device.handle().0, OPENDXG_NOTICE_TRIM);
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("an operation log of one's own", |sweep| {
        let device = fixture::device()?;
        let mut arg = opendxg_memory_notice::zeroed();
        (arg.device, arg.kind) = (device.handle().0, OPENDXG_NOTICE_PAGING_LOG);
        sweep(&mut Plain::new(arg, 0, |_, arg| close(arg.fd as u64))?)
    }),
    ("a read from a fence stream", |sweep| Reading::sweep(sweep)),
    ("a signal that waits for an event", |sweep| {
        OnEvent::sweep(sweep, false)
    }),
    ("a signal by an event that is signalled", |sweep| {
        OnEvent::sweep(sweep, true)
    }),
    (
        "SignalSynchronizationObjectFromCpu with a long list",
        |sweep| sweep(&mut Listed::new(Purpose::Signal)?),
    ),
    (
        "WaitForSynchronizationObjectFromCpu with an event and a long list",
        |sweep| sweep(&mut Listed::new(Purpose::Wait)?),
    ),
    ("WaitForSynchronizationObjectFromCpu asleep", |sweep| {
        Asleep::sweep(sweep)
    }),
];

/// All adapters, by a call with their number and the address of the list.
fn enumerate<T: Argument + Copy>(
    sweep: Sweep<'_>,
    fresh: impl FnOnce(u32, u64) -> T,
) -> TestResult {
    let count = opendxg::Dxg::open()?.adapter_count()?;
    let mut infos = vec![D3DKMT_ADAPTERINFO::default(); count];
    let list = infos.as_mut_ptr();
    let arg = fresh(count as u32, list as u64);
    sweep(&mut Plain::new(arg, count as u32, move |raw, _| {
        for index in 0..count {
            // SAFETY: an element of `infos` above, which the call has written.
            let info = unsafe { list.add(index).read_volatile() };
            destroy!(raw, D3DKMT_CLOSEADAPTER hAdapter, info.hAdapter);
        }
        Ok(())
    })?)
}

fn creation(device: &Device, kind: u32, flags: SyncFlags) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
    let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    arg.hDevice = device.handle().0;
    arg.Info.Type = kind;
    arg.Info.Flags = flags.bits();
    arg
}

fn create(sweep: Sweep<'_>, kind: u32, flags: SyncFlags) -> TestResult {
    let device = fixture::device()?;
    let arg = creation(&device, kind, flags);
    sweep(&mut Plain::new(arg, 1, |raw, arg| {
        destroy_object(raw, arg.hSyncObject)
    })?)
}

/// Makes a native fence on a device of its own, whose GPU looks at its pages.
fn native(sweep: Sweep<'_>, flags: SyncFlags) -> TestResult {
    native_on(&fixture::device()?, sweep, flags)
}

fn native_on(device: &Device, sweep: Sweep<'_>, flags: SyncFlags) -> TestResult {
    let _context = device.create_context(0)?;
    let mut arg = D3DKMT_CREATENATIVEFENCE::zeroed();
    arg.hDevice = device.handle().0;
    arg.Info.Flags = flags.bits();
    sweep(&mut Plain::new(arg, 1, |raw, arg| {
        destroy_object(raw, arg.hSyncObject)
    })?)
}

/// What a cross-adapter fence is made with.
const CROSS: SyncFlags = SyncFlags::SHARED
    .union(SyncFlags::NT_SECURITY_SHARING)
    .union(SyncFlags::CROSS_ADAPTER);

/// Opens a native fence.
fn open_native(sweep: Sweep<'_>, device: &Device, nt: u64) -> TestResult {
    let mut arg = D3DKMT_OPENNATIVEFENCEFROMNTHANDLE::zeroed();
    arg.hNtHandle = nt;
    arg.hDevice = device.handle().0;
    arg.EngineAffinity = 1;
    sweep(&mut Plain::new(arg, 1, |raw, arg| {
        destroy_object(raw, arg.hSyncObject)
    })?)
}

fn open_nt2(sweep: Sweep<'_>, device: &Device, slot: u64) -> TestResult {
    let mut arg = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2::zeroed();
    arg.hDevice = device.handle().0;
    arg.hNtHandle = slot;
    sweep(&mut Plain::new(arg, 1, |raw, arg| {
        destroy_object(raw, arg.hSyncObject)
    })?)
}

/// Opening the device node.
struct Open {
    fd: Option<OwnedFd>,
}

impl Call for Open {
    fn run(&mut self) -> rustix::io::Result<Status> {
        // SAFETY: a live string.
        let fd = unsafe { libc::open(c"/dev/dxg".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if fd < 0 {
            let error = std::io::Error::last_os_error();
            // The path is looked up by the kernel before our part begins, and any of its ways to
            // fail is fine.
            return match rustix::io::Errno::from_io_error(&error) {
                Some(rustix::io::Errno::NOMEM | rustix::io::Errno::NFILE) => Ok(Status::NO_MEMORY),
                Some(errno) => Err(errno),
                None => Err(rustix::io::Errno::IO),
            };
        }
        // SAFETY: just opened.
        self.fd = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Status::SUCCESS)
    }

    fn undo(&mut self) -> TestResult {
        self.fd = None;
        Ok(())
    }
}

enum Purpose {
    Signal,
    Wait,
}

/// A call over a long list of fences.
struct Listed {
    raw: Raw,
    device: Device,
    fences: Vec<MonitoredFence>,
    handles: Vec<u32>,
    values: Vec<u64>,
    event: EventFd,
    purpose: Purpose,
    rounds: u64,
}

impl Listed {
    fn new(purpose: Purpose) -> TestResult<Self> {
        let device = fixture::device()?;
        let fences = (0..MANY).map(|_| device.create_fence(0));
        let fences = fences.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            raw: fixture::raw()?,
            handles: fences.iter().map(|fence| fence.handle().0).collect(),
            values: vec![1; MANY],
            event: EventFd::new()?,
            device,
            fences,
            purpose,
            rounds: 1,
        })
    }
}

impl Call for Listed {
    fn run(&mut self) -> rustix::io::Result<Status> {
        match self.purpose {
            Purpose::Signal => {
                let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
                arg.hDevice = self.device.handle().0;
                arg.ObjectCount = MANY as u32;
                arg.ObjectHandleArray = self.handles.as_ptr() as u64;
                arg.FenceValueArray = self.values.as_ptr() as u64;
                self.raw.exec(&mut arg)
            }
            Purpose::Wait => {
                let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
                arg.hDevice = self.device.handle().0;
                arg.ObjectCount = MANY as u32;
                arg.ObjectHandleArray = self.handles.as_ptr() as u64;
                arg.FenceValueArray = self.values.as_ptr() as u64;
                arg.hAsyncEvent = self.event.as_fd().as_raw_fd() as u64;
                self.raw.exec(&mut arg)
            }
        }
    }

    fn undo(&mut self) -> TestResult {
        for fence in &self.fences {
            if let Purpose::Wait = self.purpose {
                fence.signal(self.rounds)?;
            }
            ensure_eq!(fence.value(), self.rounds);
        }
        if let Purpose::Wait = self.purpose {
            ensure_eq!(self.event.take()?, 1);
        }
        self.rounds += 1;
        self.values.fill(self.rounds);
        Ok(())
    }
}

/// A wait that sleeps until another thread signals.
struct Asleep<'a> {
    raw: Raw,
    fence: &'a MonitoredFence,
    value: &'a AtomicU64,
}

impl Asleep<'_> {
    fn sweep(sweep: Sweep<'_>) -> TestResult {
        let fence = fixture::device()?.create_fence(0)?;
        let (value, done, sleeper) = (AtomicU64::new(1), AtomicBool::new(false), me());
        std::thread::scope(|scope| {
            let signaller = scope.spawn(|| -> TestResult {
                while !done.load(Ordering::Acquire) {
                    if is_blocked(sleeper) {
                        fence.signal(value.load(Ordering::Acquire))?;
                    }
                    std::thread::yield_now();
                }
                Ok(())
            });
            let (raw, fence, value) = (fixture::raw()?, &fence, &value);
            let outcome = sweep(&mut Asleep { raw, fence, value });
            done.store(true, Ordering::Release);
            signaller.join().map_err(|_| "panic in a thread")??;
            outcome
        })
    }
}

impl Call for Asleep<'_> {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let handles = [self.fence.handle().0];
        let values = [self.value.load(Ordering::Relaxed)];
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
        arg.hDevice = self.fence.device().map_or(0, |device| device.handle().0);
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = handles.as_ptr() as u64;
        arg.FenceValueArray = values.as_ptr() as u64;
        self.raw.exec(&mut arg)
    }

    fn undo(&mut self) -> TestResult {
        let value = self.value.load(Ordering::Relaxed);
        ensure_eq!(self.fence.value(), value);
        self.value.store(value + 1, Ordering::Release);
        Ok(())
    }
}
