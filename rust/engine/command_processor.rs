// SPDX-License-Identifier: GPL-2.0

//! An engine: what runs the packets of queues.

mod native_fences;

use super::{
    fault::{
        FaultKind,
        FaultRecord,
        Illegal,
        PageFault, //
    },
    fences::{
        is_satisfied,
        FenceIndex,
        Fences, //
    },
    fields::Fields,
    memory::{
        Memory,
        PAGE_SIZE, //
    },
    operation::{
        poll_after_ns,
        Atomic,
        AtomicOp,
        Entries,
        Interrupt,
        Move,
        Operation,
        Release,
        Source,
        Transfer,
        Wait,
        Width,
        Word,
        Write, //
    },
    packet::Header,
    page_table::Profile,
    queue::{
        PacketPlace,
        Privilege,
        Queue,
        Submission, //
    },
    ring::Ring,
    shell::{
        Clock,
        Interrupts,
        Record, //
    },
    space::{
        within_page,
        Space, //
    },
    translation::{
        Scope,
        Tlb, //
    }, //
};
use crate::platform::full_fence;
use core::mem;

/// A budget after which shells look whether the engine has to stop: 4096 dwords of packets, or 64
/// KiB of transfers (GPU-41).
pub const SLICE: u32 = 4096;

/// Bytes of a transfer that cost as much as one dword of a packet.
const BYTES_PER_UNIT: u32 = 16;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The budget is used up, and there is more to do.
    Ran,
    /// The queue waits for a word ([`Queue::blocked_on`]). Each further step looks again.
    Blocked {
        /// Nanoseconds after which that makes sense (GPU-43).
        poll_after_ns: u64,
        /// All that this step did was to look once more.
        again: bool,
    },
    /// The queue waits for a native fence. A step makes sense when [`Fences::stored`] was called
    /// for it after this, or when [`Engine::is_reached`] says so (GPU-43).
    BlockedOnFence(FenceIndex),
    /// Translations have to go (INVALIDATE_TLBS). They are gone from this engine. Before the queue
    /// gets another step, the shell has every other engine of the adapter
    /// [invalidate](Engine::invalidate) them, outside of its steps.
    Invalidate(Scope),
    /// The submission has been retired, and its progress value is stored. The queue takes another.
    Done(Submission),
    /// The queue has no submission, or there is nothing in its ring.
    Idle,
    /// A fault has stopped the queue.
    Faulted(FaultRecord),
}

/// What runs queues, one step of one queue at a time.
pub struct Engine {
    tlb: Tlb,
}

impl Engine {
    /// An engine for page tables of this format; `None` if there is no memory. May sleep.
    pub fn new(profile: Profile) -> Option<Self> {
        Some(Self {
            tlb: Tlb::new(profile)?,
        })
    }

    /// Forgets the translations of some pages.
    ///
    /// # Arguments
    ///
    /// * `scope` - whose.
    /// * `first`, `last` - an address in the first page, and one in the last one.
    pub fn invalidate(&mut self, scope: Scope, first: u64, last: u64) {
        self.tlb.invalidate(scope, first, last);
    }

    /// Whether a queue has something to do: what it has begun, or what its process has written to
    /// its ring. One that a fault has stopped has not. If its ring cannot be looked at, the next
    /// step has to find that.
    ///
    /// Context: as [`Engine::step`].
    pub fn has_work<M: Memory>(&mut self, queue: &mut Queue, memory: &M) -> bool {
        if queue.fault().is_some() {
            return false;
        }
        if queue.has_begun() {
            return true;
        }

        let Some(at) = queue.ring().map(Ring::write_pointer) else {
            return false;
        };
        let mut space = Space {
            memory,
            root: *queue.root(),
            system: queue.privilege() == Privilege::Paging,
            tlb: &mut self.tlb,
        };

        space
            .load64(at)
            .map_or(true, |written| !queue.has_taken(written))
    }

