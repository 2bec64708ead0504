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
