// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters the driver shows in the fdinfo of an open node: what is alive right now.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Error, Result};

/// What is alive in the driver. Two equal readings around a piece of work prove that it left nothing
/// behind. The driver shows the totals to whoever has CAP_SYS_PTRACE in the first user namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Local handles of this process.
    pub process_handles: u64,
    /// Asynchronous waits and fence points of this process that are still pending.
    pub process_waiters: u64,
    /// Processes that have the node open.
    pub total_processes: u64,
    /// Devices, contexts and synchronisation objects of all processes.
    pub total_objects: u64,
    /// Local handles of all processes.
    pub total_handles: u64,
    /// Pending asynchronous waits and fence points of all processes.
    pub total_waiters: u64,
    /// Pages that hold fence values.
    pub total_pages: u64,
    /// NT handles of all processes.
    pub total_shares: u64,
    /// Every other total that this driver shows, by its name without `dxg-total-`.
    pub other_totals: BTreeMap<String, u64>,
}

/// What the keys of totals begin with.
const TOTAL: &str = "dxg-total-";

/// The totals that every driver shows and that have a member of their own.
const KNOWN_TOTALS: [&str; 6] = [
    "processes",
    "objects",
    "handles",
    "waiters",
    "pages",
    "shares",
];

impl Counters {
    /// Reads the counters behind an open node.
    pub(crate) fn read(fd: BorrowedFd<'_>) -> Result<Self> {
        Self::from_fields(&FdInfo::read(fd)?)
    }

    fn from_fields(info: &FdInfo) -> Result<Self> {
        const MALFORMED: Error = Error::Protocol("missing or malformed counter in fdinfo");
        let field = |name: &str| {
            let value = info.get(name).and_then(|value| value.parse().ok());
            value.ok_or(MALFORMED)
        };
        let others = info.0.iter().filter_map(|(key, value)| {
            let name = key.strip_prefix(TOTAL)?;
            let other = !KNOWN_TOTALS.contains(&name);
            other.then(|| Ok((name.to_owned(), value.parse().map_err(|_| MALFORMED)?)))
        });
        Ok(Self {
            process_handles: field("dxg-process-handles")?,
            process_waiters: field("dxg-process-waiters")?,
            total_processes: field("dxg-total-processes")?,
            total_objects: field("dxg-total-objects")?,
            total_handles: field("dxg-total-handles")?,
            total_waiters: field("dxg-total-waiters")?,
            total_pages: field("dxg-total-pages")?,
            total_shares: field("dxg-total-shares")?,
            other_totals: others.collect::<Result<_>>()?,
        })
    }
}

/// The fdinfo of a descriptor of this process: `key: value` lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdInfo(BTreeMap<String, String>);

impl FdInfo {
    /// Reads the fdinfo of any descriptor.
    pub fn read(fd: BorrowedFd<'_>) -> Result<Self> {
        let path = format!("/proc/thread-self/fdinfo/{}", fd.as_raw_fd());
        let text = std::fs::read_to_string(path).map_err(|error| {
            rustix::io::Errno::from_io_error(&error).map_or(Error::Protocol("fdinfo"), Error::os)
        })?;
        Ok(Self::parse(&text))
    }

    /// The value of `key`, without surrounding blanks.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Self(
            pairs
                .map(|(key, value)| (key.trim().into(), value.trim().into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "pos:\t0\nflags:\t02100000\ndxg-process-handles:\t1\ndxg-process-waiters:\t2\n\
        dxg-total-processes:\t3\ndxg-total-objects:\t4\ndxg-total-handles:\t5\n\
        dxg-total-waiters:\t6\ndxg-total-pages:\t7\ndxg-total-shares:\t8\n";

    #[test]
    fn all_fields() {
        let counters = Counters::from_fields(&FdInfo::parse(TEXT)).unwrap();
        let expected = Counters {
            process_handles: 1,
            process_waiters: 2,
            total_processes: 3,
            total_objects: 4,
            total_handles: 5,
            total_waiters: 6,
            total_pages: 7,
            total_shares: 8,
            other_totals: BTreeMap::new(),
        };
        assert_eq!(counters, expected);
    }

    #[test]
    fn totals_of_later_drivers() {
        let more = format!("{TEXT}dxg-total-bytes:\t4096\ndxg-name:\tx\n");
        let counters = Counters::from_fields(&FdInfo::parse(&more)).unwrap();
        assert_eq!(counters.other_totals, [("bytes".into(), 4096)].into());
        let bad = format!("{TEXT}dxg-total-bytes:\tmany\n");
        assert!(Counters::from_fields(&FdInfo::parse(&bad)).is_err());
    }

    #[test]
    fn every_field_is_required() {
        for line in TEXT.lines().filter(|line| line.starts_with("dxg-")) {
            let text = TEXT.replace(line, "");
            assert!(
                Counters::from_fields(&FdInfo::parse(&text)).is_err(),
                "{line}"
            );
        }
    }

    #[test]
    fn own_descriptor() {
        let event = crate::EventFd::new().unwrap();
        let info = FdInfo::read(std::os::fd::AsFd::as_fd(&event)).unwrap();
        assert_eq!(info.get("pos"), Some("0"));
    }
}
