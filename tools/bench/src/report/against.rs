// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two versions of opendxg that were measured in turns.

use std::error::Error;
use std::fmt::Write;

use serde::Deserialize;

use super::compare::label;
use super::ratio::{median, of_blocks};
use crate::result::{Group, Series};

/// What is read of a run. Another commit may know more or less.
#[derive(Deserialize)]
struct Run {
    groups: Vec<Group>,
}

impl Run {
    fn find(&self, group: &str, series: &Series) -> Option<&Series> {
        let group = self.groups.iter().find(|own| own.name == group)?;
        group.find(&series.name, series.at)
    }
}

/// The blocks of a participant in both runs of each round, as many of one as of the other: only
/// blocks of one round were measured close to each other.
fn blocks(rounds: &[(Run, Run)], group: &str, series: &Series) -> (Vec<f64>, Vec<f64>) {
    let found = rounds.iter().filter_map(|(this, other)| {
        let pair = this.find(group, series).zip(other.find(group, series))?;
        Some(pair.0.blocks.iter().zip(&pair.1.blocks))
    });
    found.flatten().map(|(this, other)| (*this, *other)).unzip()
}

/// The table of what both have measured: lines that begin with `this` or `other`, one of each for
/// a round.
pub fn table(text: &str) -> Result<String, Box<dyn Error>> {
    let (mut this, mut other) = (Vec::<Run>::new(), Vec::<Run>::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (side, run) = line.split_once(' ').ok_or("a line without a run")?;
        let runs = match side {
            "this" => &mut this,
            "other" => &mut other,
            _ => return Err(format!("no side {side}").into()),
        };
        runs.push(serde_json::from_str(run).map_err(|error| format!("{side}: {error}"))?);
    }
    let rounds: Vec<_> = this.into_iter().zip(other).collect();
    let (first, _) = rounds.first().ok_or("no round was measured")?;
    let mut out = String::new();
    writeln!(
        out,
        "{:<44} {:>10} {:>10}  this / other",
        "", "this", "other"
    )?;
    for group in &first.groups {
        writeln!(out, "{}: {}", group.name, group.title)?;
        for series in &group.series {
            let (this, other) = blocks(&rounds, &group.name, series);
            if this.is_empty() {
                continue;
            }
            let ratio = of_blocks(&this, &other);
            writeln!(
                out,
                "  {:<42} {:>10.0} {:>10.0}  {:.2} [{:.2} .. {:.2}]",
                label((&series.name, series.at)),
                median(this.into_iter()),
                median(other.into_iter()),
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
    fn blocks_are_compared_with_those_of_their_round() {
        let lines = [
            run("other", "one", "10, 10, 10"),
            run("this", "one", "20"),
            run("other", "one", "100"),
            run("this", "one", "200, 200"),
            run("this", "new", "7"),
        ];
        let table = table(&lines.join("\n")).unwrap();
        assert!(
            table.contains("110         55  2.00 [2.00 .. 2.00]"),
            "{table}"
        );
        assert!(!table.contains("new"), "nobody to compare it with");
    }

    #[test]
    fn what_is_no_run_is_an_error() {
        for text in ["", "this", "who {}", "this {}", "this {\"groups\":1}"] {
            assert!(table(text).is_err(), "{text}");
        }
    }
}