    /// A dword as a queue would read it, for those who look for the reason of a hang; `None` if
    /// that would be a fault.
    pub fn peek<M: Memory>(&mut self, queue: &Queue, memory: &M, va: u64) -> Option<u32> {
        let mut space = Space {
            memory,
            tlb: &mut self.tlb,
            root: *queue.root(),
            system: false,
        };

        space.load32(va).ok()
    }

    /// Whether a queue that a step has left blocked on a native fence has to look again. Called
    /// when the queue is among those that [`Fences::stored`] reaches: a value that was stored
    /// before is found here, and one that is stored later finds the queue (GPU-53).
    ///
    /// Context: as [`Engine::step`].
    pub fn is_reached<M: Memory>(
        &mut self,
        queue: &Queue,
        memory: &M,
        fences: &impl Fences,
    ) -> bool {
        let mut space = Space {
            memory,
            root: *queue.root(),
            system: queue.privilege() == Privilege::Paging,
            tlb: &mut self.tlb,
        };

        // ORDERING: step 2 of GPU-53. Pairs with the barrier behind a store to CurrentValue.
        full_fence();
        match queue.operation {
            Some(Operation::WaitFence(wait)) => {
                let fence = fences.by_current_value(space.root.process, wait.fence.va);

                // What would fault has to be run for that.
                fence.is_none_or(|fence| {
                    is_satisfied(&mut space, fences, &fence, wait.fence).unwrap_or(true)
                })
            }
            Some(Operation::Wait(wait)) => is_met(&mut space, wait).unwrap_or(true),
            _ => true,
        }
    }

    /// Runs a queue until it ends, has to wait, or has used up a budget.
    ///
    /// # Arguments
    ///
    /// * `queue` - it is in no other step.
    /// * `memory`, `fences`, `interrupts`, `clock` - the adapter's.
    /// * `budget` - how much may be done: a dword of a packet costs 1, and so do 16 bytes of a
    ///   transfer. What is begun with the last of it is done, which is at most a packet's fields or
    ///   a page of a transfer.
    ///
    /// Context: as the traits.
    pub fn step<M: Memory>(
        &mut self,
        queue: &mut Queue,
        memory: &M,
        fences: &impl Fences,
        interrupts: &mut impl Interrupts,
        clock: &impl Clock,
        budget: u32,
    ) -> Outcome {
        if let Some(fault) = queue.fault() {
            return Outcome::Faulted(*fault);
        }
        if queue.submission().is_none() && queue.ring().is_none() {
            return Outcome::Idle;
        }
        let mut step = Step {
            space: Space {
                memory,
                root: *queue.root(),
                system: queue.privilege() == Privilege::Paging,
                tlb: &mut self.tlb,
            },
            queue,
            fences,
            interrupts,
            clock,
            budget: Budget(budget),
        };

        match step.run() {
            Ok(outcome) => outcome,
            Err(kind) => Outcome::Faulted(step.queue.stop(kind)),
        }
    }
}

/// What is left of a budget.
struct Budget(u32);

impl Budget {
    fn spend(&mut self, units: u32) {
        self.0 = self.0.saturating_sub(units);
    }

    fn spend_bytes(&mut self, bytes: u32) {
        self.spend(bytes.div_ceil(BYTES_PER_UNIT));
    }

    /// How many bytes a transfer moves at once: whole pages, one at least, and at most a page more
    /// than there is budget for.
    fn bytes(&self) -> u32 {
        // CAST: it is small.
        const PAGE: u32 = PAGE_SIZE as u32;

        self.0
            .div_ceil(PAGE / BYTES_PER_UNIT)
            .max(1)
            .saturating_mul(PAGE)
    }

    fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

impl From<PageFault> for FaultKind {
    fn from(fault: PageFault) -> Self {
        Self::Page(fault)
    }
}

impl From<Illegal> for FaultKind {
    fn from(illegal: Illegal) -> Self {
        Self::Packet(illegal)
    }
}

/// Whether a wait for a word is over.
fn is_met<M: Memory>(space: &mut Space<'_, M>, wait: Wait) -> Result<bool, PageFault> {
    let value = match wait.width {
        Width::Dword => space.load32(wait.va)?.into(),
        Width::Qword => space.load64(wait.va)?,
    };

    Ok(wait.function.holds(value & wait.mask, wait.reference))
}

/// How far an operation has got.
enum Course {
    /// Nothing is left of it.
    Through,
    /// The rest is for later: the budget is used up.
    Later(Operation),
    /// It has to wait, and this is the interval of its packet.
    Waits(Operation, u16),
    /// It has to wait for a native fence.
    WaitsForFence(Operation, FenceIndex),
}

/// One step of a queue.
struct Step<'a, M, F, I, C> {
    space: Space<'a, M>,
    queue: &'a mut Queue,
    fences: &'a F,
    interrupts: &'a mut I,
    clock: &'a C,
    budget: Budget,
}

impl<M: Memory, F: Fences, I: Interrupts, C: Clock> Step<'_, M, F, I, C> {
    fn run(&mut self) -> Result<Outcome, FaultKind> {
        // Whether the first thing to be done is a wait that was tried before.
        let mut again = self.queue.blocked_on().is_some();

        loop {
            let operation = match self.queue.operation.take() {
                Some(operation) => operation,
                None => {
                    let frame = self.queue.frame();

                    self.publish()?;
                    match frame {
                        None => match self.queue.submission().copied() {
                            Some(submission) => return self.retire(submission),
                            None if self.look_at_ring()? => continue,
                            None => return Ok(Outcome::Idle),
                        },
                        Some(_) if self.budget.is_spent() => return Ok(Outcome::Ran),
                        Some(frame) => self.fetch(frame.va, frame.dwords)?,
                    }
                }
            };

            if let Operation::Invalidate(scope) = operation {
                self.space.tlb.invalidate(scope, 0, u64::MAX);
                return Ok(Outcome::Invalidate(scope));
            }
            match self.execute(operation)? {
                Course::Through => {}
                Course::Later(rest) => {
                    self.queue.operation = Some(rest);
                    return Ok(Outcome::Ran);
                }
                Course::Waits(wait, interval) => {
                    self.queue.operation = Some(wait);
                    return Ok(Outcome::Blocked {
                        poll_after_ns: poll_after_ns(interval),
                        again,
                    });
                }
                Course::WaitsForFence(wait, fence) => {
                    self.queue.operation = Some(wait);
                    return Ok(Outcome::BlockedOnFence(fence));
                }
            }
            again = false;
        }
    }

    /// Tells the process how much of its ring has been done.
    fn publish(&mut self) -> Result<(), FaultKind> {
        let Some(done) = self.queue.publish() else {
            return Ok(());
        };
        let Some(at) = self.queue.ring().map(Ring::read_pointer) else {
            return Ok(());
        };

        // ORDERING: the process may write over what has been read before, and sees what that did.
        full_fence();
        self.budget.spend(1);
        self.queue.packet = PacketPlace {
            va: self.queue.position(),
            header: 0,
        };
        Ok(self.space.store64(at, done)?)
    }

    /// Everything of the ring has been done. Whether there is more by now.
    fn look_at_ring(&mut self) -> Result<bool, FaultKind> {
        let Some(at) = self.queue.ring().map(Ring::write_pointer) else {
            return Ok(false);
        };

        self.queue.packet = PacketPlace {
            va: self.queue.position(),
            header: 0,
        };
        self.budget.spend(1);

        let written = self.space.load64(at)?;

        // ORDERING: what was written to the ring before the pointer is read after it (GPU-17).
        full_fence();
        self.queue
            .accept(written)
            .map_err(|_| Illegal::WritePointer.into())
    }

    /// The submission has ended: stores the progress value.
    fn retire(&mut self, submission: Submission) -> Result<Outcome, FaultKind> {
        self.queue.packet = PacketPlace {
            va: self.queue.position(),
            header: 0,
        };
        // ORDERING: all that the buffer did is visible before its progress value is, by the barrier
        // behind each packet.
        if let Some(progress) = submission.progress {
            self.store_progress(progress)?;
        }
        // ORDERING: and that is visible before the shell reports anything.
        full_fence();
        self.queue.retire();
        Ok(Outcome::Done(submission))
    }

    /// Reads the packet at an address, with so many dwords left in its buffer, and goes on behind
    /// it. Each dword is read once (GPU-16).
    fn fetch(&mut self, va: u64, left: u32) -> Result<Operation, FaultKind> {
        self.queue.packet = PacketPlace { va, header: 0 };

        let header = self.space.load32(va)?;

        self.queue.packet.header = header;
        self.budget.spend(1);

        let Header::Packet {
            packet,
            dwords,
            fields: count,
        } = Header::decode(header, self.queue.privilege())?
        else {
            self.queue.skip(1);
            return Ok(Operation::Nothing);
        };
        let size = dwords.saturating_add(1);

        if size > left {
            return Err(Illegal::Extent.into());
        }

        let mut fields = Fields::default();

        fields.rest_va = self.load_fields(self.queue.further(va, 1), fields.places(count))?;
        fields.rest = dwords.saturating_sub(count);
        self.budget.spend(count);

        let operation = packet.decode(&fields)?;

        if operation.is_wait() {
            self.queue.observed = None;
        }
        self.queue.skip(size).ok_or(Illegal::Extent)?;
        Ok(operation)
    }

    /// Loads the dwords from an address on, and returns what follows them. A ring goes round at the
    /// border of a page only.
    fn load_fields(&mut self, mut from: u64, mut to: &mut [u32]) -> Result<u64, FaultKind> {
        // CAST: a few.
        while let left @ 1.. = to.len() as u32 {
            // OVERFLOW: a few. Dwords are aligned, so it is one at least.
            let count = (within_page(from, left.wrapping_mul(4)) / 4).clamp(1, left);
            let Some((now, later)) = mem::take(&mut to).split_at_mut_checked(count as usize) else {
                break;
            };

            self.space.load32s(from, now)?;
            from = self.queue.further(from, count);
            to = later;
        }
        Ok(from)
    }

    /// Carries out an operation, or some of it.
    fn execute(&mut self, operation: Operation) -> Result<Course, FaultKind> {
        let course = match operation {
            Operation::Nothing | Operation::Invalidate(_) => return Ok(Course::Through),
            Operation::Call(frame) => {
                self.queue.call(frame).ok_or(Illegal::Nesting)?;
                return Ok(Course::Through);
            }
            // There is nothing to go on with when the buffer ends, and the ring would be lost.
            Operation::Chain(_) if self.queue.is_in_ring() => return Err(Illegal::Nesting.into()),
            Operation::Chain(frame) => {
                self.queue.chain(frame);
                return Ok(Course::Through);
            }
            Operation::Delay(steps) => return Ok(self.delay(steps)),
            Operation::Write(write) => self.write(write)?,
            Operation::WriteQword { from, to } => self.write_qword(from, to)?,
            Operation::Transfer(transfer) => self.transfer(transfer)?,
            Operation::Move(word) => self.move_word(word)?,
            Operation::Wait(wait) => self.wait(wait)?,
            Operation::SignalFence(signal) => self.signal_fence(signal)?,
            Operation::WaitFence(wait) => self.wait_fence(wait)?,
            Operation::WriteLog(write) => self.write_log(write)?,
            Operation::Release(release) => self.release(release)?,
            Operation::Barrier => Course::Through,
            Operation::Atomic(atomic) => self.atomic(atomic)?,
            Operation::SkipIfZero { va, dwords } => self.skip_if_zero(va, dwords)?,
            Operation::Trap { class, argument } => {
                self.interrupts.report(Record::Trap { class, argument });
                Course::Through
            }
            Operation::Entries(entries) => self.entries(entries)?,
        };

        // ORDERING: what a packet loads and stores comes before all that later packets do
        // (GPU-38). Pairs with the same barrier of other engines.
        full_fence();
        Ok(course)
    }

    fn delay(&mut self, steps: u32) -> Course {
        match steps.checked_sub(1) {
            None => Course::Through,
            Some(rest) => {
                self.budget.spend(u32::MAX);
                Course::Later(Operation::Delay(rest))
            }
        }
    }

    fn write(&mut self, mut write: Write) -> Result<Course, FaultKind> {
        while write.dwords != 0 {
            if self.budget.is_spent() {
                return Ok(Course::Later(Operation::Write(write)));
            }

            let dword = self.space.load32(write.from)?;

            self.space.store32(write.to, dword)?;
            self.budget.spend(1);
            write.dwords = write.dwords.saturating_sub(1);
            write.from = self.queue.further(write.from, 1);
            // OVERFLOW: what wraps is beyond every page table.
            if !write.fixed {
                write.to = write.to.wrapping_add(4);
            }
        }
        Ok(Course::Through)
    }

    fn write_qword(&mut self, from: u64, to: u64) -> Result<Course, FaultKind> {
        let low = self.space.load32(from)?;
        let high = self.space.load32(self.queue.further(from, 1))?;

        self.space
            .store64(to, (u64::from(high) << 32) | u64::from(low))?;
        self.budget.spend(2);
        Ok(Course::Through)
    }

    fn transfer(&mut self, mut transfer: Transfer) -> Result<Course, FaultKind> {
        while transfer.bytes != 0 {
            if self.budget.is_spent() {
                return Ok(Course::Later(Operation::Transfer(transfer)));
            }

            let bytes = self.transfer_some(&transfer)?;

            transfer.bytes = transfer.bytes.saturating_sub(bytes);
            // OVERFLOW: what wraps is beyond every page table.
            if !transfer.fixed {
                transfer.to = transfer.to.wrapping_add(bytes.into());
            }
            if let Source::Memory { va, fixed: false } = &mut transfer.source {
                *va = va.wrapping_add(bytes.into());
            }
        }
        Ok(Course::Through)
    }

    /// Moves the next bytes of a transfer. How many that were, at least one.
    fn transfer_some(&mut self, transfer: &Transfer) -> Result<u32, FaultKind> {
        let most = transfer.bytes.min(self.budget.bytes());
        let bytes = match transfer.source {
            Source::Pattern(pattern) if !transfer.fixed => {
                self.space.fill_some(transfer.to, pattern, most)?
            }
            Source::Memory { va, fixed: false } if !transfer.fixed => {
                self.space.copy_some(va, transfer.to, most)?
            }
            source => {
                let dword = match source {
                    Source::Pattern(pattern) => pattern,
                    Source::Memory { va, .. } => self.space.load32(va)?,
                };

                self.space.store32(transfer.to, dword)?;
                self.budget.spend(1);
                return Ok(4);
            }
        };

        self.budget.spend_bytes(bytes);
        Ok(bytes)
    }

    fn move_word(&mut self, word: Move) -> Result<Course, FaultKind> {
        let value = match (word.source, word.width) {
            (Word::Memory(va), Width::Dword) => self.space.load32(va)?.into(),
            (Word::Memory(va), Width::Qword) => self.space.load64(va)?,
            (Word::Value(value), _) => value,
            (Word::Clock, _) => self.clock.ticks(),
        };

        match word.width {
            // CAST: the lower half is what is asked for.
            Width::Dword => self.space.store32(word.to, value as u32)?,
            Width::Qword => self.space.store64(word.to, value)?,
        }
        Ok(Course::Through)
    }

    fn wait(&mut self, wait: Wait) -> Result<Course, FaultKind> {
        let is_over = is_met(&mut self.space, wait)?;

        self.observe();
        if is_over {
            return Ok(Course::Through);
        }

        let fence = self
            .fences
            .by_current_value(self.space.root.process, wait.va);

        Ok(match fence {
            None => Course::Waits(Operation::Wait(wait), wait.interval),
            // Its waits pass, whatever they wait for.
            Some(fence) if self.fences.is_always_signaled(&fence) => Course::Through,
            Some(fence) => Course::WaitsForFence(Operation::Wait(wait), fence.index),
        })
    }

    fn release(&mut self, release: Release) -> Result<Course, FaultKind> {
        // ORDERING: all earlier packets are visible before the word is, by the barrier behind each.
        if let Some(word) = release.data {
            self.note_release();
            self.move_word(word)?;
        }
        // ORDERING: the word is visible before the interrupt is reported (GPU-62).
        full_fence();
        match release.interrupt {
            Interrupt::Never => {}
            Interrupt::MonitoredFence => self.interrupts.report(Record::MonitoredFenceSignaled),
            Interrupt::NativeFence {
                monitored_value,
                value,
            } => {
                let fence = self
                    .fences
                    .by_monitored_value(self.space.root.process, monitored_value)
                    .ok_or(Illegal::Fence)?;

                // An earlier packet has stored the value.
                self.fences.stored(&fence);
                self.interrupt_above(&fence, value)?;
            }
        }
        Ok(Course::Through)
    }

    /// There is no load: an exchange that fails says what there is. Others may change the word
    /// before the next one, so each costs something.
    ///
    /// As with a wait, the first one is not put off: a loop that is left for a later step has been
    /// tried.
    fn atomic(&mut self, mut atomic: Atomic) -> Result<Course, FaultKind> {
        loop {
            let Atomic {
                expected, source, ..
            } = atomic;
            let after = match atomic.op {
                AtomicOp::Swap | AtomicOp::CompareSwap | AtomicOp::CompareSwapLoop => source,
                AtomicOp::Add => expected.wrapping_add(source),
                AtomicOp::Sub => expected.wrapping_sub(source),
                AtomicOp::Max => expected.max(source),
                AtomicOp::And => expected & source,
                AtomicOp::Or => expected | source,
            };
            let found = self.space.compare_exchange64(atomic.va, expected, after)?;

            self.budget.spend(1);
            if found == expected || atomic.op == AtomicOp::CompareSwap {
                return Ok(Course::Through);
            }
            if atomic.op == AtomicOp::CompareSwapLoop {
                return Ok(Course::Waits(Operation::Atomic(atomic), atomic.interval));
            }
            atomic.expected = found;
            if self.budget.is_spent() {
                return Ok(Course::Later(Operation::Atomic(atomic)));
            }
        }
    }

    fn skip_if_zero(&mut self, va: u64, dwords: u32) -> Result<Course, FaultKind> {
        if !self.queue.has(dwords) {
            return Err(Illegal::Extent.into());
        }
        if self.space.load32(va)? == 0 {
            self.queue.skip(dwords);
        }
        Ok(Course::Through)
    }

    fn entries(&mut self, mut entries: Entries) -> Result<Course, FaultKind> {
        while entries.count != 0 {
            if self.budget.is_spent() {
                return Ok(Course::Later(Operation::Entries(entries)));
            }

            let Entries {
                to,
                entry,
                increment,
                count,
            } = entries;
            let most = count.min(self.budget.0);
            // OVERFLOW: no more than a page has. An entry is aligned, so it is one at least.
            let some = (within_page(to, most.saturating_mul(8)) / 8).max(1);

            self.space.store64s(to, entry, increment, some)?;
            self.budget.spend(some);
            entries.count = count.saturating_sub(some);
            // OVERFLOW: addresses that wrap are beyond every page table; entries count as they may.
            entries.to = to.wrapping_add(u64::from(some).wrapping_mul(8));
            entries.entry = entry.wrapping_add(increment.wrapping_mul(some.into()));
        }
        Ok(Course::Through)
    }
}
