//! The seed's two kernels: a thread per output goes through all channels, everything from global memory.

use super::args::{SparseConvArgs, finished, input};
use super::element::{Accumulator, Element};
use crate::cta::{Cache, Cta};
use crate::scalar::Word;
use crate::verbs::each_of_grid;

/// A nonzero as the seed's formats give it.
struct Nonzero<W> {
    value: W,
    row: u32,
    col: u32,
}

/// Value, row and column from three arrays; a zero input is not multiplied.
pub fn coo<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    each_output::<C, E, true>(cta, args, |k| Nonzero {
        row: cta.load(args.places, k, Cache::Keep),
        col: cta.load(args.cols, k, Cache::Keep),
        value: cta.load(args.values, k, Cache::Keep),
    });
}

/// Value, row and column from one word.
pub fn packed<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let [row_bits, col_bits] = args.packed_bits;
    each_output::<C, E, false>(cta, args, |k| {
        let word = cta.load(args.packed, k, Cache::Keep);
        let bits = word.to_bits() as u32;
        Nonzero {
            col: bits & ((1 << col_bits) - 1),
            row: bits >> col_bits & ((1 << row_bits) - 1),
            value: E::unpack(word, row_bits + col_bits),
        }
    });
}

/// An output: of which image and filter, and the input that tap (0, 0) meets.
struct Output {
    image: u32,
    filter: u32,
    top: i32,
    left: i32,
}

/// Each output of this thread.
#[inline(always)]
fn each_output<C: Cta, E: Element, const SKIP_ZEROS: bool>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    nonzero: impl Fn(usize) -> Nonzero<E::Wide>,
) {
    let g = &args.geometry;
    let [rows, cols] = g.out;
    let all = g.batch as u64 * g.filters as u64 * rows as u64 * cols as u64;
    each_of_grid(cta, all, |at| {
        let (rest, col) = (at as u32 / cols, at as u32 % cols);
        let (rest, row) = (rest / rows, rest % rows);
        let (image, filter) = (rest / g.filters, rest % g.filters);
        let output = Output {
            image,
            filter,
            top: (row * g.stride[0]) as i32 - g.padding[0] as i32,
            left: (col * g.stride[1]) as i32 - g.padding[1] as i32,
        };
        let sum = add_channels::<C, E, SKIP_ZEROS>(cta, args, &output, &nonzero);
        let to = g.to.at(image, filter, row, col);
        cta.write(args.out, to, finished(cta, args, filter, sum));
    });
}

#[inline(always)]
#[track_caller]
fn add_channels<C: Cta, E: Element, const SKIP_ZEROS: bool>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    output: &Output,
    nonzero: &impl Fn(usize) -> Nonzero<E::Wide>,
) -> E::Acc {
    let g = &args.geometry;
    let first = output.filter / g.out_per_group * g.in_per_group;
    let mut sum = E::Acc::ZERO;
    for c in 0..g.in_per_group {
        let slice = (output.filter * g.in_per_group + c) as usize;
        let end = cta.load(args.starts, slice + 1, Cache::Keep);
        for k in cta.load(args.starts, slice, Cache::Keep)..end {
            let Nonzero { value, row, col } = nonzero(k as usize);
            let y = output.top + (row * g.dilation[0]) as i32;
            let x = output.left + (col * g.dilation[1]) as i32;
            if let Some(x) = input(cta, args, (output.image, first + c), (y, x))
                && (!SKIP_ZEROS || x != E::Wide::default())
            {
                sum = E::multiply_add(x, value, sum);
            }
        }
    }
    sum
}
