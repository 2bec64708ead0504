// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two versions of opendxg that were measured in turns.

use std::error::Error;
use std::fmt::Write;

use serde::Deserialize;

use super::compare::label;
use super::ratio::ratio;
use crate::result::{Group, Series};

/// What is read of a run. Another commit may know more or less.
#[derive(Deserialize)]
struct Run {
    groups: Vec<Group>,
}

/// All runs of one version.
#[derive(Default)]
struct Version {
    groups: Vec<Group>,
}

impl Version {
    /// Adds a run: the blocks of a participant go behind those that it has.
    fn add(&mut self, run: Run) {
        for group in run.groups {
            match self.groups.iter_mut().find(|own| own.name == group.name) {
                None => self.groups.push(group),
                Some(own) => group.series.into_iter().for_each(|more| add_to(own, more)),
            }
        }
    }

    fn find(&self, group: &str, series: &Series) -> Option<&Series> {
        let group = self.groups.iter().find(|own| own.name == group)?;
        group.find(&series.name, series.at)
    }
}

fn add_to(group: &mut Group, more: Series) {
    let is_same = |own: &&mut Series| own.name == more.name && own.at == more.at;
    match group.series.iter_mut().find(is_same) {
        None => group.series.push(more),
        Some(own) => own.blocks.extend(more.blocks),
    }
}

/// The median of the blocks.
fn median(series: &Series) -> f64 {
    let mut sorted = series.blocks.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The table of what both have measured: lines that begin with `this` or `other`.
pub fn table(text: &str) -> Result<String, Box<dyn Error>> {
    let (mut this, mut other) = (Version::default(), Version::default());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (side, run) = line.split_once(' ').ok_or("a line without a run")?;
        let version = match side {
            "this" => &mut this,
            "other" => &mut other,
            _ => return Err(format!("no side {side}").into()),
        };
        version.add(serde_json::from_str(run).map_err(|error| format!("{side}: {error}"))?);
    }
    let mut out = String::new();
    writeln!(
        out,
        "{:<44} {:>10} {:>10}  this / other",
        "", "this", "other"
    )?;
    for group in &this.groups {
        writeln!(out, "{}: {}", group.name, group.title)?;
        for series in &group.series {
            let Some(before) = other.find(&group.name, series) else {
                continue;
            };
            let ratio = ratio(series, before);
            writeln!(
                out,
                "  {:<42} {:>10.0} {:>10.0}  {:.2} [{:.2} .. {:.2}]",
                label((&series.name, series.at)),
                median(series),
                median(before),
                ratio.value,
                ratio.low,
                ratio.high
            )?;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(side: &str, name: &str, blocks: &str) -> String {
        format!(
            r#"{side} {{"later":1,"groups":[{{"name":"g","title":"t","series":[{{"name":"{name}",
            "at":0,"operations":1,"ns":{{"min":1,"median":1,"p99":1,"p999":1,"max":1,"mean":1}},
            "blocks":[{blocks}]}}]}}]}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn rounds_of_one_side_are_taken_together() {
        let lines = [
            run("other", "one", "10"),
            run("this", "one", "20"),
            run("other", "one", "10, 10"),
            run("this", "one", "20, 20"),
            run("this", "new", "7"),
        ];
        let table = table(&lines.join("\n")).unwrap();
        assert!(
            table.contains("20         10  2.00 [2.00 .. 2.00]"),
            "{table}"
        );
        assert!(!table.contains("new"), "nobody to compare it with");
    }

    #[test]
    fn what_is_no_run_is_an_error() {
        for text in ["this", "who {}", "this {}", "this {\"groups\":1}"] {
            assert!(table(text).is_err(), "{text}");
        }
    }
}
