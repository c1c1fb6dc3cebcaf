//! What is learnt, before anything is learnt: how targets lie.

use serde::Serialize;
use warpfuse_figures::{Axis, Bar, Figure, Shape, Tone};

use super::number::Unit;
use super::page::Fact;
use crate::learning::{Classes, Labels, Targets};
use crate::matrix::Element;
use crate::parallel;

/// Stretches of the histogram.
const STRETCHES: usize = 24;
/// Targets that one task adds.
const CHUNK: usize = 1 << 12;
/// Classes that are counted one by one, the most frequent ones.
const CLASSES: usize = 20;

/// How targets lie.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetFacts {
    /// Of a regression.
    Numbers {
        /// The least.
        min: f64,
        /// Their mean.
        mean: f64,
        /// The greatest.
        max: f64,
        /// Their standard deviation.
        deviation: f64,
        /// Ends of equally wide stretches from the least to the greatest.
        edges: Vec<f64>,
        /// Rows in each.
        counts: Vec<u64>,
    },
    /// Of a classification.
    Classes {
        /// How many classes there are.
        count: usize,
        /// The most frequent ones, the first of them first, and their rows.
        largest: Vec<(String, u64)>,
    },
}

impl TargetFacts {
    /// Of targets; `None` where there are none, or some are not finite.
    pub fn of<T: Element>(targets: Targets<'_, T>) -> Option<TargetFacts> {
        match targets {
            Targets::Numbers(y) => of_numbers(y),
            Targets::Labels(labels) => of_labels(labels),
        }
    }
}

fn of_numbers<T: Element>(y: &[T]) -> Option<TargetFacts> {
    let moments = parallel::map(y.len().div_ceil(CHUNK), |number| {
        Moments::of(parallel::chunk(y, CHUNK, number))
    });
    let all = moments.into_iter().reduce(Moments::with)?;
    if !(all.mean.is_finite() && all.squares.is_finite()) {
        return None;
    }
    let width = (all.max - all.min) / STRETCHES as f64;
    let counts = match width > 0.0 {
        true => by_stretch(y, all.min, width),
        false => Vec::new(),
    };
    Some(TargetFacts::Numbers {
        min: all.min,
        mean: all.mean,
        max: all.max,
        deviation: (all.squares / all.count).sqrt(),
        edges: (0..=counts.len())
            .map(|at| all.min + width * at as f64)
            .collect(),
        counts,
    })
}

/// Targets in each of the stretches, which begin at `min` and are `width` wide.
fn by_stretch<T: Element>(y: &[T], min: f64, width: f64) -> Vec<u64> {
    let per_width = width.recip();
    let place = |y: f64| (((y - min) * per_width) as usize).min(STRETCHES - 1);
    parallel::counts(y.len(), STRETCHES, |row| Some(place(y[row].to_f64())))
}

/// Moments of some targets.
struct Moments {
    count: f64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// Of a chunk, which the first-level cache keeps between the sum and the squares.
    fn of<T: Element>(y: &[T]) -> Moments {
        let count = y.len() as f64;
        let mean = folded(y, 0.0, |sum, y| sum + y, |a, b| a + b) / count;
        Moments {
            count,
            mean,
            squares: folded(y, 0.0, |sum, y| sum + (y - mean).powi(2), |a, b| a + b),
            min: folded(y, f64::INFINITY, f64::min, f64::min),
            max: folded(y, f64::NEG_INFINITY, f64::max, f64::max),
        }
    }

