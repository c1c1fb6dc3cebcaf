//! Which kernel computes a layer, and what it needs to know of the filters.

use gpu_kernels::sparse_conv::Pieces;

use super::element::ConvElement;
use super::error::SparseConvError;
use crate::device::Device;
use crate::layout::sparse_conv::{ConvSteps, Taps, steps};
use crate::matrix::filters::{FilterValue, SparseFilters};
use crate::plan::limits::DeviceLimits;
use crate::plan::sparse_conv::{
    ConvPlan, ConvShape, ConvStrategy, ConvWork, plan, plan_with, tiles,
};

/// The planner's choice, or a plan for the wanted strategy, with the steps of tensor cores where they are possible.
pub(super) fn choose<E: ConvElement>(
    device: &Device,
    limits: &DeviceLimits,
    shape: &ConvShape,
    filters: &SparseFilters<E::Value>,
    (strategy, zeros): (Option<ConvStrategy>, u16),
) -> Result<(ConvPlan, Option<ConvSteps>), SparseConvError> {
    let steps = tensor_steps::<E>(shape, filters, limits);
    let work = ConvWork {
        zeros,
        ..work::<E>(filters, steps.as_ref())
    };
    let plan = match strategy {
        None => {
            let tuned = device.tuned();
            let tuned = tuned.and_then(|table| table.sparse_conv(E::NAME, (shape, &work), limits));
            tuned.unwrap_or_else(|| plan(shape, &work, limits))
        }
        Some(strategy) => {
            let unsuitable = || SparseConvError::Strategy {
                strategy,
                device: device.to_string(),
            };
            plan_with(strategy, shape, &work, limits).ok_or_else(unsuitable)?
        }
    };
    Ok((plan, steps))
}

/// The work of a layer, as its planner sees it; `zeros` as in [`Layer::zeros`](super::Layer::zeros).
pub fn work_of<E: ConvElement>(
    limits: &DeviceLimits,
    shape: &ConvShape,
    filters: &SparseFilters<E::Value>,
    zeros: u16,
) -> ConvWork {
    let steps = tensor_steps::<E>(shape, filters, limits);
    ConvWork {
        zeros,
        ..work::<E>(filters, steps.as_ref())
    }
}

/// Where filters begin, and the end of the last.
pub(super) fn starts_of_filters<V>(filters: &SparseFilters<V>) -> Vec<u32>
where
    V: FilterValue,
{
    let shape = filters.shape();
    let first = |filter: usize| filters.starts()[filter * shape.channels];
    (0..=shape.filters).map(first).collect()
}

fn tensor_steps<E: ConvElement>(
    shape: &ConvShape,
    filters: &SparseFilters<E::Value>,
    limits: &DeviceLimits,
) -> Option<ConvSteps> {
    let pieces = pieces::<E>(filters)?;
    let tiles = tiles(shape, pieces, limits)?;
    let taps = Taps {
        filters_per_group: shape.filters / shape.groups,
        dilation: shape.dilation,
    };
    Some(steps(filters, &taps, &tiles.geometry, (pieces, E::bits_of)))
}

/// How tensor cores take the numbers, if they do: weights that all fit into a byte as one.
fn pieces<E: ConvElement>(filters: &SparseFilters<E::Value>) -> Option<Pieces> {
    let of_a_byte = f64::from(i8::MIN)..=f64::from(i8::MAX);
    let mut weights = filters.nonzeros().iter().map(|n| n.value.to_f64());
    let inputs = E::PIECES as u32;
    let weights = match inputs {
        0 => return None,
        2 if weights.all(|weight| of_a_byte.contains(&weight)) => 1,
        pieces => pieces,
    };
    Some(Pieces {
        inputs,
        weights,
        bytes: E::PIECE_BYTES,
    })
}

fn work<E: ConvElement>(filters: &SparseFilters<E::Value>, steps: Option<&ConvSteps>) -> ConvWork {
    let starts = starts_of_filters(filters);
    let lengths = starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    ConvWork {
        nnz: filters.nnz(),
        longest: lengths.max().unwrap_or(0),
        integers: E::MOST.is_finite(),
        pieces: pieces::<E>(filters),
        bytes: size_of::<E::Value>(),
        sum_bytes: size_of::<E::Sum>(),
        finite: filters
            .nonzeros()
            .iter()
            .all(|n| n.value.to_f64().is_finite()),
        zeros: 0,
        steps: steps.map(|steps| steps.len() as u64),
    }
}
