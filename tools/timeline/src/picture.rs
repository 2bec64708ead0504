// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline as an SVG: a row for each queue, a box from when a wait or a signal was queued
//! until it was done, and arrows from signals to the waits that they have released.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::builder::{Queue, Spot, Timeline};
use crate::event::Operation;
use crate::lanes::{lanes, Extent};
use crate::paging::{Direction, Operation as PageOp, Paging, Run};
use crate::perfetto::paging_title;

const WAIT: RGBColor = RGBColor(0xe0, 0xa8, 0x4e);
const BLOCKED: RGBColor = RGBColor(0xc7, 0x7f, 0x1b);
const SIGNAL: RGBColor = RGBColor(0x5b, 0x9b, 0xd5);
const COMMANDS: RGBColor = RGBColor(0x7f, 0xb0, 0x7f);
const TO_LOCAL: RGBColor = RGBColor(0x8e, 0x7c, 0xc3);
const TO_SYSTEM: RGBColor = RGBColor(0xc2, 0x7b, 0xa0);
const FILL: RGBColor = RGBColor(0xa3, 0xb1, 0x8a);
const TABLES: RGBColor = RGBColor(0xb7, 0xb7, 0xb7);
const LOST: RGBColor = RGBColor(0xb3, 0x26, 0x1e);
const ARROW: RGBColor = RGBColor(0x33, 0x3a, 0x44);
const GREY: RGBColor = RGBColor(0x5f, 0x6b, 0x7a);

/// Height of the text. The crate divides it by 1.24 for the font size of SVG, which is then 11.
const TEXT: f64 = 13.6;
/// Room that a character takes at most.
const WIDE: f64 = 7.0;
/// Height of a lane, and of a box on it.
const LANE: i32 = 18;
const BOX: i32 = 14;
/// Lanes of waits and signals of a queue, and those of commands, at most. What finds none lies on
/// the last one.
const LANES: usize = 16;
/// Between rows.
const GAP: i32 = 10;
const MARGIN: i32 = 12;
/// The two lines above.
const CAPTION: i32 = 48;
/// The axis below.
const AXIS: i32 = 30;
/// Width of the time.
const ACROSS: i32 = 1100;
/// Boxes and marks that a picture shows at most: nobody can tell more apart.
const MOST: usize = 4000;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Done = Result<(), Box<dyn Error>>;

/// The file, or what kept the crate from writing it.
pub fn draw(timeline: &Timeline) -> Result<String, Box<dyn Error>> {
    let rows = Rows::new(timeline);
    let left = rows.left();
    let height = CAPTION + rows.height + AXIS;
    let size = (left + ACROSS + 2 * MARGIN + 60, height + 2 * MARGIN);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (size.0 as u32, size.1 as u32));
        let root = root.into_drawing_area();
        root.fill(&WHITE)?;
        let area = root.margin(MARGIN, MARGIN, MARGIN, MARGIN);
        let picture = Picture {
            area,
            timeline,
            left,
            span: (timeline.end - timeline.begin).max(1),
            until: rows.until.unwrap_or(u64::MAX),
        };
        picture.caption(&rows)?;
        picture.axis(&rows)?;
        for row in &rows.all {
            picture.row(row)?;
        }
        picture.arrows(&rows)?;
        root.present()?;
    }
    Ok(svg)
}

/// What is in a row.
enum Content<'a> {
    Queue(u64, &'a Queue),
    Paging(&'a Paging),
    Interrupts,
    Wakes,
    Stores,
}

/// A row of the picture.
struct Row<'a> {
    title: String,
    content: Content<'a>,
    top: i32,
    /// The lane of each wait and signal of a queue.
    places: Vec<usize>,
    /// Lanes of waits and signals, and below them those of commands.
    fences: usize,
    commands: (Vec<usize>, usize),
}

impl Row<'_> {
    fn lanes(&self) -> i32 {
        (self.fences + self.commands.1).max(1) as i32
    }

    /// The upper edge of a lane.
    fn lane(&self, lane: usize) -> i32 {
        self.top + lane as i32 * LANE
    }
}

/// All rows.
struct Rows<'a> {
    all: Vec<Row<'a>>,
    height: i32,
    /// What is left out from this time on.
    until: Option<u64>,
}

impl<'a> Rows<'a> {
    fn new(timeline: &'a Timeline) -> Self {
        let until = limit(timeline);
        let mut rows = Self {
            all: Vec::new(),
            height: 0,
            until,
        };
        for (id, queue) in &timeline.queues {
            rows.push(timeline.title(*id, queue), Content::Queue(*id, queue));
        }
        for (adapter, paging) in &timeline.paging {
            rows.push(paging_title(*adapter), Content::Paging(paging));
        }
        for (title, content, count) in [
            ("interrupts", Content::Interrupts, timeline.interrupts.len()),
            ("CPU wakes", Content::Wakes, timeline.wakes.len()),
            ("stored by the CPU", Content::Stores, timeline.stores.len()),
        ] {
            if count > 0 {
                rows.push(title.into(), content);
            }
        }
        rows
    }

