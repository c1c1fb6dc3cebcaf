//! Groups of rows, and sums over them.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::ops::clear_upper;
use crate::parallel;

/// Elements of a block that is written out for one product: a share of a second-level cache.
pub(super) const BLOCK: usize = 1 << 15;
/// Multiplications that are worth a thread of their own.
pub(super) const MIN_WORK: usize = 1 << 20;
/// Groups of rows at most, each with sums of its own.
pub(super) const MOST_GROUPS: usize = 16;

/// What `f` makes of groups of rows, in order; each row takes `per_row` multiplications.
pub(super) fn grouped<R: Send>(
    rows: usize,
    per_row: usize,
    f: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    cut(rows, rows.saturating_mul(per_row) / MIN_WORK, f)
}

/// Rows of a group, each of which takes `per_row` multiplications, of this many groups at most.
pub(super) fn rows_of_group(rows: usize, per_row: usize, most: usize) -> usize {
    let groups = rows.saturating_mul(per_row) / MIN_WORK;
    rows.div_ceil(groups.clamp(1, most)).max(1)
}

/// What `f` makes of each of about `groups` groups of rows, in order.
pub(super) fn cut<R: Send>(
    rows: usize,
    groups: usize,
    f: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let groups = groups.clamp(1, MOST_GROUPS);
    if groups == 1 {
        return vec![f(0..rows)];
    }
    let step = rows.div_ceil(groups);
    let range = |group: usize| (group * step).min(rows)..((group + 1) * step).min(rows);
    parallel::map(groups, |group| f(range(group)))
}

/// m × `width` elements, row by row, that `write` fills some rows at a time.
pub(super) fn written(
    rows: usize,
    width: usize,
    write: impl Fn(Range<usize>, &mut [f64]) + Sync,
) -> Vec<f64> {
    let mut values = vec![0.0; rows * width];
    if rows * width < MIN_WORK {
        write(0..rows, &mut values);
        return values;
    }
    let step = (BLOCK / width.max(1)).max(1);
    let chunks = values.chunks_mut(step * width);
    parallel::for_each_item(chunks, |chunk, out| {
        let start = chunk * step;
        write(start..start + out.len() / width, out);
    });
    values
}

/// The sum of lists of equal length.
pub(super) fn added(lists: Vec<Vec<f64>>) -> Vec<f64> {
    let mut lists = lists.into_iter();
    let mut total = lists.next().unwrap_or_default();
    for list in lists {
        total.iter_mut().zip(list).for_each(|(a, b)| *a += b);
    }
    total
}

/// Adds the lower triangle of `by`·`block`ᵀ·`scaled`.
pub(super) fn add_gram(
    sum: &mut Mat<f64>,
    block: MatRef<'_, f64>,
    scaled: MatRef<'_, f64>,
    by: f64,
) {
    triangular::matmul(
        sum.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Add,
        block.transpose(),
        BlockStructure::Rectangular,
        scaled,
        BlockStructure::Rectangular,
        by,
        Par::Seq,
    );
    clear_upper();
}

/// `a`·`b`, stored or added.
pub(super) fn multiply(
    to: MatMut<'_, f64>,
    accumulate: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
) {
    matmul(to, accumulate, a, b, 1.0, Par::Seq);
    clear_upper();
}

/// Fills the upper triangle from the lower.
pub(super) fn mirror(matrix: &mut Mat<f64>) {
    for j in 0..matrix.ncols() {
        for i in 0..j {
            matrix[(i, j)] = matrix[(j, i)];
        }
    }
}
