//! Figures as SVG.

use crate::figure::{Bar, Cell, Figure, Interval, Kind, Mark, Shape, Tone};
use crate::layout::{LINE, Layout, TEXT};
use crate::scale::Scale;
use crate::style::STYLE;
use crate::svg::{Anchor, Canvas, escape, length};
use crate::text;

/// Share of a cell's colour where there is text on it, and where there is none.
pub(crate) const DARKEST_UNDER_TEXT: f64 = 0.55;
const DARKEST: f64 = 0.95;
/// Points of a line that are nearer to the last one than this many pixels are left out.
const NEAR: f64 = 0.4;

impl Figure {
    /// A file of its own.
    pub fn to_svg(&self) -> String {
        self.with_style(&format!("<style>\n{STYLE}</style>\n"))
    }

    /// A part of an HTML page whose style sheet has [`STYLE`].
    pub fn to_inline_svg(&self) -> String {
        self.with_style("")
    }

    fn with_style(&self, style: &str) -> String {
        let (body, height) = self.body();
        let (width, height) = (length(self.width), length(height));
        format!(
            "<svg class=\"wf\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n{}{style}{body}</svg>\n",
            escape(&self.title),
            match self.summary.as_str() {
                "" => String::new(),
                summary => format!("<desc>{}</desc>\n", escape(summary)),
            },
        )
    }

    /// What is between the tags, and its height.
    pub(crate) fn body(&self) -> (String, f64) {
        let layout = Layout::of(self);
        let mut canvas = Canvas::default();
        heads(&mut canvas, &layout);
        match &layout.scales {
            None => nothing(&mut canvas, &layout),
            Some(scales) => {
                let is_across = matches!(self.y.kind, Kind::Categories(_));
                axes(&mut canvas, &layout, is_across);
                let mut draw = Draw {
                    canvas: &mut canvas,
                    x: &scales.0,
                    y: &scales.1,
                    is_across,
                };
                self.marks.iter().for_each(|mark| draw.mark(mark));
            }
        }
        for (number, x, y) in &layout.legend {
            key(&mut canvas, &self.marks[*number], (*x, *y));
        }
        (canvas.finish(), layout.height)
    }
}

fn heads(canvas: &mut Canvas, layout: &Layout) {
    let mut y = 13.0;
    for line in &layout.title {
        canvas.text("h", (0.0, y), Anchor::Start, line);
        y += LINE;
    }
    for line in &layout.y_label {
        canvas.text("q", (0.0, y), Anchor::Start, line);
        y += LINE;
    }
}

/// Says that there is nothing to show.
fn nothing(canvas: &mut Canvas, layout: &Layout) {
    let middle = (
        0.5 * (layout.left + layout.right),
        0.5 * (layout.top + layout.bottom),
    );
    canvas.text("q", middle, Anchor::Middle, "no finite values to show");
}

fn axes(canvas: &mut Canvas, layout: &Layout, is_across: bool) {
    let Layout {
        left,
        right,
        top,
        bottom,
        ..
    } = *layout;
    for tick in &layout.y_ticks {
        if !is_across {
            canvas.segment("grid", (left, tick.at), (right, tick.at));
        }
        canvas.text("", (left - 8.0, tick.at + 4.0), Anchor::End, &tick.label);
    }
    for tick in &layout.x_ticks {
        if is_across {
            canvas.segment("grid", (tick.at, top), (tick.at, bottom));
        } else {
            canvas.segment("axis", (tick.at, bottom), (tick.at, bottom + 4.0));
        }
        let half = 0.5 * text::width(&tick.label, TEXT);
        // The outermost labels stay inside the figure.
        let at = tick.at.min(right + 14.0 - half).max(half);
        canvas.text("", (at, bottom + 17.0), Anchor::Middle, &tick.label);
    }
    match is_across {
        true => canvas.segment("axis", (left, top), (left, bottom)),
        false => canvas.segment("axis", (left, bottom), (right, bottom)),
    }
    let mut y = bottom + 17.0 + if layout.x_ticks.is_empty() { 0.0 } else { LINE };
    for line in &layout.x_label {
        canvas.text("q", (0.5 * (left + right), y), Anchor::Middle, line);
        y += LINE;
    }
}

