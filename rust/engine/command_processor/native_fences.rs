// SPDX-License-Identifier: GPL-2.0

//! The packets of native fences, and what is logged of them (gpu.md sections 5 and 7).

use super::{
    Course,
    Step, //
};
use crate::{
    engine::{
        fault::{
            FaultKind,
            Illegal,
            PageFault, //
        },
        fences::{
            is_satisfied,
            Fences,
            NativeFence, //
        },
        log::{
            Event,
            Log,
            LogRequest,
            LogType,
            ENTRY_SIZE, //
        },
        memory::Memory,
        operation::{
            FenceSignal,
            FenceWait,
            Operation,
            WriteLog, //
        },
        queue::Progress,
        shell::{
            Clock,
            Interrupts,
            Record, //
        },
        space::Space, //
    },
    platform::full_fence, //
};

impl<M: Memory, F: Fences, I: Interrupts, C: Clock> Step<'_, M, F, I, C> {
    /// A wait is tried. For the log, if there is one: when that was done first.
    pub(super) fn observe(&mut self) {
        if self.queue.logs.are_there() && self.queue.observed.is_none() {
            self.queue.observed = Some(self.clock.ticks());
        }
    }

    /// RELEASE_MEM stores a word next, of which ODX_WRITE_LOG may tell: when that was. Who waits
    /// for the word may go on before that packet comes, and the log must not say that the wait was
    /// over before the value was there (GPU-86).
    pub(super) fn note_release(&mut self) {
        if self.queue.logs.are_there() {
            self.queue.released = Some(self.clock.ticks());
        }
    }

    /// The log that a packet wants an entry in, which can be there.
    fn log_of(&self, ty: LogType, request: &LogRequest) -> Result<Log, Illegal> {
        request.check(self.queue.logs.get(ty).ok_or(Illegal::Log)?)
    }

    /// The same for a packet that need not want one.
    fn log_if(
        &self,
        ty: LogType,
        request: Option<LogRequest>,
    ) -> Result<Option<(Log, LogRequest)>, Illegal> {
        request
            .map(|request| Ok((self.log_of(ty, &request)?, request)))
            .transpose()
    }

    /// Steps 2 and 3 of GPU-76.
    fn log(
        &mut self,
        ty: LogType,
        log: Log,
        request: LogRequest,
        event: &Event,
    ) -> Result<(), FaultKind> {
        // CAST: a few bytes.
        self.budget.spend_bytes(ENTRY_SIZE as u32);
        self.space.write_log(ty, log, request, event)
    }

    /// What a log says of a wait that is over now. `observed`: when it was first tried, `None` if
    /// that was now, too.
    fn waited(&self, value: u64, observed: Option<u64>) -> Event {
        let end = self.clock.ticks();

        Event {
            value,
            observed: observed.unwrap_or(end),
            end,
        }
    }

    /// What ODX_WRITE_LOG says of a value that RELEASE_MEM has stored: when it did, or now if
    /// another packet stored it.
    fn released(&mut self, value: u64) -> Event {
        let signalled = self.signalled(value);

        Event {
            end: self.queue.released.take().unwrap_or(signalled.end),
            ..signalled
        }
    }

    /// What a log says of a value that is stored next. The time is not later than the store: who
    /// waited at that time waited when the value was stored (FEN-80).
    fn signalled(&self, value: u64) -> Event {
        Event {
            value,
            observed: 0,
            end: self.clock.ticks(),
        }
    }

    /// Steps G1 to G5 of fences.md section 3.4.
    pub(super) fn signal_fence(&mut self, signal: FenceSignal) -> Result<Course, FaultKind> {
        let to = signal.fence;
        let fence = self
            .fences
            .by_current_value(self.space.root.process, to.va)
            .ok_or(Illegal::Fence)?;
        let log = self.log_if(LogType::Signals, signal.log)?;

        if self.fences.is_always_signaled(&fence) {
            return Ok(Course::Through);
        }

        let entry = log.map(|(log, request)| (log, request, self.signalled(to.value)));

        // ODX_WRITE_LOG tells no time before that of this entry (GPU-82).
        self.queue.released = None;

        self.space.store64(to.va, to.value)?;

        // The value is there and has to be told, whatever becomes of the entry.
        let logged = entry.map_or(Ok(()), |(log, request, event)| {
            self.log(LogType::Signals, log, request, &event)
        });

        self.stored(&fence, |space| space.store64(to.va, u64::MAX))?;
        if signal.may_interrupt {
            self.interrupt_above(&fence, to.value)?;
        }
        logged?;
        Ok(Course::Through)
    }

    /// The value of a native fence is stored: step G3, and who waits on the GPU hears of it.
    /// `always_signal` stores the highest one.
    fn stored(
        &mut self,
        fence: &NativeFence<F::Handle>,
        always_signal: impl FnOnce(&mut Space<'_, M>) -> Result<(), PageFault>,
    ) -> Result<(), PageFault> {
        // Step 4 of GPU-76.
        self.space.memory.drain();
        // ORDERING: step G3, and step 1 of GPU-53. Pairs with the barrier behind a store to
        // MonitoredValue, and with those in `Engine::is_reached` and in AlwaysSignaled.
        full_fence();
        if self.fences.is_always_signaled(fence) {
            // It has become so meanwhile, and this store may have come last.
            always_signal(&mut self.space)?;
            full_fence();
        }
        self.fences.stored(fence);
        Ok(())
    }

    /// The progress value of a queue, of which no log tells. If its progress fence is a native one,
    /// it is signalled as such (FEN-125).
    pub(super) fn store_progress(&mut self, progress: Progress) -> Result<(), PageFault> {
        let Progress { va, value } = progress;
        let process = self.space.root.process;
        let Some(fence) = self.fences.by_current_value(process, va) else {
            return self.space.as_system().store64(va, value);
        };

        if self.fences.is_always_signaled(&fence) {
            return Ok(());
        }
        self.space.as_system().store64(va, value)?;
        self.stored(&fence, |space| space.as_system().store64(va, u64::MAX))?;
        self.interrupt_above(&fence, value)
    }

    /// Steps G4 and G5: the interrupt of a native fence, if somebody waits for such a value.
    pub(super) fn interrupt_above(
        &mut self,
        fence: &NativeFence<F::Handle>,
        value: u64,
    ) -> Result<(), PageFault> {
        let monitored_value = match self.fences.monitored_value(fence) {
            Some(copy) => copy,
            None => self.space.load64(fence.monitored_value)?,
        };

        if value > monitored_value {
            self.interrupts
                .report(Record::NativeFenceSignaled(fence.index));
        }
        Ok(())
    }

    pub(super) fn wait_fence(&mut self, wait: FenceWait) -> Result<Course, FaultKind> {
        let fence = self
            .fences
            .by_current_value(self.space.root.process, wait.fence.va)
            .ok_or(Illegal::Fence)?;
        let log = self.log_if(LogType::Waits, wait.log)?;

        if !is_satisfied(&mut self.space, self.fences, &fence, wait.fence)? {
            self.observe();
            return Ok(Course::WaitsForFence(
                Operation::WaitFence(wait),
                fence.index,
            ));
        }
        if let Some((log, request)) = log {
            let event = self.waited(wait.fence.value, self.queue.observed);

            self.log(LogType::Waits, log, request, &event)?;
        }
        self.observe();
        Ok(Course::Through)
    }

    /// ODX_WRITE_LOG.
    pub(super) fn write_log(&mut self, write: WriteLog) -> Result<Course, FaultKind> {
        let log = self.log_of(write.ty, &write.request)?;
        let event = match write.ty {
            LogType::Signals => self.released(write.value),
            LogType::Waits => {
                let observed = self.queue.observed.filter(|_| write.takes_observed);

                self.waited(write.value, observed)
            }
        };

        self.log(write.ty, log, write.request, &event)?;
        Ok(Course::Through)
    }
}
