// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as text.

use std::fmt::{self, Write};

use super::compare::{label, Comparison, Verdict};
use super::{cost, three_digits, Publication};
use crate::result::{Count, Group, Memory, Unit};
use crate::subjects::gpu::BANDWIDTH;
use crate::subjects::residency;

/// The whole result.
pub fn table(publication: &Publication) -> String {
    let mut text = String::new();
    write(&mut text, publication).expect("writing to a string");
    text
}

fn write(out: &mut String, publication: &Publication) -> fmt::Result {
    let measured = &publication.measured;
    let machine = &measured.machine;
    writeln!(
        out,
        "kernel {} ({}), {} processors, accelerator {}, clock {}, seed {}",
        machine.kernel,
        machine.version,
        machine.cpus,
        machine.accelerator,
        machine.clock,
        measured.seed
    )?;
    for (what, value) in &publication.conditions {
        writeln!(out, "{what}: {value}")?;
    }
    match measured.unit {
        Unit::Instructions => writeln!(
            out,
            "Numbers are executed instructions, of user space and the kernel together."
        )?,
        Unit::Nanoseconds if machine.accelerator == "TCG" => writeln!(
            out,
            "Every instruction is emulated (TCG): look at the ratios and the counts, not at the times."
        )?,
        Unit::Nanoseconds => {}
    }
    for one in &measured.competitors {
        writeln!(out, "measured against {}: {}", one.version, one.note)?;
    }
    for missing in &measured.missing {
        writeln!(out, "not available: {missing}")?;
    }
    for group in &measured.groups {
        write_group(out, group, measured.unit)?;
        let mut rows = publication.comparisons.iter();
        let rows = rows.by_ref().filter(|row| row.group == group.name);
        write_ratios(out, rows)?;
    }
    write_memory(out, &measured.memory)?;
    write_counts(out, &measured.counts)?;
    write_summary(out, publication)
}

fn write_group(out: &mut String, group: &Group, unit: Unit) -> fmt::Result {
    // An operation of such a group moves as many bytes as its parameter says.
    let moving = [BANDWIDTH, residency::BY_NODE, residency::BY_PROCESSOR];
    let moves = moving.contains(&&*group.name) && unit == Unit::Nanoseconds;
    writeln!(
        out,
        "\n{:<44}{:>11}{:>11}{:>11}{:>12}{}",
        group.title,
        "median",
        "p99",
        "p99.9",
        "operations",
        if moves { "        MB/s" } else { "" }
    )?;
    let mut series: Vec<_> = group.series.iter().collect();
    series.sort_by(|a, b| a.ns.median.total_cmp(&b.ns.median));
    for series in series {
        let rate = match moves {
            // Bytes for each nanosecond are thousands of megabytes for each second.
            true => format!("{:>12.0}", series.at as f64 / series.ns.median * 1e3),
            false => String::new(),
        };
        writeln!(
            out,
            "  {:<42}{:>11}{:>11}{:>11}{:>12}{rate}",
            label((&series.name, series.at)),
            cost(unit, series.ns.median),
            cost(unit, series.ns.p99),
            cost(unit, series.ns.p999),
            series.operations
        )?;
    }
    Ok(())
}

fn write_ratios<'a>(out: &mut String, rows: impl Iterator<Item = &'a Comparison>) -> fmt::Result {
    for row in rows {
        let name = format!("{} / {}", row.ours, row.theirs);
        let ratio = row.ratio.map_or("-".into(), |ratio| {
            format!(
                "{} [{} .. {}]",
                three_digits(ratio.value),
                three_digits(ratio.low),
                three_digits(ratio.high)
            )
        });
        let target = row
            .target
            .map_or(String::new(), |target| format!("<= {target}"));
        let line = format!(
            "    {name:<66} {ratio:<26}{target:<9}{:<8}{}",
            row.verdict.text(),
            row.note
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn write_memory(out: &mut String, memory: &[Memory]) -> fmt::Result {
    if memory.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:<44}{:>11}{:>20}{:>14}",
        "kernel memory of an object, bytes", "takes", "charged to cgroup", "objects"
    )?;
    for row in memory {
        let charged = row
            .charged
            .map_or("-".into(), |bytes| format!("{bytes:.0}"));
        writeln!(
            out,
            "  {:<42}{:>11.0}{charged:>20}{:>14}",
            row.what, row.bytes, row.objects
        )?;
    }
    Ok(())
}

fn write_counts(out: &mut String, counts: &[Count]) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:<60}{:>12}{:>9}{:>12}",
        "counts", "found", "must be", "of"
    )?;
    for count in counts {
        let must_be = count.expected.map_or("-".into(), |count| count.to_string());
        let verdict = match (count.expected, count.is_right()) {
            (None, _) => "",
            (Some(_), true) => "  pass",
            (Some(_), false) => "  WRONG",
        };
        writeln!(
            out,
            "  {:<58}{:>12}{must_be:>9}{:>12}{verdict}",
            count.what, count.found, count.of
        )?;
    }
    Ok(())
}

fn write_summary(out: &mut String, publication: &Publication) -> fmt::Result {
    let number = |verdicts: &[Verdict]| {
        let rows = publication.comparisons.iter();
        rows.filter(|row| row.target.is_some() && verdicts.contains(&row.verdict))
            .count()
    };
    let counts = publication.measured.counts.iter();
    let counts: Vec<_> = counts.filter(|count| count.expected.is_some()).collect();
    writeln!(
        out,
        "\n{} targets reached, {} missed, {} not measured; {} of {} counts right; {:.0} s",
        number(&[Verdict::Pass, Verdict::NearlyPass]),
        number(&[Verdict::Miss, Verdict::NearlyMiss]),
        number(&[Verdict::NotMeasured]),
        counts.iter().filter(|count| count.is_right()).count(),
        counts.len(),
        publication.measured.seconds
    )
}
