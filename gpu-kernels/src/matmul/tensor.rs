//! f32 products on tensor cores: each number as a sum of two TF32 numbers.
//!
//! x = h + l with h the nearest TF32 number (10 bits after the point) and l what is left, of which the tensor core
//! takes the next 10 bits. Then `a·b = aₕ·bₕ + aₕ·bₗ + aₗ·bₕ` up to 2⁻²² of itself. Tensor cores add without rounding to
//! nearest, which would cost digits in long sums; so each step of 8 begins with zero and is added to the sum by an
//! ordinary addition.
//!
//! Infinite and NaN elements of A and B give NaN; elements beyond 3.4·10³⁸ · (1 − 2⁻¹²) overflow.
//!
//! Mapping: tiles and panels as in `tiles`; 8 warps as 2 × 4, each with 64 × 32 elements as 4 × 4 products of
//! 16 × 8. Source: H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
//! the FP32 theoretical peak performance", *Int. J. High Perform. Comput. Appl.* 36(4), 2022.

use super::tiles::{DEPTH, Panels, each_copied, origin, pitch};
use super::{MatmulArgs, store};
use crate::cta::{Cta, Shared, WARP};

/// Rows, and columns, of C that a block computes.
pub const TILE: u32 = 128;
/// Products along the rows of a warp, and along its columns.
const PRODUCTS: usize = 4;
/// Rows of a product.
const ROWS: u32 = 16;
/// Columns, and length, of a product.
const COLUMNS: u32 = 8;

/// The sums of a lane: four elements of each product.
type Sums = [[[f32; 4]; PRODUCTS]; PRODUCTS];

/// Numbers as sums of two.
struct Split<const N: usize> {
    high: [f32; N],
    low: [f32; N],
}

/// The nearest number with 10 bits after the point, and what is left.
#[inline(always)]
fn split<const N: usize>(values: [f32; N]) -> Split<N> {
    let high = values.map(|x| f32::from_bits(x.to_bits().wrapping_add(0x1000) & 0xffff_e000));
    Split {
        high,
        low: core::array::from_fn(|i| values[i] - high[i]),
    }
}

/// The whole product of one tile.
#[inline(always)]
pub fn split_tf32<C: Cta>(cta: &C, args: &MatmulArgs<'_, f32>) {
    let (first_row, first_column) = origin(cta, args, TILE);
    let warp = cta.thread() / WARP;
    let row = warp / 4 * ROWS * PRODUCTS as u32;
    let column = warp % 4 * COLUMNS * PRODUCTS as u32;
    let mut sums: Sums = [[[0.0; 4]; PRODUCTS]; PRODUCTS];
    each_copied::<C, f32, TILE>(cta, args, (first_row, first_column), |panels| {
        multiply(cta, panels, (row, column), &mut sums);
    });
    let (group, turn) = (cta.thread() % WARP / 4, cta.thread() % 4);
    for i in 0..PRODUCTS {
        for j in 0..PRODUCTS {
            for e in 0..4 {
                let row = first_row + row + i as u32 * ROWS + group + e as u32 / 2 * 8;
                let column = first_column + column + j as u32 * COLUMNS + 2 * turn + e as u32 % 2;
                store(cta, args, row, column, sums[i][j][e]);
            }
        }
    }
}

#[inline(always)]
fn multiply<C: Cta>(cta: &C, panels: Panels<f32>, (row, column): (u32, u32), sums: &mut Sums) {
    let (group, turn) = (cta.thread() % WARP / 4, cta.thread() % 4);
    for step in 0..DEPTH / COLUMNS {
        let k = step * COLUMNS + turn;
        let right: [Split<2>; PRODUCTS] = core::array::from_fn(|j| {
            let column = column + j as u32 * COLUMNS + group;
            split([
                at(cta, panels.b, k, column),
                at(cta, panels.b, k + 4, column),
            ])
        });
        for i in 0..PRODUCTS {
            let row = row + i as u32 * ROWS + group;
            let left = split([
                at(cta, panels.a, k, row),
                at(cta, panels.a, k, row + 8),
                at(cta, panels.a, k + 4, row),
                at(cta, panels.a, k + 4, row + 8),
            ]);
            for j in 0..PRODUCTS {
                let mut product = cta.multiply_tf32(left.low, right[j].high, [0.0; 4]);
                product = cta.multiply_tf32(left.high, right[j].low, product);
                product = cta.multiply_tf32(left.high, right[j].high, product);
                for e in 0..4 {
                    sums[i][j][e] += product[e];
                }
            }
        }
    }
}

#[inline(always)]
fn at<C: Cta>(cta: &C, panel: Shared<f32>, k: u32, across: u32) -> f32 {
    cta.shared_read(panel, (k * pitch(TILE) + across) as usize)
}
