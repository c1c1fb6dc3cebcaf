//! f32 products on tensor cores: each number as a scaled sum of two halves of 16 bits.
//!
//! [`packed`](super::packed) says how a row of op(A), or a column of op(B), becomes numbers h + l, up to the larger of 2⁻²² of
//! the number and 2⁻³⁹ of the row's largest magnitude M. Then `a·b = aₕ·bₕ + aₕ·bₗ + aₗ·bₕ`, so that an element of C is off by at
//! most `3 · 2⁻²² · Σ|aₖ·bₖ| + 2⁻³⁹ · (M(a) · Σ|bₖ| + M(b) · Σ|aₖ|)` and the errors of adding. As in
//! [`tensor`](super::tensor), each group of two panels, 32 steps of k, begins with zero and is added to the sum by an
//! ordinary addition, as tensor cores do not round to nearest. At the end the scales are taken back, which is exact.
//!
//! A row of op(A) with an infinite or NaN element, or a column of op(B), becomes NaN in C. No magnitude overflows.
//!
//! Mapping: 8 warps, two below one another and four beside, each with 64 × 32 elements as 4 × 4 products of 16 × 8. There is
//! one loop without branches, as packed operands have whole panels and tiles.
//!
//! Shared bytes: [`SHARED_ELEMENTS`] elements. Determinism: the same bits for the same launch.
//!
//! A warp's group takes 96 products and some 140 other instructions: 64 additions to sums, 24 reads of shared memory, 8
//! copies, addresses. Split TF32 takes 192 products and 356 others. That needs operands in the registers' order, which
//! [`packed`](super::packed) has: with the two pairs of a row side by side there were 385 moves of registers besides.
//!
//! On an H100 (2026-11-27, packing included) 8,192³ takes 9.13 ms, 120 TFLOP/s, 4,096³ 1.24, 111; split TF32 in the same run 15.2
//! and 1.99, multiply-adds of cuBLAS 21.4 and 2.65. Errors over the whole are 3.2·10⁻⁷ and 2.5·10⁻⁷, of split TF32 3.6 and 3.0.
//! Expected had been 125 to 145 before packing: some 8.6 ms are left for the product, 128.
//!
//! Source: H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
//! the FP32 theoretical peak performance", *Int. J. High Perform. Comput. Appl.* 36(4), 2022; scales by rows and columns
//! as in D. Mukunoki et al., "DGEMM using Tensor Cores, and Its Accurate and Reproducible Versions", *ISC* 2020.

use super::MatmulArgs;
use super::packed::{GROUP, Places, QUARTER, ROW, TILE};
use super::panel::DEPTH;
use super::pipeline::Piece;
use super::target::Target;
use super::tensor::{RIGHT, SPAN, Sums, store};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::In;

/// Rows of C that a block computes.
pub const ROWS: u32 = TILE;
/// Columns of C that a block computes.
pub const COLUMNS: u32 = TILE;
/// Threads of a block.
pub const THREADS: u32 = 256;
/// Warps beside one another.
const BESIDE: u32 = COLUMNS / SPAN;
/// Rows of a warp.
const HEIGHT: u32 = 2 * SPAN;
/// Eights of rows of a warp.
const EIGHTS: usize = HEIGHT as usize / 8;
/// Panels of a group, whose products are added up by tensor cores, beginning with zero, and that are copied together.
const PANELS: u32 = GROUP / DEPTH;
/// Groups in shared memory: one that is multiplied, and two that are copied.
const STAGES: u32 = 3;
/// Elements of an operand's panel of a tile.
const PANEL: u32 = TILE * ROW;
/// Elements of shared memory of a block.
pub const SHARED_ELEMENTS: u32 = STAGES * STAGE;
/// Elements of a group of both operands.
const STAGE: u32 = 2 * PANELS * PANEL;

/// What a lane multiplies of two rows' panels, in the order of registers.
#[derive(Clone, Copy)]
struct Factors {
    high: [u32; 4],
    low: [u32; 4],
}

