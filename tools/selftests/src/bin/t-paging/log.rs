// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operation log of an adapter, read and taken apart.

use std::collections::BTreeMap;

use opendxg::Adapter;
use selftests::gpu::Gpu;
use selftests::paging_log::PagingLog;
use selftests::task::me;
use selftests::{ensure, ensure_eq, TestResult};

/// The operation log of an adapter. It is empty and on, until this is dropped.
pub(crate) struct Log(PagingLog);

impl Log {
    pub(crate) fn new(gpu: &Gpu) -> TestResult<Self> {
        Self::all(gpu.device().adapter())
    }

    /// That of an adapter, which is not that of a GPU.
    pub(crate) fn all(adapter: &Adapter) -> TestResult<Self> {
        let log = Self::unchanged(adapter)?;
        log.control("clear")?;
        log.control("start")?;
        Ok(log)
    }

    /// The same, with what is in it.
    pub(crate) fn unchanged(adapter: &Adapter) -> TestResult<Self> {
        Ok(Self(PagingLog::of(adapter)?))
    }

    pub(crate) fn control(&self, word: &str) -> TestResult {
        self.0.control(word)
    }

    /// All lines, and how many records are lost.
    pub(crate) fn text(&self) -> TestResult<(u64, String)> {
        let text = self.0.text()?;
        let (head, rest) = text.split_once('\n').ok_or("no head")?;
        let (_, lost) = head.split_once(" lost=").ok_or("no count")?;
        Ok((parsed(lost)?, rest.into()))
    }

    /// The records that `wanted` wants. None must be lost.
    pub(crate) fn records(&self, wanted: impl Fn(&Record) -> bool) -> TestResult<Vec<Record>> {
        let (lost, text) = self.text()?;
        ensure_eq!(lost, 0);
        let all: TestResult<Vec<_>> = text.lines().map(Record::parse).collect();
        let mut all = all?;
        let numbers: Vec<_> = all.iter().map(|record| record.number).collect();
        ensure!(
            numbers.is_sorted_by(|one, next| one + 1 == *next),
            "{numbers:?}"
        );
        all.retain(wanted);
        Ok(all)
    }

    /// Those of this thread.
    pub(crate) fn own(&self) -> TestResult<Vec<Record>> {
        let own = me() as u64;
        self.records(|record| record.get("thread") == own)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        for word in ["release", "stop", "clear"] {
            let _ = self.control(word);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u64,
    /// Type and operation.
    pub(crate) what: String,
    fields: BTreeMap<String, u64>,
}

impl Record {
    pub(crate) fn parse(line: &str) -> TestResult<Self> {
        let mut words = line.split(' ');
        let number = parsed(words.next().unwrap_or_default())?;
        let (mut what, mut fields) = (String::new(), BTreeMap::new());
        for word in words {
            let (name, value) = word.split_once('=').ok_or("no value")?;
            match (name, value.strip_prefix("0x")) {
                ("type", _) => what = value.into(),
                ("op", _) if value == "-" => {}
                ("op", _) => what = format!("{what} {value}"),
                (_, Some(hex)) => {
                    fields.insert(
                        name.into(),
                        u64::from_str_radix(hex, 16).map_err(|_| "no number")?,
                    );
                }
                (_, None) => {
                    fields.insert(name.into(), parsed(value)?);
                }
            }
        }
        Ok(Self {
            number,
            what,
            fields,
        })
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.fields.get(name).copied().unwrap_or(u64::MAX)
    }
}

pub(crate) fn parsed(text: &str) -> TestResult<u64> {
    Ok(text.parse().map_err(|_| "no number")?)
}

/// What the records are about.
pub(crate) fn names(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.what.as_str()).collect()
}
