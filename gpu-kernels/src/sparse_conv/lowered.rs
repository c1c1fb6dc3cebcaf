//! A convolution as a dense matrix product: its right factor.

use super::args::{SparseConvArgs, input};
use super::element::{Accumulator, Element};
use crate::cta::Cta;
use crate::verbs::each_of_grid;

/// Inputs by tap and output: (channel, row, column of a filter) × (image, row, column of the result), zeros outside an
/// image. A thread per element; neighbouring threads have neighbouring outputs.
pub fn columns<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let g = &args.geometry;
    let (cells, taps) = (g.out[0] * g.out[1], g.kernel[0] * g.kernel[1]);
    let width = g.batch * cells;
    let all = g.in_per_group as u64 * taps as u64 * width as u64;
    each_of_grid(cta, all, |at| {
        let (k, i) = (at as u32 / width, at as u32 % width);
        let (channel, tap) = (k / taps, k % taps);
        let (row, col) = (tap / g.kernel[1], tap % g.kernel[1]);
        let (image, cell) = (i / cells, i % cells);
        let y = (cell / g.out[1] * g.stride[0] + row * g.dilation[0]) as i32;
        let x = (cell % g.out[1] * g.stride[1] + col * g.dilation[1]) as i32;
        let place = (y - g.padding[0] as i32, x - g.padding[1] as i32);
        let found = input(cta, args, (args.first_image + image, channel), place);
        cta.write(args.out, at, found.map_or(E::Acc::ZERO, E::sum_of));
    });
}
