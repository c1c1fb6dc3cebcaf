//! What a layer does beside convolving, and whether its integer sums are exact.

use super::element::{ConvElement, ConvSum};
use super::error::SparseConvError;
use crate::matrix::filters::{FilterValue, SparseFilters};
use crate::plan::sparse_conv::{ConvShape, ConvStrategy, PoolKind};

/// What follows a convolution, beside pooling, and who chooses the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layer<'a, S> {
    /// One number per filter.
    pub bias: Option<&'a [S]>,
    /// Whether negative sums become 0 before pooling.
    pub rectify: bool,
    /// Inputs of a thousand that are expected to be zero, as after max(0, ·); 0 where nobody knows. The planner uses it; results
    /// do not depend on it.
    pub zeros: u16,
    /// A strategy instead of the planner's.
    pub strategy: Option<ConvStrategy>,
}

/// Whether all sums are exact: (Σ |w| · max |x| + |bias|), times the window where a mean is taken, within the type.
pub(super) fn check_bound<E: ConvElement>(
    shape: &ConvShape,
    filters: &SparseFilters<E::Value>,
    bias: Option<&[E::Sum]>,
) -> Result<(), SparseConvError> {
    if E::Sum::MOST.is_infinite() {
        return Ok(());
    }
    let window = match shape.pool {
        Some(pool) if pool.kind == PoolKind::Average => pool.window[0] * pool.window[1],
        _ => 1,
    };
    for filter in 0..shape.filters {
        let sum: f64 = filters
            .of_filter(filter)
            .map(|(_, n)| n.value.magnitude())
            .sum();
        let bias = bias.map_or(0.0, |bias| bias[filter].to_f64().abs());
        let bound = (sum * E::MOST + bias) * window as f64;
        // Not `>`: exact in f64 up to 2⁵³, and what is beyond that is compared with 2⁶³.
        if bound > E::Sum::MOST {
            return Err(SparseConvError::Overflow {
                filter,
                bound,
                bits: 8 * size_of::<E::Sum>() as u32,
                limit: E::Sum::MOST,
            });
        }
    }
    Ok(())
}
