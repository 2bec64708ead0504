// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is alive in the driver right now: what this process has, from the fdinfo of its open node,
//! and what all processes have, from debugfs.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use crate::{Error, Luid, Result};

/// What is alive in the driver. Two equal readings around a piece of work prove that it left
/// nothing behind. The totals are in debugfs, which only root may read.
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
    /// Every other total that this driver shows, by its name.
    pub other_totals: BTreeMap<String, u64>,
}

impl Counters {
    /// Where the driver shows its totals, as lines of a name and a count.
    pub const TOTALS: &str = "/sys/kernel/debug/opendxg/totals";

    /// Where the driver shows the counts of each adapter: a file whose name is the LUID, until the
    /// last object of the adapter is gone.
    pub const ADAPTERS: &str = "/sys/kernel/debug/opendxg/adapters";

    /// Where the driver shows what there was of native fences, in files of the same names.
    pub const NATIVE_FENCES: &str = "/sys/kernel/debug/opendxg/native-fences";

    /// What exists of an adapter, also of a removed one, by name: `objects`, `handles`, `shares`,
    /// `bytes` and so on. Of processes, keyed mutexes, waits and pages of fence values there are
    /// totals only. Only root may read it.
    pub fn of_adapter(luid: Luid) -> Result<BTreeMap<String, u64>> {
        FdInfo::parse(&read(&Path::new(Self::ADAPTERS).join(luid.to_string()))?).numbers()
    }

    /// What there was of native fences on an adapter, by name: `interrupts`, `spurious` and so on.
    /// These only rise. Only root may read it.
    pub fn of_native_fences(luid: Luid) -> Result<BTreeMap<String, u64>> {
        let path = Path::new(Self::NATIVE_FENCES).join(luid.to_string());
        FdInfo::parse(&read(&path)?).numbers()
    }

    /// Reads the counters behind an open node, and the totals.
    pub(crate) fn read(fd: BorrowedFd<'_>) -> Result<Self> {
        let totals = read(Path::new(Self::TOTALS))?;
        Self::from_fields(&FdInfo::read(fd)?, &FdInfo::parse(&totals))
    }

    fn from_fields(info: &FdInfo, totals: &FdInfo) -> Result<Self> {
        let field = |name: &str| info.get(name).ok_or(MALFORMED).and_then(number);
        let mut totals = totals.numbers()?;
        let mut total = |name: &str| totals.remove(name).ok_or(MALFORMED);
        Ok(Self {
            process_handles: field("dxg-process-handles")?,
            process_waiters: field("dxg-process-waiters")?,
            total_processes: total("processes")?,
            total_objects: total("objects")?,
            total_handles: total("handles")?,
            total_waiters: total("waiters")?,
            total_pages: total("pages")?,
            total_shares: total("shares")?,
            other_totals: totals,
        })
    }
}

const MALFORMED: Error = Error::Protocol("missing or malformed counter");

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| MALFORMED)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        rustix::io::Errno::from_io_error(&error).map_or(Error::Protocol("no text"), Error::os)
    })
}

/// The fdinfo of a descriptor of this process: `key: value` lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdInfo(BTreeMap<String, String>);

impl FdInfo {
    /// Reads the fdinfo of any descriptor.
    pub fn read(fd: BorrowedFd<'_>) -> Result<Self> {
        let path = format!("/proc/thread-self/fdinfo/{}", fd.as_raw_fd());
        Ok(Self::parse(&read(Path::new(&path))?))
    }

    /// The value of `key`, without surrounding blanks.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All values, which are numbers.
    fn numbers(&self) -> Result<BTreeMap<String, u64>> {
        let pairs = self.0.iter();
        pairs
            .map(|(name, value)| Ok((name.clone(), number(value)?)))
            .collect()
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

    const INFO: &str =
        "pos:\t0\nflags:\t02100000\ndxg-process-handles:\t1\ndxg-process-waiters:\t2\n";
    const TOTALS: &str =
        "processes:\t3\nobjects:\t4\nhandles:\t5\nwaiters:\t6\npages:\t7\nshares:\t8\n";

    fn counters(info: &str, totals: &str) -> Result<Counters> {
        Counters::from_fields(&FdInfo::parse(info), &FdInfo::parse(totals))
    }

    #[test]
    fn all_fields() {
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
        assert_eq!(counters(INFO, TOTALS).unwrap(), expected);
    }

    #[test]
    fn totals_of_later_drivers() {
        let found = counters(INFO, &format!("{TOTALS}bytes:\t4096\n")).unwrap();
        assert_eq!(found.other_totals, [("bytes".into(), 4096)].into());
        assert!(counters(INFO, &format!("{TOTALS}bytes:\tmany\n")).is_err());
    }

    #[test]
    fn every_field_is_required() {
        for line in INFO.lines().filter(|line| line.starts_with("dxg-")) {
            assert!(counters(&INFO.replace(line, ""), TOTALS).is_err(), "{line}");
        }
        for line in TOTALS.lines() {
            assert!(counters(INFO, &TOTALS.replace(line, "")).is_err(), "{line}");
        }
    }

    #[test]
    fn own_descriptor() {
        let event = crate::EventFd::new().unwrap();
        let info = FdInfo::read(std::os::fd::AsFd::as_fd(&event)).unwrap();
        assert_eq!(info.get("pos"), Some("0"));
    }
}
