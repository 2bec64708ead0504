// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as pictures.

use std::error::Error;
use std::ops::Range;

use plotters::coord::combinators::WithKeyPoints;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::compare::{Comparison, Verdict};
use super::{cost, three_digits, Publication};
use crate::result::{Group, Series, Unit};
use crate::subjects::{addresses, working_set};

const GREEN: RGBColor = RGBColor(0x2a, 0x7f, 0x3f);
const RED: RGBColor = RGBColor(0xb3, 0x26, 0x1e);
const GREY: RGBColor = RGBColor(0x5f, 0x6b, 0x7a);
const BLUE: RGBColor = RGBColor(0x1f, 0x5f, 0xa8);
const BROWN: RGBColor = RGBColor(0x8a, 0x5a, 0x1c);
const VIOLET: RGBColor = RGBColor(0x6f, 0x3f, 0x9f);

/// Height of the text. The crate divides it by 1.24 for the font size of SVG, which is then 12.
const TEXT: f64 = 15.0;

/// Space around everything.
const MARGIN: i32 = 16;

/// Height of the two lines above a plot.
const CAPTION: i32 = 52;

type Plot<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An SVG file, or what kept the crate from writing it.
pub type Drawn = Result<String, Box<dyn Error>>;

/// All ratios with their intervals and targets.
pub fn ratios(publication: &Publication) -> Drawn {
    let measured = |row: &Comparison| Some((row.clone(), row.ratio?));
    let rows: Vec<_> = publication
        .comparisons
        .iter()
        .filter_map(measured)
        .collect();
    let names: Vec<_> = rows
        .iter()
        .map(|(row, _)| format!("{}: {} / {}", row.group, row.ours, row.theirs))
        .collect();
    let axis = Powers::around(
        10.0,
        rows.iter()
            .flat_map(|(_, ratio)| [1.0, ratio.low, ratio.high]),
    );
    let left = width(&names) + 12;
    let right = width(["0.0000"]) + 16;
    let height = CAPTION + 20 * rows.len() as i32 + 30;

    let what = match publication.measured.unit {
        Unit::Nanoseconds => "time",
        Unit::Instructions => "instructions",
    };
    let title = format!(
        "{what} of the left divided by {what} of the right: {}",
        subtitle(publication)
    );
    let legend = "left of 1: opendxg is cheaper; dot: ratio, bar: 95 % interval, tick: target; \
                  green: target reached, red: missed, blue: no target";
    let across = (left + 600 + right).max(width([&title, legend]));
    draw(across, height, |area| {
        let area = caption(&area, &title, legend)?;
        let mut chart = ChartBuilder::on(&area)
            .set_label_area_size(LabelAreaPosition::Left, left)
            .set_label_area_size(LabelAreaPosition::Bottom, 30)
            .margin_right(right)
            .build_cartesian_2d(axis.scale(), (rows.len() as f64 - 0.5)..-0.5)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.3))
            .axis_style(GREY)
            .label_style(text(&BLACK))
            .x_label_formatter(&|tick| format!("{tick}"))
            .draw()?;
        let full = -0.5..rows.len() as f64 - 0.5;
        chart.draw_series([PathElement::new([(1.0, full.start), (1.0, full.end)], GREY)])?;
        for (((row, ratio), name), y) in rows.iter().zip(&names).zip((0..).map(f64::from)) {
            let color = match row.verdict {
                Verdict::Pass | Verdict::NearlyPass => GREEN,
                Verdict::Miss | Verdict::NearlyMiss => RED,
                Verdict::Shown | Verdict::NotMeasured => BLUE,
            };
            let bar = [(axis.inside(ratio.low), y), (axis.inside(ratio.high), y)];
            chart.draw_series([PathElement::new(bar, color.stroke_width(3))])?;
            chart.draw_series([Circle::new(
                (axis.inside(ratio.value), y),
                4,
                color.filled(),
            )])?;
            if let Some(target) = row.target {
                let tick = [
                    (axis.inside(target), y - 0.35),
                    (axis.inside(target), y + 0.35),
                ];
                chart.draw_series([PathElement::new(tick, BLACK.stroke_width(2))])?;
            }
            let beside = |at, gap, words: String, color, side| {
                EmptyElement::at((at, y)) + Text::new(words, (gap, 0), text(color).pos(side))
            };
            let end = Pos::new(HPos::Right, VPos::Center);
            let start = Pos::new(HPos::Left, VPos::Center);
            let value = three_digits(ratio.value);
            chart.draw_series([
                beside(axis.low(), -10, name.clone(), &BLACK, end),
                beside(axis.high(), 10, value, &color, start),
            ])?;
        }
        Ok(())
    })
}

