//! Segments and columns.

use std::ops::Range;

use gpu_kernels::reduce::{Element, Reduction, Total};
use rayon::prelude::*;

use super::{BLOCK, WARP, fold_warp, total_of_threads};

/// Elements from which on segments are spread over the cores.
const MANY: usize = 64 * 1024;

/// ⊕ lift(x) of each segment, as a team of `team` threads does it.
///
/// # Panics
/// When a segment reaches beyond x.
pub fn segments<T: Element, R: Reduction<T>>(
    reduction: R,
    x: &[T],
    count: usize,
    bounds: impl Fn(usize) -> Range<usize> + Sync,
    team: usize,
) -> Vec<R::Total> {
    let of_segment = |s: usize| {
        let values = &x[bounds(s)];
        let Some(&pivot) = values.first() else {
            return R::Total::NONE;
        };
        let at = |i: usize| values[i];
        let own = |thread| (thread, team, values.len());
        let totals = (0..team).map(|t| total_of_thread(reduction, own(t), pivot, 0, at));
        total_of_threads(totals.collect())
    };
    if x.len() < MANY {
        (0..count).map(of_segment).collect()
    } else {
        (0..count).into_par_iter().map(of_segment).collect()
    }
}

/// What a thread makes of values `first`, `first + stride`, … below `count`.
fn total_of_thread<T: Element, R: Reduction<T>>(
    reduction: R,
    (first, stride, count): (usize, usize, usize),
    pivot: T,
    base: usize,
    at: impl Fn(usize) -> T,
) -> R::Total {
    if first >= count {
        return R::Total::NONE;
    }
    let mut running = reduction.start();
    for i in (first..count).step_by(stride) {
        reduction.step(&mut running, at(i), pivot, (base + i) as u64);
    }
    reduction.finish(running, pivot)
}

/// A row-major matrix and how its columns are cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnShape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// From the start of a row to that of the next.
    pub pitch: usize,
    /// Columns of a tile.
    pub tile: usize,
    /// Rows of a chunk.
    pub rows_per_chunk: usize,
}

impl ColumnShape {
    /// Threads of a column.
    fn slots(&self) -> usize {
        BLOCK / self.tile
    }
}

/// ⊕ lift(x) of each column.
///
/// # Panics
/// When the matrix reaches beyond x.
pub fn columns<T: Element, R: Reduction<T>>(
    reduction: R,
    x: &[T],
    shape: ColumnShape,
) -> Vec<R::Total> {
    let starts = (0..shape.rows).step_by(shape.rows_per_chunk);
    let chunks: Vec<Vec<R::Total>> = starts
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|start| totals_of_rows(reduction, x, shape, start))
        .collect();
    let of_column = |column: usize| {
        let mut slots = vec![R::Total::NONE; shape.slots()];
        for (i, chunk) in chunks.iter().enumerate() {
            let slot = &mut slots[i % shape.slots()];
            *slot = slot.with(chunk[column]);
        }
        total_of_column(&slots, shape.tile)
    };
    (0..shape.cols).map(of_column).collect()
}

/// The totals of all columns over one chunk of rows.
fn totals_of_rows<T: Element, R: Reduction<T>>(
    reduction: R,
    x: &[T],
    shape: ColumnShape,
    start: usize,
) -> Vec<R::Total> {
    let (cols, slots) = (shape.cols, shape.slots());
    let rows = shape.rows_per_chunk.min(shape.rows - start);
    let row = |i: usize| &x[(start + i) * shape.pitch..][..cols];
    let pivots = row(0);
    let mut running = vec![reduction.start(); slots * cols];
    for i in 0..rows {
        let of_slot = &mut running[i % slots * cols..][..cols];
        for ((running, &value), &pivot) in of_slot.iter_mut().zip(row(i)).zip(pivots) {
            reduction.step(running, value, pivot, (start + i) as u64);
        }
    }
    let finished = |slot: usize, column: usize| {
        if slot < rows {
            reduction.finish(running[slot * cols + column], pivots[column])
        } else {
            R::Total::NONE
        }
    };
    let of_column = |column| {
        let totals: Vec<R::Total> = (0..slots).map(|slot| finished(slot, column)).collect();
        total_of_column(&totals, shape.tile)
    };
    (0..cols).map(of_column).collect()
}

/// One slot per thread of a column: those of a warp by halves, then warps.
fn total_of_column<R: Total>(slots: &[R], tile: usize) -> R {
    let of_warp = WARP / tile;
    let mut warps = slots.chunks(of_warp).map(|warp| {
        let mut lanes = vec![R::NONE; WARP];
        for (i, total) in warp.iter().enumerate() {
            lanes[i * tile] = *total;
        }
        fold_warp(&mut lanes, tile);
        lanes[0]
    });
    let first = warps.next().unwrap_or(R::NONE);
    warps.fold(first, R::with)
}
