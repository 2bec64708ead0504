// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the module tells of all processes together, and of each adapter: files in debugfs, for
//! root.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use opendxg::Luid;

use crate::engines::{self, Engine, Queue};
use crate::reports::{self, Report};
use crate::top::Reading;

/// Where debugfs is mounted as a rule.
pub const MOUNT: &str = "/sys/kernel/debug";

/// The counts of what is alive, by name: lines of a name and a count. A line that this version
/// does not understand is left out.
///
/// # Errors
///
/// The file cannot be read: there is no debugfs, or this user may not look into it.
pub fn totals(mount: &Path) -> io::Result<BTreeMap<String, u64>> {
    counts(&mount.join("opendxg/totals"))
}

/// The same of the adapter with this LUID.
///
/// # Errors
///
/// The file cannot be read, or there is no such adapter.
pub fn adapter(mount: &Path, luid: &str) -> io::Result<BTreeMap<String, u64>> {
    counts(&mount.join("opendxg/adapters").join(luid))
}

/// What there was of native fences on the adapter with this LUID: interrupts, and so on.
///
/// # Errors
///
/// The file cannot be read, or there is no such adapter.
pub fn native_fences(mount: &Path, luid: &str) -> io::Result<BTreeMap<String, u64>> {
    counts(&mount.join(NATIVE_FENCES).join(luid))
}

/// The engines of the adapter with this LUID.
///
/// # Errors
///
/// The file cannot be read, or there is no such adapter.
pub fn engines(mount: &Path, luid: &str) -> io::Result<Vec<Engine>> {
    let text = fs::read_to_string(mount.join(ENGINES).join(luid))?;
    Ok(text.lines().filter_map(engines::engine).collect())
}

/// The engines and queues of all adapters. An adapter that goes meanwhile is left out.
///
/// # Errors
///
/// The directory of the engines cannot be read: there is no debugfs, or this user may not look into
/// it.
pub fn reading(mount: &Path) -> io::Result<Reading> {
    let mut reading = Reading::default();
    for entry in fs::read_dir(mount.join(ENGINES))?.flatten() {
        let Ok(luid) = entry.file_name().into_string() else {
            continue;
        };
        let Ok(engines) = fs::read_to_string(mount.join(ENGINES).join(&luid)) else {
            continue;
        };
        if let Some(recovery) = engines.lines().find_map(engines::recovery) {
            reading.recovery.insert(luid.clone(), recovery);
        }
        let engines: Vec<Engine> = engines.lines().filter_map(engines::engine).collect();
        let queues = fs::read_to_string(mount.join(QUEUES).join(&luid)).unwrap_or_default();
        reading.hidden_queues += queues.lines().filter_map(engines::hidden).sum::<u64>();
        let queues: Vec<Queue> = queues.lines().filter_map(engines::queue).collect();
        reading.queues.insert(luid.clone(), queues);
        reading.engines.insert(luid, engines);
    }
    Ok(reading)
}

/// What went wrong, of all adapters or of one, by LUID. An adapter that goes meanwhile is left out.
///
/// # Errors
///
/// The directory of the reports cannot be read, as above.
pub fn reports(mount: &Path, only: Option<Luid>) -> io::Result<BTreeMap<String, Vec<Report>>> {
    let mut all = BTreeMap::new();
    let only = only.map(|luid| luid.to_string());
    for entry in fs::read_dir(mount.join(REPORTS))?.flatten() {
        let Ok(luid) = entry.file_name().into_string() else {
            continue;
        };
        if only.as_ref().is_some_and(|only| *only != luid) {
            continue;
        }
        if let Ok(text) = fs::read_to_string(entry.path()) {
            all.insert(luid, reports::reports(&text));
        }
    }
    Ok(all)
}

/// Has the module read the logs of all queues, which it does for whoever looks at the counters of
/// native fences while it is traced. Where that is not possible, it reads them when it has to.
pub fn read_logs(mount: &Path) {
    for entry in fs::read_dir(mount.join(NATIVE_FENCES))
        .into_iter()
        .flatten()
        .flatten()
    {
        let _counters = fs::read(entry.path());
    }
}

/// The directory of the counters of native fences, one file for each adapter.
const NATIVE_FENCES: &str = "opendxg/native-fences";
/// The directory of the engines, one file for each adapter.
const ENGINES: &str = "opendxg/engines";
/// The directory of the queues.
const QUEUES: &str = "opendxg/queues";
/// The directory of the reports.
const REPORTS: &str = "opendxg/reports";

fn counts(file: &Path) -> io::Result<BTreeMap<String, u64>> {
    let text = fs::read_to_string(file)?;
    Ok(text.lines().filter_map(total).collect())
}

fn total(line: &str) -> Option<(String, u64)> {
    let (name, count) = line.split_once(':')?;
    Some((name.into(), count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(total("objects:\t17"), Some(("objects".into(), 17)));
        for bad in ["objects", "objects:\tmany", "objects:\t-1", ""] {
            assert_eq!(total(bad), None, "{bad}");
        }
    }
}
