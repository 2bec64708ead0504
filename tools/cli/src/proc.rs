// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the descriptors of the module in all processes.

use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::{fs, io};

use opendxg::Dxg;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::fdinfo::{self, Descriptor};

/// A process that has descriptors of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process id.
    pub pid: u32,
    /// Name of the program, as the kernel shortens it.
    pub command: String,
    /// State letter of `/proc/PID/stat`: R, S, D, T, t, Z …
    pub state: char,
    /// Its threads, if they could be listed.
    pub threads: Vec<u32>,
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

/// Looks at all processes but this one for descriptors of `node` and of what the module hands out.
/// A process that ends meanwhile is left out.
///
/// # Errors
///
/// `root` cannot be read at all.
pub fn scan(root: &Path, node: Option<DeviceNumber>) -> io::Result<Scan> {
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
        match descriptors(&entry.path(), node) {
            Ok(list) if list.is_empty() => (),
            Ok(descriptors) => {
                let (command, state) = stat(&entry.path());
                scan.tasks.push(Task {
                    pid,
                    command,
                    state,
                    threads: threads(&entry.path()),
                    descriptors,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => scan.hidden += 1,
            Err(_) => (),
        }
    }
    scan.tasks.sort_by_key(|task| task.pid);
    Ok(scan)
}

fn threads(task: &Path) -> Vec<u32> {
    let listed = fs::read_dir(task.join("task")).into_iter().flatten();
    listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn descriptors(task: &Path, node: Option<DeviceNumber>) -> io::Result<Vec<(u32, Descriptor)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(task.join("fd"))?.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let (Some(number), Ok(target)) = (number, fs::read_link(entry.path())) else {
            continue;
        };
        if !is_ours(&entry.path(), &target, node) {
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

/// Number of a character device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceNumber(u64);

impl DeviceNumber {
    /// The number of the device whose node is at `path`; `None` if there is none. Opens nothing.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let is_device = found.file_type().is_char_device();
        is_device.then(|| Self(found.rdev()))
    }
}

/// What the links of the module's anonymous files say.
const ANONYMOUS: [&str; 6] = [
    "anon_inode:[DxgkFencePoint]",
    "anon_inode:[DxgkFenceStream]",
    "anon_inode:[DxgkSharedResource]",
    "anon_inode:[DxgkSharedSyncObject]",
    "anon_inode:[DxgkWatch]",
    "anon_inode:[DxgkWeakReference]",
];

/// Whether a descriptor is of the module, or a dma-buf, which has to be asked for its exporter.
///
/// The fdinfo of any other file may be stuck with the driver that made it: it is not read. A device
/// is known by its number, because its node may have any name; stat(2) does not open it.
fn is_ours(link: &Path, target: &Path, node: Option<DeviceNumber>) -> bool {
    let target = target.to_string_lossy();
    if target.starts_with("/dev/") {
        return node.is_some() && DeviceNumber::of(link) == node;
    }
    target.starts_with("/dmabuf:") || ANONYMOUS.contains(&&*target)
}

/// Name of the program of a process; `None` if there is no such process.
pub fn command(root: &Path, pid: u64) -> Option<String> {
    let (name, _) = stat(&root.join(pid.to_string()));
    (name != "?").then_some(name)
}

/// Name and state letter of a process, if it exists and has not begun after a time so long ago: a
/// number is used again.
pub fn life(root: &Path, pid: u32, ago_ns: u64) -> Option<(String, char)> {
    let task = root.join(pid.to_string());
    let (name, state) = stat(&task);
    let is_there = state != '?' && !matches!(state, 'Z' | 'X');
    (is_there && age_ns(root, &task).is_none_or(|age| age + SLACK_NS >= ago_ns))
        .then_some((name, state))
}

/// The ages of processes and of signals are those of ticks, and are read one after the other.
const SLACK_NS: u64 = 1_000_000_000;

/// How long ago a process began: field 22 of its `stat` in hundredths of a second since boot.
fn age_ns(root: &Path, task: &Path) -> Option<u64> {
    let text = fs::read(task.join("stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let begun: u64 = text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string(root.join("uptime")).ok()?;
    let (seconds, rest) = uptime.split(' ').next()?.split_once('.')?;
    let now = seconds.parse::<u64>().ok()? * 100 + rest.parse::<u64>().ok()?;
    now.checked_sub(begun)?.checked_mul(10_000_000)
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

/// What the module says of a descriptor of this process, which has opened every adapter: it names
/// all that run, even if nobody else has the device open. Neither opening the node nor listing the
/// adapters waits for anybody.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if there is no module behind `path`; any other if the node cannot
/// be opened or the adapters cannot be listed.
pub fn own_view(path: &Path) -> io::Result<Descriptor> {
    let absent = |why: &str| io::Error::new(io::ErrorKind::NotFound, why);
    if !fs::metadata(path)?.file_type().is_char_device() {
        return Err(absent("not a character device"));
    }
    // Whatever the path leads to: opening it does not wait, and no terminal becomes ours.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let node = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NODEV | Errno::NXIO) => Err(absent("no such device")),
        other => other.map_err(io::Error::from),
    }?;
    let view = || {
        let text = fs::read(format!("/proc/self/fdinfo/{}", node.as_raw_fd()))?;
        let view = fdinfo::parse(&String::from_utf8_lossy(&text));
        view.ok_or_else(|| absent("not the module's device"))
    };
    // No other device is sent a call.
    view()?;
    let all = Dxg::open_path(path).and_then(|dxg| dxg.adapters());
    let _open = all.map_err(io::Error::other)?;
    view()
}
