// SPDX-License-Identifier: GPL-2.0

//! Private commands of the software GPU: escapes for people who test or debug (GPU-98). They need
//! a client that may control the machine.
//!
//! ```text
//! byte 0  magic, "ODXC"
//!      4  version, 1
//!      8  command
//!     12  node
//!     16  argument, 64 bits
//! ```
//!
//! That which holds resets is answered there with the step in which one is held. For a change the
//! node is what changes: 1 is the temperature, 2 the clock.

use super::{
    answers::{
        Injection,
        STEPS, //
    },
    cause::Change, //
};
use crate::ddi::types::{
    KmdError,
    KmdResult, //
};

/// Bytes of a command.
pub const COMMAND_SIZE: usize = 24;

const MAGIC: u32 = u32::from_le_bytes(*b"ODXC");
const VERSION: u32 = 1;

/// Slices are not made longer than by this: a second.
const MAX_DELAY_NS: u64 = 1_000_000_000;

/// No queue may refuse to yield for more slices.
const MAX_SLICES: u64 = 1 << 20;

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Something about the engine of a node.
    Engine { node: u32, what: Injection },
    /// The whole adapter is gone: all that is read from it has all bits set.
    LoseDevice,
    /// The next resets fail: of engines, of the adapter, and the restart after that.
    FailResets {
        engine: bool,
        adapter: bool,
        restart: bool,
    },
    /// From now on updates of native fences fail: of MonitoredValue, of CurrentValue.
    FailUpdates { monitored: bool, current: bool },
    /// Something of the adapter has changed, to this value.
    Change(Change, u64),
    /// The driver ends the save areas of all contexts, whatever runs.
    EndSaveAreas,
}

/// A change that is made to happen, by its number: those that do not happen by themselves.
fn changed(what: u32, value: u64) -> KmdResult<Command> {
    let changes = [Change::Temperature, Change::Clock];
    // CAST: its number.
    let change = changes.into_iter().find(|change| *change as u32 == what);

    change
        .map(|change| Command::Change(change, value))
        .ok_or(KmdError::InvalidParameter)
}

/// The dword at a place.
fn dword(data: &[u8], at: usize) -> KmdResult<u32> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk());

    bytes
        .map(|bytes| u32::from_le_bytes(*bytes))
        .ok_or(KmdError::InvalidParameter)
}

impl Command {
    /// The command that an escape has.
    pub(super) fn decode(data: &[u8]) -> KmdResult<Self> {
        if data.len() != COMMAND_SIZE || dword(data, 0)? != MAGIC || dword(data, 4)? != VERSION {
            return Err(KmdError::InvalidParameter);
        }

        let node = dword(data, 12)?;
        let argument = u64::from(dword(data, 16)?) | (u64::from(dword(data, 20)?) << 32);
        let is_on = match argument {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        let on = || is_on.ok_or(KmdError::InvalidParameter);
        let nothing = || {
            (argument == 0)
                .then_some(())
                .ok_or(KmdError::InvalidParameter)
        };
        let what = match dword(data, 8)? {
            1 => nothing().map(|()| Injection::HangEngine)?,
            2 => nothing().map(|()| Injection::HangQueue)?,
            3 => Injection::RefusePreemption(on()?),
            4 => nothing().map(|()| Injection::DropInterrupt)?,
            5 if argument <= MAX_DELAY_NS => Injection::Delay(argument),
            6 => Injection::Stop(on()?),
            7 if node == 0 && argument == 0 => return Ok(Self::LoseDevice),
            8 if node == 0 && argument < 8 => {
                return Ok(Self::FailResets {
                    engine: argument & 1 != 0,
                    adapter: argument & 2 != 0,
                    restart: argument & 4 != 0,
                })
            }
            9 if argument & !STEPS == 0 => Injection::HoldReset(argument),
            10 if argument <= MAX_SLICES => Injection::PreemptionThreshold(argument),
            11 => return changed(node, argument),
            12 if node == 0 && argument < 4 => {
                return Ok(Self::FailUpdates {
                    monitored: argument & 1 != 0,
                    current: argument & 2 != 0,
                })
            }
            13 if node == 0 && argument == 0 => return Ok(Self::EndSaveAreas),
            _ => return Err(KmdError::InvalidParameter),
        };

        Ok(Self::Engine { node, what })
    }

    /// The engine whose resets it holds, if it does that.
    pub(super) fn holds_reset(self) -> Option<u32> {
        match self {
            Self::Engine {
                node,
                what: Injection::HoldReset(_),
            } => Some(node),
            _ => None,
        }
    }
}
