// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the descriptors of the driver in all processes.

use std::fs;
use std::path::Path;

use crate::fdinfo::{self, Descriptor};

/// A process that has descriptors of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process id.
    pub pid: u32,
    /// Name of the program, as the kernel shortens it.
    pub command: String,
    /// State letter of `/proc/PID/stat`: R, S, D, T, t, Z …
    pub state: char,
    /// Descriptor numbers and what is behind them.
    pub descriptors: Vec<(u32, Descriptor)>,
}

/// What a look at all processes found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Ordered by process id.
    pub tasks: Vec<Task>,
    /// Processes whose descriptors this user may not see.
    pub hidden: usize,
}

/// Looks at all processes but this one. A process that ends meanwhile is left out.
///
/// # Errors
///
/// `root` cannot be read at all.
pub fn scan(root: &Path) -> std::io::Result<Scan> {
    let own = std::process::id();
    let mut scan = Scan::default();
    for entry in fs::read_dir(root)?.flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.filter(|&pid| pid != own) else {
            continue;
        };
        match descriptors(&entry.path()) {
            Ok(list) if list.is_empty() => (),
            Ok(descriptors) => {
                let (command, state) = stat(&entry.path());
                scan.tasks.push(Task {
                    pid,
                    command,
                    state,
                    descriptors,
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => scan.hidden += 1,
            Err(_) => (),
        }
    }
    scan.tasks.sort_by_key(|task| task.pid);
    Ok(scan)
}

fn descriptors(task: &Path) -> std::io::Result<Vec<(u32, Descriptor)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(task.join("fd"))?.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let (Some(number), Ok(target)) = (number, fs::read_link(entry.path())) else {
            continue;
        };
        if !is_candidate(&target) {
            continue;
        }
        let text = fs::read(task.join("fdinfo").join(entry.file_name()));
        if let Some(descriptor) = text
            .ok()
            .and_then(|text| fdinfo::parse(&String::from_utf8_lossy(&text)))
        {
            found.push((number, descriptor));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}

/// Only these can be of the driver. The fdinfo of other files may be slow, or stuck with their own driver.
fn is_candidate(target: &Path) -> bool {
    let target = target.to_string_lossy();
    ["/dev/", "anon_inode:", "/dmabuf:"]
        .iter()
        .any(|start| target.starts_with(start))
}

/// Name and state of a process; both survive anything but its end.
fn stat(task: &Path) -> (String, char) {
    let text = fs::read(task.join("stat")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // The name stands in parentheses and may hold any of the characters around it.
    let name = text
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(") "));
    name.map_or(("?".into(), '?'), |(name, rest)| {
        (name.into(), rest.chars().next().unwrap_or('?'))
    })
}

/// The driver's own account, seen through a descriptor of this process: there is one even if nobody else
/// has the device open. Opening the node makes no call and waits for nobody.
pub fn own_view() -> Option<Descriptor> {
    use std::os::fd::AsRawFd;
    let path = std::env::var_os("OPENDXG_DEVICE").unwrap_or_else(|| "/dev/dxg".into());
    let node = fs::File::open(path).ok()?;
    let text = fs::read(format!("/proc/self/fdinfo/{}", node.as_raw_fd())).ok()?;
    fdinfo::parse(&String::from_utf8_lossy(&text))
}
