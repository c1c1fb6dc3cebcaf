//! f32 products on tensor cores: each number as a sum of two TF32 numbers.
//!
//! x = h + l with h the nearest TF32 number (10 bits after the point) and l what is left, of which the tensor core
//! takes the next 10 bits. Then `a·b = aₕ·bₕ + aₕ·bₗ + aₗ·bₕ` up to 2⁻²² of itself. Tensor cores add without rounding to
//! nearest, which would cost digits in long sums; so each panel, 16 steps of k, begins with zero and is added to
//! the sum by an ordinary addition, the small products first.
//!
//! Infinite and NaN elements of A and B give NaN; elements beyond 3.4·10³⁸ · (1 − 2⁻¹²) overflow.
//!
//! Mapping: warps beside one another, each with 64 × 32 elements as 4 × 4 products of 16 × 8. What the instruction calls
//! step t of k, and row or column g, may be any as long as A, B and C agree: lane t of a quad takes steps 4t to 4t + 3
//! of a panel, and lane g of the eight takes four neighbours across, one for each of four eights of rows or columns.
//! So every read is one of 16 bytes, without conflicts.
//!
//! Source: H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
//! the FP32 theoretical peak performance", *Int. J. High Perform. Comput. Appl.* 36(4), 2022.

use super::MatmulArgs;
use super::panel::place;
use super::pipeline::{Multiply, Panels, Piece, each_panel};
use super::target::Target;
use crate::cta::{Cta, Shared, WARP};

/// Rows of C that a block computes.
pub const ROWS: u32 = 64 * DOWN;
/// Columns of C that a block computes.
pub const COLUMNS: u32 = 128;
/// Threads of a block.
pub const THREADS: u32 = 128 * DOWN;
/// Warps below one another.
const DOWN: u32 = 1;
/// Warps beside one another.
const RIGHT: u32 = 4;
/// Products along the rows of a warp, and along its columns.
const PRODUCTS: usize = 4;
/// Eights of rows of a warp.
const EIGHTS: usize = 2 * PRODUCTS;
/// Steps of k that a lane takes of a panel.
const TURN: usize = 4;
/// Products along a panel: each takes two of them.
const STEPS: usize = TURN / 2;
/// Rows, or columns, of a lane's pack and its seven neighbours'.
const SPAN: u32 = 32;

/// The sums of a lane: four elements of each product.
type Sums = [[[f32; 4]; PRODUCTS]; PRODUCTS];
/// Four elements of A, or two of B, for each step and product.
type Factors<const N: usize> = [[Split<N>; PRODUCTS]; STEPS];

/// Numbers as sums of two.
#[derive(Clone, Copy)]
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

/// What a lane computes for its warp.
struct Lane {
    /// Its first row in the tile.
    row: u32,
    /// Its first column in the tile, of A's and B's reads.
    column: u32,
    /// Its turn in a quad.
    turn: u32,
    sums: Sums,
}

impl Lane {
    #[inline(always)]
    fn new<C: Cta>(cta: &C) -> Lane {
        let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
        Lane {
            row: warp / RIGHT * 2 * SPAN + lane / 4 * 4,
            column: warp % RIGHT * SPAN + lane / 4 * 4,
            turn: lane % 4,
            sums: [[[0.0; 4]; PRODUCTS]; PRODUCTS],
        }
    }

    /// The lane's elements of a panel that is `tile` wide, of `N` eights from `first` on: `[step][eight]`.
    #[inline(always)]
    fn read<C: Cta, const N: usize>(
        &self,
        cta: &C,
        (panel, tile): (Shared<f32>, u32),
        first: u32,
    ) -> [[f32; N]; TURN] {
        let mut values = [[0.0; N]; TURN];
        // One address: the four steps of a turn lie on the same side of the middle.
        let at = place(tile, first, TURN as u32 * self.turn);
        for step in 0..TURN {
            for span in 0..N / 4 {
                let offset = place(tile, span as u32 * SPAN, step as u32);
                let pack = cta.shared_read_pack(panel, (at + offset) as usize);
                for x in 0..4 {
                    values[step][4 * span + x] = pack[x];
                }
            }
        }
        values
    }

    /// Product `i`'s rows 0 to 7 are those of eight 2i, its rows 8 to 15 those of eight 2i + 1.
    #[inline(always)]
    fn store<C: Cta>(&self, cta: &C, args: &MatmulArgs<'_, f32>, piece: &Piece) {
        let target = Target::of(args, piece, (ROWS, COLUMNS));
        let columns = piece.column + self.column / SPAN * SPAN;
        for eight in 0..EIGHTS {
            let row = piece.row + self.row + eight as u32 / 4 * SPAN + eight as u32 % 4;
            for side in 0..2 {
                let index = 2 * self.turn + side as u32;
                let element = 2 * (eight % 2) + side;
                let values = core::array::from_fn(|j| self.sums[eight / 2][j][element]);
                target.write_four(cta, args, (row, columns + 4 * index), values);
            }
        }
    }
}

impl<C: Cta> Multiply<C, f32> for Lane {
    type First = ([[f32; EIGHTS]; TURN], [[f32; PRODUCTS]; TURN]);

    #[inline(always)]
    fn first(&self, cta: &C, panels: Panels<f32>) -> Self::First {
        (
            self.read(cta, (panels.a, ROWS), self.row),
            self.read(cta, (panels.b, COLUMNS), self.column),
        )
    }

    #[inline(always)]
    fn multiply(&mut self, cta: &C, _panels: Panels<f32>, (a, b): Self::First) {
        multiply(cta, &factors_a(&a), &factors_b(&b), &mut self.sums);
    }
}

/// The whole product of one tile.
#[inline(always)]
pub fn split_tf32<C: Cta>(cta: &C, args: &MatmulArgs<'_, f32>) {
    let piece = Piece::of(cta, args, (ROWS, COLUMNS));
    let mut lane = Lane::new(cta);
    each_panel::<C, f32, ROWS, COLUMNS, THREADS>(cta, args, &piece, &mut lane);
    lane.store(cta, args, &piece);
}

#[inline(always)]
fn factors_a(values: &[[f32; EIGHTS]; TURN]) -> Factors<4> {
    core::array::from_fn(|s| {
        let [first, second] = [values[2 * s], values[2 * s + 1]];
        core::array::from_fn(|i| {
            split([
                first[2 * i],
                first[2 * i + 1],
                second[2 * i],
                second[2 * i + 1],
            ])
        })
    })
}

#[inline(always)]
fn factors_b(values: &[[f32; PRODUCTS]; TURN]) -> Factors<2> {
    core::array::from_fn(|s| {
        core::array::from_fn(|j| split([values[2 * s][j], values[2 * s + 1][j]]))
    })
}

/// One panel.
#[inline(always)]
fn multiply<C: Cta>(cta: &C, a: &Factors<4>, b: &Factors<2>, sums: &mut Sums) {
    for i in 0..PRODUCTS {
        let mut products = [[0.0; 4]; PRODUCTS];
        for s in 0..STEPS {
            for j in 0..PRODUCTS {
                products[j] = cta.multiply_tf32(a[s][i].low, b[s][j].high, products[j]);
            }
            for j in 0..PRODUCTS {
                products[j] = cta.multiply_tf32(a[s][i].high, b[s][j].low, products[j]);
            }
        }
        for s in 0..STEPS {
            for j in 0..PRODUCTS {
                products[j] = cta.multiply_tf32(a[s][i].high, b[s][j].high, products[j]);
            }
        }
        for j in 0..PRODUCTS {
            for e in 0..4 {
                sums[i][j][e] += products[j][e];
            }
        }
    }
}