/// A line of the legend.
fn key(canvas: &mut Canvas, mark: &Mark, (x, y): (f64, f64)) {
    let class = mark.tone.class();
    let (from, to) = ((x, y), (x + 22.0, y));
    match &mark.shape {
        Shape::Points(_) => canvas.dot(class, (x + 11.0, y), 3.0),
        Shape::Bars(_) | Shape::Cells(_) => {
            canvas.rectangle(
                &format!("bar {class}"),
                (x + 4.0, y - 5.0),
                (x + 18.0, y + 5.0),
                1.0,
            );
        }
        Shape::Band(_) => {
            canvas.rectangle(
                &format!("band {class}"),
                (x, y - 5.0),
                (x + 22.0, y + 5.0),
                1.0,
            );
        }
        Shape::Errors(_) => {
            canvas.segment(&format!("line {class}"), from, to);
            canvas.dot(class, (x + 11.0, y), 3.0);
        }
        _ => canvas.segment(&format!("line {class}"), from, to),
    }
    canvas.text("", (x + 28.0, y + 4.0), Anchor::Start, &mark.name);
}

/// Marks between two axes.
struct Draw<'a> {
    canvas: &'a mut Canvas,
    x: &'a Scale,
    y: &'a Scale,
    is_across: bool,
}

impl Draw<'_> {
    fn mark(&mut self, mark: &Mark) {
        let class = mark.tone.class();
        match &mark.shape {
            Shape::Line(points) => self.line(class, points),
            Shape::Steps(points) => self.line(class, &stairs(points)),
            Shape::Points(points) => self.points(mark.tone, points),
            Shape::Bars(bars) => bars.iter().for_each(|bar| self.bar(class, bar)),
            Shape::Band(all) => self.band(class, all),
            Shape::Errors(all) => all.iter().for_each(|one| self.error(class, one)),
            Shape::Cells(cells) => self.cells(class, cells),
            Shape::Rule(x) => {
                let (top, bottom) = (self.y.of_share(1.0), self.y.of_share(0.0));
                if let Some(x) = self.x.place(*x) {
                    self.canvas
                        .segment(&format!("line {class}"), (x, top), (x, bottom));
                }
            }
            Shape::Level(y) => {
                let (left, right) = (self.x.of_share(0.0), self.x.of_share(1.0));
                if let Some(y) = self.y.place(*y) {
                    self.canvas
                        .segment(&format!("line {class}"), (left, y), (right, y));
                }
            }
        }
    }

    /// A line, in parts where points cannot be shown.
    fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let class = format!("line {class}");
        let places: Vec<Option<(f64, f64)>> = points
            .iter()
            .map(|(x, y)| self.x.place(*x).zip(self.y.place(*y)))
            .collect();
        for part in places.split(Option::is_none) {
            let part = thinned(part.iter().flatten().copied());
            match part.as_slice() {
                [] => {}
                [one] => self.canvas.dot(&class["line ".len()..], *one, 3.0),
                part => self.canvas.path("polyline", &class, part),
            }
        }
    }

    fn points(&mut self, tone: Tone, points: &[(f64, f64)]) {
        let radius = if points.len() > 60 { 1.8 } else { 3.0 };
        for (x, y) in points {
            if let Some(place) = self.x.place(*x).zip(self.y.place(*y)) {
                self.canvas.dot(tone.class(), place, radius);
            }
        }
    }

    fn bar(&mut self, class: &str, bar: &Bar) {
        let (along, sizes) = if self.is_across {
            (self.y, self.x)
        } else {
            (self.x, self.y)
        };
        let (from, to) = (along.clamped(bar.from), along.clamped(bar.to));
        let (zero, end) = (sizes.clamped(0.0), sizes.clamped(bar.value));
        let (Some(from), Some(to), Some(zero), Some(end)) = (from, to, zero, end) else {
            return;
        };
        let (a, b) = match self.is_across {
            true => ((zero, from), (end, to)),
            false => ((from, zero), (to, end)),
        };
        self.canvas.rectangle(&format!("bar {class}"), a, b, 1.0);
    }

    fn band(&mut self, class: &str, all: &[Interval]) {
        let corner = |at: f64, value: f64| self.x.clamped(at).zip(self.y.clamped(value));
        let upper = all.iter().filter_map(|one| corner(one.at, one.high));
        let lower = all.iter().rev().filter_map(|one| corner(one.at, one.low));
        let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
        if outline.len() >= 4 {
            self.canvas
                .path("polygon", &format!("band {class}"), &outline);
        }
    }

    fn error(&mut self, class: &str, one: &Interval) {
        let (along, sizes) = if self.is_across {
            (self.y, self.x)
        } else {
            (self.x, self.y)
        };
        let Some(at) = along.place(one.at) else {
            return;
        };
        let turn = |size: f64| {
            if self.is_across {
                (size, at)
            } else {
                (at, size)
            }
        };
        if let Some((low, high)) = sizes.clamped(one.low).zip(sizes.clamped(one.high)) {
            self.canvas
                .segment(&format!("line {class}"), turn(low), turn(high));
        }
        if let Some(middle) = sizes.place(one.middle) {
            self.canvas.dot(class, turn(middle), 3.5);
        }
    }

    fn cells(&mut self, class: &str, cells: &[Cell]) {
        let most = cells
            .iter()
            .map(|cell| cell.value)
            .filter(|value| value.is_finite());
        let most = most.fold(0.0_f64, f64::max);
        let is_labelled = cells.iter().any(|cell| !cell.label.is_empty());
        let darkest = if is_labelled {
            DARKEST_UNDER_TEXT
        } else {
            DARKEST
        };
        for cell in cells {
            let (x, y) = (cell.x, cell.y);
            let a = self.x.clamped(x.0).zip(self.y.clamped(y.0));
            let b = self.x.clamped(x.1).zip(self.y.clamped(y.1));
            let (Some(a), Some(b)) = (a, b) else { continue };
            let share = if most > 0.0 && cell.value.is_finite() {
                cell.value / most
            } else {
                0.0
            };
            if share > 0.0 {
                let opacity = darkest * (0.1 + 0.9 * share);
                self.canvas
                    .rectangle(&format!("cell {class}"), a, b, opacity);
            }
            let room = (a.0 - b.0).abs() - 4.0;
            let label = text::shortened(&cell.label, TEXT, room);
            let middle = (0.5 * (a.0 + b.0), 0.5 * (a.1 + b.1) + 4.0);
            if !label.is_empty() {
                self.canvas.text("", middle, Anchor::Middle, &label);
            }
        }
    }
}

/// Corners of steps.
fn stairs(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for (number, point) in points.iter().enumerate() {
        if let Some(before) = number.checked_sub(1).map(|before| points[before]) {
            corners.push((point.0, before.1));
        }
        corners.push(*point);
    }
    corners
}

/// Without points that nobody can tell from the one before; the last one stays.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut skipped = None;
    for point in points {
        let is_near =
            |last: &(f64, f64)| (last.0 - point.0).abs() < NEAR && (last.1 - point.1).abs() < NEAR;
        if kept.last().is_some_and(is_near) {
            skipped = Some(point);
        } else {
            kept.push(point);
            skipped = None;
        }
    }
    kept.extend(skipped);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_top_of_each_other_are_drawn_once() {
        let many = (0..10_000).map(|i| (f64::from(i) * 1e-3, 0.0));
        let kept = thinned(many);
        assert!(
            kept.len() < 30 && kept.last() == Some(&(9.999, 0.0)),
            "{kept:?}"
        );
    }

    #[test]
    fn steps_have_corners() {
        assert_eq!(
            stairs(&[(0.0, 1.0), (1.0, 3.0)]),
            [(0.0, 1.0), (1.0, 1.0), (1.0, 3.0)]
        );
    }
}
