// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as pictures.

use std::fmt::Write;

use super::compare::{Comparison, Verdict};
use super::{cost, three_digits, Publication};
use crate::result::Group;

const GREEN: &str = "#2a7f3f";
const RED: &str = "#b3261e";
const GREY: &str = "#5f6b7a";
const BLUE: &str = "#1f5fa8";
const BROWN: &str = "#8a5a1c";
const VIOLET: &str = "#6f3f9f";

/// Text and shapes of a picture.
struct Svg {
    body: String,
    width: f64,
    height: f64,
}

impl Svg {
    fn new(width: f64, height: f64) -> Self {
        Self {
            body: String::new(),
            width,
            height,
        }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("writing to a string");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, color: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{color}">{text}</text>"#
        ));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{color}" stroke-width="{width}"/>"#
        ));
    }

    fn dot(&mut self, (x, y): (f64, f64), color: &str) {
        self.add(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{color}"/>"#
        ));
    }

    fn finish(self) -> String {
        let Self {
            body,
            width,
            height,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }
}

/// A logarithmic axis over whole powers of ten.
struct Log {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Log {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .map(f64::log10)
            .fold((0.0f64, 0.0f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        Self {
            low: low.floor(),
            high: high.ceil().max(low.floor() + 1.0),
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value.max(1e-12).log10() - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

/// All ratios with their intervals and targets.
pub fn ratios(publication: &Publication) -> String {
    let measured = |row: &&Comparison| row.ratio.is_some();
    let rows: Vec<_> = publication.comparisons.iter().filter(measured).collect();
    let (left, right, top, step) = (400.0, 1000.0, 70.0, 20.0);
    let bottom = top + rows.len() as f64 * step;
    let mut svg = Svg::new(1080.0, bottom + 40.0);
    let ends = rows.iter().filter_map(|row| row.ratio);
    let ends = ends.flat_map(|ratio| [ratio.low, ratio.high]);
    let axis = Log::over(ends, left, right);

    let title = format!(
        "time of the left divided by time of the right: {}",
        subtitle(publication)
    );
    svg.text(20.0, 22.0, "start", "black", &title);
    let legend = "left of 1: faster. Dot: ratio, bar: 95 % interval, tick: target; green: target reached, red: missed";
    svg.text(20.0, 40.0, "start", GREY, legend);
    for tick in axis.ticks() {
        let x = axis.place(tick);
        let width = if tick == 1.0 { 1.5 } else { 0.4 };
        svg.line((x, top - 8.0), (x, bottom), GREY, width);
        svg.text(x, bottom + 16.0, "middle", "black", &format!("{tick}"));
    }
    for (row, y) in rows
        .iter()
        .zip((0..).map(|index| top + f64::from(index) * step + 8.0))
    {
        let Some(ratio) = row.ratio else { continue };
        let color = match row.verdict {
            Verdict::Pass | Verdict::NearlyPass => GREEN,
            Verdict::Miss | Verdict::NearlyMiss => RED,
            Verdict::Shown | Verdict::NotMeasured => BLUE,
        };
        let name = format!("{}: {} / {}", row.group, row.ours, row.theirs);
        svg.text(left - 10.0, y + 4.0, "end", "black", &name);
        svg.line(
            (axis.place(ratio.low), y),
            (axis.place(ratio.high), y),
            color,
            3.0,
        );
        svg.dot((axis.place(ratio.value), y), color);
        if let Some(target) = row.target {
            let x = axis.place(target);
            svg.line((x, y - 7.0), (x, y + 7.0), "black", 2.0);
        }
        svg.text(
            right + 10.0,
            y + 4.0,
            "start",
            color,
            &three_digits(ratio.value),
        );
    }
    svg.finish()
}

/// Cost of each operation of a group over its parameter, which `axis` explains; `None` if it was not
/// measured.
pub fn curves(publication: &Publication, group: &str, axis: &str) -> Option<String> {
    let group = publication.measured.group(group)?;
    let (left, right, top, bottom) = (90.0, 640.0, 60.0, 400.0);
    let mut svg = Svg::new(860.0, 450.0);
    let across = Log::over(group.series.iter().map(|one| one.at as f64), left, right);
    let medians = group.series.iter().map(|one| one.ns.median);
    let least = medians.clone().fold(f64::INFINITY, f64::min);
    let mut up = Log::over(medians, bottom, top);
    up.low = least.log10().floor();

    svg.text(20.0, 22.0, "start", "black", &group.title);
    svg.text(20.0, 40.0, "start", GREY, &subtitle(publication));
    for tick in across.ticks() {
        let x = across.place(tick);
        svg.line((x, top), (x, bottom), GREY, 0.4);
        svg.text(x, bottom + 16.0, "middle", "black", &format!("{tick}"));
    }
    svg.text(left, bottom + 34.0, "start", GREY, axis);
    for tick in up.ticks() {
        let y = up.place(tick);
        svg.line((left, y), (right, y), GREY, 0.4);
        svg.text(
            left - 8.0,
            y + 4.0,
            "end",
            "black",
            &cost(publication.measured.unit, tick),
        );
    }
    let colors = [GREY, BLUE, GREEN, RED, BROWN, VIOLET].into_iter().cycle();
    // Names stand at the ends of their curves, but never on top of each other.
    let mut lines: Vec<_> = names(group).into_iter().zip(colors).collect();
    let last = |name: &str| {
        let points = group.series.iter().filter(|one| one.name == name);
        points
            .max_by_key(|one| one.at)
            .map_or(0.0, |one| up.place(one.ns.median))
    };
    lines.sort_by(|a, b| last(a.0).total_cmp(&last(b.0)));
    let mut free = f64::NEG_INFINITY;
    for (name, color) in lines {
        let points = group.series.iter().filter(|one| one.name == name);
        let points = points.map(|one| (across.place(one.at as f64), up.place(one.ns.median)));
        let points: Vec<_> = points.collect();
        for pair in points.windows(2) {
            svg.line(pair[0], pair[1], color, 2.0);
        }
        for point in &points {
            svg.dot(*point, color);
        }
        if let Some(last) = points.last() {
            let y = (last.1 + 4.0).max(free);
            free = y + 14.0;
            svg.text(last.0 + 10.0, y, "start", color, name);
        }
    }
    Some(svg.finish())
}

fn names(group: &Group) -> Vec<&str> {
    let mut names: Vec<&str> = group.series.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn subtitle(publication: &Publication) -> String {
    let machine = &publication.measured.machine;
    format!(
        "Linux {}, {} processors, {}",
        machine.kernel, machine.cpus, machine.accelerator
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_covers_all_values_and_one() {
        let axis = Log::over([0.02, 0.5].into_iter(), 0.0, 200.0);
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [0.01, 0.1, 1.0]);
        assert!((axis.place(0.1) - 100.0).abs() < 1e-9);
        assert_eq!(axis.place(0.0), 0.0);
    }
}
