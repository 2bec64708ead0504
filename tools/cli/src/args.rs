// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line. The manual page is made from it too.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{value_parser, Args as ClapArgs, Parser, Subcommand, ValueHint};
use opendxg::Luid;

use crate::capture;
use crate::control::Action;

/// Show what is alive in the opendxg module.
#[derive(Debug, Parser)]
#[command(name = "opendxg", version)]
pub struct Args {
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    pub json: bool,

    /// Read this directory instead of /proc
    #[arg(long, global = true, value_name = "DIR", default_value = "/proc", value_hint = ValueHint::DirPath)]
    pub proc: PathBuf,

    /// Read this directory instead of /sys/kernel/debug
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub debugfs: Option<PathBuf>,

    /// What to show; an overview without it
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How to show it again and again.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub struct Top {
    /// Show it so many times
    #[arg(long, value_name = "TIMES", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Show it once
    #[arg(long, conflicts_with = "count")]
    pub once: bool,

    /// Measure for so many seconds each time
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub delay: f64,
}

impl Top {
    /// How many times; `None` without an end.
    pub fn times(self) -> Option<u64> {
        match self.once {
            true => Some(1),
            false => self.count,
        }
    }

    /// How long to measure.
    pub fn time(self) -> Duration {
        Duration::from_secs_f64(self.delay)
    }
}

/// Whether to show it again and again.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub struct Watch {
    /// Show it again and again
    #[arg(long)]
    pub watch: bool,

    /// Show it so many times
    #[arg(long, value_name = "TIMES", requires = "watch", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Wait for so many seconds each time
    #[arg(long, value_name = "SECONDS", requires = "watch", default_value_t = 2.0, value_parser = seconds)]
    pub delay: f64,
}

/// What to trace, and where to.
#[derive(ClapArgs, Clone, Debug)]
pub struct TraceArgs {
    /// Write a trace for Perfetto to this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Write a picture to this file, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    /// Room for events of each CPU that are not read yet, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = value_parser!(u32).range(4..))]
    pub buffer: u32,

    /// Read this directory instead of /sys/kernel/tracing
    #[arg(long, value_name = "DIR", default_value = capture::MOUNT, value_hint = ValueHint::DirPath)]
    pub tracing: PathBuf,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.01..=86400.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("not between 0.01 and 86400".into()),
    }
}

/// What to show.
#[derive(Clone, Debug, Default, Subcommand)]
pub enum Command {
    /// How much of everything there is
    #[default]
    Overview,
    /// Adapters and who has them open
    Adapters,
    /// Processes that have the device or an NT handle open
    Processes,
    /// Shareable objects with references, waiters, names and metadata
    Objects,
    /// One object: every handle of it, and its metadata
    Object {
        /// Number of the object, as the other commands show it
        id: u64,
    },
    /// Local handles and NT handles, of all processes or of one
    Handles {
        /// Only those of this process
        #[arg(long)]
        pid: Option<u32>,
    },
    /// Named objects
    Names,
    /// Metadata entries, of all objects or of one
    Info {
        /// Only those of this object
        id: Option<u64>,
    },
    /// Who waits for what since when, and who is to blame that it does not end
    Waiters(Watch),
    /// The last calls of a process that were refused, and by which rules
    Why {
        /// The process
        pid: u32,
    },
    /// Queues of work for engines, of all processes or of one, and what they wait for
    Queues {
        /// Only those of this process
        #[arg(long)]
        pid: Option<u32>,
    },
    /// Engines: what they run, what they have done, and the last fault
    Engines,
    /// How busy engines are, and with whose work, again and again
    Top(Top),
    /// What went wrong on adapters: hangs, resets and faults
    Report {
        /// Only on this adapter
        luid: Option<Luid>,
    },
    /// Run a command, and draw when its fences were queued, signalled and waited for
    Trace(TraceArgs),
    /// Reset an adapter, or one engine of it: who has work there finds its device in error
    Reset {
        /// The adapter
        luid: Luid,
        /// Only the engine of this node
        #[arg(long)]
        node: Option<u32>,
    },
    /// Stop an engine of a software GPU, as a debugger does
    Stop {
        /// The adapter
        luid: Luid,
        /// The engine
        #[arg(long)]
        node: u32,
    },
    /// Let an engine go on that was stopped
    Continue {
        /// The adapter
        luid: Luid,
        /// The engine
        #[arg(long)]
        node: u32,
    },
}

impl Command {
    /// What it does to an adapter, if it does something.
    pub fn action(&self) -> Option<(Luid, Action)> {
        match *self {
            Self::Reset { luid, node } => Some((luid, Action::Reset(node))),
            Self::Stop { luid, node } => Some((luid, Action::Stop(node, true))),
            Self::Continue { luid, node } => Some((luid, Action::Stop(node, false))),
            _ => None,
        }
    }
}