impl Factors {
    /// Those of pair `pair` of eights of rows, from the word `at` on.
    #[inline(always)]
    fn read<C: Cta>(cta: &C, operand: Shared<f32>, at: u32, pair: usize) -> Factors {
        let part = |low: u32| {
            let at = at + (2 * pair as u32 + low) * QUARTER;
            cta.shared_read_pack(operand, at as usize).map(f32::to_bits)
        };
        Factors {
            high: part(0),
            low: part(1),
        }
    }
}

/// The factors of all columns of a warp.
type FactorsB = [Factors; RIGHT / 2];
/// A lane's elements of the products of 16 rows.
type Products = [[f32; 4]; RIGHT];

/// Adds the products of a panel, the small ones first.
#[inline(always)]
fn multiply<C: Cta>(cta: &C, a: &Factors, b: &FactorsB, products: &mut Products) {
    for j in 0..RIGHT {
        products[j] = cta.multiply_halves(a.low, column(b[j / 2].high, j), products[j]);
    }
    for j in 0..RIGHT {
        products[j] = cta.multiply_halves(a.high, column(b[j / 2].low, j), products[j]);
    }
    for j in 0..RIGHT {
        products[j] = cta.multiply_halves(a.high, column(b[j / 2].high, j), products[j]);
    }
}

/// The factors of one of two columns.
#[inline(always)]
fn column([p, q, of_p, of_q]: [u32; 4], j: usize) -> [u32; 2] {
    if j.is_multiple_of(2) {
        [p, q]
    } else {
        [of_p, of_q]
    }
}

/// An operand of a tile.
struct Feed<'a> {
    /// From the thread's first element of the next group on.
    from: In<'a, f32>,
    /// Elements of a group of all rows.
    pitch: u64,
    /// Groups from the next one on.
    left: u32,
}

impl<'a> Feed<'a> {
    /// Groups of rows from `first` on, of `across`.
    #[inline(always)]
    fn new<C: Cta>(
        cta: &C,
        packed: In<'a, f32>,
        (across, first): (u32, u32),
        piece: &Piece,
    ) -> Self {
        let places = Places::of(across);
        let own = 4 * cta.thread() as u64;
        Feed {
            from: packed.after(places.group(piece.begin, first) + own),
            pitch: places.pitch(),
            left: groups(piece),
        }
    }

    /// Begins to copy the next group; behind the last that one again, which costs less than a branch.
    #[inline(always)]
    fn copy<C: Cta>(&mut self, cta: &C, to: Shared<f32>) {
        const TURN: u32 = 4 * THREADS;
        let own = 4 * cta.thread();
        for i in 0..PANELS * PANEL / TURN {
            let at = i * TURN;
            cta.copy_whole_pack(to, (own + at) as usize, self.from, at as usize, true);
        }
        let groups = u32::from(self.left > 1);
        self.left -= groups;
        self.from = self.from.after(groups as u64 * self.pitch);
    }
}

/// Groups of panels of a piece.
#[inline(always)]
fn groups(piece: &Piece) -> u32 {
    (piece.end - piece.begin).div_ceil(GROUP)
}

/// Where a group of A is, and one of B.
#[inline(always)]
fn operands(stage: u32) -> [Shared<f32>; 2] {
    let of = |operand: u32| {
        let first = stage * STAGE + operand * PANELS * PANEL;
        Shared::at(first * 4, PANELS * PANEL)
    };
    [of(0), of(1)]
}

/// What a lane computes for its warp.
struct Lane {
    /// The warp's first row in the tile.
    row: u32,
    /// The warp's first column in the tile.
    column: u32,
    /// Its number in the warp.
    lane: u32,
    sums: Sums,
}

impl Lane {
    #[inline(always)]
    fn new<C: Cta>(cta: &C) -> Lane {
        let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
        Lane {
            row: warp / BESIDE * HEIGHT,
            column: warp % BESIDE * SPAN,
            lane,
            sums: Sums::default(),
        }
    }

