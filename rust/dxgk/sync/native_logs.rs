// SPDX-License-Identifier: GPL-2.0

//! The logs of a HW queue that its process fills: what engines have done with native fences (gpu.md
//! section 7).
//!
//! There is one for waits and one for signals. Engines write to them; so can the process, by
//! packets, but not the CPU of the process. They are read by the worker of native-fence interrupts:
//! if the driver names queues instead of fences, to find out whom to release (FEN-97), and whenever
//! somebody traces.
//!
//! While somebody traces they are made anew and larger (GPU-80, GPU-81), in a connection of the
//! doorbell:
//!
//! | step | who |
//! |---|---|
//! | an entry is lost, or somebody begins to trace | the worker above, the tracer |
//! | the doorbell is disconnected, with RETRY | `log_renewal.rs` |
//! | new pages, SetNativeFenceLogBuffer | the process, in ConnectDoorbell |
//! | D3DKMTGetNativeFenceLogDetail | the process |
//! | the old logs are read to their end, and their pages go | who first looks at idle ones |
//!
//! Commands that were queued before may have the old addresses. The old logs are idle when the
//! queue has done these. There are at most two pairs of logs of a queue: no third one is made while
//! the first is there. Who wants one then asks again when the first one goes.
//!
//! LOCK: `state` is held while a log is read, which looks up handles and signals fences, and while
//! the KMD is told of other logs. The end of the queue waits for it. Pages are made before it is
//! taken and dropped after it.

use super::{
    fence::Fence,
    native_interrupts::{
        Count,
        Logs,
        NativeInterrupts, //
    },
    native_log_pair::{
        LogDetail,
        LogPair, //
    }, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        object, //
    },
    dxgk::device::Device,
    error::DxgResult,
    logic::fence_log::{
        Clocks,
        Entry,
        LogSize,
        LogType,
        Read, //
    },
    sys::{
        alloc::pin_arc,
        trace, //
    }, //
};
use core::mem;
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

/// Logs that the queue had before.
struct Before {
    logs: LogPair,
    /// What was queued before is done when the progress fence has this value.
    until: u64,
}

/// The logs of a queue, and how large they are to be.
struct State {
    /// `None` when the queue ends.
    kmd: Option<Arc<object::HwQueue>>,
    now: LogPair,
    /// Engines may still write to these.
    before: Option<Before>,
    /// How large they are to be while somebody traces: some were too small.
    wanted: LogSize,
}

impl State {
    /// How large other logs would be, if it is time to make some.
    fn wants(&self) -> Option<LogSize> {
        let wanted = match trace::logs_are_to_be_traced() {
            true => self.wanted.max(LogSize::TRACED),
            false => LogSize::FIRST,
        };

        (wanted > self.now.size && self.before.is_none() && self.kmd.is_some()).then_some(wanted)
    }
}

