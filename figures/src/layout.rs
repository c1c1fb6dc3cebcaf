//! Where the parts of a figure go.

use crate::figure::{Axis, Figure, Kind};
use crate::scale::{Scale, Tick};
use crate::text;

/// Pixels of ordinary text, and of heads.
pub(crate) const TEXT: f64 = 12.0;
pub(crate) const HEAD: f64 = 13.0;
/// Bold letters are wider.
const BOLD: f64 = 1.08;
/// From one line of text to the next.
pub(crate) const LINE: f64 = 17.0;
/// Height of a category of the vertical axis.
const ROW: f64 = 22.0;
/// Pixels for each number below the horizontal axis, and beside the vertical one.
const TICK_WIDTH: f64 = 62.0;
const TICK_HEIGHT: f64 = 42.0;
/// The most of the width that names beside the vertical axis take.
const MOST_NAMES: f64 = 0.42;

/// A figure's parts with their places.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) title: Vec<String>,
    pub(crate) y_label: Vec<String>,
    pub(crate) x_label: Vec<String>,
    /// Edges of the space between the axes.
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// `None` where nothing can be shown.
    pub(crate) scales: Option<(Scale, Scale)>,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
    /// Names of marks with their places: x of the key, y of its middle.
    pub(crate) legend: Vec<(usize, f64, f64)>,
    pub(crate) height: f64,
}

impl Layout {
    pub(crate) fn of(figure: &Figure) -> Layout {
        let is_across = matches!(figure.y.kind, Kind::Categories(_));
        let values: Vec<_> = figure
            .marks
            .iter()
            .map(|m| m.shape.values(is_across))
            .collect();
        let (along, up): (Vec<Vec<f64>>, Vec<Vec<f64>>) = values.into_iter().unzip();
        let scales = Scale::of(&figure.x, &along.concat()).zip(Scale::of(&figure.y, &up.concat()));
        let height = match &figure.y.kind {
            Kind::Categories(names) => (ROW * names.len() as f64).max(2.0 * ROW),
            _ => figure.height,
        };
        Layout::around(figure, scales, height)
    }

    fn around(figure: &Figure, scales: Option<(Scale, Scale)>, height: f64) -> Layout {
        let title = text::wrapped(&figure.title, HEAD * BOLD, figure.width);
        let (y_ticks, y_unit) = match &scales {
            Some((_, y)) => y_ticks(&figure.y, y, height, figure.width),
            None => Default::default(),
        };
        let widest = y_ticks.iter().map(|tick| text::width(&tick.label, TEXT));
        let left = widest.fold(0.0_f64, f64::max).max(14.0) + 8.0;
        let right = figure.width - 14.0;
        let y_label = labelled(&figure.y, &y_unit, figure.width);
        let top = LINE * (title.len() + y_label.len()) as f64 + 10.0;
        let bottom = top + height;
        let scales = scales.map(|(x, y)| {
            let is_down = matches!(figure.y.kind, Kind::Categories(_));
            let (start, end) = if is_down {
                (top, bottom)
            } else {
                (bottom, top)
            };
            (x.placed(left, right), y.placed(start, end))
        });
        let (x_ticks, x_unit) = match &scales {
            Some((x, _)) => x_ticks(&figure.x, x, right - left),
            None => Default::default(),
        };
        let x_label = labelled(&figure.x, &x_unit, figure.width - left);
        let mut below = bottom + LINE * x_label.len() as f64 + 6.0;
        below += if x_ticks.is_empty() { 0.0 } else { LINE };
        let (legend, height) = legend(figure, left, below);
        Layout {
            title,
            y_label,
            x_label,
            left,
            right,
            top,
            bottom,
            y_ticks: match &scales {
                Some((_, y)) => moved(y_ticks, y),
                None => Vec::new(),
            },
            scales,
            x_ticks,
            legend,
            height,
        }
    }
}

/// Ticks at shares of the axis's length, at their places.
fn moved(ticks: Vec<Tick>, scale: &Scale) -> Vec<Tick> {
    let at = |tick: Tick| Tick {
        at: scale.of_share(tick.at),
        ..tick
    };
    ticks.into_iter().map(at).collect()
}

/// The label of an axis with the power of ten that its numbers are multiplied by.
fn labelled(axis: &Axis, unit: &str, width: f64) -> Vec<String> {
    let label = match (axis.label.as_str(), unit) {
        (label, "") => label.to_owned(),
        ("", unit) => unit.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    };
    text::wrapped(&label, TEXT, width)
}

/// Names or numbers beside the vertical axis, at shares of its length.
fn y_ticks(axis: &Axis, scale: &Scale, height: f64, width: f64) -> (Vec<Tick>, String) {
    let Kind::Categories(names) = &axis.kind else {
        return scale.ticks((height / TICK_HEIGHT) as usize);
    };
    let tick = |(number, name): (usize, &String)| Tick {
        at: scale.place(number as f64).unwrap_or(0.0),
        label: text::shortened(name, TEXT, MOST_NAMES * width),
    };
    (names.iter().enumerate().map(tick).collect(), String::new())
}

/// Names or numbers below the horizontal axis, so few that none touches the next.
fn x_ticks(axis: &Axis, scale: &Scale, width: f64) -> (Vec<Tick>, String) {
    if let Kind::Categories(names) = &axis.kind {
        return (name_ticks(names, scale, width), String::new());
    }
    let mut count = (width / TICK_WIDTH) as usize;
    loop {
        let (ticks, unit) = scale.ticks(count.max(1));
        if count <= 1 || !touch(&ticks) {
            return (ticks, unit);
        }
        count -= 1;
    }
}

fn name_ticks(names: &[String], scale: &Scale, width: f64) -> Vec<Tick> {
    const MOST: f64 = 80.0;
    const GAP: f64 = 5.0;
    let slot = width / names.len().max(1) as f64;
    let widest = names
        .iter()
        .map(|name| text::width(name, TEXT))
        .fold(0.0_f64, f64::max);
    // Rather fewer names than shortened ones, but for long ones.
    let every = ((widest.min(MOST) + GAP) / slot).ceil().max(1.0) as usize;
    let room = slot * every as f64 - GAP + 1.0;
    let named = names.iter().enumerate().step_by(every);
    let tick = |(number, name): (usize, &String)| {
        Some(Tick {
            at: scale.place(number as f64)?,
            label: text::shortened(name, TEXT, room),
        })
    };
    named.filter_map(tick).collect()
}

fn touch(ticks: &[Tick]) -> bool {
    let half = |tick: &Tick| 0.5 * text::width(&tick.label, TEXT);
    ticks
        .windows(2)
        .any(|pair| pair[1].at - pair[0].at < half(&pair[0]) + half(&pair[1]) + 6.0)
}

/// Keys of named marks in rows, and the height of the figure with them.
fn legend(figure: &Figure, left: f64, below: f64) -> (Vec<(usize, f64, f64)>, f64) {
    const KEY: f64 = 30.0;
    let (mut x, mut y) = (left, below + 0.5 * LINE);
    let mut places = Vec::new();
    for (number, mark) in figure.marks.iter().enumerate() {
        if mark.name.is_empty() {
            continue;
        }
        let wide = KEY + text::width(&mark.name, TEXT) + 14.0;
        if x > left && x + wide > figure.width {
            (x, y) = (left, y + LINE);
        }
        places.push((number, x, y));
        x += wide;
    }
    let end = if places.is_empty() {
        below
    } else {
        y + 0.5 * LINE
    };
    (places, (end + 6.0).ceil())
}
