// SPDX-License-Identifier: GPL-2.0

//! Where a queue has got to.
//!
//! A queue runs one submission at a time. Which one comes next is for the shell, that queues them.
//! Or it has a ring, and finds there what it runs.

use super::{
    fault::{
        FaultKind,
        FaultRecord, //
    },
    log::{
        Log,
        LogType,
        Logs, //
    },
    operation::{
        Frame,
        Operation, //
    },
    ring::{
        BadPointer,
        Reader,
        Ring, //
    },
    translation::Root, //
};

pub use super::operation::BlockedOn;

/// How many indirect buffers may be open at once (GPU-40).
pub const MAX_NESTING: usize = 4;

/// What a queue may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Everything but the packets of the paging node.
    Normal,
    /// The kernel's queue of the paging node: page tables, invalidations, and pages that are for
    /// the system only (GPU-46).
    Paging,
}

/// The value that a queue's progress fence has when a submission has been retired (GPU-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// GPU virtual address of the fence's value, a multiple of 8. The page may be one for the
    /// system only.
    pub va: u64,
    /// What is stored there.
    pub value: u64,
}

/// A command buffer for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// GPU virtual address of its first packet, a multiple of 4.
    pub va: u64,
    /// Its size in bytes, a multiple of 4.
    pub length: u32,
    /// What is stored when it has been retired.
    pub progress: Option<Progress>,
}

/// Why a queue does not take a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// It has one, or it has a ring.
    Busy,
    /// A fault has stopped it.
    Faulted,
    /// An address or a size is not aligned.
    Alignment,
}

/// A packet, for a fault record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketPlace {
    pub(super) va: u64,
    pub(super) header: u32,
}

/// The state of one queue's command processor. Plain memory; the shell serialises its use.
#[derive(Clone, Debug)]
pub struct Queue {
    root: Root,
    privilege: Privilege,
    submission: Option<Submission>,
    /// How far it is in its ring, if it has one.
    ring: Option<Reader>,
    /// The buffer that is read.
    current: Frame,
    /// The buffers that go on when that one ends, the innermost last.
    callers: [Frame; MAX_NESTING],
    nesting: usize,
    /// The packet that is executed.
    pub(super) packet: PacketPlace,
    /// What of it is still to be done.
    pub(super) operation: Option<Operation>,
    fault: Option<FaultRecord>,
    /// What is logged of it goes there. Whatever becomes of the queue, these stay.
    pub(super) logs: Logs,
    /// When its last wait was first tried, for the log.
    pub(super) observed: Option<u64>,
    /// When its last RELEASE_MEM stored a word that no entry of a log tells of yet.
    pub(super) released: Option<u64>,
}

impl Queue {
    /// A queue with nothing to do.
    pub const fn new(root: Root, privilege: Privilege) -> Self {
        const EMPTY: Frame = Frame { va: 0, dwords: 0 };

        Self {
            root,
            privilege,
            submission: None,
            ring: None,
            current: EMPTY,
            callers: [EMPTY; MAX_NESTING],
            nesting: 0,
            packet: PacketPlace { va: 0, header: 0 },
            operation: None,
            fault: None,
            logs: Logs::NONE,
            observed: None,
            released: None,
        }
    }

    /// The same with its logs.
    fn renewed(&self) -> Self {
        Self {
            logs: self.logs,
            ..Self::new(self.root, self.privilege)
        }
    }

    /// SetNativeFenceLogBuffer: it has this log of a kind from the next step on, or none.
    pub fn set_log(&mut self, ty: LogType, log: Option<Log>) {
        self.logs.set(ty, log);
    }

    /// The root of its address space.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// SetRootPageTable: another root from the next step on. The shell invalidates.
    pub fn set_root(&mut self, root: Root) {
        self.root = root;
    }

    /// What it may do.
    pub fn privilege(&self) -> Privilege {
        self.privilege
    }

    /// What it runs, or was stopped in.
    pub fn submission(&self) -> Option<&Submission> {
        self.submission.as_ref()
    }

    /// What stopped it.
    pub fn fault(&self) -> Option<&FaultRecord> {
        self.fault.as_ref()
    }

    /// What it waits for, after a step that found it blocked.
    pub fn blocked_on(&self) -> Option<BlockedOn> {
        self.operation.as_ref().and_then(Operation::blocked_on)
    }

    /// GPU virtual address of the packet that it is in, or comes to next.
    pub fn packet(&self) -> u64 {
        match self.operation {
            Some(_) => self.packet.va,
            None => self.current.va,
        }
    }

    /// Whether all of its submission has been read, though not all of it may have been done.
    pub fn is_fetched(&self) -> bool {
        let callers = self.callers.iter().take(self.nesting);

        self.submission.is_some()
            && self.current.dwords == 0
            && callers.copied().all(|caller| caller.dwords == 0)
            && !self.operation.as_ref().is_some_and(Operation::reads_buffer)
    }

