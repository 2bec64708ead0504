// SPDX-License-Identifier: GPL-2.0

//! What a KMD says of an engine that may hang (gpu.md section 9).

use super::types::ContextCookie;

/// How an engine is (QueryEngineStatus).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatus {
    /// The last PreemptCommand that it has obeyed; 0 for none. They are numbered upwards.
    pub preempted: u64,
    /// It has done all submissions that it was given, and told so.
    pub is_idle: bool,
    /// It does not run because a debugger has stopped it, which is no hang.
    pub is_stopped: bool,
}

/// What ResetHwEngine is to reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetHwEngine {
    /// The node whose engine is reset.
    pub node: u32,
    /// The context whose work has taken too long; `None` if the engine does not answer. Then the
    /// context is affected whose work it has stopped in.
    pub hung: Option<ContextCookie>,
}

/// How many dwords of commands a KMD shows.
pub const SHOWN_DWORDS: usize = 16;

/// What a KMD knows of what an engine runs, for those who look for the reason of a hang
/// (CollectDbgInfo).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DebugInfo {
    /// The context or HW queue whose work it is, as the OS part calls it.
    pub queue: Option<u64>,
    /// GPU virtual address of the packet that it is in, or comes to next.
    pub packet: u64,
    /// The dwords from there on, as many as are known.
    pub dwords: [u32; SHOWN_DWORDS],
    /// How many these are.
    pub count: usize,
    /// The engine did not answer, so that this is what it told last.
    pub is_stale: bool,
}
