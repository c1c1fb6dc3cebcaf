//! One figure of a device: the fused product's time over the number of columns, beside its peers and its limit.
//!
//! Plain SVG, the same text for the same records. Colours follow the reader's theme.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::axis::Axis;
use super::record::{Measured, Outcome, Record, Shape};

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 460.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 330.0;
/// Left edges of the two panels, and how wide they are.
const PANELS: [f64; 2] = [70.0, 560.0];
const PANEL_WIDTH: f64 = 390.0;

/// Colours that can be told apart on white and on black, and by those who confuse red and green.
const STYLE: &str = "\
<style>
text { font: 13px sans-serif; fill: #24292f }
.title { font-weight: bold }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke-width: 2 }
.c0 { stroke: #0969da; fill: #0969da }
.c1 { stroke: #bc4c00; fill: #bc4c00 }
.c2 { stroke: #8250df; fill: #8250df }
.limit { stroke: #57606a; fill: #57606a }
.line.limit { stroke-dasharray: 6 4 }
.line.c0, .line.c1, .line.c2, .line.limit { fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #c9d1d9 }
.grid { stroke: #30363d }
.c0 { stroke: #58a6ff; fill: #58a6ff }
.c1 { stroke: #f0883e; fill: #f0883e }
.c2 { stroke: #bc8cff; fill: #bc8cff }
.limit { stroke: #8b949e; fill: #8b949e }
}
</style>
";

/// A class of the style sheet with its name in the legend.
type Style = (&'static str, &'static str);

const OURS: Style = ("c0", "warpfuse");
const LIMIT: Style = ("limit", "limit: X read once, as quick as a plain read");

/// By the names that records have for them.
const PEERS: [(&str, Style); 3] = [
    ("cublas", ("c1", "cuBLAS, two gemv")),
    (
        "cusparse_stored_transpose",
        ("c1", "cuSPARSE, stored transpose"),
    ),
    ("cusparse", ("c2", "cuSPARSE, transposed operation")),
];

/// Series by their style: points (columns, picoseconds per stored element).
type Series = BTreeMap<Style, Vec<(f64, f64)>>;

/// The figure of a device, if it has records of the fused product in f32.
pub fn figure(device: &str, records: &[Record]) -> Option<String> {
    let panels = [
        ("dense", series(device, records, dense)),
        ("sparse, uniform columns", series(device, records, sparse)),
    ];
    if panels.iter().all(|(_, series)| series.is_empty()) {
        return None;
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>Time of the fused product on {device}</title>\n{STYLE}\
         <text class=\"title\" x=\"{}\" y=\"24\">w = Xᵀ(X·y) in f32 on {device}: picoseconds per stored element, over \
         columns</text>\n",
        PANELS[0]
    );
    for (left, (title, series)) in PANELS.into_iter().zip(&panels) {
        svg += &panel(left, title, series);
    }
    svg += "</svg>\n";
    Some(svg)
}

fn dense(shape: &Shape) -> Option<(f64, f64)> {
    match shape {
        Shape::Dense { rows, cols } => Some((*cols as f64, *rows as f64 * *cols as f64)),
        _ => None,
    }
}

fn sparse(shape: &Shape) -> Option<(f64, f64)> {
    match shape {
        Shape::Sparse {
            rows,
            cols,
            per_row,
        } => Some((*cols as f64, *rows as f64 * *per_row as f64)),
        _ => None,
    }
}

/// The series of the shapes of which `of` knows columns and elements.
fn series(device: &str, records: &[Record], of: impl Fn(&Shape) -> Option<(f64, f64)>) -> Series {
    let mut series = Series::new();
    let wanted = |record: &&Record| {
        let family = record.family == "fused" && record.case.work == "fused";
        family && record.device == device && record.dtype == "f32"
    };
    for record in records.iter().filter(wanted) {
        if let (Outcome::Measured(measured), Some(place)) =
            (&record.outcome, of(&record.case.shape))
        {
            add(&mut series, place, measured);
        }
    }
    for points in series.values_mut() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    series
}

fn add(series: &mut Series, (cols, elements): (f64, f64), measured: &Measured) {
    let mut point = |style: Style, us: f64| {
        let picoseconds = us * 1e6 / elements;
        series.entry(style).or_default().push((cols, picoseconds));
    };
    point(OURS, measured.median_us);
    if let Some(gbs) = measured.ceiling_gbs {
        point(LIMIT, measured.bytes / gbs / 1e3);
    }
    for (name, style) in PEERS {
        if let Some(us) = measured.peers.get(name) {
            point(style, *us);
        }
    }
}

fn panel(left: f64, title: &str, series: &Series) -> String {
    let points = || series.values().flatten();
    let x = Axis::over(points().map(|p| p.0), left, left + PANEL_WIDTH);
    let y = Axis::over(points().map(|p| p.1), BOTTOM, TOP);
    let (Some(x), Some(y)) = (x, y) else {
        return String::new();
    };
    let mut svg = format!(
        "<text class=\"title\" x=\"{left}\" y=\"{}\">{title}</text>\n",
        TOP - 14.0
    );
    for (value, at) in x.ticks() {
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{BOTTOM}\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 18.0,
            label(value)
        );
    }
    for (value, at) in y.ticks() {
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left + PANEL_WIDTH,
            left - 8.0,
            at + 4.0,
            label(value)
        );
    }
    for (row, ((class, name), points)) in series.iter().enumerate() {
        svg += &curve(class, points, &x, &y);
        svg += &key(class, name, left, BOTTOM + 44.0 + 20.0 * row as f64);
    }
    svg
}

fn curve(class: &str, points: &[(f64, f64)], x: &Axis, y: &Axis) -> String {
    let at = |p: &(f64, f64)| (x.place(p.0), y.place(p.1));
    let line: Vec<String> = points
        .iter()
        .map(at)
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let mut svg = format!(
        "<polyline class=\"line {class}\" points=\"{}\"/>\n",
        line.join(" ")
    );
    if class != LIMIT.0 {
        for (x, y) in points.iter().map(at) {
            let _ = writeln!(
                svg,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
            );
        }
    }
    svg
}

/// A line of the legend.
fn key(class: &str, name: &str, left: f64, y: f64) -> String {
    format!(
        "<line class=\"line {class}\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\"/>\
         <text x=\"{}\" y=\"{:.1}\">{name}</text>\n",
        left + 28.0,
        left + 36.0,
        y + 4.0
    )
}

/// Such as `20`, `5k`, `1M`.
fn label(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{v}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;

    const RECORDS: &str = include_str!("golden/records.jsonl");
    const FIGURE: &str = include_str!("golden/figure.svg");

    #[test]
    fn the_figure_of_a_small_file_is_the_one_that_was_looked_at() {
        let records = parse(RECORDS).expect("records");
        let found = figure("NVIDIA H200", &records).expect("a figure");
        assert_eq!(found, FIGURE, "found:\n{found}");
    }

    #[test]
    fn without_records_of_the_product_there_is_no_figure() {
        let records = parse(RECORDS).expect("records");
        assert_eq!(figure("another device", &records), None);
    }

    #[test]
    fn elements_of_the_figure_are_closed() {
        let opened = FIGURE.matches('<').count();
        assert_eq!(opened, FIGURE.matches('>').count());
        assert!(FIGURE.starts_with("<svg ") && FIGURE.ends_with("</svg>\n"));
        assert!(!FIGURE.contains("NaN") && !FIGURE.contains("inf"));
    }
}
