// SPDX-License-Identifier: GPL-2.0

//! What stopped a queue (GPU-36, GPU-67).

/// Why an access did not find a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The address has more bits than the page tables translate, or its index is beyond the
    /// entries of the root.
    Range,
    /// An entry is not valid.
    Invalid,
    /// The page must not be written.
    WriteProtected,
    /// The page is for the system only.
    SystemUseOnly,
    /// An entry leads to where there is no memory.
    NoMemory,
}

/// An access to a page that is not there, or not for this access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// GPU virtual address of the access.
    pub va: u64,
    /// Whether it was to be written.
    pub write: bool,
    /// Level of the entry at which the walk ended. 0 is the level of pages, of the page's own
    /// memory too.
    pub level: u8,
    /// What was wrong there.
    pub cause: Cause,
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// Type 0 or 1, or a bit of the header that must be 0.
    Header,
    /// No such opcode, or none that this engine has.
    Opcode,
    /// COUNT is not one that the opcode has.
    Count,
    /// The packet, or what it skips, extends beyond the end of its buffer.
    Extent,
    /// A field has a value that is not defined.
    Field,
    /// An address or a size is not aligned.
    Alignment,
    /// Indirect buffers are nested too deeply.
    Nesting,
    /// The queue may not run this packet.
    Privilege,
    /// An address is not where the process of the queue sees a native fence (GPU-45, GPU-48).
    Fence,
    /// The queue has no log, or none with such an entry (GPU-71, GPU-84).
    Log,
    /// The write pointer of a ring went down, or further ahead than the ring is long (GPU-15).
    WritePointer,
}

/// What stopped a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// `DMAPAGEFAULT`: a page that is not there, or not for this access.
    Page(PageFault),
    /// `DMAFAULT`: an illegal packet. Nothing of it was executed.
    Packet(Illegal),
}

/// What stopped a queue, and where. Queue, process and fence id are for the shell to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// What happened.
    pub kind: FaultKind,
    /// GPU virtual address of the packet, or of the end of the submission if the fault was at the
    /// store of the progress value.
    pub packet: u64,
    /// The packet's header; 0 if it could not be read, and at the end of the submission.
    pub header: u32,
}
