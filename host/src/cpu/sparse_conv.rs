//! Convolutional layers with sparse filters: a map of sums per filter, one row of inputs added for each nonzero.
//!
//! Every sum is the GPU's chain of multiply-adds by channel, row and column, hence has its bits.

use gpu_kernels::sparse_conv::{Accumulator, Element, Geometry, POOL_AVERAGE, POOL_NONE};
use rayon::prelude::*;

use super::dispatch::dispatch;

/// A nonzero: channel of the group, row, column, weight.
pub type Tap<E> = (u32, u32, u32, <E as Element>::Wide);

/// A layer's operands: numbers are widened one by one.
pub struct Layer<'a, E: Element> {
    /// Sizes.
    pub geometry: Geometry,
    /// Words of the inputs.
    pub x: &'a [E::Stored],
    /// Where the nonzeros of filters begin, and the end of the last.
    pub starts: &'a [u32],
    /// Nonzeros.
    pub taps: &'a [Tap<E>],
    /// One number per filter, or none.
    pub bias: Option<&'a [E::Acc]>,
}

/// Sums, bias, rectification, pooling.
///
/// # Panics
/// When a slice is too short for the geometry.
pub fn convolve<E: Element>(layer: &Layer<'_, E>, out: &mut [E::Acc]) {
    let g = &layer.geometry;
    let results = g.pool.out[0] as usize * g.pool.out[1] as usize;
    let maps = g.batch as usize * g.filters as usize;
    if results == 0 || maps == 0 {
        return;
    }
    let of_map = |map: usize| {
        let (image, filter) = (map as u32 / g.filters, map as u32 % g.filters);
        let mut sums = vec![E::Acc::ZERO; g.out[0] as usize * g.out[1] as usize];
        dispatch(
            #[inline(always)]
            || add_filter(layer, (image, filter), &mut sums),
        );
        finish(layer, filter, &mut sums);
        pooled(g, sums)
    };
    if g.to.col == 1 && g.to.channel as usize == results {
        let maps = out.par_chunks_mut(results).take(maps).enumerate();
        maps.for_each(|(map, out)| out.copy_from_slice(&of_map(map)));
        return;
    }
    let all: Vec<Vec<E::Acc>> = (0..maps).into_par_iter().map(of_map).collect();
    for (map, results) in all.into_iter().enumerate() {
        let (image, filter) = (map as u32 / g.filters, map as u32 % g.filters);
        for (i, result) in results.into_iter().enumerate() {
            let (row, col) = (i as u32 / g.pool.out[1], i as u32 % g.pool.out[1]);
            out[g.to.at(image, filter, row, col)] = result;
        }
    }
}

/// Outputs along one axis whose input at an offset lies inside.
#[inline(always)]
fn inside(g: &Geometry, axis: usize, offset: u32) -> std::ops::Range<u32> {
    let (stride, padding) = (g.stride[axis], g.padding[axis]);
    let first = padding.saturating_sub(offset).div_ceil(stride);
    let end = (g.size[axis] + padding)
        .saturating_sub(offset)
        .div_ceil(stride);
    first..end.min(g.out[axis])
}

#[inline(always)]
fn add_filter<E: Element>(layer: &Layer<'_, E>, (image, filter): (u32, u32), sums: &mut [E::Acc]) {
    let g = &layer.geometry;
    let group = filter / g.out_per_group * g.in_per_group;
    let range = layer.starts[filter as usize] as usize..layer.starts[filter as usize + 1] as usize;
    for (channel, row, col, weight) in &layer.taps[range] {
        let (down, right) = (row * g.dilation[0], col * g.dilation[1]);
        let cols = inside(g, 1, right);
        if cols.is_empty() {
            continue;
        }
        for y in inside(g, 0, down) {
            let row = y * g.stride[0] + down - g.padding[0];
            let col = cols.start * g.stride[1] + right - g.padding[1];
            let mut at = g.from.at(image, group + channel, row, col);
            let step = (g.stride[1] * g.from.col) as usize;
            let sums = &mut sums[(y * g.out[1]) as usize..][cols.start as usize..cols.end as usize];
            for sum in sums {
                let word = layer.x[at / E::PER_WORD as usize];
                let x = E::widen(word, at as u32 % E::PER_WORD);
                *sum = E::multiply_add(x, *weight, *sum);
                at += step;
            }
        }
    }
}

fn finish<E: Element>(layer: &Layer<'_, E>, filter: u32, sums: &mut [E::Acc]) {
    for sum in sums {
        if let Some(bias) = layer.bias {
            *sum = sum.plus(bias[filter as usize]);
        }
        if layer.geometry.rectify != 0 {
            *sum = sum.rectified();
        }
    }
}

fn pooled<A: Accumulator>(g: &Geometry, sums: Vec<A>) -> Vec<A> {
    if g.pool.kind == POOL_NONE {
        return sums;
    }
    let [rows, cols] = g.pool.out;
    let window = |row: u32, col: u32| {
        let at = move |i: u32, j: u32| {
            let (y, x) = (row * g.pool.stride[0] + i, col * g.pool.stride[1] + j);
            (y * g.out[1] + x) as usize
        };
        (0..g.pool.window[0]).flat_map(move |i| (0..g.pool.window[1]).map(move |j| at(i, j)))
    };
    let result = |cell: u32| {
        let mut values = window(cell / cols, cell % cols).map(|at| sums[at]);
        let first = values.next().expect("windows are not empty");
        if g.pool.kind == POOL_AVERAGE {
            let count = g.pool.window[0] * g.pool.window[1];
            values.fold(first, |sum, value| sum.plus(value)).over(count)
        } else {
            values.fold(first, |most, value| most.larger(value))
        }
    };
    (0..rows * cols).map(result).collect()
}
