//! Which point is tried next: pure functions of the points and of what became of others, so that they run on records too.

use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use super::evolution;
use super::space::Scaled;
use super::{Outcome, Point};

/// A kind of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// All points, in their order.
    Exhaustive,
    /// All points, in an order drawn from a seed.
    Random,
    /// The fastest by prediction first, predictions corrected by what was measured nearby.
    #[default]
    Guided,
    /// Children of the fastest so far.
    Evolutionary,
}

impl SearchKind {
    /// All kinds.
    pub const ALL: [SearchKind; 4] = [
        SearchKind::Exhaustive,
        SearchKind::Random,
        SearchKind::Guided,
        SearchKind::Evolutionary,
    ];

    /// Its name, as arguments have it.
    pub fn name(self) -> &'static str {
        match self {
            SearchKind::Exhaustive => "exhaustive",
            SearchKind::Random => "random",
            SearchKind::Guided => "guided",
            SearchKind::Evolutionary => "evolutionary",
        }
    }
}

/// A search over the points of one problem.
#[derive(Debug, Clone)]
pub struct Search {
    kind: SearchKind,
    seed: u64,
    /// The order of those that go through all.
    order: Vec<usize>,
}

impl Search {
    /// A search over this many points; `seed` counts for [`SearchKind::Random`] and [`SearchKind::Evolutionary`].
    pub fn new(kind: SearchKind, points: usize, seed: u64) -> Search {
        let mut order: Vec<usize> = (0..points).collect();
        if kind == SearchKind::Random {
            order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        }
        Search { kind, seed, order }
    }

    /// The next point; none when all have been tried. `tried` has an outcome for each point that was.
    pub fn next(&self, points: &[Point], tried: &[Option<Outcome>]) -> Option<usize> {
        let untried = self.order.iter().copied().filter(|&i| tried[i].is_none());
        match self.kind {
            SearchKind::Exhaustive | SearchKind::Random => untried.into_iter().next(),
            SearchKind::Evolutionary => evolution::next(points, tried, self.seed),
            SearchKind::Guided => {
                let model = Model::of(points, tried);
                let expected = untried.map(|i| (i, model.expected(&points[i])));
                expected.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
            }
        }
    }
}

/// Neighbours that correct a prediction.
const NEIGHBOURS: usize = 4;

/// What the times so far say of the others: the logarithm of measured over predicted, as the mean of the nearest neighbours
/// weighed by their closeness. Far from all that was measured it is the planner's prediction.
struct Model<'a> {
    scaled: Scaled,
    /// Coordinates, and the logarithm of measured over predicted.
    known: Vec<(&'a [f64], f64)>,
    /// What a point without a prediction counts as.
    unpredicted_us: f64,
}

impl<'a> Model<'a> {
    fn of(points: &'a [Point], tried: &[Option<Outcome>]) -> Model<'a> {
        let times = || tried.iter().flatten().filter_map(Outcome::median_us);
        let count = times().count().max(1) as f64;
        let unpredicted_us = (times().map(f64::ln).sum::<f64>() / count).exp();
        let ratio = |(point, outcome): (&'a Point, &Option<Outcome>)| {
            let measured = outcome.as_ref()?.median_us()?;
            let predicted = point.predicted_us.unwrap_or(unpredicted_us);
            Some((&point.coordinates[..], (measured / predicted).ln()))
        };
        Model {
            scaled: Scaled::of(points),
            known: points.iter().zip(tried).filter_map(ratio).collect(),
            unpredicted_us,
        }
    }

    /// Microseconds that a point is expected to take.
    fn expected(&self, point: &Point) -> f64 {
        let predicted = point.predicted_us.unwrap_or(self.unpredicted_us);
        let of =
            |&(at, ratio): &(&[f64], f64)| (self.scaled.distance(at, &point.coordinates), ratio);
        let mut near: Vec<(f64, f64)> = self.known.iter().map(of).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(NEIGHBOURS);
        // Beside the neighbours stands the prediction itself, as one at a distance of a quarter of all axes.
        let (mut weights, mut sum) = (4.0, 0.0);
        for (distance, ratio) in near {
            let weight = 1.0 / (distance + 0.05);
            weights += weight;
            sum += weight * ratio;
        }
        predicted * (sum / weights).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<Point> {
        let point = |i: usize| Point::new(i.to_string(), vec![i as f64]).predicted(10.0 + i as f64);
        (0..20).map(point).collect()
    }

    fn order(kind: SearchKind, seed: u64) -> Vec<usize> {
        let points = points();
        let search = Search::new(kind, points.len(), seed);
        let mut tried = vec![None; points.len()];
        let mut order = Vec::new();
        while let Some(next) = search.next(&points, &tried) {
            tried[next] = Some(Outcome::Timed {
                median_us: 5.0 + (next as f64 - 13.0).abs(),
            });
            order.push(next);
        }
        order
    }

    #[test]
    fn every_search_tries_every_point_once() {
        for kind in SearchKind::ALL {
            let mut all = order(kind, 3);
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>(), "{kind:?}");
        }
        assert_eq!(order(SearchKind::Random, 3), order(SearchKind::Random, 3));
        assert_ne!(order(SearchKind::Random, 3), order(SearchKind::Random, 4));
    }

    #[test]
    fn a_wrong_model_is_corrected_by_measurements() {
        // The model prefers point 0; the fastest is 13.
        let order = order(SearchKind::Guided, 0);
        assert_eq!(order[0], 0);
        let found = order.iter().position(|i| *i == 13);
        assert!(found < Some(15), "{order:?}");
    }

    /// Trials until the fastest of 144 points in the plane was found, without predictions.
    fn trials_in_the_plane(kind: SearchKind, seed: u64) -> usize {
        let point = |i: usize| Point::new(i.to_string(), vec![(i % 12) as f64, (i / 12) as f64]);
        let points: Vec<Point> = (0..144).map(point).collect();
        let us = |at: &[f64]| 5.0 + (at[0] - 9.0).abs() + (at[1] - 2.0).abs();
        let search = Search::new(kind, points.len(), seed);
        let mut tried = vec![None; points.len()];
        for trials in 1.. {
            let next = search.next(&points, &tried).expect("not all were tried");
            let median_us = us(&points[next].coordinates);
            if median_us == 5.0 {
                return trials;
            }
            tried[next] = Some(Outcome::Timed { median_us });
        }
        unreachable!("one of them is the fastest")
    }

    #[test]
    fn children_of_the_fastest_come_to_the_fastest() {
        let mean = |kind| {
            let sum: usize = (0..20).map(|seed| trials_in_the_plane(kind, seed)).sum();
            sum as f64 / 20.0
        };
        let evolutionary = mean(SearchKind::Evolutionary);
        let random = mean(SearchKind::Random);
        assert!(
            evolutionary < 0.7 * random,
            "{evolutionary} trials, {random} at random"
        );
        let order = || order(SearchKind::Evolutionary, 7);
        assert_eq!(order(), order());
    }

    #[test]
    fn what_failed_is_not_tried_again_and_teaches_nothing() {
        let points = points();
        let mut tried = vec![None; points.len()];
        tried[0] = Some(Outcome::Wrong { found: "0".into() });
        let search = Search::new(SearchKind::Guided, points.len(), 0);
        assert_eq!(search.next(&points, &tried), Some(1));
    }
}
