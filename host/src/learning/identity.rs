//! Which fit a checkpoint is of: estimator, data, and what else is given.

use serde::Serialize;

use super::checkpoint::Identity;
use super::options::FitOptions;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::{FitError, ResidentDataset};
use crate::device::group::Group;
use crate::ops::Number;
use crate::parallel::checksum::combine;

/// Does `work`, a fit of this estimator to this data, with the checkpoint of `options`, if there is one.
///
/// # Errors
/// Those of `work`, and [`FitError::Checkpoint`].
pub(super) fn with_checkpoint<T: Number, R>(
    params: &impl Serialize,
    (data, targets, weights): (&ResidentDataset<T>, &RowTargets<'_, T>, &SampleWeights),
    options: FitOptions<'_>,
    work: impl FnOnce(FitOptions<'_>) -> Result<R, FitError>,
) -> Result<R, FitError> {
    let Some(checkpoint) = options.checkpoint else {
        return work(options);
    };
    let group = data.matrix().device().group();
    let group = group.filter(|group: &&Group| !group.is_alone());
    let identity = of(params, (data, targets, weights), &options);
    super::checkpoint::during((checkpoint, group), identity, || work(options))
}

fn of<T: Number>(
    params: &impl Serialize,
    (data, targets, weights): (&ResidentDataset<T>, &RowTargets<'_, T>, &SampleWeights),
    options: &FitOptions<'_>,
) -> Identity {
    let (mut identity, matrix) = (Identity::default(), data.matrix());
    identity.fact("version of warpfuse", env!("CARGO_PKG_VERSION"));
    identity.options(params);
    identity.fact("element type", format_args!("{:?}", T::DTYPE));
    identity.fact("rows", matrix.rows());
    identity.fact("columns", matrix.cols());
    identity.fact("reproducible sums", matrix.is_reproducible());
    identity.fact("a digest of the targets", of_targets(targets));
    let weights = match weights {
        SampleWeights::Even { each, .. } => digest([*each]),
        SampleWeights::Each(weights) => digest(weights.iter().copied()),
    };
    identity.fact("a digest of the weights", weights);
    let each = |list: &[f64]| digest(list.iter().copied());
    let flags = |list: &[bool]| digest(list.iter().map(|flag| f64::from(u8::from(*flag))));
    let start = |(coef, intercepts): (&[Vec<f64>], &[f64])| {
        let coef = coef.iter().flatten();
        digest(coef.chain(intercepts).copied())
    };
    let given = [
        ("a digest of the offsets", options.offset.map(each)),
        (
            "a digest of the penalty factors",
            options.penalty_factors.map(each),
        ),
        (
            "a digest of the columns that take part",
            options.columns.map(flags),
        ),
        ("a digest of the start", options.start.map(start)),
    ];
    for (what, digest) in given {
        if let Some(digest) = digest {
            identity.fact(what, digest);
        }
    }
    if let Some(patience) = options.patience {
        identity.fact("patience", format_args!("{patience:?}"));
    }
    // Sums in which each column counts otherwise.
    let moments = &data.moments().columns;
    let sum = |of: &[f64]| -> f64 {
        let each = of.iter().enumerate();
        each.map(|(j, sum)| sum * (1.0 + (j % 97) as f64)).sum()
    };
    identity.sum("a sum over the squares of X", sum(&moments.sum_of_squares));
    identity
}

fn of_targets<T: Number>(targets: &RowTargets<'_, T>) -> String {
    match targets {
        RowTargets::Coded { codes, .. } => digest((0..codes.len()).map(|row| codes.at(row) as f64)),
        _ => digest((0..targets.len()).map(|row| crate::matrix::Element::to_f64(targets.at(row)))),
    }
}

/// Of numbers in order.
fn digest(numbers: impl IntoIterator<Item = f64>) -> String {
    let numbers = numbers.into_iter();
    let sum = numbers.fold(0, |sum, number| combine(sum, number.to_bits()));
    format!("{:016x}", combine(sum, 0))
}