    fn push(&mut self, title: String, content: Content<'a>) {
        let (mut places, mut fences, mut commands) = (Vec::new(), 0, (Vec::new(), 0));
        let is_shown = |(begin, _): &Extent| self.until.is_none_or(|until| *begin <= until);
        if let Content::Paging(paging) = &content {
            let runs = paging.runs.iter().map(Run::extent);
            (places, fences) = lanes(runs.take_while(is_shown));
        }
        if let Content::Queue(_, queue) = &content {
            let work = queue.work.iter().map(|work| work.extent());
            (places, fences) = lanes(work.take_while(is_shown));
            let spans = queue.commands.iter().map(|span| (span.begin, span.end));
            commands = lanes(spans.take_while(is_shown));
        }
        for (places, count) in [
            (&mut places, &mut fences),
            (&mut commands.0, &mut commands.1),
        ] {
            places
                .iter_mut()
                .for_each(|lane| *lane = (*lane).min(LANES - 1));
            *count = (*count).min(LANES);
        }
        let row = Row {
            title,
            content,
            top: CAPTION + self.height,
            places,
            fences,
            commands,
        };
        self.height += row.lanes() * LANE + GAP;
        self.all.push(row);
    }

    /// Room for the titles.
    fn left(&self) -> i32 {
        let lengths = self.all.iter().map(|row| row.title.chars().count());
        (lengths.max().unwrap_or(0) as f64 * WIDE) as i32 + 12
    }
}

/// The time from which on things are left out.
fn limit(timeline: &Timeline) -> Option<u64> {
    let mut times: Vec<u64> = Vec::new();
    for queue in timeline.queues.values() {
        times.extend(queue.work.iter().map(|work| work.extent().0));
        times.extend(queue.commands.iter().map(|span| span.begin));
    }
    for paging in timeline.paging.values() {
        times.extend(paging.runs.iter().map(|run| run.extent().0));
        times.extend(paging.others.iter().map(|built| built.time));
    }
    times.extend(timeline.interrupts.iter().map(|interrupt| interrupt.time));
    times.extend(timeline.wakes.iter().map(|wake| wake.time));
    times.extend(timeline.stores.iter().map(|store| store.time));
    if times.len() <= MOST {
        return None;
    }
    let (_, time, _) = times.select_nth_unstable(MOST);
    Some(*time)
}

/// What is drawn on.
struct Picture<'a> {
    area: Area<'a>,
    timeline: &'a Timeline,
    left: i32,
    span: u64,
    until: u64,
}

