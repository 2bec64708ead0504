// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters that have one fence open.

use opendxg::pm4::{Data, Interrupt, Pm4};
use opendxg::{
    Access, Counters, Device, EventFd, Luid, MonitoredFence, NativeFence, NtHandle, SyncFlags,
};
use selftests::gpu::{one, Commands, Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::soon;
use selftests::{ensure_eq, TestResult};

/// What a cross-adapter fence is made with.
pub(crate) const CROSS: SyncFlags = SyncFlags::SHARED
    .union(SyncFlags::NT_SECURITY_SHARING)
    .union(SyncFlags::CROSS_ADAPTER);

/// The value that is waited for and signalled.
pub(crate) const VALUE: u64 = 10;

/// A fence as a device has it open.
pub(crate) enum Opened {
    Native(NativeFence),
    Monitored(MonitoredFence),
}

impl Opened {
    pub(crate) fn fence(&self) -> &MonitoredFence {
        match self {
            Self::Native(fence) => fence,
            Self::Monitored(fence) => fence,
        }
    }

    pub(crate) fn native(&self) -> TestResult<&NativeFence> {
        match self {
            Self::Native(fence) => Ok(fence),
            Self::Monitored(_) => Err("a monitored fence".into()),
        }
    }
}

/// An adapter with native fences, or without.
pub(crate) fn adapter(name: &str, is_native: bool) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(name)?;
    soft.set("native_fences", if is_native { "1" } else { "0" })?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

/// An adapter whose native fences have doorbells (FEN-159).
pub(crate) fn with_doorbells(name: &str) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(name)?;
    soft.set("fence_doorbells", "1")?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

/// What the driver calls an adapter in traces.
pub(crate) fn id_of(luid: Luid) -> u64 {
    // The kind is in the upper half of the low word, the number in the lower one
    // (`rust/logic/luid.rs`).
    let kind = u64::from(luid.low >> 16) - 0x0d9a;
    (kind << 32) | u64::from(luid.low & 0xffff)
}

/// A cross-adapter fence of this device.
pub(crate) fn create(device: &Device, is_native: bool) -> TestResult<Opened> {
    create_with(device, is_native, CROSS)
}

fn create_with(device: &Device, is_native: bool, flags: SyncFlags) -> TestResult<Opened> {
    Ok(match is_native {
        true => Opened::Native(device.create_native_fence_with(0, flags)?),
        false => Opened::Monitored(device.create_fence_with(0, flags)?),
    })
}

/// The same opened on another device.
pub(crate) fn open(device: &Device, handle: &NtHandle, is_native: bool) -> TestResult<Opened> {
    Ok(match is_native {
        true => Opened::Native(device.open_native_fence(handle, SyncFlags::empty())?),
        false => Opened::Monitored(device.open_fence(handle, SyncFlags::empty())?),
    })
}

/// One adapter, and the fence there.
pub(crate) struct Side {
    pub(crate) opened: Opened,
    pub(crate) gpu: Gpu,
    soft: SoftAdapter,
}

/// How somebody waits or signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A packet that knows native fences.
    Packet,
    /// A packet that stores, and interrupts as for monitored fences.
    Store,
    /// Queued work of a context.
    Queue,
    /// The CPU.
    Cpu,
}

impl Side {
    /// The adapter that makes the fence.
    pub(crate) fn first(name: &str, is_native: bool) -> TestResult<Self> {
        Self::with(name, is_native, CROSS)
    }

    /// The same with these flags.
    pub(crate) fn with(name: &str, is_native: bool, flags: SyncFlags) -> TestResult<Self> {
        Self::made_on(adapter(name, is_native)?, is_native, flags)
    }

    /// The same on an adapter that is there.
    pub(crate) fn made_on(
        soft: SoftAdapter,
        is_native: bool,
        flags: SyncFlags,
    ) -> TestResult<Self> {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        Ok(Self {
            opened: create_with(gpu.device(), is_native, flags)?,
            gpu,
            soft,
        })
    }

