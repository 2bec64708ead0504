// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory of an adapter there is, and who uses it.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::adapter::Adapter;
use crate::calls::call;
use crate::raw::Argument;
use crate::uapi::*;
use crate::Result;

/// Segments that are budgeted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryGroup {
    /// Memory of the GPU.
    Local,
    /// System memory that the GPU uses.
    NonLocal,
}

impl MemoryGroup {
    fn raw(self) -> D3DKMT_MEMORY_SEGMENT_GROUP {
        match self {
            Self::Local => D3DKMT_MEMORY_SEGMENT_GROUP_LOCAL,
            Self::NonLocal => D3DKMT_MEMORY_SEGMENT_GROUP_NON_LOCAL,
        }
    }
}

/// What this process has of a group, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VideoMemory {
    /// What it may use now.
    pub budget: u64,
    /// What it uses.
    pub usage: u64,
    /// What it has reserved.
    pub reservation: u64,
    /// What it could reserve.
    pub available_for_reservation: u64,
}

/// A segment of memory, for all processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentStatistics {
    /// Bytes that can be used.
    pub commit_limit: u64,
    /// Bytes that belong to allocations.
    pub bytes_committed: u64,
    /// Bytes that have a place where the GPU reaches them.
    pub bytes_resident: u64,
    /// It makes scattered pages of the system look contiguous.
    pub is_aperture: bool,
}

/// What an engine node has done for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessNodeStatistics {
    /// How long it has run work of the process, in units of 100 ns.
    pub running_time: u64,
    /// How often it went on with the process after other work.
    pub switches: u32,
    /// Command buffers that it got.
    pub submitted: u32,
    /// Command buffers that have completed.
    pub completed: u32,
}

/// Whose statistics are asked for.
#[derive(Clone, Copy, Debug)]
pub enum StatisticsOf<'a> {
    /// This process.
    Caller,
    /// The process of a pidfd, which this one may look at.
    Process(BorrowedFd<'a>),
}

impl StatisticsOf<'_> {
    pub(crate) fn raw(self) -> u64 {
        match self {
            Self::Caller => 0,
            // A descriptor is not negative.
            Self::Process(pidfd) => pidfd.as_raw_fd() as u64,
        }
    }
}

impl Adapter {
    /// What this process has of the memory of a group.
    pub fn video_memory(&self, group: MemoryGroup) -> Result<VideoMemory> {
        let mut arg = D3DKMT_QUERYVIDEOMEMORYINFO::zeroed();
        arg.hAdapter = self.handle().0;
        arg.MemorySegmentGroup = group.raw();
        call(self.node(), &mut arg)?;
        Ok(VideoMemory {
            budget: arg.Budget,
            usage: arg.CurrentUsage,
            reservation: arg.CurrentReservation,
            available_for_reservation: arg.AvailableForReservation,
        })
    }

    /// Keeps so much memory of a group for this process, instead of what was kept before: at most
    /// [`VideoMemory::available_for_reservation`].
    pub fn reserve_video_memory(&self, group: MemoryGroup, bytes: u64) -> Result<()> {
        let mut arg = D3DKMT_CHANGEVIDEOMEMORYRESERVATION::zeroed();
        arg.hAdapter = self.handle().0;
        arg.MemorySegmentGroup = group.raw();
        arg.Reservation = bytes;
        call(self.node(), &mut arg).map(|_| ())
    }

    /// Reads statistics (`D3DKMT_QUERYSTATISTICS_*`); the LUID is filled in.
    ///
    /// The answer is the arm of the kind; all arms are integers.
    pub(crate) fn statistics(&self, arg: &mut D3DKMT_QUERYSTATISTICS) -> Result<()> {
        arg.AdapterLuid = self.luid().raw();
        call(self.node(), arg).map(|_| ())
    }

    /// How many segments and nodes the adapter has.
    pub fn segment_and_node_count(&self) -> Result<(u32, u32)> {
        let mut arg = D3DKMT_QUERYSTATISTICS::zeroed();
        arg.Type = D3DKMT_QUERYSTATISTICS_ADAPTER;
        self.statistics(&mut arg)?;
        // SAFETY: the arm of the kind that was asked for; all arms are integers.
        let answer = unsafe { arg.QueryResult.__bindgen_anon_1.AdapterInformation };
        Ok((answer.NbSegments, answer.NodeCount))
    }

    /// Statistics of a segment, by its place in the list of segments.
    pub fn segment_statistics(&self, segment: u32) -> Result<SegmentStatistics> {
        let mut arg = D3DKMT_QUERYSTATISTICS::zeroed();
        arg.Type = D3DKMT_QUERYSTATISTICS_SEGMENT;
        arg.__bindgen_anon_1.QuerySegment.SegmentId = segment;
        self.statistics(&mut arg)?;
        // SAFETY: as above.
        let answer = unsafe { arg.QueryResult.__bindgen_anon_1.SegmentInformation };
        Ok(SegmentStatistics {
            commit_limit: answer.CommitLimit,
            bytes_committed: answer.BytesCommitted,
            bytes_resident: answer.BytesResident,
            is_aperture: answer.Aperture != 0,
        })
    }

    /// How many bytes of a process are resident in a segment, by its place in the list.
    pub fn process_segment_bytes(&self, process: StatisticsOf<'_>, segment: u32) -> Result<u64> {
        let mut arg = D3DKMT_QUERYSTATISTICS::zeroed();
        arg.Type = D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT;
        arg.hProcess = process.raw();
        arg.__bindgen_anon_1.QueryProcessSegment.SegmentId = segment;
        self.statistics(&mut arg)?;
        // SAFETY: as above.
        let answer = unsafe { arg.QueryResult.__bindgen_anon_1.ProcessSegmentInformation };
        Ok(answer.BytesCommitted)
    }

    /// What an engine node has done for a process.
    pub fn process_node_statistics(
        &self,
        process: StatisticsOf<'_>,
        node: u32,
    ) -> Result<ProcessNodeStatistics> {
        let mut arg = D3DKMT_QUERYSTATISTICS::zeroed();
        arg.Type = D3DKMT_QUERYSTATISTICS_PROCESS_NODE;
        arg.hProcess = process.raw();
        arg.__bindgen_anon_1.QueryProcessNode.NodeId = node;
        self.statistics(&mut arg)?;
        // SAFETY: as above.
        let answer = unsafe { arg.QueryResult.__bindgen_anon_1.ProcessNodeInformation };
        let [render, ..] = answer.PacketStatistics.QueuePacket;
        Ok(ProcessNodeStatistics {
            running_time: answer.RunningTime.unsigned_abs(),
            switches: answer.ContextSwitch,
            submitted: render.PacketSubmited,
            completed: render.PacketCompleted,
        })
    }
}
