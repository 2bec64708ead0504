// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other process of a step that needs two: the same program with another part to play.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::link::Link;
use crate::Result;

/// The other process; killed when dropped before its end.
pub struct Partner {
    part: &'static str,
    child: Child,
}

impl Partner {
    /// Starts it in this folder, with the name of its part, and a link to it.
    pub fn start(folder: &Path, part: &'static str) -> Result<(Self, Link)> {
        let (link, socket) = Link::to_child()?;
        let child = Command::new(std::env::current_exe()?)
            .arg(folder)
            .arg(part)
            .stdin(Stdio::from(socket))
            .spawn()?;
        Ok((Self { part, child }, link))
    }

    /// Waits for its end, which has to be a success.
    pub fn finish(mut self) -> Result {
        match self.child.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("{}: {status}", self.part).into()),
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // Nothing to do for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
