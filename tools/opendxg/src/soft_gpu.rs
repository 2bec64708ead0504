// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private commands of the software GPU, for people who test or debug: they make an engine do
//! something wrong, or stop it (`Documentation/software-gpu.md`). ACCESS_DENIED for callers without
//! CAP_SYS_ADMIN.

use crate::adapter::Adapter;
use crate::Result;

/// What a command does, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum Command {
    /// The engine hangs in its next slice. No argument.
    HangEngine = 1,
    /// The queue that the engine runs next hangs, and the engine does not. No argument.
    HangQueue = 2,
    /// 1: the engine does not yield. 0: it does so again.
    RefusePreemption = 3,
    /// The end of the next submission is not told. No argument.
    DropInterrupt = 4,
    /// Each slice takes so many nanoseconds longer: a second at most.
    Delay = 5,
    /// 1: the engine stops, as for a debugger, which is no hang. 0: it goes on.
    Stop = 6,
    /// The device is gone: all that is read from it has all bits set. No node and no argument.
    LoseDevice = 7,
    /// Bits of [`FailResets`]. No node.
    FailResets = 8,
    /// Bits of [`ResetSteps`]: by [`Adapter::hold_resets`].
    HoldResets = 9,
    /// A queue that does not yield for more slices than these is told of
    /// ([`EventClass::Preemption`]); 0 for none. As many as 1,048,576.
    PreemptionThreshold = 10,
    /// Something of the adapter has changed, to this value: by [`Adapter::make_change`].
    Change = 11,
    /// Bits of [`FenceUpdates`]. No node.
    FailFenceUpdates = 12,
    /// The driver ends the save areas of all contexts, whatever runs. No node and no argument.
    EndSaveAreas = 13,
}

bitflags::bitflags! {
    /// Which of the next resets fail.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FailResets: u64 {
        /// Those of engines.
        const ENGINE = 1;
        /// Those of the adapter.
        const ADAPTER = 2;
        /// The start after those.
        const RESTART = 4;
    }

    /// Which updates of native fences fail from now on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FenceUpdates: u64 {
        /// Of MonitoredValue.
        const MONITORED_VALUES = 1;
        /// Of CurrentValue.
        const CURRENT_VALUES = 2;
    }

    /// Steps of the reset of an engine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ResetSteps: u64 {
        /// The driver tells what the engine has come to.
        const COLLECT = 1;
        /// It stops the engine.
        const RESET = 2;
        /// It lets the engine go on.
        const RESUME = 4;
    }
}

/// The bytes of a command by its number, which may be any.
pub fn bytes(command: u32, node: u32, argument: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(b"ODXC");
    bytes[4..8].copy_from_slice(&1_u32.to_le_bytes());
    bytes[8..12].copy_from_slice(&command.to_le_bytes());
    bytes[12..16].copy_from_slice(&node.to_le_bytes());
    bytes[16..].copy_from_slice(&argument.to_le_bytes());
    bytes
}

impl Adapter {
    /// Gives a command to the software GPU. INVALID_PARAMETER if there is no such node, or the
    /// adapter is another one.
    pub fn soft_gpu_command(&self, command: Command, node: u32, argument: u64) -> Result<()> {
        self.private_escape(&mut bytes(command as u32, node, argument))
    }

    /// Has these steps of resets of a node take until the next call without them, but no longer
    /// than about a minute. Returns the step in which a reset is held now.
    pub fn hold_resets(&self, node: u32, steps: ResetSteps) -> Result<ResetSteps> {
        let mut data = bytes(Command::HoldResets as u32, node, steps.bits());
        self.private_escape(&mut data)?;
        let step = u64::from(dword(&data, 16));
        Ok(ResetSteps::from_bits_truncate(step))
    }
}

/// What the software GPU tells of by CPU events: the first word of their usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum EventClass {
    /// Any of the others.
    Any = 1,
    /// A queue of the device took a page fault.
    PageFault = 2,
    /// A reset has hit the device.
    Reset = 3,
    /// A packet asked for it.
    Trap = 4,
    /// An illegal packet.
    BadObject = 5,
    /// A queue of the device has not yielded for more slices than are allowed.
    Preemption = 6,
    /// Something of the whole adapter has changed ([`Change`]), for control panels.
    Internal = 7,
}