    /// Another one that opens the same fence.
    pub(crate) fn another(&self, name: &str, is_native: bool) -> TestResult<Self> {
        self.opened_on(adapter(name, is_native)?, is_native)
    }

    /// The same on an adapter that is there.
    pub(crate) fn opened_on(&self, soft: SoftAdapter, is_native: bool) -> TestResult<Self> {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let handle = self.fence().share(Access::ALL)?;
        Ok(Self {
            opened: open(gpu.device(), &handle, is_native)?,
            gpu,
            soft,
        })
    }

    pub(crate) fn fence(&self) -> &MonitoredFence {
        self.opened.fence()
    }

    pub(crate) fn is_native(&self) -> bool {
        matches!(self.opened, Opened::Native(_))
    }

    pub(crate) fn soft(&self) -> &SoftAdapter {
        &self.soft
    }

    pub(crate) fn luid(&self) -> Luid {
        self.gpu.device().adapter().luid()
    }

    /// How often it was told of signals of others.
    pub(crate) fn propagations(&self) -> u64 {
        self.count("propagations")
    }

    /// What is counted of its native fences.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let counts = Counters::of_native_fences(self.luid());
        let count = counts.ok().and_then(|all| all.get(name).copied());
        count.unwrap_or(u64::MAX)
    }

    /// MonitoredValue, as the GPU reads it.
    pub(crate) fn monitored_value(&self) -> TestResult<u64> {
        let seen = self.gpu.buffer(PAGE)?;
        let from = self.opened.native()?.monitored_address();
        self.gpu.run(&Pm4::new().copy(seen.at(0), from, 8))?;
        Ok(seen.get64(0))
    }

    /// Signals the fence.
    pub(crate) fn signal(&self, by: By, value: u64) -> TestResult {
        let at = self.fence().gpu_address();
        match by {
            By::Packet => self.gpu.run(&Pm4::new().signal_native(at, value)),
            By::Store => {
                let data = Data::Full(value);
                self.gpu
                    .run(&Pm4::new().release(at, data, Interrupt::AfterData))
            }
            By::Queue => {
                self.gpu.context().signal(&one(self.fence(), value))?;
                self.gpu.finish()
            }
            By::Cpu => Ok(self.fence().signal(value)?),
        }
    }

    /// Begins to wait for the fence. What it returns is for [`Side::ends`].
    pub(crate) fn wait(&self, by: By, value: u64) -> TestResult<Waits> {
        match by {
            By::Packet | By::Store => {
                let at = self.fence().gpu_address();
                let commands = self.gpu.commands(&Pm4::new().wait_native(at, value))?;
                self.gpu.submit(&commands)?;
                Ok(Waits::Gpu {
                    mark: self.gpu.mark()?,
                    _commands: Some(commands),
                })
            }
            By::Queue => {
                self.gpu.context().wait(&one(self.fence(), value))?;
                Ok(Waits::Gpu {
                    mark: self.gpu.mark()?,
                    _commands: None,
                })
            }
            By::Cpu => {
                let event = EventFd::new()?;
                self.fence().wait_async(value, &event)?;
                Ok(Waits::Cpu(event))
            }
        }
    }

    /// Whether a wait has ended.
    pub(crate) fn has_ended(&self, waits: &Waits) -> bool {
        match waits {
            Waits::Gpu { mark, .. } => self.gpu.is_done(*mark),
            Waits::Cpu(event) => matches!(event.take(), Ok(1)),
        }
    }

    /// A wait ends.
    pub(crate) fn ends(&self, waits: &Waits) -> TestResult {
        match waits {
            Waits::Gpu { mark, .. } => self.gpu.until(*mark),
            Waits::Cpu(event) => {
                ensure_eq!(event.wait(Some(soon()))?, Some(1));
                Ok(())
            }
        }
    }
}

/// A wait that goes on.
pub(crate) enum Waits {
    /// It is over at this mark. Its commands are there as long.
    Gpu {
        mark: u64,
        _commands: Option<Commands>,
    },
    Cpu(EventFd),
}
