// SPDX-License-Identifier: GPL-2.0

//! The reset of an engine.

use super::context::Context;
use crate::ddi::{
    class::Passive,
    port::{
        Calls,
        Port, //
    },
    recovery::{
        DebugInfo,
        ResetHwEngine, //
    },
    types::KmdResult, //
};

/// The reset of an engine. The KMD is not stopped as long as this lives.
pub struct EngineRecovery<'a> {
    kmd: Calls<'a>,
    reset: ResetHwEngine,
}

impl<'a> EngineRecovery<'a> {
    /// That of a node, in which the work of a context hangs; `None` if the engine does not answer.
    /// DeviceRemoved if the adapter is stopped.
    pub fn begin(port: &'a Port, node: u32, hung: Option<&Context>) -> KmdResult<Self> {
        Ok(Self {
            kmd: port.enter()?,
            reset: ResetHwEngine {
                node,
                hung: hung.map(|context| context.cookie),
            },
        })
    }

    /// CollectDbgInfo.
    ///
    /// Context: may sleep.
    pub fn collect_dbg_info(&self, class: &Passive, info: &mut DebugInfo) {
        self.kmd.collect_dbg_info(class, &self.reset, info);
    }

    /// ResetHwEngine.
    ///
    /// Context: may sleep.
    pub fn reset(&self, class: &Passive) -> KmdResult {
        self.kmd.reset_hw_engine(class, &self.reset)
    }

    /// ResumeHwEngine.
    ///
    /// Context: may sleep.
    pub fn resume(&self, class: &Passive) {
        self.kmd.resume_hw_engine(class, self.reset.node);
    }
}
