//! Dense matrices of few or very long rows: two products, cut by columns.
//!
//! A group of rows that does not stay in cache between the dot product and the axpy has to be read
//! twice anyhow, and a matrix of few rows has too few of them to go round. So `p = X·y` is computed
//! from tiles of columns, and then every tile of columns gets its part of w from all rows, with no
//! copies of w at all.

use super::chunks;
use super::fused::{ChunkedRows, RowInput, finish_rows, for_each_piece};
use super::matrix::Dense;
use super::scalar::Scalar;
use super::scratch::Pool;
use super::terms::Terms;

/// Columns per tile: some pages of a row, so that prefetching gets under way.
const TILE_COLS: usize = 2048;

/// A group of four rows longer than this does not stay in the second-level cache.
const MAX_ROW_BYTES: usize = 128 * 1024;

/// Whether two products are the better plan.
pub fn is_wide<T>(x: &Dense<T>) -> bool {
    let few_rows = x.rows() < 512 && chunks::count(x.rows().saturating_mul(x.cols())) > 1;
    few_rows || x.cols().saturating_mul(size_of::<T>()) > MAX_ROW_BYTES
}

/// `w = α·Xᵀ·map(input) + β·z`.
pub fn transpose<T: Scalar>(
    x: &Dense<T>,
    input: RowInput<T>,
    terms: &Terms<T>,
    w: &mut [T],
    pool: &Pool,
) {
    let map = terms.row_map();
    let computed: Vec<T>;
    let p = match input {
        RowInput::Given(p) => p,
        RowInput::Product(y) => {
            computed = products(x, y).into_iter().map(T::narrow).collect();
            &computed
        }
    };
    let tiles = w
        .chunks_mut(TILE_COLS)
        .enumerate()
        .map(|(i, w)| (i * TILE_COLS, w))
        .collect();
    for_each_piece(tiles, |(start, w)| {
        let mut sums = vec![0.0; w.len()];
        let tile = x.columns(start, w.len());
        tile.accumulate(0..x.rows(), RowInput::Given(p), map, &mut sums, pool);
        terms.finish(&sums, start, w);
    });
}

/// `p = α·map(X·y) + β·z`.
pub fn project<T: Scalar>(x: &Dense<T>, y: &[T], terms: &Terms<T>, p: &mut [T]) {
    finish_rows(&mut products(x, y), 0, terms, p);
}

/// X·y: the tiles' products, added in the order of the tiles.
fn products<T: Scalar>(x: &Dense<T>, y: &[T]) -> Vec<f64> {
    let rows = x.rows();
    let tiles = x.cols().div_ceil(TILE_COLS).max(1);
    let mut partial = vec![0.0; tiles * rows];
    if rows == 0 {
        return partial;
    }
    let pieces = partial
        .chunks_mut(rows)
        .enumerate()
        .map(|(i, p)| (i * TILE_COLS, p))
        .collect();
    for_each_piece(pieces, |(first, products)| {
        let tile = x.columns(first, TILE_COLS);
        tile.multiply(0..rows, &y[first..first + tile.cols()], products);
    });
    let (sums, rest) = partial.split_at_mut(rows);
    for products in rest.chunks(rows) {
        sums.iter_mut()
            .zip(products)
            .for_each(|(sum, product)| *sum += product);
    }
    partial.truncate(rows);
    partial
}
