//! Any shape, any type: a warp per filter and run of outputs, four sums of a thread, pooling fused.
//!
//! Formula and order: nonzeros of a filter by channel, row and column; each is read once for four outputs of every
//! lane. Lanes have neighbouring outputs, so that what they read of a channel is neighbouring too, and stays in L1 for the
//! next filters: neighbouring warps take neighbouring filters of the same outputs. No shared memory.

use super::args::{POOL_NONE, SparseConvArgs, finished, value_at};
use super::element::{Accumulator, Element};
use super::pool::Window;
use crate::cta::{Cache, Cta, WARP};
use crate::verbs::{global_warp, global_warps, lane};

/// Sums of a thread.
const SUMS: usize = 4;

/// The input that tap (0, 0) of an output meets; far outside where there is no output.
#[derive(Clone, Copy)]
struct Corner {
    row: i32,
    col: i32,
}

impl Corner {
    const NOWHERE: Corner = Corner {
        row: i32::MIN / 2,
        col: 0,
    };

    #[inline(always)]
    fn of<E: Element>(args: &SparseConvArgs<'_, E>, row: u32, col: u32) -> Corner {
        let g = &args.geometry;
        Corner {
            row: (row * g.stride[0]) as i32 - g.padding[0] as i32,
            col: (col * g.stride[1]) as i32 - g.padding[1] as i32,
        }
    }
}

/// See the head of the file.
pub fn direct<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let g = &args.geometry;
    let apart = g.pool.kind == POOL_NONE;
    let (cells, run) = if apart {
        (g.out[0] * g.out[1], WARP * SUMS as u32)
    } else {
        (g.pool.out[0] * g.pool.out[1], WARP)
    };
    let runs = cells.div_ceil(run);
    let mut item = global_warp(cta);
    while item < g.batch * runs * g.filters {
        let (rest, filter) = (item / g.filters, item % g.filters);
        let (image, first) = (rest / runs, rest % runs * run + lane(cta));
        if apart {
            plain(cta, args, (image, filter), first);
        } else {
            pooled(cta, args, (image, filter), first);
        }
        item += global_warps(cta);
    }
}

/// Four outputs, a warp apart.
#[inline(always)]
#[track_caller]
fn plain<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (image, filter): (u32, u32),
    first: u32,
) {
    let g = &args.geometry;
    let cells = g.out[0] * g.out[1];
    let place = |j: usize| {
        let cell = first + j as u32 * WARP;
        (cell < cells).then_some((cell / g.out[1], cell % g.out[1]))
    };
    let corners = core::array::from_fn(|j| match place(j) {
        Some((row, col)) => Corner::of(args, row, col),
        None => Corner::NOWHERE,
    });
    let sums = sums(cta, args, (image, filter), &corners);
    for (j, sum) in sums.into_iter().enumerate() {
        if let Some((row, col)) = place(j) {
            let to = g.to.at(image, filter, row, col);
            cta.write(args.out, to, finished(cta, args, filter, sum));
        }
    }
}

/// One result of pooling, four outputs of its window at a time.
#[inline(always)]
#[track_caller]
fn pooled<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (image, filter): (u32, u32),
    cell: u32,
) {
    let g = &args.geometry;
    let there = cell < g.pool.out[0] * g.pool.out[1];
    let (row, col) = (cell / g.pool.out[1], cell % g.pool.out[1]);
    let [rows, cols] = g.pool.window;
    let mut window = Window::new(g.pool.kind);
    let mut i = 0;
    while i < rows * cols {
        let corners = core::array::from_fn(|j| {
            let (y, x) = ((i + j as u32) / cols, (i + j as u32) % cols);
            if there && y < rows {
                let at = (row * g.pool.stride[0] + y, col * g.pool.stride[1] + x);
                Corner::of(args, at.0, at.1)
            } else {
                Corner::NOWHERE
            }
        });
        let sums = sums(cta, args, (image, filter), &corners);
        for (j, sum) in sums.into_iter().enumerate() {
            if i + (j as u32) < rows * cols {
                window.take(finished(cta, args, filter, sum));
            }
        }
        i += SUMS as u32;
    }
    if there {
        let to = g.to.at(image, filter, row, col);
        cta.write(args.out, to, window.result());
    }
}

/// Four outputs of one filter.
#[inline(always)]
#[track_caller]
fn sums<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (image, filter): (u32, u32),
    corners: &[Corner; SUMS],
) -> [E::Acc; SUMS] {
    let g = &args.geometry;
    let channel = filter / g.out_per_group * g.in_per_group;
    let mut sums = [E::Acc::ZERO; SUMS];
    let end = cta.load(args.starts, filter as usize + 1, Cache::Keep);
    for k in cta.load(args.starts, filter as usize, Cache::Keep)..end {
        let place = cta.load(args.places, k as usize, Cache::Keep);
        let weight = cta.load(args.values, k as usize, Cache::Keep);
        let down = ((place >> 4 & 15) * g.dilation[0]) as i32;
        let right = ((place & 15) * g.dilation[1]) as i32;
        let base = g.from.at(image, channel + (place >> 8), 0, 0) as u32;
        for (corner, sum) in corners.iter().zip(&mut sums) {
            let (row, col) = ((corner.row + down) as u32, (corner.col + right) as u32);
            if row < g.size[0] && col < g.size[1] {
                let at = base + row * g.from.row + col * g.from.col;
                *sum = E::multiply_add(value_at(cta, args, at as usize), weight, *sum);
            }
        }
    }
    sums
}