/// A picture of what a group has measured, over its parameter.
#[derive(Clone, Copy, Debug)]
pub struct Curves {
    /// The group.
    pub group: &'static str,
    /// What the parameter is.
    pub axis: &'static str,
    /// What each operation moves, if the picture shows how fast that is; else it shows costs. The
    /// parameter of such a group is in percent.
    pub moves: Option<u64>,
}

impl Curves {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::of_costs("waiters", "W, others that wait"),
        Self::of_costs("population", "N, unrelated objects"),
        Self::of_costs(addresses::GROUP, "N, mappings of the process"),
        Self {
            group: working_set::GROUP,
            axis: "working set, in units of local memory",
            moves: Some(working_set::PIECE),
        },
    ];

    const fn of_costs(group: &'static str, axis: &'static str) -> Self {
        Self {
            group,
            axis,
            moves: None,
        }
    }

    /// The picture; `None` if nothing was measured.
    pub fn draw(&self, publication: &Publication) -> Option<Drawn> {
        Some(draw_curves(
            publication,
            publication.measured.group(self.group)?,
            self,
        ))
    }

    fn base(&self) -> f64 {
        match self.moves {
            Some(_) => 2.0,
            None => 10.0,
        }
    }

    fn x(&self, series: &Series) -> f64 {
        match self.moves {
            Some(_) => series.at as f64 / 100.0,
            None => series.at as f64,
        }
    }

    fn y(&self, series: &Series) -> f64 {
        match self.moves {
            // Bytes for each nanosecond are thousands of megabytes for each second.
            Some(bytes) => bytes as f64 / series.ns.median * 1e3,
            None => series.ns.median,
        }
    }

    fn label(&self, unit: Unit, value: f64) -> String {
        match (self.moves, unit) {
            (None, _) => cost(unit, value),
            (Some(_), Unit::Nanoseconds) => format!("{value} MB/s"),
            (Some(_), Unit::Instructions) => format!("{value} bytes in 1000"),
        }
    }
}

fn draw_curves(publication: &Publication, group: &Group, curves: &Curves) -> Drawn {
    let across = Powers::around(curves.base(), group.series.iter().map(|one| curves.x(one)));
    let up = Powers::around(curves.base(), group.series.iter().map(|one| curves.y(one)));
    let names = names(group);
    let unit = publication.measured.unit;
    let left = width(up.ticks().map(|tick| curves.label(unit, tick))) + 30;
    let right = width(&names) + 16;
    let subtitle = subtitle(publication);
    let all = (left + 560 + right).max(width([&group.title, &subtitle]));
    let height = 360.max(14 * names.len() as i32 + 20);

    draw(all, CAPTION + height + 50, |area| {
        let area = caption(&area, &group.title, &subtitle)?;
        let mut chart = ChartBuilder::on(&area)
            .set_label_area_size(LabelAreaPosition::Left, left)
            .set_label_area_size(LabelAreaPosition::Bottom, 50)
            .margin_right(right)
            .build_cartesian_2d(across.scale(), up.scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.3))
            .axis_style(GREY)
            .label_style(text(&BLACK))
            .axis_desc_style(text(&GREY))
            .x_desc(curves.axis)
            .x_label_formatter(&|tick| format!("{tick}"))
            .y_label_formatter(&|tick| curves.label(unit, *tick))
            .draw()?;
        let colors = [GREY, BLUE, GREEN, RED, BROWN, VIOLET];
        let mut ends = Vec::new();
        for (name, color) in names.iter().zip(colors.into_iter().cycle()) {
            let points = group.series.iter().filter(|one| one.name == *name);
            let mut points: Vec<_> = points
                .map(|one| (across.inside(curves.x(one)), up.inside(curves.y(one))))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let line = LineSeries::new(points.iter().copied(), color.filled().stroke_width(2));
            chart.draw_series(line.point_size(4))?;
            if let Some(last) = points.last() {
                ends.push((chart.backend_coord(last), name, color));
            }
        }
        // A name stands at the end of its curve, but never on top of another, and not below the
        // axis.
        ends.sort_by_key(|((_, y), ..)| *y);
        let mut free = i32::MIN;
        for ((_, y), ..) in &mut ends {
            *y = (*y).max(free);
            free = *y + 14;
        }
        let mut free = chart.plotting_area().get_pixel_range().1.end;
        for ((_, y), ..) in ends.iter_mut().rev() {
            *y = (*y).min(free);
            free = *y - 14;
        }
        let corner = area.get_base_pixel();
        for ((x, y), name, color) in ends {
            let side = Pos::new(HPos::Left, VPos::Center);
            let style = text(&color).pos(side);
            area.draw_text(name, &style, (x + 10 - corner.0, y - corner.1))?;
        }
        Ok(())
    })
}