/// The logs of one HW queue. Its pages go with the last reference.
///
/// Context of that: may sleep, no locks held.
#[pin_data]
pub(in crate::dxgk) struct QueueLogs {
    /// The id of the queue, for traces.
    queue: u64,
    /// Whose engine writes to them.
    node: u32,
    device: Arc<Device>,
    /// Shows how far the queue is.
    progress: Arc<Fence>,
    /// What interrupts call them; 0 until they have a number.
    number: Atomic<u32>,
    #[pin]
    state: Mutex<State>,
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
        progress: &Arc<Fence>,
    ) -> DxgResult<Self> {
        let size = match trace::logs_are_to_be_traced() {
            true => LogSize::TRACED,
            false => LogSize::FIRST,
        };
        let now = LogPair::new(device.space()?, size)?;

        kmd.set_native_fence_log_buffers(&Passive::here(), &now.buffers())?;

        let state = State {
            kmd: Some(kmd.clone()),
            now,
            before: None,
            wanted: size,
        };
        let logs = pin_arc(
            pin_init!(QueueLogs {
                queue: id,
                node,
                device: device.clone(),
                progress: progress.clone(),
                number: Atomic::new(0),
                state <- new_mutex!(state, "QueueLogs::state"),
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
    pub(in crate::dxgk) fn shared(&self) -> &Arc<QueueLogs> {
        &self.0
    }
}

impl Drop for LiveLogs {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let interrupts = &self.0.device.adapter.native_interrupts;
        let logs = interrupts.remove_logs(self.number());

        // What nobody has interrupted for is told now, if somebody traces.
        self.0.read();

        let kmd = self.0.state.lock().kmd.take();

        drop((kmd, logs));
    }
}

impl Logs for QueueLogs {
    fn node(&self) -> u32 {
        self.node
    }

    fn read(&self) {
        if !trace::are_logs_traced() && !self.interrupts().is_optimized() {
            return;
        }

        let gone = self.look(&mut self.state.lock());

        drop(gone);
    }
}

impl QueueLogs {
    fn interrupts(&self) -> &NativeInterrupts {
        &self.device.adapter.native_interrupts
    }

    /// Where the logs are.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn detail(&self) -> LogDetail {
        self.state.lock().now.detail()
    }

    /// Whether [`QueueLogs::renew`] would make others.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn want_others(&self) -> bool {
        let mut state = self.state.lock();
        let gone = self.look(&mut state);
        let want = state.wants().is_some();

        drop(state);
        drop(gone);
        want
    }

    /// Makes others, if they are to be larger, of which the KMD is told. Whether that was done:
    /// then the process has to ask where they are. What it has queued before is done when the
    /// progress fence has the value `last_queued`. Without memory the logs stay as they are.
    ///
    /// Context: a system call of the process, no locks held.
    pub(in crate::dxgk) fn renew(&self, last_queued: impl FnOnce() -> u64) -> bool {
        if !self.want_others() {
            return false;
        }

        let Some(size) = self.state.lock().wants() else {
            return false;
        };
        let Ok(new) = self
            .device
            .space()
            .and_then(|space| LogPair::new(space, size))
        else {
            return false;
        };
        let refused = self.replace(new, last_queued);

        refused.is_none()
    }

    /// Puts these in the place of those that there are; gives them back if that cannot be.
    fn replace(&self, new: LogPair, last_queued: impl FnOnce() -> u64) -> Option<LogPair> {
        let mut state = self.state.lock();

        // Somebody else may have been first.
        if state.wants() != Some(new.size) {
            return Some(new);
        }

        let told = state.kmd.as_ref().map(|kmd| {
            // On return the KMD writes nothing to the old ones by itself.
            kmd.set_native_fence_log_buffers(&Passive::here(), &new.buffers())
        });

        if !matches!(told, Some(Ok(()))) {
            return Some(new);
        }
        state.before = Some(Before {
            logs: mem::replace(&mut state.now, new),
            until: last_queued(),
        });
        None
    }

    /// Reads what is new, if somebody wants to know. The result is what no engine writes to any
    /// more, to be dropped without the lock.
    fn look(&self, state: &mut State) -> Option<LogPair> {
        // Before it is read: an entry of the old logs is older than the value that comes behind.
        let is_over = state
            .before
            .as_ref()
            .is_some_and(|before| before.until <= self.progress.value());

        self.read_all(state);
        if !is_over {
            return None;
        }

        let before = state.before.take();

        // Entries were lost while these were in the way of larger ones.
        if state.wants().is_some() {
            self.device.adapter.log_renewal.request();
        }
        before.map(|before| before.logs)
    }

    fn read_all(&self, state: &mut State) {
        let interrupts = self.interrupts();
        let is_traced = trace::are_logs_traced();
        let State {
            kmd: Some(kmd),
            now,
            before,
            wanted,
        } = state
        else {
            return;
        };
        let larger = now.size.larger();
        let mut has_moved = false;

        if !is_traced && !interrupts.is_optimized() {
            return;
        }
        for pair in before.iter_mut().map(|before| &mut before.logs) {
            has_moved |= look_at(pair, is_traced);
        }
        has_moved |= look_at(now, is_traced);
        if !has_moved {
            return;
        }

        // It fails if no engine runs. What engines have stored before their end is released by the
        // header that was looked at above.
        let _updated = Dispatch::below(&mut Passive::here(), |class| {
            kmd.update_native_fence_logs(class)
        });

        let clocks = self.clocks();

        // What is older first.
        for pair in before.iter_mut().map(|before| &mut before.logs) {
            self.read_pair(pair, clocks.as_ref());
        }
        if self.read_pair(now, clocks.as_ref()) && is_traced && *wanted < larger {
            *wanted = larger;
            self.device.adapter.log_renewal.request();
        }
    }

    /// Reads both logs of a pair. Whether entries are lost.
    fn read_pair(&self, pair: &mut LogPair, clocks: Option<&Clocks>) -> bool {
        let interrupts = self.interrupts();
        let mut has_lost = false;

        for log in pair.each() {
            let ty = log.ty;
            let read = log.read(|entry| self.tell(ty, entry, clocks, interrupts));

            if let Some(read) = read {
                self.finish(ty, &read, interrupts);
                has_lost |= read.lost != 0;
            }
        }
        has_lost
    }

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

/// Looks at the headers of a pair. Waits are over: only who traces wants to know of them. Whether
/// there is something to be read.
fn look_at(pair: &mut LogPair, is_traced: bool) -> bool {
    pair.each().into_iter().fold(false, |has_moved, log| {
        let is_wanted = is_traced || log.ty == LogType::Signals;

        (is_wanted && log.look()) || has_moved
    })
}
