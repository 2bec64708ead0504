// SPDX-License-Identifier: MIT OR Apache-2.0
//! What root does to an adapter: resets, and stopping an engine as a debugger does. These are calls
//! to the module, unlike all the rest of the command.

use opendxg::soft_gpu::Command;
use opendxg::{Adapter, Dxg, Error, Luid, Status};
use rustix::io::Errno;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reset one engine, or the adapter.
    Reset(Option<u32>),
    /// Stop an engine; `false` lets it go on.
    Stop(u32, bool),
}

/// Why it was not done.
#[derive(Debug)]
pub enum Failure {
    /// There is no module.
    NoDriver(String),
    /// Everything else.
    Refused(String),
}

/// Does it.
///
/// # Errors
///
/// There is no module, no such adapter or no such node, or the caller may not.
pub fn act(luid: Luid, action: Action) -> Result<(), Failure> {
    let adapter = open(luid)?;
    let done = match action {
        Action::Reset(node) => adapter.reset(node),
        Action::Stop(node, stops) => {
            adapter.soft_gpu_command(Command::Stop, node, u64::from(stops))
        }
    };
    done.map_err(|error| Failure::Refused(format!("{luid}: {}", why(error, action))))
}

fn open(luid: Luid) -> Result<Adapter, Failure> {
    let dxg = Dxg::open().map_err(|error| match error {
        // The node is missing, or another device.
        Error::Os(errno)
            if [Errno::NOENT, Errno::NOTTY]
                .iter()
                .any(|one| one.raw_os_error() == errno.raw_os_error()) =>
        {
            Failure::NoDriver(error.to_string())
        }
        _ => Failure::Refused(error.to_string()),
    })?;
    dxg.open_adapter(luid).map_err(|error| {
        Failure::Refused(match error {
            Error::Status(Status::INVALID_PARAMETER) => format!("no adapter {luid} runs"),
            _ => format!("{luid}: {error}"),
        })
    })
}

fn why(error: Error, action: Action) -> String {
    let Error::Status(status) = error else {
        return error.to_string();
    };
    match (status, action) {
        (Status::ACCESS_DENIED, _) => {
            format!("{status}: this needs CAP_SYS_ADMIN: are you root?")
        }
        (Status::INVALID_PARAMETER, Action::Reset(Some(node))) => format!("no node {node}"),
        (Status::INVALID_PARAMETER, Action::Stop(node, _)) => {
            format!("no node {node}, or not a software GPU")
        }
        _ => error.to_string(),
    }
}