/// Makes a picture whose inner part is as large as told.
fn draw(
    width: i32,
    height: i32,
    inside: impl FnOnce(Plot<'_>) -> Result<(), Box<dyn Error>>,
) -> Drawn {
    let mut svg = String::new();
    let size = ((width + 2 * MARGIN) as u32, (height + 2 * MARGIN) as u32);
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        inside(root.margin(MARGIN, MARGIN, MARGIN, MARGIN))?;
        root.present()?;
    }
    Ok(svg)
}

/// Writes two lines, and gives the part below them.
fn caption<'a>(area: &Plot<'a>, title: &str, below: &str) -> Result<Plot<'a>, Box<dyn Error>> {
    area.draw_text(title, &text(&BLACK), (0, 0))?;
    area.draw_text(below, &text(&GREY), (0, 20))?;
    Ok(area.split_vertically(CAPTION).1)
}

fn text(color: &RGBColor) -> TextStyle<'_> {
    ("sans-serif", TEXT).into_text_style(&(1, 1)).color(color)
}

/// Room for the longest of some texts. SVG leaves the font to the viewer, so this is what wide
/// fonts need.
fn width(texts: impl IntoIterator<Item = impl AsRef<str>>) -> i32 {
    let lengths = texts.into_iter().map(|text| text.as_ref().chars().count());
    (lengths.max().unwrap_or(0) as f64 * TEXT / 1.24 * 0.6).ceil() as i32
}

/// A logarithmic axis over whole powers of a base.
struct Powers {
    base: f64,
    range: Range<i32>,
}

impl Powers {
    /// Covers all positive values.
    fn around(base: f64, values: impl Iterator<Item = f64>) -> Self {
        // Those of 2 and 10 are exact for their powers.
        let log = |value: f64| match base {
            2.0 => value.log2(),
            _ => value.log10(),
        };
        let logs = values.filter(|value| *value > 0.0).map(log);
        let ends = logs.fold(None, |ends: Option<(f64, f64)>, log| {
            Some(ends.map_or((log, log), |(low, high)| (low.min(log), high.max(log))))
        });
        let (low, high) = ends.unwrap_or((0.0, 0.0));
        let low = low.floor() as i32;
        Self {
            base,
            range: low..(high.ceil() as i32).max(low + 1),
        }
    }

    fn low(&self) -> f64 {
        self.base.powi(self.range.start)
    }

    fn high(&self) -> f64 {
        self.base.powi(self.range.end)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        (self.range.start..=self.range.end).map(|power| self.base.powi(power))
    }

    /// The value, or the end of the axis that it lies beyond.
    fn inside(&self, value: f64) -> f64 {
        value.clamp(self.low(), self.high())
    }

    fn scale(&self) -> WithKeyPoints<LogCoord<f64>> {
        let range = (self.low()..self.high()).log_scale();
        range.with_key_points(self.ticks().collect())
    }
}

