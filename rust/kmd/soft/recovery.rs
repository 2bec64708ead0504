// SPDX-License-Identifier: GPL-2.0

//! The recovery of a software adapter: whether its engines yield, their resets and its own, and
//! what it is made to do wrong (GPU-92 to GPU-98).

use super::{
    adapter::Adapter,
    answers::{
        Injection,
        Step, //
    },
    cause::Cause,
    commands::Command, //
};
use crate::{
    ddi::{
        class::Passive,
        recovery::{
            DebugInfo,
            EngineStatus,
            ResetHwEngine, //
        },
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        Word32, //
    }, //
};

/// The resets that can be made to fail.
#[derive(Clone, Copy)]
enum Resets {
    Engine = 1,
    Adapter = 2,
    Restart = 4,
}

/// The updates of native fences that can be made to fail (FEN-108).
#[derive(Clone, Copy)]
pub(super) enum Updates {
    MonitoredValues = 1,
    CurrentValues = 2,
}

/// Replaces a word.
fn set(word: &Word32, value: u32) {
    while !platform::cmpxchg(word, platform::load32_acquire(word), value) {}
}

impl Adapter {
    /// PreemptCommand. Does not sleep.
    pub(super) fn preempt_command(&self, node: u32, id: u64) {
        if let Some(shell) = self.engine(node as usize) {
            shell.preempt(id);
        }
    }

    /// QueryEngineStatus.
    pub(super) fn engine_status(&self, node: u32) -> EngineStatus {
        // CAST: as above.
        self.engine(node as usize)
            .map(|shell| shell.answers.status())
            .unwrap_or_default()
    }

    /// CollectDbgInfo: of the context that hangs, or of what the engine runs.
    pub(super) fn collect_dbg_info(&self, reset: &ResetHwEngine, info: &mut DebugInfo) {
        if let Some(shell) = self.engine(reset.node as usize) {
            shell.answers.step(Step::Collect);
        }

        let context = reset.hung.and_then(|cookie| self.context(cookie));

        match (&context, self.engine(reset.node as usize)) {
            (Some((shell, context)), _) => shell.debug_info(Some(context), info),
            (None, Some(shell)) => shell.debug_info(None, info),
            (None, None) => {}
        }
    }

    /// ResetHwEngine. Without such an engine nothing happens.
    pub(super) fn reset_hw_engine(&self, reset: &ResetHwEngine) -> KmdResult {
        let Some(shell) = self.engine(reset.node as usize) else {
            return Ok(());
        };
        let hung = reset.hung.and_then(|cookie| self.context(cookie));
        let fails = self.is_lost() || self.fails(Resets::Engine);

        shell.begin_reset();
        shell.answers.step(Step::Reset);
        shell.answers.end_reset(fails);
        if fails {
            return Err(KmdError::DeviceRemoved);
        }
        shell.lose(hung.as_ref().map(|(_, context)| &**context));
        Ok(())
    }

    /// ResumeHwEngine. Without such an engine nothing happens.
    pub(super) fn resume_hw_engine(&self, node: u32) {
        if let Some(shell) = self.engine(node as usize) {
            shell.answers.step(Step::Resume);
            shell.resume();
        }
    }

    /// ResetFromTimeout: all contexts are lost.
    pub(super) fn reset_from_timeout(&self) -> KmdResult {
        let fails = self.is_lost() || self.fails(Resets::Adapter);

        for shell in self.engines.iter().flatten() {
            shell.begin_reset();
            shell.answers.end_reset(fails);
        }
        if fails {
            return Err(KmdError::DeviceRemoved);
        }

        self.each_context(|context| {
            if let Some(shell) = self.engine(context.engine) {
                shell.lose(Some(context));
            }
        });
        Ok(())
    }

    /// RestartFromTimeout: all engines run again.
    pub(super) fn restart_from_timeout(&self) -> KmdResult {
        if self.is_lost() || self.fails(Resets::Restart) {
            return Err(KmdError::DeviceRemoved);
        }
        for shell in self.engines.iter().flatten() {
            shell.resume();
        }
        Ok(())
    }

    /// A private command of the software GPU.
    pub(super) fn command(&self, class: &Passive, command: Command) -> KmdResult {
        match command {
            Command::Engine { node, what } => {
                let shell = self
                    .engine(node as usize)
                    .ok_or(KmdError::InvalidParameter)?;

                shell.answers.inject(what);
                if let Injection::Stop(false) = what {
                    shell.wake();
                }
            }
            Command::Change(change, value) => {
                let cause = Cause::of_change(change, value);

                self.cpu_events.note_everywhere(&cause);
            }
            Command::LoseDevice => self.lose(),
            Command::EndSaveAreas => self.end_save_areas(class),
            Command::FailResets {
                engine,
                adapter,
                restart,
            } => {
                let bit = |fails, reset| if fails { reset as u32 } else { 0 };
                let bits = bit(engine, Resets::Engine)
                    | bit(adapter, Resets::Adapter)
                    | bit(restart, Resets::Restart);

                set(&self.failing, bits);
            }
            Command::FailUpdates { monitored, current } => {
                let bit = |fails, update| if fails { update as u32 } else { 0 };
                let bits =
                    bit(monitored, Updates::MonitoredValues) | bit(current, Updates::CurrentValues);

                set(&self.failing_updates, bits);
            }
        }
        Ok(())
    }

    /// It is gone, as if somebody had pulled it out.
    pub(super) fn lose(&self) {
        platform::cmpxchg(&self.lost, 0, 1);
        for shell in self.engines.iter().flatten() {
            shell.answers.inject(Injection::Die);
        }
    }

    /// The step in which the reset of an engine is held; 0 if it is not.
    pub(super) fn reset_held_in(&self, node: u32) -> u64 {
        // CAST: as above.
        self.engine(node as usize)
            .map_or(0, |shell| shell.answers.held_in())
    }

    /// Whether it is gone: all bits of what is read are set.
    pub(super) fn is_lost(&self) -> bool {
        platform::load32_acquire(&self.lost) != 0
    }

    /// Fails if updates of this kind are made to fail. Does not sleep.
    pub(super) fn may_update(&self, update: Updates) -> KmdResult {
        // CAST: a bit.
        match platform::load32_acquire(&self.failing_updates) & update as u32 {
            0 => Ok(()),
            _ => Err(KmdError::DeviceRemoved),
        }
    }

    /// CAST: a bit.
    fn fails(&self, reset: Resets) -> bool {
        platform::load32_acquire(&self.failing) & reset as u32 != 0
    }
}