/// Why a device was put in error: the reason of a record of [`EventClass::Reset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum ResetReason {
    /// Its engine or its adapter was reset.
    Reset = 0,
    /// A client said so ([`Device::mark_as_error`](crate::Device::mark_as_error)).
    Marked = 1,
    /// Its adapter is removed. There is no record of it any more: the request for records is
    /// DEVICE_REMOVED.
    Removed = 2,
    /// Memory that it was promised is not there.
    OutOfMemory = 3,
    /// Commands have named memory by physical address that is not accessed so.
    Misused = 4,
}

/// What has changed of an adapter: the reason of a record of [`EventClass::Internal`]. The value is
/// in [`EventRecord::detail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum Change {
    /// Its temperature, in thousandths of a degree Celsius.
    Temperature = 1,
    /// Its clock, in hertz.
    Clock = 2,
    /// Its power state: 0 for D0, 3 for D3.
    Power = 3,
    /// Somebody wants memory where there is no room. The value is 0. At most ten times a second.
    Memory = 4,
}

impl EventClass {
    /// The words of [`CpuEvent::set_usage`](crate::CpuEvent::set_usage) for all nodes; records have
    /// the cookie.
    pub fn usage(self, cookie: u32) -> [u32; 8] {
        [self as u32, 0, 0, cookie, 0, 0, 0, 0]
    }
}

impl Adapter {
    /// Tells everybody that the temperature or the clock has changed, which they do not do by
    /// themselves. INVALID_PARAMETER for other changes.
    pub fn make_change(&self, change: Change, value: u64) -> Result<()> {
        self.soft_gpu_command(Command::Change, change as u32, value)
    }
}

/// What has happened, as the software GPU keeps it for a CPU event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// A number of [`EventClass`].
    pub class: u32,
    /// Where it has happened.
    pub node: u32,
    /// Which one it is of its event, from 1.
    pub number: u64,
    /// When it has happened, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The context or HW queue, as `opendxg queues` shows it; 0 if that is not known.
    pub queue: u64,
    /// A GPU virtual address, the argument of a trap, the number of slices without a yield, or the
    /// value that something has changed to.
    pub detail: u64,
    /// What the event was made with.
    pub cookie: u32,
    /// Of a page fault 1 for a store, of a reset a number of [`ResetReason`], of a trap its class,
    /// of an illegal packet its header, of a change a number of [`Change`].
    pub reason: u32,
}

/// The bytes of a request for records.
const READ: usize = 24 + 16 * RECORD;
const RECORD: usize = 48;

impl crate::CpuEvent {
    /// Takes the records of this event out of the software GPU, and how many were lost. `name` is
    /// what [`set_usage`](crate::CpuEvent::set_usage) has returned.
    pub fn take_records(&self, name: u64) -> Result<(Vec<EventRecord>, u32)> {
        let mut bytes = vec![0; READ];
        bytes[..4].copy_from_slice(b"ODXR");
        bytes[4..8].copy_from_slice(&1_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&name.to_le_bytes());
        self.device().private_escape(&mut bytes)?;
        let count = dword(&bytes, 16) as usize;
        let records = bytes[24..].chunks_exact(RECORD).take(count);
        Ok((
            records.map(EventRecord::decode).collect(),
            dword(&bytes, 20),
        ))
    }
}

impl EventRecord {
    fn decode(bytes: &[u8]) -> Self {
        let qword = |at| u64::from(dword(bytes, at)) | (u64::from(dword(bytes, at + 4)) << 32);
        Self {
            class: dword(bytes, 0),
            node: dword(bytes, 4),
            number: qword(8),
            time_ns: qword(16),
            queue: qword(24),
            detail: qword(32),
            cookie: dword(bytes, 40),
            reason: dword(bytes, 44),
        }
    }
}

fn dword(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_98_layout() {
        let delay = bytes(Command::Delay as u32, 2, 0x1_0000_0003);
        assert_eq!(delay[..4], *b"ODXC");
        assert_eq!(
            delay[4..],
            [1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0]
        );
    }
}