    /// Takes a submission, which the next steps run.
    pub fn submit(&mut self, submission: Submission) -> Result<(), SubmitError> {
        let progress = submission.progress.map_or(0, |progress| progress.va);

        if self.fault.is_some() {
            return Err(SubmitError::Faulted);
        }
        if self.submission.is_some() || self.ring.is_some() {
            return Err(SubmitError::Busy);
        }
        if submission.va % 4 != 0 || submission.length % 4 != 0 || progress % 8 != 0 {
            return Err(SubmitError::Alignment);
        }
        self.current = Frame {
            va: submission.va,
            dwords: submission.length / 4,
        };
        self.submission = Some(submission);
        Ok(())
    }

    /// Forgets what it runs and what stopped it; nothing more of it is executed. What it was.
    ///
    /// A ring goes, too: where its process and it had got to is not known any more.
    pub fn reset(&mut self) -> Option<Submission> {
        let submission = self.submission.take();

        *self = self.renewed();
        submission
    }

    /// It runs what its process writes to this ring, from the first dword on, or no ring any more.
    /// Nothing more of what it ran is executed; a fault stays.
    pub fn set_ring(&mut self, ring: Option<Ring>) {
        let fault = self.fault;

        *self = self.renewed();
        self.ring = ring.map(Reader::new);
        self.fault = fault;
    }

    /// Its ring, if it has one.
    pub(super) fn ring(&self) -> Option<&Ring> {
        self.ring.as_ref().map(|reader| &reader.ring)
    }

    /// How many dwords of its ring have been done, as its process was told.
    pub fn done(&self) -> u64 {
        self.ring.as_ref().map_or(0, Reader::done)
    }

    /// Whether there is something left of what it has begun.
    pub(super) fn has_begun(&mut self) -> bool {
        self.operation.is_some() || self.submission.is_some() || self.frame().is_some()
    }

    /// Whether the process has written no more to the ring than was taken from there.
    pub(super) fn has_taken(&self, written: u64) -> bool {
        self.ring
            .as_ref()
            .is_none_or(|reader| reader.has_taken(written))
    }

    /// The process has written so much to the ring, and all before it is done. Whether that is more
    /// than before.
    pub(super) fn accept(&mut self, written: u64) -> Result<bool, BadPointer> {
        let Some(reader) = &mut self.ring else {
            return Ok(false);
        };
        let (va, dwords) = reader.accept(written)?;

        self.current = Frame { va, dwords };
        Ok(dwords != 0)
    }

    /// How much of the ring has been done, if its process does not know.
    pub(super) fn publish(&mut self) -> Option<u64> {
        let is_between_packets = self.nesting == 0 && self.operation.is_none();

        self.ring
            .as_mut()
            .filter(|_| is_between_packets)?
            .publish(self.current.dwords)
    }

    /// The ring, if that is what is read, and not a buffer that it has called.
    fn read_ring(&self) -> Option<&Reader> {
        self.ring.as_ref().filter(|_| self.nesting == 0)
    }

    /// Whether the ring is read, and not a buffer.
    pub(super) fn is_in_ring(&self) -> bool {
        self.read_ring().is_some()
    }

    /// The address so many dwords behind another one of what is read, which may go round the end of
    /// the ring.
    pub(super) fn further(&self, va: u64, dwords: u32) -> u64 {
        match self.read_ring() {
            Some(reader) => reader.further(va, dwords),
            // OVERFLOW: what wraps is beyond every page table, and the next fetch faults.
            None => va.wrapping_add(u64::from(dwords) * 4),
        }
    }

    /// The submission has been retired.
    pub(super) fn retire(&mut self) {
        self.submission = None;
    }

    /// A fault stops the queue in the current packet.
    pub(super) fn stop(&mut self, kind: FaultKind) -> FaultRecord {
        let record = FaultRecord {
            kind,
            packet: self.packet.va,
            header: self.packet.header,
        };

        self.operation = None;
        self.fault = Some(record);
        record
    }

    /// What is left of the innermost buffer that has not ended, after returns from those that
    /// have. `None` if all have.
    pub(super) fn frame(&mut self) -> Option<Frame> {
        // At most MAX_NESTING returns.
        while self.current.dwords == 0 {
            let caller = self.nesting.checked_sub(1)?;

            self.current = self.callers.get(caller).copied()?;
            self.nesting = caller;
        }
        Some(self.current)
    }

    /// Goes on behind so many dwords of the buffer; `None`, and nothing happens, if it has fewer.
    pub(super) fn skip(&mut self, dwords: u32) -> Option<()> {
        self.current = Frame {
            dwords: self.current.dwords.checked_sub(dwords)?,
            va: self.further(self.current.va, dwords),
        };
        Some(())
    }

    /// Whether so many dwords are left in the buffer.
    pub(super) fn has(&self, dwords: u32) -> bool {
        dwords <= self.current.dwords
    }

    /// Goes on in another buffer instead of this one.
    pub(super) fn chain(&mut self, frame: Frame) {
        self.current = frame;
    }

    /// Goes on in another buffer, and here when that has ended; `None` if too many are open.
    pub(super) fn call(&mut self, frame: Frame) -> Option<()> {
        *self.callers.get_mut(self.nesting)? = self.current;
        // OVERFLOW: not more than MAX_NESTING, which is checked above.
        self.nesting = self.nesting.saturating_add(1);
        self.current = frame;
        Some(())
    }

    /// GPU virtual address behind what has been read.
    pub(super) fn position(&self) -> u64 {
        self.current.va
    }
}
