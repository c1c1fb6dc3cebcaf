//! Distances between points.

use super::Point;

/// Axes of coordinates, each as long as its points are apart at most.
pub(super) struct Scaled(Vec<f64>);

impl Scaled {
    pub(super) fn of(points: &[Point]) -> Scaled {
        let axes = points.iter().map(|point| point.coordinates.len());
        let spread = |axis: usize| {
            let values = points
                .iter()
                .filter_map(|point| point.coordinates.get(axis));
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(*x), high.max(*x))
            });
            if high > low { high - low } else { 1.0 }
        };
        Scaled((0..axes.max().unwrap_or(0)).map(spread).collect())
    }

    pub(super) fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let axes = a.iter().zip(b).zip(&self.0);
        axes.map(|((a, b), scale)| ((a - b) / scale).powi(2))
            .sum::<f64>()
            .sqrt()
    }
}
