// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line. The manual page is made from it too.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};

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

/// What to show.
#[derive(Clone, Copy, Debug, Default, Subcommand)]
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
    /// Objects that somebody waits for, and who has them open
    Waiters,
}