impl Picture<'_> {
    fn x(&self, time: u64) -> i32 {
        let part = time.saturating_sub(self.timeline.begin) as f64 / self.span as f64;
        self.left + (part.min(1.0) * f64::from(ACROSS)).round() as i32
    }

    fn text(&self, words: &str, at: (i32, i32), color: &RGBColor, side: HPos) -> Done {
        let style = ("sans-serif", TEXT).into_text_style(&(1, 1)).color(color);
        let style = style.pos(Pos::new(side, VPos::Center));
        Ok(self.area.draw_text(words, &style, at)?)
    }

    fn line(&self, points: Vec<(i32, i32)>, style: ShapeStyle) -> Done {
        Ok(self.area.draw(&PathElement::new(points, style))?)
    }

    fn caption(&self, rows: &Rows<'_>) -> Done {
        let title = match rows.until {
            Some(until) => format!(
                "{} of {} (more than {MOST} things: what begins later is in the file for Perfetto)",
                duration(until.saturating_sub(self.timeline.begin)),
                duration(self.span)
            ),
            None => format!("{} of fences and queues", duration(self.span)),
        };
        self.text(&title, (0, 8), &BLACK, HPos::Left)?;
        if !self.timeline.paging.is_empty() {
            let mut x = self.left + ACROSS / 2;
            for (color, words) in [
                (TO_LOCAL, "to local memory"),
                (TO_SYSTEM, "to system memory"),
                (FILL, "filled"),
                (TABLES, "page tables"),
            ] {
                x = self.key((x, 2), &color, words)?;
            }
        }
        let mut x = 0;
        for (color, words) in [
            (SIGNAL, "signal: queued to executed"),
            (WAIT, "wait: queued to unblocked"),
            (BLOCKED, "looked at and blocked"),
            (COMMANDS, "commands"),
            (LOST, "events lost"),
        ] {
            x = self.key((x, 24), &color, words)?;
        }
        self.text(
            "in boxes: fence:value; pale: not done; diamond: nobody told when it was queued",
            (x, 30),
            &GREY,
            HPos::Left,
        )
    }

    /// Says what a colour means; returns where the next one may stand.
    fn key(
        &self,
        (x, y): (i32, i32),
        color: &RGBColor,
        words: &str,
    ) -> Result<i32, Box<dyn Error>> {
        self.area
            .draw(&Rectangle::new([(x, y), (x + 12, y + 12)], color.filled()))?;
        self.text(words, (x + 17, y + 6), &GREY, HPos::Left)?;
        Ok(x + 32 + (words.len() as f64 * WIDE) as i32)
    }

    fn axis(&self, rows: &Rows<'_>) -> Done {
        let bottom = CAPTION + rows.height;
        let step = step(self.span);
        for tick in (0..=self.span / step).map(|tick| tick * step) {
            let x = self.x(self.timeline.begin + tick);
            self.line(vec![(x, CAPTION - 4), (x, bottom)], GREY.mix(0.25).into())?;
            self.text(&duration(tick), (x, bottom + 12), &GREY, HPos::Center)?;
        }
        Ok(())
    }

    fn row(&self, row: &Row<'_>) -> Done {
        let middle = row.top + row.lanes() * LANE / 2 - 2;
        self.text(&row.title, (self.left - 10, middle), &BLACK, HPos::Right)?;
        let below = row.top + row.lanes() * LANE + GAP / 2 - 2;
        self.line(
            vec![(0, below), (self.left + ACROSS, below)],
            GREY.mix(0.3).into(),
        )?;
        let timeline = self.timeline;
        match &row.content {
            Content::Queue(_, queue) => self.queue(row, queue),
            Content::Paging(paging) => self.paging(row, paging),
            Content::Interrupts => {
                let all = timeline.interrupts.iter().map(|interrupt| interrupt.time);
                self.ticks(row, all, &LOST)
            }
            Content::Wakes => self.ticks(row, timeline.wakes.iter().map(|wake| wake.time), &WAIT),
            Content::Stores => {
                let all = timeline.stores.iter().map(|store| store.time);
                self.ticks(row, all, &SIGNAL)
            }
        }
    }

    fn ticks(&self, row: &Row<'_>, all: impl Iterator<Item = u64>, color: &RGBColor) -> Done {
        for time in all.take_while(|time| *time <= self.until) {
            let x = self.x(time);
            let points = vec![(x, row.top), (x, row.top + BOX)];
            self.line(points, color.stroke_width(2))?;
        }
        Ok(())
    }

    fn queue(&self, row: &Row<'_>, queue: &Queue) -> Done {
        for gap in &queue.gaps {
            let (from, to) = (self.x(gap.begin), self.x(gap.end));
            let corners = [
                (from, row.top - 2),
                (to.max(from + 2), row.top + row.lanes() * LANE - 2),
            ];
            self.area
                .draw(&Rectangle::new(corners, LOST.mix(0.25).filled()))?;
        }
        for (span, lane) in queue.commands.iter().zip(&row.commands.0) {
            let top = row.lane(row.fences + lane);
            let words = span.number.to_string();
            self.block((span.begin, span.end), top, &COMMANDS, &words)?;
        }
        for (work, lane) in queue.work.iter().zip(&row.places) {
            let top = row.lane(*lane);
            let color = match work.key.operation {
                Operation::Signal => SIGNAL,
                Operation::Wait => WAIT,
            };
            if let (None, Some(done)) = (work.queued, work.done) {
                self.diamond(self.x(done), top + BOX / 2, &color)?;
                continue;
            }
            let words = format!("{}:{}", work.key.fence, work.key.value);
            self.block(work.extent(), top, &color, "")?;
            if let (Some(observed), Some(done)) = (work.observed, work.done) {
                let from = self.x(observed.max(work.extent().0));
                let corners = [(from, top), (self.x(done).max(from), top + BOX)];
                self.area.draw(&Rectangle::new(corners, BLOCKED.filled()))?;
            }
            self.label(work.extent(), top, &words)?;
        }
        for (time, _) in &queue.faults {
            let x = self.x(*time);
            let bottom = row.top + row.lanes() * LANE;
            self.line(vec![(x, row.top), (x, bottom)], LOST.stroke_width(3))?;
        }
        Ok(())
    }

    /// A paging buffer is pale until it is submitted.
    fn paging(&self, row: &Row<'_>, paging: &Paging) -> Done {
        let others = paging.others.iter().map(|built| built.time);
        self.ticks(row, others, &TABLES)?;
        for (run, lane) in paging.runs.iter().zip(&row.places) {
            let (top, color) = (row.lane(*lane), run_color(run));
            let (from, to) = self.edges(run.extent());
            let corners = [(from, top), (to, top + BOX)];
            self.area
                .draw(&Rectangle::new(corners, color.mix(0.4).filled()))?;
            self.block((run.submitted, run.done), top, &color, "")?;
            // The longest words that there is room for.
            let names = [run.title(), run.main_title()];
            let fits = names.iter().find(|words| self.fits(words, run.extent()));
            self.label(run.extent(), top, fits.map_or("", |words| words))?;
        }
        Ok(())
    }

    /// Where a box begins and ends; one is never too small to be seen.
    fn edges(&self, (begin, end): Extent) -> (i32, i32) {
        let from = self.x(begin);
        (
            from,
            end.map_or(self.left + ACROSS, |end| self.x(end))
                .max(from + 2),
        )
    }

    fn block(&self, extent: Extent, top: i32, color: &RGBColor, words: &str) -> Done {
        let (from, to) = self.edges(extent);
        let corners = [(from, top), (to, top + BOX)];
        let fill = match extent.1 {
            Some(_) => color.mix(1.0),
            None => color.mix(0.3),
        };
        self.area.draw(&Rectangle::new(corners, fill.filled()))?;
        self.area
            .draw(&Rectangle::new(corners, color.stroke_width(1)))?;
        self.label(extent, top, words)
    }

    /// Words in a box, if there is room for them.
    fn label(&self, extent: Extent, top: i32, words: &str) -> Done {
        let at = (self.edges(extent).0 + 3, top + BOX / 2);
        match self.fits(words, extent) {
            true => self.text(words, at, &BLACK, HPos::Left),
            false => Ok(()),
        }
    }

    fn fits(&self, words: &str, extent: Extent) -> bool {
        let (from, to) = self.edges(extent);
        (words.len() as f64) * WIDE < f64::from(to - from) - 4.0
    }

    fn diamond(&self, x: i32, y: i32, color: &RGBColor) -> Done {
        let corners = vec![(x - 5, y), (x, y - 6), (x + 5, y), (x, y + 6)];
        Ok(self.area.draw(&Polygon::new(corners, color.filled()))?)
    }

    fn arrows(&self, rows: &Rows<'_>) -> Done {
        for flow in &self.timeline.flows {
            let (Some(from), Some(to)) = (self.spot(rows, flow.from), self.spot(rows, flow.to))
            else {
                continue;
            };
            self.line(vec![from, to], ARROW.mix(0.7).stroke_width(1))?;
            // The head, along the line.
            let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
            let length = dx.hypot(dy).max(1.0);
            let (ux, uy) = (dx / length, dy / length);
            let corner = |side: f64| {
                let x = f64::from(to.0) - 7.0 * ux - side * 3.0 * uy;
                let y = f64::from(to.1) - 7.0 * uy + side * 3.0 * ux;
                (x.round() as i32, y.round() as i32)
            };
            let head = vec![to, corner(1.0), corner(-1.0)];
            self.area.draw(&Polygon::new(head, ARROW.filled()))?;
        }
        Ok(())
    }

    /// Where the end of an arrow is, if it is shown.
    fn spot(&self, rows: &Rows<'_>, spot: Spot) -> Option<(i32, i32)> {
        let time = self.timeline.time_of(spot);
        if time > self.until {
            return None;
        }
        let row = rows.all.iter().find(|row| match (&row.content, spot) {
            (Content::Queue(id, _), Spot::Work { queue, .. }) => *id == queue,
            (Content::Stores, Spot::Store(_)) | (Content::Wakes, Spot::Wake(_)) => true,
            _ => false,
        })?;
        let lane = match spot {
            Spot::Work { index, .. } => *row.places.get(index)?,
            _ => 0,
        };
        Some((self.x(time), row.lane(lane) + BOX / 2))
    }
}

/// By what happens to bytes.
fn run_color(run: &Run) -> RGBColor {
    match run.main().map(|built| (built.operation, built.direction)) {
        Some((_, Some(Direction::LocalToSystem))) => TO_SYSTEM,
        Some((_, Some(_))) => TO_LOCAL,
        Some((PageOp::FillVirtual, _)) => FILL,
        _ => TABLES,
    }
}

/// A whole 1, 2 or 5 of a power of ten, so that there are at most ten ticks.
fn step(span: u64) -> u64 {
    let mut power = 1;
    loop {
        for step in [power, 2 * power, 5 * power] {
            if span / step <= 10 {
                return step;
            }
        }
        power *= 10;
    }
}

/// A length of time as a person writes it.
fn duration(nanoseconds: u64) -> String {
    let (unit, name) = match nanoseconds {
        0 => return "0".into(),
        1..=999 => (1.0, "ns"),
        1_000..=999_999 => (1e3, "µs"),
        1_000_000..=999_999_999 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let number = (nanoseconds as f64 / unit * 1000.0).round() / 1000.0;
    format!("{number} {name}")
}