    /// Of both (Chan, Golub, LeVeque 1983).
    fn with(self, other: Moments) -> Moments {
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        Moments {
            count,
            mean: self.mean + apart * (other.count / count),
            squares: self.squares
                + other.squares
                + apart * apart * (self.count * (other.count / count)),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// `fold` over all values, of which every eighth has an accumulator of its own: one alone would wait for every addition.
fn folded<T: Element>(
    y: &[T],
    start: f64,
    fold: impl Fn(f64, f64) -> f64,
    join: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut lanes = [start; 8];
    let (eights, rest) = y.as_chunks::<8>();
    for eight in eights {
        for (lane, value) in lanes.iter_mut().zip(eight) {
            *lane = fold(*lane, value.to_f64());
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = fold(*lane, value.to_f64());
    }
    lanes.into_iter().fold(start, join)
}

fn of_labels(labels: &Labels) -> Option<TargetFacts> {
    let (classes, codes) = Classes::encode(labels).ok()?;
    let mut counts = vec![0_u64; classes.len()];
    for row in 0..codes.len() {
        counts[codes.at(row) as usize] += 1;
    }
    let mut ranked: Vec<(usize, u64)> = counts.into_iter().enumerate().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(CLASSES);
    Some(TargetFacts::Classes {
        count: classes.len(),
        largest: ranked
            .into_iter()
            .map(|(class, rows)| (classes.label(class), rows))
            .collect(),
    })
}

/// The lines on the targets.
pub(super) fn facts(target: &TargetFacts) -> Vec<Fact> {
    let plain = |name: &str, value: f64| Fact::number(name, value, Unit::Plain);
    match target {
        TargetFacts::Numbers {
            min,
            mean,
            max,
            deviation,
            ..
        } => vec![
            plain("least target", *min),
            plain("mean target", *mean),
            plain("greatest target", *max),
            plain("deviation of the target", *deviation),
        ],
        TargetFacts::Classes { count, .. } => vec![Fact::count("classes", *count as u64)],
    }
}

/// The figure of the targets; `None` where all are the same number.
pub(super) fn figure(target: &TargetFacts) -> Option<Figure> {
    match target {
        TargetFacts::Numbers { edges, counts, .. } => {
            let bar = |(ends, count): (&[f64], &u64)| Bar {
                from: ends[0],
                to: ends[1],
                value: *count as f64,
            };
            let bars: Vec<Bar> = edges.windows(2).zip(counts).map(bar).collect();
            (!bars.is_empty()).then(|| {
                Figure::new("target", "Targets")
                    .summary("How many rows have a target in each stretch.")
                    .x(Axis::linear("target"))
                    .y(Axis::linear("rows"))
                    .mark("", Tone::First, Shape::Bars(bars))
            })
        }
        TargetFacts::Classes { largest, .. } => {
            let names = largest.iter().map(|(class, _)| class.as_str());
            let rows: Vec<f64> = largest.iter().map(|(_, rows)| *rows as f64).collect();
            Some(
                Figure::new("target", "Rows of each class")
                    .summary("How many rows there are of each class, the most frequent first.")
                    .x(Axis::linear("rows"))
                    .y(Axis::categories("", names))
                    .bars("", Tone::First, &rows),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_in_stretches() {
        let y: Vec<f64> = (0..=24).map(f64::from).collect();
        let found = TargetFacts::of(Targets::Numbers(&y)).expect("facts");
        let TargetFacts::Numbers {
            min,
            mean,
            max,
            edges,
            counts,
            ..
        } = found
        else {
            panic!("numbers")
        };
        assert_eq!((min, mean, max, edges.len()), (0.0, 12.0, 24.0, 25));
        // The greatest lies in the last stretch.
        assert_eq!(
            (counts[0], counts[23], counts.iter().sum::<u64>()),
            (1, 2, 25)
        );
    }

    /// The deviation of numbers far from zero, over several chunks.
    #[test]
    fn chunks_have_the_moments_of_all() {
        let count = 2 * CHUNK + 5;
        let y: Vec<f64> = (0..count).map(|i| 1e9 + (i % 2) as f64).collect();
        let Some(TargetFacts::Numbers {
            mean, deviation, ..
        }) = TargetFacts::of(Targets::Numbers(&y))
        else {
            panic!("numbers")
        };
        let ones = (count / 2) as f64 / count as f64;
        assert!((mean - 1e9 - ones).abs() < 1e-6, "{mean}");
        let expected = (ones * (1.0 - ones)).sqrt();
        assert!(
            (deviation - expected).abs() < 1e-9,
            "{deviation} {expected}"
        );
    }

    #[test]
    fn equal_or_undefined_numbers_have_no_figure() {
        let same = TargetFacts::of(Targets::Numbers(&[2.0_f32, 2.0])).expect("facts");
        assert!(figure(&same).is_none());
        assert_eq!(TargetFacts::of(Targets::Numbers(&[1.0, f64::NAN])), None);
        assert_eq!(TargetFacts::of::<f64>(Targets::Numbers(&[])), None);
    }

    #[test]
    fn the_most_frequent_class_comes_first() {
        let labels = Labels::of_text(["b", "a", "b"].map(str::to_owned).into());
        let found = TargetFacts::of::<f64>(Targets::Labels(&labels));
        let largest = vec![("b".to_owned(), 2), ("a".to_owned(), 1)];
        assert_eq!(found, Some(TargetFacts::Classes { count: 2, largest }));
    }
}
