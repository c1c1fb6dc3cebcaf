//! Sparse filters from dense weights: which to keep.
//!
//! Source: S. Han et al., *Learning both weights and connections for efficient neural networks*, 2015 (magnitude);
//! A. Mishra et al., *Accelerating sparse deep neural networks*, 2021 (N:M).

use super::{FilterError, FilterShape, FilterValue, SparseFilters};

/// Keeps the share `density` of the weights that is largest in magnitude, rounded to whole weights; of equal ones the
/// first. A zero is never kept.
///
/// # Errors
/// [`FilterError::Pruning`] unless density is 0 to 1, and as [`SparseFilters::from_dense`].
///
/// ```
/// use warpfuse::matrix::filters::{FilterShape, magnitude};
/// let shape = FilterShape { filters: 1, channels: 1, height: 2, width: 2 };
/// let half = magnitude(shape, &[0.1_f32, -3.0, 2.0, -0.5], 0.5)?;
/// assert_eq!(half.to_dense(), [0.0, -3.0, 2.0, 0.0]);
/// # Ok::<(), warpfuse::matrix::filters::FilterError>(())
/// ```
pub fn magnitude<V: FilterValue>(
    shape: FilterShape,
    weights: &[V],
    density: f64,
) -> Result<SparseFilters<V>, FilterError> {
    if !(0.0..=1.0).contains(&density) {
        return Err(FilterError::Pruning {
            what: "the density",
            expected: "0 to 1",
            found: density,
        });
    }
    let kept = (density * weights.len() as f64).round() as usize;
    let keep = largest(weights, kept);
    SparseFilters::select(shape, weights, |i, weight| {
        keep[i] && weight != V::default()
    })
}

/// Keeps the `n` largest of every `m` neighbouring weights of a filter (channels outside, columns inside); the last of a
/// filter may be fewer than m.
///
/// # Errors
/// [`FilterError::Pruning`] unless 0 < n ≤ m, and as [`SparseFilters::from_dense`].
pub fn n_of_m<V: FilterValue>(
    shape: FilterShape,
    weights: &[V],
    (n, m): (usize, usize),
) -> Result<SparseFilters<V>, FilterError> {
    if n == 0 || n > m {
        return Err(FilterError::Pruning {
            what: "n of n:m",
            expected: "1 to m",
            found: n as f64,
        });
    }
    let of_filter = (shape.channels * shape.height * shape.width).max(1);
    let groups = weights
        .chunks(of_filter)
        .flat_map(|filter| filter.chunks(m));
    let keep: Vec<bool> = groups.flat_map(|group| largest(group, n)).collect();
    SparseFilters::select(shape, weights, |i, weight| {
        keep[i] && weight != V::default()
    })
}

/// Whether each weight is among the `count` largest.
fn largest<V: FilterValue>(weights: &[V], count: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| {
        let [a, b] = [a, b].map(|i| weights[*i].magnitude());
        b.total_cmp(&a)
    });
    let mut keep = vec![false; weights.len()];
    for i in order.into_iter().take(count) {
        keep[i] = true;
    }
    keep
}
