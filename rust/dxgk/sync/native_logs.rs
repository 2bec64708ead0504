// SPDX-License-Identifier: GPL-2.0

//! The logs of a HW queue that its process fills: what engines have done with native fences (gpu.md
//! section 7).
//!
//! There is a page for waits and one for signals. Engines write to them; so can the process, by
//! packets, but not the CPU of the process. They are read by the worker of native-fence interrupts:
//! if the driver names queues instead of fences, to find out whom to release (FEN-97), and whenever
//! somebody traces.
//!
//! LOCK: `live` is held while a log is read, which looks up handles and signals fences. The end of
//! the queue waits for it.

use super::{
    fence_storage::CountedPage,
    native_interrupts::{
        Count,
        Logs,
        NativeInterrupts, //
    }, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        native_fence::{
            self,
            LogBuffer, //
        },
        object, //
    },
    dxgk::{
        device::Device,
        vidmm::{
            address_space::AddressSpace,
            fence_pages::ShownPage, //
        }, //
    },
    error::DxgResult,
    logic::fence_log::{
        Clocks,
        Entry,
        LogType,
        LogWords,
        Read,
        Reader,
        ENTRIES, //
    },
    platform::{
        full_fence,
        load_acquire,
        store_release, //
    },
    sys::{
        alloc::pin_arc,
        trace, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// A log, as engines of the process see it.
struct Log {
    ty: LogType,
    counted: CountedPage,
    shown: ShownPage,
}

impl LogWords for Log {
    fn load(&self, word: usize) -> u64 {
        load_acquire(self.counted.page.word(word))
    }
}

impl Log {
    /// An empty one.
    ///
    /// Context: a system call, no locks held.
    fn new(space: &AddressSpace, ty: LogType) -> DxgResult<Self> {
        let counted = CountedPage::new()?;

        for (word, value) in ty.header() {
            store_release(counted.page.word(word), value);
        }

        let shown = space.show_page(&counted.page, true)?;

        Ok(Self { ty, counted, shown })
    }

    /// What the KMD is told of it.
    fn buffer(&self) -> LogBuffer {
        LogBuffer {
            ty: match self.ty {
                LogType::Waits => native_fence::LogType::Waits,
                LogType::Signals => native_fence::LogType::Signals,
            },
            address: self.shown.address(0),
            entries: ENTRIES,
        }
    }
}

/// The pages of both logs. They outlive what the KMD has of the queue.
pub(in crate::dxgk) struct LogPages {
    waits: Log,
    signals: Log,
    space: Arc<AddressSpace>,
}

impl LogPages {
    fn new(space: &Arc<AddressSpace>) -> DxgResult<Arc<Self>> {
        let waits = Log::new(space, LogType::Waits)?;
        let signals =
            Log::new(space, LogType::Signals).inspect_err(|_| space.hide_page(waits.shown))?;

        // Without memory both are hidden by the drop.
        Ok(Arc::new(
            Self {
                waits,
                signals,
                space: space.clone(),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}

impl Drop for LogPages {
    fn drop(&mut self) {
        self.space.hide_page(self.waits.shown);
        self.space.hide_page(self.signals.shown);
    }
}

/// Where the logs of a queue are (D3DKMTGetNativeFenceLogDetail).
#[derive(Clone, Copy)]
pub(crate) struct LogDetail {
    /// How many entries each has.
    pub(crate) entries: u32,
    /// GPU virtual address of the log of waits.
    pub(crate) waits: u64,
    /// GPU virtual address of the log of signals.
    pub(crate) signals: u64,
}

/// What there is until the queue ends.
struct Live {
    kmd: Arc<object::HwQueue>,
    waits: Reader,
    signals: Reader,
}

/// The logs of one HW queue.
#[pin_data]
pub(in crate::dxgk) struct QueueLogs {
    /// The id of the queue, for traces.
    queue: u64,
    /// Whose engine writes to them.
    node: u32,
    device: Arc<Device>,
    pages: Arc<LogPages>,
    /// What interrupts call them; 0 until they have a number.
    number: Atomic<u32>,
    #[pin]
    live: Mutex<Option<Live>>,
}

/// The logs of a queue that has not ended. Dropping it is the end, before the KMD destroys the
/// queue.
pub(in crate::dxgk) struct LiveLogs(Arc<QueueLogs>);

impl LiveLogs {
    /// SetNativeFenceLogBuffer for both logs of a new queue, which traces know by `id`.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn new(
        device: &Arc<Device>,
        node: u32,
        id: u64,
        kmd: &Arc<object::HwQueue>,
    ) -> DxgResult<Self> {
        let pages = LogPages::new(device.space()?)?;
        let class = Passive::here();

        for log in [&pages.waits, &pages.signals] {
            kmd.set_native_fence_log_buffer(&class, &log.buffer())?;
        }

        let live = Live {
            kmd: kmd.clone(),
            waits: Reader::new(LogType::Waits),
            signals: Reader::new(LogType::Signals),
        };
        let logs = pin_arc(
            pin_init!(QueueLogs {
                queue: id,
                node,
                device: device.clone(),
                pages,
                number: Atomic::new(0),
                live <- new_mutex!(Some(live), "QueueLogs::live"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let own = Self(logs);
        let number = device.adapter.native_interrupts.add_logs(own.0.clone())?;

        own.0.number.store(number, Relaxed);
        Ok(own)
    }

    /// What interrupts call them.
    pub(in crate::dxgk) fn number(&self) -> u32 {
        self.0.number.load(Relaxed)
    }

    /// What has to be there until the KMD has destroyed the queue.
    pub(in crate::dxgk) fn pages(&self) -> Arc<LogPages> {
        self.0.pages.clone()
    }

    /// Where they are.
    pub(in crate::dxgk) fn detail(&self) -> LogDetail {
        LogDetail {
            entries: ENTRIES,
            waits: self.0.pages.waits.shown.address(0),
            signals: self.0.pages.signals.shown.address(0),
        }
    }
}

impl Drop for LiveLogs {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let interrupts = &self.0.device.adapter.native_interrupts;
        let logs = interrupts.remove_logs(self.number());

        // What nobody has interrupted for is told now, if somebody traces.
        self.0.read();

        let live = self.0.live.lock().take();

        drop((live, logs));
    }
}

impl Logs for QueueLogs {
    fn node(&self) -> u32 {
        self.node
    }

    fn read(&self) {
        let interrupts = &*self.device.adapter.native_interrupts;
        let is_traced = trace::are_logs_traced();

        if !is_traced && !interrupts.is_optimized() {
            return;
        }

        let mut live = self.live.lock();
        let Some(Live {
            kmd,
            waits,
            signals,
        }) = &mut *live
        else {
            return;
        };
        let logs = [(&self.pages.signals, signals), (&self.pages.waits, waits)];
        // Waits are over. Only who traces wants to know of them.
        let moved = logs.map(|(log, reader)| {
            let is_wanted = is_traced || log.ty == LogType::Signals;

            (log, is_wanted.then(|| reader.moved(log)).flatten(), reader)
        });

        if moved.iter().all(|(_, header, _)| header.is_none()) {
            return;
        }

        // It fails if no engine runs.
        let _updated = Dispatch::below(&mut Passive::here(), |class| {
            kmd.update_native_fence_logs(class)
        });
        // ORDERING: and what engines have stored before their end is seen, too.
        full_fence();

        let clocks = self.clocks();

        for (log, header, reader) in moved {
            let Some(header) = header else {
                continue;
            };
            let read = reader.read(log, header, |entry| {
                self.tell(log.ty, entry, clocks.as_ref(), interrupts);
            });

            self.finish(log.ty, &read, interrupts);
        }
    }
}

impl QueueLogs {
    /// Tells of an entry. What a process writes there about others' fences is not believed
    /// (GPU-84).
    fn tell(
        &self,
        ty: LogType,
        entry: &Entry,
        clocks: Option<&Clocks>,
        interrupts: &NativeInterrupts,
    ) {
        let is_signal = ty == LogType::Signals;
        let Some(fence) = self.device.owner.logged_fence(entry.handle, is_signal) else {
            interrupts.count(Count::IgnoredEntries);
            return;
        };

        let end_ns = clocks.map_or(0, |clocks| clocks.cpu_ns(entry.end));

        if let Some(clocks) = clocks {
            trace::log_entry(&trace::LogEntry {
                queue: self.queue,
                fence: fence.id(),
                value: entry.value,
                operation: u32::from(!is_signal),
                observed_ns: clocks.cpu_ns(entry.observed),
                end_ns,
            });
        }
        if is_signal && interrupts.is_optimized() {
            fence.logged(entry.value, end_ns, self.device.adapter.id);
        }
    }

    fn finish(&self, ty: LogType, read: &Read, interrupts: &NativeInterrupts) {
        interrupts.add(Count::IgnoredEntries, read.bad);
        interrupts.add(Count::BackwardTimes, read.backwards);
        if read.lost == 0 {
            return;
        }
        interrupts.count(Count::LogOverflows);
        trace::log_lost(self.queue, read.lost);
        if ty == LogType::Signals && interrupts.is_optimized() {
            self.device.owner.look_at_fences(&self.device);
        }
    }

    /// Both clocks now; `None` once the adapter is removed.
    fn clocks(&self) -> Option<Clocks> {
        let clock = self.device.adapter.calibrate_clock(self.node, 0).ok()?;

        Some(Clocks {
            gpu_frequency: clock.gpu_frequency,
            gpu: clock.gpu_counter,
            cpu_ns: clock.cpu_counter,
        })
    }
}