fn names(group: &Group) -> Vec<&str> {
    let mut names: Vec<&str> = group.series.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn subtitle(publication: &Publication) -> String {
    let machine = &publication.measured.machine;
    let processors = match machine.cpus {
        1 => "1 processor".into(),
        many => format!("{many} processors"),
    };
    let machine = format!(
        "Linux {}, {processors}, {}",
        machine.kernel, machine.accelerator
    );
    let competitors = &publication.measured.competitors;
    competitors
        .iter()
        .fold(machine, |all, one| format!("{all}, {}", one.version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::{compare, rows};
    use crate::result::{Competitor, Machine, Report, Summary};

    /// Each ratio that is reported, measured, with a spread that reaches far to both sides.
    fn everything() -> Publication {
        let rows = rows::all();
        let mut groups: Vec<Group> = Vec::new();
        for row in &rows {
            let units = row
                .unit
                .map(|unit| [(unit, row.ours.1), (unit, row.theirs.1)]);
            let all = [row.ours, row.theirs]
                .into_iter()
                .chain(units.into_iter().flatten());
            for (number, (name, at)) in all.enumerate() {
                let group = match groups.iter().position(|group| group.name == row.group) {
                    Some(known) => &mut groups[known],
                    None => {
                        groups.push(Group {
                            name: row.group.into(),
                            title: format!("what an operation of {} is", row.group),
                            series: Vec::new(),
                        });
                        groups.last_mut().expect("just pushed")
                    }
                };
                if group.find(name, at).is_some() {
                    continue;
                }
                let cost = 10f64.powi(((group.series.len() + number) % 7) as i32);
                group.series.push(Series {
                    name: name.into(),
                    at,
                    operations: 1,
                    ns: Summary {
                        median: cost,
                        ..Summary::default()
                    },
                    blocks: vec![cost, cost * 3.0, cost / 2.0],
                });
            }
        }
        let measured = Report {
            machine: Machine {
                kernel: "7.2.12+deb14-amd64".into(),
                version: String::new(),
                accelerator: "TCG that counts instructions".into(),
                cpus: 2,
                clock: String::new(),
            },
            unit: Unit::Nanoseconds,
            seed: 1,
            seconds: 1.0,
            timer_ns: 0.0,
            groups,
            counts: Vec::new(),
            memory: Vec::new(),
            missing: Vec::new(),
            competitors: vec![Competitor {
                version: "somebody-10.0 (Debian 10.0~repack-6)".into(),
                note: String::new(),
            }],
        };
        Publication {
            comparisons: compare::compare(&measured, &rows),
            conditions: BTreeMap::new(),
            measured,
        }
    }

    fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
        let (_, rest) = element.split_once(&format!(" {name}=\"")).expect(name);
        rest.split_once('"').expect("a closing quote").0
    }

    fn number(element: &str, name: &str) -> f64 {
        attribute(element, name).parse().expect("a number")
    }

    /// The texts of a picture; all of them must lie inside it, in a wide font as well.
    fn texts(svg: &str) -> Vec<String> {
        let (across, down) = (number(svg, "width"), number(svg, "height"));
        let mut texts = Vec::new();
        for element in svg.split("<text").skip(1) {
            let (_, rest) = element.split_once('>').expect("an element");
            let words = rest.split_once("</text").expect("an element").0.trim();
            let x = number(element, "x");
            let long = words.chars().count() as f64 * number(element, "font-size") * 0.6;
            let (from, to) = match attribute(element, "text-anchor") {
                "start" => (x, x + long),
                "middle" => (x - long / 2.0, x + long / 2.0),
                "end" => (x - long, x),
                anchor => panic!("{anchor}"),
            };
            assert!(
                from >= 0.0 && to <= across,
                "{words}: {from} .. {to} of {across}"
            );
            let y = number(element, "y");
            assert!(y >= 0.0 && y <= down, "{words}: {y} of {down}");
            texts.push(words.to_owned());
        }
        texts
    }

    #[test]
    fn ratios_show_every_row_and_clip_none() {
        let publication = everything();
        let texts = texts(&ratios(&publication).expect("a picture"));
        assert!(!publication.comparisons.is_empty());
        assert!(texts.iter().any(|text| text.contains("somebody-10.0")));
        for row in &publication.comparisons {
            let name = format!("{}: {} / {}", row.group, row.ours, row.theirs);
            assert!(texts.contains(&name), "{name}");
        }
    }

    #[test]
    fn curves_name_every_participant_and_clip_none() {
        let publication = everything();
        for curves in Curves::ALL {
            let drawn = curves.draw(&publication).expect("measured");
            let texts = texts(&drawn.expect("a picture"));
            for name in names(publication.measured.group(curves.group).expect("measured")) {
                assert!(texts.iter().any(|text| text == name), "{name}");
            }
        }
        assert!(Curves::of_costs("no such group", "")
            .draw(&publication)
            .is_none());
    }

    #[test]
    fn a_picture_of_throughput_shows_bytes_by_time() {
        let [.., curves] = Curves::ALL;
        let series = Series {
            name: String::new(),
            at: 50,
            operations: 1,
            ns: Summary {
                median: 262_144.0,
                ..Summary::default()
            },
            blocks: Vec::new(),
        };
        assert_eq!((curves.x(&series), curves.y(&series)), (0.5, 1000.0));
        assert_eq!(curves.label(Unit::Nanoseconds, 64.0), "64 MB/s");
    }

    #[test]
    fn an_axis_covers_all_values_with_whole_powers() {
        let axis = Powers::around(10.0, [0.02, 0.0, 0.5, 1.0].into_iter());
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [0.01, 0.1, 1.0]);
        assert_eq!(axis.inside(0.0), 0.01);
        assert_eq!(axis.inside(7.0), 1.0);
        let point = Powers::around(10.0, [10.0].into_iter());
        assert_eq!(point.ticks().collect::<Vec<_>>(), [10.0, 100.0]);
        let halves = Powers::around(2.0, [0.5, 4.0].into_iter());
        assert_eq!(halves.ticks().collect::<Vec<_>>(), [0.5, 1.0, 2.0, 4.0]);
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        let mut publication = everything();
        publication.comparisons.clear();
        assert!(!texts(&ratios(&publication).expect("a picture")).is_empty());
    }
}
