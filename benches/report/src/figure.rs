//! One figure of a device: the fused product's time over the number of columns, beside its peers and its limit.

use std::collections::BTreeMap;

use warpfuse_figures::{Axis, Figure, Sheet, Tone};

use super::record::{Measured, Outcome, Record, Shape};

/// A place among the series, and a name in the legend.
type Style = (usize, &'static str);

const OURS: Style = (0, "warpfuse");
const LIMIT: Style = (3, "limit: X read once, as fast as a plain read");

/// By the names that records have for them.
const PEERS: [(&str, Style); 3] = [
    ("cublas", (1, "cuBLAS, two gemv")),
    (
        "cusparse_stored_transpose",
        (1, "cuSPARSE, stored transpose"),
    ),
    ("cusparse", (2, "cuSPARSE, transposed operation")),
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
    let sheet = Sheet {
        title: format!(
            "w = Xᵀ(X·y) in f32 on {device}: picoseconds per stored element, over columns"
        ),
        figures: panels.map(|(title, series)| panel(title, series)).into(),
    };
    Some(sheet.to_svg())
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

fn panel(title: &str, series: Series) -> Figure {
    let figure = Figure::new(title, title)
        .x(Axis::log("columns"))
        .y(Axis::log("ps per element"))
        .size(475.0, 266.0);
    series
        .into_iter()
        .fold(figure, |figure, ((number, name), points)| {
            if (number, name) == LIMIT {
                return figure.line(name, Tone::Reference, points);
            }
            let figure = figure.line(name, Tone::of(number), points.clone());
            figure.points("", Tone::of(number), points)
        })
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
        if std::env::var_os("WARPFUSE_BLESS").is_some() {
            let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/golden/figure.svg");
            std::fs::write(golden, &found).expect("the golden file can be written");
        }
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