    /// Multiplies group by group.
    #[inline(always)]
    fn each_group<C: Cta>(&mut self, cta: &C, [mut a, mut b]: [Feed<'_>; 2], groups: u32) {
        if groups == 0 {
            return;
        }
        let mut copy = |stage: u32| {
            let [to_a, to_b] = operands(stage);
            a.copy(cta, to_a);
            b.copy(cta, to_b);
            cta.end_copies();
        };
        for stage in 0..STAGES - 1 {
            copy(stage);
        }
        let (mut stage, mut free) = (0, STAGES - 1);
        for _ in 0..groups {
            cta.copies_done::<{ STAGES - 2 }>();
            cta.sync();
            // All have read the group before this one: its place is free.
            copy(free);
            self.multiply(cta, operands(stage));
            free = stage;
            stage = if stage + 1 == STAGES { 0 } else { stage + 1 };
        }
    }

    /// Adds the products of a group, 16 rows after 16 rows: the sums of some are added while others are multiplied.
    #[inline(always)]
    fn multiply<C: Cta>(&mut self, cta: &C, [a, b]: [Shared<f32>; 2]) {
        let at = |panel: usize, first: u32| panel as u32 * PANEL + first * ROW + 4 * self.lane;
        let b: [FactorsB; PANELS as usize] = core::array::from_fn(|panel| {
            core::array::from_fn(|pair| Factors::read(cta, b, at(panel, self.column), pair))
        });
        for down in 0..EIGHTS / 2 {
            let mut products = Products::default();
            for panel in 0..PANELS as usize {
                let a = Factors::read(cta, a, at(panel, self.row), down);
                multiply(cta, &a, &b[panel], &mut products);
            }
            for j in 0..RIGHT {
                for i in 0..4 {
                    self.sums[down][j][i] += products[j][i];
                }
            }
        }
    }

    /// Takes the scales back.
    #[inline(always)]
    fn unscale<C: Cta>(&mut self, cta: &C, args: &MatmulArgs<'_, f32>, (row, column): (u32, u32)) {
        let of_columns: [[f32; 4]; 2] = core::array::from_fn(|side| {
            cta.load_pack(args.b, column as usize + 4 * side, Cache::Keep)
        });
        for eight in 0..EIGHTS {
            let row = row + eight as u32 / 4 * SPAN + eight as u32 % 4;
            let of_row = cta.load(args.a, row as usize, Cache::Keep);
            for side in 0..2 {
                for j in 0..RIGHT {
                    let sum = &mut self.sums[eight / 2][j][2 * (eight % 2) + side];
                    *sum = unscaled(*sum, [of_row, of_columns[side][j]]);
                }
            }
        }
    }
}

/// `sum / (s · t)` of two powers of two, whose product may be beyond f32: each factor has half of its exponent, so that
/// nothing overflows or becomes subnormal on the way that the result does not.
#[inline(always)]
fn unscaled(sum: f32, scales: [f32; 2]) -> f32 {
    const BIAS: i32 = 127;
    let [s, t] = scales.map(|scale| (scale.to_bits() >> 23) as i32 - BIAS);
    let exponent = -(s + t);
    let power = |exponent: i32| f32::from_bits(((exponent + BIAS) as u32) << 23);
    let half = exponent >> 1;
    sum * power(half) * power(exponent - half)
}

/// The whole product of one tile; A and B are packed.
#[inline(always)]
pub fn split_f16<C: Cta>(cta: &C, args: &MatmulArgs<'_, f32>) {
    cta.launch_bounds::<THREADS, 1>();
    let piece = Piece::of(cta, args, (ROWS, COLUMNS));
    let a = Feed::new(cta, args.a, (args.m, piece.row), &piece);
    let b = Feed::new(cta, args.b, (args.n, piece.column), &piece);
    let mut lane = Lane::new(cta);
    lane.each_group(cta, [a, b], groups(&piece));
    let row = piece.row + lane.row + lane.lane / 4 * 4;
    let column = piece.column + lane.column + lane.lane % 4 * 8;
    lane.unscale(cta, args, (row, column));
    let target = Target::of(args, &piece, (ROWS, COLUMNS));
    store(cta, args, &target, (row, column), &lane.sums);
}
