//! Figures of a family: times over sizes, shares of the limit, predictions.

use std::collections::BTreeMap;

use warpfuse_figures::{Axis, Figure, Shape as Drawn, Tone};

use super::group::{Group, median};
use super::record::{Measured, Outcome, Record};

/// Bars of a figure.
const BARS: usize = 20;

/// Points (size, picoseconds per element).
type Points = Vec<(f64, f64)>;

/// Lower-case letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// Times over sizes.
pub fn times(stem: &str, group: &Group<'_>) -> Figure {
    let size = group.size();
    let (mut ours, mut limit) = (Points::new(), Points::new());
    let mut peers = BTreeMap::<&str, Points>::new();
    for (shape, one) in group.shapes.iter().zip(&group.measured) {
        let Some(x) = size.of(shape) else { continue };
        let picoseconds = |us: f64| 1e6 * us / shape.elements();
        ours.push((x, picoseconds(one.median_us)));
        limit.extend(
            one.ceiling_gbs
                .map(|gbs| (x, picoseconds(one.bytes / gbs / 1e3))),
        );
        for (peer, us) in &one.peers {
            peers.entry(peer).or_default().push((x, picoseconds(*us)));
        }
    }
    let name = slug(&format!("{stem}-{}", group.name.join("-")));
    let figure = Figure::new(name, group.title())
        .summary("Median time of each element over sizes, beside peers and the limit.")
        .x(Axis::log(size.name()))
        .y(Axis::log("ps per element"));
    let figure = curve(figure, "limit of the memory", Tone::Reference, limit);
    let figure = curve(figure, "warpfuse", Tone::First, ours);
    let numbered = peers.into_iter().enumerate();
    numbered.fold(figure, |figure, (number, (peer, points))| {
        curve(
            figure,
            &peer.replace('_', " "),
            Tone::of(number + 1),
            points,
        )
    })
}

/// Points, joined where there is one for each size.
fn curve(figure: Figure, name: &str, tone: Tone, mut points: Points) -> Figure {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup();
    let is_curve = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    match (points.is_empty(), tone) {
        (true, _) => figure,
        (_, Tone::Reference) => figure.line(name, tone, points),
        _ if is_curve => figure
            .line(name, tone, points.clone())
            .points("", tone, points),
        _ => figure.points(name, tone, points),
    }
}

/// Times of launches beside what the planner predicted.
pub fn predictions(stem: &str, records: &[&Record]) -> Option<Figure> {
    let measured = records.iter().filter_map(|record| match &record.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Failed { .. } => None,
    });
    let point = |one: &Measured| Some((*one.details.get("predicted_us")?, one.median_us));
    let points: Points = measured.filter_map(point).collect();
    let least = points
        .iter()
        .map(|point| point.0)
        .fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    (!points.is_empty()).then(|| {
        Figure::new(
            format!("{stem}-predictions"),
            "Predicted and measured times",
        )
        .summary("The measured time of each launch that was chosen, by its prediction.")
        .x(Axis::log("predicted, µs"))
        .y(Axis::log("measured, µs"))
        .line(
            "as predicted",
            Tone::Reference,
            vec![(least, least), (most, most)],
        )
        .points("launches", Tone::First, points)
    })
}

/// Shares of the limit, of works that were measured at one size; times where there is no limit.
pub fn bars(stem: &str, groups: &[Group<'_>]) -> Option<Figure> {
    let of = |value: fn(&Group<'_>) -> Option<f64>| -> Vec<(String, f64)> {
        let found = groups
            .iter()
            .filter_map(|group| Some((group.title(), value(group)?)));
        found.take(BARS).collect()
    };
    let shares = of(|group| Some(100.0 * group.share()?));
    let (label, found) = match shares.is_empty() {
        false => ("% of the limit", shares),
        true => (
            "µs",
            of(|group| median(group.measured.iter().map(|one| one.median_us).collect())),
        ),
    };
    if found.is_empty() {
        return None;
    }
    let (names, values): (Vec<String>, Vec<f64>) = found.into_iter().unzip();
    let figure = Figure::new(stem, format!("Cases: {label}"))
        .summary("The result of each case.")
        .x(Axis::linear(label))
        .y(Axis::categories("", names))
        .bars("", Tone::First, &values);
    Some(match label {
        "µs" => figure,
        _ => figure.mark("limit", Tone::Reference, Drawn::Rule(100.0)),
    })
}
