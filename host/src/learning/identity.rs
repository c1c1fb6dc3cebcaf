//! Which fit a checkpoint is of: estimator, data, and what else is given.

use serde::Serialize;

use super::checkpoint::{Checkpoint, Identity};
use super::options::FitOptions;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::{FitError, Labels, ResidentDataset, Targets};
use crate::device::Device;
use crate::device::group::Group;
use crate::matrix::{Element, Storage};
use crate::ops::{Number, OpError};
use crate::parallel;
use crate::parallel::checksum::{checksum, combine};

/// Rows that one task takes in.
const ROWS: usize = 1 << 12;

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

/// Does `work`, over X alone, with the checkpoint. `x` are the rows of this member of a group; `facts` adds
/// what is computed, and with which options.
///
/// # Errors
/// Those of `work`, and [`FitError::Checkpoint`].
pub(super) fn with_checkpoint_of<T: Number, R>(
    checkpoint: &Checkpoint,
    (device, x): (&Device, &Storage<'_, T>),
    facts: impl FnOnce(&mut Identity),
    work: impl FnOnce() -> Result<R, FitError>,
) -> Result<R, FitError> {
    let group = device.group().filter(|group: &&Group| !group.is_alone());
    let mut identity = Identity::default();
    identity.fact("version of warpfuse", env!("CARGO_PKG_VERSION"));
    identity.fact("element type", format_args!("{:?}", T::DTYPE));
    facts(&mut identity);
    let mut sums = [x.rows() as u64, of_rows(x)];
    if let Some(group) = group {
        group.sum(&mut sums).map_err(OpError::from)?;
    }
    let [rows, digest] = sums;
    identity.fact("rows", rows);
    identity.fact("columns", x.cols());
    identity.fact("a digest of the rows of X", format_args!("{digest:016x}"));
    super::checkpoint::during((checkpoint, group), identity, work)
}

/// Does `work`, a cross-validation over this data, with the checkpoint if there is one; `facts` adds what is compared.
///
/// # Errors
/// Those of `work`, and [`FitError::Checkpoint`].
pub(super) fn with_checkpoint_of_folds<T: Number, R>(
    checkpoint: Option<&Checkpoint>,
    (data, targets): (&ResidentDataset<T>, &Targets<'_, T>),
    facts: impl FnOnce(&mut Identity),
    work: impl FnOnce() -> Result<R, FitError>,
) -> Result<R, FitError> {
    let Some(checkpoint) = checkpoint else {
        return work();
    };
    let matrix = data.matrix();
    let group = matrix.device().group();
    let group = group.filter(|group: &&Group| !group.is_alone());
    let mut identity = Identity::default();
    identity.fact("version of warpfuse", env!("CARGO_PKG_VERSION"));
    identity.fact("element type", format_args!("{:?}", T::DTYPE));
    facts(&mut identity);
    identity.fact("rows", matrix.rows());
    identity.fact("columns", matrix.cols());
    identity.fact("reproducible sums", matrix.is_reproducible());
    let targets = match targets {
        Targets::Numbers(of) => digest(of.iter().map(|target| Element::to_f64(*target))),
        Targets::Labels(Labels::Numbers(of)) => digest(of.iter().copied()),
        Targets::Labels(Labels::Text(of)) => digest_of_bytes(of.join("\n").as_bytes()),
    };
    identity.fact("a digest of the targets", targets);
    let squares = weighted(&data.moments().columns.sum_of_squares);
    identity.sum("a sum over the squares of X", squares);
    super::checkpoint::during((checkpoint, group), identity, work)
}

/// Of bytes in order.
pub(super) fn digest_of_bytes(bytes: &[u8]) -> String {
    format!("{:016x}", checksum(bytes))
}

/// A sum in which each column counts otherwise.
fn weighted(of: &[f64]) -> f64 {
    let each = of.iter().enumerate();
    each.map(|(j, sum)| sum * (1.0 + (j % 97) as f64)).sum()
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
    if let Some(seen) = data.seen_by(options) {
        identity.fact("columns with entries, which alone are fitted", seen.count());
    }
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
    let moments = &data.moments().columns;
    let squares = weighted(&moments.sum_of_squares);
    identity.sum("a sum over the squares of X", squares);
    identity
}

fn of_targets<T: Number>(targets: &RowTargets<'_, T>) -> String {
    match targets {
        RowTargets::Coded { codes, .. } => digest((0..codes.len()).map(|row| codes.at(row) as f64)),
        _ => digest((0..targets.len()).map(|row| Element::to_f64(targets.at(row)))),
    }
}

/// Of rows, whatever their order and whoever has them.
fn of_rows<T: Number>(x: &Storage<'_, T>) -> u64 {
    let entry = |sum, column: usize, value: T| match Element::to_f64(value) {
        0.0 => sum,
        value => combine(combine(sum, column as u64), value.to_bits()),
    };
    let row = |i: usize| match x {
        Storage::Sparse(x) => {
            let row = x.outer_view(i);
            row.map_or(0, |row| {
                row.iter().fold(0, |sum, (j, &value)| entry(sum, j, value))
            })
        }
        Storage::Dense(x) => {
            let row = x.row(i);
            row.iter()
                .enumerate()
                .fold(0, |sum, (j, &value)| entry(sum, j, value))
        }
    };
    // Rows that are equal count as often as they are there.
    let of = |block: usize| {
        let rows = block * ROWS..x.rows().min((block + 1) * ROWS);
        rows.fold(0_u64, |sum, i| sum.wrapping_add(combine(row(i), 1)))
    };
    let blocks = parallel::map(x.rows().div_ceil(ROWS), of);
    blocks.into_iter().fold(0, u64::wrapping_add)
}

/// Of numbers in order.
pub(super) fn digest(numbers: impl IntoIterator<Item = f64>) -> String {
    let numbers = numbers.into_iter();
    let sum = numbers.fold(0, |sum, number| combine(sum, number.to_bits()));
    format!("{:016x}", combine(sum, 0))
}
